DELETE FROM "public"."txidem_messages" WHERE message_id = ANY ($1::text[]) AND consumer = $2::text

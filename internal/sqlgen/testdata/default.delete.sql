DELETE FROM "public"."txidem_messages" WHERE message_id = $1::text AND consumer = $2::text AND processed_at IS NOT NULL RETURNING 1

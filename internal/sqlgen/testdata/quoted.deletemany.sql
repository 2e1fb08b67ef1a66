DELETE FROM "Odd ""Schema"""."select; drop table x --" WHERE message_id = ANY ($1::text[]) AND consumer = $2::text

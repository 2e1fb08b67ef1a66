DELETE FROM "Odd ""Schema"""."select; drop table x --" WHERE message_id = $1::text AND consumer = $2::text AND processed_at IS NOT NULL RETURNING 1

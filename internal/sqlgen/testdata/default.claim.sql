INSERT INTO "public"."txidem_messages" (message_id, consumer, processed_at)
SELECT $1::text, $2::text, now()
FROM (SELECT set_config('lock_timeout', $3::text, true)
      FROM (SELECT set_config('txidem.lock_timeout', current_setting('lock_timeout'), true)) AS kept) AS bounded
ON CONFLICT (message_id, consumer) DO NOTHING
RETURNING set_config('lock_timeout', current_setting('txidem.lock_timeout'), true)

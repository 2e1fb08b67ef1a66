WITH claim AS (
INSERT INTO "Odd ""Schema"""."select; drop table x --" (message_id, consumer, processed_at)
SELECT $1::text, $2::text, now()
FROM (SELECT set_config('lock_timeout', $3::text, true) FROM (SELECT set_config('txidem.lock_timeout', current_setting('lock_timeout'), true) AS kept,
        set_config('idle_in_transaction_session_timeout',
          CASE WHEN session.idle <> '0' AND session.idle::interval < $4::text::interval THEN session.idle ELSE $4::text END, true) AS idle
      FROM (SELECT current_setting('idle_in_transaction_session_timeout') AS idle) AS session) AS marked) AS bounded
ON CONFLICT (message_id, consumer) DO NOTHING
RETURNING set_config('lock_timeout', current_setting('txidem.lock_timeout'), true)
)
SELECT (CASE WHEN count(*) = 1 THEN '1' ELSE 'txidem: not claimed, a duplicate most likely' END)::int FROM claim

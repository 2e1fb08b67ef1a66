WITH kept AS MATERIALIZED (
  SELECT current_setting('lock_timeout') AS lock_timeout, current_setting('idle_in_transaction_session_timeout') AS idle
),
bounded AS MATERIALIZED (
  SELECT set_config('lock_timeout', $3::text, true), lock_timeout,
    set_config('txidem.claim', '1', true) AS mark,
    set_config('idle_in_transaction_session_timeout',
    CASE WHEN kept.idle <> '0' AND kept.idle::interval < $4::text::interval THEN kept.idle ELSE $4::text END, true) AS idle
  FROM kept
),
claim AS (
  INSERT INTO "public"."txidem_messages" (message_id, consumer, processed_at)
  SELECT $1::text, $2::text, now() FROM bounded
  ON CONFLICT (message_id, consumer) DO NOTHING
  RETURNING 1
)
SELECT (CASE WHEN claimed.n = 1 THEN '1' ELSE 'txidem: not claimed, a duplicate most likely' END)::int,
  set_config('lock_timeout', bounded.lock_timeout, true)
FROM (SELECT count(*) AS n FROM claim) AS claimed, bounded

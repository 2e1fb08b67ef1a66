SELECT set_config('txidem.claim', '1', true) AS mark,
  set_config('idle_in_transaction_session_timeout',
    CASE WHEN kept.idle <> '0' AND kept.idle::interval < $1::text::interval THEN kept.idle ELSE $1::text END, true) AS idle
FROM (SELECT current_setting('idle_in_transaction_session_timeout') AS idle) AS kept

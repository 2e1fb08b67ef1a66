SELECT kept, idle FROM (SELECT set_config('txidem.lock_timeout', current_setting('lock_timeout'), true) AS kept,
        set_config('idle_in_transaction_session_timeout',
          CASE WHEN session.idle <> '0' AND session.idle::interval < $1::text::interval THEN session.idle ELSE $1::text END, true) AS idle
      FROM (SELECT current_setting('idle_in_transaction_session_timeout') AS idle) AS session) AS marked

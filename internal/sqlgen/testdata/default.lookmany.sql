SELECT message_id, processed_at IS NOT NULL,
  CASE WHEN processed_at = now() THEN
    (SELECT txid_status(n - ((n - x + 2147483648) & 4294967295) + 2147483648) = 'in progress'
     FROM (SELECT txid_snapshot_xmax(txid_current_snapshot()) AS n, xmin::text::bigint AS x) AS xids)
  ELSE false END
FROM "public"."txidem_messages" WHERE message_id = ANY ($1::text[]) AND consumer = $2::text

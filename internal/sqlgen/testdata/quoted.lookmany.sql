SELECT message_id, processed_at IS NOT NULL,
  CASE WHEN processed_at > now() - interval '1 hour' THEN
    txid_status(txid_snapshot_xmax(txid_current_snapshot())
      - ((txid_snapshot_xmax(txid_current_snapshot()) - xmin::text::bigint + 2147483648) & 4294967295)
      + 2147483648) = 'in progress'
  ELSE false END
FROM "Odd ""Schema"""."select; drop table x --" WHERE message_id = ANY ($1::text[]) AND consumer = $2::text

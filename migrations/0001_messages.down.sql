-- For the operator: drops the record of every processed message. A message delivered again after this runs again.
-- Takes an ACCESS EXCLUSIVE lock on the table, behind every transaction that has claimed a message.
DROP TABLE "public"."txidem_messages";

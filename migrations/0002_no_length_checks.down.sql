-- Brings the limits on the lengths of the key columns back, for rows that are written from now on.
--
-- For the operator: takes an ACCESS EXCLUSIVE lock on the table until the transaction ends, and waits for it as the way up
-- does. NOT VALID: the rows that are there are not read, so the lock is held for a moment. The library has written
-- none that is too long. Who wants to be sure can VALIDATE both constraints afterwards: that reads the whole table, under a
-- lock that lets claims go on.
ALTER TABLE "public"."txidem_messages"
    ADD CONSTRAINT txidem_message_id_length CHECK (octet_length(message_id) BETWEEN 1 AND 1024) NOT VALID,
    ADD CONSTRAINT txidem_consumer_length CHECK (octet_length(consumer) BETWEEN 1 AND 255) NOT VALID;

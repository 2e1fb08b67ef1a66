-- Drops the two limits on the lengths of the key columns. The library refuses longer and empty values before it sends
-- them, and on the server the two checks cost every claim some processor time.
--
-- For the operator: takes an ACCESS EXCLUSIVE lock on the table until the transaction ends. It changes the catalogue only
-- and reads no row, so it holds the lock for a moment whatever the size of the table. But it waits for every
-- transaction that has claimed a message, and whoever comes after it waits behind it: bound the wait by lock_timeout, and
-- try again later when a handler took longer. Old and new versions of the library work before and after it.
ALTER TABLE "public"."txidem_messages"
    DROP CONSTRAINT IF EXISTS txidem_message_id_length,
    DROP CONSTRAINT IF EXISTS txidem_consumer_length;

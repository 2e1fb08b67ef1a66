-- The record of processed messages, one row for each (message id, consumer).
--
-- For the operator: creates one empty table, so it locks nothing that exists. Never make this table UNLOGGED: a crash
-- would empty it while the effects of the messages stay, and each of them could then happen a second time.
--
-- The key columns are COLLATE "C" whatever the database's default: a changed system collation corrupts a linguistic
-- index and lets duplicates in. The limits are in bytes and keep every key within what one index entry can hold.
--
-- processed_at is the server's time of processing. It may be NULL: such a row is read as a message that somebody holds
-- and has not processed.
CREATE TABLE "public"."txidem_messages" (
    message_id   text COLLATE "C" NOT NULL,
    consumer     text COLLATE "C" NOT NULL,
    processed_at timestamptz,
    PRIMARY KEY (message_id, consumer),
    CONSTRAINT txidem_message_id_length CHECK (octet_length(message_id) BETWEEN 1 AND 1024),
    CONSTRAINT txidem_consumer_length CHECK (octet_length(consumer) BETWEEN 1 AND 255)
);

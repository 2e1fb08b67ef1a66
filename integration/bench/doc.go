// Command bench measures what dedupe costs: every way of processing a message once, against a transaction without any.
//
//	make bench            the whole matrix, about nine minutes
//	make bench/quick      the same in a minute, for a look
//	make bench/processor  processor time alone, two minutes
//	make bench/size       claims in tables of 0, 1 M and 10 M records
//
// What is fair about it:
//
//   - All contenders run in the same process against the same server. In each round every contender has one turn, in a new
//     random order; a drift of the machine hits all of them alike. A turn is a short slice of time, since a worker does the
//     same thing again and again: a contender whose delivery comes after those of ten others would have the processors'
//     caches against it.
//   - All contenders share one record table, one business table and one pool, so that none works on smaller tables,
//     warmer pages or better prepared connections. The ids are random and new, and turns never overlap, so contenders do
//     not meet each other's records. The tables are emptied before each cell.
//   - The handler is one INSERT into the business table, the same statement for everybody; WrapBatch inserts all messages
//     of a delivery by one INSERT … SELECT unnest.
//   - Times on the wall swing with what else the machine does; processor time a message hardly does, so the targets are
//     about that. It is the client's, of this whole process, and the server's, of the backends that the contender's pool
//     uses; not of the server's other processes, such as the WAL writer. The ids are made before, and the server does not
//     wait for its disk. Ratios are taken within each round, and then their median.
//   - The delay of a network is added by a proxy in this process, in both directions; what it really adds is measured and
//     printed. Client, proxy and a server that make bench starts share the machine's processors.
//   - After each cell the rows in both tables are counted, and the run fails unless they are what the contenders reported.
package main

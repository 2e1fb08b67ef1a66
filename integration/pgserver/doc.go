// Package pgserver finds or starts a PostgreSQL server for the demo, the tests and the benchmarks of txidem.
//
// Where it looks, and in which order, is Options.Order. The four sources are
//
//   - FromDSN: a server that runs already, named by TXIDEM_DSN or, when that is empty, by DATABASE_URL;
//   - FromDocker: a container, started through testcontainers, of the image TXIDEM_IMAGE (default DefaultImage);
//   - FromLocal: server binaries of this machine, on a new cluster in a temporary folder;
//   - FromEmbedded: server binaries that are downloaded once (fergusstrange/embedded-postgres).
//
// TXIDEM_SERVER set to dsn, docker, local or embedded takes that source and no other: when it is not to be had, Start
// fails. TXIDEM_PGBIN names a folder of server binaries that FromLocal takes instead of looking for one.
//
// Every server that this package starts keeps what it acknowledges (fsync is on), takes 300 connections, and is gone
// after Server.Stop. On Linux a server from FromLocal also ends when the process that started it dies; its folder, named
// txidem-pg-… in the temporary folder, is then left behind. On other systems such a server outlives a process that is
// killed before it could call Stop.
package pgserver

// Package store keeps values, as bytes, under keys: in memory, in a file, on a
// database server or on a cluster. A write can name the revision that it
// replaces, so that no writer overwrites a change that it has not read.
//
// The package contains the interface [Store], the in-memory store [Memory] and
// [Manager], the type that most programs use: it keeps strings and JSON under
// keys with a common prefix. A program that gets a value, changes it and sets
// it loses the changes that other programs make in between. [Manager.Update]
// loses none.
//
// The durable stores are separate modules:
//
//	store/sqlitestore  SQLite in one file
//	store/sqlstore     PostgreSQL, MariaDB and MySQL, and SQLite with any driver
//	store/redisstore   Redis
//	store/storetest    the conformance tests for any implementation of Store
package store

// How it is built, and why: for those who change the package.
//
// The interface is what all engines can keep, and what a program needs to be
// correct: read keys, write some if nobody else has, all or none, and list keys
// in order.
//
//   - A write names what it replaces. A Get followed by a Set loses updates in
//     every framework that has only these. The database evaluates the condition
//     in the statement that writes: UPDATE … WHERE k = ? AND rev = ? and the
//     number of rows, a script in Redis.
//   - A revision never returns. It is 128 random bits, not a counter. Counters
//     restart when a key is deleted and made anew, when a replica that was
//     behind takes over, and when a backup is restored; a writer that was
//     asleep meanwhile would then replace what it has not seen.
//   - There are three outcomes, not two. ErrConflict means certainly not made.
//     After a lost connection, a context that ended while an answer was
//     awaited, or a failed COMMIT, the outcome is unknown, and
//     ErrUnknownOutcome says so. Only the caller knows whether a second attempt
//     does harm, so Manager does not retry it.
//   - The end of a context ends every call. A driver's COMMIT and ROLLBACK have
//     no context. They run beside the caller, who gets an unknown outcome when
//     the context ends; connections of mysqlstore are closed then, as those of
//     pgx are. Servers end a transaction whose client is gone, because its rows
//     are locked.
//   - A write that was given up may leave its session on the server. pgx asks
//     PostgreSQL to end it: what that makes visible does not count until a later
//     write is acknowledged. MariaDB is asked for nothing: KILL of a session
//     that waits for a replica acknowledges the commits of others, which lost 19
//     of 1 787 messages (findings/mariadb-kill-semisync.sh). To keep the
//     connection until the answer comes would hold the pool at a server that
//     stands still, while others take writes.
//   - A store finds out what it talks to when it is opened: a server that is
//     read-only is refused, a pooler that refuses parameters gets no prepared
//     statements, a node of Galera makes reads wait for other nodes. Reads are
//     texts on PostgreSQL, where that costs nothing (0.97 to 1.01), and
//     prepared elsewhere (1.2 to 1.9).
//
// storetest.Run is the contract as tests, and is tested by stores with one
// fault each: each must fail, in the subtest that is named after the fault.

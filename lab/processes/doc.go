// Package processes holds the tests of package workspace that need real stores
// and several processes. They kill processes, stop them, and let many work at
// the same time. TestScale fills stores with many users.
//
// They run on SQLite, and on the servers of PostgreSQL, MariaDB and Redis that
// answer at STATE_TEST_POSTGRES, STATE_TEST_MYSQL and STATE_TEST_REDIS, or at
// their standard ports on this machine. A server that STATE_TEST_REQUIRE names
// must answer.
//
// STATE_EFFORT multiplies their sizes. The default, 1, kills 8 processes and
// stops 2 on SQLite, and a tenth of that on each of the servers. TestScale has
// 1000 users then, and 100 000 with 1000.
package processes

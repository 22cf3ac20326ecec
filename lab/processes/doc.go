// Package workspacetest has the tests of package workspace that need real stores
// and several processes: some are killed, some stopped, and many work at once.
//
// They run on SQLite, and on PostgreSQL, Redis and NATS if they answer at
// STATE_TEST_POSTGRES, STATE_TEST_REDIS and STATE_TEST_NATS or at their standard
// ports of this machine. Those that STATE_TEST_REQUIRE names have to.
//
// STATE_EFFORT multiplies their sizes. The default, 1, kills 8 processes and
// stops 2 on SQLite, and a tenth of that on each of the servers.
package processes

// Package workspacetest has the tests of package workspace that need real stores
// and several processes: some are killed, some stopped, and many work at once.
//
// They run on SQLite, and on PostgreSQL, Redis and NATS if they answer at
// STATE_TEST_POSTGRES, STATE_TEST_REDIS and STATE_TEST_NATS or at their standard
// ports of this machine. Those that STATE_TEST_REQUIRE names have to. STATE_KILLS
// and STATE_STOPS say how many processes are killed and stopped on SQLite, on each
// of the servers a tenth of it; STATE_CROWD how many users come at once, with as
// many messages each; STATE_WORKSPACES how many random programs are compared with
// the model.
package workspacetest

package mysqlstore

import (
	"context"
	"database/sql/driver"
)

// session is what a connection is on its server. A server does not notice that a
// client is gone while the client's write waits, as a commit does for a replica that is
// away: MariaDB 10.11 keeps such sessions without an end, until it takes no more
// connections. So the store asks for their end.
type session struct{ id, host, port string }

func newSession(variables map[string]string) session {
	return session{variables["pseudo_thread_id"], variables["hostname"], variables["port"]}
}

// end ends the session, over a connection of its own, unless that leads to another
// server: in front of several there may be a proxy. It takes no longer than hostTime.
func (s session) end(server driver.Connector) {
	ctx, cancel := context.WithTimeout(context.Background(), hostTime)
	defer cancel()
	c := &conn{}
	if c.open(ctx, server) != nil {
		return // without a server there is no session
	}
	defer c.Close()
	here, err := c.show(ctx, "show variables where variable_name in ('hostname', 'port')")
	if err == nil && here["hostname"] == s.host && here["port"] == s.port {
		// KILL QUERY would do for the session, but lets a commit that waits for a
		// replica succeed.
		_, _ = c.driverConn.ExecContext(ctx, "kill "+s.id, nil) // an error says that it has ended
	}
}

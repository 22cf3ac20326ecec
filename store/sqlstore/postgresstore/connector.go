package postgresstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// sessionParameters let a server end a transaction whose client is gone, within
// 10 seconds, or 15 if it sends something: until then, rows are locked. The
// server's own times are hours.
var sessionParameters = map[string]string{
	"idle_in_transaction_session_timeout": "10s",
	"tcp_keepalives_idle":                 "5",
	"tcp_keepalives_interval":             "5",
	"tcp_keepalives_count":                "2",
	"tcp_user_timeout":                    "15s",
}

// connector opens connections with the parameters of the store. If they are
// refused, there is a pooler in front of the server: then without.
type connector struct {
	server, pooler driver.Connector
	pooled         atomic.Bool
}

// newConnector returns a connector. What the dsn says comes first.
func newConnector(dsn string, config *pgx.ConnConfig) *connector {
	server, pooler := config.Copy(), config.Copy()
	server.RuntimeParams = maps.Clone(sessionParameters)
	maps.Copy(server.RuntimeParams, config.RuntimeParams)
	if !strings.Contains(dsn, "default_query_exec_mode") {
		// A pooler may execute a statement on another connection than the one on
		// which it was prepared.
		pooler.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	return &connector{server: stdlib.GetConnector(*server), pooler: stdlib.GetConnector(*pooler)}
}

func (c *connector) Driver() driver.Driver { return c.server.Driver() }

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	if c.pooled.Load() {
		conn, err := c.pooler.Connect(ctx)
		return conn, plainError(err)
	}
	conn, err := c.server.Connect(ctx)
	if refusesParameter(err) {
		if conn, err = c.pooler.Connect(ctx); err == nil {
			c.pooled.Store(true)
		}
	}
	return conn, plainError(err)
}

// refusesParameter reports whether a server has refused a parameter: PgBouncer
// passes only those on that it knows.
func refusesParameter(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && (slices.Contains([]string{"42704", "22023", "0A000"}, answer.Code) ||
		answer.Code == "08P01" && strings.Contains(answer.Message, "startup parameter"))
}

// plainError returns the error of a connection without the configuration, which
// has the password, and in one line. The driver tries each server with TLS and
// without: what is the same twice is there once, and servers that have no TLS
// are left out, unless nothing else is to be said.
func plainError(err error) error {
	var failed *pgconn.ConnectError
	if !errors.As(err, &failed) {
		return err
	}
	reasons := []error{failed.Unwrap()}
	if several, ok := reasons[0].(interface{ Unwrap() []error }); ok {
		reasons = several.Unwrap()
	}
	noTLS := func(err error) bool { return strings.Contains(err.Error(), "server refused TLS connection") }
	if !slices.ContainsFunc(reasons, func(err error) bool { return !noTLS(err) }) {
		noTLS = func(error) bool { return false }
	}
	joined, seen := error(nil), map[string]bool{}
	for _, reason := range reasons {
		switch text := reason.Error(); {
		case noTLS(reason) || seen[text]:
		case joined == nil:
			seen[text], joined = true, reason
		default:
			seen[text], joined = true, fmt.Errorf("%w; %w", joined, reason)
		}
	}
	return fmt.Errorf("cannot connect: %w", joined)
}

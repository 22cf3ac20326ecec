package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlstore"
	"github.com/agentstate/state/store/sqlstore/mysqlstore"
)

// withoutTLS returns the URL for connections whose statements a proxy can read.
func (s *server) withoutTLS(t *testing.T) string {
	if s.driver == "postgres" {
		return s.withParameter(t, "sslmode", "disable")
	}
	return s.url
}

// onDarkPools calls test with a store for each server, on a pool of its own and
// on one of the program, and with the proxy in front of the server.
func onDarkPools(t *testing.T, test func(t *testing.T, s *sqlstore.Store, proxy *testkit.Proxy)) {
	for _, driver := range []string{"postgres", "mysql"} {
		t.Run(driver, func(t *testing.T) {
			direct := newServer(t, driver)
			direct.url = direct.withoutTLS(t)
			proxy := testkit.NewProxy(t, direct.host(t))
			test(t, direct.open(t, direct.withHost(t, proxy.Addr()), direct.table(t)), proxy)
			proxy.Close() // ends the transaction of the server, which holds up the end of the test
		})
		t.Run(driver+", pool of the program", func(t *testing.T) {
			direct := newServer(t, driver)
			direct.url = direct.withoutTLS(t)
			proxy := testkit.NewProxy(t, direct.host(t))
			dialect := map[string]sqlstore.Dialect{"postgres": sqlstore.Postgres(), "mysql": mysqlstore.Dialect()}[driver]
			proxied := &server{driver: driver, url: direct.withHost(t, proxy.Addr())}
			s, err := sqlstore.New(t.Context(), proxied.connect(t), dialect, &sqlstore.Options{Table: direct.table(t)})
			require.NoError(t, err)
			test(t, s, proxy)
			proxy.Close()
		})
	}
}

// Transact ends with its context, and when the store is closed, although the
// connection has gone dark and the driver's COMMIT and ROLLBACK have no context.
func TestTransactOnDarkConnection(t *testing.T) {
	for name, row := range map[string]struct {
		from    string // the statement from which on the connection is dark; "" for at once
		close   bool   // the store, instead of ending the context
		unknown bool
	}{
		"commit":               {from: "commit", unknown: true},
		"commit, store closed": {from: "commit", close: true, unknown: true},
		"rollback":             {},
		"rollback, closed":     {close: true},
	} {
		t.Run(name, func(t *testing.T) {
			onDarkPools(t, func(t *testing.T, s *sqlstore.Store, proxy *testkit.Proxy) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				end := cancel
				if row.close {
					end = func() { _ = s.Close() }
				}
				_, err := s.Transact(ctx, []store.Write{{Key: "k"}}, func(*sql.Tx) error {
					if row.from != "" {
						proxy.DropFrom(row.from)
						time.AfterFunc(300*time.Millisecond, end)
						return nil
					}
					proxy.Drop(testkit.ToServer)
					go end()
					time.Sleep(100 * time.Millisecond) // database/sql rolls back meanwhile
					return errors.New("too late")
				})
				require.Error(t, err)
				require.Equal(t, row.unknown, isUnknown(err), "%v", err)
				require.NoError(t, s.Close())
			})
		})
	}
}

// A server ends a transaction whose client is gone: nobody else can write its
// keys before.
func TestLockOfDarkConnection(t *testing.T) {
	for driver, row := range map[string]struct {
		parameter, short string
		ask              string
		want             string
	}{
		"postgres": {"idle_in_transaction_session_timeout", "1s", "select current_setting('idle_in_transaction_session_timeout') || ' ' ||" +
			" current_setting('tcp_keepalives_idle') || ' ' || current_setting('tcp_user_timeout')", "10s 5 15000"},
		"mysql": {"idle_transaction_timeout", "1", "select concat(@@idle_transaction_timeout, '')", "10"},
	} {
		t.Run(driver, func(t *testing.T) {
			server := newServer(t, driver)
			server.url = server.withoutTLS(t)
			table := server.table(t)
			direct := server.open(t, server.url, table)
			_, err := direct.Transact(t.Context(), []store.Write{{Key: "k"}}, func(tx *sql.Tx) error {
				var got string
				require.NoError(t, tx.QueryRowContext(t.Context(), row.ask).Scan(&got))
				require.Equal(t, row.want, got)
				return nil
			})
			require.NoError(t, err)

			server.url = server.withParameter(t, row.parameter, row.short)
			proxy := testkit.NewProxy(t, server.host(t))
			proxied := server.open(t, server.withHost(t, proxy.Addr()), table)
			ctx, cancel := context.WithCancel(t.Context())
			_, err = proxied.Transact(ctx, []store.Write{{Key: "k"}}, func(*sql.Tx) error {
				proxy.DropFrom("commit")
				time.AfterFunc(100*time.Millisecond, cancel)
				return nil
			})
			require.ErrorIs(t, err, store.ErrUnknownOutcome)
			began := time.Now()
			_, err = store.Put(t.Context(), direct, "k", []byte("1"), store.Always)
			require.NoError(t, err)
			t.Logf("locked for %v", time.Since(began))
		})
	}
}

package mysqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// hostTime is how long a connector waits for one of several servers, unless the
// dsn says otherwise.
const hostTime = 2 * time.Second

// connector opens connections to the first of the servers that takes writes.
type connector struct {
	config  *mysql.Config
	servers []string // addresses
}

func (c *connector) Driver() driver.Driver { return mysql.MySQLDriver{} }

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	if len(c.servers) == 1 {
		return c.connect(ctx, c.servers[0])
	}
	var failures error
	for _, server := range c.servers {
		conn, err := c.connectSoon(ctx, server)
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
		if err = fmt.Errorf("%s: %w", server, err); failures == nil {
			failures = err
		} else {
			failures = fmt.Errorf("%w; %w", failures, err)
		}
	}
	return nil, failures
}

// connectSoon is connect for a server beside which there are others: it does not
// wait long, and a server that is read-only is an error.
func (c *connector) connectSoon(ctx context.Context, server string) (driver.Conn, error) {
	limit := hostTime
	if c.config.Timeout > 0 {
		limit = c.config.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := c.connect(ctx, server)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("no connection within %v: %w", limit, err)
	}
	if err == nil && conn.readOnly {
		err = errors.Join(errReadOnly, conn.Close())
	}
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// errReadOnly may pass: the server may be the next primary.
var errReadOnly = errors.New("the server is read-only")

func (c *connector) connect(ctx context.Context, server string) (*conn, error) {
	config, opened := c.config.Clone(), &conn{}
	config.Addr = server
	if config.TLSConfig != "" {
		config.TLS = nil // made anew, with the name of this server
	}
	if config.Net == "tcp" || config.Net == "unix" { // others are registered with the driver
		config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			socket, err := new(net.Dialer).DialContext(ctx, network, address)
			opened.socket = socket
			return socket, err
		}
	}
	single, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	made, err := single.Connect(ctx)
	if err != nil {
		return nil, err
	}
	opened.driverConn = made.(driverConn)
	if err := opened.prepare(ctx); err != nil {
		_ = opened.Close()
		return nil, err
	}
	return opened, nil
}

// driverConn is what a connection of the driver has.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// conn is a connection whose transactions end with their contexts.
type conn struct {
	driverConn
	socket   net.Conn // nil if the driver has dialed
	readOnly bool     // the server was read-only when the connection was made
}

// prepare finds out what the server is, and sets the session up for it.
func (c *conn) prepare(ctx context.Context) error {
	variables, err := c.show(ctx, `show variables where variable_name in ('read_only', 'wsrep_on', 'idle_transaction_timeout')`)
	if err != nil {
		return err
	}
	c.readOnly = variables["read_only"] != "OFF"
	var set []string
	if variables["idle_transaction_timeout"] == "0" { // MariaDB has it
		set = append(set, "idle_transaction_timeout = "+idleSeconds)
	}
	if variables["wsrep_on"] == "ON" {
		// Otherwise a node reads what it has, and not what others have committed.
		set = append(set, "wsrep_sync_wait = @@wsrep_sync_wait | 7")
		status, err := c.show(ctx, "show status like 'wsrep_ready'")
		if err != nil {
			return err
		}
		if status["wsrep_ready"] != "ON" {
			return errors.New("the node is not ready: it has no cluster, or joins one")
		}
	}
	if len(set) > 0 {
		_, err = c.ExecContext(ctx, "set "+strings.Join(set, ", "), nil)
	}
	return err
}

// idleSeconds is the time after which a server ends a transaction in which no
// statement comes: its client may be gone, and its rows are locked.
const idleSeconds = "10"

// show returns the names and values that a statement shows.
func (c *conn) show(ctx context.Context, text string) (map[string]string, error) {
	rows, err := c.QueryContext(ctx, text, nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	shown := map[string]string{}
	for values := make([]driver.Value, len(rows.Columns())); ; {
		if err := rows.Next(values); err == io.EOF {
			return shown, nil
		} else if err != nil {
			return nil, err
		}
		shown[fmt.Sprintf("%s", values[0])] = fmt.Sprintf("%s", values[1])
	}
}

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.driverConn.BeginTx(ctx, opts)
	if err != nil || c.socket == nil {
		return tx, err
	}
	return transaction{tx, ctx, c.socket}, nil
}

// transaction is one whose end waits no longer than its context, which the
// methods of the driver's do not have.
type transaction struct {
	driver.Tx
	ctx    context.Context
	socket net.Conn
}

func (t transaction) Commit() error   { return t.end(t.Tx.Commit) }
func (t transaction) Rollback() error { return t.end(t.Tx.Rollback) }

func (t transaction) end(end func() error) error {
	stop := context.AfterFunc(t.ctx, func() { _ = t.socket.Close() })
	defer stop()
	return end()
}

// eachServer returns a URL for each server of a URL, in which they are separated
// by commas.
func eachServer(dsn string) (urls []string) {
	begin := len(scheme)
	end := len(dsn)
	if i := strings.IndexAny(dsn[begin:], "/?#"); i >= 0 {
		end = begin + i
	}
	begin += strings.LastIndexByte(dsn[begin:end], '@') + 1
	for server := range strings.SplitSeq(dsn[begin:end], ",") {
		urls = append(urls, dsn[:begin]+server+dsn[end:])
	}
	return urls
}

package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/agentstate/state/store"
)

// newMySQL opens a store in a table of a MariaDB or MySQL server.
func newMySQL(ctx context.Context, dsn, table string) (*Store, error) {
	config, err := mysqlConfig(dsn)
	var connector driver.Connector
	if err == nil {
		connector, err = mysql.NewConnector(config)
	}
	if err != nil {
		// The error may contain the dsn, which may contain a password.
		return nil, fmt.Errorf("%w: the dsn is not a URL of a MySQL server", store.ErrInvalid)
	}
	db := newPool(connector)
	server, err := inspectMySQL(ctx, db)
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	quoted := "`" + table + "`"
	// The second clause changes no column and therefore affects no row.
	statements := newStatements(quoted,
		"on duplicate key update v = values(v), rev = values(rev)",
		"on duplicate key update k = "+quoted+".k")
	s, err := newStore(ctx, db, dialect{
		statements: statements,
		name:       "mysql",
		durability: server.durability,
		maxValue:   server.maxValue,
		begin:      "start transaction",
		setup:      func(ctx context.Context, db *sql.DB) error { return setupMySQL(ctx, db, table) },
		refused:    mysqlRefused,
		// A deadlock, and a row that has changed since the snapshot.
		retryable: func(err error) bool { return hasMySQLNumber(err, 1213, 1020) },
		// A packet beyond max_allowed_packet, and a row too large for the log.
		tooLarge: func(err error) bool {
			return errors.Is(err, mysql.ErrPktTooLarge) || hasMySQLNumber(err, 1153, 1118)
		},
	})
	if err != nil {
		return nil, err
	}
	s.presence = noPresence{errGalera}
	if !server.galera {
		s.presence = newMySQLPresence(s.db, newSessions(connector), quoted)
	}
	return s, nil
}

// newMySQLPresence returns the presence of a table. The names of locks are
// shared by all databases of a server, and have up to 64 characters, without
// regard to case. A server may compare names of databases without case as well.
func newMySQLPresence(db, sessions *sql.DB, table string) presence {
	const lock = `sha2(concat(lower(database()), '/', ?), 256)`
	return &sessionPresence{
		db:       db,
		sessions: sessions,
		sessionStatements: sessionStatements{
			limit:   `set session wait_timeout = 20`,
			lock:    `select get_lock(` + lock + `, 0)`,
			unlock:  `do release_lock(` + lock + `)`,
			isTaken: `select is_used_lock(` + lock + `) is not null`,
			session: `select connection_id()`,
		},
		args: func(name string) []any { return []any{newNameHash(table, name).String()} },
	}
}

// mysqlConfig returns the configuration of a dsn, with the settings that the
// store needs. The dsn is mysql://user:password@host:port/database or in the
// format of the driver.
func mysqlConfig(dsn string) (*mysql.Config, error) {
	var config *mysql.Config
	var err error
	if strings.HasPrefix(dsn, "mysql://") {
		var u *url.URL
		if u, err = url.Parse(dsn); err != nil {
			return nil, err
		}
		if config, err = mysql.ParseDSN("/?" + u.RawQuery); err != nil {
			return nil, err
		}
		config.User = u.User.Username()
		config.Passwd, _ = u.User.Password()
		config.DBName = strings.TrimPrefix(u.Path, "/")
		if u.Host != "" {
			config.Addr = u.Host
		}
		if u.Host != "" && u.Port() == "" {
			config.Addr = strings.TrimSuffix(u.Host, ":") + ":3306"
		}
	} else if config, err = mysql.ParseDSN(dsn); err != nil {
		return nil, err
	}
	config.Logger = &mysql.NopLogger{}
	config.MaxAllowedPacket = 0      // ask the server
	config.ClientFoundRows = false   // IfAbsent needs the number of changed rows
	config.InterpolateParams = false // never build SQL from keys
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	config.Params["sql_mode"] = "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'"
	config.Params["autocommit"] = "1" // a server may turn it off for its clients
	return config, nil
}

// mysqlServer describes a server.
type mysqlServer struct {
	durability store.Durability // of an acknowledged commit
	maxValue   int              // maximum size of a value in bytes
	galera     bool             // part of a Galera cluster
}

// inspectMySQL fails on servers that cannot keep the guarantees of a store.
func inspectMySQL(ctx context.Context, db *sql.DB) (mysqlServer, error) {
	rows, err := db.QueryContext(ctx, `show variables where variable_name in ('innodb_flush_log_at_trx_commit',
		'innodb_flush_method', 'log_bin', 'sync_binlog', 'max_allowed_packet', 'read_only', 'tx_isolation', 'transaction_isolation',
		'wsrep_on')`)
	if err != nil {
		return mysqlServer{}, err
	}
	defer rows.Close()
	variables := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return mysqlServer{}, err
		}
		variables[name] = value
	}
	if err := rows.Err(); err != nil {
		return mysqlServer{}, err
	}
	if value := variables["read_only"]; value != "OFF" {
		return mysqlServer{}, fmt.Errorf("%w: the server is read-only", store.ErrInvalid)
	}
	if variables["tx_isolation"] == "READ-UNCOMMITTED" || variables["transaction_isolation"] == "READ-UNCOMMITTED" {
		return mysqlServer{}, fmt.Errorf("%w: the server lets transactions read uncommitted data", store.ErrInvalid)
	}
	packet, err := strconv.Atoi(variables["max_allowed_packet"])
	if err != nil {
		return mysqlServer{}, fmt.Errorf("%w: the server does not report max_allowed_packet", store.ErrInvalid)
	}
	server := mysqlServer{
		durability: store.DurabilityPower,
		maxValue:   packet - packet/16, // a packet holds the value and the rest of the row
		galera:     variables["wsrep_on"] == "ON",
	}
	// With a binary log, a crash rolls back the transactions that the log has
	// lost.
	if variables["innodb_flush_log_at_trx_commit"] != "1" || variables["innodb_flush_method"] == "nosync" ||
		variables["log_bin"] != "OFF" && variables["sync_binlog"] != "1" {
		server.durability = store.DurabilityServer
	}
	return server, nil
}

// setupMySQL creates the table, or fails if a table of that name has other
// columns. It looks first, because creating a table needs a privilege even if
// the table exists.
func setupMySQL(ctx context.Context, db *sql.DB, table string) error {
	const (
		columns = `select t.engine, group_concat(c.column_name, ' ', c.data_type order by c.column_name separator ', ')
			from information_schema.tables t join information_schema.columns c using (table_schema, table_name)
			where t.table_schema = database() and t.table_name = ? group by t.engine`
		create = "create table if not exists `%s` (k varbinary(%d) primary key, v longblob not null, rev varbinary(64) not null)" +
			" engine = innodb row_format = dynamic"
	)
	for {
		var engine, found string
		err := db.QueryRowContext(ctx, columns, table).Scan(&engine, &found)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return err
		case found != "k varbinary, rev varbinary, v longblob":
			return fmt.Errorf("%w: a table of this name has other columns: %s", store.ErrInvalid, found)
		case !strings.EqualFold(engine, "innodb"):
			return fmt.Errorf("%w: the table has the engine %s, not InnoDB", store.ErrInvalid, engine)
		default:
			return nil
		}
		if _, err := db.ExecContext(ctx, fmt.Sprintf(create, table, store.MaxKey)); err != nil {
			return err
		}
	}
}

// mysqlRefused reports whether err means that a statement was not made. Every
// answer of the server means this, except those about the end of the server or
// of the connection, and about a commit that failed.
func mysqlRefused(err error) bool {
	var answer *mysql.MySQLError
	if !errors.As(err, &answer) {
		return errors.Is(err, mysql.ErrPktTooLarge)
	}
	return !hasMySQLNumber(err,
		1053,             // server shuts down
		1077, 1079, 1152, // server or connection ended
		1158, 1159, 1160, 1161, // connection broke or timed out
		1180, 1181, 1402, // commit or rollback failed
		1317, 1927, 4031, // interrupted, killed, timed out
	)
}

// hasMySQLNumber reports whether err is an answer of the server with one of the
// numbers.
func hasMySQLNumber(err error, numbers ...uint16) bool {
	var answer *mysql.MySQLError
	return errors.As(err, &answer) && slices.Contains(numbers, answer.Number)
}

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state/store"
	"github.com/go-sql-driver/mysql"
)

// newMySQL opens a store in a table of a MariaDB or MySQL server.
func newMySQL(ctx context.Context, dsn, table string) (*Store, error) {
	config, err := mysqlConfig(dsn)
	if err != nil {
		// The error could have the dsn in it, and so the password.
		return nil, fmt.Errorf("%w: the dsn is no URL of a MySQL server", store.ErrInvalid)
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("%w: the dsn is no URL of a MySQL server", store.ErrInvalid)
	}
	db := pool(connector)
	durability, maxValue, err := inspectMySQL(ctx, db)
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	t := "`" + table + "`"
	return newStore(ctx, db, dialect{
		name:       "mysql",
		durability: durability,
		maxValue:   maxValue,

		get:      `select v, rev from ` + t + ` where k = ?`,
		scan:     `select k, v, rev from ` + t + ` where k >= ? and k < ? order by k limit ?`,
		upsert:   `insert into ` + t + ` (k, v, rev) values (?, ?, ?) on duplicate key update v = values(v), rev = values(rev)`,
		insert:   `insert into ` + t + ` (k, v, rev) values (?, ?, ?) on duplicate key update k = ` + t + `.k`, // which changes nothing and so affects no row
		update:   `update ` + t + ` set v = ?, rev = ? where k = ? and rev = ?`,
		remove:   `delete from ` + t + ` where k = ?`,
		removeIf: `delete from ` + t + ` where k = ? and rev = ?`,
		begin:    `start transaction`,

		setup:   func(ctx context.Context, db *sql.DB) error { return setupMySQL(ctx, db, table) },
		refused: mysqlRefused,
		// A deadlock, and a row that changed after a snapshot.
		again: func(err error) bool { return mysqlNumber(err, 1213, 1020) },
		// A packet beyond max_allowed_packet, and a row too large for the log.
		tooLarge: func(err error) bool { return errors.Is(err, mysql.ErrPktTooLarge) || mysqlNumber(err, 1153, 1118) },
	})
}

// mysqlConfig returns the configuration of a URL, mysql://user:password@host:port/database,
// or of what the driver takes itself, with the settings that the store needs.
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
	config.MaxAllowedPacket = 0      // what the server says
	config.ClientFoundRows = false   // the insert counts on it
	config.InterpolateParams = false // no SQL is built from keys
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	config.Params["sql_mode"] = "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'"
	config.Params["autocommit"] = "1" // which a server may turn off for its clients
	return config, nil
}

// inspectMySQL returns what an acknowledged commit has survived, and how large a
// value may be. It refuses servers on which the store could not keep its word.
func inspectMySQL(ctx context.Context, db *sql.DB) (store.Durability, int, error) {
	rows, err := db.QueryContext(ctx, `show variables where variable_name in ('innodb_flush_log_at_trx_commit',
		'innodb_flush_method', 'log_bin', 'sync_binlog', 'max_allowed_packet', 'read_only', 'tx_isolation', 'transaction_isolation')`)
	if err != nil {
		return 0, 0, err
	}
	defer rows.Close()
	variables := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return 0, 0, err
		}
		variables[name] = value
	}
	if err := rows.Err(); err != nil {
		return 0, 0, err
	}
	if value := variables["read_only"]; value != "OFF" {
		return 0, 0, fmt.Errorf("%w: the server is read-only", store.ErrInvalid)
	}
	if variables["tx_isolation"] == "READ-UNCOMMITTED" || variables["transaction_isolation"] == "READ-UNCOMMITTED" {
		return 0, 0, fmt.Errorf("%w: the server lets transactions read what is not committed", store.ErrInvalid)
	}
	packet, err := strconv.Atoi(variables["max_allowed_packet"])
	if err != nil {
		return 0, 0, fmt.Errorf("%w: the server does not tell max_allowed_packet", store.ErrInvalid)
	}
	durability := store.DurabilityPower
	// With a binary log, what that has lost is rolled back after a crash.
	if variables["innodb_flush_log_at_trx_commit"] != "1" || variables["innodb_flush_method"] == "nosync" ||
		variables["log_bin"] != "OFF" && variables["sync_binlog"] != "1" {
		durability = store.DurabilityServer
	}
	return durability, packet - packet/16, nil // a row and its key fit in a packet
}

// setupMySQL makes the table, or refuses one that is there but not ours. It looks
// first, because that needs no right to make tables.
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
			return fmt.Errorf("%w: the table is another one: %s", store.ErrInvalid, found)
		case !strings.EqualFold(engine, "innodb"):
			return fmt.Errorf("%w: the table is in the engine %s, which has no transactions", store.ErrInvalid, engine)
		default:
			return nil
		}
		if _, err := db.ExecContext(ctx, fmt.Sprintf(create, table, store.MaxKey)); err != nil {
			return err
		}
	}
}

// mysqlRefused reports whether err says that a statement was not made. An answer
// of the server says so, but for those that it gives when it or the connection
// ends, and when the commit itself went wrong.
func mysqlRefused(err error) bool {
	var answer *mysql.MySQLError
	if !errors.As(err, &answer) {
		return errors.Is(err, mysql.ErrPktTooLarge)
	}
	return !mysqlNumber(err,
		1053,             // the server shuts down
		1077, 1079, 1152, // the server or the connection ended
		1158, 1159, 1160, 1161, // the connection broke or timed out
		1180, 1181, 1402, // commit or rollback failed
		1317, 1927, 4031, // interrupted, killed, timed out
	)
}

// mysqlNumber reports whether err is an answer of the server with one of the
// numbers.
func mysqlNumber(err error, numbers ...uint16) bool {
	var answer *mysql.MySQLError
	return errors.As(err, &answer) && slices.Contains(numbers, answer.Number)
}

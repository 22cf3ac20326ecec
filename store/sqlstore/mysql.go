package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state/store"
)

// MySQL is the dialect of MariaDB and MySQL. The function returns the number
// of an error with which the server has answered, and 0 for all other errors;
// package mysqlstore has one for github.com/go-sql-driver/mysql. The connections of
// the pool must have autocommit and a strict sql_mode, which are the server's
// defaults.
func MySQL(number func(error) uint16) Dialect {
	return Dialect{"mysql", func(ctx context.Context, db *sql.DB, o Options) (*database, error) {
		if number == nil {
			return nil, fmt.Errorf("%w: the function for the numbers of errors is nil", store.ErrInvalid)
		}
		return inspectMySQL(ctx, db, o, func(err error) string {
			if n := number(err); n != 0 {
				return strconv.Itoa(int(n))
			}
			return ""
		})
	}}
}

func inspectMySQL(ctx context.Context, db *sql.DB, o Options, code func(error) string) (*database, error) {
	server, err := readMySQLVariables(ctx, db)
	if err != nil {
		return nil, err
	}
	if err := setupMySQL(ctx, db, o.Table, o.Existing); err != nil {
		return nil, err
	}
	quoted := "`" + o.Table + "`"
	base := &database{
		// An insert of a key that exists fails, instead of affecting no row:
		// the setting clientFoundRows of a driver changes what it counts.
		statements: newStatements(quoted, "on duplicate key update v = values(v), rev = values(rev)", ""),
		durability: server.durability,
		maxValue:   server.maxValue,
		begin:      "start transaction",
		prepares:   true,
		code:       code,
		refuses:    func(code string) bool { return code != "" && !slices.Contains(unknownMySQL, code) },
		answers: answers{
			retryable: []string{"1213", "1020"}, // a deadlock, a row that has changed since the snapshot
			// A server that is read-only is not meant: it may be one that a failover
			// has replaced.
			lasting: []string{
				"1044", "1045", "1698", "1142", "1143", "1227", // wrong user or password, no permission
				"1049", "1054", "1146", // no such database, column, table
			},
			tooLarge:     []string{"1153", "1118"}, // a packet beyond max_allowed_packet, a row too large for the log
			exists:       []string{"1062"},
			batchRefused: []string{"1062", refusedMariaDB},
		},
	}
	base.getInTx = base.get + " for update"
	if server.mariadb {
		base.batch = base.batchMariaDB
	}
	base.writer = &serverWriter{database: base, db: db}
	return base, nil
}

// mysqlServer describes a server.
type mysqlServer struct {
	durability store.Durability // of an acknowledged commit
	maxValue   int              // maximum size of a value in bytes
	mariadb    bool
}

// readMySQLVariables fails on servers that cannot keep the guarantees of a store.
func readMySQLVariables(ctx context.Context, db *sql.DB) (mysqlServer, error) {
	rows, err := db.QueryContext(ctx, `show variables where variable_name in ('innodb_flush_log_at_trx_commit',
		'innodb_flush_method', 'log_bin', 'sync_binlog', 'max_allowed_packet', 'read_only', 'tx_isolation', 'transaction_isolation',
		'sql_mode', 'autocommit', 'version', 'wsrep_on', 'wsrep_sync_wait', 'rpl_semi_sync_master_enabled', 'rpl_semi_sync_master_timeout',
		'rpl_semi_sync_master_wait_point', 'rpl_semi_sync_source_enabled', 'rpl_semi_sync_source_timeout',
		'rpl_semi_sync_source_wait_point')`)
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
	strict := false
	if value := variables["read_only"]; value != "OFF" {
		return mysqlServer{}, fmt.Errorf("%w: the server is read-only: the pool must connect to the primary",
			store.ErrInvalid)
	}
	for _, mode := range []string{"STRICT_ALL_TABLES", "STRICT_TRANS_TABLES", "TRADITIONAL"} {
		strict = strict || slices.Contains(strings.Split(variables["sql_mode"], ","), mode)
	}
	switch {
	case !strict:
		return mysqlServer{}, fmt.Errorf("%w: the sql_mode of the pool's connections is not strict: it lets the server cut values", store.ErrInvalid)
	case variables["autocommit"] != "ON":
		return mysqlServer{}, fmt.Errorf("%w: autocommit is off in the pool's connections", store.ErrInvalid)
	}
	if variables["tx_isolation"] == "READ-UNCOMMITTED" || variables["transaction_isolation"] == "READ-UNCOMMITTED" {
		return mysqlServer{}, fmt.Errorf("%w: the server lets transactions read uncommitted data", store.ErrInvalid)
	}
	galera := variables["wsrep_on"] == "ON"
	if wait, err := strconv.Atoi(variables["wsrep_sync_wait"]); galera && (err != nil || wait&syncWait != syncWait) {
		return mysqlServer{}, fmt.Errorf("%w: the server is a node of a Galera cluster, and reads of the pool's connections may be stale:"+
			" they need wsrep_sync_wait=%d, for example in the dsn", store.ErrInvalid, syncWait)
	}
	packet, err := strconv.Atoi(variables["max_allowed_packet"])
	if err != nil {
		return mysqlServer{}, fmt.Errorf("%w: the server does not report max_allowed_packet", store.ErrInvalid)
	}
	server := mysqlServer{
		maxValue: packet - packet/16, // a packet holds the value and the rest of the row
		mariadb:  strings.Contains(variables["version"], "MariaDB"),
	}
	server.durability = mysqlDurability(variables)
	return server, nil
}

// mysqlDurability returns the durability of an acknowledged commit.
func mysqlDurability(variables map[string]string) store.Durability {
	switch {
	// With a binary log, a crash rolls back the transactions that the log has
	// lost.
	case variables["innodb_flush_log_at_trx_commit"] != "1", variables["innodb_flush_method"] == "nosync",
		variables["log_bin"] != "OFF" && variables["sync_binlog"] != "1":
		return store.DurabilityServer
	case variables["wsrep_on"] == "ON", waitsForReplica(variables):
		return store.DurabilityFailover
	}
	return store.DurabilityPower
}

// syncWait is what the sessions on a node of a Galera cluster must have of
// wsrep_sync_wait: reads (1), updates and deletes (2) and inserts (4) wait for
// what other nodes have committed before.
const syncWait = 7

// waitsForReplica reports whether a commit is seen and acknowledged only when a
// replica has it, however long that takes.
func waitsForReplica(variables map[string]string) bool {
	for _, kind := range []string{"master", "source"} { // MariaDB, MySQL
		of := func(name string) string { return variables["rpl_semi_sync_"+kind+"_"+name] }
		milliseconds, err := strconv.ParseUint(of("timeout"), 10, 64)
		if err == nil && of("enabled") == "ON" && of("wait_point") == "AFTER_SYNC" && milliseconds >= endlessTimeout {
			return true
		}
	}
	return false
}

// endlessTimeout is a day in milliseconds: who waits longer than that for a
// replica has noticed that it is away.
const endlessTimeout = 24 * 60 * 60 * 1000

// setupMySQL creates the table, or fails if a table of that name has other
// columns. It looks first, because creating a table needs a privilege even if
// the table exists.
func setupMySQL(ctx context.Context, db *sql.DB, table string, existing bool) error {
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
		case errors.Is(err, sql.ErrNoRows) && existing:
			return errNoTable(table)
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

// unknownMySQL are the answers after which a statement may have been made: those
// about the end of the server or of the connection, and about a commit that
// failed.
var unknownMySQL = []string{
	"1053",                 // server shuts down
	"1077", "1079", "1152", // server or connection ended
	"1158", "1159", "1160", "1161", // connection broke or timed out
	"1180", "1181", "1402", // commit or rollback failed
	"1317", "1927", "4031", // interrupted, killed, timed out
}

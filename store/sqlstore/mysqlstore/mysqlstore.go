// Package mysqlstore opens stores on MariaDB and MySQL servers with the driver
// github.com/go-sql-driver/mysql.
package mysqlstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlstore"
	"github.com/agentstate/state/store/sqlstore/internal/pool"
)

// Open opens a store on a server. The dsn is a URL such as
// "mysql://user:password@host:port/database", or has the format of the driver.
// A URL may name several servers, as in "mysql://user@host1,host2:3307/database":
// each connection is one to the first that can be reached and is not read-only.
// The store waits for each of them for 2 seconds, or for the timeout of the dsn.
// Options may be nil. The character set of the connections is utf8mb4: a dsn
// that names one other than UTF-8 is an error. [sqlstore.Store.Close] closes the
// connections.
func Open(ctx context.Context, dsn string, opts *sqlstore.Options) (*sqlstore.Store, error) {
	c, err := parse(dsn)
	if err == nil {
		return pool.OpenStore(ctx, c, Dialect(), opts)
	}
	// The error of the driver may contain the dsn, which may contain a password.
	if !errors.Is(err, store.ErrInvalid) {
		err = fmt.Errorf("%w: the dsn is not a URL of a MySQL server", store.ErrInvalid)
	}
	return nil, &store.Error{Store: "mysql", Op: "open", Err: err}
}

// Dialect is [sqlstore.MySQL] for the driver of this package. Use it to open a
// store on a pool of the program's own.
func Dialect() sqlstore.Dialect { return sqlstore.MySQL(errorNumber) }

func errorNumber(err error) uint16 {
	if errors.Is(err, mysql.ErrPktTooLarge) {
		return 1153 // the server would have said so
	}
	var answer *mysql.MySQLError
	if errors.As(err, &answer) {
		return answer.Number
	}
	return 0
}

const scheme = "mysql://"

// parse returns the connector of a dsn, with the settings that the store needs.
// The dsn is mysql://user:password@host:port,host:port/database or in the format
// of the driver.
func parse(dsn string) (*connector, error) {
	var config *mysql.Config
	var servers []string
	var err error
	if strings.HasPrefix(dsn, scheme) {
		for _, single := range eachServer(dsn) {
			u, err := url.Parse(single)
			if err != nil {
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
			servers = append(servers, config.Addr)
		}
	} else if config, err = mysql.ParseDSN(dsn); err != nil {
		return nil, err
	} else {
		servers = []string{config.Addr}
	}
	if err := checkCharset(dsn, config); err != nil {
		return nil, err
	}
	config.Logger = &mysql.NopLogger{}
	config.MaxAllowedPacket = 0 // ask the server
	// With the values in its text, a statement takes one round trip, otherwise
	// one more to prepare it. The driver escapes them by the server's mode.
	config.InterpolateParams = true
	config.MultiStatements = false
	// A connection to a server that has become read-only is given up for one to
	// the server that has replaced it.
	config.RejectReadOnly = true
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	config.Params["sql_mode"] = "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'"
	config.Params["autocommit"] = "1" // a server may turn it off for its clients
	// A server may set another one for its clients, too.
	config.Params["character_set_client"] = "utf8mb4"
	config.Params["character_set_connection"] = "utf8mb4"
	if _, err := mysql.NewConnector(config); err != nil { // of all servers alike
		return nil, err
	}
	return &connector{config, servers}, nil
}

// checkCharset returns an error that names the parameter of a dsn with a
// character set other than UTF-8. In some, such as GBK, the second byte of a
// character may be a backslash or a quote, which the driver would not escape as
// the server reads it.
func checkCharset(dsn string, config *mysql.Config) error {
	refuse := func(parameter string) error {
		return fmt.Errorf("%w: the parameter %s of the dsn: the character set must be utf8mb4", store.ErrInvalid, parameter)
	}
	// The configuration does not tell the parameter charset.
	_, query, _ := strings.Cut(dsn[strings.LastIndexByte(dsn, '/')+1:], "?")
	for parameter := range strings.SplitSeq(query, "&") {
		sets, found := strings.CutPrefix(parameter, "charset=")
		for set := range strings.SplitSeq(sets, ",") {
			if found && !slices.Contains([]string{"utf8mb4", "utf8mb3", "utf8"}, strings.ToLower(set)) {
				return refuse("charset")
			}
		}
	}
	if config.Collation != "" && !strings.HasPrefix(config.Collation, "utf8") {
		return refuse("collation")
	}
	// The driver joins all others to one statement: a name may have a scope, and
	// a value may set a further variable.
	for name, value := range config.Params {
		if strings.EqualFold(name, "names") || strings.EqualFold(name, "charset") {
			return refuse(strings.ToLower(name))
		}
		for _, variable := range []string{"character_set_client", "character_set_connection", "collation_connection"} {
			if strings.Contains(strings.ToLower(name+value), variable) {
				return refuse(variable)
			}
		}
	}
	return nil
}

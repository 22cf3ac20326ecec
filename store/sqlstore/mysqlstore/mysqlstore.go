// Package mysqlstore opens stores on MariaDB and MySQL servers with the driver
// github.com/go-sql-driver/mysql.
package mysqlstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlstore"
	"github.com/agentstate/state/store/sqlstore/internal/pool"
)

// Open opens a store on a server. The dsn is a URL such as
// "mysql://user:password@host:port/database", or has the format of the driver.
// Options may be nil. [sqlstore.Store.Close] closes the connections.
func Open(ctx context.Context, dsn string, opts *sqlstore.Options) (*sqlstore.Store, error) {
	config, err := parse(dsn)
	if err == nil {
		c, err := mysql.NewConnector(config)
		if err == nil {
			return pool.OpenStore(ctx, c, Dialect(), opts)
		}
	}
	// The error of the driver may contain the dsn, which may contain a password.
	err = fmt.Errorf("%w: the dsn is not a URL of a MySQL server", store.ErrInvalid)
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

// parse returns the configuration of a dsn, with the settings that the
// store needs. The dsn is mysql://user:password@host:port/database or in the
// format of the driver.
func parse(dsn string) (*mysql.Config, error) {
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
	config.InterpolateParams = false // never build SQL from keys
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	config.Params["sql_mode"] = "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'"
	config.Params["autocommit"] = "1" // a server may turn it off for its clients
	return config, nil
}

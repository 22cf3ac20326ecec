package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"regexp"
	"strconv"
)

// A meter reads how many bytes an engine has written since it was started: on
// SQLite what this process has written, on PostgreSQL the write-ahead log, on
// MariaDB the redo log, on Redis the append-only file, if it has one. The
// servers count what all of their clients wrote.
type meter struct {
	read  func(ctx context.Context) (int64, error)
	close func() error
}

var errNotMeasured = errors.New("the engine does not tell what it writes")

func newMeter(s site) (meter, error) {
	switch s.engine {
	case "sqlite":
		return meter{processBytes, func() error { return nil }}, nil
	case "postgres":
		return sqlMeter(s, "select 'wal', (pg_current_wal_lsn() - '0/0')::bigint")
	case "mysql":
		return sqlMeter(s, "show global status like 'Innodb_os_log_written'")
	case "redis":
		return redisMeter(s)
	default:
		return meter{
			func(context.Context) (int64, error) { return 0, errNotMeasured },
			func() error { return nil },
		}, nil
	}
}

func sqlMeter(s site, query string) (meter, error) {
	db, err := s.sql()
	if err != nil {
		return meter{}, err
	}
	return meter{func(ctx context.Context) (bytes int64, err error) {
		var name sql.NullString
		err = db.QueryRowContext(ctx, query).Scan(&name, &bytes)
		return bytes, err
	}, db.Close}, nil
}

var fileSize = regexp.MustCompile(`(?m)^aof_current_size:(\d+)`)

func redisMeter(s site) (meter, error) {
	c, err := s.redis()
	if err != nil {
		return meter{}, err
	}
	return meter{func(ctx context.Context) (int64, error) {
		info, err := c.Info(ctx, "persistence").Result()
		if err != nil {
			return 0, err
		}
		size := fileSize.FindStringSubmatch(info)
		if size == nil {
			return 0, errNotMeasured
		}
		return strconv.ParseInt(size[1], 10, 64)
	}, c.Close}, nil
}

var written = regexp.MustCompile(`(?m)^wchar: (\d+)$`)

// processBytes returns what this process has written to files. On SQLite no
// contender writes anything but its file; other systems than Linux do not tell.
func processBytes(context.Context) (int64, error) {
	data, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0, errNotMeasured
	}
	bytes := written.FindSubmatch(data)
	if bytes == nil {
		return 0, errNotMeasured
	}
	return strconv.ParseInt(string(bytes[1]), 10, 64)
}

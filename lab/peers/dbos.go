package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite" // lets DBOS use SQLite
	"github.com/jackc/pgx/v5/pgxpool"
)

// dbosPoll is the interval at which the queue is polled. At shorter ones polling
// takes the time from handling.
const dbosPoll = 5 * time.Millisecond

// durable handles each message in a workflow of DBOS. The conversation is in
// tables of the same database, and changes in the transaction that records the
// step of the workflow.
type durable struct {
	dialect
	waiters
	db     *sql.DB
	pool   *pgxpool.Pool
	dbos   dbos.Context
	source *dbos.DataSource
	queue  dbos.Queue
	answer model
}

func openDBOS(queued bool) func(ctx context.Context, s site, answer model) (handler, error) {
	return func(ctx context.Context, s site, answer model) (handler, error) {
		d := &durable{dialect: dialects[s.engine], answer: answer}
		if err := d.open(ctx, s, queued); err != nil {
			return nil, errors.Join(fmt.Errorf("peers: open DBOS: %w", err), d.close())
		}
		return d, nil
	}
}

func (d *durable) open(ctx context.Context, s site, queued bool) (err error) {
	if d.db, err = s.sql(); err != nil {
		return err
	}
	if err := d.createTables(ctx, d.db); err != nil {
		return err
	}
	config := dbos.Config{AppName: "peers", Logger: slog.New(slog.DiscardHandler)}
	if s.engine == "sqlite" {
		config.SQLiteSystemDB = d.db
	} else {
		if d.pool, err = newPgxPool(ctx, s); err != nil {
			return err
		}
		config.SystemDBPool = d.pool
	}
	if d.dbos, err = dbos.NewContext(context.WithoutCancel(ctx), config); err != nil {
		return err
	}
	if s.engine == "sqlite" {
		d.source, err = dbos.NewDataSource(d.dbos, d.db)
	} else {
		d.source, err = dbos.NewDataSource(d.dbos, d.pool)
	}
	if err != nil {
		return err
	}
	dbos.RegisterWorkflow(d.dbos, d.workflow, dbos.WithWorkflowName("handle"))
	if queued {
		if d.queue, err = dbos.RegisterQueue(d.dbos, "users", dbos.WithPartitionQueue(),
			dbos.WithGlobalConcurrency(1), dbos.WithQueueBasePollingInterval(dbosPoll)); err != nil {
			return err
		}
	}
	return dbos.Launch(d.dbos)
}

func newPgxPool(ctx context.Context, s site) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(s.database().String())
	if err != nil {
		return nil, errors.New("the address is not that of a database") // the cause has the password
	}
	config.MaxConns = conns
	return pgxpool.NewWithConfig(ctx, config)
}

// A request is the input of a workflow.
type request struct{ User, ID, Text string }

func (r request) message() message { return message{r.User, r.ID, r.Text} }

func (d *durable) workflow(ctx dbos.Context, r request) (string, error) {
	reply, err := dbos.RunAsTransaction(ctx, d.source, func(ctx context.Context, t dbos.Tx) (string, error) {
		return d.dialect.handle(ctx, dbosTx{t}, r.message(), d.answer)
	})
	if err == nil {
		d.waiters.answer(r.message(), reply)
	}
	return reply, err
}

// handle starts or queues the workflow of a message. The caller of the queue is
// answered in this process: the handle of a queued workflow polls. A message that
// was handled before is not handled again, so that nothing in this process would
// answer it.
func (d *durable) handle(ctx context.Context, m message) (string, error) {
	options := []dbos.WorkflowOption{dbos.WithWorkflowID(m.user + "/" + m.id)}
	if d.queue != nil {
		options = append(options, dbos.WithQueue(d.queue), dbos.WithQueuePartitionKey(m.user))
	}
	wait := d.expect(m)
	started, err := dbos.RunWorkflow(d.dbos, d.workflow, request{m.user, m.id, m.text}, options...)
	if err != nil || d.queue == nil {
		return resultOf(started, err)
	}
	soon, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if reply, err := wait(soon); err == nil {
		return reply, nil
	}
	return started.GetResult()
}

func resultOf(started dbos.WorkflowHandle[string], err error) (string, error) {
	if err != nil {
		return "", err
	}
	return started.GetResult()
}

func (d *durable) texts(ctx context.Context, user string) ([]string, error) {
	return d.storedTexts(ctx, d.db, user)
}

func (d *durable) close() (err error) {
	if d.dbos != nil {
		err = dbos.Shutdown(d.dbos, 30*time.Second)
	}
	if d.pool != nil {
		d.pool.Close()
	}
	return errors.Join(err, d.db.Close())
}

type dbosTx struct{ tx dbos.Tx }

func (t dbosTx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	result, err := t.tx.Exec(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (t dbosTx) each(ctx context.Context, row func(scan func(...any) error) error, query string, args ...any) error {
	rows, err := t.tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	return eachRow(rows, row)
}

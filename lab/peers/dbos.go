package main

import (
	"context"
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
	tables
	waiters
	pool   *pgxpool.Pool
	dbos   dbos.Context
	source *dbos.DataSource
	queue  dbos.Queue
	answer model
}

func openDBOS(ctx context.Context, s site, answer model) (handler, error) {
	d := &durable{answer: answer}
	if err := d.open(ctx, s); err != nil {
		return nil, errors.Join(fmt.Errorf("peers: open DBOS: %w", err), d.close())
	}
	return d, nil
}

func (d *durable) open(ctx context.Context, s site) (err error) {
	if d.tables, err = openTables(ctx, s); err != nil {
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
	if d.queue, err = dbos.RegisterQueue(d.dbos, "users", dbos.WithPartitionConcurrency(1),
		dbos.WithGlobalConcurrency(1), dbos.WithQueueBasePollingInterval(dbosPoll)); err != nil {
		return err
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

func (d *durable) workflow(ctx dbos.Context, m message) (string, error) {
	reply, err := dbos.RunAsTransaction(ctx, d.source, func(ctx context.Context, t dbos.Tx) (string, error) {
		return d.dialect.handle(ctx, dbosTx{t}, m, d.answer)
	})
	if err == nil {
		d.waiters.answer(m, reply)
	}
	return reply, err
}

// handle queues the workflow of a message. The caller is answered in this
// process: the handle of a queued workflow polls. A message that was handled
// before is not handled again, so that nothing in this process would answer it.
func (d *durable) handle(ctx context.Context, m message) (string, error) {
	wait := d.expect(m)
	started, err := dbos.RunWorkflow(d.dbos, d.workflow, m,
		dbos.WithWorkflowID(m.User+"/"+m.ID), dbos.WithQueue(d.queue), dbos.WithQueuePartitionKey(m.User))
	if err != nil {
		return "", err
	}
	soon, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if reply, err := wait(soon); err == nil {
		return reply, nil
	}
	return started.GetResult()
}

func (d *durable) close() (err error) {
	if d.dbos != nil {
		err = dbos.Shutdown(d.dbos, 30*time.Second)
	}
	if d.pool != nil {
		d.pool.Close()
	}
	return errors.Join(err, d.tables.close())
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

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// jobs handles each message in a job of River, which is unique by user and id.
// The conversation changes in the transaction that completes the job. River
// runs the jobs of a user in any order; a lock of the user's row keeps them
// apart.
type jobs struct {
	tables
	waiters
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
	answer model
}

// Kind makes a message the input of a job.
func (message) Kind() string { return "handle" }

func openRiver(ctx context.Context, s site, answer model) (handler, error) {
	j := &jobs{answer: answer}
	if err := j.open(ctx, s); err != nil {
		return nil, errors.Join(fmt.Errorf("peers: open River: %w", err), j.close())
	}
	return j, nil
}

func (j *jobs) open(ctx context.Context, s site) (err error) {
	if j.tables, err = openTables(ctx, s); err != nil {
		return err
	}
	config := &river.Config{
		Logger:  slog.New(slog.DiscardHandler),
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}},
		Workers: river.NewWorkers(),
		// The shortest that River accepts.
		FetchCooldown: time.Millisecond, FetchPollInterval: time.Millisecond,
	}
	river.AddWorker(config.Workers, river.WorkFunc(j.work))
	if j.pool, err = newPgxPool(ctx, s); err != nil {
		return err
	}
	driver := riverpgxv5.New(j.pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: config.Logger})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	client, err := river.NewClient(driver, config)
	if err != nil {
		return err
	}
	j.client = client
	return client.Start(context.WithoutCancel(ctx))
}

func (j *jobs) work(ctx context.Context, work *river.Job[message]) error {
	t, err := j.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = t.Rollback(context.WithoutCancel(ctx)) }() // none after the commit
	reply, err := j.dialect.handle(ctx, pgxTx{t}, work.Args, j.answer)
	if err != nil {
		return err
	}
	if _, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, t, work); err != nil {
		return err
	}
	if err := t.Commit(ctx); err != nil {
		return err
	}
	j.waiters.answer(work.Args, reply)
	return nil
}

func (j *jobs) handle(ctx context.Context, m message) (string, error) {
	wait := j.expect(m)
	inserted, err := j.client.Insert(ctx, m, &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}})
	if err != nil {
		return "", err
	}
	if inserted.UniqueSkippedAsDuplicate {
		return "", nil // River does not keep what the first job returned
	}
	return wait(ctx)
}

func (j *jobs) close() (err error) {
	if j.client != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		err = j.client.Stop(ctx)
	}
	if j.pool != nil {
		j.pool.Close()
	}
	return errors.Join(err, j.tables.close())
}

type pgxTx struct{ tx pgx.Tx }

func (t pgxTx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	tag, err := t.tx.Exec(ctx, query, args...)
	return tag.RowsAffected(), err
}

func (t pgxTx) each(ctx context.Context, row func(scan func(...any) error) error, query string, args ...any) error {
	rows, err := t.tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	return eachRow(rows, row)
}

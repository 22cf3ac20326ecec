package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
)

// jobs handles each message in a job of River, which is unique by user and id.
// The conversation changes in the transaction that completes the job. River
// runs the jobs of a user in any order; a lock of the user's row keeps them
// apart.
type jobs struct {
	dialect
	waiters
	db     *sql.DB
	pool   *pgxpool.Pool // on PostgreSQL
	client riverClient
	answer model
}

// A riverClient is a client of River on any driver.
type riverClient interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	Insert(ctx context.Context, args river.JobArgs, opts *river.InsertOpts) (*rivertype.JobInsertResult, error)
}

// A job is the input of River's worker.
type job struct {
	User string `json:"user" river:"unique"`
	ID   string `json:"id" river:"unique"`
	Text string `json:"text"`
}

func (job) Kind() string { return "handle" }

func openRiver(tuned bool) func(ctx context.Context, s site, answer model) (handler, error) {
	return func(ctx context.Context, s site, answer model) (handler, error) {
		j := &jobs{dialect: dialects[s.engine], answer: answer}
		if err := j.open(ctx, s, tuned); err != nil {
			return nil, errors.Join(fmt.Errorf("peers: open River: %w", err), j.close())
		}
		return j, nil
	}
}

func (j *jobs) open(ctx context.Context, s site, tuned bool) (err error) {
	if j.db, err = s.sql(); err != nil {
		return err
	}
	if err := j.createTables(ctx, j.db); err != nil {
		return err
	}
	config := &river.Config{
		Logger:  slog.New(slog.DiscardHandler),
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}},
		Workers: river.NewWorkers(),
	}
	if tuned { // the shortest that River accepts
		config.FetchCooldown, config.FetchPollInterval = time.Millisecond, time.Millisecond
	}
	if s.engine == "sqlite" {
		river.AddWorker(config.Workers, river.WorkFunc(j.workSQLite))
		j.client, err = newRiver(ctx, riversqlite.New(j.db), config)
	} else if j.pool, err = newPgxPool(ctx, s); err == nil {
		river.AddWorker(config.Workers, river.WorkFunc(j.workPostgres))
		j.client, err = newRiver(ctx, riverpgxv5.New(j.pool), config)
	}
	if err != nil {
		return err
	}
	return j.client.Start(context.WithoutCancel(ctx))
}

// newRiver returns a client, after the tables of River have been created.
func newRiver[T any](ctx context.Context, driver riverdriver.Driver[T], config *river.Config) (riverClient, error) {
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: config.Logger})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	return river.NewClient(driver, config)
}

func (j *jobs) workSQLite(ctx context.Context, work *river.Job[job]) error {
	var reply string
	m := message{work.Args.User, work.Args.ID, work.Args.Text}
	err := inTx(ctx, j.db, func(t tx) (err error) {
		if reply, err = j.dialect.handle(ctx, t, m, j.answer); err != nil {
			return err
		}
		_, err = river.JobCompleteTx[*riversqlite.Driver](ctx, t.(sqlTx).querier.(*sql.Tx), work)
		return err
	})
	if err == nil {
		j.waiters.answer(m, reply)
	}
	return err
}

func (j *jobs) workPostgres(ctx context.Context, work *river.Job[job]) error {
	m := message{work.Args.User, work.Args.ID, work.Args.Text}
	t, err := j.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = t.Rollback(context.WithoutCancel(ctx)) }() // none after the commit
	reply, err := j.dialect.handle(ctx, pgxTx{t}, m, j.answer)
	if err != nil {
		return err
	}
	if _, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, t, work); err != nil {
		return err
	}
	if err := t.Commit(ctx); err != nil {
		return err
	}
	j.waiters.answer(m, reply)
	return nil
}

func (j *jobs) fill(ctx context.Context, users []string) error {
	return j.fillTables(ctx, j.db, users)
}

func (j *jobs) handle(ctx context.Context, m message) (string, error) {
	wait := j.expect(m)
	inserted, err := j.client.Insert(ctx, job{m.user, m.id, m.text}, &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}})
	if err != nil {
		return "", err
	}
	if inserted.UniqueSkippedAsDuplicate {
		return "", nil // River does not keep what the first job returned
	}
	return wait(ctx)
}

func (j *jobs) texts(ctx context.Context, user string) ([]string, error) {
	return j.storedTexts(ctx, j.db, user)
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
	return errors.Join(err, j.db.Close())
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
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlstore/postgresstore"
	"github.com/agentstate/state/workspace"
)

type question struct{ User, Text string }

func (question) Kind() string { return "question" }

// newWorkers returns the workers of River, which hand the messages of jobs over.
func newWorkers(m *workspace.Manager) *river.Workers {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[question]) error {
		out, err := say(ctx, m, job.Args.User, workspace.Message{
			ID: "job " + strconv.FormatInt(job.ID, 10), Content: state.UserText(job.Args.Text),
		})
		if out.Status == workspace.StatusFailed {
			return river.JobCancel(err) // a dead letter, which would be handled again by each attempt
		}
		return err
	}))
	return workers
}

// soon is a RetryPolicy.
type soon struct{}

func (soon) NextRetry(*rivertype.JobRow) time.Time { return time.Now() }

// An attempt of River that ends too early, and one that runs while the first still
// does, wait for the run of the first one.
func TestRiverWaitsForOneRun(t *testing.T) {
	s := newTestSite(t, "postgres")
	for name, test := range map[string]struct {
		timeout time.Duration
		fails   bool
		runs    int32
		state   rivertype.JobState
	}{
		"timeouts": {200 * time.Millisecond, false, 1, rivertype.JobStateCompleted},
		"failed":   {time.Minute, true, 1, rivertype.JobStateCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			var runs atomic.Int32
			m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{Run: func(ctx context.Context, run *workspace.Run) error {
				runs.Add(1)
				if test.fails {
					return errors.New("no such model")
				}
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(time.Second):
				}
				run.SetReply("hello")
				return nil
			}})
			require.NoError(t, err)
			defer m.Close()
			client := newRiver(t, s, m, test.timeout)
			inserted, err := client.Insert(t.Context(), question{"ann", "Hi!"}, nil)
			require.NoError(t, err)
			var job *rivertype.JobRow
			require.Eventually(t, func() bool {
				job, err = client.JobGet(t.Context(), inserted.Job.ID)
				return err == nil && job.FinalizedAt != nil
			}, time.Minute, 20*time.Millisecond)
			require.Equal(t, test.state, job.State)
			require.Equal(t, test.runs, runs.Load())
			if test.fails {
				require.Contains(t, job.Errors[0].Error, "no such model")
			}
			require.Equal(t, !test.fails, job.Attempt > 1, "attempts: %d", job.Attempt)
		})
	}
}

// newRiverTables makes the tables of River.
func newRiverTables(t *testing.T, s site) *pgxpool.Pool {
	pool, err := newPgxPool(t.Context(), s)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	_, err = migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil)
	require.NoError(t, err)
	return pool
}

func newRiver(t *testing.T, s site, m *workspace.Manager, timeout time.Duration) *river.Client[pgx.Tx] {
	pool := newRiverTables(t, s)
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Logger: slog.New(slog.DiscardHandler), Workers: newWorkers(m), JobTimeout: timeout, RetryPolicy: soon{},
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 10}},
		FetchCooldown: time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
	})
	require.NoError(t, err)
	require.NoError(t, client.Start(context.Background()))
	t.Cleanup(func() { require.NoError(t, client.StopAndCancel(context.Background())) })
	return client
}

// A run inserts a job in the transaction of its commit: the job is there if, and only
// if, the run has committed.
func TestARunInsertsAJobWithItsCommit(t *testing.T) {
	s := newTestSite(t, "postgres")
	pool := newRiverTables(t, s)
	db, err := postgresstore.Open(t.Context(), s.database().String(), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	inserter, err := river.NewClient(riverdatabasesql.New(nil), &river.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	orders := &state.Field[[]string]{Name: "orders"}
	refused := errors.New("the table of the program has refused it")
	m, err := workspace.Open(t.Context(), db, &workspace.Options{Schema: state.MustSchema(orders), Run: func(ctx context.Context, run *workspace.Run) error {
		order := run.Message().Text()
		if err := orders.Set(run.State(), []string{order}); err != nil {
			return err
		}
		return run.CommitTx(ctx, func(tx *sql.Tx) error {
			if _, err := inserter.InsertTx(ctx, tx, question{run.UserID(), "ship " + order}, nil); err != nil {
				return err
			}
			if order == "none" {
				return refused
			}
			return nil
		})
	}})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	_, err = say(t.Context(), m, "ann", workspace.Message{ID: "1", Content: state.UserText("17")})
	require.NoError(t, err)
	_, err = say(t.Context(), m, "ann", workspace.Message{ID: "2", Content: state.UserText("none")})
	require.ErrorContains(t, err, refused.Error())
	view, err := m.View(t.Context(), "ann")
	require.NoError(t, err)
	require.Equal(t, []string{"17"}, orders.GetOr(view.State(), nil))
	rows, err := pool.Query(t.Context(), "select args->>'Text' from river_job")
	require.NoError(t, err)
	jobs, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Equal(t, []string{"ship 17"}, jobs)
}

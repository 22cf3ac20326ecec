package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/cschleiden/go-workflows/backend"
	"github.com/cschleiden/go-workflows/backend/postgres"
	"github.com/cschleiden/go-workflows/backend/redis"
	"github.com/cschleiden/go-workflows/backend/sqlite"
	"github.com/cschleiden/go-workflows/client"
	"github.com/cschleiden/go-workflows/worker"
	"github.com/cschleiden/go-workflows/workflow"
)

// workflowsPoll is the interval at which the tuned workers poll. At shorter
// ones polling takes the time from handling.
const workflowsPoll = 5 * time.Millisecond

// workflows has an instance of go-workflows for each user, which gets the
// messages as signals and handles them one by one in an activity. Each time it
// is opened it makes new instances: histories are limited, and continuing as
// new can lose a signal. It is not measured on MariaDB, which refuses its
// "for update of".
type workflows struct {
	waiters
	backend backend.Backend
	client  *client.Client
	worker  *worker.Worker
	stop    context.CancelFunc
	answer  model

	dialect
	db   *sql.DB        // the conversations, on SQL engines
	talk *redisContents // and on Redis

	mu      sync.Mutex
	run     string
	started map[string]func() error
}

func openWorkflows(tuned bool) func(ctx context.Context, s site, answer model) (handler, error) {
	return func(ctx context.Context, s site, answer model) (handler, error) {
		w := &workflows{dialect: dialects[s.engine], answer: answer, run: rand.Text(), started: map[string]func() error{}}
		if err := w.open(ctx, s, tuned); err != nil {
			return nil, errors.Join(fmt.Errorf("peers: open go-workflows: %w", err), w.close())
		}
		return w, nil
	}
}

func (w *workflows) open(ctx context.Context, s site, tuned bool) (err error) {
	if s.engine == "redis" {
		w.talk, err = openRedisContents(s)
	} else if w.db, err = s.sql(); err == nil {
		err = w.createTables(ctx, w.db)
	}
	if err != nil {
		return err
	}
	if w.backend, err = w.newBackend(s); err != nil {
		return err
	}
	options := worker.DefaultOptions
	options.SingleWorkerMode = true
	if tuned {
		options.WorkflowPollingInterval, options.ActivityPollingInterval = workflowsPoll, workflowsPoll
	}
	w.worker = worker.New(w.backend, &options)
	if err := errors.Join(w.worker.RegisterWorkflow(w.conversation), w.worker.RegisterActivity(w.activity)); err != nil {
		return err
	}
	w.client = client.New(w.backend)
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.stop = stop
	return w.worker.Start(running)
}

func (w *workflows) newBackend(s site) (backend.Backend, error) {
	quiet := backend.WithLogger(slog.New(slog.DiscardHandler))
	switch s.engine {
	case "sqlite":
		return sqlite.NewSqliteBackendWithDB(w.db, sqlite.WithApplyMigrations(true), sqlite.WithBackendOptions(quiet)), nil
	case "postgres":
		return postgres.NewPostgresBackendWithDB(w.db, postgres.WithApplyMigrations(true), postgres.WithBackendOptions(quiet)), nil
	default:
		return redis.NewRedisBackend(w.talk.client, redis.WithKeyPrefix(s.set+":"), redis.WithBackendOptions(quiet))
	}
}

// conversation is the workflow of a user. A signal without a user ends it.
func (w *workflows) conversation(ctx workflow.Context) error {
	messages := workflow.NewSignalChannel[request](ctx, "message")
	for {
		r, ok := messages.Receive(ctx)
		if !ok || r.User == "" {
			return nil
		}
		if _, err := workflow.ExecuteActivity[string](ctx, workflow.DefaultActivityOptions, w.activity, r).Get(ctx); err != nil {
			return err
		}
	}
}

// activity handles a message in a transaction of its own. The activity may be
// executed again, so that it looks whether the conversation has the message.
func (w *workflows) activity(ctx context.Context, r request) (reply string, err error) {
	if w.talk != nil {
		reply, err = w.talk.handle(ctx, r.message(), w.answer)
	} else {
		err = inTx(ctx, w.db, func(t tx) (err error) {
			reply, err = w.dialect.handle(ctx, t, r.message(), w.answer)
			return err
		})
	}
	if err == nil {
		w.waiters.answer(r.message(), reply)
	}
	return reply, err
}

func (w *workflows) fill(ctx context.Context, users []string) error {
	if w.talk != nil {
		return w.talk.fill(ctx, users)
	}
	return w.fillTables(ctx, w.db, users)
}

func (w *workflows) handle(ctx context.Context, m message) (string, error) {
	wait, err := w.submit(ctx, m)
	if err != nil {
		return "", err
	}
	return wait(ctx)
}

func (w *workflows) submit(ctx context.Context, m message) (func(ctx context.Context) (string, error), error) {
	if err := w.start(ctx, m.user); err != nil {
		return nil, err
	}
	wait := w.expect(m)
	return wait, w.client.SignalWorkflow(ctx, w.instance(m.user), "message", request{m.user, m.id, m.text})
}

func (w *workflows) instance(user string) string { return strings.Join([]string{user, w.run}, "-") }

// start creates the instance of a user, if this is the first message.
func (w *workflows) start(ctx context.Context, user string) error {
	w.mu.Lock()
	create, found := w.started[user]
	if !found {
		create = sync.OnceValue(func() error {
			_, err := w.client.CreateWorkflowInstance(ctx, client.WorkflowInstanceOptions{InstanceID: w.instance(user)}, w.conversation)
			return err
		})
		w.started[user] = create
	}
	w.mu.Unlock()
	return create()
}

func (w *workflows) texts(ctx context.Context, user string) ([]string, error) {
	if w.talk != nil {
		return w.talk.texts(ctx, user)
	}
	return w.storedTexts(ctx, w.db, user)
}

func (w *workflows) close() (err error) {
	if w.stop != nil {
		w.stop()
		err = w.worker.WaitForCompletion()
	}
	if w.talk != nil {
		err = errors.Join(err, w.talk.close())
	}
	if w.db != nil {
		err = errors.Join(err, w.db.Close())
	}
	return err
}

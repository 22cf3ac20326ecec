package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/redisstore"
	"github.com/agentstate/state/store/sqlstore/mysqlstore"
	"github.com/agentstate/state/store/sqlstore/postgresstore"
	"github.com/agentstate/state/workspace"
)

var (
	count  = &state.Field[int]{Name: "count"}
	ids    = &state.Field[[]string]{Name: "ids"}
	schema = state.MustSchema(count, ids)
)

const processes = 3

// patience is the time after which a user gives a message up.
const patience = 2 * time.Minute

// line is what a process notes of a message.
type line struct {
	ID       string
	Sent     time.Time // for the first time
	Accepted time.Time `json:",omitzero"`
	Status   string    `json:",omitempty"` // with which it was accepted
	Answered time.Time `json:",omitzero"`
	Reply    string    `json:",omitempty"` // the number of the message among those of its user
	Reason   string    `json:",omitempty"` // of a message that has failed
	// Refused has what the calls have returned, and RolledBack says that they had to
	// wait for AcceptRollback.
	Refused    []string `json:",omitempty"`
	RolledBack bool     `json:",omitempty"`
}

// open opens a store.
func open(ctx context.Context, url string) (store.Store, error) {
	switch scheme, rest, _ := strings.Cut(url, "://"); scheme {
	case "postgres":
		return postgresstore.Open(ctx, url, nil)
	case "mysql":
		return mysqlstore.Open(ctx, url, nil)
	case "sentinel":
		return redisstore.New(ctx, redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "state", SentinelAddrs: strings.Split(rest, ",")}), nil)
	default:
		return redisstore.Open(ctx, url, nil)
	}
}

// startWorkers starts the processes.
func (c *cluster) startWorkers(s settings) []*exec.Cmd {
	urls := c.engine.urls(c)
	if c.err == nil {
		c.note(createRows(urls[0]))
	}
	var workers []*exec.Cmd
	for n := range processes {
		cmd := exec.Command("/proc/self/exe", "worker", "-url", urls[n%len(urls)], "-n", strconv.Itoa(n),
			"-users", strconv.Itoa(s.users), "-think", s.think.String())
		cmd.Stderr = os.Stderr
		if c.err == nil {
			c.note(cmd.Start())
			workers = append(workers, cmd)
		}
	}
	return workers
}

// work sends messages until SIGTERM, and handles them.
func work(args []string) error {
	f := flag.NewFlagSet("worker", flag.ContinueOnError)
	url := f.String("url", "", "the store")
	n := f.Int("n", 0, "the number of the process")
	users := f.Int("users", 0, "the number of users")
	think := f.Duration("think", 0, "the time between two messages of a user")
	if err := f.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	logs, err := os.Create(filepath.Join(folder, fmt.Sprint("log", *n)))
	if err != nil {
		return err
	}
	defer logs.Close()
	out, err := os.Create(filepath.Join(folder, fmt.Sprint("lines", *n)))
	if err != nil {
		return err
	}
	defer out.Close()
	db, err := open(ctx, *url)
	if err != nil {
		return err
	}
	_, transacts := store.As[store.Transactor](db)
	w := &worker{n: *n, think: *think, transacts: transacts, out: json.NewEncoder(out)}
	fmt.Fprintln(logs, "durability:", db.Durability())
	w.m, err = workspace.Open(ctx, db, &workspace.Options{Schema: schema, Run: w.handle, Logger: slog.New(slog.NewTextHandler(logs, nil))})
	if err != nil {
		return err
	}
	var sending sync.WaitGroup
	for u := range *users {
		// A quarter of the users write to two processes at once.
		if u%processes == w.n || u%4 == 0 && (u+1)%processes == w.n {
			sending.Go(func() { w.send(ctx, fmt.Sprint("u", u)) })
		}
	}
	sending.Wait()
	end, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return errors.Join(w.m.Shutdown(end), db.Close())
}

type worker struct {
	m         *workspace.Manager
	n         int
	think     time.Duration
	transacts bool

	mu  sync.Mutex
	out *json.Encoder
}

// createRows creates the table of rows on an SQL server.
func createRows(url string) error {
	ctx := context.Background()
	db, err := open(ctx, url)
	if err != nil {
		return err
	}
	defer db.Close()
	tx, ok := store.As[store.Transactor](db)
	if !ok {
		return nil
	}
	_, err = tx.Transact(ctx, nil, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "create table if not exists made (id varchar(60) not null, attempt varchar(60) not null primary key)")
		return err
	})
	return err
}

// handle makes the step of a message, once.
func (w *worker) handle(ctx context.Context, r *workspace.Run) error {
	id, st := r.Message().ID, r.State()
	if !slices.Contains(ids.GetOr(st, nil), id) {
		if err := errors.Join(count.Set(st, count.GetOr(st, 0)+1), ids.Set(st, []string{id})); err != nil {
			return err
		}
		if w.transacts {
			insert := fmt.Sprintf("insert into made values ('%s', '%s-%d')", id, id, rand.Uint64())
			err := r.CommitTx(ctx, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, insert)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	r.SetReply(strconv.Itoa(slices.Index(ids.GetOr(st, nil), id) + 1))
	return nil
}

// send sends messages of a user, one after another.
func (w *worker) send(ctx context.Context, user string) {
	for k := 0; ; k++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(w.think/2 + rand.N(w.think)):
		}
		l := line{ID: fmt.Sprintf("%s-%d-%d", user, w.n, k), Sent: time.Now()}
		w.deliver(user, &l)
		w.mu.Lock()
		_ = w.out.Encode(l)
		w.mu.Unlock()
	}
}

// deliver sends a message until it is accepted, and waits until it has an answer.
func (w *worker) deliver(user string, l *line) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	msg := workspace.Message{ID: l.ID, Content: state.UserText("add one")}
	for ; ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
		o, err := w.m.Submit(ctx, user, msg)
		if err == nil && l.Accepted.IsZero() {
			l.Accepted, l.Status = time.Now(), string(o.Status)
		}
		if err == nil {
			o, err = w.m.Await(ctx, user, l.ID)
		}
		if err == nil {
			l.Answered, l.Reply, l.Reason = time.Now(), o.Reply, o.Reason
			return
		}
		l.Refused = append(l.Refused, err.Error())
		if errors.Is(err, workspace.ErrRolledBack) { // an operator knows that the primary has died
			l.RolledBack = true
			_ = w.m.AcceptRollback(ctx, user)
		}
		if errors.Is(err, workspace.ErrNotFound) { // it was accepted, and is lost: that is counted
			return
		}
	}
}

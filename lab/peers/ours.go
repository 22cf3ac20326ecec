package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/natsstore"
	"github.com/agentstate/state/store/redisstore"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/store/sqlstore/mysqlstore"
	"github.com/agentstate/state/store/sqlstore/postgresstore"
	"github.com/agentstate/state/workspace"
)

// openStore opens our store of an engine.
func openStore(ctx context.Context, s site) (store.Store, error) {
	switch s.engine {
	case "sqlite":
		return sqlitestore.Open(ctx, s.path, nil)
	case "postgres":
		return postgresstore.Open(ctx, s.database().String(), nil)
	case "mysql":
		return mysqlstore.Open(ctx, s.database().String(), nil)
	case "redis":
		return redisstore.Open(ctx, s.server.String(), &redisstore.Options{Prefix: s.set})
	default:
		return natsstore.Open(ctx, s.server.String(), &natsstore.Options{Bucket: s.set})
	}
}

// ours is a Manager with the default options.
type ours struct {
	store   store.Store
	manager *workspace.Manager
}

func openOurs(ctx context.Context, s site, answer model) (handler, error) {
	db, err := openStore(ctx, s)
	if err != nil {
		return nil, err
	}
	return openManager(ctx, db, answer)
}

func openManager(ctx context.Context, db store.Store, answer model) (handler, error) {
	m, err := workspace.Open(context.WithoutCancel(ctx), db, &workspace.Options{
		Run: func(_ context.Context, run *workspace.Run) error {
			msg := run.Message()
			text, _ := msg.Content.(state.TextMessage)
			reply := answer(message{run.UserID(), msg.ID, text.Text()})
			run.SetReply(reply)
			return run.State().History().Append(state.InferenceResult{
				Agent: "porter", History: state.Messages.Or(run.State(), nil),
				Output: []state.Message{state.AssistantText(reply)},
			})
		},
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &ours{db, m}, nil
}

// fill handles the messages of many users at once. Users can be filled only by
// messages, because results belong to runs.
func (o *ours) fill(ctx context.Context, users []string) error {
	return each(users, func(user string) error {
		for i := range int64(kept) {
			if _, err := o.handle(ctx, newMessage(user, -1-i)); err != nil {
				return fmt.Errorf("peers: fill: %w", err)
			}
		}
		return nil
	})
}

func (o *ours) handle(ctx context.Context, m message) (string, error) {
	out, err := o.manager.Handle(ctx, m.user, workspace.Message{ID: m.id, Content: state.UserText(m.text)})
	if err != nil {
		return "", err
	}
	if out.Status != workspace.StatusDone && out.Status != workspace.StatusDuplicate {
		return "", fmt.Errorf("peers: message %s is %s: %s", m.id, out.Status, out.Reason)
	}
	return out.Reply, nil
}

func (o *ours) submit(ctx context.Context, m message) (func(ctx context.Context) (string, error), error) {
	_, err := o.manager.Submit(ctx, m.user, workspace.Message{ID: m.id, Content: state.UserText(m.text)})
	return func(ctx context.Context) (string, error) {
		out, err := o.manager.Await(ctx, m.user, m.id)
		return out.Reply, err
	}, err
}

func (o *ours) texts(ctx context.Context, user string) (texts []string, err error) {
	view, err := o.manager.View(ctx, user)
	if err != nil {
		return nil, err
	}
	for _, m := range state.Messages.Or(view.State(), nil) {
		if text, ok := m.(state.TextMessage); ok && text.Role() == "user" {
			texts = append(texts, text.Text())
		}
	}
	return texts, nil
}

func (o *ours) close() error { return errors.Join(o.manager.Close(), o.store.Close()) }

// A counter counts what our Manager asks of a store, and the bytes of the
// values that it writes.
type counter struct {
	store.Store
	reads, writes, bytes atomic.Int64
}

func (c *counter) Get(ctx context.Context, key string) (store.Entry, error) {
	c.reads.Add(1)
	return c.Store.Get(ctx, key)
}

func (c *counter) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
	c.writes.Add(1)
	c.bytes.Add(int64(len(value)))
	return c.Store.Put(ctx, key, value, cond)
}

// batchCounter is a counter in front of a store that is a Batcher.
type batchCounter struct{ *counter }

func (c batchCounter) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	c.writes.Add(1)
	for _, w := range writes {
		c.bytes.Add(int64(len(w.Value)))
	}
	return c.Store.(store.Batcher).Batch(ctx, writes)
}

// openCounted opens ours with a counter in front of the store.
func openCounted(ctx context.Context, s site) (handler, *counter, error) {
	db, err := openStore(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	c := &counter{Store: db}
	db = c
	if _, ok := c.Store.(store.Batcher); ok {
		db = batchCounter{c}
	}
	h, err := openManager(ctx, db, scripted)
	return h, c, err
}

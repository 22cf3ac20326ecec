package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
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
	default:
		return redisstore.Open(ctx, s.server.String(), &redisstore.Options{Prefix: s.set})
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
	m, err := workspace.Open(context.WithoutCancel(ctx), db, &workspace.Options{
		Run: func(_ context.Context, run *workspace.Run) error {
			msg := run.Message()
			text, _ := msg.Content.(state.TextMessage)
			reply := answer(message{run.UserID(), msg.ID, text.Text()})
			run.SetReply(reply)
			return run.State().History().Append(state.InferenceResult{
				Agent: "porter", History: state.Messages.GetOr(run.State(), nil),
				Output: []state.Message{state.AssistantText(reply)},
			})
		},
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &ours{db, m}, nil
}

func (o *ours) handle(ctx context.Context, m message) (string, error) {
	out, err := o.manager.Handle(ctx, m.User, workspace.Message{ID: m.ID, Content: state.UserText(m.Text)})
	if err != nil {
		return "", err
	}
	if out.Status != workspace.StatusDone && out.Status != workspace.StatusDuplicate {
		return "", fmt.Errorf("peers: message %s is %s: %s", m.ID, out.Status, out.Reason)
	}
	return out.Reply, nil
}

func (o *ours) texts(ctx context.Context, user string) (texts []string, err error) {
	view, err := o.manager.View(ctx, user)
	if err != nil {
		return nil, err
	}
	for _, m := range state.Messages.GetOr(view.State(), nil) {
		if text, ok := m.(state.TextMessage); ok && text.Role() == "user" {
			texts = append(texts, text.Text())
		}
	}
	return texts, nil
}

func (o *ours) close() error { return errors.Join(o.manager.Close(), o.store.Close()) }

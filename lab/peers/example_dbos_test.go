package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// say hands a message over and waits until it is handled. If it is called again
// with the same id, it waits for the same run. A run that fails is an error.
func say(ctx context.Context, m *workspace.Manager, user string, msg workspace.Message) (workspace.Outcome, error) {
	if _, err := m.Submit(ctx, user, msg); err != nil {
		return workspace.Outcome{}, err
	}
	out, err := m.Await(ctx, user, msg.ID)
	if err == nil && out.Status == workspace.StatusFailed {
		err = fmt.Errorf("%w: %s", workspace.ErrRunFailed, out.Reason)
	}
	return out, err
}

type request struct{ User, Text string }

// workflow has the steps of a request, of which each may be made again.
type workflow struct{ m *workspace.Manager }

func (w workflow) run(ctx dbos.Context, in request) (string, error) {
	id, err := dbos.GetWorkflowID(ctx)
	if err != nil {
		return "", err
	}
	waiting, err := dbos.RunAsStep(ctx, func(ctx context.Context) (key string, err error) {
		if _, err := say(ctx, w.m, in.User, workspace.Message{ID: id, Content: state.UserText(in.Text)}); err != nil {
			return "", err
		}
		view, err := w.m.View(ctx, in.User)
		if err != nil {
			return "", err
		}
		for _, call := range view.Suspended() {
			return call.Key, nil
		}
		return "", errors.New("no call waits for a person")
	})
	if err != nil {
		return "", err
	}
	decision := tool.Refuse(waiting, "nobody has answered")
	agreed, err := dbos.Recv[bool](ctx, "agreed", 24*time.Hour)
	if err != nil && !errors.Is(err, dbos.ErrTimeout) {
		return "", err
	}
	if agreed {
		decision = tool.Approve(waiting)
	}
	return dbos.RunAsStep(ctx, func(ctx context.Context) (string, error) {
		out, err := say(ctx, w.m, in.User, workspace.Message{ID: id + " decided", Decisions: []tool.Decision{decision}})
		return out.Reply, err
	})
}

// A workflow of DBOS asks an agent, waits for a person by a timer and a signal of
// DBOS, and decides about the call that waits.
func Example_dbos() {
	refund := tool.Must(tool.New("refund", "Refund an amount.",
		func(_ context.Context, in struct {
			Amount int `json:"amount"`
		}) (string, error) {
			return fmt.Sprint("refunded ", in.Amount), nil
		},
		tool.NeedsApproval(func(context.Context, struct {
			Amount int `json:"amount"`
		}) (string, bool) {
			return "a refund", true
		})))
	ask := func(ctx context.Context, turn *loop.Turn) error {
		prompt, err := turn.Prompt(ctx, state.Messages.GetOr(turn.State(), nil))
		if err != nil {
			return err
		}
		var answer state.Message = state.ToolCalls(state.ToolCall{ID: "c1", Name: "refund", Input: `{"amount":500}`})
		if result, ok := prompt[len(prompt)-1].(state.ToolResultMessage); ok {
			answer = state.AssistantText("It is " + result.Text() + ".")
		}
		return turn.Said(ctx, state.InferenceResult{Output: []state.Message{answer}})
	}
	ctx := context.Background()
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{Run: workspace.Loop(&loop.Loop{
		Agents: map[string]loop.Agent{"": {Ask: ask, Tools: []*tool.Tool{refund}}},
	})})
	if err != nil {
		panic(err)
	}
	defer m.Close()

	folder, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	db, err := sql.Open("sqlite", filepath.Join(folder, "dbos.db"))
	if err != nil {
		panic(err)
	}
	defer db.Close()
	d, err := dbos.NewContext(ctx, dbos.Config{AppName: "desk", SQLiteSystemDB: db, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	w := workflow{m}
	dbos.RegisterWorkflow(d, w.run)
	if err := dbos.Launch(d); err != nil {
		panic(err)
	}
	defer dbos.Shutdown(d, time.Second)

	started, err := dbos.RunWorkflow(d, w.run, request{"ann", "I want my 500 back."}, dbos.WithWorkflowID("order 17"))
	if err != nil {
		panic(err)
	}
	fmt.Println(dbos.Send(d, "order 17", true, "agreed"))
	fmt.Println(started.GetResult())
	// Output:
	// <nil>
	// It is refunded 500. <nil>
}

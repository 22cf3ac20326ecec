package workspace_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/work"
)

// spans is a Tracer that prints the runs and commits of a process when they end.
type spans struct{ process string }

type spanName struct{}

var printing sync.Mutex

func (s spans) Start(ctx context.Context, op work.Operation) context.Context {
	name := fmt.Sprintf("%s of %s in the %s process", op.Kind, op.MessageID, s.process)
	return context.WithValue(ctx, spanName{}, name)
}

func (s spans) End(ctx context.Context, op work.Operation) {
	if op.Kind == work.OpRun || op.Kind == work.OpCommit {
		printing.Lock()
		defer printing.Unlock()
		if op.Ended != "" {
			fmt.Print(op.Ended, ": ")
		}
		fmt.Println(ctx.Value(spanName{}))
		for _, link := range op.Links {
			fmt.Println("  after:", link)
		}
	}
}

func (s spans) Inject(ctx context.Context) string { return ctx.Value(spanName{}).(string) }

// A Tracer sees how a process takes a run over that another one has begun, and
// handles the queue.
func ExampleTracer() {
	ctx := context.Background()
	db := store.NewMemory()
	committed := make(chan bool)
	open := func(process string) *workspace.Manager {
		m, err := workspace.Open(ctx, db, &workspace.Options{
			Schema: schema, Tracer: spans{process},
			Run: func(ctx context.Context, run *workspace.Run) error {
				if process == "new" {
					return nil
				}
				if err := visits.Set(run.State(), 1); err != nil {
					return err
				}
				if err := run.Commit(ctx); err != nil {
					return err
				}
				committed <- true
				<-ctx.Done()
				return context.Cause(ctx)
			},
		})
		if err != nil {
			panic(err)
		}
		return m
	}
	old := open("old")
	for _, id := range []string{"1", "2"} {
		if _, err := old.Submit(ctx, "ann", workspace.Message{ID: id, Content: state.UserText("Hello!")}); err != nil {
			panic(err)
		}
	}
	<-committed
	fmt.Println(old.Close()) // the run is given back

	m := open("new")
	fmt.Println(settle(ctx, m), m.Wait(ctx), m.Close())
	fmt.Println(m.Stats().Done, "done")
	// Output:
	// commit of 1 in the old process
	// abandoned: run of 1 in the old process
	//   after: handle of 1 in the old process
	// <nil>
	// commit of 1 in the new process
	// finished: run of 1 in the new process
	//   after: handle of 1 in the old process
	//   after: run of 1 in the old process
	// commit of 2 in the new process
	// finished: run of 2 in the new process
	//   after: handle of 2 in the old process
	// <nil> <nil> <nil>
	// 2 done
}

package page_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
)

var (
	title = &state.Field[string]{Name: "title"}
	notes = &state.Field[[]string]{Name: "notes"}
	token = &state.Field[string]{Name: "token", Secret: true}
	city  = &state.Field[string]{Name: "city", Shared: true}
)

const thread = "ann/1"

// desk is a Manager whose runs do what their messages say, word by word: see does.
type desk struct {
	t *testing.T
	*workspace.Manager
	pages *page.Source
	goOn  chan struct{} // a run that holds waits for it
}

func newDesk(t *testing.T, change ...func(*workspace.Options)) *desk {
	d := &desk{t: t, goOn: make(chan struct{})}
	opts := &workspace.Options{Schema: state.MustSchema(title, notes, token, city), Run: d.run}
	for _, c := range change {
		c(opts)
	}
	m, err := workspace.Open(t.Context(), store.NewMemory(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })
	d.Manager, d.pages = m, &page.Source{Manager: m}
	return d
}

func (d *desk) run(ctx context.Context, run *workspace.Run) error {
	text := run.Message().Text()
	if len(run.Message().Decisions) > 0 {
		text = "say:decided"
	}
	for _, word := range strings.Fields(text) {
		verb, what, _ := strings.Cut(word, ":")
		if err := d.does(ctx, run, verb, what); err != nil {
			return err
		}
	}
	return nil
}

// does does what a word of a message says.
func (d *desk) does(ctx context.Context, run *workspace.Run, verb, what string) error {
	st := run.State()
	record := func(msgs ...state.Message) error {
		return st.History().Append(state.InferenceResult{Agent: "desk", Output: msgs, Usage: state.Usage{Output: 7}, Stop: state.StopEnd})
	}
	switch verb {
	case "think":
		run.EmitThought(what)
	case "text":
		run.Emit(what)
	case "args":
		run.EmitInput(0, "pay", what)
	case "say":
		return record(state.AssistantText(what))
	case "call", "ask":
		c := state.ToolCalls(state.ToolCall{ID: what, Name: "pay", Input: `{"euros":10}`})
		err := record(state.AssistantText("I pay "+what), c)
		if verb == "ask" {
			for _, m := range state.Messages.GetOr(st, nil) {
				if m, ok := m.(state.ToolCallMessage); ok && m.Calls()[0].ID == what {
					err = errors.Join(err, run.Suspend(m.Calls()[0].Key))
				}
			}
		}
		return errors.Join(err, run.Commit(ctx))
	case "result", "error":
		var answers []state.ToolResultMessage
		for _, m := range state.Messages.GetOr(st, nil) {
			if m, ok := m.(state.ToolCallMessage); ok && m.Calls()[0].ID == what {
				answers = append(answers, state.ToolResult(m.Calls()[0], `"paid"`))
				if verb == "error" {
					answers[0] = state.ToolError(m.Calls()[0], "no route to db-7")
				}
			}
		}
		return st.History().Answer(answers...)
	case "title":
		return title.Set(st, what)
	case "note":
		return notes.Set(st, []string{what})
	case "city":
		return city.Set(st, what)
	case "commit":
		return run.Commit(ctx)
	case "hold":
		select {
		case <-d.goOn:
		case <-ctx.Done():
			return ctx.Err()
		}
	case "retry":
		if run.Attempt() == 0 {
			return workspace.RetryAfter(errors.New("the stream breaks"), time.Second)
		}
	case "fail":
		return errors.New("key sk-123 is refused")
	}
	return nil
}

// handle sends a message and waits for its end.
func (d *desk) handle(id, text string) {
	d.send(id, text)
	_, err := d.Await(d.t.Context(), thread, id)
	require.NoError(d.t, err)
}

func (d *desk) send(id, text string) page.Sent {
	sent, err := d.pages.Send(d.t.Context(), thread, page.Input{ID: id, Content: state.UserText(text)})
	require.NoError(d.t, err)
	return sent
}

func (d *desk) read() *page.Page {
	p, err := d.pages.Read(d.t.Context(), thread)
	require.NoError(d.t, err)
	return p
}

// decide sends a decision about the call that waits.
func (d *desk) decide(id string, decision func(key string) tool.Decision) {
	var keys []string
	for _, item := range d.read().Items {
		for _, p := range item.Parts {
			if p.Call != nil && p.Call.State == page.CallWaiting {
				keys = append(keys, p.Call.Key)
			}
		}
	}
	if len(keys) > 0 {
		_, err := d.pages.Send(d.t.Context(), thread, page.Input{ID: id, Decisions: []tool.Decision{decision(keys[0])}})
		if !errors.Is(err, workspace.ErrNotSuspended) { // a message that waits has decided
			require.NoError(d.t, err)
		}
	}
}

// client is a page that loses its connection after some changes each.
type client struct {
	mu sync.Mutex // held while a Change is applied, for those who compare meanwhile
	page.Page
	changes []page.Change
	err     error
}

// follow follows the thread until the test ends. It comes back after each n changes,
// and keeps what it shows; 0 is never.
func (d *desk) follow(n int) *client {
	c := &client{}
	go func() {
		for d.t.Context().Err() == nil && c.err == nil {
			left := n
			select {
			case <-time.After(100 * time.Millisecond):
			case <-d.t.Context().Done():
				return
			}
			for change, err := range d.pages.Follow(d.t.Context(), thread, c.Version) {
				c.mu.Lock()
				if c.err = err; err == nil {
					c.Apply(change)
					c.changes = append(c.changes, change)
				}
				c.mu.Unlock()
				if err != nil {
					break
				}
				if left--; left == 0 {
					break
				}
			}
		}
	}()
	time.Sleep(time.Second)
	synctest.Wait()
	return c
}

// requireSame compares pages. A list that is empty is nil or not.
func requireSame(t testing.TB, want, got page.Page, msg ...any) {
	t.Helper()
	require.Empty(t, cmp.Diff(want, got, cmpopts.EquateEmpty()), fmt.Sprint(msg...))
}

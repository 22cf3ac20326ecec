package workspace_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// windowedRig is a Manager whose runs show the conversation through a Window. The
// summary of the first window waits for finish.
type windowedRig struct {
	*testing.T
	m             *workspace.Manager
	db            *store.Memory
	window        *transcript.Window
	agent         string
	began, finish chan bool
	hold          chan bool // a run with the message "hold" waits for it
	shown         atomic.Value
	log           testkit.Buffer
}

const private = "what-was-said-in-private"

// newWindowedRig opens the Manager with options, whose Run and Window are set.
func newWindowedRig(t *testing.T, agent string, o workspace.Options) *windowedRig {
	r := &windowedRig{T: t, db: store.NewMemory(), agent: agent, began: make(chan bool), finish: make(chan bool), hold: make(chan bool)}
	var made atomic.Int64
	r.window = &transcript.Window{
		Target: 4, Keep: 3, Tokens: func(state.Message) int { return 1 },
		Summarize: func(context.Context, transcript.Past) (string, error) {
			if made.Add(1) == 1 {
				r.began <- true
				<-r.finish
			}
			return private, nil
		},
	}
	o.Window, o.Run = r.window, r.run
	o.Logger = slog.New(slog.NewTextHandler(&r.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	r.m = open(t, r.db, o)
	return r
}

func (r *windowedRig) run(ctx context.Context, run *workspace.Run) error {
	st := run.State()
	if r.agent != "" {
		st = st.As(r.agent)
	}
	msgs, err := r.window.Messages(ctx, st, 0)
	if err != nil {
		return err
	}
	var shown []string
	for _, m := range msgs {
		shown = append(shown, m.(state.TextMessage).Text())
	}
	r.shown.Store(strings.Join(shown, "\n"))
	if run.Message().Content.(state.TextMessage).Text() == "hold" {
		select {
		case <-r.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// say sends messages, and returns what the model of the last one would be shown.
func (r *windowedRig) say(id string, texts ...string) string {
	r.Helper()
	for _, text := range texts {
		_, err := r.m.Handle(r.Context(), id, workspace.Message{Content: state.UserText(text)})
		require.NoError(r, err)
		synctest.Wait() // for a summary
	}
	return r.shown.Load().(string)
}

// beginSummary talks until the summary of a window is being made.
func (r *windowedRig) beginSummary(id string) {
	r.Helper()
	r.say(id, "1", "2", "3", "4", "5")
	<-r.began
}

// requireNoSummary requires that the summary is neither shown nor stored.
func (r *windowedRig) requireNoSummary() {
	r.Helper()
	require.NotContains(r, r.shown.Load(), private)
	for e, err := range r.db.List(r.Context(), "", "", true) {
		require.NoError(r, err)
		require.NotContains(r, string(e.Value), private, e.Key)
	}
}

// What ends a workspace.
var windowEnds = map[string]func(ctx context.Context, m *workspace.Manager, id string) error{
	"reset": func(ctx context.Context, m *workspace.Manager, id string) error {
		_, err := m.Reset(ctx, id)
		return err
	},
	"delete":         func(ctx context.Context, m *workspace.Manager, id string) error { return m.Delete(ctx, id) },
	"delete, expire": func(ctx context.Context, m *workspace.Manager, id string) error { return m.Delete(ctx, id) },
	"delete user, expire": func(ctx context.Context, m *workspace.Manager, id string) error {
		user, _ := workspace.SplitThread(id)
		return m.DeleteUser(ctx, user)
	},
}

// A summary that is being made, or that waits for the end of a run, when its
// workspace is reset or deleted is not stored: neither in the empty workspace, nor
// in that of the user who comes back. It makes no workspace that is not there.
func TestSummariesEndWithTheirWorkspace(t *testing.T) {
	for end, call := range windowEnds {
		end, expire := strings.CutSuffix(end, ", expire")
		for _, elsewhere := range []bool{false, true} {
			for _, back := range []bool{false, true} {
				for _, late := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/expire=%v/elsewhere=%v/back=%v/late=%v", end, expire, elsewhere, back, late), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							r := newWindowedRig(t, "bot", workspace.Options{})
							other := open(t, r.db, workspace.Options{})
							id := workspace.Thread("ann", "t1")
							r.beginSummary(id)
							if late { // a run is under way when it is there
								_, err := r.m.Submit(t.Context(), id, workspace.Message{Content: state.UserText("hold")})
								require.NoError(t, err)
								synctest.Wait()
								r.finish <- true
								synctest.Wait()
							}
							by := r.m
							if elsewhere {
								by = other
							}
							require.NoError(t, call(t.Context(), by, id))
							if late {
								time.Sleep(time.Minute) // the run has found out that it has ended
							}
							_, err := r.m.Summary(t.Context(), id) // and of its deletion
							require.NoError(t, err)
							_, err = r.m.Summary(t.Context(), workspace.Shared("ann"))
							require.NoError(t, err)
							if expire {
								_, err := by.Expire(t.Context(), 0)
								require.NoError(t, err)
							}
							before, err := r.m.Summary(t.Context(), id)
							require.NoError(t, err)
							if back {
								r.say(id, "hello")
							}
							if !late {
								r.finish <- true
							}
							time.Sleep(time.Minute)
							r.requireNoSummary()
							if !back {
								after, err := r.m.Summary(t.Context(), id)
								require.NoError(t, err)
								require.Equal(t, before, after)
							}
							require.NotContains(t, r.say(id, "again", "and again"), private)
							r.requireNoSummary()
							require.Contains(t, r.say(id, "6", "7", "8", "9"), private, "the new window has a summary of its own")
						})
					})
				}
			}
		}
	}
}

// A window moves in the background for each form of agent that has a request: a
// member of the team, any name without a team, and the host's handle. A user does
// not wait for it, nor do messages fail while summaries do.
func TestSummariesInTheBackgroundForEachAgent(t *testing.T) {
	team := state.MustSchema(state.Team{"bot": {}})
	for name, c := range map[string]struct {
		agent  string
		schema *state.Schema
	}{
		"a member of the team":       {"bot", team},
		"any name without a team":    {"bot", nil},
		"the host without a team":    {"", nil},
		"the host beside a team":     {"", team},
		"the host and hidden fields": {"", state.MustSchema(state.Team{"bot": {}}, &state.Field[string]{Name: "x", Read: state.Only("bot")})},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newWindowedRig(t, c.agent, workspace.Options{Schema: c.schema})
				r.beginSummary("ann") // nobody waits for it
				require.NotContains(t, r.say("ann", "6"), private)
				r.finish <- true
				synctest.Wait()
				require.Contains(t, r.say("ann", "7"), private)
				require.Empty(t, r.log.String())
			})
		})
	}
}

// Summarize and Tokens may panic, and end their goroutine, where nobody waits for
// them. The process lives, the log says where it was, and the window moves when
// they work again.
func TestWindowsThatDoNotReturn(t *testing.T) {
	for how, leave := range map[string]func(){
		"panicked":            func() { panic("no luck with " + private) },
		"ended its goroutine": runtime.Goexit,
	} {
		for _, place := range []string{"Summarize", "Tokens"} {
			t.Run(place+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newWindowedRig(t, "bot", workspace.Options{Schema: state.MustSchema(&state.Field[string]{Name: "pin", Secret: true})})
					require.NoError(t, r.m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
						return w.State().KV().Set("pin", private)
					}))
					var broken atomic.Bool
					broken.Store(true)
					r.window.Summarize = func(ctx context.Context, _ transcript.Past) (string, error) {
						if broken.Load() && place == "Summarize" {
							leave()
						}
						return "a summary", nil
					}
					r.window.Tokens = func(state.Message) int {
						if len(r.m.Held()) == 0 && broken.Load() && place == "Tokens" {
							leave()
						}
						return 1
					}
					require.NotContains(t, r.say("ann", "1", "2", "3", "4", "5", "6"), "a summary")
					require.Contains(t, r.log.String(), "summary panicked")
					require.Contains(t, r.log.String(), "workspace: summary "+how)
					require.NotContains(t, r.log.String(), private)
					if how == "panicked" {
						require.Contains(t, r.log.String(), "windows_end_test.go", "the stack")
					}
					broken.Store(false)
					require.Contains(t, r.say("ann", "7", "8"), "a summary")
				})
			})
		}
	}
}

// A Summarize that does not look at its context is left behind: the windows of its
// user move again, and what it returns later is not stored.
func TestSummaryThatIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newWindowedRig(t, "bot", workspace.Options{})
		r.beginSummary("ann")
		time.Sleep(6 * time.Minute)
		require.EqualValues(t, 1, r.m.Stats().Abandoned)
		require.Contains(t, r.log.String(), "summary was left behind")
		require.Contains(t, r.say("ann", "6", "7"), private, "another summary")
		other := workspace.Thread("ann", "other")
		require.NotContains(t, r.say(other, "1"), private)
		before, err := r.m.Summary(t.Context(), "ann")
		require.NoError(t, err)
		r.finish <- true
		synctest.Wait()
		after, err := r.m.Summary(t.Context(), "ann")
		require.NoError(t, err)
		require.Equal(t, before, after)
	})
}

// Close says that a Summarize has not returned, and does not wait for it for ever.
func TestCloseLeavesASummaryBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newWindowedRig(t, "bot", workspace.Options{})
		r.beginSummary("ann")
		require.ErrorIs(t, r.m.Close(), workspace.ErrBusy)
		r.finish <- true
		synctest.Wait()
		require.NoError(t, r.m.Close())
	})
}

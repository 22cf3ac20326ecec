package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/internal/test/workspacetest"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// What is logged at LevelWarn and above is in one table of the package, and
// docs/production.md says what to do about each.
func TestProductionListsTheAlarms(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(text)
	}
	declared, listed := map[string]string{}, map[string]string{}
	for _, m := range regexp.MustCompile(`alarm\{"(.+)", slog\.Level(\w+)\}`).FindAllStringSubmatch(read("alarm.go"), -1) {
		declared[m[1]] = strings.ToLower(m[2])
	}
	_, list, found := strings.Cut(read("../docs/production.md"), "\n## What to watch\n")
	require.True(t, found)
	for _, m := range regexp.MustCompile("(?m)^- `([^`]+)`( \\(error\\))?: .+$").FindAllStringSubmatch(list, -1) {
		listed[m[1]] = "warn"
		if m[2] != "" {
			listed[m[1]] = "error"
		}
	}
	require.NotEmpty(t, declared)
	require.Empty(t, cmp.Diff(declared, listed))

	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || file == "alarm.go" {
			continue
		}
		for _, call := range regexp.MustCompile(`(?m)^.*logEvent\(.*slog\.Level(Warn|Error).*$`).FindAllString(read(file), -1) {
			t.Errorf("%s: no alarm: %s", file, call)
		}
	}
	for name := range declared {
		require.Contains(t, alarming, name, "no test raises it")
	}
}

// rig is a store with faults, and a log of alarms.
type rig struct {
	*testing.T
	db    *store.Memory
	fault atomic.Pointer[workspacetest.Fault]
	log   testkit.Buffer
}

func (r *rig) open(o workspace.Options) *workspace.Manager {
	db := withFaults(r.db, func(writes []store.Write) (bool, error) {
		if f := r.fault.Load(); f != nil {
			return (*f)(writes)
		}
		return false, nil
	})
	o.Logger = slog.New(slog.NewTextHandler(&r.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return open(r, db, o)
}

func (r *rig) breaks(f workspacetest.Fault) { r.fault.Store(&f) }

// heads is a fault of writes of heads.
func heads(err error) workspacetest.Fault {
	return func(writes []store.Write) (bool, error) {
		for _, w := range writes {
			if w.Key == annsHead {
				return false, err
			}
		}
		return false, nil
	}
}

// handle handles a message of ann's, whatever comes of it.
func (r *rig) handle(m *workspace.Manager, id string) {
	_, _ = m.Handle(context.Background(), "ann", text(id))
}

func (r *rig) submit(m *workspace.Manager, msg workspace.Message) {
	_, _ = m.Submit(context.Background(), "ann", msg)
	synctest.Wait()
}

// untilEnd is an Options.Run that ends with its context.
func untilEnd(ctx context.Context, _ *workspace.Run) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func failing(context.Context, *workspace.Run) error { return errors.New("no model") }

// alarming has what raises each alarm.
var alarming = map[string]func(r *rig){
	"dead letter": func(r *rig) { r.handle(r.open(workspace.Options{Run: failing}), "1") },
	"dead letter dropped": func(r *rig) {
		m := r.open(workspace.Options{Run: failing, DeadLetters: 1})
		r.handle(m, "1")
		r.handle(m, "2")
	},
	"queue full": func(r *rig) {
		m := r.open(workspace.Options{Run: untilEnd, Queue: 1})
		for _, id := range []string{"1", "2", "3"} {
			r.submit(m, text(id))
		}
	},
	"run fenced":             loseHolder,
	"holder record was lost": loseHolder,
	"late heartbeat": func(r *rig) {
		r.submit(r.open(workspace.Options{Run: untilEnd, TTL: 30 * time.Second}), text("1"))
		r.breaks(func(writes []store.Write) (bool, error) { return false, errAway })
		time.Sleep(25 * time.Second)
		r.fault.Store(nil)
		time.Sleep(time.Minute)
	},
	"run was not begun": func(r *rig) {
		m := r.open(workspace.Options{Schema: state.MustSchema(notes), Run: func(ctx context.Context, run *workspace.Run) error {
			if err := errors.Join(notes.Set(run.State(), []string{"a"}), run.Commit(ctx)); err != nil {
				return err
			}
			return untilEnd(ctx, run)
		}})
		r.submit(m, text("1"))
		_ = m.Close()
		r.open(workspace.Options{Run: nothing, Schema: state.MustSchema(&state.Field[int]{Name: notes.Name})})
		time.Sleep(time.Minute)
	},
	"stored fields are not in the schema": func(r *rig) {
		m := r.open(workspace.Options{Schema: state.MustSchema(notes), Run: func(_ context.Context, run *workspace.Run) error {
			return notes.Set(run.State(), []string{"a"})
		}})
		r.handle(m, "1")
		_ = m.Close()
		r.handle(r.open(workspace.Options{Run: nothing, Schema: state.MustSchema(visits)}), "2")
	},
	"… is read and not in the schema": func(r *rig) {
		r.handle(r.open(workspace.Options{Schema: state.MustSchema(visits), Run: func(_ context.Context, run *workspace.Run) error {
			notes.GetOr(run.State(), nil)
			return nil
		}}), "1")
	},
	"holder record was not deleted": func(r *rig) {
		m := r.open(workspace.Options{Run: nothing})
		r.handle(m, "1")
		r.breaks(func([]store.Write) (bool, error) { return false, errAway })
		_ = m.Close()
	},
	"store error": func(r *rig) {
		m := r.open(workspace.Options{Run: nothing})
		var once atomic.Bool
		r.breaks(func(writes []store.Write) (bool, error) {
			if writes != nil && !once.Swap(true) {
				return false, errAway
			}
			return false, nil
		})
		r.handle(m, "1")
	},
	"unknown outcome": func(r *rig) {
		m := r.open(workspace.Options{Run: nothing})
		var lost atomic.Bool
		r.breaks(func(writes []store.Write) (bool, error) {
			switch made, err := heads(store.ErrUnknownOutcome)(writes); {
			case lost.Load():
				return false, errAway
			case err != nil:
				lost.Store(true)
				return true, err
			default:
				return made, err
			}
		})
		r.handle(m, "1")
	},
	"contention": func(r *rig) {
		m := r.open(workspace.Options{Run: nothing})
		var n atomic.Int32
		r.breaks(func(writes []store.Write) (bool, error) {
			if n.Load() < 10 {
				_, err := heads(store.ErrConflict)(writes)
				if err != nil {
					n.Add(1)
				}
				return false, err
			}
			return false, nil
		})
		r.handle(m, "1")
	},
	"compaction failed": func(r *rig) {
		m := r.open(workspace.Options{Run: nothing})
		r.handle(m, "1")
		r.breaks(func([]store.Write) (bool, error) { return false, store.ErrRefused })
		require.Error(r, m.Compact(r.Context(), "ann"))
	},
	"user is not deleted yet": func(r *rig) {
		m := r.open(workspace.Options{Run: nothing})
		require.NoError(r, m.Store("ann").Set(r.Context(), "k", "v"))
		r.handle(m, "1")
		r.breaks(func(writes []store.Write) (bool, error) {
			for _, w := range writes {
				if w.Delete && strings.HasPrefix(w.Key, "agent:data:") {
					return false, store.ErrRefused
				}
			}
			return false, nil
		})
		require.Error(r, m.DeleteUser(r.Context(), "ann"))
		time.Sleep(time.Minute)
	},
	"calls have expired and are not answered": func(r *rig) {
		o := newOffice(r.T, tool.Expires(time.Hour))
		_, err := o.hear(r.T, "pay a")
		require.NoError(r, err)
		require.NoError(r, o.m.Close())
		r.db = o.db.(*store.Memory)
		m := r.open(workspace.Options{Run: nothing, Schema: state.MustSchema()})
		r.breaks(heads(store.ErrRefused))
		time.Sleep(2 * time.Hour)
		_ = m.Close()
	},
	"approved calls were not made": func(r *rig) {
		o := newOffice(r.T)
		_, err := o.hear(r.T, "pay a")
		require.NoError(r, err)
		approve := workspace.Message{Decisions: []tool.Decision{tool.Approve(o.key(r.T, "a"))}}
		require.NoError(r, o.m.Close())
		r.db = o.db.(*store.Memory)
		r.submit(r.open(workspace.Options{Run: nothing}), approve)
	},
	"nobody was told of a call": func(r *rig) {
		m := r.open(workspace.Options{
			Run: func(_ context.Context, run *workspace.Run) error {
				said := state.InferenceResult{Output: []state.Message{state.ToolCalls(state.ToolCall{ID: "1", Name: "ask"})}}
				require.NoError(r, run.State().History().Append(said))
				return run.Suspend(run.State().History().Pending()[0].Key)
			},
			Notify: func(context.Context, string, workspace.Suspended) error { return errors.New("no mail") },
		})
		r.handle(m, "1")
	},
	"store is not durable": func(r *rig) {
		open(r, volatile{r.db}, workspace.Options{Run: nothing, Logger: slog.New(slog.NewTextHandler(&r.log, nil))})
	},
	"clocks differ": func(r *rig) {
		m := open(r, slowClock{r.db}, workspace.Options{Run: untilEnd})
		r.open(workspace.Options{Run: nothing})
		r.submit(m, text("1"))
		time.Sleep(time.Minute)
	},
	"window was not moved": func(r *rig) {
		w := &transcript.Window{
			Target: 4, Keep: 3, Tokens: func(state.Message) int { return 1 },
			Summarize: func(context.Context, transcript.Past) (string, error) { return "", errors.New("no model") },
		}
		m := r.open(workspace.Options{Window: w, Run: func(ctx context.Context, run *workspace.Run) error {
			if _, err := w.Messages(ctx, run.State(), 0); err != nil {
				return err
			}
			return state.Messages.Set(run.State(), []state.Message{state.AssistantText("a"), state.AssistantText("b")})
		}})
		for _, id := range []string{"1", "2", "3"} {
			r.handle(m, id)
			synctest.Wait()
		}
	},
	"no title": func(r *rig) {
		r.handle(r.open(workspace.Options{Run: nothing, Title: func(*state.State) string { panic("no title") }}), "1")
	},
	"… took long": func(r *rig) {
		r.handle(r.open(workspace.Options{Run: nothing, Hooks: workspace.Hooks{
			OnRunStart: func(context.Context, *workspace.Run) { time.Sleep(2 * time.Second) },
		}}), "1")
	},
	"… panicked": func(r *rig) {
		r.handle(r.open(workspace.Options{Run: func(context.Context, *workspace.Run) error { panic("no model") }}), "1")
	},
	"… was left behind": func(r *rig) {
		end := make(chan bool)
		m := r.open(workspace.Options{RunTimeout: time.Second, Attempts: 1, Run: func(context.Context, *workspace.Run) error {
			<-end
			return nil
		}})
		r.handle(m, "1")
		close(end)
	},
	"… was given up": func(r *rig) {
		m := r.open(workspace.Options{Run: untilEnd})
		r.submit(m, text("1"))
		ctx, cancel := context.WithCancel(context.Background())
		go func() { _ = m.Do(ctx, "ann", nothing) }()
		synctest.Wait()
		r.breaks(heads(store.ErrRefused))
		cancel()
		time.Sleep(time.Minute)
	},
	"run was not released": func(r *rig) {
		m := r.open(workspace.Options{Run: untilEnd})
		r.submit(m, text("1"))
		r.breaks(heads(store.ErrRefused))
		_ = m.Close()
	},
	"end of run was not stored": func(r *rig) {
		m := r.open(workspace.Options{Run: func(context.Context, *workspace.Run) error {
			r.breaks(heads(store.ErrTooLarge))
			return nil
		}})
		r.handle(m, "1")
	},
	"rolled back": func(r *rig) {
		m := r.open(workspace.Options{Run: nothing})
		r.handle(m, "1")
		before := entries(r, r.db)
		r.handle(m, "2")
		write(r, r.db, before)
		r.handle(m, "3")
	},
	"newer format": func(r *rig) {
		write(r, r.db, map[string]string{annsHead: `{"format":4,"content":"of which nobody here knows"}`})
		r.handle(r.open(workspace.Options{Run: nothing}), "1")
	},
	"wrong key": func(r *rig) {
		r.handle(r.open(workspace.Options{Run: nothing}), "1")
		r.handle(r.open(workspace.Options{Run: nothing, Keys: []workspace.Key{key("a")}}), "2")
	},
	"access denied to a tool": func(r *rig) { faultyTool(r, "note", "x") },
	"corrupt": func(r *rig) {
		write(r, r.db, map[string]string{annsHead: "{"})
		r.handle(r.open(workspace.Options{Run: nothing}), "1")
	},
}

func loseHolder(r *rig) {
	m := r.open(workspace.Options{Run: untilEnd})
	r.submit(m, text("1"))
	for key := range holderRecords(r.T, r.db) {
		require.NoError(r, store.Delete(r.Context(), r.db, key, store.Always))
	}
	time.Sleep(time.Minute)
}

// faultyTool lets a model call a tool that panics, or one that writes what its agent
// may not.
func faultyTool(r *rig, name, text string) {
	secret := &state.Field[string]{Name: "pin", Secret: true}
	kept := &state.Field[string]{Name: "kept", Read: state.Public}
	schema := state.MustSchema(state.Team{"desk": nil}, secret, kept)
	tools := []*tool.Tool{
		tool.Must(tool.New("note", "Notes.", func(context.Context, struct{}) (string, error) { return text, nil }, tool.To(kept, ""))),
		tool.Must(tool.New("burst", "Bursts.", func(context.Context, struct{}) (string, error) { panic(text) })),
	}
	asked := 0
	ask := func(ctx context.Context, turn *loop.Turn) error {
		if asked++; asked == 1 {
			return turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.ToolCalls(state.ToolCall{ID: "1", Name: name, Input: "{}"})}})
		}
		result := state.Messages.GetOr(turn.State(), nil)
		require.NotContains(r, result[len(result)-1].Text(), "Write of the field", "a model can change nothing about it")
		require.NotContains(r, result[len(result)-1].Text(), text)
		return turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.AssistantText("It has failed.")}})
	}
	m := r.open(workspace.Options{Schema: schema, Run: func(ctx context.Context, run *workspace.Run) error {
		if err := secret.Set(run.State(), "hunter2-hunter2"); err != nil {
			return err
		}
		return workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"desk": {Ask: ask, Tools: tools}}})(ctx, run)
	}})
	r.handle(m, "1")
}

// A tool that panics and one that may not write its field are mistakes of the
// program, whose log says where they are and what would mend them. The model reads
// that the call has failed.
func TestMistakesOfToolsAreLogged(t *testing.T) {
	for _, row := range []struct {
		name, tool, text string
		want             []string
	}{
		{"a panic", "burst", "no hunter2-hunter2 here", []string{`msg="tool panicked"`, "level=ERROR", "user=ann", "tool=burst",
			`the function panicked: no [SECRET] here`, "err.stack=", "alarm_test.go"}},
		{"a right", "note", "x", []string{`msg="access denied to a tool"`, "level=WARN", "tool=note", `access denied to agent`,
			`err.hint="Write of the field \"kept\" would have to allow the agent \"desk\", or Owner to be it"`}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := &rig{T: t, db: store.NewMemory()}
			faultyTool(r, row.tool, row.text)
			for _, want := range row.want {
				require.Contains(t, r.log.String(), want)
			}
			require.NotContains(t, r.log.String(), "hunter2")
		})
	}
}

// Each alarm is raised, once a minute at the most, and has the error.
func TestAlarms(t *testing.T) {
	for name, raise := range alarming {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &rig{T: t, db: store.NewMemory()}
				raise(r)
				synctest.Wait()
				r.fault.Store(nil)
				logged := r.log.String()
				line := regexp.MustCompile(`(?m)^.*msg="?` + strings.Replace(regexp.QuoteMeta(name), "…", `[\w. ]+`, 1) + `"? .*$`).FindString(logged)
				require.NotEmpty(t, line, logged)
				require.Regexp(t, ` err\.class=\S+ err\.text=(\w|"\S)`, line)
			})
		})
	}
}

// volatile is a store in the memory of a server.
type volatile struct{ store.Store }

func (volatile) Durability() store.Durability { return store.DurabilityServer }

// slowClock is the store of a process whose clock is 10 minutes behind, as far as
// its holder record says so.
type slowClock struct{ store.Store }

var timeOfRecord = regexp.MustCompile(`"time_ms":(\d+)`)

func (s slowClock) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	for i, w := range writes {
		writes[i].Value = timeOfRecord.ReplaceAllFunc(w.Value, func(text []byte) []byte {
			ms, _ := strconv.ParseInt(string(text[len(`"time_ms":`):]), 10, 64)
			return fmt.Appendf(nil, `"time_ms":%d`, ms-(10*time.Minute).Milliseconds())
		})
	}
	return s.Store.Batch(ctx, writes)
}

// Calls that were cancelled are no errors of the store, and writes that the
// store has refused are none that came too late.
func TestNoAlarm(t *testing.T) {
	for name, fault := range map[string]error{
		"store error": fmt.Errorf("%w: %w", errAway, context.Canceled),
		"contention":  errAway,
	} {
		synctest.Test(t, func(t *testing.T) {
			r := &rig{T: t, db: store.NewMemory()}
			m := r.open(workspace.Options{Run: nothing})
			var n atomic.Int32
			r.breaks(func(writes []store.Write) (bool, error) {
				made, err := heads(fault)(writes)
				if err == nil || n.Add(1) > 12 {
					return made, nil
				}
				return made, err
			})
			r.handle(m, "1")
			require.Greater(t, n.Load(), int32(12))
			require.NotContains(t, r.log.String(), name)
		})
	}
}

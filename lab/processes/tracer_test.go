package processes

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/workspacetest"
	"github.com/agentstate/state/workspace"
)

// A run is linked to the sender of its message and to the attempt before, on
// every store: what a Tracer injects in one process reaches the next ones,
// which have connections of their own.
func TestTraceLinks(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		traceLinks(t, sqlite(t))
	})
	onServers(t, func(t *testing.T, fresh func() string) { traceLinks(t, fresh()) })
}

func traceLinks(t *testing.T, address string) {
	working := make(chan string, 10) // messages of runs that have committed
	// process opens a Manager with a connection of its own. Its runs of the given
	// message commit, and do not end by themselves.
	process := func(name, stuck string) (m *workspace.Manager, traced *namedSpans, kill func()) {
		db := open(t, address)
		traced = &namedSpans{process: name, links: map[string][]string{}}
		m = workspacetest.Open(t, db, workspace.Options{
			TTL: 2 * time.Second, Attempts: 100, Tracer: traced,
			Run: func(ctx context.Context, run *workspace.Run) error {
				if run.Message().ID != stuck {
					return nil
				}
				if err := workspacetest.Notes.Set(run.State(), []string{name}); err != nil {
					return err
				}
				if err := run.Commit(ctx); err != nil {
					return err
				}
				working <- stuck
				<-ctx.Done()
				return ctx.Err()
			},
		})
		return m, traced, func() { _ = db.Close() }
	}

	first, _, _ := process("first", "1")
	for _, id := range []string{"1", "2"} {
		ctx := context.WithValue(t.Context(), spanKey{}, "request "+id)
		_, err := first.Submit(ctx, "ann", workspacetest.Text(id))
		require.NoError(t, err)
	}
	<-working
	require.NoError(t, first.Close())

	second, tracedSecond, kill := process("second", "2")
	out, err := second.Await(t.Context(), "ann", "1")
	require.NoError(t, err)
	require.Equal(t, workspace.StatusDone, out.Status)
	<-working
	kill()

	third, tracedThird, _ := process("third", "")
	out, err = third.Await(t.Context(), "ann", "2")
	require.NoError(t, err)
	require.Equal(t, workspace.StatusDone, out.Status)

	sender := func(id string) string { return spanText("first", workspace.OpHandle, id, "request "+id) }
	require.Equal(t, []string{sender("1"), spanText("first", workspace.OpRun, "1", "")}, tracedSecond.linksOf("1"))
	require.Equal(t, []string{sender("2")}, tracedSecond.linksOf("2"))
	require.Equal(t, []string{sender("2"), spanText("second", workspace.OpRun, "2", "")}, tracedThird.linksOf("2"))
}

type spanKey struct{}

// namedSpans is a Tracer whose spans are texts that name process, operation,
// message and parent.
type namedSpans struct {
	process string

	mu    sync.Mutex
	links map[string][]string // of the first run of each message
}

// spanText returns a text as long as a trace may be, with characters that need
// to be escaped.
func spanText(process string, kind workspace.OpKind, message, parent string) string {
	text := fmt.Sprintf("%s %s %q < %s \n<é>\u2028 ", process, kind, message, parent)
	return text + strings.Repeat("x", 1024-len(text))
}

func (s *namedSpans) Start(ctx context.Context, op workspace.Operation) context.Context {
	parent, _ := ctx.Value(spanKey{}).(string)
	if op.Root {
		parent = ""
	}
	if op.Kind == workspace.OpRun {
		s.mu.Lock()
		if s.links[op.MessageID] == nil {
			s.links[op.MessageID] = op.Links
		}
		s.mu.Unlock()
	}
	return context.WithValue(ctx, spanKey{}, spanText(s.process, op.Kind, op.MessageID, parent))
}

func (s *namedSpans) End(context.Context, workspace.Operation) {}

func (s *namedSpans) Inject(ctx context.Context) string {
	text, _ := ctx.Value(spanKey{}).(string)
	return text
}

func (s *namedSpans) linksOf(message string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.links[message]
}

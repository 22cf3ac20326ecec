package workspace_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/agentstate/state/internal/test/rightstest"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// An agent is shown what it may read and nothing else, whatever happens in the
// workspace, by its views and by its events: neither fields nor what was said,
// streamed, called and replied, nor titles.
func TestAgentsAreShownWhatTheyMayRead(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		w := rightstest.New(rapid.Uint64().Draw(t, "seed"))
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		m, err := workspace.Open(ctx, store.NewMemory(), w.Options())
		require.NoError(t, err)
		defer m.Close()

		begun, events := make(chan struct{}), make(chan string, 1)
		var failed error
		go func() {
			var all strings.Builder
			defer func() { events <- all.String() }()
			last := uint64(0)
			for e, err := range m.Watch(ctx, "ann").As(w.Agent) {
				if failed = err; err != nil || e.Order != last+1 {
					fmt.Fprint(&all, "\nan event is missing")
					return
				}
				if last = e.Order; last == 1 {
					close(begun)
				}
				fmt.Fprintf(&all, "%s %+v %+v %s %v\n", shown(e), e.Summary, e.Outcome, e.Reply, e.Err)
				if e.Kind == workspace.EventEnded && e.MessageID == "last" {
					return
				}
			}
		}()
		<-begun
		for _, id := range []string{"first", "fails", "last"} {
			_, err := m.Submit(ctx, "ann", w.Message(id))
			require.NoError(t, err)
		}
		for range 3 { // with a run, with those that wait, and with one that has failed
			<-w.Holding
			v, err := m.View(ctx, "ann")
			require.NoError(t, err)
			ui := v.As(w.Agent)
			w.CheckAll(t, "the view", shown(ui))
			w.Check(t, "the view", fmt.Sprintf("%+v %+v %+v %+v", ui.Run, ui.Queue, ui.DeadLetters, ui.Suspended()))
		}
		all := <-events
		require.NoError(t, failed)
		w.CheckAll(t, "the events", all, "text-asked")
		require.NotContains(t, all, "is missing")
	})
}

func shown(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

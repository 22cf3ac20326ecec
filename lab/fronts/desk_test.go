package fronts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/aguistate"
	"github.com/agentstate/state/adapter/aisdkstate"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

var title = &state.Field[string]{Name: "title", Owner: "desk", Read: state.Public, Write: state.Public}

// desk is a server of all pages, with a model that does what the user says: a step for
// each part between slashes. It says texts in capital letters.
type desk struct {
	t    testing.TB
	m    *workspace.Manager
	url  string
	goOn chan struct{} // a model that holds waits for it
	ok   atomic.Bool   // a model that fails does so no longer
}

func newDesk(t testing.TB) *desk {
	d := &desk{t: t, goOn: make(chan struct{})}
	pay := tool.Must(tool.New("pay", "Pays.", func(_ context.Context, in input) (string, error) {
		return "paid " + in.Text, nil
	}, tool.NeedsApproval(func(_ context.Context, in input) (string, bool) { return in.Text + " is much", true })))
	note := tool.Must(tool.New("note", "Notes.", func(_ context.Context, in input) (string, error) {
		if in.Text == "fail" {
			return "", errors.New("no route to db-7")
		}
		return "noted " + in.Text, nil
	}))
	m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{
		Schema: state.MustSchema(title, state.Team{"desk": {"ui"}}),
		Run:    workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"desk": {Ask: d.ask, Tools: []*tool.Tool{pay, note}}}}),
	})
	require.NoError(t, err)
	who := func(*http.Request, string) (statehttp.Who, error) {
		return statehttp.Who{User: "ann", Agent: "ui"}, nil
	}
	agui, err := aguistate.New(m, &aguistate.Options{Who: who})
	require.NoError(t, err)
	aisdk, err := aisdkstate.New(m, &aisdkstate.Options{Who: who})
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/agent", agui)
	mux.Handle("/api/chat/", http.StripPrefix("/api/chat", aisdk))
	mux.Handle("GET /built/", http.FileServerFS(os.DirFS("pages")))
	mux.HandleFunc("GET /page/{name}", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		fmt.Fprintf(w, `<!doctype html><title>%s</title><link rel="icon" href="data:,"><link rel="stylesheet" href="/built/%[1]s.css"><div id="root"></div><script type="module" src="/built/%[1]s.js"></script>`, name)
	})
	srv := httptest.NewServer(mux)
	d.m, d.url = m, srv.URL
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
		_ = m.Close() // it cuts off runs that hold
	})
	return d
}

type input struct {
	Text string `json:"text"`
}

// ask does the next step.
func (d *desk) ask(ctx context.Context, t *loop.Turn) error {
	run, _ := workspace.FromContext(ctx)
	done, script := 0, ""
	for _, m := range state.Messages.GetOr(run.State(), nil) {
		switch {
		case m.Role() == "user":
			done, script = 0, m.Text()
		case m.Role() == "assistant":
			done++
		}
	}
	steps := strings.Split(script, "/")
	verb, text := "say", "done"
	if done < len(steps) {
		verb, text, _ = strings.Cut(strings.TrimSpace(steps[done]), " ")
	}
	r := state.InferenceResult{Agent: "desk", Usage: state.Usage{Output: 7}}
	switch verb {
	case "fail":
		if !d.ok.Load() {
			return errors.New("key sk-123 is refused")
		}
	case "call":
		name, arg, _ := strings.Cut(text, " ")
		in, _ := state.JSONOf(input{arg})
		run.EmitInput(0, name, string(in))
		r.Output = []state.Message{state.ToolCalls(state.ToolCall{ID: "c", Name: name, Input: in})}
		return t.Said(ctx, r)
	case "title":
		if err := title.Set(run.State(), text); err != nil {
			return err
		}
	}
	text = strings.ToUpper(text) // not what the page shows of the user
	think := verb == "think"
	if think {
		run.EmitThought("Hm, ")
		run.EmitThought("so.")
	}
	for _, word := range strings.SplitAfter(text, " ") {
		if strings.TrimSpace(word) == "HOLD" {
			select {
			case <-d.goOn:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		run.Emit(word)
	}
	said := state.Message(state.AssistantText(text))
	if think {
		raw, _ := state.JSONOf(map[string]string{"type": "text", "text": text})
		var err error
		if said, err = state.Parts("assistant", `{"type":"thinking","thinking":"Hm, so."}`, raw); err != nil {
			return err
		}
	}
	r.Output = []state.Message{said}
	return t.Said(ctx, r)
}

// view returns a thread.
func (d *desk) view(thread string) *workspace.View {
	v, err := d.m.View(context.Background(), workspace.Thread("ann", thread))
	require.NoError(d.t, err)
	return v
}

// branches returns the thread 1 and its branches.
func (d *desk) branches() (list []string) {
	for s, err := range d.m.Threads(context.Background(), "ann", "") {
		require.NoError(d.t, err)
		list = append(list, s.UserID)
	}
	return list
}

// saidIn returns the texts of a conversation.
func saidIn(v *workspace.View) (list []string) {
	for m := range v.Messages(0, -1) {
		list = append(list, m.Message.Text())
	}
	return list
}

// Service is a support desk behind HTTP. Any number of its processes may share a
// SQLite file: kill one in the middle of an answer, and another one goes on.
//
//	go run ./service -db desk.db
//	curl -N 127.0.0.1:8080/users/ann/events
//	curl -d id=1 -d 'text=Refund my order W1.' 127.0.0.1:8080/users/ann/messages
//	curl 127.0.0.1:8080/users/ann # shows the key of the call that waits
//	curl -d by=eve 127.0.0.1:8080/users/ann/approvals/KEY
//	curl 127.0.0.1:8080/users/ann/threads
//
// With thread=…, a request is about another conversation of the user.
//
// The model is that of OpenAI if OPENAI_API_KEY is set, or that of a server with
// the same API if OPENAI_BASE_URL is set as well. Otherwise it is scripted.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/wire"
	"github.com/agentstate/state/workspace"
)

const request = `{"model":"gpt-5.4-mini","stream":true,"messages":[{"role":"system","content":"You are a support desk. Be brief."}]}`

// The agent "ui" stands for pages, which show what it may read. Eve decides about
// calls that wait: whoever is not in the Team may not.
var (
	refunds = &state.Field[map[string]float64]{
		Name: "refunds", Description: "By order, in euros.", Read: state.Public, Handler: state.MergeMap[map[string]float64](),
	}
	schema = state.MustSchema(state.Team{"desk": {"ui", "eve"}}, refunds)
)

type order struct {
	Order  string  `json:"order"`
	Amount float64 `json:"amount"`
}

// bank refunds an order, once for each key.
type bank func(ctx context.Context, key string, in order) error

// tool returns a tool that waits for a person if it is about much.
func (b bank) tool() *tool.Tool {
	return tool.Must(tool.New("refund", "Refund an order.", func(ctx context.Context, in order) (map[string]float64, error) {
		call, _ := tool.CallOf(ctx)
		return map[string]float64{in.Order: in.Amount}, b(ctx, call.Key, in)
	}, tool.To(refunds, ""), tool.NeedsApproval(func(_ context.Context, in order) (string, bool) {
		return fmt.Sprintf("%v euros are much", in.Amount), in.Amount > 100
	})))
}

// model sends one request. Package wire completes it with the conversation and the
// tools, records the answer, and tells those who watch.
func model(client *http.Client, url string) func(context.Context, *loop.Turn) error {
	return func(ctx context.Context, _ *loop.Turn) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/chat/completions", strings.NewReader(request))
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err = io.Copy(io.Discard, resp.Body); err == nil && resp.StatusCode != http.StatusOK {
			err = errors.New("the model answers with " + resp.Status)
		}
		return err
	}
}

// thread returns the id of the conversation that a request is about. Names from
// outside always go through Thread.
func thread(r *http.Request) string {
	return workspace.Thread(r.PathValue("id"), r.FormValue("thread"))
}

// title is the first message of a conversation, if pages may read it.
func title(st *state.State) string {
	if said := state.Messages.GetOr(st.As("ui"), nil); len(said) > 0 {
		return said[0].Text()
	}
	return ""
}

// routes handles requests. Who may see which user is for a program to say.
func routes(m *workspace.Manager) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /users/{id}/messages", func(w http.ResponseWriter, r *http.Request) {
		msg := workspace.Message{ID: r.FormValue("id"), Content: state.UserText(r.FormValue("text"))}
		answer{w}.send(m.Submit(r.Context(), thread(r), msg))
	})
	mux.HandleFunc("POST /users/{id}/approvals/{key}", func(w http.ResponseWriter, r *http.Request) {
		msg := workspace.Message{Decisions: []tool.Decision{tool.Approve(r.PathValue("key"))}, Agent: r.FormValue("by")}
		answer{w}.send(m.Submit(r.Context(), thread(r), msg))
	})
	mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) {
		v, err := m.View(r.Context(), thread(r))
		if err == nil {
			v = v.As("ui")
		}
		answer{w}.send(v, err)
	})
	mux.HandleFunc("GET /users/{id}/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for e, err := range m.Watch(r.Context(), thread(r)).As("ui") {
			data, _ := json.Marshal(e)
			if _, failed := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e.Kind, data); err != nil || failed != nil {
				return // the client takes a view, and watches again
			}
			_ = http.NewResponseController(w).Flush()
		}
	})
	mux.HandleFunc("GET /users/{id}/threads", func(w http.ResponseWriter, r *http.Request) {
		titles := map[string]string{}
		var failed error
		for s, err := range m.Threads(r.Context(), r.PathValue("id"), "") {
			_, name := workspace.SplitThread(s.UserID)
			titles[name], failed = s.Title, errors.Join(failed, err)
		}
		answer{w}.send(titles, failed)
	})
	return http.NewCrossOriginProtection().Handler(readForms(mux)) // no page of another site decides
}

// readForms reads the form of a request, which must not be long or slow. It refuses
// requests under a name, which anybody may have pointed to this machine.
func readForms(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u := url.URL{Host: r.Host}
		if name := u.Hostname(); name != "localhost" && net.ParseIP(name) == nil {
			http.Error(w, "this server has another name", http.StatusMisdirectedRequest)
			return
		}
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(10 * time.Second))
		r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
		err := r.ParseForm() // whose error ParseMultipartForm may hide
		if err == nil {
			err = r.ParseMultipartForm(1 << 20)
		}
		if err != nil && !errors.Is(err, http.ErrNotMultipart) {
			http.Error(w, "want a form", http.StatusBadRequest)
			return
		}
		_ = control.SetReadDeadline(time.Time{})
		h.ServeHTTP(w, r)
	})
}

type answer struct{ http.ResponseWriter }

func (a answer) send(v any, err error) {
	switch {
	case err == nil:
		_ = json.NewEncoder(a).Encode(v)
	case errors.Is(err, workspace.ErrNotSuspended), errors.Is(err, workspace.ErrExpired), errors.Is(err, state.ErrUnknownCall):
		http.Error(a, err.Error(), http.StatusConflict)
	case errors.Is(err, state.ErrDenied):
		http.Error(a, err.Error(), http.StatusForbidden)
	default:
		http.Error(a, err.Error(), http.StatusServiceUnavailable) // the message may be sent again, with its id
	}
}

// options are those of the workspaces: one agent, with one tool.
func options(client *http.Client, b bank) *workspace.Options {
	desk := loop.Agent{Ask: model(client, modelURL()), Tools: []*tool.Tool{b.tool()}}
	return &workspace.Options{
		Schema: schema,
		Title:  title,
		Run:    workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"": desk}}),
	}
}

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "the `address` to listen on")
	file := flag.String("db", "desk.db", "the SQLite `file`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	db, err := sqlitestore.Open(context.Background(), *file, nil)
	check(err)
	m, err := workspace.Open(context.Background(), db, options(&http.Client{Transport: &wire.Transport{}}, printed))
	check(err)
	srv := &http.Server{Addr: *addr, Handler: routes(m), BaseContext: func(net.Listener) context.Context { return ctx }, ReadHeaderTimeout: 10 * time.Second}
	go func() { check(srv.ListenAndServe()) }()
	<-ctx.Done() // the streams of events end as well
	stop()       // the next signal ends the process at once
	deadline, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	check(errors.Join(m.Shutdown(deadline), srv.Shutdown(deadline), db.Close())) // other processes go on
}

func check(err error) {
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}

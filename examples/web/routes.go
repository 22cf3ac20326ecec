package main

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

//go:embed page
var page embed.FS

// user returns whose chats a request is about. This is the place for the sign-in
// of a program: nothing else says who may see what.
func user(*http.Request) string { return "ann" }

// thread returns the id of the chat that a request names, which is one of the
// user, whatever the name is.
func thread(r *http.Request) string { return workspace.Thread(user(r), r.PathValue("thread")) }

// routes serves the page, and what it asks for.
func routes(m *workspace.Manager) http.Handler {
	files, _ := fs.Sub(page, "page")
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /threads", func(w http.ResponseWriter, r *http.Request) { answer(w)(list(r.Context(), m, user(r))) })
	mux.HandleFunc("POST /threads", func(w http.ResponseWriter, r *http.Request) {
		var in beginning
		if read(w, r, &in) {
			answer(w)(in.do(r.Context(), m, user(r)))
		}
	})
	mux.HandleFunc("GET /threads/{thread}", func(w http.ResponseWriter, r *http.Request) { answer(w)(snapshot(r.Context(), m, thread(r))) })
	mux.HandleFunc("GET /threads/{thread}/events", func(w http.ResponseWriter, r *http.Request) { follow(w, r, m) })
	mux.HandleFunc("POST /threads/{thread}/{action}", func(w http.ResponseWriter, r *http.Request) {
		var in action
		if read(w, r, &in) {
			answer(w)(in.do(r.Context(), m, thread(r), r.PathValue("action")))
		}
	})
	return ownHost(http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})))
}

// ownHost refuses requests under a name, which anybody may have pointed to this
// machine: then the page of that name is no other site to a browser. A program that
// is reached under a name accepts it here.
func ownHost(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u := url.URL{Host: r.Host}
		if name := u.Hostname(); name != "localhost" && net.ParseIP(name) == nil {
			http.Error(w, "this server has another name", http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// read reads what a script of the page has sent, as JSON. It reports whether there is
// something to do, and has answered if not.
func read(w http.ResponseWriter, r *http.Request, in any) bool {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(10 * time.Second))
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if kind != "application/json" || err != nil || json.Unmarshal(data, in) != nil {
		http.Error(w, "want JSON", http.StatusBadRequest)
		return false
	}
	_ = control.SetReadDeadline(time.Time{})
	return true
}

// beginning is how a chat begins. With From, it has what was said in another one in
// front of the message with the number Before.
type beginning struct {
	From   string `json:"from"`
	Before int    `json:"before"`
}

// do returns the name of the new chat.
func (in beginning) do(ctx context.Context, m *workspace.Manager, user string) (name string, err error) {
	id := workspace.NewThread(user)
	if in.Before > 0 {
		err = m.Fork(ctx, workspace.Thread(user, in.From), id, workspace.ForkPoint{Message: in.Before})
	}
	_, name = workspace.SplitThread(id)
	return name, err
}

// action is what a person does.
type action struct {
	ID        string          `json:"id"` // of the message, made by the page: one that is sent again is handled once
	Text      string          `json:"text"`
	Decisions []tool.Decision `json:"decisions"` // about calls that wait, by their keys
	Run       string          `json:"run"`
}

func (in action) do(ctx context.Context, m *workspace.Manager, thread, verb string) (any, error) {
	switch verb {
	case "messages":
		msg := workspace.Message{ID: in.ID, Decisions: in.Decisions, Agent: "ui"}
		if in.Text != "" {
			msg.Content = state.UserText(in.Text)
		}
		out, err := m.Submit(ctx, thread, msg)
		return out.Status, err // the answer is shown by the view
	case "stop":
		return nil, m.Cancel(ctx, thread, in.Run, "stopped by the user")
	case "retry":
		return nil, m.Retry(ctx, thread, in.ID)
	case "discard":
		return nil, m.Discard(ctx, thread, in.ID)
	default:
		return nil, workspace.ErrNotFound
	}
}

// snapshot returns what the page shows of a chat, as JSON.
func snapshot(ctx context.Context, m *workspace.Manager, thread string) (any, error) {
	v, err := m.View(ctx, thread)
	if err != nil {
		return nil, err
	}
	ui, begin := v.As("ui"), 0
	said := slices.Collect(ui.Messages(0, -1))
	if place, err := transcript.PlaceOf(v.State().As("desk")); err == nil && place.Begin > 0 && place.Begin < len(said) {
		begin = said[place.Begin].Number
	}
	type field struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	var fields []field
	for _, f := range ui.State().Fields() {
		if f.Name != state.Messages.Name {
			fields = append(fields, field{f.Name, f.Description})
		}
	}
	return map[string]any{"view": ui, "fields": fields, "window": begin}, nil
}

// follow sends the events of a chat as they come. A page that is too slow is
// disconnected; it comes back, and takes a snapshot.
func follow(w http.ResponseWriter, r *http.Request, m *workspace.Manager) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	fmt.Fprint(w, "retry: 500\n\n")
	for e, err := range m.Watch(r.Context(), thread(r)).As("ui") {
		if err != nil {
			return
		}
		data, err := json.Marshal(e)
		if err != nil {
			return
		}
		_ = out.SetWriteDeadline(time.Now().Add(10 * time.Second))
		if _, err = fmt.Fprintf(w, "data: %s\n\n", data); err != nil || out.Flush() != nil {
			return
		}
	}
}

// chat is a row of the list.
type chat struct {
	ID      string    `json:"id"`
	Title   string    `json:"title"`
	Active  time.Time `json:"active"`
	Running bool      `json:"running,omitempty"`
	Waiting int       `json:"waiting,omitempty"` // calls that a person is to decide about
	Failed  int       `json:"failed,omitempty"`
}

// list returns the chats of a user, the latest first.
func list(ctx context.Context, m *workspace.Manager, user string) ([]chat, error) {
	chats := []chat{}
	for s, err := range m.Threads(ctx, user, "") {
		if err = cmp.Or(err, s.Err); err != nil {
			return nil, err
		}
		if _, id := workspace.SplitThread(s.UserID); id != "" { // all but what is the user's own workspace
			title := cmp.Or(s.Title, "New chat")
			chats = append(chats, chat{id, title, s.LastActive, s.Run != nil, s.Suspended, s.DeadLetters})
		}
	}
	slices.SortFunc(chats, func(a, b chat) int { return b.Active.Compare(a.Active) })
	return chats, nil
}

// answer returns a function that sends a result, or an error.
func answer(w http.ResponseWriter) func(result any, err error) {
	return func(result any, err error) {
		status := http.StatusServiceUnavailable // it may be sent again, with its id
		switch {
		case err == nil:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(result)
			return
		case errors.Is(err, workspace.ErrNotSuspended), errors.Is(err, workspace.ErrExpired), errors.Is(err, state.ErrUnknownCall),
			errors.Is(err, workspace.ErrNotFound), errors.Is(err, state.ErrCompacted):
			status = http.StatusConflict // somebody else was faster, or the time is over
		case errors.Is(err, state.ErrDenied):
			status = http.StatusForbidden
		case errors.Is(err, workspace.ErrInvalid), errors.Is(err, state.ErrInvalid), errors.Is(err, state.ErrLimitExceeded):
			status = http.StatusBadRequest
		}
		http.Error(w, err.Error(), status)
	}
}

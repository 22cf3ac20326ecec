package aguistate

import (
	"net/http"

	"github.com/agentstate/state/internal/pagehttp/chat"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/workspace"
)

// Options are those of package statehttp. Titles is not used. Who is asked with the
// name "", before the body is read, and again with that of the thread.
type Options = statehttp.Options

// Handler is an http.Handler for POST requests of clients of AG-UI. It refuses
// those of the pages of other sites, as [http.CrossOriginProtection] defines them,
// bodies that are not application/json, and on a loopback address names of the server
// that Options.Hosts does not have. It is safe for concurrent use.
type Handler struct {
	chats *chat.Handler
}

// New returns a Handler for the workspaces of a Manager, which needs an Options.Run.
// It returns an error if the Options have no Who, or an invalid TrustedOrigin.
func New(m *workspace.Manager, opts *Options) (*Handler, error) {
	chats, err := chat.New("aguistate", "POST", m, opts)
	if err != nil {
		return nil, err
	}
	return &Handler{chats}, nil
}

// ServeHTTP answers a request with a stream of events. A client that goes away
// ends nothing but the stream.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.chats.Admit(w, r) {
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "want a POST", http.StatusMethodNotAllowed)
		return
	}
	s := &stream{}
	read := func(body []byte) (thread string, err error) {
		s.in, err = readInput(body)
		if err != nil {
			return "", err
		}
		return s.in.ThreadID, nil
	}
	h.chats.Answer(w, r, read, func(req *chat.Request) error {
		if err := req.May(statehttp.ActionRead); err != nil {
			return err
		}
		out, ok := h.chats.Begin(w, r)
		if ok {
			defer out.End()
			s.Request, s.out = req, out
			s.serve()
		}
		return nil
	})
}

package genkitstate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/firebase/genkit/go/core/x/session"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
)

// keyPrefix stands before the ids of sessions in a store.
const keyPrefix = "genkit:session:"

// NewStore returns a store of Genkit's sessions for one request. It saves a
// session only if nobody else has saved it since the request has loaded or saved
// it last, and creates only a session that does not exist. Any other save is
// [store.ErrConflict] and writes nothing: load the session again, through
// another NewStore, and repeat the request.
//
// All sessions that are loaded through one NewStore count as one writer. A
// program that serves several requests with one is not told of conflicts
// between them.
//
// The session with an id is the value of the key "genkit:session:" and the id in
// db, as JSON. An id that makes no valid key is [store.ErrInvalidKey]. The
// returned store is safe for concurrent use.
func NewStore[S any](db store.Store) session.Store[S] {
	return &sessions[S]{db: db, seen: map[string]store.Revision{}}
}

type sessions[S any] struct {
	db   store.Store
	mu   sync.Mutex // held while a session is saved: of two saves, the later counts
	seen map[string]store.Revision
}

func (s *sessions[S]) Get(ctx context.Context, id string) (*session.Data[S], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry, err := store.Get(ctx, s.db, keyPrefix+id)
	if errors.Is(err, store.ErrNotFound) {
		delete(s.seen, id)
		return nil, nil // as session.Store demands it
	}
	if err != nil {
		return nil, fmt.Errorf("genkitstate: load session: %w", err)
	}
	var data session.Data[S]
	if err := json.Unmarshal(entry.Value, &data); err != nil {
		return nil, fmt.Errorf("genkitstate: load session: %w", err)
	}
	s.seen[id] = entry.Revision
	return &data, nil
}

func (s *sessions[S]) Save(ctx context.Context, id string, data *session.Data[S]) error {
	value, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("genkitstate: save session: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	condition := store.IfAbsent
	if revision, ok := s.seen[id]; ok {
		condition = store.IfRevision(revision)
	}
	revision, err := store.Put(ctx, s.db, keyPrefix+id, value, condition)
	if err != nil {
		return fmt.Errorf("genkitstate: save session: %w", err)
	}
	s.seen[id] = revision
	return nil
}

// Session returns a context with a session that shows the fields that st may
// read to the templates of prompts, as {{@state.name}}. Each rendering shows the
// values of that moment. Secrets are masked, also where other fields repeat
// them. The conversation and references to Go values are left out.
//
// The session is for reading: what its UpdateState is given is kept in the
// session and not in the state.
func Session(ctx context.Context, st *state.State) context.Context {
	s, _ := session.New(ctx, session.WithInitialState[any](fields{st})) // only a store can fail
	return session.NewContext(ctx, s)
}

// fields is the state of a session. A session copies its state by way of JSON
// whenever it is asked for it.
type fields struct{ st *state.State }

func (f fields) MarshalJSON() ([]byte, error) {
	st := f.st.Snapshot() // one moment
	values := map[string]any{}
	for _, info := range st.Fields() {
		switch {
		case !info.Set || info.Name == state.Messages.Name:
		case info.Secret:
			values[info.Name] = state.Masked{}
		default:
			if value, err := state.GetAs[state.JSON](st, info.Name); err == nil { // not of a reference
				values[info.Name] = value
			}
		}
	}
	text, err := state.JSONOf(values)
	return []byte(st.Redact(string(text))), err
}

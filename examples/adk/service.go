package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace"
	"google.golang.org/adk/v2/platform"
	"google.golang.org/adk/v2/session"
)

// The fields of a session. Declare them in the schema of the Manager, next to
// those of the agents, which may neither read nor write these.
var (
	Session = &state.Field[Meta]{Name: "adk_session"}
	Events  = &state.Field[[]state.JSON]{Name: "adk_events"}
	Values  = &state.Field[map[string]state.JSON]{
		Name: "adk_values", Handler: state.MergeMap[map[string]state.JSON](),
	}
)

// Meta says whose session a workspace is.
type Meta struct {
	App     string    `json:"app"`
	User    string    `json:"user"`
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
}

// Name returns the id of the workspace of a session, which is a thread of its
// user. Without a session it is that of the values "user:…", without a user that
// of the values "app:…".
func Name(app string, parts ...string) string {
	user, id := "adk/"+url.PathEscape(app), ""
	if len(parts) > 0 {
		user += "/" + url.PathEscape(parts[0])
	}
	if len(parts) > 1 {
		id = parts[1]
	}
	return workspace.Thread(user, id)
}

// parse returns the parts of the id of the workspace of a session.
func parse(name string) (app, user, id string, err error) {
	owner, id := workspace.SplitThread(name)
	parts := strings.Split(owner, "/")
	if len(parts) != 3 || parts[0] != "adk" || id == "" {
		return "", "", "", fmt.Errorf("adk: %q is not the workspace of a session", name)
	}
	for i, part := range parts {
		if parts[i], err = url.PathUnescape(part); err != nil {
			return "", "", "", fmt.Errorf("adk: %q is not the workspace of a session: %w", name, err)
		}
	}
	return parts[1], parts[2], id, nil
}

// Service returns a service whose sessions are workspaces. In a run of the
// workspace of a session, its events are changes of that run: events, and what
// tools have written, are committed together when the results of a step have
// come, and at the end of the run. Elsewhere, each event is an Update.
//
// Values "app:…" and "user:…" are in separate workspaces. They are written
// before the event, in an Update each: a process that dies in between leaves
// them without the event.
func Service(m *workspace.Manager) session.Service { return &service{m} }

type service struct{ m *workspace.Manager }

// within returns the run of a workspace that ctx carries, and its state or the
// branch of it in which an agent works.
func within(ctx context.Context, name string) (*workspace.Run, *state.State) {
	run, ok := workspace.FromContext(ctx)
	if !ok || run.UserID() != name {
		return nil, nil
	}
	st, _ := state.FromContext(ctx)
	return run, st
}

// read calls fn with the state of a workspace.
func (s *service) read(ctx context.Context, name string, fn func(*state.State) error) error {
	if run, st := within(ctx, name); run != nil {
		return fn(st)
	}
	view, err := s.m.View(ctx, name)
	if err != nil {
		return err
	}
	return fn(view.State())
}

// write calls fn with the state of a workspace. In a run of it, what fn writes
// is committed only if commit is true.
func (s *service) write(ctx context.Context, name string, commit bool, fn func(*state.State) error) error {
	run, st := within(ctx, name)
	if run == nil {
		return s.m.Update(ctx, name, func(w *workspace.Workspace) error { return w.State().Update(fn) })
	}
	if err := st.Update(fn); err != nil || !commit {
		return err
	}
	return run.Commit(ctx)
}

var errNoSession = errors.New("adk: no such session")

func (s *service) Create(ctx context.Context, req *session.CreateRequest) (*session.CreateResponse, error) {
	meta := Meta{App: req.AppName, User: req.UserID, ID: req.SessionID, Created: platform.Now(ctx)}
	if meta.ID == "" {
		meta.ID = platform.NewUUID(ctx)
	}
	if meta.App == "" || meta.User == "" {
		return nil, errors.New("adk: a session needs an app and a user")
	}
	own, err := s.share(ctx, meta, req.State)
	if err != nil {
		return nil, err
	}
	err = s.write(ctx, Name(meta.App, meta.User, meta.ID), false, func(tx *state.State) error {
		if Session.Has(tx) {
			return fmt.Errorf("adk: session %q exists", meta.ID)
		}
		return errors.Join(Session.Set(tx, meta), Values.Set(tx, own))
	})
	if err != nil {
		return nil, err
	}
	sess, err := s.load(ctx, Name(meta.App, meta.User, meta.ID))
	return &session.CreateResponse{Session: sess}, err
}

func (s *service) Get(ctx context.Context, req *session.GetRequest) (*session.GetResponse, error) {
	sess, err := s.load(ctx, Name(req.AppName, req.UserID, req.SessionID))
	if err != nil {
		return nil, err
	}
	sess.filter(req.NumRecentEvents, req.After)
	return &session.GetResponse{Session: sess}, nil
}

// List reads the heads of all workspaces of the Manager.
func (s *service) List(ctx context.Context, req *session.ListRequest) (*session.ListResponse, error) {
	list := &session.ListResponse{}
	for found, err := range s.m.Summaries(ctx, "") {
		if err != nil {
			return nil, err
		}
		app, user, _, err := parse(found.UserID)
		if err != nil || app != req.AppName || req.UserID != "" && user != req.UserID {
			continue
		}
		sess, err := s.load(ctx, found.UserID)
		if errors.Is(err, errNoSession) { // deleted in the meantime
			continue
		}
		if err != nil {
			return nil, err
		}
		sess.events = nil // as the services of adk do it
		list.Sessions = append(list.Sessions, sess)
	}
	return list, nil
}

func (s *service) Delete(ctx context.Context, req *session.DeleteRequest) error {
	return s.m.Delete(ctx, Name(req.AppName, req.UserID, req.SessionID))
}

func (s *service) AppendEvent(ctx context.Context, cur session.Session, event *session.Event) error {
	sess, ok := cur.(*chat)
	if !ok || event == nil {
		return fmt.Errorf("adk: an event %v for a session of type %T", event, cur)
	}
	if event.Partial {
		return nil
	}
	stored := *event
	stored.Actions.StateDelta = maps.Clone(event.Actions.StateDelta)
	maps.DeleteFunc(stored.Actions.StateDelta, func(key string, _ any) bool {
		return strings.HasPrefix(key, session.KeyPrefixTemp)
	})
	own, err := s.share(ctx, sess.meta, stored.Actions.StateDelta)
	if err != nil {
		return err
	}
	data, err := json.Marshal(&stored)
	if err != nil {
		return err
	}
	err = s.write(ctx, sess.name(), endsStep(event), func(tx *state.State) error {
		if !Session.Has(tx) {
			return errNoSession
		}
		if len(own) > 0 {
			if err := Values.Set(tx, own); err != nil {
				return err
			}
		}
		return Events.Set(tx, []state.JSON{state.JSON(data)})
	})
	if err != nil {
		return err
	}
	sess.add(&stored, event.Actions.StateDelta)
	return nil
}

// endsStep reports whether an event has the results of a step. Before that, the
// session has calls without results, which no provider accepts. If a person has
// to confirm a call, the step ends with the run.
func endsStep(event *session.Event) bool {
	if len(event.Actions.RequestedToolConfirmations) > 0 {
		return false
	}
	for _, part := range parts(event) {
		if part.FunctionResponse != nil {
			return true
		}
	}
	return false
}

// share writes the values "app:…" and "user:…" of a delta to their workspaces,
// and returns those of the session.
func (s *service) share(ctx context.Context, meta Meta, delta map[string]any) (map[string]state.JSON, error) {
	own, shared := map[string]state.JSON{}, map[string]map[string]state.JSON{}
	for key, value := range delta {
		name := ""
		switch {
		case strings.HasPrefix(key, session.KeyPrefixTemp):
			continue
		case strings.HasPrefix(key, session.KeyPrefixApp):
			name = Name(meta.App)
		case strings.HasPrefix(key, session.KeyPrefixUser):
			name = Name(meta.App, meta.User)
		}
		data, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("adk: value %q: %w", key, err)
		}
		if name == "" {
			own[key] = state.JSON(data)
			continue
		}
		if shared[name] == nil {
			shared[name] = map[string]state.JSON{}
		}
		shared[name][key] = state.JSON(data)
	}
	for name, values := range shared {
		err := s.write(ctx, name, true, func(tx *state.State) error { return Values.Set(tx, values) })
		if err != nil {
			return nil, err
		}
	}
	return own, nil
}

// load returns the session of a workspace, with what it shares with others.
func (s *service) load(ctx context.Context, name string) (*chat, error) {
	sess := &chat{values: map[string]any{}}
	err := s.read(ctx, name, func(st *state.State) error {
		if !Session.Has(st) {
			return errNoSession
		}
		sess.meta = Session.GetOr(st, Meta{})
		for i, data := range Events.GetOr(st, nil) {
			event := &session.Event{}
			if err := json.Unmarshal([]byte(data), event); err != nil {
				return fmt.Errorf("adk: event %d: %w", i, err)
			}
			sess.events = append(sess.events, event)
		}
		return sess.merge(Values.GetOr(st, nil))
	})
	for _, shared := range []string{Name(sess.meta.App), Name(sess.meta.App, sess.meta.User)} {
		if err != nil {
			return nil, err
		}
		err = s.read(ctx, shared, func(st *state.State) error { return sess.merge(Values.GetOr(st, nil)) })
	}
	return sess, err
}

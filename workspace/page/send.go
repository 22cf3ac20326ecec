package page

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/work"
)

// Input is what a page sends.
type Input struct {
	// ID is that of the [workspace.Message]: an input that is sent again is handled
	// once (default: a random one).
	ID string
	// Content is what the person says, as [Content] returns it, or nil.
	Content   state.Message
	Decisions []tool.Decision
	// Fields are new values of fields, and null for those to delete.
	Fields map[string]state.JSON
	Tools  []workspace.ClientTool // of the page
	// Replaces is the ID of an item of a person that the conversation has. Content is
	// said in its place, or the same once more without Content, in a thread of its own
	// with what was there before: a branch.
	Replaces string
	WhenBusy workspace.WhenBusy
}

// Sent says what has become of an Input.
type Sent struct {
	Thread  string // the id of the workspace that handles it: another one for a branch
	ID      string // of the message; empty if nothing but Fields was stored
	Outcome workspace.Outcome
}

// Send hands over what a page sends, with the rights of the Agent. It returns when
// that is stored, and does not wait for the answer.
//
// An ID that the conversation has with another text is an edit, as if Replaces named
// it. An input that is sent again is done once, also if it makes a branch.
//
// The error is state.ErrDenied if the page may not replace a field,
// workspace.ErrNotFound if the conversation does not have what is to be replaced, and
// otherwise as of [workspace.Manager.Submit], with workspace.ErrBusy for a message
// that was rejected.
func (s *Source) Send(ctx context.Context, thread string, in Input) (Sent, error) {
	if err := s.checkFields(ctx, thread, in.Fields); err != nil {
		return Sent{}, err
	}
	if in.ID == "" {
		in.ID = rand.Text()
	}
	switch isMessage := in.Content != nil || len(in.Decisions) > 0; {
	case in.Replaces != "":
		return s.sendBranch(ctx, thread, in)
	case !isMessage && len(in.Fields) == 0:
		return Sent{}, fmt.Errorf("page: %w: the input is empty", workspace.ErrInvalid)
	case !isMessage:
		return Sent{Thread: thread}, s.setFields(ctx, thread, in.Fields)
	}
	out, err := s.submit(ctx, thread, in)
	if err != nil || out.Outcome.Status != workspace.StatusDuplicate || in.Content == nil {
		return out, err
	}
	differs, err := s.differs(ctx, thread, in, out.Outcome)
	if err != nil || !differs {
		return out, err
	}
	in.Replaces = in.ID
	return s.sendBranch(ctx, thread, in)
}

// SetNote notes something about a message that the Agent may read, by the Number of its
// item: see [workspace.Manager.SetNote].
func (s *Source) SetNote(ctx context.Context, thread string, number int, text string) error {
	v, err := s.Manager.View(ctx, thread)
	if err != nil {
		return err
	}
	for m := range s.as(v).Messages(number-1, 1) {
		if m.Number == number {
			return s.Manager.SetNote(ctx, thread, work.Note{Message: number, By: s.Agent, Text: text})
		}
	}
	return fmt.Errorf("page: %w: the conversation does not have the message", workspace.ErrNotFound)
}

func (s *Source) submit(ctx context.Context, thread string, in Input) (Sent, error) {
	out, err := s.Manager.Submit(ctx, thread, workspace.Message{
		ID: in.ID, Content: in.Content, Decisions: in.Decisions, Agent: s.Agent, Fields: in.Fields, Tools: in.Tools, WhenBusy: in.WhenBusy,
	})
	if err == nil && out.Status == workspace.StatusRejected {
		err = workspace.ErrBusy
	}
	return Sent{Thread: thread, ID: in.ID, Outcome: out}, err
}

// differs reports whether a message that is known has another text.
func (s *Source) differs(ctx context.Context, thread string, in Input, out workspace.Outcome) (bool, error) {
	if out.Differs {
		return true, nil
	}
	v, err := s.Manager.View(ctx, thread)
	if err != nil {
		return false, err
	}
	m, ok := messageOf(v, in.ID)
	return ok && !m.Message.Equal(in.Content), nil
}

// messageOf returns the first message of a person that a run has stored, which is
// that of the run, or the one that an item is of.
func messageOf(v *workspace.View, id string) (workspace.NumberedMessage, bool) {
	for m := range v.Messages(0, -1) {
		if m.Message.Type() == "text" && m.Message.Role() == "user" && (m.Run == id || itemID(v.UserID(), m.Run, m.Number) == id) {
			return m, true
		}
	}
	return workspace.NumberedMessage{}, false
}

// sendBranch says something in the place of a message, in another thread.
func (s *Source) sendBranch(ctx context.Context, thread string, in Input) (Sent, error) {
	host, err := s.Manager.View(ctx, thread)
	if err != nil {
		return Sent{}, err
	}
	m, ok := messageOf(s.as(host), in.Replaces)
	if !ok {
		return Sent{}, fmt.Errorf("page: %w: the conversation does not have the message that is to be replaced", workspace.ErrNotFound)
	}
	if in.Content == nil {
		in.Content = m.Message
	}
	to := branchID(thread, m.Number, in.ID, string(in.Content.Raw()))
	err = s.Manager.Fork(ctx, thread, to, workspace.ForkPoint{Message: m.Number})
	if errors.Is(err, state.ErrCompacted) { // the fields are those of now
		err = s.Manager.Fork(ctx, thread, to, workspace.ForkPoint{Version: host.Version, Message: m.Number})
	}
	if err != nil && !errors.Is(err, workspace.ErrExists) {
		return Sent{}, err
	}
	return s.submit(ctx, to, in)
}

// branchMark is between the name of a thread and what tells its branches apart.
const branchMark = "~"

// branchID returns the id of the branch in which a message is said in the place of
// another one: the same for the same message.
func branchID(thread string, number int, id, said string) string {
	user, name := workspace.SplitThread(thread)
	return workspace.Thread(user, fmt.Sprintf("%s%s%d-%s", name, branchMark, number, hash(id, said)))
}

// Branch is a thread that [Source.Send] has made of another one.
type Branch struct {
	Thread string `json:"thread"` // its name
	Of     string `json:"of"`     // the name of the thread that it was made of
	// Number is that of the message that was replaced: the branch has what the other
	// thread has in front of it.
	Number int `json:"number"`
}

// Branches returns the branches of a thread and those of its branches, ordered by
// their names. It reads the list of the user's threads.
func (s *Source) Branches(ctx context.Context, thread string) ([]Branch, error) {
	user, name := workspace.SplitThread(thread)
	var list []Branch
	for t, err := range s.Manager.Threads(ctx, user, "") {
		if err != nil {
			return nil, err
		}
		_, found := workspace.SplitThread(t.UserID)
		if b, ok := branchOf(found); ok && (b.Of == name || strings.HasPrefix(b.Of, name+branchMark)) {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(a, b Branch) int { return strings.Compare(a.Thread, b.Thread) })
	return list, nil
}

// Newest returns the id of the thread itself or of the branch of it that was used
// last: what a page shows that does not know of branches.
func (s *Source) Newest(ctx context.Context, thread string) (string, error) {
	branches, err := s.Branches(ctx, thread)
	if err != nil || len(branches) == 0 {
		return thread, err
	}
	user, _ := workspace.SplitThread(thread)
	last, err := s.Manager.Summary(ctx, thread)
	for _, b := range branches {
		t, failed := s.Manager.Summary(ctx, workspace.Thread(user, b.Thread))
		if err = errors.Join(err, failed); !t.LastActive.Before(last.LastActive) { // at once, the branch was later
			last = t
		}
	}
	return last.UserID, err
}

// branchOf reads the name of a branch.
func branchOf(name string) (Branch, bool) {
	at := strings.LastIndex(name, branchMark)
	b := Branch{Thread: name}
	if at < 0 {
		return b, false
	}
	b.Of = name[:at]
	n, err := fmt.Sscanf(name[at+len(branchMark):], "%d-", &b.Number)
	return b, n == 1 && err == nil
}

// checkFields refuses to replace what a handler combines.
func (s *Source) checkFields(ctx context.Context, thread string, fields map[string]state.JSON) error {
	if len(fields) == 0 {
		return nil
	}
	v, err := s.Manager.View(ctx, thread)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range v.State().Fields() {
		isFree := f.Name != state.Messages.Name && (f.Handler == "replace" || f.Handler == "last_wins" || slices.Contains(s.Write, f.Name))
		if _, edits := fields[f.Name]; edits && !isFree {
			errs = append(errs, fmt.Errorf("page: %w: a page may not replace the field %q, whose handler is %s", state.ErrDenied, f.Name, f.Handler))
		}
	}
	return errors.Join(errs...)
}

// maxDepth is the depth of the value of a field, before that of its schema is known.
const maxDepth = 1000

// setFields stores fields at once. Nothing can be stored during a run: then the
// error is workspace.ErrBusy.
func (s *Source) setFields(ctx context.Context, thread string, fields map[string]state.JSON) error {
	values := map[string]any{}
	for name, value := range fields {
		v, err := jsontext.Decode([]byte(value), jsontext.Limits{Depth: maxDepth})
		if err != nil {
			return fmt.Errorf("page: %w: the field %q: %w", workspace.ErrInvalid, name, err)
		}
		values[name] = v
	}
	return s.Manager.Update(ctx, thread, func(w *workspace.Workspace) error {
		st := w.State()
		if s.Agent != "" {
			st = st.As(s.Agent)
		}
		return st.Patch(values)
	})
}

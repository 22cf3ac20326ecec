package page

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace"
)

// Source shows threads to pages, and takes what pages send. Its members must not
// change while it is used.
type Source struct {
	Manager *workspace.Manager // which has an Options.Run
	// Agent is the agent of the Team with whose rights pages read and write. With "",
	// they have those of the host: that is for a program without a Team.
	Agent string
	// Write names fields that a page may replace although their handler does not, such
	// as lists, to which Set appends. What the handler Replace or LastWins has, it may
	// write if Agent may.
	Write []string
	// Errors shows why tools and messages have failed. Such texts are for programmers,
	// and may name servers, files and keys.
	Errors bool
	// Files begins the addresses at which pages find the files of the user, which end
	// with their ids: that of the route /files/ of package statehttp (default "/files/").
	Files string
}

// Read returns what a page shows of a thread now. thread is the id of a workspace,
// as [workspace.Thread] returns it. One that does not exist is empty.
func (s *Source) Read(ctx context.Context, thread string) (*Page, error) {
	v, err := s.Manager.View(ctx, thread)
	if err != nil {
		return nil, err
	}
	p, _ := s.page(v)
	return p, nil
}

// ReadAt returns what a page has shown of a thread when it had a version. Of a shared
// field that has another value since, the value is not known: it is empty. The error
// is workspace.ErrInvalid for a version that the thread does not have, such as that
// of another one, and state.ErrCompacted for one that is not held any more.
func (s *Source) ReadAt(ctx context.Context, thread, version string) (*Page, error) {
	name, _, _ := strings.Cut(version, ".")
	number, _, _ := strings.Cut(name, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("page: %w: %q is no version", workspace.ErrInvalid, version)
	}
	v, err := s.Manager.ViewAt(ctx, thread, n)
	if err != nil {
		return nil, err
	}
	p, _ := s.page(v)
	if known, _, _ := strings.Cut(p.Version, "."); known != name {
		return nil, fmt.Errorf("page: %w: the version %q is of another thread", workspace.ErrInvalid, version)
	}
	if p.Version != version {
		for _, info := range v.State().Fields() {
			if info.Shared {
				p.Fields[info.Name] = ""
			}
		}
	}
	return p, nil
}

// events yields what happens in a thread, by rights.
func (s *Source) events(ctx context.Context, thread string) iter.Seq2[workspace.Event, error] {
	if s.Agent == "" {
		return s.Manager.Watch(ctx, thread).AsHost()
	}
	return s.Manager.Watch(ctx, thread).As(s.Agent)
}

// Stop ends the run of a thread that is under way, if there is one, and removes
// nothing: the question and what was said stay, see [workspace.Manager.Cancel]. With
// a turn, it ends only the run of that message, or takes the message out of the
// queue.
func (s *Source) Stop(ctx context.Context, thread, turn string) error {
	v, err := s.Manager.View(ctx, thread)
	if err != nil {
		return err
	}
	run := v.Run
	p, _ := s.page(v)
	switch {
	case turn != "" && slices.ContainsFunc(v.Queue, func(m workspace.Message) bool { return m.ID == turn }):
		return s.Manager.Discard(ctx, thread, turn)
	case run == nil || run.Message.ID == "" || turn != "" && !p.runs(run.Message.ID, turn):
		return nil
	}
	err = s.Manager.Cancel(ctx, thread, run.ID, "stopped by a person")
	if errors.Is(err, workspace.ErrNotFound) { // it has ended meanwhile
		return nil
	}
	return err
}

// runs reports whether the run of a message is that of a turn.
func (p *Page) runs(message, turn string) bool {
	return slices.ContainsFunc(p.Turns, func(t Turn) bool { return t.ID == message && (t.ID == turn || t.Of == turn) })
}

// as returns what the Agent may read of a view of the host.
func (s *Source) as(host *workspace.View) *workspace.View {
	if s.Agent == "" {
		return host
	}
	return host.As(s.Agent)
}

// page returns what a page shows of a view of the host, and the highest number of a
// message there.
func (s *Source) page(host *workspace.View) (p *Page, last int) {
	v := s.as(host)
	c := s.conversation(host, v)
	_, name := workspace.SplitThread(v.UserID())
	tail := Tail{Notes: slices.Clone(v.Notes)}
	c.addTail(&tail)
	for i := range tail.Notes {
		tail.Notes[i].Text = v.Redact(tail.Notes[i].Text)
	}
	fields := fieldsOf(v)
	return &Page{Thread: name, Version: versionOf(v, fields), Items: c.items, Fields: fields, Tail: tail}, c.last
}

// versionOf names the version of a view and of what the user's threads share. It
// differs from that of a workspace of the same name that was deleted.
func versionOf(v *workspace.View, fields map[string]state.JSON) string {
	name, shared := fmt.Sprintf("%d-%.16s", v.Version, v.Chain), ""
	for _, info := range v.State().Fields() {
		if info.Shared {
			shared += fmt.Sprintf("%q %q ", info.Name, fields[info.Name])
		}
	}
	if shared == "" {
		return name
	}
	sum := sha256.Sum256([]byte(shared))
	return fmt.Sprintf("%s.%x", name, sum[:8])
}

// fieldsOf returns the values of the fields of a view, without secrets, references
// and the conversation.
func fieldsOf(v *workspace.View) map[string]state.JSON {
	st, fields := v.State(), map[string]state.JSON{}
	for _, info := range st.Fields() {
		if !info.Set || info.Secret || info.Reference || info.Name == state.Messages.Name {
			continue
		}
		if value, ok := st.KV().JSON(info.Name); ok && value != "null" {
			fields[info.Name] = masked(v, value)
		}
	}
	return fields
}

// masked returns JSON without secrets.
func masked(v *workspace.View, value state.JSON) state.JSON {
	if value == "" {
		return ""
	}
	if value = state.JSON(v.Redact(string(value))); !value.Valid() { // a secret is a piece of JSON
		return `"[SECRET]"`
	}
	return value
}

// itemID returns the id of an item that begins with a message of a thread: its
// number, which is unique in the thread, with what tells threads and their earlier
// contents apart.
func itemID(thread, run string, number int) string {
	return strconv.Itoa(number) + "-" + hash(thread, run)
}

// hash returns eight letters that tell pairs of texts apart.
func hash(a, b string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", a, b))
	return base64.RawURLEncoding.EncodeToString(sum[:6])
}

// callID names a call that was never recorded, by its place.
func callID(c state.ToolCall, number, index int) string {
	return cmp.Or(c.Key, fmt.Sprintf("call-%d-%d", number, index))
}

package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/work"
)

// recorder is a Tracer that remembers all operations.
type recorder struct {
	mu    sync.Mutex
	spans []*span
	bad   []string // what is not as Tracer says
	in    func(op work.Operation)
}

type span struct {
	work.Operation // as it began
	parent         *span
	ends           int
	end            work.Operation
	results        []string
}

type spanKey struct{}

// String names the span, also for links.
func (s *span) String() string {
	name := string(s.Kind)
	if s.UserID != "" {
		name += " " + s.UserID
	}
	if id := s.MessageID; id != "" {
		name += "/" + id
	}
	if s.Attempt > 0 {
		name += fmt.Sprint("#", s.Attempt)
	}
	return name
}

func (r *recorder) Start(ctx context.Context, op work.Operation) context.Context {
	if r.in != nil {
		r.in(op)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &span{Operation: op}
	if !op.Root {
		s.parent, _ = ctx.Value(spanKey{}).(*span)
	}
	r.spans = append(r.spans, s)
	return context.WithValue(ctx, spanKey{}, s)
}

func (r *recorder) End(ctx context.Context, op work.Operation) {
	if r.in != nil {
		r.in(op)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := ctx.Value(spanKey{}).(*span)
	s.ends++
	s.end = op
	for _, result := range op.Results {
		s.results = append(s.results, result.Raw)
	}
	if s.Kind != op.Kind {
		r.bad = append(r.bad, fmt.Sprintf("%s ends as %s", s, op.Kind))
	}
}

func (r *recorder) Inject(ctx context.Context) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return ctx.Value(spanKey{}).(*span).String()
}

// unended returns the spans that have not ended once.
func (r *recorder) unended() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := slices.Clone(r.bad)
	for _, s := range r.spans {
		if s.ends != 1 {
			list = append(list, fmt.Sprintf("%s has ended %d times", s, s.ends))
		}
	}
	return list
}

// tree returns the spans of some kinds as an indented list, in the order in
// which they began among those of one parent.
func (r *recorder) tree(kinds ...work.OpKind) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	var write func(parent *span, indent string)
	write = func(parent *span, indent string) {
		last := ""
		for _, s := range r.spans {
			late := s.Kind == work.OpTakeover && s.end.Version == 0 // somebody was faster
			if s.parent == parent && slices.Contains(kinds, s.Kind) && !late {
				if line := indent + s.line() + "\n"; line != last || s.Kind != work.OpHeartbeat {
					b.WriteString(line)
					last = line
				}
				write(s, indent+"  ")
			}
		}
	}
	write(nil, "")
	return b.String()
}

// line describes the span.
func (s *span) line() string {
	line, op := s.String(), s.end
	add := func(ok bool, format string, args ...any) {
		if ok {
			line += fmt.Sprintf(format, args...)
		}
	}
	add(op.MessageID != s.MessageID, " of %s", op.MessageID)
	add(op.Status != "", " %s", op.Status)
	add(op.Ended != "", " %s", op.Ended)
	add(op.Version > 0, " v%d", op.Version)
	add(op.Effects > 0, " effects")
	add(op.Tries > 1, " tries=%d", op.Tries)
	add(op.Queued > 0, " queued=%d", op.Queued)
	add(op.Taken, " taken")
	add(len(s.results) > 0, " results=%v", s.results)
	add(len(s.Links) > 0, " links=%q", s.Links)
	for _, e := range []struct {
		err  error
		name string
	}{
		{workspace.ErrRunCancelled, "cancelled"}, {workspace.ErrInterrupted, "interrupted"}, {workspace.ErrFenced, "fenced"},
	} {
		if errors.Is(op.Err, e.err) {
			return line + " err=" + e.name
		}
	}
	add(op.Err != nil, " err=other")
	return line
}

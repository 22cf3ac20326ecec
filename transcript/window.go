package transcript

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/runctx"
)

// Window decides what of a conversation a model is shown. It does nothing until
// a request would have more than Target tokens, and then moves its beginning so
// far that about Keep tokens are left. The requests in between begin alike, so
// that the prompt caches of providers hit; a limit that is held exactly moves
// with each message. The conversation itself stays whole.
//
// Each agent of a State has a window, which the State keeps: it is exported,
// stored and forked, and a join takes the one that begins later. If the message
// where it begins is no longer in the conversation, it begins with the oldest.
//
// Whatever the limit, a model is shown what a [Trim] keeps: the system prompt at
// the beginning, calls that wait for a result, the latest group, and the request
// of the user that the rest is about.
//
// The fields of a Window must not change while it is used. It is safe for
// concurrent use, and must not be copied.
type Window struct {
	// Target and Keep are tokens of a whole request: prompt, tools, context and
	// conversation. Keep is Target/2 by default. Target is a choice of cost: a
	// model that can read more than Target+Keep always gets its answer. See the
	// page on windows in the guide for how to choose.
	Target, Keep int

	// Tokens counts the tokens of a message (default EstimateTokens). Where the
	// provider has reported the tokens of a request, it counts for the messages
	// after it.
	Tokens func(state.Message) int

	// Summarize returns a text that stands for what is no longer shown (default:
	// nothing stands for it). It is called once at a time for an agent of a State,
	// without a lock; meanwhile, others are shown what they were. The text must say
	// what was, and not what to do: models follow instructions that they find in
	// it. If Summarize fails or returns no text, the window moves at a later
	// request, and Messages fails only if a request would have more than
	// Target+Keep tokens.
	Summarize func(ctx context.Context, p Past) (string, error)

	mu     sync.Mutex
	moving map[windowKey]bool
}

// Past is what a summary stands for.
type Past struct {
	Summary  string          // that stood for what was before, "" if there is none
	Messages []state.Message // that were shown, and are no longer

	shown []state.Message
}

// Shown returns the beginning of what the model was shown, to the end of what the
// summary stands for. A request with these messages and an instruction behind them
// begins like the one before, and hits the provider's cache.
func (p Past) Shown() []state.Message { return slices.Clone(p.shown) }

// ErrWindow is returned if a conversation cannot be brought within a [Window].
var ErrWindow = errors.New("transcript: the request does not fit its window")

// windowKey identifies the window of an agent of a State.
type windowKey struct {
	branch *engine.Branch
	agent  string
}

// Messages returns what the model is shown: the system prompt at the beginning of
// the conversation, the summary if there is one, and the messages from the
// beginning of the window on. extra is the number of tokens that the request has
// besides. st is a handle of the agent that asks, or the host's.
//
// If the window is due, Messages moves it, as one version. The agent needs the
// right to read the messages, and no other. On a State that cannot be written,
// such as a snapshot, Messages returns what it would show without a new summary,
// and stores nothing.
//
// The error is [ErrWindow] if the request would have more than Target+Keep
// tokens, or if extra leaves nothing of Keep, and wraps the error of Summarize.
func (w *Window) Messages(ctx context.Context, st *state.State, extra int) ([]state.Message, error) {
	return w.show(ctx, st, nil, extra)
}

// Show is Messages for a conversation that the program carries along, as
// frameworks do: msgs, in place of that of st. What msgs has of the conversation of
// st, it must have in the same order.
func (w *Window) Show(ctx context.Context, st *state.State, msgs []state.Message, extra int) ([]state.Message, error) {
	if len(msgs) == 0 {
		return msgs, nil
	}
	return w.show(ctx, st, msgs, extra)
}

// show is Messages if own is nil, and otherwise Show.
func (w *Window) show(ctx context.Context, st *state.State, own []state.Message, extra int) ([]state.Message, error) {
	if w.Target <= 0 || w.Keep < 0 || w.keep() > w.Target {
		return nil, fmt.Errorf("%w: Target is %d and Keep %d: want 0 < Keep <= Target", ErrWindow, w.Target, w.Keep)
	}
	s, err := openSight(ctx, st, own)
	if err != nil {
		return nil, err
	}
	size := w.measure(s, extra)
	run := runctx.RunOf(ctx)
	if size.total > w.Target && size.total <= w.Target+w.keep() && w.Summarize != nil && run != nil && run.Window() == w {
		run.DeferWindow(st.Agent(), extra)
		return s.messages(), nil
	}
	var problem error
	for size.total > w.Target && problem == nil { // again, if a new summary is long
		if size.room(w.keep()) <= 0 {
			return nil, fmt.Errorf("%w: prompt, tools and context have %d tokens, and Keep is %d", ErrWindow, extra, w.keep())
		}
		begin := s.begin
		if s, problem = w.move(ctx, st, s, size); problem == nil {
			size = w.measure(s, extra)
		}
		if problem == nil && s.begin <= begin {
			problem = errNoMore
		}
	}
	if size.total > w.Target+w.keep() {
		return nil, fmt.Errorf("%w: it has about %d tokens, and Target is %d: %w", ErrWindow, size.total, w.Target, problem)
	}
	return s.messages(), nil
}

func (w *Window) keep() int {
	if w.Keep == 0 {
		return (w.Target + 1) / 2
	}
	return w.Keep
}

func (w *Window) count(m state.Message) int {
	if w.Tokens == nil {
		return EstimateTokens(m)
	}
	return max(w.Tokens(shown(m, true)), 0)
}

// size is how many tokens a request has.
type size struct {
	total int
	extra int
	// scale is how many tokens there are for each that is estimated, as far as it
	// is known.
	scale float64
}

// room returns how many estimated tokens of messages a request of so many tokens
// may have.
func (z size) room(tokens int) int { return int(float64(tokens)/z.scale) - z.extra }

// measure returns how many tokens a request with what is shown has: as the
// provider has reported them for the beginning, and as they are estimated for the
// rest. What a provider's own tools have read may be in the report and not in the
// next request: if it is far larger than what is known without it, it is not
// believed.
func (w *Window) measure(s *sight, extra int) size {
	tokens, since, served := s.reported(true)
	reported, believed := w.measureSince(s, extra, tokens, since)
	if !served {
		return reported
	}
	tokens, since, _ = s.reported(false)
	if known, _ := w.measureSince(s, extra, tokens, since); !believed ||
		w.scale(float64(reported.total), known.total) > maxServed {
		return known
	}
	return reported
}

// measureSince is measure if so many tokens are reported, unless they are 0, for
// the messages in front of an index. It reports whether the report is believed.
func (w *Window) measureSince(s *sight, extra, tokens, since int) (size, bool) {
	before, newer := extra, 0
	if m := s.summaryMessage(); m != nil {
		before = addCounts(before, w.count(m))
	}
	for i, m := range s.seen {
		if n := w.count(m); i >= since {
			newer = addCounts(newer, n)
		} else {
			before = addCounts(before, n)
		}
	}
	estimated := addCounts(before, newer)
	if tokens > 0 {
		total := float64(tokens) + float64(newer)
		if w.Tokens == nil { // tokenizers of others make more of a text, and never less
			total += float64(newer) * (min(max(w.scale(float64(tokens), before), 1), maxTokenizer) - 1)
		}
		if scale := w.scale(total, estimated); minScale <= scale && scale <= maxScale {
			return size{total: int(total), extra: extra, scale: scale}, true
		}
	}
	scale := s.place.Scale
	if scale == 0 {
		scale = 1
	}
	return size{total: int(float64(estimated) * scale), extra: extra, scale: scale}, false
}

// scale returns how many tokens have been reported for each that is estimated. Of
// a short request, a prompt of the provider's own may be the most.
func (w *Window) scale(reported float64, estimated int) float64 {
	hidden := 0.0
	if w.Tokens == nil {
		hidden = hiddenTokens
	}
	return (reported + hidden) / (max(float64(estimated), 1) + hidden)
}

const (
	hiddenTokens = 2000
	maxTokenizer = 1.5

	// The scales that are believed. A server that reports fewer or more tokens
	// than these does not count them.
	minScale = 0.25
	maxScale = 4

	// maxServed is how many times as many may be reported as are known, if the
	// provider has called its own tools. Of 17 391 that were reported after a search
	// of OpenAI's, 393 were in the next request.
	maxServed = 2.5
)

// errNoMore is the problem of a window that shows only what it always does.
var errNoMore = errors.New("nothing more can be left out")

// move moves the window of the agent of a handle, and returns what is shown then.
// A problem means that it has not moved.
func (w *Window) move(ctx context.Context, st *state.State, s *sight, z size) (*sight, error) {
	moved, past := w.next(s, z)
	switch {
	case moved == nil:
		return s, errNoMore
	case !inside.IsWritable(st):
		return moved, nil
	}
	if w.Summarize != nil {
		key := windowKey{inside.Branch(st), st.Agent()}
		if !w.begin(key) {
			return s, errors.New("its summary is being made")
		}
		defer w.end(key)
		summary, err := w.Summarize(ctx, past)
		if err != nil {
			return s, fmt.Errorf("summary: %w", err)
		}
		if moved.place.Summary = inside.HostRedactor(st).Redact(strings.TrimSpace(summary)); moved.place.Summary == "" {
			return s, errors.New("summary: there is no text")
		}
	}
	if err := inside.Windows().Set(st, map[string]internal.Window{st.Agent(): moved.place}); err != nil {
		return s, err
	}
	now, err := openSight(ctx, st, s.own) // another request may have moved it further
	if err != nil {
		return s, err
	}
	return now, nil
}

// next returns the sight with a later beginning, nil if there is none, and what
// it no longer shows.
func (w *Window) next(s *sight, z size) (*sight, Past) {
	past := Past{Summary: s.place.Summary}
	limit := z.room(w.keep())
	if m := s.summaryMessage(); m != nil {
		limit -= w.count(m)
	}
	shapes := packShapes(s.shown)
	also := slices.Concat(doubtful(s.shown, shapes), shapes.waitingTools(), s.answeredForNow(shapes))
	kept := shapes.keep(limit, func(i int) int { return w.count(s.seen[i]) }, also...)
	begin := s.afterGap(kept)
	if begin <= s.front() {
		return nil, past
	}
	for i, m := range s.seen[:begin] {
		if _, shown := slices.BinarySearch(kept, i); !shown {
			past.Messages = append(past.Messages, m)
		}
	}
	past.shown = s.messages()
	past.shown = past.shown[:len(past.shown)-(len(s.shown)-begin)]
	moved := s.moved(begin, kept)
	moved.place.Scale = z.scale
	return moved, past
}

// waitingTools returns the messages with calls of a provider's own tools whose
// result has not come: a text that has a reference of its own.
func (o *packedShapes) waitingTools() (waiting []int) {
	if len(o.refs) == 0 {
		return nil
	}
	uses := map[string]int{}
	for _, ref := range o.refs {
		uses[ref.name]++
	}
	for _, ref := range o.refs {
		if t := o.shapes[ref.message]; uses[ref.name] == 1 && t.has(shapeAssistant) && t&(shapeItem|shapeCall) == 0 {
			waiting = append(waiting, ref.message)
		}
	}
	return waiting
}

// doubtful returns the results that may answer a waiting call once more results
// have come: of calls with one id, or one name and no id, it may be unknown until
// then which are answered.
func doubtful(msgs []state.Message, o *packedShapes) (results []int) {
	waiting := map[state.ToolCall]bool{}
	for _, c := range o.calls {
		if c.result == none {
			waiting[keyOf(*c.ToolCall)] = true
		}
	}
	for i, m := range msgs {
		if m, ok := m.(state.ToolResultMessage); ok && o.answers[i] == none && waiting[keyOf(m.Call())] {
			results = append(results, i)
		}
	}
	return results
}

// keyOf returns a call with nothing but what its result has in common with it.
func keyOf(c state.ToolCall) state.ToolCall {
	if c.ID != "" {
		return state.ToolCall{ID: c.ID}
	}
	return state.ToolCall{Name: c.Name}
}

// begin reports whether no other summary of the key is being made.
func (w *Window) begin(key windowKey) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.moving[key] {
		return false
	}
	if w.moving == nil {
		w.moving = map[windowKey]bool{}
	}
	w.moving[key] = true
	return true
}

func (w *Window) end(key windowKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.moving, key)
}

// addCounts adds two counts. The sum saturates instead of overflowing.
func addCounts(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

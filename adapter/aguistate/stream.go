package aguistate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/pagehttp"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
)

// stream answers one request.
type stream struct {
	r       *http.Request
	in      *input
	manager *workspace.Manager
	pages   *page.Source
	may     func(statehttp.Action) error
	out     *pagehttp.Writer
	origin  string // the thread that was asked for, which may have branches
	thread  string // the one that is shown

	target string // the message that the request waits for, or "" if it shows the thread
	last   string // the message whose handling has ended last, of the run that is open
	runs   int    // that were begun
	isOpen bool   // the last of them has not ended

	page    page.Page
	have    []*message // what the client shows
	index   map[string]*message
	fields  map[string]state.JSON // the state that it has, or nil if that is not known
	version string                // of the page that it has seen
	isSeen  bool                  // it knows a version of the state
	edited  map[string]state.JSON // what it has changed of the state of the version base
	base    string
}

// serve answers the request.
func (s *stream) serve() {
	ctx := s.r.Context()
	err := s.find()
	var now, base *page.Page
	if err == nil {
		now, err = s.pages.Read(ctx, s.thread)
	}
	if err != nil {
		s.fail(err)
		return
	}
	if base, err = s.pages.ReadAt(ctx, s.thread, s.version); err != nil {
		base = nil // it is not held any more, or never was
	}
	s.page, s.base, s.isSeen = *now, now.Version, s.in.State[versionKey] != nil
	want := messagesOf(now)
	s.had(want)
	said := false
	if err = nil; len(s.in.Messages) > len(want)+maxAdded+count(s.in.Messages, "reasoning") {
		err = invalid("the client has more than %d messages that the thread has not", maxAdded)
	} else {
		said, err = s.handOver(now, base)
	}
	if err != nil {
		s.openRun()
		s.edited = nil
		s.show(false) // takes back what was not accepted
		s.fail(err)
		return
	}
	follow := s.in.asks("follow") && s.target == ""
	if s.target == "" && !follow && len(s.edited) == 0 && !s.waitsFor("") { // nothing will come
		s.openRun()
		s.show(true)
		s.settle()
		_ = s.out.Flush()
		return
	}
	each := func(ctx context.Context) iter.Seq2[page.Change, error] { return s.pages.Follow(ctx, s.thread, "") }
	isFirst := true
	pagehttp.Serve(ctx, s.out, each, func(c page.Change, err error) bool {
		if err != nil {
			return s.fail(err)
		}
		s.take(c, isFirst)
		if s.openRun(); c.Delta != nil && s.fields != nil {
			s.grow(c.Delta.Item)
			return true
		}
		s.show(isFirst && !said)
		isFirst = false
		return s.settle() && (s.isOpen || follow)
	})
}

func count(list []*message, role string) (n int) {
	for _, m := range list {
		if m.Role == role {
			n++
		}
	}
	return n
}

// take makes a change of the page, and notes whose handling has ended with it.
func (s *stream) take(c page.Change, isFirst bool) {
	was := map[string]page.TurnState{}
	for _, t := range s.page.Turns {
		was[t.ID] = t.State
	}
	s.page.Apply(c)
	if isFirst || c.Tail == nil && c.Page == nil {
		return
	}
	for _, t := range s.page.Turns {
		if state := was[t.ID]; state != t.State && !isUnderWay(t) {
			s.last = t.ID
		}
	}
}

func isUnderWay(t page.Turn) bool { return t.State == page.TurnWaiting || t.State == page.TurnRunning }

// waitsFor reports whether a message waits or is being handled, or any message for "".
func (s *stream) waitsFor(id string) bool {
	return slices.ContainsFunc(s.page.Turns, func(t page.Turn) bool { return isUnderWay(t) && (id == "" || t.ID == id) })
}

// settle ends the run if there is nothing left to wait for. It reports false if that
// was with an error.
func (s *stream) settle() (ok bool) {
	if s.waitsFor(s.target) {
		return true
	}
	var end page.Turn // of the zero State for one that has ended well
	id := cmp.Or(s.target, s.last)
	if at := slices.IndexFunc(s.page.Turns, func(t page.Turn) bool { return t.ID == id }); at >= 0 {
		end = s.page.Turns[at]
	}
	s.last = ""
	switch waits := s.waits(); {
	case end.State == page.TurnFailed:
		return s.tellError("failed", cmp.Or(end.Reason, "The answer could not be finished."))
	case end.State == page.TurnEnded && (waits == nil || waits.Interrupts == nil):
		return s.tellError(string(end.Stop), "The answer was not finished: "+string(end.Stop))
	default:
		s.finish(waits, end.State == page.TurnStopped || end.State == page.TurnDropped)
	}
	return true
}

// openRun begins a run, unless one is open. A snapshot of the state follows.
func (s *stream) openRun() {
	if s.isOpen {
		return
	}
	s.runs++
	e := event{Type: "RUN_STARTED", ThreadID: s.in.ThreadID + s.branch(), RunID: s.runID()}
	if s.in.isNew() {
		e.ProtocolVersion = "1.0"
	}
	s.send(e)
	s.isOpen, s.fields = true, nil
}

// runID returns the id of the run that was begun last. Only the first one is asked
// for.
func (s *stream) runID() string {
	if s.runs < 2 {
		return s.in.RunID
	}
	return fmt.Sprintf("%s-%d", s.in.RunID, s.runs)
}

// finish ends the run.
func (s *stream) finish(waits *outcome, cancelled bool) {
	s.close()
	e := event{Type: "RUN_FINISHED", ThreadID: s.in.ThreadID + s.branch(), RunID: s.runID(), Outcome: waits}
	switch {
	case waits != nil && waits.Interrupts != nil: // the protocol demands both snapshots
		s.reset(messagesOf(&s.page))
		s.fields = nil
		s.showState()
	case cancelled && s.in.isNew():
		e.Outcome = &outcome{Type: "cancelled"}
	}
	s.send(e)
	s.isOpen = false
}

// waits returns how the run ends for a client: with the calls that a person decides
// about, or those of the client's own tools.
func (s *stream) waits() *outcome {
	interrupted, success := &outcome{Type: "interrupt"}, &outcome{Type: "success"}
	for _, item := range s.page.Items {
		for _, p := range item.Parts {
			switch c := p.Call; {
			case c == nil:
			case c.State == page.CallClient:
				success.Pending = append(success.Pending, callID(item, p))
			case c.State == page.CallWaiting:
				i := interrupt{
					ID: c.Key, Reason: "tool_call", Message: c.Reason, ToolCallID: callID(item, p), ResponseSchema: approvalSchema,
					Metadata: map[string]any{"name": c.Name, "arguments": json.RawMessage(c.Input), "agent": item.Agent},
				}
				if !c.Until.IsZero() {
					i.ExpiresAt = c.Until.UTC().Format(time.RFC3339)
				}
				interrupted.Interrupts = append(interrupted.Interrupts, i)
			}
		}
	}
	switch {
	case len(interrupted.Interrupts) > 0:
		return interrupted
	case len(success.Pending) > 0 && s.in.isNew():
		return success
	}
	return nil
}

var approvalSchema = json.RawMessage(`{"type":"object","properties":{"approved":{"type":"boolean"},"editedArgs":{"type":"object"}},"required":["approved"]}`)

// fail ends the stream with an error, without secrets.
func (s *stream) fail(err error) (more bool) {
	ctx := s.r.Context()
	if ctx.Err() != nil {
		return false
	}
	var of *workspace.Error
	text := err.Error()
	if errors.As(err, &of) {
		text = of.Err.Error() // without the name of the workspace
	}
	if v, err := s.manager.View(ctx, s.thread); err == nil {
		text = v.Redact(text)
	}
	class := workspace.ErrorClass(err)
	switch {
	case errors.Is(err, state.ErrDenied), errors.Is(err, statehttp.ErrForbidden):
		class = "denied"
	case errors.Is(err, ErrInvalid), errors.Is(err, workspace.ErrNotSuspended):
		class = "argument"
	}
	return s.tellError(class, text)
}

func (s *stream) tellError(class, text string) (more bool) {
	s.close()
	s.send(event{Type: "RUN_ERROR", Message: cmp.Or(text, class), Code: class})
	_ = s.out.Flush()
	return false
}

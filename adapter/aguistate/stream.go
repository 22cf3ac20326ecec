package aguistate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/pagehttp"
	"github.com/agentstate/state/internal/pagehttp/chat"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
)

// stream answers one request.
type stream struct {
	*chat.Request
	in     *input
	out    *pagehttp.Writer
	thread string // that is shown, which may be a branch

	target string // the message that the request waits for, or "" if it shows the thread
	last   string // the message whose handling has ended last, of the run that is open
	runs   int    // that were begun
	isOpen bool   // the last of them has not ended

	page    page.Page
	want    []*message            // of the page, but for pieces of answers
	places  map[string]int        // of want by ids, or nil: see wanted
	have    []*message            // what the client shows
	index   map[string]*message   // of have by ids, or nil: see shown
	fields  map[string]state.JSON // the state that it has, or nil if that is not known
	version string                // of the page that it has seen
	isSeen  bool                  // it knows a version of the state
	edited  map[string]state.JSON // what it has changed of the state of the version base
	base    string
}

// serve answers the request.
func (s *stream) serve() {
	said, err := s.begin()
	follow := s.in.asks("follow") && s.target == ""
	switch {
	case err != nil:
		if s.page.Version != "" {
			s.openRun()
			s.edited = nil
			s.show(false) // takes back what was not accepted
		}
		s.fail(err)
		return
	case s.target == "" && !follow && len(s.edited) == 0 && !s.waitsFor(""): // nothing will come
		s.openRun()
		s.show(true)
		s.settle()
		_ = s.out.Flush()
		return
	}
	isFirst := true
	for c, err := range pagehttp.Each(s.out, s.Pages.Follow(s.out.Context, s.thread, "")) {
		if err != nil {
			s.fail(err)
			break
		}
		s.take(c, isFirst)
		if s.openRun(); c.Delta != nil && s.fields != nil {
			s.grow(c.Delta.Item)
			continue
		}
		s.show(isFirst && !said)
		if isFirst = false; !s.settle() || !s.isOpen && !follow {
			break
		}
	}
}

// begin reads the page, and hands over what the request brings. It reports whether
// there was something that is said.
func (s *stream) begin() (said bool, err error) {
	ctx := s.R.Context()
	if err := s.find(); err != nil {
		return false, err
	}
	now, err := s.Pages.Read(ctx, s.thread)
	if err != nil {
		return false, err
	}
	base, err := s.Pages.ReadAt(ctx, s.thread, s.version)
	if err != nil {
		base = nil // it is not held any more, or never was
	}
	s.page, s.base, s.isSeen, s.want = *now, now.Version, s.in.State[versionKey] != nil, messagesOf(now)
	s.had()
	if len(s.in.Messages) > len(s.want)+maxAdded+count(s.in.Messages, "reasoning") {
		return false, invalid("the client has more than %d messages that the thread has not", maxAdded)
	}
	return s.handOver(now, base)
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
	if s.page.Apply(c); c.Delta == nil {
		s.want, s.places = messagesOf(&s.page), nil
	}
	if isFirst {
		return
	}
	for _, t := range s.page.Turns {
		if was[t.ID] != t.State && !chat.GoesOn(t) {
			s.last = t.ID
		}
	}
}

// waitsFor reports whether a message waits or is being handled, or any message for "".
func (s *stream) waitsFor(id string) bool {
	return slices.ContainsFunc(s.page.Turns, func(t page.Turn) bool { return chat.GoesOn(t) && (id == "" || t.ID == id) })
}

// settle ends the run if there is nothing left to wait for. It reports false if that
// was with an error.
func (s *stream) settle() (ok bool) {
	if s.waitsFor(s.target) {
		return true
	}
	end := chat.TurnOf(&s.page, cmp.Or(s.target, s.last))
	s.last = ""
	switch waits := s.waits(); {
	case end.State == page.TurnFailed:
		return s.tellError("failed", end.Reason)
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
	e := event{Type: "RUN_STARTED", ThreadID: s.in.ThreadID + s.Branch(s.thread), RunID: s.runID()}
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
	e := event{Type: "RUN_FINISHED", ThreadID: s.in.ThreadID + s.Branch(s.thread), RunID: s.runID(), Outcome: waits}
	switch {
	case waits != nil && waits.Interrupts != nil: // the protocol demands both snapshots
		s.reset()
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
	ctx := s.R.Context()
	if ctx.Err() != nil {
		return false
	}
	text := pagehttp.TextOf(err)
	if v, err := s.Manager.View(ctx, s.thread); err == nil {
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

package aguistate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/pagehttp"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/work"
)

// stream answers one request. It shows the client what is committed, and the text
// that a model is streaming.
type stream struct {
	handler *Handler
	ctx     context.Context
	in      *input
	thread  string // the id of the workspace
	origin  string // the name of the thread that was asked for, which may have branches
	out     *pagehttp.Writer

	target string // the message that the request waits for, or "" if it follows the thread
	once   bool   // it does not follow longer than what is under way
	last   string // the message whose handling has ended last, of the run that is open
	runs   int    // that were begun
	isOpen bool   // the last of them has not ended

	view   *workspace.View
	conv   *conversation
	head   string                // of the view
	have   []message             // what the client shows
	fields map[string]state.JSON // the state that it has, or nil if that is not known
	isSeen bool                  // it knows a version of the state
	// overlay has what the client has changed, as long as its message waits and the
	// state has the version base.
	overlay map[string]state.JSON
	base    string
	live    liveText
}

// headOf tells views apart, of which a later one is outdated.
func headOf(s *workspace.Summary) string {
	run := ""
	if s.Run != nil {
		run = s.Run.ID
	}
	return fmt.Sprint(s.Version, s.Queued, s.Suspended, run)
}

// told is an event, or the error that ends them.
type told struct {
	workspace.Event
	err error
}

const aliveInterval = 15 * time.Second

// serve answers the request. What it follows it follows from before the moment at
// which a message is handed over.
func (s *stream) serve() {
	if !s.read() {
		return
	}
	err := s.branch()
	if err == nil && len(s.in.Messages) > len(s.conv.messages)+maxAdded {
		err = invalid("the client has more than %d messages that the thread has not", maxAdded)
	}
	if err != nil {
		s.fail(err)
		return
	}
	events := make(chan told)
	go func() { // ends with ctx
		for e, err := range s.handler.events(s.ctx, s.thread) {
			select {
			case events <- told{e, err}:
			case <-s.ctx.Done():
				return
			}
		}
	}()
	select {
	case e := <-events: // from here on, nothing is missed
		if s.head = headOf(&e.Summary); e.err != nil {
			s.fail(e.err)
			return
		}
	case <-s.ctx.Done():
		return
	}
	tick := time.NewTicker(aliveInterval)
	defer tick.Stop()
	for more := s.begin(); more && s.out.Flush() == nil; {
		select {
		case e := <-events:
			more = s.on(e)
		case <-tick.C:
			more = s.out.Alive() == nil
		case <-s.ctx.Done():
			return
		}
	}
	_ = s.out.Flush()
}

// begin hands over what the request brings, and shows what there is. It reports
// false if the stream has ended.
func (s *stream) begin() (more bool) {
	if !s.read() {
		return false
	}
	added := s.in.added(s.view, s.conv)
	for _, m := range added { // as they will be
		if said, err := m.userMessage(); err == nil {
			m.Content, _ = contentOf(said.(state.TextMessage), s.view.Redact)
		}
		s.conv.add(m)
	}
	fields := s.edits()
	s.isSeen = s.in.State[versionKey] != nil
	s.base, s.overlay = s.version(), fields
	s.openRun()
	s.show(len(added) == 0)
	_ = s.out.Flush()
	if err := s.handOver(added, fields); err != nil {
		if s.overlay = nil; s.read() {
			s.show(false) // takes back what was not accepted
		}
		return s.fail(err)
	}
	s.once = s.target == "" && (s.in.wantsAnswer() || !s.in.wantsFollow())
	return s.refresh()
}

// read reads the workspace. It reports false if it cannot be read.
func (s *stream) read() bool {
	v, conv, err := s.handler.view(s.ctx, s.thread)
	if err != nil {
		return s.fail(err)
	}
	s.view, s.conv = v, conv
	return true
}

// on tells the client of an event.
func (s *stream) on(e told) (more bool) {
	if e.err != nil {
		return s.fail(e.err)
	}
	switch before := s.head; e.Kind {
	case workspace.EventDelta:
		if s.openRun(); s.fields == nil {
			s.showState()
		}
		s.tellText(&e.Event)
		return true
	case workspace.EventEnded:
		s.last = e.MessageID
	default:
		if s.head = headOf(&e.Summary); s.head == before {
			return true
		}
	}
	return s.refresh()
}

// refresh shows what has changed.
func (s *stream) refresh() (more bool) {
	if !s.read() {
		return false
	}
	if !slices.ContainsFunc(pending(s.view), func(m workspace.Message) bool { return m.ID == s.target }) {
		s.overlay = nil
	}
	s.openRun()
	s.show(false)
	return s.settle()
}

// settle ends the run if there is nothing left to wait for. A stream that follows
// the thread goes on.
func (s *stream) settle() (more bool) {
	id := s.target
	if id == "" {
		id = s.last
	}
	waits := slices.ContainsFunc(pending(s.view), func(m workspace.Message) bool { return m.ID == id || s.target == "" })
	if waits || s.target == "" && s.view.Run != nil {
		return true
	}
	switch end := endingOf(s.view, id); end.As {
	case work.EndingFinished:
		if end.Stop != "" && !slices.ContainsFunc(s.conv.waiting, func(w waitingCall) bool { return !w.Client }) {
			return s.tellError(string(end.Stop), "The answer was not finished: "+string(end.Stop))
		}
		s.finish(false)
	case work.EndingCancelled, work.EndingInterrupted, work.EndingRolledBack, work.EndingReset, work.EndingDiscarded:
		s.finish(true)
	default:
		return s.tellError(string(end.As), end.Reason)
	}
	s.last = ""
	return s.target == "" && !s.once
}

// endingOf returns how the handling of a message has ended.
func endingOf(v *workspace.View, id string) workspace.EndedMessage {
	for _, d := range v.DeadLetters {
		if d.Message.ID == id {
			return workspace.EndedMessage{As: work.EndingFailed, Reason: d.Reason}
		}
	}
	for _, e := range v.Ended {
		if e.ID == id {
			return e
		}
	}
	return workspace.EndedMessage{As: work.EndingFinished} // or many others have ended since
}

// openRun begins a run, unless one is open. A snapshot of the state follows.
func (s *stream) openRun() {
	if s.isOpen {
		return
	}
	s.runs++
	e := event{Type: "RUN_STARTED", ThreadID: s.in.ThreadID, RunID: s.runID()}
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
func (s *stream) finish(cancelled bool) {
	e := event{Type: "RUN_FINISHED", ThreadID: s.in.ThreadID, RunID: s.runID(), Outcome: s.waits()}
	s.endText()
	switch {
	case e.Outcome != nil && e.Outcome.Interrupts != nil: // the protocol demands both snapshots
		s.resetMessages(s.conv.messages)
		s.fields = nil
		s.showState()
	case cancelled && s.in.isNew():
		e.Outcome = &outcome{Type: "cancelled"}
	}
	s.send(e)
	s.isOpen = false
}

// fail ends the stream with an error, without secrets.
func (s *stream) fail(err error) (more bool) {
	if s.ctx.Err() != nil {
		return false
	}
	var of *workspace.Error
	text := err.Error()
	if errors.As(err, &of) {
		text = of.Err.Error() // without the name of the workspace
	}
	class := workspace.ErrorClass(err)
	switch {
	case errors.Is(err, state.ErrDenied):
		class = "denied"
	case errors.Is(err, ErrInvalid), errors.Is(err, workspace.ErrNotSuspended):
		class = "argument"
	}
	return s.tellError(class, text)
}

func (s *stream) tellError(class, text string) (more bool) {
	s.endText()
	if s.view != nil {
		text = s.view.Redact(text)
	}
	s.send(event{Type: "RUN_ERROR", Message: cmp.Or(text, class), Code: class})
	_ = s.out.Flush()
	return false
}

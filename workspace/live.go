package workspace

import (
	"errors"
	"io"
	"sync"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/workspace/internal/turns"
)

// Emit tells [Manager.Watch] a piece of the text that a model is about to have
// said. It is not stored: the answer is, when it is whole. Package wire emits
// what it streams, so that only programs with clients of their own call Emit.
//
// A piece continues those before. The text begins anew when a message was added
// to the conversation, when a request is made again, and with each attempt.
// Secrets are masked in the text as a whole, however it is cut: what may be the
// beginning of a secret is told later. When the run has ended, Emit does nothing.
func (r *Run) Emit(text string) { r.emit(livePart{kind: EventDelta}, text) }

// EmitThought is Emit for what the model thinks.
func (r *Run) EmitThought(text string) { r.emit(livePart{kind: EventThought}, text) }

// EmitInput is Emit for the arguments of a call, as JSON. call is how many calls of
// the answer began before it, and name that of its tool. The first piece may be
// empty.
func (r *Run) EmitInput(call int, name, text string) {
	r.emit(livePart{kind: EventInput, call: call, name: name}, text)
}

func (r *Run) emit(of livePart, text string) {
	if text == "" && of.kind != EventInput || r.ctx.Err() != nil {
		return
	}
	r.live.emit(of, text)
}

const (
	// maxLive is the number of bytes of a text that is not finished which are kept
	// for those who begin to watch.
	maxLive = 64 << 10
	// maxLiveParts is how many parts of an answer are told while it is made.
	maxLiveParts = 64
)

// liveText is the answer that a model is about to have given in a run.
type liveText struct {
	run *Run

	mu      sync.Mutex
	version uint64      // of the State for which number is known; 0 before
	number  int         // of the message that the answer will be; 0 without one
	begun   int         // the answers so far
	parts   []*livePart // of the answer, in the order in which they began
	kept    bool        // the text is being stored as it is: more is held back
	held    []livePiece // until it is known whether that has ended the run

	changed chan struct{} // with Options.Live, once there is a text: see store
}

// livePart is what was told of a part of an answer: its text, its thoughts or the
// arguments of a call.
type livePart struct {
	kind   EventKind
	call   int
	name   string
	of     *liveText
	masks  *state.Redactor // of out
	out    io.WriteCloser  // masks what is told
	length int             // of what was told
	end    []byte          // of that, at most 2 * maxLive bytes
}

type livePiece struct {
	part livePart
	text string
}

// restart makes the next piece the first one.
func (l *liveText) restart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version, l.number = 0, 0
}

func (l *liveText) emit(of livePart, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.run
	if v := r.state.Version(); v != l.version {
		number, err := r.nextNumberInTurn()
		if err != nil {
			return
		}
		if number != l.number {
			l.number, l.parts, l.kept, l.held = number, nil, false, nil
			l.begun++
		}
		l.version = v
	}
	if l.kept {
		l.held = append(l.held, livePiece{of, text})
		return
	}
	l.write(of, text)
}

// write masks a piece and tells it. The caller holds mu.
func (l *liveText) write(of livePart, text string) {
	p := l.part(of.kind, of.call)
	if p == nil {
		if len(l.parts) == maxLiveParts {
			return
		}
		p = &of
		p.of, l.parts = l, append(l.parts, p)
		if text == "" {
			p.tell("")
		}
	}
	if masks := l.run.Redactor(); p.out == nil || masks != p.masks {
		p.masks, p.out = masks, masks.Writer(p)
	}
	_, _ = io.WriteString(p.out, text) // Write returns no error
}

// part returns the part of a kind, or nil. The caller holds mu.
func (l *liveText) part(kind EventKind, call int) *livePart {
	for _, p := range l.parts {
		if p.kind == kind && p.call == call {
			return p
		}
	}
	return nil
}

// Write tells masked text. The caller holds mu of the answer.
func (p *livePart) Write(text []byte) (int, error) {
	p.tell(string(text))
	p.length += len(text)
	if p.end = append(p.end, text...); len(p.end) > 2*maxLive {
		p.end = append([]byte(nil), p.end[len(p.end)-maxLive:]...)
	}
	if l := p.of; l.run.m.opts.Live && p.kind == EventDelta {
		if l.changed == nil {
			l.changed = make(chan struct{}, 1)
			l.run.m.background(l.store)
		}
		turns.Wake(l.changed)
	}
	return len(text), nil
}

func (p *livePart) tell(text string) {
	if f := p.of.run.m.feeds.of(p.of.run.user); f != nil {
		f.tellOf(p.of.run.runID, p.event(p.length, text))
	}
}

// store writes the text for other processes, as long as the run is held. An error
// of the store, or another holder, ends that and nothing else.
func (l *liveText) store() {
	r := l.run
	out := r.ledger.NewLiveWriter(r.lease.id, r.attempt)
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-l.changed:
		}
		if text := l.said(); text.Message > 0 {
			ctx, cancel := r.lease.whileHeld(r.ctx)
			err := out.Write(ctx, text)
			cancel()
			if errors.Is(err, ErrFenced) || err != nil && !mayPass(err) {
				return
			}
			if err != nil {
				turns.Wake(l.changed)
			}
		}
		if backoff.Sleep(r.ctx, liveInterval) != nil {
			return
		}
	}
}

func (p *livePart) event(offset int, text string) Event {
	run := p.of.run
	return Event{
		Kind: p.kind, MessageID: run.message.ID, Delta: text, Offset: offset, Message: p.of.number, Attempt: run.attempt,
		Begun: p.of.begun, Call: p.call, Name: run.Redact(p.name),
	}
}

// soFar calls tell with the answer so far, if there is one that is not stored yet.
// No piece is told meanwhile.
func (l *liveText) soFar(tell func([]Event)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.parts) == 0 || l.number == 0 {
		return
	}
	if v := l.run.state.Version(); v != l.version { // perhaps by the answer itself
		if number, err := l.run.nextNumberInTurn(); err != nil || number != l.number {
			return
		}
		l.version = v
	}
	var parts []Event
	for _, p := range l.parts {
		if kept := p.kept(); kept != "" || p.kind == EventInput {
			parts = append(parts, p.event(p.length-len(kept), kept))
		}
	}
	tell(parts)
}

// kept returns the end of what was told.
func (p *livePart) kept() string { return string(p.end[max(0, len(p.end)-maxLive):]) }

// nextNumberInTurn is nextNumber between commits.
func (r *Run) nextNumberInTurn() (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.life.ended(); err != nil {
		return 0, err
	}
	return r.nextNumber()
}

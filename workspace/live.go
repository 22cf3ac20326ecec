package workspace

import (
	"errors"
	"io"
	"sync"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/backoff"
)

// Emit tells [Manager.Watch] a piece of the text that a model is about to have
// said. It is not stored: the answer is, when it is whole. Package wire emits
// what it streams, so that only programs with clients of their own call Emit.
//
// A piece continues those before. The text begins anew when a message was added
// to the conversation, when a request is made again, and with each attempt.
// Secrets are masked in the text as a whole, however it is cut: what may be the
// beginning of a secret is told later. When the run has ended, Emit does nothing.
func (r *Run) Emit(text string) {
	if text == "" || r.ctx.Err() != nil {
		return
	}
	r.live.emit(text)
}

// maxLive is the number of bytes of a text that is not finished which are kept
// for those who begin to watch.
const maxLive = 64 << 10

// liveText is the text that a model is about to have said in a run.
type liveText struct {
	run *Run

	mu      sync.Mutex
	version uint64          // of the State for which number is known; 0 before
	number  int             // of the message that the text will be; 0 without one
	masks   *state.Redactor // of out
	out     io.WriteCloser  // masks what is told
	begun   int             // the texts so far
	length  int             // of what was told
	end     []byte          // of that, at most 2 * maxLive bytes
	kept    bool            // the text is being stored as it is: more is held back
	held    string          // until it is known whether that has ended the run

	changed chan struct{} // with Options.Live, once there is a text: see store
}

// restart makes the next piece the first one.
func (l *liveText) restart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version, l.number = 0, 0
}

func (l *liveText) emit(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.run
	if v := r.state.Version(); v != l.version {
		number, err := r.nextNumberInTurn()
		if err != nil {
			return
		}
		if number != l.number {
			l.number, l.length, l.end, l.out, l.kept, l.held = number, 0, nil, nil, false, ""
			l.begun++
		}
		l.version = v
	}
	if l.kept {
		l.held += text
		return
	}
	l.write(text)
}

// write masks a piece and tells it. The caller holds mu.
func (l *liveText) write(text string) {
	r := l.run
	if masks := r.Redactor(); l.out == nil || masks != l.masks {
		l.masks, l.out = masks, masks.Writer(l)
	}
	_, _ = io.WriteString(l.out, text) // Write returns no error
}

// Write tells masked text. The caller holds mu.
func (l *liveText) Write(p []byte) (int, error) {
	if f := l.run.m.feeds.of(l.run.user); f != nil {
		f.tellOf(l.run.runID, l.event(l.length, string(p)))
	}
	l.length += len(p)
	if l.end = append(l.end, p...); len(l.end) > 2*maxLive {
		l.end = append([]byte(nil), l.end[len(l.end)-maxLive:]...)
	}
	if l.run.m.opts.Live {
		if l.changed == nil {
			l.changed = make(chan struct{}, 1)
			l.run.m.background(l.store)
		}
		wake(l.changed)
	}
	return len(p), nil
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
				wake(l.changed)
			}
		}
		if backoff.Sleep(r.ctx, liveInterval) != nil {
			return
		}
	}
}

func (l *liveText) event(offset int, text string) Event {
	return Event{
		Kind: EventDelta, MessageID: l.run.message.ID, Delta: text, Offset: offset, Message: l.number, Attempt: l.run.attempt,
	}
}

// soFar calls tell with the text so far, if there is one that is not stored yet.
// No piece is told meanwhile.
func (l *liveText) soFar(tell func(Event)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.length == 0 || l.number == 0 || l.run.state.Version() != l.version {
		return
	}
	kept := l.end[max(0, len(l.end)-maxLive):]
	tell(l.event(l.length-len(kept), string(kept)))
}

// nextNumberInTurn is nextNumber between commits.
func (r *Run) nextNumberInTurn() (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return 0, r.ended
	}
	return r.nextNumber()
}

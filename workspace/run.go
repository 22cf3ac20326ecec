package workspace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
)

// Run is the handling of one message, by who holds the workspace. While it is under
// way nobody else changes the workspace. All methods are safe for concurrent use.
type Run struct {
	liveContent
	m       *Manager
	ledger  *ledger
	leaseID string
	runID   string
	attempt int
	ttl     time.Duration
	base    uint64 // the version at which the run began
	message Message
	ctx     context.Context
	cancel  context.CancelCauseFunc

	mu    sync.Mutex // held by what commits
	ended error
	reply string

	renewal   sync.Mutex
	renewedAt time.Time // when the last sign of life was asked for that was given
}

// newRun returns the run that a head says to be ours.
func (m *Manager) newRun(ctx context.Context, l *ledger, h *head) (*Run, error) {
	msg, err := l.readMessage(ctx, h.Run.Message)
	if err != nil {
		return nil, err
	}
	doc, err := l.content(ctx, h, h.position())
	if err != nil {
		return nil, err
	}
	c, err := newLiveContent(l.user, m.opts.Schema, doc, h.position())
	if err != nil {
		return nil, err
	}
	r := &Run{
		liveContent: *c, m: m, ledger: l, leaseID: h.Run.LeaseID, runID: h.Run.RunID, attempt: h.Run.Attempt, ttl: h.Run.duration(),
		base: h.Run.Base.Version, message: msg, renewedAt: time.Now(),
	}
	if r.position.Version == r.base { // else it is there
		if err := r.receiveMessage(); err != nil {
			return nil, err
		}
	}
	ctx, r.cancel = context.WithCancelCause(ctx)
	r.ctx = state.NewContext(NewContext(ctx, r), r.state)
	if !m.background(r.renewLoop) {
		r.cancel(ErrClosed)
		return nil, ErrClosed
	}
	m.holdRun(r)
	return r, nil
}

// receive puts the message into the conversation.
func (r *Run) receiveMessage() error {
	if err := state.Messages.Set(r.state, []state.Message{r.message.Content}); err != nil {
		return err
	}
	return r.settings.change(func(s *Settings) {
		if r.message.ChatID != "" {
			s.ChatID = r.message.ChatID
		}
		if r.message.Platform != "" {
			s.Platform = r.message.Platform
		}
	})
}

// ID returns the id of the run. It stays the same when another process takes the
// run over, which then may call tools again that were called before. Together with
// what a tool is to do, such as the order that it refunds, ID is a key by which those
// who do it can tell that it was done. Together with Step it is a key for what is
// done between two commits.
func (r *Run) ID() string { return r.runID }

// Step returns how many records there are of the run. It is where the run goes on
// when it is taken over, unless calls of tools were committed without a result: the
// record that answers them counts too.
func (r *Run) Step() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int(r.position.Version - r.base)
}

// Attempt returns how often the run was taken over because its process had died.
func (r *Run) Attempt() int { return r.attempt }

// Message returns the message that is being handled. It is in the conversation.
func (r *Run) Message() Message { return r.message }

// Context returns a context that ends when the run has lost its workspace;
// context.Cause is then ErrFenced, together with ErrInterrupted if another message
// or a reset ended the run. It carries the run, for FromContext, and the state, for
// state.FromContext.
func (r *Run) Context() context.Context { return r.ctx }

// Store returns where the run, its tools and its hooks keep what is not part of
// the workspace, by user. What is set there is stored at once, whatever becomes of
// the run.
func (r *Run) Store() *store.Manager { return r.m.Store(r.user) }

// Reply says what Handle returns to the sender of the message. The last call
// counts.
func (r *Run) SetReply(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reply = text
}

// Replied returns what Reply was given last.
func (r *Run) Reply() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reply
}

// Commit stores what was changed since the last commit. What was committed
// survives the process: whoever takes the run over goes on from there. Nothing of
// it is stored if there is an error, unless it is store.ErrUnknownOutcome, after
// which the run is over and whoever takes it over finds out.
func (r *Run) Commit(ctx context.Context) error {
	effects, err := r.commit(ctx)
	if err != nil {
		return wrapError("commit", r.user, err)
	}
	r.m.opts.Hooks.memoryChanged(ctx, r.user, effects)
	return nil
}

func (r *Run) commit(ctx context.Context) ([]state.Effect, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return nil, r.ended
	}
	x, err := r.delta()
	if err != nil || len(x.effects) == 0 {
		return nil, err
	}
	asked := time.Now()
	at, err := r.ledger.commit(ctx, r.leaseID, r.message.ID, r.position, x.effects, x.purge)
	if err != nil {
		return nil, r.endIfLost(err)
	}
	r.renewed(asked)
	return x.effects, r.noteStored(x, at)
}

// lost ends the run if err says that it is not the holder's any more.
func (r *Run) endIfLost(err error) error {
	if errors.Is(err, ErrFenced) || errors.Is(err, ErrRolledBack) || errors.Is(err, store.ErrUnknownOutcome) {
		r.end(err)
	}
	return err
}

// over ends the run. It is called with the lock.
func (r *Run) end(err error) {
	if r.ended == nil {
		r.ended = err
		r.endWrites(err)
		r.cancel(err)
		r.m.releaseRun(r)
	}
}

// Finish stores what was changed, marks the message as done and begins the next
// run if messages wait, all in one write. It returns the next run, or nil. The
// conversation is shortened as Options says. What others write to the run's State
// meanwhile is not stored.
func (r *Run) Finish(ctx context.Context) (*Run, error) {
	h, effects, err := r.finish(ctx)
	if err != nil {
		return nil, wrapError("finish", r.user, err)
	}
	r.m.opts.Hooks.memoryChanged(ctx, r.user, effects)
	r.m.opts.Hooks.runCompleted(ctx, r, nil)
	return r.nextRun(ctx, h), nil
}

func (r *Run) finish(ctx context.Context) (successor, []state.Effect, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return successor{}, nil, r.ended
	}
	x, err := r.delta()
	if err != nil {
		return successor{}, nil, err
	}
	told := x.effects
	doc := r.doc.Clone()
	if err := doc.Apply(x.effects); err != nil {
		return successor{}, nil, err
	}
	window, err := doc.Shorten(r.m.opts.Messages, r.m.opts.Results)
	if err != nil {
		return successor{}, nil, err
	}
	if err := doc.Apply(window); err != nil {
		return successor{}, nil, err
	}
	x.effects = append(x.effects, window...)
	t := r.ledger.newLease()
	h, at, err := r.ledger.finish(ctx, r.leaseID, r.message.ID, r.position, x.effects, x.purge, t)
	if err != nil {
		return successor{}, nil, r.endIfLost(err)
	}
	r.position = at
	r.ledger.cacheContent(at, doc)
	r.end(ErrRunEnded)
	return successor{h, t.leaseID}, told, nil
}

// Fail ends the run without storing what was not committed, and marks the message
// as failed. Calls of tools that were committed without a result are answered. It
// returns the next run, as Finish does.
func (r *Run) Fail(ctx context.Context, reason error) (*Run, error) {
	if reason == nil {
		return nil, wrapError("fail", r.user, fmt.Errorf("%w: no reason", ErrInvalid))
	}
	h, err := r.fail(ctx)
	if err != nil {
		return nil, wrapError("fail", r.user, err)
	}
	r.m.opts.Hooks.runCompleted(ctx, r, reason)
	return r.nextRun(ctx, h), nil
}

func (r *Run) fail(ctx context.Context) (successor, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return successor{}, r.ended
	}
	t := r.ledger.newLease()
	h, err := r.ledger.fail(ctx, r.leaseID, r.message.ID, r.position, t)
	if err != nil {
		return successor{}, r.endIfLost(err)
	}
	r.end(ErrRunEnded)
	return successor{h, t.leaseID}, nil
}

// successor is what a run has left behind.
type successor struct {
	head    *head
	leaseID string // of the next run, if there is one
}

// next returns the run that has begun at the end of this one.
func (r *Run) nextRun(ctx context.Context, s successor) *Run {
	r.m.compactIfDue(ctx, r.ledger, s.head)
	if s.head.Run == nil || s.head.Run.LeaseID != s.leaseID {
		return nil
	}
	// The next run is not part of the call that had begun this one.
	next, err := r.m.newRun(r.m.ctx, r.ledger, s.head)
	if err != nil {
		r.m.watchRun(r.user, r.ledger) // it is nobody's now
		return nil
	}
	r.m.opts.Hooks.runStarted(next.ctx, next)
	return next
}

// abandon gives no more signs of life, so that the run is taken over.
func (r *Run) abandon(err error) {
	r.mu.Lock()
	r.end(fmt.Errorf("%w: its end was not stored: %v", ErrFenced, err))
	r.mu.Unlock()
	r.m.watchRun(r.user, r.ledger)
}

// keepAlive shows that the holder lives, until the run ends.
func (r *Run) renewLoop() {
	defer r.m.releaseRun(r)
	beat := time.NewTicker(r.ttl / 3)
	defer beat.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.m.ctx.Done():
			r.cancel(context.Cause(r.m.ctx))
			return
		case <-beat.C:
		}
		// Before others can think that it is dead, the run gives up by itself.
		ctx, cancel := context.WithTimeout(r.ctx, r.leaseLeft())
		asked := time.Now()
		_, err := r.ledger.renew(ctx, r.leaseID, r.message.ID)
		cancel()
		switch {
		case err == nil:
			r.renewed(asked)
			continue
		case errors.Is(err, ErrFenced), errors.Is(err, ErrRolledBack):
		case r.leaseLeft() <= 0:
			err = fmt.Errorf("%w: no sign of life for too long: %v", ErrFenced, err)
		default:
			continue
		}
		r.cancel(err) // lets go who holds the lock
		r.mu.Lock()
		r.end(err)
		r.mu.Unlock()
		return
	}
}

// left returns for how long the run may go on without a sign of life.
func (r *Run) leaseLeft() time.Duration {
	r.renewal.Lock()
	defer r.renewal.Unlock()
	return r.ttl*3/4 - time.Since(r.renewedAt)
}

func (r *Run) renewed(at time.Time) {
	r.renewal.Lock()
	defer r.renewal.Unlock()
	r.renewedAt = at
}

// lasts reports whether the run can still be ended by its holder.
func (r *Run) leaseValid() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended == nil
}

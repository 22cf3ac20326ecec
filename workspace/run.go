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

// Run is the handling of one message by the holder of the workspace. Nothing
// else changes the workspace during a run. All methods are safe for concurrent
// use.
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

	mu    sync.Mutex // held during a commit
	ended error      // why the run has ended
	reply string

	renewal   sync.Mutex
	renewedAt time.Time // when the last renewal that succeeded was begun
}

// newRun returns the run of a head, whose lease this Manager has taken, and
// begins to renew the lease.
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
		liveContent: *c, m: m, ledger: l, message: msg, renewedAt: time.Now(),
		leaseID: h.Run.LeaseID, runID: h.Run.RunID, attempt: h.Run.Attempt, ttl: h.Run.ttl(),
		base: h.Run.Base.Version,
	}
	if r.position.Version == r.base { // otherwise a commit of the run has stored it
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
	m.addLocalRun(r.leaseID, localRun{r.user, r.cancel})
	return r, nil
}

// receiveMessage adds the message to the conversation and to the settings.
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

// ID returns the id of the run. It stays the same when another process takes
// the run over, which may make tool calls again that were made before. Together
// with what a call does, such as the order that it refunds, ID is an
// idempotency key. Together with Step, it is one for everything between two
// commits.
func (r *Run) ID() string { return r.runID }

// Step returns the number of records of the run. A run that is taken over
// continues at the same step, except that a record that answers pending tool
// calls counts too.
func (r *Run) Step() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int(r.position.Version - r.base)
}

// Attempt returns the number of times that the run was taken over.
func (r *Run) Attempt() int { return r.attempt }

// Message returns the message that is being handled. It is in the conversation.
func (r *Run) Message() Message { return r.message }

// Context returns a context that ends when the run loses its lease.
// context.Cause is then ErrFenced, together with ErrInterrupted if another
// message or a reset has ended the run. The context carries the run, for
// FromContext, and the state, for state.FromContext.
func (r *Run) Context() context.Context { return r.ctx }

// Store returns a store for the user's data outside the workspace. Writes to it
// take effect at once, whatever happens to the run.
func (r *Run) Store() *store.Manager { return r.m.Store(r.user) }

// SetReply sets the reply that Handle returns to the sender of the message. The
// last call counts.
func (r *Run) SetReply(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reply = text
}

// Reply returns the reply that was set last.
func (r *Run) Reply() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reply
}

// Commit stores the changes since the last commit. Committed changes survive
// the process: a holder that takes the run over continues with them. If Commit
// returns an error, nothing was stored, unless the error is
// store.ErrUnknownOutcome. In that case the run has ended here, and the holder
// that takes it over sees what was stored.
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
	d, err := r.delta()
	if err != nil || len(d.effects) == 0 {
		return nil, err
	}
	begun := time.Now()
	at, err := r.ledger.commit(ctx, r.holder(), d.change)
	if err != nil {
		return nil, r.endIfLost(err)
	}
	r.noteRenewed(begun)
	return d.effects, r.noteStored(d, at)
}

// holder identifies the run. The caller holds mu.
func (r *Run) holder() holder { return holder{r.leaseID, r.message.ID, r.position} }

// endIfLost ends the run if err says that its lease may be lost. It returns
// err. The caller holds mu.
func (r *Run) endIfLost(err error) error {
	if errors.Is(err, ErrFenced) || errors.Is(err, ErrRolledBack) || errors.Is(err, store.ErrUnknownOutcome) {
		r.end(err)
	}
	return err
}

// end ends the run on this side, for the first err. The caller holds mu.
func (r *Run) end(err error) {
	if r.ended == nil {
		r.ended = err
		r.endWrites(err)
		r.cancel(err)
		r.m.deleteLocalRun(r.leaseID)
	}
}

// leaseValid reports whether the run can still be ended by its holder.
func (r *Run) leaseValid() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended == nil
}

// renewLoop renews the lease until the run ends. It ends the run before another
// holder can take it over.
func (r *Run) renewLoop() {
	defer r.m.deleteLocalRun(r.leaseID)
	heartbeat := time.NewTicker(r.ttl / 3)
	defer heartbeat.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.m.ctx.Done():
			r.cancel(context.Cause(r.m.ctx))
			return
		case <-heartbeat.C:
		}
		err := r.renew()
		switch {
		case err == nil:
			continue
		case errors.Is(err, ErrFenced), errors.Is(err, ErrRolledBack):
		case r.leaseLeft() <= 0:
			err = fmt.Errorf("%w: the lease was not renewed for too long: %v", ErrFenced, err)
		default:
			continue
		}
		r.cancel(err) // ends a commit that holds mu
		r.mu.Lock()
		r.end(err)
		r.mu.Unlock()
		return
	}
}

func (r *Run) renew() error {
	ctx, cancel := context.WithTimeout(r.ctx, r.leaseLeft())
	defer cancel()
	begun := time.Now()
	_, err := r.ledger.renew(ctx, holder{leaseID: r.leaseID, messageID: r.message.ID})
	if err == nil {
		r.noteRenewed(begun)
	}
	return err
}

// leaseLeft returns the time for which the run may continue without a renewal.
// It is half of the time after which another holder may take it over, so that
// clocks may differ in speed.
func (r *Run) leaseLeft() time.Duration {
	r.renewal.Lock()
	defer r.renewal.Unlock()
	return r.ttl*3/4 - time.Since(r.renewedAt)
}

func (r *Run) noteRenewed(begun time.Time) {
	r.renewal.Lock()
	defer r.renewal.Unlock()
	r.renewedAt = begun
}

type contextKey struct{}

// NewContext returns a context that carries a run.
func NewContext(ctx context.Context, r *Run) context.Context {
	return context.WithValue(ctx, contextKey{}, r)
}

// FromContext returns the run that ctx carries, if any. The contexts of
// Options.Run and of Run.Context carry one.
func FromContext(ctx context.Context) (*Run, bool) {
	r, ok := ctx.Value(contextKey{}).(*Run)
	return r, ok && r != nil
}

package ledger

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/agentstate/state/workspace/internal/document"
)

// errStopped is the cause of a context that has ended.
var errStopped = errors.New("explorer: the caller has given up")

// runCalls are the calls on which a run depends, which Options.Retry repeats.
var runCalls = []string{"submit", "commit", "finish", "fail", "again", "release", "renew", "takeOver"}

// passes is the Options.Retry of some schedules.
func passes(err error) bool {
	return errors.Is(err, errLost) || strings.Contains(err.Error(), ": not written: ")
}

// options returns the options of a new process.
func (p *process) options(x *explorer) Options {
	opts := Options{Sealer: x.sealer, TTL: x.ttl, RecordBytes: x.history, Confirm: x.variant.shows}
	if x.retry {
		opts.Retry = passes
	}
	if x.inTurn {
		p.turns = &turns{x: x}
		opts.Turns = p.turns
	}
	if p.strict {
		opts.Fits = func(doc *document.Document) error {
			if doc.Has(document.PartKey, alienField) {
				return errAlien
			}
			return nil
		}
	}
	return opts
}

// begin returns the context of a call, which may end at any time.
func (a *actor) begin() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	if !a.healthy && a.x.chance(a.x.rates.stop) {
		a.giveUp = cancel
	}
	return ctx, func() { a.giveUp = nil; cancel(nil) }
}

// mayGiveUp ends the context of the call that is under way, sometimes.
func (a *actor) mayGiveUp() {
	if a.giveUp != nil && a.x.chance(0.1) {
		a.x.logf("%v: gives up", a)
		a.x.count["stopped"]++
		a.giveUp(errStopped)
	}
}

// judgeRetry checks that a call has not failed with an error that passes.
func (x *explorer) judgeRetry(c *call) {
	if x.retry && c.err != nil && passes(c.err) && slices.Contains(runCalls, c.kind) && !errors.Is(c.err, errStopped) {
		x.violated("%v was not tried again: %v", c, c.err)
	}
}

// turns are the Turns of a process. They are not fair.
type turns struct {
	x      *explorer
	holder *actor
}

func (t *turns) Enter(ctx context.Context) error {
	for t.holder != nil {
		t.x.count["waited"]++
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		t.x.running.point()
	}
	t.holder = t.x.running
	return nil
}

func (t *turns) Leave() {
	if t.holder != t.x.running {
		t.x.violated("%v leaves the turn of %v", t.x.running, t.holder)
	}
	t.holder = nil
}

// checkTurn checks that a call that writes the head has its turn. Only Expire,
// which deletes the head, has none.
func (a *actor) checkTurn(c *call) {
	if t := a.process.turns; t != nil && t.holder != a && c.kind != "expire" {
		a.x.violated("%v writes out of turn", a)
	}
}

package workspace

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/agentstate/state"
)

// toldRun is a run that is held here, as far as its followers are told of it.
type toldRun struct {
	*Workspace
	id, messageID string
	ctx           context.Context // of the run
}

// runChanges tells the changes of the State of a run that is held here.
type runChanges struct {
	run  *toldRun
	feed *feed

	mu    sync.Mutex
	last  *state.State // a snapshot up to which they are told
	ended bool         // the end of the run is told
}

// followRun tells what happens in a run that is held here.
func (f *feed) followRun(run *toldRun) {
	f.mu.Lock()
	if f.changes[run] != nil || !f.isWatched() {
		f.mu.Unlock()
		return
	}
	c := &runChanges{run: run, feed: f, last: run.state.Snapshot()}
	f.changes[run] = c
	f.mu.Unlock()
	started := f.m.background(func() {
		ctx, cancel := context.WithCancel(run.ctx)
		defer cancel()
		defer context.AfterFunc(f.ctx, cancel)()
		for ctx.Err() == nil { // again if it falls behind the journal
			for range run.state.Watch(ctx, c.version()) {
				c.tell()
			}
			c.tell()
		}
		f.forgetChanges(run)
	})
	if !started {
		f.forgetChanges(run)
	}
}

// isWatched reports whether a follower wants all events. The caller holds mu.
func (f *feed) isWatched() bool {
	for w := range f.followers {
		if w.messageID == "" {
			return true
		}
	}
	return false
}

func (f *feed) forgetChanges(run *toldRun) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.changes, run)
}

// changesOf returns nil if nobody wants the changes of a run.
func (f *feed) changesOf(runID string) *runChanges {
	f.mu.Lock()
	defer f.mu.Unlock()
	for run, c := range f.changes {
		if run.id == runID {
			return c
		}
	}
	return nil
}

// endChanges tells the last changes of a run.
func (f *feed) endChanges(runID string) {
	if c := f.changesOf(runID); c != nil {
		c.tell()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = true
	}
}

func (c *runChanges) version() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.Version()
}

// tell tells what has changed since the last call.
func (c *runChanges) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.run.state.Snapshot()
	if c.ended || now.Version() == c.last.Version() {
		return
	}
	effects, err := now.Effects(c.last)
	c.last = now
	if err != nil || len(effects) == 0 {
		return
	}
	maskEffects(effects, c.run.redactor())
	c.feed.tell(Event{Kind: EventChange, MessageID: c.run.messageID, Effects: effects})
}

// maskEffects masks the secrets in the effects on a State, and drops the
// results, which repeat prompts and raw responses.
func maskEffects(effects []state.Effect, redact func(string) string) {
	for i := range effects {
		e := &effects[i]
		e.Cause, e.Results = redact(e.Cause), nil
		switch {
		case e.Value == "":
		case e.Secret:
			e.Value = state.JSONText(masked)
		default:
			value, err := maskedJSON(json.RawMessage(e.Value), redact)
			if err != nil {
				value = json.RawMessage(state.JSONText(masked))
			}
			e.Value = state.JSON(value)
		}
		for n, msg := range e.Messages {
			raw, err := maskedJSON(json.RawMessage(msg.Raw()), redact)
			if err == nil {
				e.Messages[n], err = state.DecodeMessage(raw)
			}
			if err != nil {
				e.Messages[n] = state.UserText(masked)
			}
		}
	}
}

// tellStarted tells that this Manager holds a run.
func (f *feed) tellStarted(run *toldRun) {
	f.tell(Event{Kind: EventStarted, MessageID: run.messageID})
	f.followRun(run)
}

// tellOf tells an event of a run, behind what the run has changed before, unless
// its end is told.
func (f *feed) tellOf(runID string, e Event) {
	c := f.changesOf(runID)
	if c == nil {
		if !e.isPiece() { // of which nobody has the beginning
			f.tell(e)
		}
		return
	}
	c.tell()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		f.tell(e)
	}
}

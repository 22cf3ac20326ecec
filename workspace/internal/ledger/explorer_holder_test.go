package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/agentstate/state/store"
)

// The holders of the explorer. A process has one incarnation at a time, which
// its actors share. Some processes have the name of one before them.

// newHolders returns the holder records as a process sees them.
func (x *explorer) newHolders() *Holders {
	s := NewHolders(port{x.store}, x.sealer)
	s.pause = func(ctx context.Context, _ time.Duration) error {
		x.running.point()
		return context.Cause(ctx)
	}
	return s
}

// lease returns a lease of the process. It is vacant if the process has no
// holder record.
func (a *actor) lease() Lease {
	p, lease := a.process, a.process.ledger.NewLease()
	if !a.hasIncarnation() {
		return lease.Vacant()
	}
	return lease.HeldBy(p.incarnation.ID())
}

// hasIncarnation begins an incarnation if there is none.
func (a *actor) hasIncarnation() bool {
	p := a.process
	if p.incarnation != nil || p.recording {
		return p.incarnation != nil
	}
	i := p.holders.NewIncarnation(p.holder, a.x.ttl)
	a.x.ghost.holders[i.ID()] = p
	p.recording = true
	defer func() { p.recording = false }()
	if err := i.Begin(context.Background()); err != nil {
		a.x.logf("%v: holder %s: %v", a, i.ID(), err)
		return false
	}
	p.incarnation = i
	return true
}

// beat makes a heartbeat of the process.
func (a *actor) beat() {
	p := a.process
	if p.incarnation == nil || p.recording {
		return
	}
	p.recording = true
	defer func() { p.recording = false }()
	err := p.incarnation.Renew(context.Background(), p.abandoned)
	a.x.logf("%v: heartbeat: %v", a, err)
	switch {
	case err == nil:
		a.x.count["beat"]++
		if a.x.ghost.ended[p.incarnation.ID()] && !a.x.variant.failover {
			a.x.violated("I8: a heartbeat of a holder that has ended succeeds")
		}
	case errors.Is(err, ErrIncarnationEnded):
		a.x.count["replaced"]++
		if errors.Is(err, ErrReplaced) {
			p.holder = ""
		}
		a.loseRuns()
	case !errors.Is(err, errLost):
		a.x.violated("a heartbeat: %v", err)
	}
}

// loseRuns gives up what the actors of the process hold.
func (a *actor) loseRuns() {
	for _, b := range a.x.actors {
		if b.process == a.process {
			b.run = nil
		}
	}
	a.process.incarnation, a.process.abandoned = nil, nil
}

// retire gives the incarnation up, as Manager.Close does.
func (a *actor) retire() {
	p := a.process
	if p.incarnation == nil || p.recording {
		return
	}
	p.recording = true
	defer func() { p.recording = false }()
	if err := p.incarnation.Withdraw(context.Background()); err == nil || errors.Is(err, store.ErrUnknownOutcome) {
		a.loseRuns()
	}
}

// abandon says that a lease is not held, although a head may say so.
func (a *actor) abandon(lease string) {
	if p := a.process; p.incarnation != nil && lease != "" {
		p.abandoned = append(p.abandoned, lease)
	}
}

// isGone reports whether the run of a head may be taken over: its holder has
// ended, or is silent. In the latter case the actor ends the holder first.
func (a *actor) isGone(h *Head) bool {
	p := a.process
	states, err := p.holders.States(context.Background(), h.Run)
	if err != nil {
		a.failed(err)
		return false
	}
	state, now := states[0], a.x.clock(p)
	if h.LeaseState() != a.pulse || state != a.holder {
		a.pulse, a.holder, a.since = h.LeaseState(), state, now
	}
	switch {
	case state.Ended:
		a.x.count["evidence"]++
		return true
	case now-a.since < h.Run.LeaseTTL()*3/2:
		return false
	}
	a.x.count["silence"]++
	a.ending = state.revision
	err = p.holders.End(context.Background(), h.Run, state)
	a.ending = ""
	a.x.logf("%v: ends holder %s: %v", a, h.Run.Holder, err)
	return err == nil
}

// sawHolder is called after each write of a holder record.
func (g *ghost) sawHolder(r request, w store.Write, before revised, found bool) {
	var was, is sightHolder
	if found {
		was = g.decodeHolder(w.Key, before.value)
		if r.ending != "" && before.revision != r.ending {
			g.x.violated("I9: a holder is ended although it has made a heartbeat")
		}
	}
	if !w.Delete {
		is = g.decodeHolder(w.Key, w.Value)
	}
	for _, lease := range is.Abandoned {
		g.abandoned[lease] = true
	}
	if was.Holder == is.Holder {
		return
	}
	if was.Holder != "" {
		g.ended[was.Holder] = true
	}
	if g.ended[is.Holder] && !g.x.variant.failover {
		g.x.violated("I8: the holder %s comes back", is.Holder)
	}
}

// sightHolder is a holder record that is decoded without the code under test.
type sightHolder struct {
	Holder    string
	Abandoned []string
}

func (g *ghost) decodeHolder(key string, value []byte) (s sightHolder) {
	data, err := g.x.sealer.open(key, key, value)
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		g.x.violated("%s: %v", key, err)
	}
	return s
}

// isFree reports whether any process may take a run.
func (g *ghost) isFree(r *period) bool {
	return r.lease == "" || r.holder == "" || g.ended[r.holder] || g.abandoned[r.lease]
}

// backHolders notes which incarnations a failover has ended.
func (g *ghost) backHolders() {
	present := map[string]bool{}
	for key, e := range g.x.store.entries {
		if isHolderKey(key) {
			present[g.decodeHolder(key, e.value).Holder] = true
		}
	}
	for id := range g.holders {
		if !present[id] {
			g.ended[id] = true
		}
	}
}

func isHolderKey(key string) bool { return strings.HasPrefix(key, holderPrefix) }

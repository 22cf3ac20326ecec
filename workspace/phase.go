package workspace

import (
	"cmp"
	"slices"
	"sync"
)

// phase is how far a run has come in this process. See nextPhases for its way.
type phase uint8

const (
	phaseLoading phase = iota // its message and its content are being read
	phaseRunning              // its function may commit
	phaseLeft                 // its function was left behind and may not, but the run can be ended
	phaseEnding               // its end is being written
	phaseStored               // its end is stored, and the hooks for that are called
	phaseOver                 // these have returned
	phaseGone                 // it has another holder or another attempt, or nobody knows what is stored
)

// nextPhases has the phases that may follow each, but for resume. What is stored cannot
// be lost, and what is gone does not come back.
var nextPhases = [...][]phase{
	phaseLoading: {phaseRunning, phaseGone},
	phaseRunning: {phaseLeft, phaseEnding, phaseGone},
	phaseLeft:    {phaseEnding, phaseGone},
	phaseEnding:  {phaseStored, phaseGone},
	phaseStored:  {phaseOver},
	phaseOver:    {},
	phaseGone:    {},
}

// life is the phase of a run. It is safe for concurrent use. The caller that changes it
// to phaseStored or phaseGone holds Run.mu, so that no commit is under way.
type life struct {
	mu     sync.Mutex
	phase  phase
	before phase // of phaseEnding: what resume returns to
	cause  error // of phaseStored and phaseGone
	// refused is why the function can commit nothing more: the cause of phaseLeft, or of
	// what came first.
	refused error
}

// to changes the phase, with a cause if the function can commit nothing more then. It
// reports false, and changes nothing, if the phase may not follow.
func (l *life) to(next phase, cause error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.change(next, cause)
}

func (l *life) change(next phase, cause error) bool {
	if !slices.Contains(nextPhases[l.phase], next) {
		return false
	}
	switch next {
	case phaseEnding:
		l.before = l.phase
	case phaseLeft, phaseStored, phaseGone:
		l.cause, l.refused = cause, cmp.Or(l.refused, cause)
	}
	l.phase = next
	return true
}

// leave notes that the function was left behind, and why, unless nothing can be committed
// any more. The write of an end goes on.
func (l *life) leave(cause error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase == phaseEnding {
		l.before, l.refused = phaseLeft, cmp.Or(l.refused, cause)
		return true
	}
	return l.change(phaseLeft, cause)
}

// resume undoes the change to phaseEnding, if the phase is that: the write of the end
// has failed.
func (l *life) resume() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase != phaseEnding {
		return false
	}
	l.phase = l.before
	return true
}

func (l *life) is(any ...phase) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(any, l.phase)
}

// ended returns why the run can no longer be ended by its holder, or nil.
func (l *life) ended() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.phase {
	case phaseStored, phaseOver, phaseGone:
		return l.cause
	}
	return nil
}

// refusal returns why the function of the run can commit nothing more, or nil.
func (l *life) refusal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

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

// nextPhases has the phases that may follow each. The write of an end that fails leaves
// the run as it was. What is stored cannot be lost, and what is gone does not come back.
var nextPhases = [...][]phase{
	phaseLoading: {phaseRunning, phaseGone},
	phaseRunning: {phaseLeft, phaseEnding, phaseGone},
	phaseLeft:    {phaseEnding, phaseGone},
	phaseEnding:  {phaseRunning, phaseLeft, phaseStored, phaseGone},
	phaseStored:  {phaseOver},
	phaseOver:    {},
	phaseGone:    {},
}

// life is the phase of a run. It is safe for concurrent use. Whoever changes it to
// phaseStored or phaseGone holds Run.mu, so that no commit is under way.
type life struct {
	mu     sync.Mutex
	phase  phase
	before phase // phaseEnding
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

// resume undoes the change to phaseEnding, if the phase is that.
func (l *life) resume() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase == phaseEnding && l.change(l.before, l.refused)
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

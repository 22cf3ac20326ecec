package workspace

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The way of a run: each change of its phase, and none besides. Each row has the
// phases that may follow.
func TestPhases(t *testing.T) {
	way := map[string]string{
		"loading": "running gone", "running": "left ending gone", "left": "ending gone", "ending": "stored gone",
		"stored": "over", "over": "", "gone": "",
	}
	names := []string{"loading", "running", "left", "ending", "stored", "over", "gone"}
	for from, name := range names {
		var next []byte
		for to, other := range names {
			l := life{phase: phase(from)}
			changed := l.to(phase(to), nil)
			require.Equal(t, changed, l.is(phase(to)) && from != to)
			if changed {
				next = fmt.Appendf(next, " %s", other)
			}
		}
		require.Equal(t, way[name], string(next[min(1, len(next)):]), name)
	}
}

// A function that is left behind in the moment in which the end of its run is being
// written, as that of Do may be, changes nothing about the end.
func TestLeftWhileEnding(t *testing.T) {
	left, stored := errors.New("left"), errors.New("stored")
	for _, isStored := range []bool{true, false} {
		var l life
		require.True(t, l.to(phaseRunning, nil) && l.to(phaseEnding, nil))
		require.True(t, l.leave(left))
		require.Equal(t, left, l.refusal())
		require.NoError(t, l.ended())
		if isStored {
			require.True(t, l.to(phaseStored, stored))
			require.Equal(t, stored, l.ended())
		} else {
			require.True(t, l.resume() && l.is(phaseLeft))
		}
		require.Equal(t, left, l.refusal())
	}
}

// However a run has come to its phase: a function that was refused once stays refused,
// with the first reason; a run that is over stays over, with its reason; and an end that
// could not be written leaves the run as it was.
func TestLife(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l life
		var refused, ended error
		for i, step := range rapid.SliceOf(rapid.IntRange(0, 7)).Draw(t, "steps") {
			before := l.phase
			switch next := phase(step); {
			case step == 7:
				writing := l.is(phaseEnding)
				require.Equal(t, writing, l.resume())
				require.False(t, l.is(phaseEnding))
				require.Equal(t, writing && refused != nil, writing && l.is(phaseLeft))
			default:
				cause := errors.New(fmt.Sprint(i))
				changed := next == phaseLeft && l.leave(cause) || next != phaseLeft && l.to(next, cause)
				if !changed {
					require.Equal(t, before, l.phase)
				}
				if over := next == phaseStored || next == phaseGone; changed && over {
					ended = cause
				}
				if changed && refused == nil && (next == phaseLeft || ended != nil) {
					refused = cause
				}
			}
			require.Equal(t, refused, l.refusal())
			require.Equal(t, ended, l.ended())
		}
	})
}

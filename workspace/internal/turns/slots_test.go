package turns_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state/workspace/internal/turns"
)

func userOf(workspace string) string {
	user, _, _ := strings.Cut(workspace, "/")
	return user
}

// A run passes its slot to the next one, and lends it while it waits. Each slot is
// given back once, however often it is freed.
func TestSlots(t *testing.T) {
	s := turns.NewSlots(2, 0, userOf)
	require.True(t, s.Try("ann", "1"))
	first := s.Take("1")
	require.True(t, s.Try("bob", "2"))
	require.False(t, s.Try("cid", "3"), "there are two")
	require.False(t, first.Crowded(), "nobody waits")

	takeBack := first.Lend()
	require.True(t, s.Try("cid", "3"), "the first run waits")
	takeBack()
	require.True(t, first.Crowded(), "more are in than there are places")
	s.Drop("3")
	s.Drop("3")

	first.Pass("4")
	require.False(t, first.Has())
	first.Free()
	require.False(t, s.Try("cid", "5"), "the next run has it")
	next := s.Take("4")
	require.True(t, next.Has())
	next.Free()
	next.Free()
	require.True(t, s.Try("cid", "5"))
	require.False(t, s.Try("cid", "6"))
	require.False(t, s.Take("7").Has(), "no such lease")
}

// Whatever is tried, dropped, passed and freed, as many runs have slots as are counted,
// and a user has no more than the bound.
func TestSlotsOfUsers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const all, perUser = 4, 2
		s := turns.NewSlots(all, perUser, userOf)
		type run struct {
			user string
			slot *turns.Slot
		}
		var runs []run
		held := map[string]int{}
		id := 'a'
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			user := rapid.SampledFrom([]string{"ann", "bob", "cid"}).Draw(t, "user")
			if id++; rapid.Bool().Draw(t, "try") {
				want := len(runs) < all && held[user] < perUser
				require.Equal(t, want, s.Try(user+"/"+string(id), string(id)))
				if want {
					held[user]++
					runs = append(runs, run{user, s.Take(string(id))})
				}
			} else if n := len(runs); n > 0 {
				r := &runs[rapid.IntRange(0, n-1).Draw(t, "run")]
				if rapid.Bool().Draw(t, "pass") {
					r.slot.Pass(string(id))
					r.slot = s.Take(string(id))
				} else {
					r.slot.Free()
					held[r.user]--
					*r, runs = runs[n-1], runs[:n-1]
				}
			}
		}
	})
}

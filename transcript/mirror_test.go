package transcript_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

// countingMirror returns a Mirror of numbers. Number n stands for n%3 messages
// with its text, and is an error if it is negative.
func countingMirror() (*transcript.Mirror[int], map[int]int) {
	converted := map[int]int{}
	return transcript.NewMirror(func(n int) ([]state.Message, error) {
		converted[n]++
		if n < 0 {
			return nil, errBroken
		}
		return slices.Repeat([]state.Message{state.UserText(fmt.Sprint(n))}, n%3), nil
	}), converted
}

var errBroken = errors.New("broken")

// textsOf returns what numbers stand for, and of each the index of its number.
func textsOf(own []int) (texts []string, sources []int) {
	for i, n := range own {
		for range n % 3 {
			texts, sources = append(texts, fmt.Sprint(n)), append(sources, i)
		}
	}
	return texts, sources
}

func TestMirrorFollowsTheConversation(t *testing.T) {
	seed := effort.LogSeed(t)
	for run := range effort.Runs(300) {
		rng := rand.New(rand.NewPCG(seed, uint64(run)))
		mirror, converted := countingMirror()
		var own []int
		var earlier [][]state.Message
		var earlierTexts [][]string
		next := 0
		for range 20 {
			present := map[int]bool{}
			for _, n := range own {
				present[n] = true
			}
			switch i := rng.IntN(len(own) + 1); rng.IntN(5) {
			case 0: // drop the oldest, as a trim
				own = own[i:]
			case 1: // regenerate the end
				own = own[:i]
			case 2: // drop some in the middle
				own = slices.Delete(own, i, min(i+3, len(own)))
			default:
				next++
				own = append(own, next)
			}
			before := fmt.Sprint(converted)
			msgs, err := mirror.Update(own)
			require.NoError(t, err)
			texts, sources := textsOf(own)
			require.Equal(t, texts, plain(msgs))
			for i, source := range sources {
				require.Equal(t, source, mirror.Source(i))
			}
			require.Equal(t, -1, mirror.Source(-1))
			require.Equal(t, -1, mirror.Source(len(msgs)))
			for n := range present {
				require.Equal(t, 1, converted[n], "%d is converted again, after %s", n, before)
			}
			earlier, earlierTexts = append(earlier, msgs), append(earlierTexts, texts)
		}
		for i, msgs := range earlier {
			require.Equal(t, earlierTexts[i], plain(msgs), "a returned slice was changed")
		}
	}
}

func plain(msgs []state.Message) (texts []string) {
	for _, m := range msgs {
		texts = append(texts, m.(state.TextMessage).Text())
	}
	return texts
}

func TestMirrorIsUsableAfterAnError(t *testing.T) {
	mirror, converted := countingMirror()
	_, err := mirror.Update([]int{1, 2, -1, 4})
	require.ErrorIs(t, err, errBroken)
	require.EqualError(t, err, "transcript: message 2: broken")
	msgs, err := mirror.Update([]int{1, 2, 4})
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2", "2", "4"}, plain(msgs))
	require.Equal(t, map[int]int{1: 1, 2: 1, -1: 1, 4: 1}, converted)
}

// The caller may append to a result, and shorten its own slice in place.
func TestMirrorSharesNothingThatChanges(t *testing.T) {
	mirror, _ := countingMirror()
	own := []int{1, 4, 7}
	first, err := mirror.Update(own)
	require.NoError(t, err)
	mine := append(first, state.UserText("mine"))
	own = append(own, 10)
	second, err := mirror.Update(own)
	require.NoError(t, err)
	require.Equal(t, []string{"1", "4", "7", "10"}, plain(second))
	require.Equal(t, []string{"1", "4", "7", "mine"}, plain(mine))
	copy(own, own[1:])
	third, err := mirror.Update(own[:3])
	require.NoError(t, err)
	require.Equal(t, []string{"4", "7", "10"}, plain(third))
	require.Equal(t, []string{"1", "4", "7"}, plain(first))
}

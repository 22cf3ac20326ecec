package state_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
)

// The tests of this file prove what the stack of results costs.

// A result whose history is the conversation as it is adds one run of messages,
// however the values were made, and whatever texts are repeated elsewhere.
func TestAHistoryThatContinuesTheLastOneIsOneRun(t *testing.T) {
	for _, made := range []string{"the same values", "equal values"} {
		st := state.New(nil)
		for i := range 50 {
			require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText(fmt.Sprint("question ", i))}))
			said := state.Messages.Or(st, nil)
			if made == "equal values" {
				for i, m := range said {
					var err error
					said[i], err = state.DecodeMessage([]byte(m.Raw()))
					require.NoError(t, err)
				}
			}
			require.NoError(t, st.History().Append(state.InferenceResult{
				Prompt: []state.Message{state.SystemText("You help.")}, History: said[max(0, len(said)-20):],
				Output: []state.Message{state.AssistantText(fmt.Sprint("answer ", i))},
			}))
		}
		data := ruleExport(t, st)
		require.NotContains(t, data, `"history":[[1,2],[3,4]`)
		require.Contains(t, data, `"history":[[80,100]]`, made)
	}
}

// Branches add messages to one table at the same time. Each has the messages of
// its own results, each once.
func TestBranchesPushAtTheSameTime(t *testing.T) {
	st := state.New(nil)
	for i := range 20 {
		require.NoError(t, st.History().Append(ruleResult(fmt.Sprint(i), "a")))
	}
	var wg sync.WaitGroup
	branches := make([]*state.State, 8)
	for b := range branches {
		branches[b] = st.Fork()
		wg.Go(func() {
			for i := range 200 {
				r := ruleResult(fmt.Sprint(i%(b+3)), "a")
				r.Output = append(r.Output, state.AssistantText(fmt.Sprint(b, i%7)))
				if err := branches[b].History().Append(r); err != nil {
					panic(err)
				}
				if i%3 == 0 {
					if _, _, err := branches[b].History().Pop(); err != nil {
						panic(err)
					}
				}
			}
		})
	}
	wg.Wait()
	for b, branch := range append(branches, st) {
		back, err := state.Import(nil, []byte(ruleExport(t, branch)))
		require.NoError(t, err, "branch %d has a message twice", b)
		require.Equal(t, branch.History().Results(), back.History().Results())
	}
}

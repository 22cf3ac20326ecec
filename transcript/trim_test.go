package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

// places returns the indexes of the messages in all.
func places(some, all []state.Message) string {
	var found []string
	for i, m := range all {
		if len(some) > 0 && some[0] == m {
			some, found = some[1:], append(found, fmt.Sprint(i))
		}
	}
	if len(some) > 0 {
		return "others"
	}
	return strings.Join(found, " ")
}

func TestKeepLast(t *testing.T) {
	for _, row := range []struct {
		name   string
		script string
		n      int
		want   string
	}{
		{"nothing", "", 3, ""},
		{"all are within the limit", "s u a u a", 5, "0 1 2 3 4"},
		{"the oldest are dropped", "u a u a u a", 2, "4 5"},
		{"the system is kept and counted", "s d u a u a", 4, "0 1 4 5"},
		{"a system message in the middle is one like others", "s u a s u a", 3, "0 4 5"},
		{"a call and its result stay together", "u c1 r1 a u a", 5, "0 3 4 5"},
		{"with what the user asked for", "u c1 r1 c2 r2 a", 4, "0 3 4 5"},
		{"which is the last before them", "u a u c1 r1 c2 r2", 3, "2 5 6"},
		{"and needs to be there but once", "u a u c1 r1 a", 4, "2 3 4 5"},
		{"the latest group is kept even if it is too much", "s u c1,2,3 r1 r2 r3", 2, "0 1 2 3 4 5"},
		{"as it is for 0", "s u a u a", 0, "0 3 4"},
		{"and for less", "s u a u a", -7, "0 3 4"},
		{"pending calls are kept", "u c1 u a u a u a", 4, "0 1 6 7"},
		{"with what is of their turn", "u c1,2 r1 u a u a", 3, "0 1 2 5 6"},
		{"a late result finds its call", "u c1 u a u a r1", 0, "0 1 4 6"},
		{"a group with others between its messages", "u c1 u a r1 u a", 4, "5 6"},
		{"no user at all", "a c1 r1 a", 2, "3"},
		{"only the system", "s s s", 1, "0 1 2"},
		{"an answer to a call of before the conversation", "r1 a a", 1, "0 2"},
		{"reasoning and what it led to", "u rs1 c1 r1 rs2 a", 3, "0 4 5"},
	} {
		t.Run(row.name, func(t *testing.T) {
			msgs := script(t, row.script)
			require.Equal(t, row.want, places(transcript.KeepLast(row.n)(msgs), msgs))
		})
	}
}

func TestTrimReturnsASliceOfItsOwn(t *testing.T) {
	msgs := script(t, "u a u a")
	kept := transcript.KeepLast(9)(msgs)
	kept[0] = state.UserText("else")
	require.NotEqual(t, kept[0], msgs[0])
}

func TestTrimHandlerIsForMessages(t *testing.T) {
	messages := &state.Field[[]state.Message]{Name: "messages", Handler: transcript.KeepLast(3).Handler()}
	st := state.New(state.MustSchema(messages))
	for _, m := range script(t, "s u c1 r1 u a") {
		require.NoError(t, messages.Set(st, []state.Message{m}))
	}
	kept, err := messages.Get(st)
	require.NoError(t, err)
	require.Equal(t, "[text \"system\": \"text 0\" text \"user\": \"text 4\" text \"assistant\": \"text 5\"]", fmt.Sprint(kept))
}

package document

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
)

// A conversation of few messages that are long is shortened, too: one that is
// larger than a State takes could not be continued.
func TestShortenLongConversations(t *testing.T) {
	defer func(before int) { MaxConversation = before }(MaxConversation)
	MaxConversation = 10_000
	d, st := New(), state.New(nil)
	before := st.Snapshot()
	for range 12 {
		require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText(strings.Repeat("x", 900))}))
	}
	effects, err := d.Save(before, st, nil)
	require.NoError(t, err)
	require.NoError(t, d.ApplySaved(effects, Origin{}, nil, st))
	for _, c := range []struct{ most, want int }{{-1, 12}, {100, 5}, {3, 3}} {
		short := d.Clone()
		_, err = short.Shorten(c.most, -1)
		require.NoError(t, err)
		require.Equal(t, c.want, short.entryList().Len())
		_, err = short.Shorten(c.most, -1)
		require.NoError(t, err)
		require.Equal(t, c.want, short.entryList().Len())
	}
}

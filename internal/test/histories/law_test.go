package histories

import (
	"errors"
	"testing"

	"github.com/agentstate/state"
	"github.com/stretchr/testify/require"
)

// The report of a law cannot be seen from outside, because it fails the test.
func TestShrink(t *testing.T) {
	system := func(msgs []state.Message) (n int) {
		for _, m := range msgs {
			if m.Role() == "system" {
				n++
			}
		}
		return n
	}
	var msgs []state.Message
	for range 40 {
		msgs = append(msgs, state.UserText("Hi"), state.SystemText("Be brief."), state.AssistantText("Hi"))
	}
	law := Law[int]{Obeys: func(most int, msgs []state.Message) error {
		if n := system(msgs); n > most {
			return errors.New("too many")
		}
		return nil
	}}
	smallest := law.shrink(2, msgs)
	require.Len(t, smallest, 3)
	require.Equal(t, 3, system(smallest))
	require.ErrorContains(t, law.broken(2, smallest), "too many")
	require.NoError(t, law.broken(3, smallest))
}

func TestPanicBreaksTheLaw(t *testing.T) {
	law := Law[int]{Obeys: func(_ int, msgs []state.Message) error { panic("at the end") }}
	require.ErrorContains(t, law.broken(0, nil), "panic: at the end")
}

package inspect_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace"
	"github.com/stretchr/testify/require"
)

type queueJSON struct {
	Run *struct {
		Holder        string
		Attempt, Step int
		TTL           int  `json:"ttl_ms"`
		First         bool `json:"first_look"`
		Late          bool
		Message       struct{ ID string }
	}
	Queue []struct {
		Place int
		ID    string
		Text  struct{ Text string }
	}
	Dead []struct {
		ID       string
		Attempts int
		Reason   struct{ Text string }
	} `json:"dead_letters"`
	Ended []struct {
		ID, As string
		Reason struct{ Text string }
	}
}

func TestQueueShowsRunAndMessages(t *testing.T) {
	f := newFixture(t, 0)
	h := f.handler(t, nil)
	var data queueJSON
	jsonOf(t, h, "/workspace?user=bob", &data)
	require.Equal(t, "this process", data.Run.Holder)
	require.Equal(t, "b1", data.Run.Message.ID)
	require.Equal(t, []int{1, 0, 4_000}, []int{data.Run.Attempt, data.Run.Step, data.Run.TTL})
	require.True(t, data.Run.First)
	require.Len(t, data.Queue, 1)
	require.Equal(t, "b2", data.Queue[0].ID)
	require.Equal(t, "Anybody there?", data.Queue[0].Text.Text)
	p := get(t, h, "/workspace?user=bob")
	for _, want := range []string{"Held by this process", "attempt 1 of 3", "1 of 32", "Anybody there?", "Hello?"} {
		require.Contains(t, p.body, want)
	}
	require.Contains(t, get(t, h, "/workspace?user=alice").body, "Nothing runs, waits or has failed.")

	other := newHandler(t, f.open(t, &workspace.Options{Schema: desk}), nil)
	jsonOf(t, other, "/workspace?user=bob", &data)
	require.Equal(t, "another process", data.Run.Holder)
}

func TestQueueShowsRunWithoutHolder(t *testing.T) {
	f := newFixture(t, 0)
	m, err := workspace.Open(t.Context(), f.db, &workspace.Options{Schema: desk, Run: f.answer})
	require.NoError(t, err)
	_, err = m.Submit(t.Context(), "left", workspace.Message{ID: "m", Content: state.UserText("Hello?")})
	require.NoError(t, err)
	require.ErrorIs(t, m.Close(), workspace.ErrBusy)
	h := f.handler(t, nil)
	var data queueJSON
	jsonOf(t, h, "/workspace?user=left", &data)
	require.Equal(t, "none", data.Run.Holder)
	require.Contains(t, get(t, h, "/workspace?user=left").body, "Waits for a holder")
}

func TestQueueShowsDeadLetters(t *testing.T) {
	f := newFixture(t, 0)
	h := f.handler(t, nil)
	var data queueJSON
	jsonOf(t, h, "/workspace?user=carol", &data)
	require.Nil(t, data.Run)
	require.Len(t, data.Dead, 1)
	require.Equal(t, "refused", data.Dead[0].ID)
	require.Equal(t, 1, data.Dead[0].Attempts)
	require.Contains(t, data.Dead[0].Reason.Text, errRefused.Error())
	require.Empty(t, data.Ended)

	require.NoError(t, f.manager.Discard(t.Context(), "carol", "refused"))
	jsonOf(t, h, "/workspace?user=carol", &data)
	require.Empty(t, data.Dead)
	require.Equal(t, "discarded", data.Ended[0].As)
}

func TestQueueIsBounded(t *testing.T) {
	f := newFixture(t, 0)
	m := f.open(t, &workspace.Options{Schema: desk, Run: f.answer, Queue: 200})
	_, err := m.Submit(t.Context(), "busy", workspace.Message{Content: state.UserText("Hello?")})
	require.NoError(t, err)
	for i := range 120 {
		_, err := m.Submit(t.Context(), "busy", workspace.Message{ID: fmt.Sprint(i), Content: state.UserText(strings.Repeat(`<"`, 2000))})
		require.NoError(t, err)
	}
	h := newHandler(t, m, nil)
	p := get(t, h, "/workspace?user=busy")
	require.LessOrEqual(t, len(p.body), 128<<10)
	var data queueJSON
	jsonOf(t, h, "/workspace?user=busy&waiting=100", &data)
	require.Len(t, data.Queue, 20)
	require.Equal(t, 101, data.Queue[0].Place)
	require.Equal(t, "100", data.Queue[0].ID)
}

// A heartbeat has no time: its age is known from two looks.
func TestQueueMeasuresAgeOfHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0)
		h := f.handler(t, nil)
		age := func() (ms int, first bool) {
			var data struct {
				Run struct {
					Age   int  `json:"heartbeat_age_ms"`
					First bool `json:"first_look"`
				}
			}
			jsonOf(t, h, "/workspace?user=bob", &data)
			return data.Run.Age, data.Run.First
		}
		ms, first := age()
		require.Equal(t, 0, ms)
		require.True(t, first)
		time.Sleep(time.Second)
		ms, first = age()
		require.Equal(t, 1000, ms)
		require.False(t, first)
		time.Sleep(10 * time.Second) // a heartbeat comes every third of that
		ms, _ = age()
		require.Equal(t, 0, ms)
	})
}

package aguistate_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/workspace"
)

// resume sends decisions of a page, and returns what comes of them.
func (d *desk) resume(run string, decisions ...object) string {
	body, err := json.Marshal(object{"threadId": "1", "runId": run, "resume": decisions})
	require.NoError(d.t, err)
	return d.all("ann", string(body))
}

// A page decides about the call that it shows, and about no other one with its id.
func TestAPageDecidesAboutTheCallThatItShows(t *testing.T) {
	d := newDesk(t, nil)
	shown := d.all("ann", bodyOf(nil, `{"id":"m","role":"user","content":"call pay:a pay:b pay:c pay:d\nsay ready"}`))
	waiting := d.view("ann", "1").Suspended()
	require.Len(t, waiting, 4)
	require.Equal(t, waiting[0].ID, waiting[2].ID, "the provider repeats ids")
	var keys []string
	for _, c := range waiting {
		require.Contains(t, shown, `"id":"`+c.Key+`"`)
		keys = append(keys, c.Key)
	}
	paid := func() map[string]int { return scores.GetOr(d.view("ann", "1").State(), nil) }
	for run, id := range map[string]string{"by id": waiting[0].ID, "by name": "pay", "by place": "call-2-0", "by nothing": ""} {
		require.Contains(t, d.resume(run, approve(id, true)), `"code":"argument"`)
	}
	require.Empty(t, paid())

	d.resume("2", approve(keys[2], true))
	require.Equal(t, map[string]int{"c": 1}, paid())
	d.resume("3",
		object{"interruptId": keys[3], "status": "resolved", "payload": object{"approved": true, "editedArgs": object{"text": "less"}}},
		approve(keys[0], false),
	)
	require.Equal(t, map[string]int{"c": 1, "less": 1}, paid())
	d.resume("4", approve(keys[2], true), approve(keys[0], true)) // too late
	require.Equal(t, map[string]int{"c": 1, "less": 1}, paid())
	require.Equal(t, keys[1], d.waitingCall())
}

// A card that is left from before a Reset decides about no later call.
func TestAStaleCardDecidesNothing(t *testing.T) {
	d := newDesk(t, nil)
	d.askToPay()
	stale := d.waitingCall()
	_, err := d.m.Reset(t.Context(), workspace.Thread("ann", "1"))
	require.NoError(t, err)
	d.all("ann", `{"threadId":"1","runId":"5","messages":[{"id":"again","role":"user","content":"call pay:a\nsay ready"}]}`)
	now := d.waitingCall()
	require.NotEqual(t, stale, now)
	require.Contains(t, d.resume("2", approve(stale, true)), `"code":"argument"`)
	require.Equal(t, now, d.waitingCall())
	require.Empty(t, scores.GetOr(d.view("ann", "1").State(), nil))
}

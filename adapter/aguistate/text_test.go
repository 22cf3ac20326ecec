package aguistate_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/workspace"
)

func TestAPageTalks(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		p := d.page(c, version, "ann", "1")
		s := p.say("say Hello there, Ann!")
		require.Empty(t, s.Error)
		p.mustBe(s)
		require.Equal(t, []string{"user say Hello there, Ann!", "assistant Hello there, Ann!"}, textsOf(s.Messages))
		require.Equal(t, 1, s.count("TEXT_MESSAGE_START"), s.types())
		s = p.say("call note:a note:b\nset title \"Notes\"\ncall note:c\nthink")
		require.Empty(t, s.Error)
		p.mustBe(s)
		require.Equal(t, []any{"a", "b", "c"}, s.State["notes"])
		require.Equal(t, 3, s.count("TOOL_CALL_RESULT"))
		require.Equal(t, 1, s.count("REASONING_MESSAGE_CONTENT"))
		require.Zero(t, s.count("MESSAGES_SNAPSHOT"), s.types())
		s = p.say("set scores {\"a/b\":1}\nset notes [\"d\"]\nset count 2\nsay " + secret)
		p.mustBe(s)
		p.open() // a page that was closed comes back
		p.mustBe(p.catchUp())
	})
}

func TestAPageFollows(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		p, tab := d.page(c, version, "ann", "1"), d.page(c, 1-version, "ann", "1")
		tab.do("follow", nil)
		tab.await()
		for range 3 {
			s := p.say("call note:a\nsay one two three")
			p.mustBe(s)
			require.Empty(t, s.Error)
			tab.mustBe(tab.await())
		}
		require.NoError(t, d.m.Update(context.Background(), workspace.Thread("ann", "1"), func(w *workspace.Workspace) error {
			return title.Set(w.State(), "new")
		}))
		s := tab.await()
		tab.mustBe(s)
		require.Equal(t, "new", s.State["title"])
		tab.do("stop", nil)
	})
}

func TestTwoTabsSpeakAtOnce(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		p, tab, late := d.page(c, version, "ann", "1"), d.page(c, version, "ann", "1"), d.page(c, version, "ann", "1")
		p.do("say", object{"messages": []object{{"id": "a", "role": "user", "content": "say one hold two"}}})
		p.do("follow", nil)
		require.Eventually(t, func() bool {
			v := d.view("ann", "1")
			return v.Run != nil && v.Run.Message.ID == "a"
		}, 10*time.Second, time.Millisecond)
		tab.do("say", object{"messages": []object{{"id": "b", "role": "user", "content": "say three"}}})
		tab.do("follow", nil)
		require.Eventually(t, func() bool { return len(d.view("ann", "1").Queue) == 1 }, 10*time.Second, time.Millisecond)
		s := late.run(object{"until": "TEXT_MESSAGE_CONTENT"})
		require.Equal(t, []string{"user say one hold two", "user say three", "assistant one "}, textsOf(s.Messages))
		d.letGo()
		_, err := d.m.Await(t.Context(), workspace.Thread("ann", "1"), "b")
		require.NoError(t, err)
		tab.mustBe(tab.await())
		for _, p := range []*page{p, tab, late} {
			p.do("stop", nil)
			p.mustBe(p.catchUp())
		}
	})
}

// A page that goes away ends nothing, and what it sends again is handled once.
func TestAPageGoesAway(t *testing.T) {
	d, c := newDesk(t, nil), newClients(t)
	p := d.page(c, 1, "ann", "1")
	p.do("say", object{"messages": []object{{"id": "a", "role": "user", "content": "call note:a\nsay hold on"}}})
	p.run(object{"until": "TOOL_CALL_RESULT"})
	d.letGo()
	_, err := d.m.Await(t.Context(), workspace.Thread("ann", "1"), "a")
	require.NoError(t, err)
	for range 3 {
		p.mustBe(p.catchUp())
	}
	v := d.view("ann", "1")
	require.Equal(t, []string{"a"}, notes.Or(v.State(), nil))
	require.Len(t, saidIn(v), 4)
}

package aguistate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/workspace"
)

// lastError returns the text and the class of the error with which a run has ended.
func (s *shown) lastError() (text, code string) {
	e := s.Events[len(s.Events)-1]
	text, _ = e["message"].(string)
	code, _ = e["code"].(string)
	return text, code
}

func TestAPageEditsTheState(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		d.opts.Write = []string{"notes"}
		d.reopen()
		p := d.page(c, version, "ann", "1")
		p.mustBe(p.say("set title \"old\"\ncall note:a\nsay hello"))
		p.do("say", object{"state": object{"title": "new", "notes": []string{"b"}}})
		s := p.say("say I see")
		p.mustBe(s)
		require.Equal(t, "new", s.State["title"])
		require.Equal(t, []any{"b"}, s.State["notes"])
		for _, e := range s.Events { // the page never shows the old title again
			if snapshot, ok := e["snapshot"].(map[string]any); ok {
				require.Equal(t, "new", snapshot["title"])
			}
		}
		p.do("say", object{"state": object{"title": "newest"}})
		p.mustBe(p.catchUp()) // without a message
		require.Equal(t, "newest", title.GetOr(d.view("ann", "1").State(), ""))

		for name, value := range map[string]any{"count": 1, "scores": object{"a": 1}, "private": "x", "card": "x", "other": 1, "messages": []int{}} {
			p.do("say", object{"state": object{name: value, "title": "lost"}})
			s = p.say("say nothing")
			text, code := s.lastError()
			require.Contains(t, []string{"denied", "argument"}, code, name)
			require.Contains(t, text, `"`+name+`"`)
			p.mustBe(s, name)
			require.Equal(t, "newest", s.State["title"], "nothing is written")
			p.do("say", object{"keep": len(s.Messages)})
		}
	})
}

func TestStaleAndForgedStates(t *testing.T) {
	d, c := newDesk(t, nil), newClients(t)
	p, tab := d.page(c, 1, "ann", "1"), d.page(c, 0, "ann", "1")
	p.mustBe(p.say("set title \"a\"\nsay hello"))
	tab.mustBe(tab.catchUp())
	p.do("say", object{"state": object{"title": "b"}})
	p.mustBe(p.say("set count 1\nsay hello"))
	tab.do("say", object{"state": object{"notes": nil}}) // is none to write: null is no list, and was not there
	s := tab.say("say the other field is not touched")
	tab.mustBe(s)
	require.Equal(t, "b", s.State["title"])
	tab2 := d.page(c, 0, "ann", "1")
	tab2.mustBe(tab2.catchUp())
	p.do("say", object{"state": object{"title": "c"}})
	p.mustBe(p.catchUp())
	tab2.do("say", object{"state": object{"title": "d"}}) // the later of two stands
	tab2.mustBe(tab2.say("say mine"))
	require.Equal(t, "d", title.GetOr(d.view("ann", "1").State(), ""))

	for _, version := range []any{nil, "", "x", "0-", "1-0123456789abcdef", "999-0123456789abcdef", 7, strings.Repeat("9", 100)} {
		p.do("say", object{"state": object{"title": "forged", "$version": version}})
		p.mustBe(p.say("say hello"), version)
		require.Equal(t, "d", title.GetOr(d.view("ann", "1").State(), ""))
	}
	// A page from before the deletion brings nothing back.
	require.NoError(t, d.m.Delete(t.Context(), workspace.Thread("ann", "1")))
	other := d.page(c, 1, "ann", "1")
	other.mustBe(other.say("set count 1\nsay new"))
	p.do("say", object{"state": object{"title": "gone"}})
	p.mustBe(p.catchUp())
	require.Empty(t, title.GetOr(d.view("ann", "1").State(), ""))
}

// A page of one thread does not take back what another thread has made of a field
// that both share.
func TestStaleSharedFields(t *testing.T) {
	d, c := newDesk(t, nil), newClients(t)
	plan1 := func() string { return plan.GetOr(d.view("ann", "1").State(), "") }
	p, other := d.page(c, 1, "ann", "1"), d.page(c, 0, "ann", "2")
	p.mustBe(p.say("set plan \"a\"\nsay hello"))
	p.do("say", object{"state": object{"plan": "b"}})
	p.mustBe(p.say("say I see"))
	require.Equal(t, "b", plan1())
	other.mustBe(other.say("set plan \"c\"\nsay hello"))
	require.Equal(t, "c", plan1())
	p.do("say", object{"state": object{"title": "mine"}}) // it still has plan b
	p.mustBe(p.say("say hello"))
	require.Equal(t, "c", plan1())
	require.Equal(t, "mine", title.GetOr(d.view("ann", "1").State(), ""))
	p.do("say", object{"state": object{"plan": "d"}}) // it has seen c
	p.mustBe(p.catchUp())
	require.Equal(t, "d", plan1())
}

// Who is stopped or killed in the middle of an answer goes on when it is started
// again, and so do the pages.
func TestTheServerIsRestarted(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		testRestart(t, version, (*desk).reopen)
		testRestart(t, version, (*desk).kill)
	})
}

func testRestart(t *testing.T, version int, restart func(*desk)) {
	d, c := newDesk(t, nil), newClients(t)
	p := d.page(c, version, "ann", "1")
	p.do("say", object{"messages": []object{{"id": "m", "role": "user", "content": "call note:a\nsay one hold two"}}})
	p.do("follow", nil)
	require.Eventually(t, func() bool { return len(saidIn(d.view("ann", "1"))) == 3 }, 10*time.Second, time.Millisecond)
	restart(d)
	p.do("stop", nil)
	d.letGo()
	p.move()
	p.mustBe(p.catchUp())
	require.Equal(t, "assistant one hold two", saidIn(d.view("ann", "1"))[3])
	require.Equal(t, []string{"a"}, notes.GetOr(d.view("ann", "1").State(), nil))
}

// What was said can be edited, which makes a thread of its own.
func TestEditAndAskAgain(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		p := d.page(c, version, "ann", "1")
		p.mustBe(p.say("set title \"a\"\nsay one"))
		p.mustBe(p.say("set title \"b\"\nsay two"))
		before := saidIn(d.view("ann", "1"))
		p.do("say", object{"keep": 2})
		s := p.send(object{"id": "edit", "role": "user", "content": "say other"})
		p.thread = s.Events[0]["threadId"].(string)
		require.Regexp(t, "^1~3-", p.thread)
		p.mustBe(s)
		require.Equal(t, "a", s.State["title"])
		require.Equal(t, before, saidIn(d.view("ann", "1")), "the thread stays as it is")
		p.mustBe(p.say("say and on"))
		s = p.run(object{"until": "RUN_FINISHED"})
		p.mustBe(s)
		require.Len(t, s.Messages, 6)
		p.do("say", object{"keep": 4})
		s = p.send(object{"id": "again", "role": "user", "content": "say again"})
		p.thread = s.Events[0]["threadId"].(string)
		require.Regexp(t, "^1~3-.*~5-", p.thread)
		p.mustBe(s)
		p.do("say", object{"keep": 0})
		s = p.send(object{"id": "first", "role": "user", "content": "say first"})
		require.Equal(t, []string{"user say first", "assistant first"}, textsOf(s.Messages))
		require.Len(t, before, 4)
	})
}

// A tab that has not seen what others have said goes on in the thread.
func TestAStaleTabIsNoEdit(t *testing.T) {
	d, c := newDesk(t, nil), newClients(t)
	p, tab := d.page(c, 1, "ann", "1"), d.page(c, 1, "ann", "1")
	p.mustBe(p.say("set title \"a\"\nsay one"))
	tab.mustBe(tab.catchUp())
	p.mustBe(p.say("say two"))
	tab.mustBe(tab.say("say three"))
	fresh := d.page(c, 0, "ann", "1")
	fresh.mustBe(fresh.say("say four"))
	require.Len(t, saidIn(d.view("ann", "1")), 8)
}

package aguistate_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
		require.Equal(t, "1~edit", s.Events[0]["threadId"])
		p.thread = "1~edit"
		p.mustBe(s)
		require.Equal(t, "a", s.State["title"])
		require.Equal(t, before, saidIn(d.view("ann", "1")), "the thread stays as it is")
		p.mustBe(p.say("say and on"))
		s = p.run(object{"until": "RUN_FINISHED"})
		p.mustBe(s)
		require.Len(t, s.Messages, 6)
		p.do("say", object{"keep": 4})
		s = p.send(object{"id": "again", "role": "user", "content": "say again"})
		p.thread = "1~edit~again"
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

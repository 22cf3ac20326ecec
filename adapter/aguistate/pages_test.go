package aguistate_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/workspace"
)

// runs waits until the run of a message of thread 1 is under way.
func (d *desk) runs(message string) {
	require.Eventually(d.t, func() bool {
		v := d.view("ann", "1")
		return v.Run != nil && v.Run.Message.ID == message
	}, 10*time.Second, time.Millisecond)
}

// ask lets a page say something with a known id, and does not wait for the answer.
func (p *page) ask(id, text string) {
	p.do("say", object{"messages": []object{{"id": id, "role": "user", "content": text}}})
	p.do("follow", nil)
	p.d.runs(id)
}

// A page that is opened while a model answers has the answer from its beginning, and
// its request ends with that.
func TestAPageIsOpenedInTheMiddleOfAnAnswer(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		p := d.page(c, version, "ann", "1")
		p.ask("a", "think hold")
		go func() {
			time.Sleep(100 * time.Millisecond)
			d.letGo()
		}()
		late := d.page(c, version, "ann", "1")
		s := late.run(nil)
		late.mustBe(s)
		require.Equal(t, []string{"user", "reasoning", "assistant"}, s.roles())
		require.Equal(t, "Hm.", s.Messages[1]["content"])
		require.Equal(t, 1, s.count("RUN_FINISHED"))
	})
}

// Thoughts, texts and arguments of calls come as the model makes them, with the ids
// that they have when they are stored.
func TestAnAnswerStreams(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		p := d.page(c, version, "ann", "1")
		p.ask("a", "call note:a hold: note:b\nthink hold")
		shows := func(text string) {
			t.Helper()
			require.Eventually(t, func() bool {
				return strings.Contains(fmt.Sprint(p.do("show", nil).Messages), text)
			}, 10*time.Second, time.Millisecond, text)
			d.letGo()
		}
		shows(`arguments:{"te `)
		shows("content:Hm. ")
		_, err := d.m.Await(t.Context(), workspace.Thread("ann", "1"), "a")
		require.NoError(t, err)
		s := p.await()
		p.mustBe(s)
		require.Zero(t, s.count("MESSAGES_SNAPSHOT"), s.types())
		require.Equal(t, []string{"user", "assistant", "tool", "tool", "reasoning", "assistant"}, s.roles())
		again := d.page(c, 1-version, "ann", "1").run(nil)
		require.Equal(t, s.roles(), again.roles())
		require.Equal(t, s.idsOf("reasoning"), again.idsOf("reasoning"))
		require.Equal(t, s.idsOf("assistant"), again.idsOf("assistant"))
	})
}

// What was said can be edited also by a page that shows thoughts, or has instructions
// of its own. The branch has its own ids for what it has taken over.
func TestAnEditIsSeen(t *testing.T) {
	for name, own := range map[string][]object{
		"thoughts":         nil,
		"instructions":     {{"id": "sys", "role": "system", "content": "Be kind."}, {"id": "dev", "role": "developer", "content": "Be brief."}},
		"an activity":      {{"id": "act", "role": "activity", "activityType": "PLAN", "content": object{"steps": 1}}},
		"nothing but text": nil,
	} {
		t.Run(name, func(t *testing.T) {
			eachVersion(t, func(t *testing.T, version int) {
				d, c := newDesk(t, nil), newClients(t)
				p := d.page(c, version, "ann", "1")
				p.do("say", object{"messages": own})
				script := "think"
				if name == "nothing but text" {
					script = "say yes"
				}
				p.mustBeBut(len(own), p.say(script))
				before := p.say(script)
				keep := slices.IndexFunc(before.Messages, func(m map[string]any) bool { return m["id"] == fmt.Sprint(p.id, "-2") })
				require.Positive(t, keep)
				p.do("say", object{"keep": keep})
				s := p.say("say other")
				p.thread = s.Events[0]["threadId"].(string)
				require.Regexp(t, "^1~", p.thread)
				p.mustBe(s)
				require.Len(t, saidIn(d.view("ann", "1")), 4)
				for _, id := range s.idsOf("reasoning") {
					require.NotContains(t, before.idsOf("reasoning"), id)
				}
			})
		})
	}
}

// mustBeBut is mustBe for a page that has messages of its own in front of others.
func (p *page) mustBeBut(own int, s *shown) {
	p.c.t.Helper()
	s.Messages = s.Messages[own:]
	p.mustBe(s)
}

// The same id with another text is an edit.
func TestAnEditUnderTheSameID(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		p := d.page(c, version, "ann", "1")
		p.mustBe(p.say("say one"))
		p.do("say", object{"keep": 0})
		s := p.send(object{"id": fmt.Sprint(p.id, "-1"), "role": "user", "content": "say two"})
		p.thread = s.Events[0]["threadId"].(string)
		require.Regexp(t, "^1~1-", p.thread)
		p.mustBe(s)
		require.Equal(t, []string{"user say two", "assistant two"}, textsOf(s.Messages))
	})
}

// A page that drops an answer gets another one. A page that has only missed the answer
// gets that.
func TestRegenerate(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		p := d.page(c, version, "ann", "1")
		p.mustBe(p.say("set count 1\nthink"))
		p.mustBe(p.say("set count 1\nthink"))
		p.do("say", object{"keep": 4}) // up to the question
		s := p.run(nil)
		require.Equal(t, 1, s.count("RUN_FINISHED"))
		p.thread = s.Events[0]["threadId"].(string)
		require.Regexp(t, "^1~3-", p.thread)
		p.mustBe(s)
		require.Equal(t, 2.0, s.State["count"])
		require.Len(t, saidIn(d.view("ann", "1")), 4)

		missed := d.page(c, version, "ann", "2")
		missed.do("say", object{"messages": []object{{"id": "m", "role": "user", "content": "set count 1\nsay one hold two"}}})
		missed.run(object{"until": "STATE_SNAPSHOT"})
		d.letGo()
		_, err := d.m.Await(t.Context(), workspace.Thread("ann", "2"), "m")
		require.NoError(t, err)
		missed.do("say", object{"keep": 1})
		s = missed.run(nil)
		require.Equal(t, "2", s.Events[0]["threadId"])
		missed.mustBe(s)
	})
}

// A page that is opened again shows the branch that was used last.
func TestTheNewestBranchIsShown(t *testing.T) {
	d, c := newDesk(t, nil), newClients(t)
	p := d.page(c, 1, "ann", "1")
	p.mustBe(p.say("say one"))
	p.do("say", object{"keep": 0})
	p.say("say two")
	fresh := d.page(c, 0, "ann", "1").run(nil)
	require.Equal(t, []string{"user say two", "assistant two"}, textsOf(fresh.Messages))
	require.Regexp(t, "^1~1-", fresh.Events[0]["threadId"])
}

// Thoughts stand in front of their answers, also in a page that has others, or another
// order, and the thoughts of a conversation that was reset go.
func TestThoughtsStandInTheirPlaces(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		p, tab := d.page(c, version, "ann", "1"), d.page(c, version, "ann", "1")
		p.mustBe(p.say("think"))
		tab.mustBe(tab.run(nil))
		p.mustBe(p.say("think"))
		s := tab.say("think") // which has not seen the second question
		tab.mustBe(s)
		order := []string{"user", "reasoning", "assistant", "user", "reasoning", "assistant", "user", "reasoning", "assistant"}
		require.Equal(t, order, s.roles())
		_, err := d.m.Reset(t.Context(), workspace.Thread("ann", "1"))
		require.NoError(t, err)
		s = tab.say("think")
		tab.mustBe(s)
		require.Equal(t, []string{"user", "reasoning", "assistant"}, s.roles())
		if version == 1 { // 0.0.59 keeps thoughts until it is told of others
			_, err = d.m.Reset(t.Context(), workspace.Thread("ann", "1"))
			require.NoError(t, err)
			s = tab.say("say one")
			tab.mustBe(s)
			require.Equal(t, []string{"user", "assistant"}, s.roles())
		}
	})
}

// A page that keeps no thoughts is sent no snapshot because of that.
func TestAPageWithoutThoughts(t *testing.T) {
	d := newDesk(t, nil)
	d.all("ann", bodyOf(nil, `{"id":"m","role":"user","content":"think"}`))
	v := d.view("ann", "1")
	require.Len(t, saidIn(v), 2)
	answer := d.pageOf("1").Items[1].ID
	shown := d.all("ann", bodyOf(nil, `{"id":"m","role":"user","content":"think"},{"id":"`+answer+`","role":"assistant","content":"thought"},{"id":"n","role":"user","content":"say hi"}`))
	require.NotContains(t, shown, "MESSAGES_SNAPSHOT")
}

// Stop ends the run, and the question stays.
func TestStop(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		p := d.page(c, version, "ann", "1")
		p.ask("a", "say one hold two")
		tab := d.page(c, version, "ann", "1")
		s := tab.run(object{"props": object{"stop": true}})
		require.Equal(t, "user say one hold two", textsOf(s.Messages)[0])
		last := s.Events[len(s.Events)-1]
		require.Equal(t, "RUN_FINISHED", last["type"])
		require.Nil(t, d.view("ann", "1").Run)
		p.do("stop", nil)
		p.mustBe(p.run(nil))
		p.mustBe(p.say("say three"))
		p.mustBe(p.run(object{"props": object{"stop": true}})) // nothing is under way
	})
}

// A question whose run has failed stays, with a text for customers, and is handled
// again if the page asks for that.
func TestAFailedQuestion(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		p := d.page(c, version, "ann", "1")
		for _, with := range []object{nil, {"props": object{"retry": true}}} {
			p.do("say", object{"keep": 0, "messages": []object{{"id": "a", "role": "user", "content": "fail"}}})
			s := p.run(with)
			text, code := s.lastError()
			require.Equal(t, "failed", code)
			require.Equal(t, "The answer could not be finished.", text)
			require.Equal(t, []string{"user fail"}, textsOf(s.Messages))
		}
		require.EqualValues(t, 2, d.failed.Load())
		fresh := d.page(c, version, "ann", "1").run(nil)
		require.Equal(t, []string{"user fail"}, textsOf(fresh.Messages))
		p.do("say", object{"keep": 0})
		p.mustBe(p.say("call note:fail\nsay hello"))
	})
}

// A call about which nobody has decided in time says so.
func TestACallExpires(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		p := d.page(c, version, "ann", "1")
		s := p.say("call rush:x\nsay done")
		require.Len(t, s.Interrupts, 1)
		key := s.Interrupts[0].ID
		require.Eventually(t, func() bool { return len(d.view("ann", "1").Suspended()) == 0 }, 10*time.Second, 10*time.Millisecond)
		require.Contains(t, d.resume("late", approve(key, true)), "has expired: nobody has decided in time")
		fresh := d.page(c, version, "ann", "1").run(nil)
		require.Contains(t, textsOf(fresh.Messages), "tool The call has expired: nobody has decided in time.")
	})
}

// A page may do what May allows, and is shown nothing of a thread that it may not
// read.
func TestWhatAPageMayDo(t *testing.T) {
	message := bodyOf(nil, `{"id":"n","role":"user","content":"say hi"}`)
	for action, body := range map[statehttp.Action]string{
		statehttp.ActionRead: message, statehttp.ActionSend: message,
		statehttp.ActionDecide: "", // with the key
		statehttp.ActionStop:   `{"threadId":"1","runId":"r","forwardedProps":{"stop":true}}`,
		statehttp.ActionRetry:  `{"threadId":"1","runId":"r","forwardedProps":{"retry":true}}`,
	} {
		t.Run(string(action), func(t *testing.T) {
			d := newDesk(t, nil)
			d.opts.May = func(_ *http.Request, _ statehttp.Who, a statehttp.Action, thread string) error {
				require.Equal(t, "1", thread)
				if a == action && len(d.view("ann", "1").Suspended()) > 0 {
					return statehttp.ErrForbidden
				}
				return nil
			}
			d.reopen()
			d.askToPay()
			if body == "" {
				body = approval(d.waitingCall())
			}
			before := d.view("ann", "1").Version
			resp := d.post("ann", body)
			if action == statehttp.ActionRead {
				require.Equal(t, http.StatusForbidden, resp.StatusCode)
				return
			}
			shown := d.all("ann", body)
			require.Contains(t, shown, `"code":"denied"`)
			require.Equal(t, before, d.view("ann", "1").Version)
		})
	}
	d := newDesk(t, nil)
	require.Equal(t, http.StatusForbidden, d.post("ann", strings.Replace(message, `"1"`, `"hidden"`, 1)).StatusCode)
}

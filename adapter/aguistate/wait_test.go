package aguistate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/workspace"
)

func approve(id string, yes bool) object {
	return object{"interruptId": id, "status": "resolved", "payload": object{"approved": yes}}
}

var pageTools = []object{{"name": "color", "description": "Asks for a color.", "parameters": object{"type": "object", "properties": object{"text": object{"type": "string"}}}}}

// A call that needs an approval interrupts the run. A page decides after the server
// was restarted.
func TestAPageApproves(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		p := d.page(c, version, "ann", "1")
		s := p.say("call pay:a pay:b note:n\nsay ready")
		p.mustBe(s)
		require.Len(t, s.Interrupts, 2)
		require.Equal(t, "a is much", s.Interrupts[0].Message)
		n := len(s.Events)
		require.Equal(t, []string{"MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "RUN_FINISHED"}, s.types()[n-3:])
		d.reopen()
		p.move()
		a, b := s.Interrupts[0].ID, s.Interrupts[1].ID
		for _, wrong := range []object{approve("call-99-0", true), approve("x", true), {"interruptId": a, "status": "resolved"}} {
			s = p.run(object{"resume": []object{approve(a, true), approve(b, true), wrong}})
			_, code := s.lastError()
			require.Equal(t, "argument", code)
			require.Len(t, d.view("ann", "1").Suspended(), 2, "nothing is decided")
		}
		tab := d.page(c, version, "ann", "1")
		s = tab.catchUp()
		tab.mustBe(s)
		require.Len(t, s.Interrupts, 2, "who comes back sees what waits")
		s = tab.run(object{"resume": []object{approve(a, true), {"interruptId": b, "status": "cancelled"}}})
		tab.mustBe(s)
		require.Equal(t, object{"a": 1.0}, s.State["scores"])
		require.Empty(t, s.Interrupts)
		s = p.run(object{"resume": []object{approve(a, false), approve(b, true)}}) // too late
		p.mustBe(s)
		require.Empty(t, s.Interrupts)
		require.Equal(t, map[string]int{"a": 1}, scores.GetOr(d.view("ann", "1").State(), nil))
	})
}

// A call of a tool of the page ends the run. The page answers after the server was
// restarted.
func TestToolsOfThePage(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		p := d.page(c, version, "ann", "1")
		p.do("say", object{"messages": []object{{"id": "m", "role": "user", "content": "call color:x note:a\nsay thanks"}}})
		s := p.run(object{"tools": pageTools})
		p.mustBe(s)
		require.Empty(t, s.Interrupts)
		call := d.view("ann", "1").Suspended()[0]
		require.Equal(t, "color", call.Name)
		of := s.Messages[1]["toolCalls"].([]any)[0].(map[string]any)["id"].(string)
		if version == 1 {
			require.Equal(t, []string{of}, s.Pending)
		}
		d.reopen()
		p.move()
		p.do("say", object{"messages": []object{{"id": "r", "role": "tool", "toolCallId": of, "content": "blue"}}})
		s = p.run(object{"tools": pageTools})
		p.mustBe(s)
		said := textsOf(s.Messages)
		require.Contains(t, said, "tool blue")
		require.Equal(t, "assistant thanks", said[len(said)-1])
		require.Empty(t, d.view("ann", "1").Suspended())
	})
}

func TestACancelledRun(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		p := d.page(c, version, "ann", "1")
		id := workspace.Thread("ann", "1")
		go func() {
			for e, err := range d.m.Watch(t.Context(), id).AsHost() {
				if err == nil && e.Kind == workspace.EventDelta {
					_ = d.m.Cancel(t.Context(), id, e.Run.ID, "stop "+secret)
					return
				}
			}
		}()
		s := p.say("say one hold two")
		p.mustBe(s)
		last := s.Events[len(s.Events)-1]
		require.Equal(t, "RUN_FINISHED", last["type"])
		if version == 1 {
			require.Equal(t, object{"type": "cancelled"}, last["outcome"])
		} else {
			require.NotContains(t, last, "outcome")
		}
	})
}

func TestAFailedRun(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		d.opts.Errors = true
		d.reopen()
		require.NoError(t, d.m.Update(t.Context(), workspace.Thread("ann", "1"), func(w *workspace.Workspace) error {
			return card.Set(w.State(), secret)
		}))
		p := d.page(c, version, "ann", "1")
		for _, what := range []string{"fail", "panic"} {
			s := p.say("call note:a\n" + what)
			text, code := s.lastError()
			require.Equal(t, "failed", code)
			require.Contains(t, text, "[SECRET]")
			p.mustBe(s)
		}
		require.Equal(t, []string{"a", "a"}, notes.GetOr(d.view("ann", "1").State(), nil))
		p.mustBe(p.say("say hello"))
	})
}

// A person sees that an answer was not finished, and what was said of it. The next
// message is answered.
func TestAnswersThatAreNotFinished(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		p := d.page(c, version, "ann", "1")
		for script, stop := range map[string]string{
			"stop length There are three reasons": "length",
			"call note:a\nstop refused I cannot":  "refused",
			"stop refused":                        "refused",
			"stop filtered":                       "filtered",
		} {
			s := p.say(script)
			text, code := s.lastError()
			require.Equal(t, stop, code)
			require.Equal(t, "The answer was not finished: "+stop, text)
			p.mustBe(s)
		}
		require.Contains(t, textsOf(p.catchUp().Messages), "assistant There are three reasons")
		require.Empty(t, d.view("ann", "1").DeadLetters)
		s := p.say("call pay:a\nsay hello")
		p.mustBe(s)
		require.Len(t, s.Interrupts, 1)
	})
}

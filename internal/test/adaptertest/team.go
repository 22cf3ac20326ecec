package adaptertest

import (
	"crypto/rand"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// Sequence plays another scenario, in which two agents answer each message one
// after the other: search, and then billing. The Answer of the adapter lets both
// do so with the model [Desk.NextOfTeam]. Search looks something up; billing
// refunds for the first message, and asks for approval for the second one, which a
// person refuses. The scenario is played undisturbed and, as by [Killed], in
// processes that are killed. After the death of one, search is asked again, and a
// call may stay without a result.
func Sequence(t *testing.T, a Adapter) { a.team(t, false) }

// Nested is Sequence with billing as a tool of search: it has the name "billing"
// and a text "request", and its result is what billing says. After the death of a
// process, search calls it again, and its model, which does not see what it has
// called before, may call refund again: that is another call, and another refund.
func Nested(t *testing.T, a Adapter) { a.team(t, true) }

func (a Adapter) team(t *testing.T, nested bool) {
	s := scenario{messages: teamMessages, decide: refuse, check: checkTeam, nested: nested}
	t.Run("undisturbed", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "team.db")
		d, err := a.play(t.Context(), file, 0, s)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]int{"look_up delivery": 2, "refund": 1, "approve": 1}; !maps.Equal(want, d.calls) {
			t.Errorf("adaptertest: calls of functions: %v, want %v", d.calls, want)
		}
		a.check(t, file, scenario{check: func(t testing.TB, view *workspace.View) {
			checkTeam(t, view)
			checkValid(t, view)
		}})
	})
	t.Run("killed", func(t *testing.T) { a.killed(t, s) })
}

// teamMessages are what the customer of a team sends. The last one has the
// refusal of a person.
var teamMessages = []workspace.Message{
	{ID: "1", Content: state.UserText("Refund it.")},
	{ID: "2", Content: state.UserText("Refund it again.")},
	{ID: "3"},
}

const refusedText = "A person has refused."

// refuse refuses what waits. The tool billing waits with the calls in it.
func refuse(msg *workspace.Message, waiting []workspace.Suspended) {
	for _, call := range waiting {
		if call.Name == "approve" {
			msg.Decisions = append(msg.Decisions, tool.Refuse(call.Key, ""))
		}
	}
}

// checkTeam checks the workspace at the end of the scenario of a team.
func checkTeam(t testing.TB, view *workspace.View) {
	t.Helper()
	st := view.State()
	if notes, want := Notes.GetOr(st, nil), slices.Repeat([]string{UserID + ": delivery"}, 2); !slices.Equal(want, notes) {
		t.Errorf("adaptertest: notes %q, want %q", notes, want)
	}
	if refunded := Refunded.GetOr(st, 0); refunded != 30 {
		t.Errorf("adaptertest: refunded %v, want 30", refunded)
	}
	checkEnded(t, view)
	said := state.Messages.GetOr(st, nil)
	if text, ok := said[max(0, len(said)-1)].(state.TextMessage); !ok || text.Text() != refusedText {
		t.Errorf("adaptertest: the conversation does not end with %q", refusedText)
	}
}

// NextOfTeam is [Desk.Next] for the agents of a team.
func (d *Desk) NextOfTeam(agent string, prompt []state.Message) (state.Message, error) {
	d.point()
	for _, profile := range []transcript.Profile{transcript.OpenAI, transcript.Anthropic} {
		if findings := transcript.Check(prompt, profile); len(findings) > 0 {
			return nil, fmt.Errorf("adaptertest: %v refuses the prompt of %s: %v in %v", profile, agent, findings, prompt)
		}
	}
	task, done := "", map[string]string{} // the results of tools since the task
	for _, m := range prompt {
		switch m := m.(type) {
		case state.TextMessage:
			if m.Role() == "user" && strings.HasPrefix(m.Text(), "Refund it") {
				task = m.Text()
				clear(done)
			}
		case state.ToolResultMessage:
			if !strings.Contains(m.Text(), "There is no result") && !strings.HasPrefix(m.Text(), "Waiting") {
				done[m.Call().Name] = m.Text()
			}
		}
	}
	refund := task == teamMessages[0].Content.(state.TextMessage).Text()
	switch {
	case task == "":
		return nil, fmt.Errorf("adaptertest: the prompt of %s has no task: %v", agent, prompt)
	case agent == "search" && done["look_up"] == "":
		return calling("look_up", `{"topic":"delivery"}`), nil
	case agent == "search" && !d.nested:
		return state.AssistantText("It was delivered."), nil
	case refund && done["refund"] != "":
		return state.AssistantText(finalText), nil
	case !refund && done["approve"] != "":
		return state.AssistantText(refusedText), nil
	case agent == "search" && done["billing"] != "":
		return state.AssistantText(done["billing"]), nil
	case agent == "search":
		return calling("billing", state.JSON(fmt.Sprintf(`{"request":%q}`, task))), nil
	case refund:
		return calling("refund", `{"amount":30}`), nil
	}
	return calling("approve", `{"amount":30}`), nil
}

// calling returns a message with one call. Its id is new: a nested agent does not
// see those of others.
func calling(name string, input state.JSON) state.Message {
	return state.ToolCalls(state.ToolCall{ID: rand.Text(), Name: name, Input: input})
}

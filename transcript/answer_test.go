package transcript_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/histories"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

// inShort returns messages as script reads them, with "…" behind a result that
// is not one of script's, and its text.
func inShort(msgs []state.Message) string {
	var words []string
	for _, m := range msgs {
		switch m := m.(type) {
		case state.ToolCallMessage:
			var ids []string
			for _, c := range m.Calls() {
				ids = append(ids, idInShort(c))
			}
			words = append(words, "c"+strings.Join(ids, ","))
		case state.ToolResultMessage:
			word := "r" + idInShort(m.Call())
			if !strings.HasPrefix(m.Text(), "result ") {
				word += "…" + m.Text()
			}
			words = append(words, word)
		default:
			words = append(words, m.Role()[:1])
		}
	}
	return strings.Join(words, " ")
}

func idInShort(c state.ToolCall) string {
	if c.Name == "f" {
		return c.ID
	}
	return c.ID + "=" + c.Name
}

func TestAnswersGoBehindTheirCalls(t *testing.T) {
	for _, row := range []struct {
		name, script, answers, want string
		err                         error
	}{
		{"behind the call", "u c1 u a", "r1", "u c1 r1 u a", nil},
		{"behind the turn", "u c1 +c2 a u", "r1 r2", "u c1 c2 r1 r2 a u", nil},
		{"behind the results of earlier calls", "u c1,2,3 r1 r3 u", "r2", "u c1,2,3 r1 r2 r3 u", nil},
		{"in the order of the calls", "u c1,2 u", "r2 r1", "u c1,2 r1 r2 u", nil},
		{"each behind its own call", "c1 u c2 u", "r2 r1", "c1 r1 u c2 r2 u", nil},
		{"the last of several with one id", "c1 r1 u c1 u", "r1", "c1 r1 u c1 r1 u", nil},
		{"by name without ids", "c=g,=h u", "r=h r=g", "c=g,=h r=g r=h u", nil},
		{"the last of several without ids", "c=g u c=g u", "r=g", "c=g u c=g r=g u", nil},
		{"of another name", "c1=g u", "r1=h", "", state.ErrUnknownCall},
		{"of another name, answered", "c1=g r1=g u", "r1=h", "", state.ErrAnswered},
		{"without a name", "c1=g u", "r1=", "c1=g r1= u", nil},
		{"nothing", "c1 u", "", "c1 u", nil},
		{"unknown", "c1 u", "r1 r2", "", state.ErrUnknownCall},
		{"an id is not a name", "c1=g u", "r=g", "", state.ErrUnknownCall},
		{"answered", "c1 r1 u", "r1", "", state.ErrAnswered},
		{"answered twice", "c1 u", "r1 r1", "", state.ErrAnswered},
	} {
		t.Run(row.name, func(t *testing.T) {
			msgs := script(t, row.script)
			before := slices.Clone(msgs)
			var answers []state.ToolResultMessage
			for _, m := range script(t, row.answers) {
				answers = append(answers, m.(state.ToolResultMessage))
			}
			got, err := transcript.Answer(msgs, answers...)
			require.ErrorIs(t, err, row.err)
			require.Equal(t, row.want, inShort(got))
			require.Equal(t, before, msgs)
		})
	}
	_, err := transcript.Answer(script(t, "c1"), state.ToolResultMessage{})
	require.ErrorIs(t, err, state.ErrInvalid)
}

func TestPendingOfShapes(t *testing.T) {
	var pending []string
	for i, call := range transcript.ShapesOf(script(t, "u c1,2,3 r2 u c4 r4 c5")).Pending() {
		pending = append(pending, fmt.Sprintf("%d:%s", i, call.ID))
	}
	require.Equal(t, []string{"1:1", "1:3", "6:5"}, pending)
	for i, call := range transcript.ShapesOf(script(t, "c1 u c1 r1 c2 c3")).Pending(state.ToolCall{ID: "1"}, state.ToolCall{ID: "2", Name: "f"}) {
		require.Equal(t, "5:3", fmt.Sprintf("%d:%s", i, call.ID))
	}
	for range transcript.ShapesOf(script(t, "c1,2")).Pending() {
		break
	}
}

// A call that is suspended waits; it has not failed.
func TestRepairAnswersSuspendedCalls(t *testing.T) {
	const waits, failed = "…Waiting for approval.", "…There is no result: the call may have been made."
	for _, row := range []struct {
		name, script, suspended string
		profile                 transcript.Profile
		policy                  transcript.Policy
		want                    string
	}{
		{"the suspended call waits", "u c1 u", "c1", transcript.OpenAI, transcript.Policy{AnswerCalls: true}, "u c1 r1" + waits + " u"},
		{"the others have failed", "u c1,2,3 r3 u", "c2", transcript.OpenAI, transcript.Policy{AnswerCalls: true}, "u c1,2,3 r1" + failed + " r2" + waits + " r3 u"},
		{"or are dropped", "u c1,2,3 r3 u", "c2", transcript.OpenAI, transcript.Policy{}, "u c2,3 r2" + waits + " r3 u"},
		{"in its own words", "u c1 u", "c1", transcript.OpenAI, transcript.Policy{Waiting: "Ann decides."}, "u c1 r1…Ann decides. u"},
		{"a call that has a result has it", "u c1 r1 u", "c1", transcript.OpenAI, transcript.Policy{}, "u c1 r1 u"},
		{"a call that is not there", "u a u", "c1", transcript.OpenAI, transcript.Policy{}, "u a u"},
		{"a later call with the same id has its result", "u c1 u c1 r1 u", "c1", transcript.OpenAI, transcript.Policy{}, "u c1 r1" + waits + " u c1 r1 u"},
		{"a later call of the same tool likewise", "u c=g u c=g r=g u", "c=g", transcript.Gemini, transcript.Policy{}, "u c=g r=g" + waits + " u c=g r=g u"},
		{"two calls of one tool", "u c=g,=g u", "c=g,=g", transcript.Gemini, transcript.Policy{}, "u c=g,=g r=g" + waits + " r=g" + waits + " u"},
		{"a result that came later moves", "u c1,2 u r1", "c2", transcript.OpenAI, transcript.Policy{}, "u c1,2 r2" + waits + " r1 u"},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.policy.Suspended = script(t, row.suspended)[0].(state.ToolCallMessage).Calls()
			msgs, _ := transcript.Repair(script(t, row.script), row.profile, row.policy)
			require.Equal(t, row.want, inShort(msgs))
			require.Empty(t, transcript.Check(msgs, row.profile))
			for _, m := range msgs {
				if m, ok := m.(state.ToolResultMessage); ok && !strings.Contains(m.Text(), "There is no result") {
					require.False(t, m.IsError())
				}
			}
		})
	}
}

// Whatever results are missing: they can be put back, and until then the calls
// can wait for them.
func TestHistoriesAnswer(t *testing.T) {
	histories.Law[propertyCase]{
		Cases: propertyCases, History: validFor, Parts: true,
		Obeys: func(c propertyCase, msgs []state.Message) error {
			rng := rand.New(rand.NewPCG(1, uint64(len(msgs))))
			var left []state.Message
			var removed []state.ToolResultMessage
			for _, m := range msgs {
				if r, ok := m.(state.ToolResultMessage); ok && rng.IntN(2) == 0 {
					removed = append(removed, r)
				} else {
					left = append(left, m)
				}
			}
			rng.Shuffle(len(removed), func(i, j int) { removed[i], removed[j] = removed[j], removed[i] })
			c.policy.Suspended = transcript.Pending(left)
			repaired, _ := transcript.Repair(left, c.profile, c.policy)
			if err := accepted(repaired, c.profile); err != nil {
				return fmt.Errorf("repaired: %w\n%s", err, histories.Render(repaired))
			}
			for _, m := range repaired {
				if m, ok := m.(state.ToolResultMessage); ok && strings.Contains(m.Text(), "There is no result") {
					return errors.New("a suspended call has failed")
				}
			}
			answered, err := transcript.Answer(left, removed...)
			if err != nil {
				return nil // the result of a call that the provider holds
			}
			if len(answered) != len(msgs) || uniqueCalls(msgs) && len(transcript.Pending(answered)) > len(transcript.Pending(msgs)) {
				return fmt.Errorf("answered: %s", histories.Render(answered))
			}
			return nil
		},
	}.Hold(t)
}

// uniqueCalls reports whether no two calls can be taken for each other.
func uniqueCalls(msgs []state.Message) bool {
	seen := map[string]bool{}
	for _, m := range msgs {
		if m, ok := m.(state.ToolCallMessage); ok {
			for _, c := range m.Calls() {
				key := c.ID
				if key == "" {
					key = c.Name
				}
				if seen[key] {
					return false
				}
				seen[key] = true
			}
		}
	}
	return true
}

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

// propertyCase is one provider and one way to repair for it.
type propertyCase struct {
	format  string
	profile transcript.Profile
	policy  transcript.Policy
}

func (c propertyCase) String() string { return fmt.Sprintf("%v, policy %v", c.profile, c.policy) }

// propertyCases are all providers with all policies. In one of three cases the
// provider holds the beginning of the conversation.
var propertyCases = func() (cases []propertyCase) {
	for i, format := range histories.Formats {
		profile := []transcript.Profile{transcript.OpenAI, transcript.OpenAIResponses, transcript.Anthropic, transcript.Gemini}[i]
		for _, policy := range []transcript.Policy{
			transcript.Policy{}, transcript.Policy{AnswerCalls: true}, transcript.Policy{KeepResults: true}, {AnswerCalls: true, KeepResults: true},
		} {
			plain := propertyCase{format, profile, policy}
			cases = append(cases, plain, plain, propertyCase{format, continued(profile), policy})
		}
	}
	return cases
}()

// validFor makes histories that the provider accepts, or all providers.
func validFor(rng *rand.Rand, c propertyCase) []state.Message {
	if rng.IntN(4) == 0 {
		return histories.Valid(rng, histories.Everyone)
	}
	return histories.Valid(rng, c.format)
}

// brokenFor changes histories that were accepted, mostly by the provider.
func brokenFor(rng *rand.Rand, c propertyCase) []state.Message {
	if rng.IntN(2) == 0 {
		c.format = histories.Formats[rng.IntN(len(histories.Formats))]
	}
	return histories.Mutate(rng, validFor(rng, c))
}

// maybeBrokenFor makes histories that the provider accepts, or accepted before
// they were broken.
func maybeBrokenFor(rng *rand.Rand, c propertyCase) []state.Message {
	if rng.IntN(3) == 0 {
		return validFor(rng, c)
	}
	return brokenFor(rng, c)
}

func TestHistoriesCheck(t *testing.T) {
	histories.Law[propertyCase]{
		Cases: propertyCases, History: validFor,
		Obeys: func(c propertyCase, msgs []state.Message) error { return accepted(msgs, c.profile) },
	}.Hold(t)
}

// TestHistoriesBreakEveryRule checks that the histories of the laws below break
// each rule.
func TestHistoriesBreakEveryRule(t *testing.T) {
	missing := map[string]bool{}
	for _, rule := range []string{
		"message", "role", "name", "id", "duplicate-id", "unanswered-call", "orphan-result", "not-adjacent", "call-turn",
		"content", "empty", "first", "system", "reasoning", "duplicate-item", "server-tool",
	} {
		missing[rule] = true
	}
	for i := 0; i < 4000 && len(missing) > 0; i++ {
		c := propertyCases[i%len(propertyCases)]
		for _, finding := range transcript.Check(brokenFor(rand.New(rand.NewPCG(1, uint64(i))), c), c.profile) {
			delete(missing, finding.Rule)
		}
	}
	require.Empty(t, missing)
}

func TestHistoriesTrim(t *testing.T) {
	histories.Law[propertyCase]{
		Cases: propertyCases, History: maybeBrokenFor, Parts: true,
		Obeys: func(c propertyCase, msgs []state.Message) error { return trims(msgs, c.profile) },
	}.Hold(t)
}

// trims holds the trims of a history to the laws. If the profile accepts the
// history, it has to accept the trimmed one.
func trims(msgs []state.Message, profile transcript.Profile) error {
	sound := accepted(msgs, profile) == nil
	before := slices.Clone(msgs)
	steps := min(len(msgs)+1, 8)
	for name, trim := range map[string]func(step int) transcript.Trim{
		"KeepLast": func(step int) transcript.Trim { return transcript.KeepLast((len(msgs)*step + steps - 1) / steps) },
	} {
		var shorter []state.Message
		for step := 0; step <= steps; step++ {
			kept := trim(step)(msgs)
			at := func(problem string) error { return fmt.Errorf("%s, %d of %d: %s", name, step, steps, problem) }
			switch {
			case !within(kept, msgs):
				return at("not a part of the history")
			case !within(shorter, kept):
				return at("lacks what a smaller limit keeps")
			case step == steps && len(kept) != len(msgs):
				return at("messages are missing though all are within the limit")
			case len(msgs) > 0 && (len(kept) == 0 || !slices.Contains(kept, msgs[len(msgs)-1])):
				return at("the latest message is missing")
			case !same(before, msgs):
				return at("the history changed")
			}
			if sound && (step == 0 || !same(shorter, kept)) {
				if err := accepted(kept, profile); err != nil {
					return at(err.Error() + "\n" + histories.Render(kept))
				}
			}
			shorter = kept
		}
	}
	return nil
}

func TestHistoriesGroups(t *testing.T) {
	histories.Law[propertyCase]{
		Cases: propertyCases, History: brokenFor, Parts: true,
		Obeys: func(_ propertyCase, msgs []state.Message) error {
			seen := make([]bool, len(msgs))
			first := -1
			for _, group := range transcript.Groups(msgs) {
				if len(group) == 0 || group[0] <= first || !slices.IsSorted(group) {
					return errors.New("not in order")
				}
				first = group[0]
				for _, i := range group {
					if i >= len(msgs) || seen[i] {
						return fmt.Errorf("message %d is in two groups, or none of the history", i)
					}
					seen[i] = true
				}
			}
			if i := slices.Index(seen, false); i >= 0 {
				return fmt.Errorf("message %d is in no group", i)
			}
			return nil
		},
	}.Hold(t)
}

func TestHistoriesPending(t *testing.T) {
	histories.Law[propertyCase]{
		Cases: propertyCases, History: brokenFor, Parts: true,
		Obeys: func(c propertyCase, msgs []state.Message) error {
			unanswered := 0
			for _, finding := range transcript.Check(msgs, c.profile) {
				if finding.Rule == "unanswered-call" {
					unanswered++
				}
			}
			if pending := transcript.Pending(msgs); len(pending) != unanswered {
				return fmt.Errorf("%d pending, %d unanswered", len(pending), unanswered)
			}
			return nil
		},
	}.Hold(t)
}

func TestHistoriesRepair(t *testing.T) {
	histories.Law[propertyCase]{
		Cases: propertyCases, History: maybeBrokenFor, Parts: true,
		Obeys: func(c propertyCase, msgs []state.Message) error { return repairs(msgs, c.profile, c.policy) },
	}.Hold(t)
}

// repairs holds the repair of a history to the laws.
func repairs(msgs []state.Message, profile transcript.Profile, policy transcript.Policy) error {
	before := slices.Clone(msgs)
	repaired, changes := transcript.Repair(msgs, profile, policy)
	fail := func(problem string) error {
		return fmt.Errorf("%s: %v\n%s", problem, changes, histories.Render(repaired))
	}
	if !same(before, msgs) {
		return fail("the history changed")
	}
	if err := accepted(repaired, profile); err != nil {
		return fail("still refused: " + err.Error())
	}
	if len(transcript.Check(msgs, profile)) == 0 && changes != nil {
		return fail("what was accepted changed")
	}
	if again, more := transcript.Repair(repaired, profile, policy); !same(again, repaired) || more != nil {
		return fail(fmt.Sprintf("a second repair changes: %v\n%s", more, histories.Render(again)))
	}
	reported := make([]bool, len(msgs))
	for _, change := range changes {
		if change.Message < 0 || change.Message >= len(msgs) || change.Rule == "" || change.String() == "" {
			return fail("a change says nothing")
		}
		reported[change.Message] = true
	}
	var others []state.Message // without a reported change
	for i, m := range msgs {
		if !reported[i] {
			others = append(others, m)
		}
	}
	if !within(others, repaired) {
		return fail("a message changed without report")
	}
	if (changes == nil) != same(msgs, repaired) {
		return fail("changes and reports differ")
	}
	for _, err := range []error{
		keepsTexts(msgs, repaired), keepsCalls(msgs, repaired, policy), keepsResults(msgs, repaired, policy),
	} {
		if err != nil {
			return fail(err.Error())
		}
	}
	return nil
}

// keepsTexts returns an error if a text is missing.
func keepsTexts(msgs, repaired []state.Message) error {
	said := counts(repaired, spoken)
	for text, n := range counts(msgs, spoken) {
		if said[text] < n {
			return errors.New("a text is missing")
		}
	}
	return nil
}

// spoken returns the text of a message without its space, if it has any.
func spoken(m state.Message) []string {
	if m, ok := m.(state.TextMessage); ok {
		if text := strings.Join(strings.Fields(m.Text()), ""); text != "" {
			return []string{text}
		}
	}
	return nil
}

// keepsCalls returns an error if there is a new call, or if calls are to be
// answered and one is missing. A call is identified by its input, because its id
// and its name may have been changed.
func keepsCalls(msgs, repaired []state.Message, policy transcript.Policy) error {
	inputs := func(m state.Message) (inputs []string) {
		if m, ok := m.(state.ToolCallMessage); ok {
			for _, call := range m.Calls() {
				inputs = append(inputs, string(call.Input))
			}
		}
		return inputs
	}
	made, left := counts(msgs, inputs), counts(repaired, inputs)
	for input, n := range left {
		if made[input] < n {
			return errors.New("a call was made up")
		}
	}
	for input, n := range made {
		if left[input] < n && policy.AnswerCalls {
			return errors.New("a call is missing")
		}
	}
	return nil
}

// keepsResults returns an error if there is a result that no tool returned,
// except for the errors that answer calls, or if results are to be kept and one
// is missing.
func keepsResults(msgs, repaired []state.Message, policy transcript.Policy) error {
	contents := func(m state.Message) []string {
		if m, ok := m.(state.ToolResultMessage); ok && m.Raw() != "" {
			switch content := m.Content(); content {
			case "", "null", "[]":
				return []string{`""`}
			default:
				return []string{string(content)}
			}
		}
		return nil
	}
	returned, left := counts(msgs, contents), counts(repaired, contents)
	var texts strings.Builder
	madeUp := 0
	for _, m := range repaired {
		if m, ok := m.(state.TextMessage); ok {
			texts.WriteString(m.Text())
		}
	}
	for content, n := range left {
		madeUp += max(0, n-returned[content])
	}
	errs := counts(repaired, func(m state.Message) []string {
		if m, ok := m.(state.ToolResultMessage); ok && m.IsError() {
			return []string{"error"}
		}
		return nil
	})["error"]
	if madeUp > 0 && (!policy.AnswerCalls || madeUp > errs) {
		return errors.New("a result was made up")
	}
	for content, n := range returned {
		if left[content] < n && policy.KeepResults && !strings.Contains(texts.String(), state.JSON(content).Text()) {
			return errors.New("a result is missing")
		}
	}
	return nil
}

func counts(msgs []state.Message, of func(state.Message) []string) map[string]int {
	n := map[string]int{}
	for _, m := range msgs {
		for _, what := range of(m) {
			n[what]++
		}
	}
	return n
}

// accepted returns an error for what Check finds, except that there is nothing to
// send.
func accepted(msgs []state.Message, profile transcript.Profile) error {
	findings := slices.DeleteFunc(transcript.Check(msgs, profile), func(f transcript.Finding) bool { return f.Rule == "no-messages" })
	if len(findings) > 0 {
		return fmt.Errorf("%v: %v", profile, findings)
	}
	return nil
}

// within reports whether the messages are a subsequence of all, unchanged.
func within(some, all []state.Message) bool {
	for _, m := range all {
		if len(some) > 0 && some[0] == m {
			some = some[1:]
		}
	}
	return len(some) == 0
}

// same reports whether both have identical messages.
func same(a, b []state.Message) bool { return slices.Equal(a, b) }

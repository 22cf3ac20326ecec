package provider_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/histories"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

// What is repaired for a server that is stricter than the API that it offers, and
// encoded for that API, is accepted by the server.
func TestRepairForStricterServers(t *testing.T) {
	var strict []transcript.Profile
	formats := map[transcript.Profile]*provider.Format{}
	for _, format := range []*provider.Format{provider.OpenAI, provider.OpenAIResponses, provider.Anthropic, provider.Gemini} {
		rules := format.Profile().Rules()
		rules.Name = "strict " + rules.Name
		rules.IDs = transcript.Labels{Chars: "a-zA-Z0-9", MinBytes: 9, MaxBytes: 9}
		rules.RequireIDs, rules.AdjacentResults, rules.SystemFirst, rules.UserFirst, rules.UserLast = true, true, true, true, true
		rules.AssistantAfterResults = true
		rules.Names = transcript.Labels{Chars: "a-z0-9_", First: "a-z", MaxBytes: 32}
		profile, err := transcript.NewProfile(rules)
		require.NoError(t, err)
		strict, formats[profile] = append(strict, profile), format
	}
	histories.Law[transcript.Profile]{
		Cases: strict, Parts: true,
		History: func(rng *rand.Rand, _ transcript.Profile) []state.Message {
			return histories.Mutate(rng, histories.Valid(rng, histories.Formats[rng.IntN(len(histories.Formats))]))
		},
		Obeys: func(p transcript.Profile, msgs []state.Message) error {
			repaired, _ := transcript.Repair(msgs, p, transcript.Policy{AnswerCalls: true})
			body, _, err := formats[p].EncodeRequest(provider.Request{Messages: repaired})
			if err != nil {
				return err
			}
			sent, err := formats[p].DecodeRequest(body)
			if err != nil {
				return err
			}
			if findings := transcript.Check(sent.Messages, p); len(findings) > 0 {
				return fmt.Errorf("%v\n%s", findings, body)
			}
			return nil
		},
	}.Hold(t)
}

package transcript

import (
	"cmp"
	"slices"

	"github.com/agentstate/state"
)

// Check returns what the provider would reject in a conversation, in the order
// of the messages. It returns nothing if the provider accepts the conversation.
// Items of other providers count as absent, because they are not sent.
func Check(msgs []state.Message, profile Profile) []Finding {
	c := newChecker(msgs, profile)
	for _, rule := range allRules {
		if rule.of != everyone && rule.of != c.Format {
			continue
		}
		found := len(c.findings)
		rule.find(c)
		for i := range c.findings[found:] {
			f := &c.findings[found+i]
			f.Detail = cmp.Or(f.Detail, rule.why)
		}
	}
	slices.SortStableFunc(c.findings, func(a, b Finding) int { return a.Message - b.Message })
	return c.findings
}

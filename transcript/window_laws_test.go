package transcript_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/histories"
	"github.com/agentstate/state/transcript"
)

// byBytes counts the bytes of a message.
func byBytes(m state.Message) int { return len(m.Raw()) }

// storable returns the messages that a state can hold.
func storable(msgs []state.Message) []state.Message {
	return slices.DeleteFunc(slices.Clone(msgs), func(m state.Message) bool { return m == nil || m.Raw() == "" })
}

// TestHistoriesInWindows holds the windows of two agents to their laws while a
// conversation grows.
func TestHistoriesInWindows(t *testing.T) {
	histories.Law[propertyCase]{
		Cases: propertyCases, History: maybeBrokenFor, Parts: true,
		Obeys: func(c propertyCase, msgs []state.Message) error {
			msgs = storable(msgs)
			sum := fnv.New64a()
			all := 0
			for _, m := range msgs {
				sum.Write([]byte(m.Raw()))
				all += byBytes(m)
			}
			rng := rand.New(rand.NewPCG(sum.Sum64(), 1))
			st := state.New(nil)
			agents := []*windowed{newWindowed(rng, all, st.As("ann")), newWindowed(rng, all, st.As("bob"))}
			for said := 0; said < len(msgs); {
				n := min(1+rng.IntN(4), len(msgs)-said)
				if err := state.Messages.Set(st, msgs[said:said+n]); err != nil {
					return err
				}
				said += n
				for _, a := range agents {
					if rng.IntN(3) == 0 {
						continue // it has not asked
					}
					if err := a.ask(msgs[:said], c.profile); err != nil {
						return fmt.Errorf("%s, %d of %d messages, Target %d, Keep %d: %w", a.st.Agent(), said, len(msgs), a.Target, a.Keep, err)
					}
				}
			}
			return nil
		},
	}.Hold(t)
}

// windowed is an agent with a window, and what it was shown last.
type windowed struct {
	*transcript.Window
	st     *state.State
	own    bool // it carries the conversation along
	before []state.Message
	asked  int // how long the conversation was
}

func newWindowed(rng *rand.Rand, all int, st *state.State) *windowed {
	w := &windowed{st: st, own: rng.IntN(2) == 0}
	w.Window = &transcript.Window{Target: 1 + rng.IntN(2*all+1), Tokens: byBytes}
	w.Keep = 1 + rng.IntN(w.Target)
	if rng.IntN(2) == 0 {
		w.Summarize = func(_ context.Context, p transcript.Past) (string, error) {
			if len(p.Messages) == 0 {
				return "", errors.New("nothing to summarise")
			}
			return "s", nil
		}
	}
	return w
}

const summaryTag = "<summary>\n"

func withoutSummary(msgs []state.Message) []state.Message {
	return slices.DeleteFunc(slices.Clone(msgs), func(m state.Message) bool {
		text, ok := m.(state.TextMessage)
		return ok && strings.HasPrefix(text.Text(), summaryTag)
	})
}

// ask holds one request to the laws. all is the conversation.
func (w *windowed) ask(all []state.Message, profile transcript.Profile) error {
	show := func() ([]state.Message, error) {
		if w.own {
			return w.Show(context.Background(), w.st, all, 0)
		}
		return w.Messages(context.Background(), w.st, 0)
	}
	shown, err := show()
	if errors.Is(err, transcript.ErrWindow) {
		w.before = nil
		return nil
	}
	if err != nil {
		return err
	}
	again, err := show()
	if err != nil || !sameTexts(shown, again) {
		return fmt.Errorf("asked twice, it says something else: %w", errors.Join(err, errors.New(histories.Render(shown)+"then\n"+histories.Render(again))))
	}
	if !sameTexts(all, state.Messages.GetOr(w.st, nil)) {
		return errors.New("the conversation has changed")
	}
	plain := withoutSummary(shown)
	switch {
	case !within(plain, all):
		return errors.New("what is shown is not a part of the conversation")
	case len(plain) == 0 || plain[len(plain)-1] != all[len(all)-1]:
		return errors.New("the latest message is missing")
	}
	for _, m := range all {
		if m.Type() != "text" || m.Role() != "system" && m.Role() != "developer" {
			break
		}
		if !slices.Contains(plain, m) {
			return errors.New("the system prompt is missing")
		}
	}
	if lost := missing(transcript.Pending(all), transcript.Pending(plain)); lost != "" && !repeatsIDs(all) {
		return fmt.Errorf("a waiting call is missing: %s", lost)
	}
	if accepted(all, profile) == nil && !repeatsServed(all) {
		if err := accepted(plain, profile); err != nil {
			return fmt.Errorf("new findings: %w\n%s", err, histories.Render(shown))
		}
	}
	total := 0
	for _, m := range shown {
		total += byBytes(m)
	}
	if total > w.Target+w.Keep {
		return fmt.Errorf("%d tokens are shown", total)
	}
	// As long as nothing is left out, a request begins with the one before.
	if n := len(w.before); n > 0 && len(plain) == len(withoutSummary(w.before))+len(all)-w.asked && !sameTexts(w.before, shown[:n]) {
		return fmt.Errorf("nothing is left out, and the beginning differs:\n%s", histories.Render(w.before)+"then\n"+histories.Render(shown))
	}
	w.asked = len(all)
	w.before = shown
	return nil
}

// repeatsIDs reports whether two calls have one id, or one name and no id. It may
// be unknown then which of them a result answers, and a part of the conversation
// may decide it.
func repeatsIDs(msgs []state.Message) bool {
	seen := map[state.ToolCall]bool{}
	for _, m := range msgs {
		calls, ok := m.(state.ToolCallMessage)
		if !ok {
			continue
		}
		for _, c := range calls.Calls() {
			key := state.ToolCall{ID: c.ID}
			if c.ID == "" {
				key.Name = c.Name
			}
			if seen[key] {
				return true
			}
			seen[key] = true
		}
	}
	return false
}

// repeatsServed reports whether a tool of the provider has two results for one
// call, which is accepted as long as the call is there.
func repeatsServed(msgs []state.Message) bool {
	seen := map[string]bool{}
	for _, m := range msgs {
		_, after, found := strings.Cut(string(m.Raw()), `_result","tool_use_id":"`)
		id, _, _ := strings.Cut(after, `"`)
		if found && seen[id] {
			return true
		}
		seen[id] = true
	}
	return false
}

// missing returns a call that is in one list more often than in the other.
func missing(calls, in []state.ToolCall) string {
	n := map[string]int{}
	for _, c := range in {
		n[c.ID+"\x00"+c.Name]++
	}
	for _, c := range calls {
		if key := c.ID + "\x00" + c.Name; n[key] == 0 {
			return fmt.Sprintf("%q %q", c.ID, c.Name)
		} else {
			n[key]--
		}
	}
	return ""
}

func sameTexts(a, b []state.Message) bool {
	return slices.EqualFunc(a, b, func(a, b state.Message) bool { return a.Raw() == b.Raw() })
}

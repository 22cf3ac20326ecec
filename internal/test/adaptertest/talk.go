package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// A Talk is a long conversation of the agent "ann" in a workspace with a window,
// on a State that changes with each message and is described behind the
// conversation. Its model makes calls, some of which wait for an answer, and
// judges what it is shown.
type Talk struct {
	Tools []*tool.Tool

	rng             *rand.Rand
	window          *transcript.Window
	waits           bool // calls may wait
	requests, calls int
	mu              sync.Mutex // of waiting: the calls of a message are made at the same time
	waiting         []string   // ids
	asked           string     // what the user has said last
	begin           int        // of the window
	moves           int
	formats         []*prefix
}

// prefix is how much of its requests in a format begin like the one before.
type prefix struct {
	format           *provider.Format
	before           string
	shared, possible int
}

var turns = &state.Field[int]{Name: "turns", Read: state.Public, Handler: state.Sum[int]()}

// Describe is what the agent is shown behind the conversation.
func (*Talk) Describe(_ context.Context, st *state.State) string { return st.Describe() }

// Talks holds an adapter to what a window promises, with the windows that
// workspaces have: requests begin alike, although the window moves, and what is
// shown is what providers accept. answer answers the message of a run.
func Talks(t *testing.T, fields []state.Part, answer func(ctx context.Context, run *workspace.Run, talk *Talk) error) {
	t.Run("prefix", func(t *testing.T) {
		talk := newTalk(1)
		talk.window.Target, talk.window.Keep, talk.window.Summarize, talk.waits = 3500, 0, nil, false
		if err := talk.hold(t.Context(), 60, fields, answer); err != nil {
			t.Fatal(err)
		}
		if talk.moves < 3 {
			t.Errorf("adaptertest: the window was moved %d times", talk.moves)
		}
		for _, f := range talk.formats {
			part := 100 * float64(f.shared) / float64(f.possible)
			t.Logf("%v: %d requests, %d moves, %.1f %% of %d bytes begin like the request before", f.format, talk.requests,
				talk.moves, part, f.possible)
			if part < 95 {
				t.Errorf("adaptertest: requests to %v share %.1f %% of their beginnings", f.format, part)
			}
		}
	})
	t.Run("laws", func(t *testing.T) {
		for i := range effort.Runs(12) {
			seed := effort.Seed(0) + uint64(i)
			if err := newTalk(seed).hold(t.Context(), 25, fields, answer); err != nil {
				t.Fatalf("adaptertest: seed %d: %v", seed, err)
			}
		}
	})
}

func newTalk(seed uint64) *Talk {
	talk := &Talk{rng: rand.New(rand.NewPCG(seed, 2)), waits: true, formats: []*prefix{{format: provider.OpenAI}, {format: provider.Anthropic}}}
	talk.window = &transcript.Window{Target: 1200 + talk.rng.IntN(4000)}
	talk.window.Keep = talk.window.Target/2 + talk.rng.IntN(talk.window.Target/2)
	if talk.rng.IntN(2) == 0 {
		talk.window.Summarize = func(context.Context, transcript.Past) (string, error) { return "They have talked.", nil }
	}
	type input struct {
		Text string `json:"text"`
	}
	talk.Tools = []*tool.Tool{
		tool.Must(tool.New("note", "Note a text.", func(_ context.Context, in input) (string, error) {
			return "noted " + in.Text, nil
		})),
		tool.Must(tool.New("approve", "Ask a person.", func(ctx context.Context, _ input) (string, error) {
			c, _ := tool.CallOf(ctx)
			talk.mu.Lock()
			defer talk.mu.Unlock()
			talk.waiting = append(talk.waiting, c.ID)
			return "", tool.Suspend(nil)
		})),
	}
	return talk
}

// hold lets the user say so much, or answer a call that waits.
func (talk *Talk) hold(
	ctx context.Context, messages int, fields []state.Part, answer func(context.Context, *workspace.Run, *Talk) error,
) error {
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{
		Schema: state.MustSchema(append(fields, turns, state.Team{"ann": nil})...), Window: talk.window,
		Run: func(ctx context.Context, run *workspace.Run) error {
			return errors.Join(turns.Set(run.State(), 1), answer(ctx, run, talk))
		},
	})
	if err != nil {
		return err
	}
	defer m.Close()
	for i := range messages {
		view, err := m.View(ctx, UserID)
		if err != nil {
			return err
		}
		msg := workspace.Message{}
		if waiting := view.Suspended(); len(waiting) > 0 && talk.rng.IntN(4) == 0 {
			c := waiting[talk.rng.IntN(len(waiting))].ToolCall
			msg.Decisions = []tool.Decision{tool.AnswerWith(c.Key, `"approved"`)}
			talk.waiting = slices.DeleteFunc(talk.waiting, func(id string) bool { return id == c.ID })
		} else {
			talk.asked = fmt.Sprintf("question %d %s", i, strings.Repeat("and more ", talk.rng.IntN(40)))
			msg.Content = state.UserText(talk.asked)
		}
		if _, err := m.Handle(ctx, UserID, msg); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	return nil
}

// behind is what stands behind the conversation in the JSON of a request.
var behind = regexp.MustCompile(`(\\n\\n)?<context>.*?</context>`)

// Next returns what the model says next. st is the State of the agent. The error
// says what is wrong with the prompt.
func (talk *Talk) Next(st *state.State, prompt []state.Message) (state.Message, error) {
	talk.requests++
	text, shown := "", 0
	for _, m := range prompt {
		text += string(m.Raw())
		shown += transcript.EstimateTokens(m)
	}
	if !strings.Contains(text, talk.asked) || !strings.Contains(text, "turns") {
		return nil, fmt.Errorf("adaptertest: the prompt has no %q, or not what changes", talk.asked)
	}
	for _, id := range talk.waiting {
		if !strings.Contains(text, `"`+id+`"`) {
			return nil, fmt.Errorf("adaptertest: the prompt has not the call %s, which waits", id)
		}
	}
	for _, f := range talk.formats {
		if found := transcript.Check(prompt, f.format.Profile()); len(found) > 0 {
			return nil, fmt.Errorf("adaptertest: %v refuses the prompt: %v", f.format, found)
		}
		body, _, err := f.format.EncodeRequest(provider.Request{Messages: prompt})
		if err != nil {
			return nil, err
		}
		now, common := behind.ReplaceAllString(string(body), ""), 0
		for common < min(len(now), len(f.before)) && now[common] == f.before[common] {
			common++
		}
		if f.before != "" {
			f.shared, f.possible = f.shared+common, f.possible+min(len(now), len(f.before))
		}
		f.before = now
	}
	place, err := transcript.PlaceOf(st)
	if err != nil {
		return nil, err
	}
	if place.Begin > talk.begin {
		talk.moves++
	}
	talk.begin = place.Begin
	if shown > talk.window.Target+talk.window.Keep {
		return nil, fmt.Errorf("adaptertest: about %d tokens are shown, with a Max of %d", shown, talk.window.Target)
	}
	if talk.rng.IntN(3) > 0 {
		return state.AssistantText(strings.Repeat("It is so. ", 1+talk.rng.IntN(30))), nil
	}
	var calls []state.ToolCall
	for range 1 + talk.rng.IntN(3) {
		talk.calls++
		c := state.ToolCall{ID: fmt.Sprint("call_", talk.calls), Name: "note", Input: `{"text":"a"}`}
		if talk.waits && talk.rng.IntN(6) == 0 {
			c.Name = "approve"
		}
		calls = append(calls, c)
	}
	return state.ToolCalls(calls...), nil
}

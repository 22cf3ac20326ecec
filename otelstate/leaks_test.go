package otelstate_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/otelstate"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// hiddenPIN is a secret that no agent may read.
var hiddenPIN = &state.Field[string]{Name: "pin", Secret: true}

var leakSchema = state.MustSchema(state.Team{"support": {}}, token, hiddenPIN, orders)

// word is in every text of the program.
const word = "quetzalcoatl"

// Whatever a program puts into texts, nothing that is exported contains a
// secret. Without Options.Content nothing contains a word of a text.
func TestNothingLeaks(t *testing.T) {
	seed := effort.LogSeed(t)
	for i := range effort.Runs(10) {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		p := &leakyProgram{rng: rng, telemetry: newTelemetry(t, otelstate.Options{Content: i%2 == 0, Reads: true, Workflow: "desk"})}
		secrets := p.run(t)
		require.Empty(t, p.unended())
		all := p.everything(t)
		statetest.NoLeak(t, secrets, "", all)
		require.NotContains(t, all, "user-of-the-desk")
		require.Equal(t, i%2 == 0, strings.Contains(all, word), "program %d of seed %d", i, seed)
		require.False(t, t.Failed(), "program %d of seed %d", i, seed)
	}
}

type leakyProgram struct {
	*telemetry
	rng     *rand.Rand
	secrets []string
}

func (p *leakyProgram) newSecret() string {
	var b strings.Builder
	for range 8 + p.rng.IntN(30) {
		b.WriteByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789-_ \"\\<é"[p.rng.IntN(53)])
	}
	return strings.ToValidUTF8(b.String(), "?") + "x7"
}

// text returns a text with secrets in some encoding, and sometimes so long that
// it is clipped within a secret.
func (p *leakyProgram) text() string {
	begin := word + " "
	if p.rng.IntN(3) == 0 {
		begin += strings.Repeat("y ", (8<<10-p.rng.IntN(120))/2)
	}
	return begin + p.id()
}

// id returns a text that is not one of a message: the id of a call, or the name
// of a model.
func (p *leakyProgram) id() string {
	var b strings.Builder
	for range 1 + p.rng.IntN(3) {
		s := p.secrets[p.rng.IntN(len(p.secrets))]
		switch p.rng.IntN(6) {
		case 0:
			s = base64.StdEncoding.EncodeToString([]byte(s))
		case 1:
			s = hex.EncodeToString([]byte(s))
		case 2:
			s = url.QueryEscape(s)
		case 3:
			quoted, _ := json.Marshal(s)
			s = string(quoted)
		}
		b.WriteString(s + " ")
	}
	return b.String()
}

func (p *leakyProgram) json() state.JSON {
	data, _ := json.Marshal(map[string]string{"order": p.text()})
	return state.JSON(data)
}

// run runs the program and returns a state that has its secrets.
func (p *leakyProgram) run(t *testing.T) *state.State {
	p.secrets = []string{p.newSecret(), p.newSecret()}
	known := state.New(leakSchema)
	require.NoError(t, token.Set(known, p.secrets[0]))
	require.NoError(t, hiddenPIN.Set(known, p.secrets[1]))
	inMemory := p.rng.IntN(2) == 0

	texts := make(chan string, 1000) // the tools are called concurrently
	for range cap(texts) {
		texts <- p.text()
	}
	fate := p.rng.IntN(4)
	fn := func(_ context.Context, _ orderIn) (string, error) {
		switch fate {
		case 0:
			return "", errors.New(<-texts)
		case 1:
			panic(<-texts)
		}
		return <-texts, nil
	}
	tools := []*tool.Tool{
		tool.Must(tool.New("search", "", fn)),
		tool.Must(tool.New("reveal", "", fn, tool.Reveal())),
	}
	said := func(st *state.State, timed bool) {
		raw := strings.Replace(chatResponse, `"gpt-5"`, string(mustJSON(p.id())), 1)
		raw = strings.Replace(raw, `"c1"`, string(mustJSON(p.id())), 1)
		r := state.InferenceResult{
			Agent: "support", Input: p.text(), Raw: raw, CreatedAt: time.Now(),
			Prompt:  []state.Message{state.Text(p.text(), p.text())},
			History: []state.Message{state.UserText(p.text()), state.ToolCalls(state.ToolCall{ID: p.text(), Name: p.text(), Input: p.json()})},
			Output:  []state.Message{state.AssistantText(p.text()), state.ToolError(state.ToolCall{ID: "1", Name: "x"}, p.text())},
		}
		if timed {
			r.StartedAt = time.Now()
		}
		require.NoError(t, st.History().Append(r))
		p.Inference(state.NewContext(context.Background(), known.As("support")), r)
	}
	work := func(ctx context.Context, w *workspace.Workspace) {
		require.NoError(t, token.Set(w.State(), p.secrets[0]))
		if inMemory {
			require.NoError(t, w.Memory().SetSecret("pin", p.secrets[1]))
		} else {
			require.NoError(t, hiddenPIN.Set(w.State(), p.secrets[1]))
		}
		st := w.State().As("support")
		agent, end := p.Agent(ctx, st)
		must(tool.Run(agent, st, tools, []state.ToolCall{
			{ID: p.id(), Name: "search", Input: p.json()}, {ID: "2", Name: "reveal", Input: p.json()},
			{ID: "3", Name: p.text(), Input: p.json()}, {ID: "4", Name: "search", Input: state.JSON(p.text())},
		}))
		said(w.State(), p.rng.IntN(2) == 0)
		end(errors.New(p.text()))
	}
	m := open(t, store.NewMemory(), workspace.Options{
		Schema: leakSchema, Tracer: p.Tracer, Runs: 1,
		Run: func(ctx context.Context, run *workspace.Run) error {
			work(ctx, &run.Workspace)
			if p.rng.IntN(2) == 0 {
				require.NoError(t, run.Commit(ctx))
				said(run.State(), true)
			}
			switch p.rng.IntN(4) {
			case 0:
				return errors.New(p.text())
			case 1:
				panic(p.text())
			case 2:
				return fmt.Errorf("%s: %w", p.text(), context.DeadlineExceeded)
			}
			return nil
		},
	})
	const user = "user-of-the-desk@example.org"
	for range 3 {
		_, _ = m.Handle(t.Context(), user, workspace.Message{
			ID: p.text()[:20] + fmt.Sprint(p.rng.Uint64()), ChatID: "chat", Content: state.UserText(p.text()),
		})
	}
	inMemory = false // only the Tracer of a run knows the secrets of the memory when tools are called
	_ = m.Update(t.Context(), user, func(w *workspace.Workspace) error {
		work(t.Context(), w)
		return errors.New(p.text())
	})
	_, err := m.View(t.Context(), user)
	require.NoError(t, err)
	// Outside of workspaces only the state knows the secrets.
	st := known.As("support")
	must(tool.Run(tool.WithTracer(state.NewContext(t.Context(), st), p.Tracer), st, tools, []state.ToolCall{{ID: p.id(), Name: "reveal", Input: p.json()}}))
	require.NoError(t, m.Close())
	return known
}

func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

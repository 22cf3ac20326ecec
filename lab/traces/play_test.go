package traces

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/stretchr/testify/require"
)

func TestPlayCounts(t *testing.T) {
	var progress []int
	played := PlayFile([]byte(tau(
		`{"role":"system","content":"s"}`, `{"role":"user","content":"u"}`,
		`{"role":"assistant","content":"a","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}},{"id":"2","function":{"name":"g","arguments":"{}"}}]}`,
		result("1", "x"), `{"role":"assistant","content":"b"}`)),
		Options{Progress: func(done int) { progress = append(progress, done) }})
	require.NoError(t, played.Err)
	stats := played.Total()
	require.Positive(t, stats.Time)
	stats.Time = 0
	require.Equal(t, Stats{
		Runs: 1, Entries: 5, Messages: 6, Results: 2, Calls: 2, Answers: 1, Agents: map[string]int{"assistant": 2},
		Requests: Tally{1, 1}, Responses: Tally{1, 1},
	}, stats)
	require.Equal(t, []int{1, 2}, progress)
}

// After a run, the state holds what an application would have written.
func TestPlayedResult(t *testing.T) {
	run := one(t, tau(`{"role":"system","content":"s"}`, `{"role":"user","content":"u"}`, calls("1", "f"), result("1", "x"), `{"role":"assistant","content":"b"}`))
	st := state.New(schema)
	var talk []state.Message
	var err error
	for i := range run.Steps {
		talk, err = playStep(st, &run.Steps[i], talk)
		require.NoError(t, err)
	}
	first, ok := st.History().At(0)
	require.True(t, ok)
	require.Equal(t, "u", first.Input)
	require.Equal(t, "assistant", first.Agent)
	require.Equal(t, "$.traj[2]", first.ID)
	require.Equal(t, calls("1", "f"), first.Raw)
	require.Equal(t, raws(talk[:2]), raws(first.History))
	require.Equal(t, raws(talk[2:3]), raws(first.Output))
	require.Equal(t, "x", first.ToolCalls[0].Text())

	second, ok := st.History().At(1)
	require.True(t, ok)
	require.Empty(t, second.Input, "it goes on after a result")
	require.Equal(t, raws(talk[:4]), raws(second.History))
	msgs, err := state.Messages.Get(st)
	require.NoError(t, err)
	require.Equal(t, raws(talk), raws(msgs))
	require.Equal(t, "assistant", activeAgent.GetOr(st, ""))
}

// A check that never fails is useless: each row breaks something that it must
// find.
func TestVerifyFindsWhatIsWrong(t *testing.T) {
	data := []byte(tau(`{"role":"user","content":"u","n":1.0}`, `{"role":"assistant","content":"a"}`, `{"role":"assistant","content":"b"}`))
	for _, test := range []struct {
		problem string
		spoil   func(v *verifier)
	}{
		{"$.traj[2]: Raw is not", func(v *verifier) { v.run.Steps[1].Raw += " " }},
		{"$.traj[1]: the agent is", func(v *verifier) { v.run.Steps[0].Agent = "other" }},
		{"$.traj[1]: History is not", func(v *verifier) { v.run.Steps[0].Said = nil }},
		{"$.traj[2]: the result does not have", func(v *verifier) { v.run.Steps[1].Output = nil }},
		{"the history has 2 results, want 1", func(v *verifier) { v.run.Steps = v.run.Steps[:1] }},
		{"the conversation has 4 messages, want 3", func(v *verifier) {
			v.state = v.state.Fork()
			_ = state.Messages.Set(v.state, []state.Message{state.UserText("more")})
		}},
		{"$.traj[1]: a fork taken after this step was changed", func(v *verifier) {
			_ = state.Messages.Set(v.forks[0].state, []state.Message{state.UserText("more")})
		}},
		{"writes to forks have changed the state", func(v *verifier) { v.forks[1].state = v.state }},
	} {
		t.Run(test.problem, func(t *testing.T) {
			file, err := Read(data)
			require.NoError(t, err)
			run := file.Runs[0]
			st := state.New(schema)
			v := newVerifier(run, st)
			var talk []state.Message
			for i := range run.Steps {
				talk, err = playStep(st, &run.Steps[i], talk)
				require.NoError(t, err)
				require.NoError(t, v.afterStep(i))
			}
			test.spoil(v)
			err = v.end(talk)
			if strings.HasPrefix(test.problem, "the conversation") {
				require.ErrorContains(t, err, "message 3 of the conversation differs")
				return
			}
			require.ErrorContains(t, err, test.problem)
		})
	}
}

// A long run is checked at a sample of its steps: always the same one, with the
// last step.
func TestLongRunsAreSampled(t *testing.T) {
	for steps, want := range map[int]int{1: 1, checkedSteps: checkedSteps, checkedSteps + 3: checkedSteps + 3, 1200: 851, 100_000: 1000} {
		v := newVerifier(&Run{Steps: make([]Step, steps)}, nil)
		checked := 0
		for i := range steps {
			if v.checksStep(i) {
				checked++
			}
		}
		require.InDelta(t, want, checked, 1, steps)
		require.True(t, v.checksStep(steps-1))
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.json", "sub/b.TRAJ", "sub/c.md"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, os.Symlink("../a.json", filepath.Join(dir, "sub", "link.json")))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "sub", "lost.json")))
	given := filepath.Join(dir, "sub", "c.md")
	none := filepath.Join(dir, "none")
	var got []string
	for _, f := range Find([]string{dir, given, none}) {
		name, err := filepath.Rel(dir, f.Path)
		require.NoError(t, err)
		got = append(got, fmt.Sprintf("%s given=%t skip=%q failed=%t", filepath.ToSlash(name), f.Given, f.Skip, f.Err != nil))
	}
	require.Equal(t, []string{
		`a.json given=false skip="" failed=false`,
		`sub/b.TRAJ given=false skip="" failed=false`,
		`sub/c.md given=false skip="a file with another extension" failed=false`,
		`sub/link.json given=false skip="" failed=false`,
		`sub/lost.json given=false skip="" failed=true`,
		`sub/c.md given=true skip="" failed=false`,
		`none given=true skip="" failed=true`,
	}, got)
}

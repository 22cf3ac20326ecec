package crash_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/looptest"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

var (
	refunded    = &state.Field[float64]{Name: "refunded", Handler: state.Sum[float64]()}
	notes       = &state.Field[[]string]{Name: "notes", Handler: state.Append[[]string]()}
	crashSchema = state.MustSchema(refunded, notes)
)

// deskLoop is an agent whose tools know the run.
type deskLoop struct {
	model *statetest.Model
	tools func(run *workspace.Run) []*tool.Tool
}

func (l deskLoop) answer(ctx context.Context, run *workspace.Run) error {
	desk := loop.Agent{Ask: l.model.Ask, Tools: l.tools(run)}
	return workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"desk": desk}})(ctx, run)
}

type refundIn struct {
	Amount float64 `json:"amount"`
}

// refundTool refunds with the key of its call.
func refundTool(p *crash.Process) func(*workspace.Run) []*tool.Tool {
	return func(*workspace.Run) []*tool.Tool {
		return []*tool.Tool{tool.Must(tool.New("refund", "Refunds.",
			func(ctx context.Context, in refundIn) (map[string]float64, error) {
				call, _ := tool.CallOf(ctx)
				_, err := looptest.Retried(ctx, p, "refund", call.Key, in)
				return map[string]float64{"refunded": in.Amount}, err
			}, tool.To(refunded, "refunded")))}
	}
}

func refundAgent(p *crash.Process) *workspace.Options {
	m := p.Model(provider.OpenAI, statetest.Call("refund", `{"amount":129.9}`), statetest.Say("Refunded."))
	return &workspace.Options{Schema: crashSchema, Run: deskLoop{m, refundTool(p)}.answer}
}

var keyboard = []workspace.Message{{ID: "1", Content: state.UserText("The keyboard is broken.")}}

func TestRefundSurvivesCrashes(t *testing.T) {
	crash.Test{Open: refundAgent, Messages: keyboard}.Run(t)
}

// approvalAgent asks a person before it refunds.
func approvalAgent(p *crash.Process) *workspace.Options {
	m := p.Model(provider.Anthropic,
		statetest.Call("approve", `{"amount":129.9}`), statetest.Call("refund", `{"amount":129.9}`), statetest.Say("Refunded."))
	refund := refundTool(p)
	tools := func(run *workspace.Run) []*tool.Tool {
		return append(refund(run), tool.Must(tool.New("approve", "Asks a person.",
			func(context.Context, refundIn) (string, error) {
				return "", tool.Suspend(errors.New("waits for a person"))
			})))
	}
	return &workspace.Options{Schema: crashSchema, Run: deskLoop{m, tools}.answer}
}

func TestApprovalSurvivesCrashes(t *testing.T) {
	crash.Test{
		Open:     approvalAgent,
		Messages: append(keyboard, workspace.Message{ID: "2", Decisions: []tool.Decision{tool.AnswerWith("call_1", `"yes"`)}}),
		Check:    func(t testing.TB, v *workspace.View) { require.Empty(t, v.Suspended()) },
	}.Run(t)
}

// branches books two things at once and joins what they have found.
func branches(p *crash.Process) *workspace.Options {
	return &workspace.Options{Schema: crashSchema, Run: func(ctx context.Context, run *workspace.Run) error {
		st := run.State()
		var wg sync.WaitGroup
		forks, errs := make([]*state.State, 2), make([]error, 2)
		for i, what := range []string{"hotel", "train"} {
			forks[i] = st.Fork()
			wg.Go(func() {
				if _, errs[i] = looptest.Retried(ctx, p, "book", run.ID()+"/"+what, what); errs[i] == nil {
					errs[i] = notes.Set(forks[i], []string{what})
				}
			})
		}
		wg.Wait()
		return errors.Join(append(errs, st.Join(forks...))...)
	}}
}

func TestBranchesSurviveCrashes(t *testing.T) {
	crash.Test{Open: branches, Messages: keyboard}.Run(t)
}

func TestCrashSavesWhatIsStored(t *testing.T) {
	t.Setenv("STATETEST_UPDATE", "1")
	dir := filepath.Join(t.TempDir(), "v1")
	test := crash.Test{Open: refundAgent, Messages: keyboard, Pairs: -1, Save: dir}
	test.Run(t)
	files, err := filepath.Glob(dir + "/write_*.json")
	require.NoError(t, err)
	require.Len(t, files, 4)
	before, err := os.ReadFile(files[3])
	require.NoError(t, err)
	require.Contains(t, string(before), `"name": "refund"`)
	test.Run(t)
	after, err := os.ReadFile(files[3])
	require.NoError(t, err)
	require.Equal(t, string(before), string(after), "the files of a version are never rewritten")
}

package einostate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cloudwego/eino/components/model"
	einotool "github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/schema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/einostate"
	"github.com/agentstate/state/loop"
)

// The calls of an answer that was cut are not made, and neither are those of other
// tools. The model is asked again, and once only.
func TestCutCallsAreNotMade(t *testing.T) {
	for cut, want := range map[int]error{1: nil, 2: loop.ErrStopped} {
		st, asked, seen := state.New(noting), 0, 0
		look, err := utils.InferTool("look", "Looks.", func(context.Context, struct{}) (string, error) {
			seen++
			return "seen", nil
		})
		must(err)
		play := scripted(func(_ context.Context, msgs []*schema.Message, _ ...model.Option) (*schema.Message, error) {
			if asked++; asked > cut {
				for _, m := range msgs {
					if m.Role == schema.Tool && !strings.Contains(m.Content, "cut off") {
						t.Errorf("the model reads %q", m.Content)
					}
				}
				return said("done"), nil
			}
			answer := calls(call("c1", "note", `{"text":"a"}`), call("c2", "look", `{}`))
			answer.ResponseMeta = &schema.ResponseMeta{FinishReason: "length"}
			return answer, nil
		})
		must(state.Messages.Set(st, []state.Message{state.UserText("go")}))
		_, err = runOn(t, st, agent("billing", play, append(einostate.Tools(noteTool(0)), einotool.BaseTool(look)), einostate.Middleware("billing", nil)))
		if !errors.Is(err, want) {
			t.Errorf("after %d: the error is %v", cut, err)
		}
		if seen != 0 || len(notes.GetOr(st, nil)) != 0 {
			t.Errorf("after %d: calls were made", cut)
		}
		if n := len(st.As("billing").History().Pending()); n != 0 {
			t.Errorf("after %d: %d calls have no result", cut, n)
		}
		first, _ := st.History().At(0)
		if first.Stop != state.StopLength || first.StopWord != "length" {
			t.Errorf("after %d: the answer has ended with %q, %q", cut, first.Stop, first.StopWord)
		}
	}
}

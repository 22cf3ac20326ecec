package tool_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// callLog prints the calls that it is told of.
type callLog struct{}

func (callLog) StartCall(ctx context.Context, c tool.CallInfo) context.Context {
	fmt.Println("start", c.Call.ID, c.Call.Name, c.Call.Input)
	return ctx // or a context with a span, in which the function is called
}

func (callLog) EndCall(_ context.Context, c tool.CallInfo, r tool.Result) {
	fmt.Println("end", c.Call.ID, r.Message.Text(), r.Err)
}

func ExampleWithTracer() {
	upper := tool.Must(tool.New("upper", "Write a word in capitals.",
		func(_ context.Context, in struct {
			Word string `json:"word"`
		}) (string, error) {
			return strings.ToUpper(in.Word), nil
		}))
	calls := []state.ToolCall{{ID: "c1", Name: "upper", Input: `{"word":"rain"}`}}

	ctx := tool.WithTracer(context.Background(), callLog{})
	_, _ = tool.Run(ctx, state.New(nil), []*tool.Tool{upper}, calls)
	// Output:
	// start c1 upper {"word":"rain"}
	// end c1 RAIN <nil>
}

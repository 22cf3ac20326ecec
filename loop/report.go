package loop

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// report tells the log of the program why a call has failed, if that is a mistake of
// the program: a panic, or a right that an agent lacks. The model reads only that it
// has failed. Outside of a workspace, the log is that of [slog.Default].
func (t *Turn) report(r tool.Result) {
	var panicked *tool.PanicError
	var denied *state.AccessError
	call, mask := r.Message.Call(), func(text string) string { return inside.HostRedactor(t.st).Redact(text) }
	switch isPanic := errors.As(r.Err, &panicked); {
	case !isPanic && !errors.As(r.Err, &denied):
	case t.host != nil:
		t.host.Report(call, r.Err)
	case isPanic:
		slog.Error("a tool panicked", "agent", t.st.Agent(), "tool", call.Name, "call", call.Key,
			"err", mask(fmt.Sprint(r.Err, ": ", panicked.Value)), "stack", mask(string(panicked.Stack)))
	default:
		slog.Warn("access denied to a tool", "agent", t.st.Agent(), "tool", call.Name, "call", call.Key,
			"err", mask(r.Err.Error()), "hint", denied.Hint())
	}
}

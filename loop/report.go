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
	isPanic, isDenied := errors.As(r.Err, &panicked), errors.As(r.Err, &denied)
	if !isPanic && !isDenied {
		return
	}
	call := r.Message.Call()
	if t.host != nil {
		t.host.Report(call, r.Err)
		return
	}
	masks := inside.HostRedactor(t.st)
	log := slog.With("agent", t.st.Agent(), "tool", call.Name, "call", call.Key, "err", masks.Redact(r.Err.Error()))
	if isPanic {
		log.Error("a tool panicked", "panic", masks.Redact(fmt.Sprint(panicked.Value)), "stack", masks.Redact(string(panicked.Stack)))
		return
	}
	log.Warn("access denied to a tool", "hint", denied.Hint())
}

package otelstate

import (
	"errors"

	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// errorType returns the error.type of an error: the class that package
// workspace gives it, or its Go type. It contains nothing of the text.
func errorType(err error) string {
	var panicked *tool.PanicError
	var arguments *tool.ArgumentError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &panicked):
		return "panic"
	case errors.As(err, &arguments), errors.Is(err, tool.ErrUnknownTool):
		return "argument"
	}
	return workspace.ErrorClass(err)
}

package redactlog_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/agentstate/state"
	"github.com/agentstate/state/redactlog"
)

func ExampleNew() {
	key := &state.Field[string]{Name: "api_key", Secret: true}
	st := state.New(state.MustSchema(key))
	text := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime})

	logger := slog.New(redactlog.New(text)).With("client", "sk-live-4242")
	fmt.Println(key.Set(st, "sk-live-4242"))
	ctx := state.NewContext(context.Background(), st)
	logger.ErrorContext(ctx, "call failed", "err", errors.New("401 for sk-live-4242"))
	// Output:
	// <nil>
	// level=ERROR msg="call failed" client=[SECRET] err="401 for [SECRET]"
}

// withoutTime removes the time of log records.
func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

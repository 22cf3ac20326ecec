package wire

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/provider"
)

// turnOf returns the turn of an agent that a context carries with its State, or
// nil.
func turnOf(ctx context.Context, st *state.State) *loop.Turn {
	if turn, ok := loop.TurnOf(ctx); ok && turn.State() == st {
		return turn
	}
	return nil
}

// withTools returns a request that offers the tools of the turn of the context,
// behind those that it offers itself.
func withTools(ctx context.Context, st *state.State, r provider.Request) provider.Request {
	turn := turnOf(ctx, st)
	if turn == nil {
		return r
	}
	r.Tools = slices.Clip(r.Tools)
	for _, t := range turn.Tools() {
		if !slices.ContainsFunc(r.Tools, func(own provider.Tool) bool { return own.Name == t.Name() }) {
			r.Tools = append(r.Tools, provider.Tool{Name: t.Name(), Description: t.Description(), Schema: t.Schema()})
		}
	}
	return r
}

// noteFailure tells the turn of a context of a request that has failed and may
// succeed later, or that has not failed.
func noteFailure(ctx context.Context, resp *http.Response, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil:
		runctx.NoteFailure(ctx, err, 0)
	case backoff.MayPass(resp.StatusCode):
		err = fmt.Errorf("wire: the provider answers with status %d", resp.StatusCode)
		runctx.NoteFailure(ctx, err, retryAfter(resp.Header))
	default:
		runctx.NoteFailure(ctx, nil, 0)
	}
}

// retryAfter returns the time that a response names, or 0.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 16); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

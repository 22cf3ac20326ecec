package wire

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
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

// retryAfter returns the time that a response names, or 0. As openai-go v3.96.0 and
// anthropic-sdk-go v1.84.0 do, it reads Retry-After-Ms first, and a part of a second.
func retryAfter(h http.Header) time.Duration {
	for _, named := range []struct {
		header string
		unit   time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		n, err := strconv.ParseFloat(strings.TrimSpace(h.Get(named.header)), 64)
		if err == nil && n >= 0 && n*float64(named.unit) <= float64(maxRetryAfter) {
			return time.Duration(n * float64(named.unit))
		}
	}
	if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// maxRetryAfter is the longest time that is taken for one.
const maxRetryAfter = math.MaxUint16 * time.Second

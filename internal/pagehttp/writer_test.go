package pagehttp_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/pagehttp"
)

// client is what a stream is written to, until it has gone.
type client struct {
	http.ResponseWriter
	text  strings.Builder
	until time.Time // or zero
}

func (c *client) Header() http.Header { return http.Header{} }
func (c *client) Flush()              {}

func (c *client) Write(data []byte) (int, error) {
	if !c.until.IsZero() && time.Now().After(c.until) {
		return 0, errors.New("gone")
	}
	return c.text.Write(data)
}

// told yields values at times, and then waits for the end.
func told(ctx context.Context, at ...time.Duration) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i, d := range at {
			if time.Sleep(d); !yield(i, nil) {
				return
			}
		}
		<-ctx.Done()
	}
}

// A stream tells every 15 seconds that it is in use, until it ends, and ends when the
// client has gone although nothing is told.
func TestEach(t *testing.T) {
	serve := func(t *testing.T, c *client, at ...time.Duration) {
		out := pagehttp.NewWriter(t.Context(), c, func() {})
		defer out.End()
		for n, err := range pagehttp.Each(out, told(out.Context, at...)) {
			require.NoError(t, err)
			if out.SendJSON("", n); n == 2 {
				break
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		c := &client{}
		serve(t, c, time.Second, 31*time.Second, time.Second)
		require.Equal(t, "data: 0\n\n:\n\n:\n\ndata: 1\n\ndata: 2\n\n", c.text.String())
		time.Sleep(time.Minute)
		require.Equal(t, 2, strings.Count(c.text.String(), ":\n\n"), "nothing is written behind its end")
	})
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		c := &client{until: begun.Add(20 * time.Second)}
		serve(t, c, time.Second)
		require.Equal(t, 30*time.Second, time.Since(begun))
	})
}

//go:build unix

package processes

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A process that is killed is succeeded at once by one that has the same holder.
// The TTL is so long that nothing else makes its run free.
func TestSuccession(t *testing.T) {
	address := sqlite(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	heard := make(chan reply, 1000)
	hear := func(_ *process, r reply) {
		if r.Event == began || r.Event == wrong {
			heard <- r
		}
	}
	await := func() reply {
		select {
		case r := <-heard:
			return r
		case <-ctx.Done():
			require.FailNow(t, "no run has begun")
			return reply{}
		}
	}
	job := task{Job: "hold", Address: address, TTL: time.Hour, Holder: "desk-0"}
	p, err := start(ctx, job, hear)
	require.NoError(t, err)
	go p.Ask(request{User: "ann", Message: "m"})
	require.Equal(t, reply{Event: began, User: "ann", Message: "m"}, await())
	p.Kill()
	<-p.Done()

	started := time.Now()
	next, err := start(ctx, job, hear)
	require.NoError(t, err)
	require.Equal(t, reply{Event: began, User: "ann", Message: "m", Attempt: 1}, await())
	t.Logf("served %s after the start of the process", time.Since(started).Round(time.Millisecond))
	next.Kill()
	<-next.Done()
}

package backoff_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/backoff"
)

// longest returns the longest delay of many operations before attempt n+1.
func longest(b backoff.Backoff, n int) time.Duration {
	var most time.Duration
	for range 2000 {
		b.Reset()
		for range n {
			b.Delay()
		}
		most = max(most, b.Delay())
	}
	return most
}

func TestDelaysAreRandomBelowALimitThatDoublesFromMinToMax(t *testing.T) {
	b := backoff.Backoff{Min: time.Millisecond, Max: 10 * time.Millisecond}
	limits := []time.Duration{1, 2, 4, 8, 10, 10}
	for n, limit := range limits {
		limit *= time.Millisecond
		most := longest(b, n)
		require.Less(t, most, limit, "delay %d", n)
		require.Greater(t, most, limit*9/10, "delay %d", n)
	}
}

func TestTheLimitStaysAtMax(t *testing.T) {
	b := backoff.Backoff{Min: time.Second, Max: time.Hour}
	for range 1000 {
		require.Less(t, b.Delay(), time.Hour)
	}
}

func TestMaxBelowMinLimitsTheFirstDelay(t *testing.T) {
	require.Less(t, longest(backoff.Backoff{Min: time.Hour, Max: time.Second}, 0), time.Second)
}

func TestWaitTakesTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backoff.Backoff{Min: time.Minute, Max: time.Hour}
		var total time.Duration
		for _, limit := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
			start := time.Now()
			require.NoError(t, b.Wait(t.Context()))
			require.Less(t, time.Since(start), limit*time.Minute)
			total += time.Since(start)
		}
		require.NotZero(t, total)
	})
}

func TestWaitEndsWithTheCauseOfTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("lease lost")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Nanosecond, func() { cancel(lost) })
		b := backoff.Backoff{Min: 24 * time.Hour, Max: 24 * time.Hour}
		start := time.Now()
		require.Equal(t, lost, b.Wait(ctx))
		require.Equal(t, time.Nanosecond, time.Since(start))
	})
}

func TestWaitFailsIfTheContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := backoff.Backoff{Min: 1, Max: 1} // every delay is zero, the timer is ready, too
	for range 100 {
		require.ErrorIs(t, b.Wait(ctx), context.Canceled)
	}
}

func TestResetStartsAgainAtMin(t *testing.T) {
	b := backoff.Backoff{Min: time.Millisecond, Max: time.Hour}
	for range 20 {
		b.Delay()
	}
	b.Reset()
	require.Less(t, b.Delay(), time.Millisecond)
}

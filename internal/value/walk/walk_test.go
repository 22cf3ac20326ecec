package walk_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/value/walk"
)

func TestErrorsNameThePlace(t *testing.T) {
	_, err := walk.Measure(walk.Limits{Bytes: 40}, false, func(w *walk.Walk) error {
		if err := w.Enter(2); err != nil {
			return err
		}
		w.Element(1)
		if err := w.Enter(1); err != nil {
			return err
		}
		if err := w.EnterName("odd name"); err != nil {
			return err
		}
		return w.AddString(strings.Repeat("a", 40))
	})
	require.EqualError(t, err, `$[1]["odd name"]: limit ValueBytes: 58 is more than 40`)
}

func TestMeasureReportsTheSameErrorOfAMapEachTime(t *testing.T) {
	m := map[string]any{"a": 1, "b": 2, "c": 3, "d": 4}
	for range 20 {
		_, err := walk.Measure(walk.Limits{}, false, func(w *walk.Walk) error {
			return w.VisitMap(m, func(name string, _ any) error { return errors.New(name) })
		})
		require.EqualError(t, err, "a")
	}
}

func TestDepthCountsContainersButCyclesEndAtPointers(t *testing.T) {
	repeat := func(limits walk.Limits, step func(*walk.Walk) error) error {
		_, err := walk.Measure(limits, false, func(w *walk.Walk) error {
			for range 2 * walk.MaxDepth {
				if err := step(w); err != nil {
					return err
				}
			}
			return nil
		})
		return err
	}
	enter := func(w *walk.Walk) error { return w.Enter(0) }
	require.ErrorContains(t, repeat(walk.Limits{Depth: 3}, enter), "limit Depth: 4 is more than 3")
	require.ErrorContains(t, repeat(walk.Limits{}, enter), "limit Depth: 10001 is more than 10000")
	require.ErrorContains(t, repeat(walk.Limits{Depth: 3}, (*walk.Walk).FollowPointer), "limit Depth: 10001 is more than 10000")
}

func TestAddJSONCountsItsLevels(t *testing.T) {
	check := func(depth int, text string) error {
		_, err := walk.Measure(walk.Limits{Depth: depth}, false, func(w *walk.Walk) error {
			if err := w.Enter(1); err != nil {
				return err
			}
			return w.AddJSON([]byte(text), reflect.TypeFor[int]())
		})
		return err
	}
	require.NoError(t, check(0, `[1]`))
	require.NoError(t, check(1, `1`))
	require.ErrorContains(t, check(1, `[1]`), "limit Depth: 2 is more than 1")
	require.NoError(t, check(2, `[1]`))
	require.ErrorContains(t, check(2, `[[1]]`), "limit Depth: 3 is more than 2")
	require.EqualError(t, check(0, `{"a":1,"a":2}`), "$: want JSON written by int, got text that is not strict JSON")
}

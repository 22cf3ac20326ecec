package statemodel

import (
	"cmp"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
)

// The model says again, with maps, slices and copies of everything, what a
// State does. Random programs run on both, and both must always look the same.

type item struct {
	ID string `json:"id"`
	N  int    `json:"n"`
}

type point struct {
	X    int      `json:"x"`
	Tags []string `json:"tags"`
}

// mergeBy does what the handler of that name does.
func mergeBy(by string, cur any, set bool, upd any) (any, error) {
	switch by {
	case "append":
		if cur, ok := cur.([]state.Message); ok {
			return slices.Concat(cur, upd.([]state.Message)), nil
		}
		if cur, ok := cur.([]item); ok {
			return slices.Concat(cur, upd.([]item)), nil
		}
		if cur, ok := cur.([]string); ok {
			return slices.Concat(cur, upd.([]string)), nil
		}
		return upd, nil
	case "union":
		old, _ := cur.([]string)
		var out []string
		for _, s := range slices.Concat(old, upd.([]string)) {
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
		return out, nil
	case "keep_last(2)", "keep_last(3)":
		old, _ := cur.([]string)
		out := slices.Concat(old, upd.([]string))
		n, _ := strconv.Atoi(by[10:11])
		return out[max(0, len(out)-n):], nil
	case "merge_by_id":
		old, _ := cur.([]item)
		var out []item
		for _, it := range slices.Concat(old, upd.([]item)) {
			if i := slices.IndexFunc(out, func(o item) bool { return o.ID == it.ID }); i >= 0 {
				out[i] = it
			} else {
				out = append(out, it)
			}
		}
		return out, nil
	case "merge_map":
		out := map[string]string{}
		old, _ := cur.(map[string]string)
		maps.Copy(out, old)
		maps.Copy(out, upd.(map[string]string))
		return out, nil
	case "sum":
		switch upd := upd.(type) {
		case int:
			n, _ := cur.(int)
			return n + upd, nil
		case int64: // an undeclared key
			if n, ok := cur.(int64); ok || !set {
				return n + upd, nil
			}
			if f, ok := cur.(float64); ok && f == math.Trunc(f) {
				return int64(f) + upd, nil
			}
		}
		return nil, errAny
	case "max", "min":
		if !set {
			return upd, nil
		}
		var c int
		if s, ok := cur.(string); ok {
			c = cmp.Compare(upd.(string), s)
		} else {
			c = cmp.Compare(upd.(int), cur.(int))
		}
		if (by == "max") == (c > 0) {
			return upd, nil
		}
		return cur, nil
	case "first_wins":
		if set {
			return cur, nil
		}
		return upd, nil
	case "last_wins":
		return upd, nil
	case "glue":
		switch upd {
		case "bad":
			return nil, errAny // of a secret field it is not even errHandler
		case "boom":
			return nil, errAny
		}
		old, _ := cur.(string)
		return old + "+" + upd.(string), nil
	case "answer":
		return upd.(callAnswer).on(cur)
	case "push":
		old, _ := cur.([]state.InferenceResult)
		return append(slices.Clone(old), upd.(state.InferenceResult)), nil
	}
	panic("the model does not know handler " + by)
}

// touchValue is the change that the steps "update" make to a value.
func touchValue(v any) any {
	switch v := v.(type) {
	case string:
		return v[:min(len(v), 3)] + "u"
	case int:
		return 2*v + 1
	case []string:
		c := slices.Clone(v)
		slices.Reverse(c)
		return c
	case []item:
		return v[:max(0, len(v)-1)]
	case map[string]string:
		c := maps.Clone(v)
		delete(c, "a")
		return c
	case []state.Message:
		return v[min(1, len(v)):]
	case *point:
		if v == nil {
			return &point{X: 7}
		}
		return &point{v.X + 1, v.Tags}
	case int64:
		return v + 1
	}
	return int64(1)
}

// looseValue returns a value in the types that a caller by name may use.
func looseValue(v any) any {
	switch v := v.(type) {
	case int:
		return float64(v)
	case []string:
		if len(v) == 1 {
			return v[0]
		}
		loose := []any{}
		for _, s := range v {
			loose = append(loose, s)
		}
		return loose
	case []item:
		loose := []any{}
		for _, it := range v {
			loose = append(loose, map[string]any{"id": it.ID, "n": it.N})
		}
		return loose
	case map[string]string:
		loose := map[string]any{}
		for k, s := range v {
			loose[k] = s
		}
		return loose
	case *point:
		if v != nil {
			return map[string]any{"x": float64(v.X), "tags": []any{"t"}}
		}
	case int64:
		return int32(v)
	}
	return v
}

// byName returns a value as it is read by name.
func byName(v any) any {
	if p, ok := v.(*point); ok {
		if p == nil {
			return nil
		}
		return *p
	}
	return v
}

var inside = state.Inside(internal.Key{})

// sameMessage compares messages without the keys of calls, which are random.
func sameMessage(a, b state.Message) bool {
	return inside.WithoutKeys(a).Raw() == inside.WithoutKeys(b).Raw()
}

// equalValues reports whether two values are equal. Nil and empty lists are.
func equalValues(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case string, int, int64, bool, float64:
		return a == b
	case []string:
		b, ok := b.([]string)
		return ok && slices.Equal(a, b)
	case []item:
		b, ok := b.([]item)
		return ok && slices.Equal(a, b)
	case map[string]string:
		b, ok := b.(map[string]string)
		return ok && maps.Equal(a, b)
	case []state.Message:
		b, ok := b.([]state.Message)
		return ok && slices.EqualFunc(a, b, sameMessage)
	case *point:
		b, ok := b.(*point)
		if !ok || a == nil || b == nil {
			return ok && a == b
		}
		return a.X == b.X && slices.Equal(a.Tags, b.Tags)
	case point:
		b, ok := b.(point)
		return ok && equalValues(&a, &b)
	case []state.InferenceResult:
		b, ok := b.([]state.InferenceResult)
		return ok && slices.EqualFunc(a, b, func(x, y state.InferenceResult) bool { return equalValues(x, y) })
	case state.InferenceResult:
		b, ok := b.(state.InferenceResult)
		return ok && a.ID == b.ID && a.Agent == b.Agent && a.Input == b.Input && a.Usage == b.Usage && a.Stop == b.Stop &&
			a.StopWord == b.StopWord &&
			a.StartedAt.Equal(b.StartedAt) && a.CreatedAt.Equal(b.CreatedAt) &&
			equalValues(a.Prompt, b.Prompt) && equalValues(a.Output, b.Output) && equalValues(answersIn(a), answersIn(b))
	case callAnswer:
		// The last of the answers that one write has given.
		switch b := b.(type) {
		case []state.ToolResultMessage:
			return slices.ContainsFunc(b, func(m state.ToolResultMessage) bool { return sameMessage(m, a.ToolResultMessage) })
		case []state.Message:
			return slices.ContainsFunc(b, func(m state.Message) bool { return sameMessage(m, a.ToolResultMessage) })
		}
		return false
	}
	return reflect.DeepEqual(a, b)
}

package statetest

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/statetest/internal/kit"
)

// Compare returns the options with which cmp.Diff and cmp.Equal compare the
// types of this module: a *state.State by what the handle reads, which is its
// fields, undeclared keys, messages and results; messages, calls and JSON by
// their JSON values. CreatedAt and StartedAt of a result, Time and Version of a
// change, and the keys of calls, which are random, do not count. A reference is
// compared by its type.
//
// In the diff, the values of the Secret fields of states, and of each
// *state.State that is compared, are [SECRET 1], [SECRET 2] …: equal values have
// equal numbers. cmp prints the keys of maps as they are. [Equal] masks them,
// too.
func Compare(states ...*state.State) cmp.Options { return compareWith(kit.NewSecrets(states...)) }

// Equal fails the test if want and got differ, with the diff of cmp (want -,
// got +), and reports whether they are equal. The values are compared with the
// options of [Compare] and opts. The secrets of states among want and got are
// masked in the diff, also where they are keys of maps.
func Equal(t testing.TB, want, got any, opts ...cmp.Option) bool {
	t.Helper()
	diff := secretDiff(kit.NewSecrets(), want, got, opts...)
	if diff == "" {
		return true
	}
	t.Errorf("statetest: not equal (want -, got +):\n%s\n    %s", indented(diff), rerun(t))
	return false
}

// rerun returns the line of a failure that says how to run only this test
// again.
func rerun(t testing.TB) string { return "again: " + kit.Again(t.Name()) }

// indented returns a text with its lines indented, without the last line break.
func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}

func compareWith(s *kit.Secrets) cmp.Options {
	hides := func(v any) bool { return s.Mask(textOf(v)) != textOf(v) }
	return cmp.Options{
		cmp.Transformer("State", func(st *state.State) map[string]any { return contentOf(st, s) }),
		cmp.Transformer("Message", func(m state.Message) any { return jsonTree(inside.WithoutKeys(m).Raw()) }),
		cmp.Transformer("JSON", jsonTree),
		cmp.FilterPath(isDrawn, cmp.Ignore()),
		cmp.FilterValues(func(x, y any) bool { return hides(x) || hides(y) }, cmp.Transformer("Masked", func(v any) hidden {
			mask := s.Mask(textOf(v))
			return hidden{func() (any, string) { return v, mask }}
		})),
	}
}

// contentOf returns what a handle reads, by name, as values that cmp shows.
func contentOf(st *state.State, s *kit.Secrets) map[string]any {
	s.Add(st)
	content := map[string]any{}
	results := st.History()
	if n := results.Len(); n > 0 {
		list := make([]state.InferenceResult, n)
		for i := range list {
			list[i], _ = results.At(i)
		}
		content["history"] = list
	}
	for _, f := range st.Fields() {
		v, set := st.KV().Get(f.Name)
		switch {
		case !set:
		case f.Reference:
			content[f.Name] = "a reference to a " + reflect.TypeOf(v).String()
		case f.Secret:
			content[f.Name] = s.Label(labelText(v))
		case f.Name == state.Messages.Name:
			content[f.Name] = v
		default:
			content[f.Name] = treeOf(v)
		}
	}
	return content
}

// treeOf returns v as its JSON is decoded, or v itself if it has none.
func treeOf(v any) any {
	if j, err := state.JSONOf(v); err == nil {
		return jsonTree(j)
	}
	return v
}

// jsonTree returns a JSON value as cmp shows it: with numbers that an int64 or a
// float64 gives back as they are spelled, and a json.Number for others. A text
// that is not JSON is a string.
func jsonTree(j state.JSON) any { return shortNumbers(spelledTree(j)) }

// spelledTree returns a JSON value in which each number is a json.Number.
func spelledTree(j state.JSON) any {
	tree, err := jsontext.Decode([]byte(j), jsontext.Limits{})
	if err != nil {
		return string(j)
	}
	return tree
}

// shortNumbers replaces the numbers in a tree, in place.
func shortNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil && strconv.FormatInt(n, 10) == string(v) {
			return n
		}
		if n, err := v.Float64(); err == nil && strconv.FormatFloat(n, 'f', -1, 64) == string(v) {
			return n
		}
	case []any:
		for i := range v {
			v[i] = shortNumbers(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = shortNumbers(v[name])
		}
	}
	return v
}

// isDrawn reports whether a path ends with a member that tells only when something
// was, or that is random.
func isDrawn(p cmp.Path) bool {
	member, ok := p.Last().(cmp.StructField)
	if !ok || len(p) < 2 {
		return false
	}
	switch p.Index(-2).Type() {
	case reflect.TypeFor[state.InferenceResult]():
		return member.Name() == "CreatedAt" || member.Name() == "StartedAt"
	case reflect.TypeFor[state.ToolCall]():
		return member.Name() == "Key"
	case reflect.TypeFor[state.Change]():
		return member.Name() == "Time" || member.Name() == "Version"
	}
	return false
}

// A hidden text is compared as it is, and shown with masks in place of the
// secrets in it.
type hidden struct {
	content func() (text any, mask string) // a func, because cmp does not look into it
}

// Equal reports whether both are the same text.
func (h hidden) Equal(o hidden) bool {
	a, _ := h.content()
	b, _ := o.content()
	return reflect.DeepEqual(a, b)
}

func (h hidden) String() string {
	_, mask := h.content()
	return mask
}

// textOf returns the text of a string or of bytes.
func textOf(v any) string {
	r := reflect.ValueOf(v)
	if r.Kind() == reflect.String {
		return r.String()
	}
	if data, ok := v.([]byte); ok {
		return string(data)
	}
	return ""
}

// labelText returns a text by which equal values have equal labels.
func labelText(v any) string {
	if text := textOf(v); text != "" {
		return text
	}
	j, _ := state.JSONOf(v) // a stored value has JSON
	return string(j)
}

// secretDiff returns the difference of two values in the words of cmp, masked.
// The first comparison finds the states in the values, and so their secrets.
func secretDiff(s *kit.Secrets, want, got any, opts ...cmp.Option) string {
	all := cmp.Options{compareWith(s), cmp.Options(opts)}
	if cmp.Diff(want, got, all) == "" {
		return ""
	}
	diff := cmp.Diff(want, got, all)
	return s.Mask(strings.ReplaceAll(diff, "\u00a0", " ")) // cmp mixes them on purpose
}

package statetest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/agentstate/state"
)

// Compare returns the options with which cmp.Diff and cmp.Equal compare the
// types of this module: a *state.State by what the handle reads, which is its
// fields, undeclared keys, messages and results; messages, calls and JSON by
// their JSON values. CreatedAt and StartedAt of a result, and Time and Version
// of a change, do not count. A reference is compared by its type.
//
// In the diff, the values of the Secret fields of states, and of each
// *state.State that is compared, are [SECRET 1], [SECRET 2] …: equal values have
// equal numbers. cmp prints the keys of maps as they are. [Equal] masks them,
// too.
func Compare(states ...*state.State) cmp.Options { return compareWith(newSecrets(states...)) }

func compareWith(s *secrets) cmp.Options {
	return cmp.Options{
		cmp.Transformer("State", func(st *state.State) map[string]any { return contentOf(st, s) }),
		cmp.Transformer("Message", func(m state.Message) any { return jsonTree(m.Raw()) }),
		cmp.Transformer("JSON", jsonTree),
		cmp.FilterPath(isPassingTime, cmp.Ignore()),
		cmp.FilterValues(func(x, y any) bool { return s.hides(x) || s.hides(y) }, cmp.Transformer("Masked", s.maskedText)),
	}
}

// contentOf returns what a handle reads, by name, as values that cmp shows.
func contentOf(st *state.State, s *secrets) map[string]any {
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
			content[f.Name] = s.maskedValue(v)
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
	j, err := state.JSONOf(v)
	if err != nil {
		return v
	}
	return jsonTree(j)
}

// jsonTree returns a JSON value as cmp shows it: with numbers that an int64 or a
// float64 gives back as they are spelled, and a json.Number for others. A text
// that is not JSON is a string.
func jsonTree(j state.JSON) any { return shortNumbers(spelledTree(j)) }

// spelledTree returns a JSON value in which each number is a json.Number.
func spelledTree(j state.JSON) any {
	if !j.Valid() {
		return string(j)
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(j)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return string(j)
	}
	return v
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

// isPassingTime reports whether a path ends with a member that tells only when
// something was.
func isPassingTime(p cmp.Path) bool {
	member, ok := p.Last().(cmp.StructField)
	if !ok || len(p) < 2 {
		return false
	}
	switch p.Index(-2).Type() {
	case reflect.TypeFor[state.InferenceResult]():
		return member.Name() == "CreatedAt" || member.Name() == "StartedAt"
	case reflect.TypeFor[state.Change]():
		return member.Name() == "Time" || member.Name() == "Version"
	}
	return false
}

// A hidden value is compared as it is, and shown masked.
type hidden struct {
	content func() (value any, mask string)
}

// Equal reports whether both are the same value.
func (h hidden) Equal(o hidden) bool {
	a, _ := h.content()
	b, _ := o.content()
	return reflect.DeepEqual(a, b)
}

func (h hidden) String() string {
	_, mask := h.content()
	return mask
}

// maskedText returns a text, shown with masks in place of the secrets in it.
func (s *secrets) maskedText(v any) hidden {
	text, _ := textOf(v)
	mask := s.Mask(text)
	return hidden{func() (any, string) { return v, mask }}
}

// maskedValue returns the value of a secret field, shown as one mask.
func (s *secrets) maskedValue(v any) hidden {
	text, isText := textOf(v)
	if j, err := state.JSONOf(v); err == nil && !isText {
		text = string(j)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	mask := s.label(text)
	return hidden{func() (any, string) { return v, mask }}
}

// hides reports whether v is a text with a secret.
func (s *secrets) hides(v any) bool {
	text, ok := textOf(v)
	return ok && s.Mask(text) != text
}

// textOf returns the text of a string, a number or a slice of bytes.
func textOf(v any) (string, bool) {
	if _, ok := v.(hidden); ok || v == nil {
		return "", false
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.String:
		return r.String(), true
	case reflect.Slice, reflect.Array:
		if r.Type().Elem().Kind() != reflect.Uint8 {
			return "", false
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64:
	default:
		return "", false
	}
	var b strings.Builder
	leavesOf(v, func(l leaf, _ bool) { b.WriteString(l.text) })
	return b.String(), true
}

// diff returns the difference of two values in the words of cmp, masked. The
// first comparison finds the states in the values, and so their secrets.
func (s *secrets) diff(want, got any, opts ...cmp.Option) string {
	all := cmp.Options{compareWith(s), cmp.Options(opts)}
	if cmp.Diff(want, got, all) == "" {
		return ""
	}
	diff := cmp.Diff(want, got, all)
	return s.Mask(strings.ReplaceAll(diff, "\u00a0", " ")) // cmp mixes them on purpose
}

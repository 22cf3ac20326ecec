package cost_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/cost"
	"github.com/agentstate/state/internal/test/effort"
)

// The tests of this file prove that what is long, wide or deep costs what it is
// long, or is refused.

type costTree struct {
	Name string     `json:"name"`
	Kids []costTree `json:"kids"`
}

type costLoop struct {
	List []*costLoop `json:"list"`
}

func TestTooManyKeysAreALimitError(t *testing.T) {
	effort.Cost(t)
	const most = 1 << 17
	st := state.New(nil)
	for n := range most {
		require.NoError(t, st.KV().Set(strconv.Itoa(n), n))
	}
	var limit *state.LimitError
	require.ErrorAs(t, st.KV().Set("one more", 1), &limit)
	require.Equal(t, state.LimitError{Name: "Keys", Limit: most, Got: most + 1}, *limit)
	require.Equal(t, most, st.KV().Len())
	many := map[string]any{}
	for n := range most + 1 {
		many[strconv.Itoa(n)] = true
	}
	require.ErrorIs(t, state.New(nil).Patch(many), state.ErrLimitExceeded)
	var text bytes.Buffer
	text.WriteString(`{"format":1,"keys":[`)
	for i := range most + 1 {
		fmt.Fprintf(&text, `{"name":"k%d","value":1},`, i)
	}
	text.Truncate(text.Len() - 1)
	text.WriteString(`]}`)
	_, err := state.Import(nil, text.Bytes())
	require.ErrorIs(t, err, state.ErrLimitExceeded)
}

// What is done to a list of 100 000 elements costs what it adds, and what reads
// it as a whole costs its size.
func TestLongListsCostWhatIsAddedToThem(t *testing.T) {
	effort.Cost(t)
	const n = 100_000
	type row struct {
		ID   int      `json:"id"`
		Tags []string `json:"tags"`
	}
	texts := &state.Field[[]string]{Name: "texts"}
	rows := &state.Field[[]row]{Name: "rows"}
	last := &state.Field[[]string]{Name: "last", Handler: state.KeepLast[[]string](n)}
	one := &state.Field[[]row]{Name: "one", Handler: state.KeepLast[[]row](1)}
	schema := state.MustSchema(texts, rows, last, one)
	st := state.New(schema)
	long, longRows := make([]string, n), make([]row, n)
	for i := range n {
		long[i] = "element " + strconv.Itoa(i)
		longRows[i] = row{i, []string{"a"}}
	}
	require.NoError(t, texts.Set(st, long))
	require.NoError(t, rows.Set(st, longRows))
	require.NoError(t, last.Set(st, long))
	require.NoError(t, one.Set(st, longRows))
	require.Equal(t, longRows[n-1:], one.GetOr(st, nil))

	const times = 1000
	forks := []*state.State{st.Fork(), st.Fork()}
	for name, step := range map[string]func(i int) error{
		"append":                     func(int) error { return texts.Set(st, []string{"x"}) },
		"append a struct":            func(int) error { return rows.Set(st, []row{{1, nil}}) },
		"keep the last":              func(int) error { return last.Set(st, []string{"x"}) },
		"append in forks":            func(i int) error { return texts.Set(forks[i%2], []string{"x"}) },
		"keep the last in forks":     func(i int) error { return last.Set(forks[i%2], []string{"x"}) },
		"append and keep a snapshot": func(i int) error { st.Snapshot(); return texts.Set(st, []string{"x"}) },
		"read the last elements": func(int) error {
			read := 0
			for range state.ListItems(st, rows, -3) {
				read++
			}
			if read != 3 {
				return errors.New("want 3 elements")
			}
			return nil
		},
		"effects of an append": func(int) error {
			past := st.Snapshot()
			if err := last.Set(st, []string{"x"}); err != nil {
				return err
			}
			effects, err := st.Effects(past)
			if err == nil && len(effects) > 2 {
				err = fmt.Errorf("%d effects", len(effects))
			}
			return err
		},
	} {
		allocated := cost.Allocated(func() {
			for i := range times {
				require.NoError(t, step(i), name)
			}
		})
		require.Less(t, allocated/times, uint64(32<<10), "bytes for each %s", name)
	}
	require.Equal(t, n, state.ListLen(st, last))

	data, err := st.Export()
	require.NoError(t, err)
	for name, read := range map[string]func(){
		"Get":    func() { _, err = rows.Get(st) },
		"All":    func() { st.KV().All() },
		"Export": func() { _, err = st.Export() },
		"Import": func() { _, err = state.Import(schema, data) },
	} {
		allocated := cost.Allocated(read)
		require.NoError(t, err, name)
		require.Less(t, allocated, uint64(64*len(data)), "bytes for %s of %d", name, len(data))
	}
}

func quotedMembers(n int) []string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(`"member-%d":null`, i)
	}
	return members
}

// Import reads each part of its text a constant number of times.
func TestImportIsLinearInHostileForms(t *testing.T) {
	effort.Cost(t)
	const n = 100_000
	open := state.MustSchema(state.AllowUndeclared, &state.Field[int]{Name: "count"}, &state.Field[[]string]{Name: "tags"})
	repeat := func(text string, n int) string { return strings.Repeat(text+",", n-1) + text }
	var keys []string
	for i := range n {
		keys = append(keys, fmt.Sprintf(`{"value":%d,"name":"key-%d"}`, i, i))
	}
	const when = `"created_at":"2024-01-02T03:04:05Z"`
	for name, text := range map[string]string{
		"keys":                 `"keys":[` + strings.Join(keys, ",") + `]`,
		"one key many times":   `"keys":[` + repeat(`{"name":"a","value":1}`, n) + `]`,
		"one field many times": `"fields":[` + repeat(`{"name":"tags","value":["a"]}`, n) + `]`,
		"unknown members":      `"keys":[{"name":"a","value":1,` + strings.Join(quotedMembers(n), ",") + `}]`,
		"a long list":          `"fields":[{"name":"tags","value":[` + repeat(`"a"`, n) + `]}]`,
		"empty lists":          `"keys":[{"name":"a","value":[` + repeat(`[]`, n) + `]}]`,
		"a deep list":          `"keys":[{"name":"a","value":` + strings.Repeat(`[`, 9000) + strings.Repeat(`]`, 9000) + `}]`,
		"a wide object":        `"keys":[{"name":"a","value":{` + strings.Join(quotedMembers(n), ",") + `}}]`,
		"results":              `"results":[` + repeat(`{`+when+`}`, n) + `]`,
		"runs of no message":   `"conversation":[` + repeat(`[0,1]`, n) + `]`,
		"messages":             `"messages":[` + repeat(`{"type":"text","role":"user","content":"a"}`, n/10) + `]`,
		"counts":               `"counts":[` + repeat(`{"classes":[["a"],["b"]],"versions":1}`, n) + `]`,
	} {
		t.Run(name, func(t *testing.T) {
			data := []byte(`{"format":1,"version":1,` + text + `}`)
			for _, schema := range []*state.Schema{nil, open} {
				allocated := cost.Allocated(func() {
					if st, err := state.Import(schema, data); err == nil {
						require.NotNil(t, st)
					} else {
						require.True(t, strings.HasPrefix(err.Error(), "state: "), "%v", err)
						require.Less(t, len(err.Error()), 1000)
					}
				})
				require.Less(t, allocated, uint64(100*len(data)+8<<20), "bytes for a text of %d", len(data))
			}
		})
	}
}

// Types that contain themselves take text and values of any depth and size.
func TestHostileTreesAreTypedErrorsAtABoundedCost(t *testing.T) {
	effort.Cost(t)
	const depth = 100_000
	tree := &state.Field[costTree]{Name: "tree"}
	list := &state.Field[[]*costLoop]{Name: "list"}
	schema := state.MustSchema(tree, list)
	deep := costTree{}
	for range depth {
		deep = costTree{Kids: []costTree{deep}}
	}
	loop := &costLoop{}
	loop.List = []*costLoop{loop}
	text := strings.Repeat(`{"name":"a","kids":[`, depth) + strings.Repeat(`]}`, depth)
	wide := costTree{Kids: make([]costTree, 20<<20)}
	long := costTree{Name: strings.Repeat("a", 100<<20)}
	st := state.New(schema)
	for name, write := range map[string]func() error{
		"a deep value":    func() error { return tree.Set(st, deep) },
		"a deep text":     func() error { return st.KV().Set("tree", json.RawMessage(text)) },
		"a cycle":         func() error { return list.Set(st, []*costLoop{loop}) },
		"a cycle by name": func() error { return st.KV().Set("list", loop) },
		"a wide value":    func() error { return tree.Set(st, wide) },
		"a long name":     func() error { return tree.Set(st, long) },
		"an imported depth": func() error {
			_, err := state.Import(schema, []byte(`{"format":1,"version":1,"fields":[{"name":"tree","value":`+text+`}]}`))
			return err
		},
	} {
		var err error
		allocated := cost.Allocated(func() { err = write() })
		require.ErrorIs(t, err, state.ErrLimitExceeded, name)
		require.Less(t, len(err.Error()), 1000, name)
		require.Less(t, allocated, uint64(64<<20), name)
		require.Zero(t, st.Version(), name)
	}
}

// A conversation costs what is added to it, however long it is: ten times the
// messages are ten times the bytes.
func TestLongConversationsAreLinear(t *testing.T) {
	effort.Cost(t)
	said := func(i int) []state.Message { return []state.Message{state.UserText("message " + strconv.Itoa(i))} }
	for name, write := range map[string]func(st *state.State, n int) error{
		"in one go": func(st *state.State, n int) error {
			var msgs []state.Message
			for i := range n {
				msgs = append(msgs, said(i)...)
			}
			return state.Messages.Set(st, msgs)
		},
		"one by one": func(st *state.State, n int) error {
			for i := range n {
				if err := state.Messages.Set(st, said(i)); err != nil {
					return err
				}
			}
			return nil
		},
		"results with their history": func(st *state.State, n int) error {
			history := []state.Message{state.SystemText("be brief")}
			for i := range n {
				if err := st.History().Append(state.InferenceResult{History: history, Output: said(i)}); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		cost := func(n int) uint64 {
			return cost.Allocated(func() {
				st := state.New(nil)
				require.NoError(t, write(st, n), name)
				require.Equal(t, n, state.ListLen(st, state.Messages), name)
			})
		}
		few, many := cost(10_000), cost(100_000)
		require.Less(t, many, 15*few, name)
		require.Less(t, many, uint64(100_000*8<<10), name)
	}
}

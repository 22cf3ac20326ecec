package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/stretchr/testify/require"
)

func TestManagerStrings(t *testing.T) {
	s := store.NewMemory()
	m, other, all := store.NewManager(s, "a:"), store.NewManager(s, "b:"), store.NewManager(s, "")
	for _, value := range []string{"v", "", "\x00\xff", `{"a":"b"}`, "é%_"} {
		require.NoError(t, m.Delete(bg, "k"), "deleting a missing key")
		got, found, err := m.Get(bg, "k")
		require.Equal(t, []any{"", false, nil}, []any{got, found, err})

		require.NoError(t, m.Set(bg, "k", "before"))
		require.NoError(t, m.Set(bg, "k", value))
		got, found, err = m.Get(bg, "k")
		require.Equal(t, []any{value, true, nil}, []any{got, found, err})
		got, found, err = all.Get(bg, "a:k")
		require.Equal(t, []any{value, true, nil}, []any{got, found, err})
		_, found, err = other.Get(bg, "k")
		require.Equal(t, []any{false, nil}, []any{found, err})

		require.NoError(t, other.Delete(bg, "k"))
		_, found, _ = m.Get(bg, "k")
		require.True(t, found)
		require.NoError(t, m.Delete(bg, "k"))
		require.Empty(t, dump(t, s))
	}
}

func TestManagerJSON(t *testing.T) {
	m := store.NewManager(store.NewMemory(), "a:")
	for _, c := range []struct {
		value any
		want  string
	}{
		{"<a&b>\u2028", `"<a&b>\u2028"`},
		{nil, `null`},
		{int64(math.MaxInt64), `9223372036854775807`},
		{map[string]any{"b": []int{1}, "a": true}, `{"a":true,"b":[1]}`},
		{json.RawMessage(`1.0`), `1.0`},
	} {
		require.NoError(t, m.SetJSON(bg, "k", c.value))
		text, _, err := m.Get(bg, "k")
		require.NoError(t, err)
		require.Equal(t, c.want, text)
	}

	require.NoError(t, m.Set(bg, "k", ` {"ID": 9007199254740993, "More": [1.0]} `))
	var open any
	found, err := m.GetJSON(bg, "k", &open)
	require.Equal(t, []any{true, nil}, []any{found, err})
	require.Equal(t, map[string]any{"ID": json.Number("9007199254740993"), "More": []any{json.Number("1.0")}}, open)
	typed := struct{ ID int64 }{}
	found, err = m.GetJSON(bg, "k", &typed)
	require.Equal(t, []any{true, nil}, []any{found, err})
	require.Equal(t, int64(9007199254740993), typed.ID)
	found, err = m.GetJSON(bg, "none", &typed)
	require.Equal(t, []any{false, nil}, []any{found, err})
	require.Equal(t, int64(9007199254740993), typed.ID, "unchanged")
}

// leaky fails with an error that contains the value, as time.Time and others do.
type leaky struct{}

var errLeaky = errors.New("bad: secret")

func (leaky) MarshalJSON() ([]byte, error) { return nil, errLeaky }
func (*leaky) UnmarshalJSON([]byte) error  { return errLeaky }

func TestManagerErrorsNameTheKeyAndNotTheValue(t *testing.T) {
	m := store.NewManager(store.NewMemory(), "a:")
	number, text := 0, ""
	for _, c := range []struct {
		value string
		dst   any
		want  string
	}{
		{"secret", &text, "not JSON, at byte 1"},
		{`"secret`, &text, "not JSON, at byte 7"},
		{"", &text, "not JSON, at byte 0"},
		{`"secret" "secret"`, &text, "not JSON, at byte 10"},
		{`"secret"`, &number, "the JSON does not fit a Go int, at byte 8"},
		{`99999999999999999999`, &number, "the JSON does not fit a Go int, at byte 20"},
		{`"secret"`, nil, "the destination is not a pointer, or is nil"},
		{`"secret"`, text, "the destination is not a pointer, or is nil"},
		{`"secret"`, &time.Time{}, "the value does not convert to or from JSON"},
		{`"secret"`, &leaky{}, "the value does not convert to or from JSON"},
	} {
		require.NoError(t, m.Set(bg, "k", c.value))
		found, err := m.GetJSON(bg, "k", c.dst)
		require.True(t, found)
		require.EqualError(t, err, `store: manager: get JSON "a:k": `+c.want)
	}
	_, err := m.GetJSON(bg, "k", &leaky{})
	require.ErrorIs(t, err, errLeaky)

	for _, c := range []struct {
		value any
		want  string
	}{
		{make(chan int), "a Go chan int cannot be encoded as JSON"},
		{math.NaN(), "the value does not convert to or from JSON"},
		{json.Number("secret"), "the value does not convert to or from JSON"},
		{leaky{}, "the value does not convert to or from JSON"},
	} {
		require.EqualError(t, m.SetJSON(bg, "k", c.value), `store: manager: set JSON "a:k": `+c.want)
	}
	require.ErrorIs(t, m.SetJSON(bg, "k", leaky{}), errLeaky)
	value, _, err := m.Get(bg, "k")
	require.NoError(t, err)
	require.Equal(t, `"secret"`, value, "unchanged")
}

// callAll calls every method with one key and returns their errors.
func callAll(ctx context.Context, m *store.Manager, key string) map[string]error {
	_, _, get := m.Get(ctx, key)
	_, getJSON := m.GetJSON(ctx, key, new(string))
	_, update := m.Update(ctx, key, func(string, bool) (string, error) { return "", nil })
	return map[string]error{
		"get": get, "set": m.Set(ctx, key, ""), "delete": m.Delete(ctx, key),
		"get JSON": getJSON, "set JSON": m.SetJSON(ctx, key, ""), "update": update,
	}
}

func TestManagerChecksKeys(t *testing.T) {
	for _, c := range []struct {
		name, prefix, key, want string
	}{
		{"empty", "a:", "", "empty"},
		{"not UTF-8", "a:", "\xa9", "not UTF-8"},
		{"prefix not UTF-8", "\xc3", "k", "not UTF-8"},
		{"too long", "a:", strings.Repeat("k", 513), "513 bytes, more than 512"},
		{"too long with the prefix", "a:", strings.Repeat("k", 511), "513 bytes with a prefix of 2 bytes, more than 512"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := store.NewMemory()
			for op, err := range callAll(bg, store.NewManager(s, c.prefix), c.key) {
				require.ErrorIs(t, err, store.ErrInvalidKey)
				var e *store.Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, store.Error{Store: "manager", Op: op, Key: c.prefix + c.key, Err: e.Err}, *e)
				require.EqualError(t, e.Err, "store: invalid key: "+c.want)
			}
			require.Empty(t, dump(t, s))
		})
	}
	for op, err := range callAll(bg, store.NewManager(store.NewMemory(), "a:"), strings.Repeat("k", 510)) {
		require.NoError(t, err, op)
	}
}

func TestManagerReturnsTheErrorsOfTheStore(t *testing.T) {
	s := store.NewMemory()
	m := store.NewManager(s, "a:")
	ended, cancel := context.WithCancel(bg)
	cancel()
	for op, err := range callAll(ended, m, "k") {
		require.ErrorIs(t, err, context.Canceled, op)
	}
	require.NoError(t, s.Close())
	for op, err := range callAll(bg, m, "k") {
		require.ErrorIs(t, err, store.ErrClosed, op)
		require.Contains(t, err.Error(), `"a:k"`, op)
	}
}

// TestManagerUpdateCountsVisits checks that no concurrent update is lost.
func TestManagerUpdateCountsVisits(t *testing.T) {
	const visitors, visits = 16, 250
	s := store.NewMemory()
	var wg sync.WaitGroup
	var calls atomic.Int64
	returned := make([]map[string]bool, visitors)
	for i := range visitors {
		m := store.NewManager(s.Open(), "user:7/")
		returned[i] = map[string]bool{}
		wg.Go(func() {
			for range visits {
				value, err := m.Update(bg, "visits", func(value string, present bool) (string, error) {
					calls.Add(1)
					if !present {
						return "1", nil
					}
					n, err := strconv.Atoi(value)
					return strconv.Itoa(n + 1), err
				})
				if err != nil {
					t.Error(err)
				}
				returned[i][value] = true
			}
		})
	}
	wg.Wait()
	value, found, err := store.NewManager(s, "user:7/").Get(bg, "visits")
	require.Equal(t, []any{strconv.Itoa(visitors * visits), true, nil}, []any{value, found, err})
	all := map[string]bool{}
	for _, values := range returned {
		for value := range values {
			all[value] = true
		}
	}
	require.Len(t, all, visitors*visits, "each update returns a different count")
	t.Logf("%d updates took %d calls", visitors*visits, calls.Load())
}

func TestManagerUpdateReturnsTheErrorOfFn(t *testing.T) {
	s := store.NewMemory()
	m := store.NewManager(s, "a:")
	for _, want := range []error{errors.New("no"), fmt.Errorf("inner: %w", store.ErrConflict), store.ErrNotFound} {
		for range 2 {
			before := dump(t, s)
			calls := 0
			value, err := m.Update(bg, "k", func(string, bool) (string, error) {
				calls++
				return "written", want
			})
			require.True(t, err == want, "the error is not wrapped")
			require.Equal(t, []any{"", 1}, []any{value, calls})
			require.Equal(t, before, dump(t, s))
			require.NoError(t, m.Set(bg, "k", "there"))
		}
		require.NoError(t, m.Delete(bg, "k"))
	}
}

// contended returns a store with other writers that are faster for the next
// puts, or with a connection that breaks.
func contended(conflicts int, then error) store.Store {
	db := store.NewMemory()
	return fakestore.New(db, func(ctx context.Context, c fakestore.Call, do func() error) error {
		if c.Writes != nil && conflicts > 0 {
			conflicts--
			if _, err := store.Put(ctx, db, c.Writes[0].Key, []byte(strconv.Itoa(conflicts)), store.Always); err != nil {
				return err
			}
		}
		if err := do(); err != nil || c.Writes == nil {
			return err
		}
		return then
	})
}

func TestManagerUpdateBacksOffAfterEachConflict(t *testing.T) {
	for _, c := range []struct {
		conflicts int
		limit     time.Duration
	}{
		{0, 0},
		{1, 250 * time.Microsecond},
		{2, 750 * time.Microsecond},
		{10, 255750 * time.Microsecond},
		{20, (255750 + 10*128000) * time.Microsecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := store.NewManager(contended(c.conflicts, nil), "")
			start := time.Now()
			var seen []string
			value, err := m.Update(bg, "k", func(value string, present bool) (string, error) {
				require.Equal(t, len(seen) > 0, present)
				seen = append(seen, value)
				return value + "!", nil
			})
			require.NoError(t, err)
			want := []string{""}
			for i := range c.conflicts {
				want = append(want, strconv.Itoa(c.conflicts-1-i))
			}
			require.Equal(t, want, seen, "fn sees the values of other writers")
			require.Equal(t, want[c.conflicts]+"!", value)
			took := time.Since(start)
			require.LessOrEqual(t, took, c.limit)
			if c.limit > 0 {
				require.Positive(t, took)
			}
		})
	}
}

func TestManagerUpdateEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := store.NewManager(contended(math.MaxInt, nil), "a:")
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		start := time.Now()
		value, err := m.Update(ctx, "k", func(string, bool) (string, error) { return "mine", nil })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, store.ErrUnknownOutcome)
		require.EqualError(t, err, `store: manager: update "a:k": context deadline exceeded`)
		require.Empty(t, value)
		require.Equal(t, time.Second, time.Since(start))
	})
}

// A store that always says that there is a conflict holds nobody for ever.
func TestManagerUpdateGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, calls := store.NewManager(contended(math.MaxInt, nil), "a:"), 0
		value, err := m.Update(bg, "k", func(string, bool) (string, error) { calls++; return "mine", nil })
		require.ErrorIs(t, err, store.ErrConflict)
		require.EqualError(t, err, `store: manager: update "a:k": 1000 times: store: conflict`)
		require.Equal(t, []any{"", 1000}, []any{value, calls})
	})
}

func TestManagerUpdateDoesNotRetryAnUnknownOutcome(t *testing.T) {
	then := &store.Error{Store: "far", Op: "put", Key: "k", Err: store.ErrUnknownOutcome}
	calls := 0
	value, err := store.NewManager(contended(0, then), "").Update(bg, "k", func(string, bool) (string, error) {
		calls++
		return "1", nil
	})
	require.True(t, err == then)
	require.Equal(t, []any{"", 1}, []any{value, calls})
}

package document

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/agentstate/state/workspace/work"
)

// numberModel knows which numbers were given, to which text and by which record.
type numberModel struct {
	texts   map[int]string
	origins map[int]Origin
}

// check compares a document after a record with the model before it.
func (m *numberModel) check(t require.TestingT, d *Document, by Origin) {
	numbers := d.Numbers()
	origins, err := d.Origins()
	require.NoError(t, err)
	next := d.NextNumber()
	before := len(m.texts)
	for n := before + 1; n < next; n++ {
		m.texts[n], m.origins[n] = string(d.message(n)), by
	}
	require.Len(t, m.texts, next-1, "numbers rise by one")
	seen := map[int]bool{}
	for _, n := range numbers {
		require.False(t, seen[n], "number %d is that of two messages", n)
		seen[n] = true
		require.Equal(t, m.texts[n], string(d.message(n)), "number %d was given to another message", n)
		require.Equal(t, m.origins[n], origins.Of(n))
	}
	require.NoError(t, d.Check())
	again, err := Decode(d.Encode())
	require.NoError(t, err)
	decoded, err := again.Origins()
	require.NoError(t, err)
	require.Equal(t, origins, decoded)
}

// A number is given once, to one message, and its origin is the record that has
// stored the message: whatever is edited, dropped, undone and read again.
func TestNumbersAreGivenOnce(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		t := &stateWriter{T: rt}
		m := &numberModel{map[int]string{}, map[int]Origin{}}
		d := New()
		st := load(t, d)
		base, snapshot := d.Clone(), st.Snapshot()
		at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		for range rapid.IntRange(1, 12).Draw(rt, "records") {
			at = at.Add(time.Duration(rapid.IntRange(-1, 2000).Draw(rt, "ms")) * time.Millisecond)
			by := Origin{at, rapid.SampledFrom([]string{"", "a", "b"}).Draw(rt, "run")}
			apply := func(effects []state.Effect) {
				require.NoError(t, d.ApplyRecord(stored(t, effects), by))
				m.check(t, d, by)
			}
			switch rapid.IntRange(0, 5).Draw(rt, "then") {
			case 0: // undo
				apply(d.Revert(base))
				st = load(t, d)
				snapshot = st.Snapshot()
			case 1: // another process
				var err error
				d, err = Decode(d.Encode())
				require.NoError(t, err)
				st = load(t, d)
				snapshot = st.Snapshot()
			case 2:
				effects, err := d.Clone().Shorten(rapid.IntRange(0, 4).Draw(rt, "messages"), 1)
				require.NoError(t, err)
				apply(effects)
				st = load(t, d)
				snapshot = st.Snapshot()
			case 3:
				effects, err := d.EndRun(empty, "")
				require.NoError(t, err)
				apply(effects)
				st = load(t, d)
				snapshot = st.Snapshot()
			case 4:
				base, snapshot = d.Clone(), st.Snapshot()
			default:
				saved := st.Snapshot()
				for range rapid.IntRange(0, 4).Draw(rt, "writes") {
					t.write(st, snapshot)
				}
				next, err := d.NextAfter(saved, st.Snapshot())
				require.NoError(t, err)
				said := state.UserText(fmt.Sprint("answer ", next))
				require.NoError(t, state.Messages.Set(st, []state.Message{said}))
				effects, err := d.Save(saved, st.Snapshot(), nil)
				require.NoError(t, err)
				apply(effects)
				numbers := d.Numbers()
				require.Equal(t, next, numbers[len(numbers)-1], "the number that was known before")
			}
		}
	})
}

// Messages that stay keep their numbers, wherever others go and come.
func TestEditedMessagesKeepTheirNumbers(t *testing.T) {
	for _, row := range []struct {
		name, before, after string
		want                []int
	}{
		{"late result", "a b c", "a x b c", []int{1, 4, 2, 3}},
		{"two late results", "a b c d", "a x b y c d", []int{1, 5, 2, 6, 3, 4}},
		{"late result, and what was said meanwhile", "a b", "a x b y z", []int{1, 5, 2, 3, 4}},
		{"replaced", "a b c", "a x c", []int{1, 4, 3}},
		{"dropped and appended", "a b c", "b c x", []int{2, 3, 4}},
		{"dropped, and a late result", "a b c d", "b x c d", []int{2, 5, 3, 4}},
		{"dropped among equals", "a b a c", "b a x c", []int{2, 3, 5, 4}},
		{"moved", "a b c d", "a c b d", []int{1, 3, 2, 4}},
		{"moved to the end", "a b c", "c a b", []int{3, 4, 5}},
		{"nothing stays", "a b", "x y", []int{3, 4}},
		{"said again", "a b", "a b a", []int{1, 2, 3}},
		{"emptied", "a b", "", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := New()
			st := load(t, d)
			say := func(words string) {
				saved := st.Snapshot()
				var msgs []state.Message
				for _, w := range words {
					if w != ' ' {
						msgs = append(msgs, state.UserText(string(w)))
					}
				}
				require.NoError(t, state.Messages.Replace(st, msgs))
				commit(t, d, saved, st.Snapshot())
			}
			say(row.before)
			say(row.after)
			numbers := d.Numbers()
			require.Equal(t, row.want, append([]int(nil), numbers...))
			require.Equal(t, plainOf(t, st), plainOf(t, load(t, d)))
		})
	}
}

// Numbers cost a few bytes, and those of messages that are gone cost nothing.
func TestNumbersAreSmall(t *testing.T) {
	for _, perRun := range []int{2, 6} {
		for _, window := range []int{-1, 40} {
			t.Run(fmt.Sprintf("%d messages a run, window %d", perRun, window), func(t *testing.T) {
				d := New()
				st := load(t, d)
				at, sizes := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), []int(nil)
				for i := range 300 {
					by := Origin{at.Add(time.Duration(i) * 97 * time.Second), fmt.Sprintf("message-%012d", i)}
					saved := st.Snapshot()
					for j := range perRun {
						require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText(strconv.Itoa(perRun*i + j + 1))}))
					}
					effects, err := d.Save(saved, st.Snapshot(), nil)
					require.NoError(t, err)
					require.NoError(t, d.ApplyRecord(effects, by))
					shortened, err := d.Shorten(window, -1)
					require.NoError(t, err)
					for _, e := range effects {
						require.NotEqual(t, fieldNumbers, e.Field, "the record does not repeat its time")
					}
					if len(shortened) > 0 {
						st = load(t, d)
					}
					sizes = append(sizes, len(d.get(PartConversation, fieldNumbers).json()))
				}
				origins, err := d.Origins()
				require.NoError(t, err)
				numbers := d.Numbers()
				for _, n := range numbers {
					require.Equal(t, fmt.Sprintf("message-%012d", (n-1)/perRun), origins.Of(n).Run)
					require.Equal(t, strconv.Itoa(n), must(d.decodeMessages([]int{n}))[0].(state.TextMessage).Text())
				}
				if window < 0 {
					require.Less(t, float64(sizes[299])/float64(300*perRun), 24.0, "bytes a message")
				} else {
					require.Less(t, slices.Max(sizes), 80*50)
				}
			})
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestCorruptNumbers(t *testing.T) {
	for _, text := range []string{
		`{}`, `[1]`, `[["a",1,2],["a",1]]`, `[["a",1.5,2]]`, `[["a",1,0]]`, `[[1,1,2]]`, `[["a",1,9,1,5]]`, `[["a",1,2147483648],["b",1,90]]`,
	} {
		_, err := Decode([]byte(`{"conversation":{"numbers":` + text + `}}`))
		require.ErrorIs(t, err, work.ErrCorrupt, text)
		require.ErrorContains(t, err, "$.conversation.numbers: ")
	}
	d, err := Decode([]byte(`{"conversation":{"numbers":[["a",1,9],["b",1,5]]}}`))
	require.NoError(t, err)
	_, err = d.Origins()
	require.ErrorIs(t, err, work.ErrCorrupt)
	require.ErrorContains(t, err, "$.conversation.numbers: the numbers do not rise")
}

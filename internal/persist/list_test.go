package persist

import (
	"reflect"
	"runtime"
	"sync"
	"testing"
	"weak"

	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var ints = reflect.TypeFor[[]int]()

func contents(l *List) []int { return l.Slice(0, l.Len()).([]int) }

func TestListsThatShareChunksStayAsTheyWere(t *testing.T) {
	t.Run("declared", testListsThatShareChunks[int])
	t.Run("reflected", testListsThatShareChunks[int32])
}

func testListsThatShareChunks[E int | int32](t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		lists := []*List{NewList(reflect.TypeFor[[]E]())}
		models := [][]E{{}}
		next := E(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			i := rapid.IntRange(0, len(lists)-1).Draw(t, "list")
			l, model := lists[i], models[i]
			dropped := 0
			if rapid.IntRange(0, 4).Draw(t, "take") == 0 {
				n := rapid.IntRange(0, len(model)).Draw(t, "n")
				l, model = l.Take(n, n), model[:n]
			} else if rapid.IntRange(0, 4).Draw(t, "drop") == 0 {
				n := rapid.IntRange(0, len(model)+1).Draw(t, "n")
				dropped = min(n, len(model))
				l = l.DropFirst(n, dropped)
				model = model[dropped:]
			} else {
				n := rapid.SampledFrom([]int{0, 1, 1, 1, 2, 3, 7, 100, 255, 256, 257, 600}).Draw(t, "n")
				add := make([]E, n)
				for j := range add {
					add[j] = next
					next++
				}
				l = l.Append(add, n)
				model = append(model[:len(model):len(model)], add...)
			}
			from, n := l.Shared(lists[i])
			common := min(len(model), len(models[i])-dropped)
			require.LessOrEqual(t, n, max(common, 0))
			require.Less(t, common-n, chunkLen, "more is shared")
			if n > 0 {
				require.Equal(t, dropped, from)
			}
			if from, n := l.Follows(lists[i]); n > 0 {
				require.Equal(t, dropped, from)
				require.Less(t, common-n, chunkLen, "more follows")
			}
			lists, models = append(lists, l), append(models, model)
		}
		for i, l := range lists {
			require.Equal(t, len(models[i]), l.Len())
			require.Equal(t, len(models[i]), l.Bytes())
			require.Equal(t, append([]E{}, models[i]...), l.Slice(0, l.Len()))
			for j, want := range models[i] {
				require.EqualValues(t, want, l.Index(j).Int())
			}
			other := len(lists) - 1 - i
			from, n := l.Shared(lists[other])
			require.Equal(t, models[other][from:from+n], models[i][:n])
			from, n = l.Follows(lists[other])
			require.Equal(t, models[other][from:from+n], models[i][:n])
		}
	})
}

// A list of large elements keeps alive at most as many dropped ones as it
// shows, whatever their sizes are.
func TestDroppedElementsAreReleased(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		type element struct{ size, at int }
		l := NewList(reflect.TypeFor[[]*element]())
		var elements []weak.Pointer[element]
		var shown []int // sizes
		for i := range rapid.IntRange(1, 700).Draw(t, "steps") {
			e := &element{size: rapid.SampledFrom([]int{0, 1, 10, 1000}).Draw(t, "size"), at: i}
			l = l.Append([]*element{e}, e.size)
			elements, shown = append(elements, weak.Make(e)), append(shown, e.size)
			for drops := rapid.SampledFrom([]int{0, 0, 1, 1, 1, 2}).Draw(t, "drops"); drops > 0 && len(shown) > 1; drops-- {
				l = l.DropFirst(1, shown[0])
				shown = shown[1:]
			}
		}
		runtime.GC()
		bytes, dropped, droppedBytes := l.Bytes(), 0, 0
		for _, e := range elements[:len(elements)-len(shown)] {
			if e := e.Value(); e != nil {
				dropped++
				droppedBytes += e.size
			}
		}
		require.LessOrEqual(t, dropped+droppedBytes, l.Len()+bytes)
		runtime.KeepAlive(l)
	})
}

func TestOneTailIsGivenToOneAppender(t *testing.T) {
	base := NewList(ints).Append([]int{1, 2, 3}, 0)
	var wg sync.WaitGroup
	got := make([]*List, 8)
	for i := range got {
		wg.Go(func() {
			l := base
			for j := range 600 {
				l = l.Append([]int{i*1000 + j}, 0)
			}
			got[i] = l
		})
	}
	wg.Wait()
	for i, l := range got {
		want := []int{1, 2, 3}
		for j := range 600 {
			want = append(want, i*1000+j)
		}
		require.Equal(t, want, contents(l))
	}
}

func TestSlicesCannotReachTheTail(t *testing.T) {
	l := NewList(ints).Append([]int{1, 2}, 0)
	for run := range l.Runs(0, 2) {
		require.Equal(t, 2, run.Cap())
	}
	s := contents(l)
	s[0] = 9
	require.Equal(t, []int{1, 2}, contents(l))
}

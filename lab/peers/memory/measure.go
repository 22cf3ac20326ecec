package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// row is what was measured of a contender.
type row struct {
	name              string
	number, add, read testing.BenchmarkResult
	lost              int  // of rounds of two writers each
	aliased           bool // whether a reader's change shows in the state
}

const (
	rounds = 100
	length = 1000
)

func measure(c contender) (r row) {
	r.name = c.name
	c.with(func(v values) {
		r.number = testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for n := range b.N {
				if v.SetGet(n) != n {
					b.Fatal("another number")
				}
			}
		})
	})
	c.with(func(v values) {
		r.add = testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for n := range b.N {
				if n%length == 0 { // the list has 1 000 to 2 000 notes
					b.StopTimer()
					v.Fill(notes(length))
					b.StartTimer()
				}
				v.Add("a note", func() {})
			}
		})
	})
	c.with(func(v values) {
		v.Fill(notes(length))
		r.read = testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if len(v.Notes()) != length {
					b.Fatal("another list")
				}
			}
		})
	})
	r.lost, r.aliased = lost(c), aliased(c)
	return r
}

// lost counts the rounds in which one of two notes is not kept. Both writers have
// read before either writes, as when each sends a request in between.
func lost(c contender) (n int) {
	for range rounds {
		c.with(func(v values) {
			var both, done sync.WaitGroup
			both.Add(2)
			for _, note := range []string{"a", "b"} {
				done.Go(func() {
					v.Add(note, func() { both.Done(); both.Wait() })
				})
			}
			done.Wait()
			if len(v.Notes()) != 2 {
				n++
			}
		})
	}
	return n
}

func aliased(c contender) (seen bool) {
	c.with(func(v values) {
		v.Fill(notes(2))
		v.Notes()[0] = "changed"
		seen = v.Notes()[0] == "changed"
	})
	return seen
}

// notes returns n notes, each a string of its own.
func notes(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint("note ", i)
	}
	return list
}

func (r row) String() string {
	alias := "is not changed in it"
	if r.aliased {
		alias = "is changed in it"
	}
	cells := []string{r.name, cell(r.number), cell(r.add), cell(r.read), fmt.Sprint(r.lost), alias}
	return "| " + strings.Join(cells, " | ") + " |"
}

func cell(b testing.BenchmarkResult) string {
	return fmt.Sprintf("%s, %d B, %d", duration(b), b.AllocedBytesPerOp(), b.AllocsPerOp())
}

func duration(b testing.BenchmarkResult) string {
	ns := float64(b.T.Nanoseconds()) / float64(b.N)
	if ns < 1000 {
		return fmt.Sprintf("%.0f ns", ns)
	}
	return fmt.Sprintf("%.1f µs", ns/1000)
}

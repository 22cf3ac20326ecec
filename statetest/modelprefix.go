package statetest

import (
	"regexp"
	"strconv"

	"github.com/agentstate/state/internal/fault"
)

// Prefix fails the test if the requests so far share less than a part of their
// bytes with the request of the same agent before, from the beginning on: the
// provider's prompt cache misses the rest. The part is of what two requests could
// share, the bytes of the shorter one. What stands in <context> tags behind the
// conversation, and breakpoints of caches, do not count.
//
//	m.Prefix(0.95)
func (m *Model) Prefix(least float64) {
	m.report.Helper()
	m.script.mu.Lock()
	requests := append([]asked(nil), m.script.requests...)
	m.script.mu.Unlock()
	before := map[string]int{} // by agent, the number of its request
	texts := make([]string, len(requests))
	shared, possible, lost, at := 0, 0, 0, 0
	for i, r := range requests {
		texts[i] = passing.ReplaceAllString(r.said(), "")
		k, ok := before[r.Agent]
		if before[r.Agent] = i; !ok {
			continue
		}
		common, most := commonPrefix(texts[k], texts[i]), min(len(texts[k]), len(texts[i]))
		shared, possible = shared+common, possible+most
		if most-common > lost {
			lost, at = most-common, i
		}
	}
	if possible == 0 || float64(shared) >= least*float64(possible) {
		return
	}
	k := commonPrefix(texts[at], texts[beforeOf(requests, at)])
	m.errorf("statetest: requests share %.1f %% of their beginnings, want %.1f %%\n      request %d differs most from the one before, from byte %d on: %s",
		100*float64(shared)/float64(possible), 100*least, at+1, k, strconv.Quote(fault.Clip(m.secrets.Mask(texts[at][k:]))))
}

// passing is what differs in each request and is not cached.
var passing = regexp.MustCompile(`(?s)<context>(\\n|\n).*?</context>|,"cache_control":\{[^}]*\}|"prompt_cache_key":"[^"]*",?`)

// beforeOf returns the number of the request of the same agent before another.
func beforeOf(requests []asked, i int) int {
	k := i - 1
	for k > 0 && requests[k].Agent != requests[i].Agent {
		k--
	}
	return k
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

package workspace

import (
	"sync"

	"github.com/agentstate/state"
)

// reportedResults are the results of a history of which the Tracer was told.
type reportedResults struct {
	mu   sync.Mutex
	last *state.State // a snapshot
}

// since returns the results of a snapshot that were not reported, and notes that
// they are.
func (r *reportedResults) since(now *state.State) []state.InferenceResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, after := r.last.History(), now.History()
	r.last = now
	n := min(before.Len(), after.Len())
	for ; n > 0; n-- {
		was, _ := before.At(n - 1)
		is, _ := after.At(n - 1)
		if keyOfResult(was) == keyOfResult(is) {
			break
		}
	}
	known := map[resultKey]bool{} // they may have moved
	for i := n; i < before.Len(); i++ {
		was, _ := before.At(i)
		known[keyOfResult(was)] = true
	}
	var fresh []state.InferenceResult
	for i := n; i < after.Len(); i++ {
		if is, _ := after.At(i); !known[keyOfResult(is)] {
			fresh = append(fresh, is)
		}
	}
	return fresh
}

// resultKey tells results apart.
type resultKey struct {
	id, agent, raw string
	at             int64
}

func keyOfResult(r state.InferenceResult) resultKey {
	return resultKey{r.ID, r.Agent, r.Raw, r.CreatedAt.UnixNano()}
}

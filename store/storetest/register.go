package storetest

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/agentstate/state/store"
	"github.com/anishathalye/porcupine"
)

// request is an operation that a client wants. Values are never empty, and no two
// are alike.
type request struct {
	Op       string         `json:"op"` // "get", "put" or "delete"
	Key      string         `json:"key"`
	Value    string         `json:"value,omitempty"`
	Absent   bool           `json:"absent,omitempty"`
	Revision store.Revision `json:"revision,omitempty"`
}

func (q request) cond() store.Condition {
	switch {
	case q.Absent:
		return store.IfAbsent
	case q.Revision != "":
		return store.IfRevision(q.Revision)
	}
	return store.Always
}

// reply is what came of it.
type reply struct {
	Outcome  outcome        `json:"outcome"`
	Value    string         `json:"value,omitempty"`
	Revision store.Revision `json:"revision,omitempty"`
	Problem  string         `json:"problem,omitempty"` // if it failed
}

type outcome string

const (
	made     outcome = "made"
	missing  outcome = "missing"
	conflict outcome = "conflict"
	unknown  outcome = "unknown"
	failed   outcome = "failed"
)

func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return made
	case errors.Is(err, store.ErrNotFound):
		return missing
	case errors.Is(err, store.ErrConflict):
		return conflict
	case errors.Is(err, store.ErrUnknownOutcome):
		return unknown
	}
	return failed
}

// history is what all clients did, in one time.
type history []porcupine.Operation

func (h *history) add(client int, q request, call int64, r reply, end int64) {
	if r.Outcome == unknown {
		if q.Op == "get" {
			return // tells nothing
		}
		end = math.MaxInt64 // it may still be made
	}
	*h = append(*h, porcupine.Operation{ClientId: client, Input: q, Call: call, Output: r, Return: end})
}

// check returns an error if the history is not that of a linearizable store, or
// if it is too tame to show that.
func (h history) check() error {
	values, err := h.values()
	if err != nil {
		return err
	}
	if err := h.tame(); err != nil {
		return err
	}
	model := register(values)
	result, info := porcupine.CheckOperationsVerbose(model, h, 0)
	if result == porcupine.Ok {
		return nil
	}
	file, err := os.CreateTemp("", "storetest-*.html")
	if err != nil {
		return fmt.Errorf("the history is not linearizable: %s", result)
	}
	defer func() { _ = file.Close() }()
	if err := porcupine.Visualize(model, info, file); err != nil {
		return fmt.Errorf("the history is not linearizable: %s; no picture of it: %w", result, err)
	}
	if result == porcupine.Unknown {
		return fmt.Errorf("whether the history is linearizable was not found out in time: see %s", file.Name())
	}
	return fmt.Errorf("the history is not linearizable: see %s", file.Name())
}

// values returns which value each revision names. It is an error if one names two
// writes, or a write has two.
func (h history) values() (map[store.Revision]string, error) {
	values, revisions := map[store.Revision]string{}, map[string]store.Revision{}
	for _, op := range h {
		q, r := op.Input.(request), op.Output.(reply)
		if r.Outcome != made || q.Op == "delete" {
			continue
		}
		value := q.Value
		if q.Op == "get" {
			value = r.Value
		}
		if r.Revision == "" {
			return nil, fmt.Errorf("%s returned an empty revision", q.Op)
		}
		if before, ok := values[r.Revision]; ok && before != value {
			return nil, fmt.Errorf("the revision %q names two writes: of %q and of %q", r.Revision, before, value)
		}
		if before, ok := revisions[value]; ok && before != r.Revision {
			return nil, fmt.Errorf("the write of %q has two revisions: %q and %q", value, before, r.Revision)
		}
		values[r.Revision], revisions[value] = value, r.Revision
	}
	return values, nil
}

// tame returns an error for a history in which too little happened at once.
func (h history) tame() error {
	overlaps, conditional, conflicts := 0, 0, 0
	for _, part := range partition(h) {
		slices.SortFunc(part, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		for i, op := range part {
			before := i > 0 && part[i-1].Return >= op.Call
			next := i+1 < len(part) && part[i+1].Call <= op.Return
			if before || next {
				overlaps++
			}
			q := op.Input.(request)
			if q.cond() != store.Always {
				conditional++
			}
			if op.Output.(reply).Outcome == conflict {
				conflicts++
			}
		}
	}
	if len(h) < 1000 || 100*overlaps < 30*len(h) || 100*conflicts < 5*conditional {
		return fmt.Errorf("the history proves too little: of %d operations %d met another, of %d conditions %d did not hold",
			len(h), overlaps, conditional, conflicts)
	}
	return nil
}

// register returns the model of one key. Its state is the value, "" if there is
// none: as no two values are alike, it stands for the revision too.
func register(values map[store.Revision]string) porcupine.Model {
	return porcupine.Model{
		Partition: partition,
		Init:      func() any { return "" },
		Step: func(state, input, output any) (bool, any) {
			return afterwards(values, state.(string), input.(request), output.(reply))
		},
		DescribeOperation: func(input, output any) string {
			q, r := input.(request), output.(reply)
			text := q.Op + " " + q.Value
			if q.Absent {
				text += " if absent"
			}
			if q.Revision != "" {
				text += " if " + values[q.Revision]
			}
			return strings.TrimRight(text+": "+string(r.Outcome)+" "+r.Value, " ")
		},
	}
}

func afterwards(values map[store.Revision]string, value string, q request, r reply) (bool, any) {
	if q.Op == "get" {
		if r.Outcome == missing {
			return value == "", value
		}
		return value != "" && r.Value == value, value
	}
	holds := true
	if q.Absent {
		holds = value == ""
	}
	if q.Revision != "" {
		holds = value != "" && values[q.Revision] == value
	}
	switch {
	case r.Outcome == conflict:
		return !holds, value
	case holds:
		return true, q.Value // a delete has none
	}
	// A write of unknown outcome that was never made is one that comes last, or
	// whose condition does not hold when its time comes.
	return r.Outcome == unknown, value
}

func partition(h []porcupine.Operation) [][]porcupine.Operation {
	keys := map[string][]porcupine.Operation{}
	for _, op := range h {
		key := op.Input.(request).Key
		keys[key] = append(keys[key], op)
	}
	parts := make([][]porcupine.Operation, 0, len(keys))
	for _, part := range keys {
		parts = append(parts, part)
	}
	return parts
}

package storetest

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/agentstate/state/store"
)

// history is the operations of all clients with the times of one clock.
type history []porcupine.Operation

// check returns an error if the history is not linearizable.
func (h history) check() error {
	values, err := h.revisionValues()
	if err != nil {
		return err
	}
	model := registerModel(values)
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
		return fmt.Errorf("the history is not linearizable: %s; cannot draw it: %w", result, err)
	}
	return fmt.Errorf("the history is not linearizable: see %s", file.Name())
}

// revisionValues returns the value that each revision identifies. It returns an
// error if a revision identifies two writes, or if a write has two revisions.
func (h history) revisionValues() (map[store.Revision]string, error) {
	values, revisions := map[store.Revision]string{}, map[string]store.Revision{}
	for _, op := range h {
		q, r := op.Input.(operation), op.Output.(operationResult)
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
			return nil, fmt.Errorf("the revision %q identifies two writes: of %q and of %q", r.Revision, before, value)
		}
		if before, ok := revisions[value]; ok && before != r.Revision {
			return nil, fmt.Errorf("the write of %q has two revisions: %q and %q", value, before, r.Revision)
		}
		values[r.Revision], revisions[value] = value, r.Revision
	}
	return values, nil
}

// checkContention returns an error if too few operations overlap or conflict to
// prove anything.
func (h history) checkContention() error {
	overlaps, conditional, conflicts := 0, 0, 0
	for _, part := range partitionByKey(h) {
		slices.SortFunc(part, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		for i, op := range part {
			before := i > 0 && part[i-1].Return >= op.Call
			next := i+1 < len(part) && part[i+1].Call <= op.Return
			if before || next {
				overlaps++
			}
			q := op.Input.(operation)
			if q.condition() != store.Always {
				conditional++
			}
			if op.Output.(operationResult).Outcome == conflict {
				conflicts++
			}
		}
	}
	if len(h) < 1000 || 100*overlaps < 30*len(h) || 100*conflicts < 5*conditional {
		return fmt.Errorf("too little contention: %[2]d of %[1]d operations overlap, %[4]d of %[3]d conditions did not hold",
			len(h), overlaps, conditional, conflicts)
	}
	return nil
}

// registerModel returns the model of one key. Its state is the value, or "" if
// the key does not exist. Values never repeat, so that a value also stands for
// its revision.
func registerModel(values map[store.Revision]string) porcupine.Model {
	return porcupine.Model{
		Partition: partitionByKey,
		Init:      func() any { return "" },
		Step: func(state, input, output any) (bool, any) {
			return stepRegister(values, state.(string), input.(operation), output.(operationResult))
		},
		DescribeOperation: func(input, output any) string {
			q, r := input.(operation), output.(operationResult)
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

func stepRegister(values map[store.Revision]string, value string, q operation, r operationResult) (bool, any) {
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
		return true, q.Value // empty for a delete
	}
	// A write of unknown outcome may never be made. In the model, it then comes
	// last, or at a time at which its condition does not hold.
	return r.Outcome == unknown, value
}

func partitionByKey(h []porcupine.Operation) [][]porcupine.Operation {
	keys := map[string][]porcupine.Operation{}
	for _, op := range h {
		key := op.Input.(operation).Key
		keys[key] = append(keys[key], op)
	}
	parts := make([][]porcupine.Operation, 0, len(keys))
	for _, part := range keys {
		parts = append(parts, part)
	}
	return parts
}

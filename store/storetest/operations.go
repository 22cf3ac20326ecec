package storetest

import (
	"context"
	"errors"

	"github.com/agentstate/state/store"
)

// operation is a call of a client. Values are not empty and never repeat.
type operation struct {
	Op       string         `json:"op"` // "get", "put" or "delete"
	Key      string         `json:"key"`
	Value    string         `json:"value,omitempty"`
	Absent   bool           `json:"absent,omitempty"`
	Revision store.Revision `json:"revision,omitempty"`
}

func (o operation) condition() store.Condition {
	switch {
	case o.Absent:
		return store.IfAbsent
	case o.Revision != "":
		return store.IfRevision(o.Revision)
	}
	return store.Always
}

// operationResult is the result of an operation.
type operationResult struct {
	Outcome  outcome        `json:"outcome"`
	Value    string         `json:"value,omitempty"`
	Revision store.Revision `json:"revision,omitempty"`
	Problem  string         `json:"problem,omitempty"` // error of a failed operation
}

type outcome string

const (
	made     outcome = "made"
	missing  outcome = "missing"
	conflict outcome = "conflict"
	unknown  outcome = "unknown"
	failed   outcome = "failed"
)

func outcomeOfError(err error) outcome {
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

// execute performs an operation on a store.
func (o operation) execute(ctx context.Context, s store.Store) operationResult {
	var r operationResult
	var err error
	switch o.Op {
	case "get":
		var e store.Entry
		e, err = store.Get(ctx, s, o.Key)
		r.Value, r.Revision = string(e.Value), e.Revision
	case "put":
		r.Revision, err = store.Put(ctx, s, o.Key, []byte(o.Value), o.condition())
	case "delete":
		err = store.Delete(ctx, s, o.Key, o.condition())
	}
	if r.Outcome = outcomeOfError(err); r.Outcome != made {
		r.Value, r.Revision = "", ""
	}
	if r.Outcome == failed {
		r.Problem = err.Error()
	}
	return r
}

package state

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/jsontext"
)

// The ops of an [internal.SharedWrite].
const (
	sharedSet     = "set"
	sharedReplace = "replace"
	sharedUpdate  = "update"
	sharedDelete  = "delete"
	sharedRead    = "read"
)

// sharedWrites returns what the frozen branch has kept from an index on.
func (h *handle) sharedWrites(from int) ([]internal.SharedWrite, error) {
	kept := h.branch.KeptWrites(from)
	var writes []internal.SharedWrite
	for i := range kept {
		w, err := kept[i].Slot.Form.(*fieldSpec).sharedWrite(&kept[i])
		if err != nil {
			return nil, err
		}
		writes = append(writes, w)
	}
	return writes, nil
}

func (sp *fieldSpec) sharedWrite(k *engine.Kept) (w internal.SharedWrite, err error) {
	w = internal.SharedWrite{Field: sp.name, Op: sharedUpdate}
	var value any
	has := k.To != nil && !k.Read // the write is stored with a value
	if has {
		value = k.To.Value
	}
	if k.Read {
		w.Op = sharedRead
	}
	if o := k.Op; o != nil {
		w.Agent, w.Cause = o.Author.Agent, o.Author.Cause
		by, _ := o.Merger.(*handler)
		switch {
		case k.Again != nil:
			w.Again = k.Again
		case o.Computed:
		case o.Overwrites && k.To == nil:
			w.Op = sharedDelete
		case o.Overwrites:
			w.Op = sharedReplace
		case by.name == sp.handler.name && by.user == sp.handler.user:
			w.Op, value, has = sharedSet, sp.update(o.Update), true
		default: // only this process has the handler of a SetWith
			w.Again = func(current *engine.Cell) (engine.Update, error) {
				m, err := by.Merge(k.Address, current, o.Update)
				return engine.Update{Value: m.Value, Size: m.Size}, err
			}
		}
	}
	if w.Op == sharedUpdate || w.Op == sharedRead {
		if w.Read, err = sp.sharedHash(k.From); err != nil {
			return w, err
		}
	}
	if has {
		var data []byte
		data, err = sp.appendJSON(nil, k.Address, value)
		w.Value = string(data)
	}
	return w, err
}

// sharedHash returns the hash of a value, or "" if it is unset.
func (sp *fieldSpec) sharedHash(c *engine.Cell) (string, error) {
	if c == nil {
		return "", nil
	}
	data, err := sp.appendJSON(nil, sp.address(), c.Value)
	sum := sha256.Sum256(jsontext.AppendCompact(nil, data))
	return base64.RawURLEncoding.EncodeToString(sum[:16]), err
}

// redoShared does writes again.
func (h *handle) redoShared(writes []internal.SharedWrite) error {
	for i := range writes {
		if err := h.redo(&writes[i]); err != nil {
			return h.explain(err)
		}
	}
	return nil
}

func (h *handle) redo(w *internal.SharedWrite) error {
	sp := h.schema.byName[w.Field]
	if sp == nil {
		sp = h.schema.former[w.Field]
	}
	if sp == nil || !sp.slot.Kept {
		return h.unknownField(w.Field)
	}
	at, by := sp.address(), replaceHandler
	if w.Op == sharedUpdate || w.Op == sharedRead {
		now, err := sp.sharedHash(h.branch.Get(at))
		switch {
		case err != nil:
			return err
		case now == w.Read:
		case w.Again == nil:
			return fmt.Errorf("%w: %w", internal.ErrSharedStale, &ConflictError{Fields: []string{sp.name}})
		default:
			return h.remake(sp, w)
		}
	}
	switch {
	case w.Op == sharedRead:
		return nil
	case w.Value == "":
		by = nil
	case w.Op == sharedSet:
		by = sp.handler
	}
	o := sp.newOp(OpSet, by)
	o.Author = &engine.Author{Agent: w.Agent, Cause: w.Cause}
	if by == nil {
		_, err := h.branch.Delete(engine.View{}, &o)
		return err
	}
	m, _, err := sp.decodeStored(at, []byte(w.Value), w.Field != sp.name)
	if err == nil {
		o.Update, err = sp.store(at, sp.form.Load(m.Value), false)
	}
	if err != nil {
		return err
	}
	return h.branch.Write(engine.View{}, &o)
}

// remake does an update again on what the field has now. The code of users that
// does so may panic.
func (h *handle) remake(sp *fieldSpec, w *internal.SharedWrite) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicError(sp.name, "function of Update", p, sp.form.Secret)
		}
	}()
	o := sp.newOp(OpUpdate, replaceHandler)
	o.Author = &engine.Author{Agent: w.Agent, Cause: w.Cause}
	if err := h.branch.Rewrite(engine.View{}, o, w.Again); err != nil {
		if sp.form.Secret {
			return asKind(ErrRefused, fieldError(sp.name, errors.New("the function of Update failed on a secret")))
		}
		return err
	}
	return nil
}

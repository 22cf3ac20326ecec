package inspect

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// revertData is the data of the page that asks before a revert.
type revertData struct {
	To      uint64      `json:"to"`
	Seen    uint64      `json:"seen"`
	Fields  []fieldDiff `json:"fields,omitempty"`
	Others  []effectRow `json:"others,omitempty"`
	Problem string      `json:"problem,omitempty"`
	Busy    bool        `json:"busy,omitempty"` // a run is under way
}

// revertForm shows what a revert changes, and asks.
func (h *Handler) revertForm(c *call) (*page, error) {
	to, ok, err := c.number("to")
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, &httpError{http.StatusBadRequest, "The parameter to is missing."}
	}
	return c.revertPage(to, "", 0)
}

func (c *call) revertPage(to uint64, problem string, status int) (*page, error) {
	s, err := c.openNow()
	if err != nil {
		return nil, err
	}
	if to > s.Newest {
		return nil, &httpError{http.StatusNotFound, "There is no such version."}
	}
	past, err := c.h.view(c.ctx(), viewKey{c.user, s.Revision, to, true}, s.bytes)
	if err != nil {
		return nil, err
	}
	effects, err := c.h.manager.Diff(c.ctx(), c.user, s.Newest, to)
	if err != nil {
		return nil, err
	}
	data := revertData{To: to, Seen: s.Newest, Problem: problem, Busy: s.now.Run != nil}
	mask := newMasker(s.now, past.view)
	seen := map[string]bool{}
	for _, e := range effects {
		switch part, name := partOf(e); part {
		case "field":
			if !seen[name] && name != state.Messages.Name {
				seen[name] = true
				d := newFieldDiff(mask, [2]*state.State{s.now.State(), past.view.State()}, name)
				if !d.Secret { // secrets stay as they are
					data.Fields = append(data.Fields, d)
				}
			}
		case "memory", "setting":
			if part == "memory" && (isSecretEntry(s.now, name) || isSecretEntry(past.view, name)) {
				continue // they stay as they are, too
			}
			if len(data.Others) < maxEffects {
				data.Others = append(data.Others, newEffectRow(mask, e, false))
			}
		}
	}
	return &page{Name: "revert", Title: "Revert", Tab: "actions", Head: s.head, Data: data, status: status}, nil
}

func isSecretEntry(v *workspace.View, key string) bool {
	e, _ := v.Memory().Get(key)
	return e.Secret
}

// revert gives the content the values of an earlier version.
func (h *Handler) revert(c *call) (*page, error) {
	form, err := c.form()
	if err != nil {
		return nil, err
	}
	to, err := strconv.ParseUint(form("to"), 10, 64)
	seen, err2 := strconv.ParseUint(form("version"), 10, 64)
	if errors.Join(err, err2) != nil {
		return nil, &httpError{http.StatusBadRequest, "The form has no versions."}
	}
	s, err := h.manager.Summary(c.ctx(), c.user)
	switch {
	case err != nil:
	case s.Seq == 0:
		return nil, errNoWorkspace
	case s.Version != seen:
		err = store.ErrConflict
	case to > s.Version:
		return nil, &httpError{http.StatusNotFound, "There is no such version."}
	default:
		err = h.manager.Revert(c.ctx(), c.user, workspace.Reversion{To: to, Seen: seen, Cause: c.cause()})
	}
	c.audit("revert", err)
	if errors.Is(err, store.ErrConflict) {
		return c.revertPage(to, movedOn, http.StatusConflict)
	}
	if err != nil {
		return nil, err
	}
	return c.finish(note{
		Did: "The workspace has the values of version " + strconv.FormatUint(to, 10) + ".", Then: "The next run begins with them.",
		Version: seen + 1,
	})
}

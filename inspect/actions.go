package inspect

import (
	"errors"
	"net/http"
	"slices"

	"github.com/agentstate/state/inspect/internal/safetext"
	"github.com/agentstate/state/workspace"
)

// actions returns the routes of the actions, and of the forms that ask for
// them. They have the right that the action needs.
func (h *Handler) actions() []route {
	get, post := http.MethodGet, http.MethodPost
	return []route{
		{get, "/workspace/actions", rightAct, h.actionList},
		{post, "/workspace/retry", rightWrite, h.retry},
		{get, "/workspace/discard", rightWrite, h.discardForm},
		{post, "/workspace/discard", rightWrite, h.discard},
		{get, "/workspace/cancel", rightWrite, h.cancelForm},
		{post, "/workspace/cancel", rightWrite, h.cancel},
		{get, "/workspace/reset", rightDelete, h.resetForm},
		{post, "/workspace/reset", rightDelete, h.reset},
		{get, "/workspace/delete", rightDelete, h.deleteForm},
		{post, "/workspace/delete", rightDelete, h.delete},
		{get, "/workspace/done", rightAct, h.done},
	}
}

// actionListData is the data of the page with what can be done with a workspace.
type actionListData struct {
	Run     *runItem      `json:"run,omitempty"`
	Dead    []messageItem `json:"dead_letters,omitempty"`
	Waiting []messageItem `json:"waiting,omitempty"`
}

// runItem and messageItem name runs and messages in forms by their tags.
type runItem struct {
	ID  text   `json:"id"`
	Tag string `json:"-"`
}

type messageItem struct {
	ID     text   `json:"id"`
	Tag    string `json:"-"`
	Reason text   `json:"reason,omitempty"`
}

// actionList shows what can be done. A workspace that cannot be read can still
// be deleted.
func (h *Handler) actionList(c *call) (*page, error) {
	p := &page{Name: "actions", Title: "Actions", Tab: "actions"}
	s, err := c.open()
	if status, _ := explain(err); err != nil && status == http.StatusInternalServerError && c.access.allows(rightDelete) {
		p.Head, p.Data = &head{User: safetext.Visible(c.user, false), ID: c.user}, actionListData{}
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	var data actionListData
	if r := s.now.Run; r != nil {
		data.Run = &runItem{s.mask.id(r.ID), h.tag(r.ID)}
	}
	for _, d := range s.now.DeadLetters {
		data.Dead = append(data.Dead, messageItem{s.mask.id(d.Message.ID), h.tag(d.Message.ID), s.mask.line(d.Reason).Text})
	}
	for _, m := range s.now.Queue {
		data.Waiting = append(data.Waiting, messageItem{ID: s.mask.id(m.ID), Tag: h.tag(m.ID)})
	}
	p.Head, p.Data = s.head, data
	return p, nil
}

// form returns the fields of the form that the request carries.
func (c *call) form() (get func(name string) string, err error) {
	if err := c.r.ParseForm(); err != nil {
		var tooLong *http.MaxBytesError
		if errors.As(err, &tooLong) {
			return nil, &httpError{http.StatusRequestEntityTooLarge, "The form is longer than 1 MiB."}
		}
		return nil, &httpError{http.StatusBadRequest, "The form cannot be read."}
	}
	return c.r.PostForm.Get, nil
}

// cause returns how an action is signed in the journal.
func (c *call) cause() string { return "inspect:" + c.access.Actor }

// audit logs an action that was tried.
func (c *call) audit(action string, err error) {
	outcome := "done"
	if err != nil {
		outcome = workspace.ErrorClass(err)
	}
	c.h.logger.InfoContext(c.ctx(), "action", "actor", c.access.Actor, "action", action, "user", c.user, "outcome", outcome)
}

// note says what an action has done, for the page that follows it.
type note struct {
	Did  string `json:"did"`
	Then string `json:"then,omitempty"` // what others have yet to notice
	Gone bool   `json:"gone,omitempty"` // there is no workspace any more
}

// finish answers an action with a redirect to a page that says what happened.
func (c *call) finish(n note) (*page, error) {
	c.redirect(c.link("/workspace/done", "at", "", "as", "", "note", c.h.seal("note", c.user, n)))
	return nil, nil
}

// done shows a note.
func (h *Handler) done(c *call) (*page, error) {
	var n note
	if !h.unseal("note", c.user, c.query.Get("note"), &n) {
		return nil, errForm
	}
	p := &page{Name: "done", Title: "Done", Tab: "actions", Data: n, Head: &head{User: safetext.Visible(c.user, false), ID: c.user}}
	if head, err := c.summary(); err == nil {
		p.Head = head
	}
	return p, nil
}

// holderNotice says when the holder of a run notices that the run has ended.
func (h *Handler) holderNotice(r *workspace.RunInfo) string {
	switch {
	case r == nil:
		return ""
	case slices.ContainsFunc(h.manager.Held(), func(held workspace.RunInfo) bool { return held.ID == r.ID }):
		return "This process holds the run; its context ends."
	}
	return "The process that holds the run notices it when it renews its lease, within about " +
		formatSpan(r.TTL/3) + ". Until then it cannot write any more."
}

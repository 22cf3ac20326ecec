package inspect

import (
	"net/http"
	"strconv"

	"github.com/agentstate/state/inspect/internal/safetext"
	"github.com/agentstate/state/workspace"
)

// askData is the data of a page that asks before something is lost.
type askData struct {
	Action string   `json:"action"` // of the path
	Ask    string   `json:"ask"`
	Button string   `json:"button"`
	Lost   []string `json:"lost,omitempty"`
	Target text     `json:"target,omitempty"` // the id of a message or run
	Tag    string   `json:"-"`
	Reason bool     `json:"-"` // a reason can be given
	Typed  bool     `json:"-"` // the user id has to be typed
	Wrong  bool     `json:"wrong,omitempty"`
}

func (c *call) askPage(head *head, data askData) *page {
	return &page{Name: "ask", Title: data.Button, Tab: "actions", Head: head, Data: data}
}

var errNoMessage = &httpError{http.StatusNotFound, "There is no such message any more."}

// message finds the dead letter or the waiting message that a form names. It
// reads the store: what a view was may be over.
func (c *call) message(tag string) (msg workspace.Message, view *workspace.View, err error) {
	view, err = c.h.manager.View(c.ctx(), c.user)
	if err != nil {
		return msg, nil, err
	}
	for _, d := range view.DeadLetters {
		if c.h.tag(d.Message.ID) == tag {
			return d.Message, view, nil
		}
	}
	for _, m := range view.Queue {
		if c.h.tag(m.ID) == tag {
			return m, view, nil
		}
	}
	return msg, nil, errNoMessage
}

// retry handles a dead letter again.
func (h *Handler) retry(c *call) (*page, error) {
	form, err := c.form()
	if err != nil {
		return nil, err
	}
	msg, view, err := c.message(form("message"))
	if err == nil {
		err = h.manager.Retry(c.ctx(), c.user, msg.ID)
	}
	c.audit("retry", err)
	if err != nil {
		return nil, err
	}
	n := note{Did: "The message is at the end of the queue, with no attempts counted."}
	switch {
	case view.Run != nil:
		n.Then = "The run that is under way ends first. Its holder handles the message then."
	case h.options.Run != nil:
		n.Then = "This process handles it as soon as it can."
	default:
		n.Then = "This process handles no messages. Another one that does takes it, within its TTL."
	}
	return c.finish(n)
}

func (h *Handler) discardForm(c *call) (*page, error) {
	s, err := c.open()
	if err != nil {
		return nil, err
	}
	msg, _, err := c.message(c.query.Get("message"))
	if err != nil {
		return nil, err
	}
	return c.askPage(s.head, askData{
		Action: "discard", Ask: "Drop this message?", Button: "Discard", Target: s.mask.id(msg.ID), Tag: h.tag(msg.ID),
		Lost: []string{"The message is never handled. If it is sent again, it is a duplicate."},
	}), nil
}

// discard drops a dead letter or a waiting message.
func (h *Handler) discard(c *call) (*page, error) {
	form, err := c.form()
	if err != nil {
		return nil, err
	}
	msg, _, err := c.message(form("message"))
	if err == nil {
		err = h.manager.Discard(c.ctx(), c.user, msg.ID)
	}
	c.audit("discard", err)
	if err != nil {
		return nil, err
	}
	return c.finish(note{Did: "The message was dropped.", Then: "Those that wait for it are told that it was not handled. If it is sent again, it is a duplicate."})
}

var errNoRun = &httpError{http.StatusNotFound, "This run is not under way any more."}

// underWay returns the run that a form names, if it is under way.
func (c *call) underWay(tag string) (*workspace.RunInfo, error) {
	s, err := c.h.manager.Summary(c.ctx(), c.user)
	if err != nil {
		return nil, err
	}
	if s.Run == nil || c.h.tag(s.Run.ID) != tag {
		return nil, errNoRun
	}
	return s.Run, nil
}

func (h *Handler) cancelForm(c *call) (*page, error) {
	s, err := c.open()
	if err != nil {
		return nil, err
	}
	run, err := c.underWay(c.query.Get("run"))
	if err != nil {
		return nil, err
	}
	return c.askPage(s.head, askData{
		Action: "cancel", Ask: "End this run?", Button: "Cancel the run", Target: s.mask.id(run.ID), Tag: h.tag(run.ID), Reason: true,
		Lost: []string{
			"What the run has not committed is lost. What it has committed stays.",
			"Its open tool calls are answered with an error.",
			"Its message is not handled again.",
		},
	}), nil
}

// cancel ends a run.
func (h *Handler) cancel(c *call) (*page, error) {
	form, err := c.form()
	if err != nil {
		return nil, err
	}
	run, err := c.underWay(form("run"))
	var then string
	if err == nil {
		then = h.holderNotice(run)
		reason := form("reason")
		if reason == "" {
			reason = "cancelled by " + c.cause()
		}
		err = h.manager.Cancel(c.ctx(), c.user, run.ID, reason)
	}
	c.audit("cancel", err)
	if err != nil {
		return nil, err
	}
	return c.finish(note{Did: "The run has ended.", Then: then})
}

func (h *Handler) resetForm(c *call) (*page, error) { return c.removalForm("reset", false) }

func (h *Handler) deleteForm(c *call) (*page, error) { return c.removalForm("delete", false) }

// removalForm asks for the user id and lists what is lost.
func (c *call) removalForm(action string, wrong bool) (*page, error) {
	data := askData{Action: action, Typed: true, Wrong: wrong}
	if action == "reset" {
		data.Ask, data.Button = "Empty this workspace?", "Reset"
	} else {
		data.Ask, data.Button = "Delete this workspace?", "Delete"
	}
	about := &head{User: safetext.Visible(c.user, false), ID: c.user}
	s, err := c.open()
	switch status, text := explain(err); {
	case err == nil:
		about = s.head
		data.Lost = c.lost(s, action)
	case status == http.StatusInternalServerError:
		data.Lost = []string{"The workspace cannot be read: everything that is left of it is lost.", safetext.Visible(text, false)}
	default:
		return nil, err
	}
	p := c.askPage(about, data)
	if wrong {
		p.status = http.StatusUnprocessableEntity
	}
	return p, nil
}

// lost lists what a reset or a deletion takes away.
func (c *call) lost(s *shown, action string) []string {
	set := 0
	for _, f := range s.now.State().Fields() {
		if f.Set {
			set++
		}
	}
	list := []string{
		formatCount(set, "field") + " with a value, the conversation and the results",
		"the memory: " + formatCount(len(s.now.Memory().List()), "value"),
		"all versions up to " + strconv.FormatUint(s.Newest, 10),
	}
	if s.now.Run != nil {
		list = append(list, "the run that is under way, with its message")
	}
	if n := len(s.now.Queue); n > 0 {
		list = append(list, formatCount(n, "message")+" in the queue, never handled")
	}
	if n := len(s.now.DeadLetters); n > 0 {
		list = append(list, formatCount(n, "dead letter"))
	}
	if action == "delete" {
		list = append(list, "the ids of handled messages: if one is sent again, it is handled again", "the values that the program keeps for this user beside the workspace")
	}
	return list
}

func (h *Handler) reset(c *call) (*page, error) {
	return c.remove("reset", note{Did: "The workspace is empty."}, func() error {
		_, err := h.manager.Reset(c.ctx(), c.user)
		return err
	})
}

func (h *Handler) delete(c *call) (*page, error) {
	return c.remove("delete", note{Did: "The workspace was deleted.", Gone: true}, func() error {
		return h.manager.Delete(c.ctx(), c.user)
	})
}

// remove empties or deletes a workspace if the form carries its user id.
func (c *call) remove(action string, n note, do func() error) (*page, error) {
	form, err := c.form()
	if err != nil {
		return nil, err
	}
	if form("confirm") != c.user {
		return c.removalForm(action, true)
	}
	s, err := c.h.manager.Summary(c.ctx(), c.user)
	if err == nil && s.Seq == 0 {
		err = errNoWorkspace
	}
	if status, _ := explain(err); err == nil || status == http.StatusInternalServerError {
		n.Then = c.h.holderNotice(s.Run)
		err = do()
		c.h.views.drop(c.user)
	}
	c.audit(action, err)
	if err != nil {
		return nil, err
	}
	return c.finish(n)
}

package inspect

import (
	"errors"
	"net/http"

	"github.com/agentstate/state/inspect/internal/view"
)

// question is the data of a page that asks before an action.
type question struct {
	Action string   `json:"action"` // of the path
	Ask    string   `json:"ask"`
	Button string   `json:"button"`
	Lost   []string `json:"lost,omitempty"`
	Target string   `json:"target,omitempty"` // the id of a message or run, or a call
	Field  string   `json:"-"`                // of the form: what Tag names
	Tag    string   `json:"-"`
	Reason bool     `json:"-"` // a reason can be given
	Text   bool     `json:"-"` // a text has to be given
	Typed  bool     `json:"-"` // the user id has to be typed
	Wrong  bool     `json:"wrong,omitempty"`
}

func askPage(head *view.Head, q question) *view.Page {
	return &view.Page{Name: "ask", Title: q.Button, Tab: "overview", Head: head, Data: q}
}

// errAskAgain says that a form was not filled in as it has to be.
var errAskAgain = errors.New("inspect: the form is wrong")

func askAnswer(c *call) (*view.Page, error) {
	call, err := c.suspended(c.query.Get("call"))
	if err != nil {
		return nil, err
	}
	head, name, err := c.h.src.Named(c.ctx(), c.ask(), call.Name+" "+string(call.Input))
	return askPage(head, question{
		Action: "answer", Ask: "Answer this call", Button: "Answer", Target: name, Field: "call", Tag: c.query.Get("call"),
		Text: true,
	}), err
}

func askDiscard(c *call) (*view.Page, error) {
	msg, _, err := c.message(c.query.Get("message"))
	if err != nil {
		return nil, err
	}
	head, id, err := c.h.src.Named(c.ctx(), c.ask(), msg.ID)
	return askPage(head, question{
		Action: "discard", Ask: "Drop this message?", Button: "Discard", Target: id, Field: "message",
		Tag:  c.h.src.Tag(msg.ID),
		Lost: []string{"The message is never handled. If it is sent again, it is a duplicate."},
	}), err
}

func askCancel(c *call) (*view.Page, error) {
	run, err := c.underWay(c.query.Get("run"))
	if err != nil {
		return nil, err
	}
	head, id, err := c.h.src.Named(c.ctx(), c.ask(), run.ID)
	return askPage(head, question{
		Action: "cancel", Ask: "End this run?", Button: "Cancel the run", Target: id, Field: "run", Tag: c.h.src.Tag(run.ID),
		Reason: true,
		Lost: []string{
			"What the run has not committed is lost. What it has committed stays.",
			"Its open tool calls are answered with an error.",
			"Its message is not handled again.",
		},
	}), err
}

// askRemoval asks for the user id and lists what is lost.
func (c *call) askRemoval(action string, wrong bool) (*view.Page, error) {
	q := question{Action: action, Ask: "Empty this workspace?", Button: "Reset", Typed: true, Wrong: wrong}
	if action == "delete" {
		q.Ask, q.Button = "Delete this workspace?", "Delete"
	}
	head, lost, err := c.h.src.Lost(c.ctx(), c.ask(), action == "delete")
	switch status, text := view.Explain(err); {
	case err == nil:
		q.Lost = lost
	case status == http.StatusInternalServerError:
		head = view.DamagedHead(c.user, err)
		q.Lost = []string{"The workspace cannot be read: everything that is left of it is lost.", view.Visible(text)}
	default:
		return nil, err
	}
	if wrong {
		return askPage(head, q), errAskAgain
	}
	return askPage(head, q), nil
}

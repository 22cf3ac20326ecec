package inspect

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect/internal/html"
	"github.com/agentstate/state/inspect/internal/view"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// actions returns the actions by their paths, and the forms that ask for them.
func actions() (post, ask map[string]route) {
	post = map[string]route{
		"/workspace/approve": {rightDecide, approve}, "/workspace/refuse": {rightDecide, refuse},
		"/workspace/answer": {rightDecide, answer},
		"/workspace/again":  {rightDecide, again},
		"/workspace/retry":  {rightWrite, retry}, "/workspace/discard": {rightWrite, discard},
		"/workspace/cancel": {rightWrite, cancel},
		"/workspace/reset":  {rightDelete, reset}, "/workspace/delete": {rightDelete, remove},
	}
	ask = map[string]route{
		"/workspace/answer": {rightDecide, askAnswer}, "/workspace/discard": {rightWrite, askDiscard},
		"/workspace/cancel": {rightWrite, askCancel},
		"/workspace/reset":  {rightDelete, func(c *call) (*view.Page, error) { return c.askRemoval("reset", false) }},
		"/workspace/delete": {rightDelete, func(c *call) (*view.Page, error) { return c.askRemoval("delete", false) }},
	}
	return post, ask
}

// form returns the fields of the form that the request carries.
func (c *call) form() (get func(name string) string, err error) {
	control := http.NewResponseController(c.w)
	_ = control.SetReadDeadline(time.Now().Add(formPatience)) // not each server has one
	err = c.r.ParseForm()
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		return nil, &view.Error{Status: http.StatusRequestEntityTooLarge, Text: "The form is longer than 1 MiB."}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &view.Error{Status: http.StatusRequestTimeout, Text: "The form takes too long."}
	case err != nil:
		return nil, &view.Error{Status: http.StatusBadRequest, Text: "The form cannot be read."}
	}
	_ = control.SetReadDeadline(time.Time{})
	return c.r.PostForm.Get, nil
}

// actor returns how an action is signed.
func (c *call) actor() string { return "inspect:" + c.access.Actor }

// finish logs an action that was tried, and answers with a redirect to a page that
// says what happened.
func (c *call) finish(action string, err error, did, then string) (*view.Page, error) {
	outcome := "done"
	if err != nil {
		outcome = workspace.ErrorClass(err)
	}
	c.h.logger.InfoContext(c.ctx(), "action", "actor", c.access.Actor, "action", action, "user",
		c.user, "outcome", outcome)
	if err != nil {
		return nil, err
	}
	path, user := "/workspace", c.user
	if action == "delete" { // there is no workspace any more
		path, user = "/", ""
	}
	note := c.h.src.Seal("note", user, html.Note{Did: did, Then: then})
	c.redirect(c.site.Link(path, "at", "", "as", "", "user", user, "note", note))
	return nil, nil
}

var (
	errNoMessage = &view.Error{Status: http.StatusNotFound, Text: "There is no such message any more."}
	errNoRun     = &view.Error{Status: http.StatusNotFound, Text: "This run is not under way any more."}
	errNoCall    = &view.Error{Status: http.StatusNotFound, Text: "This call does not wait any more."}
)

// suspended finds the suspended call that a form names. It reads the store: what
// a page has shown may be over.
func (c *call) suspended(tag string) (call workspace.Suspended, err error) {
	v, err := c.h.manager.View(c.ctx(), c.user)
	if err != nil {
		return call, err
	}
	waiting := v.Suspended()
	i := slices.IndexFunc(waiting, func(s workspace.Suspended) bool { return c.h.src.Tag(s.Key) == tag })
	if i < 0 {
		return call, errNoCall
	}
	return waiting[i], nil
}

// decide submits a message about a suspended call.
func (c *call) decide(
	action, did string, about func(key string, form func(string) string) tool.Decision,
) (*view.Page, error) {
	form, err := c.form()
	if err != nil {
		return nil, err
	}
	call, err := c.suspended(form("call"))
	if err == nil {
		// It is a message as any other, and accepted before the page answers.
		msg := workspace.Message{Decisions: []tool.Decision{about(call.Key, form)}}
		_, err = c.h.manager.Submit(context.WithoutCancel(c.ctx()), c.user, msg)
	}
	return c.finish(action, err, did, "This process goes on with it as soon as it can.")
}

// approve lets the run of a message make a suspended call.
func approve(c *call) (*view.Page, error) {
	return c.decide("approve", "The call is approved.", func(key string, _ func(string) string) tool.Decision {
		return tool.Approve(key)
	})
}

// again lets the run of a message make a suspended call that may have been made.
func again(c *call) (*view.Page, error) {
	return c.decide("again", "The call is made again.", func(key string, _ func(string) string) tool.Decision {
		return tool.MakeAgain(key)
	})
}

// refuse answers a suspended call as refused.
func refuse(c *call) (*view.Page, error) {
	return c.decide("refuse", "The call is refused.", func(key string, _ func(string) string) tool.Decision {
		return tool.Refuse(key, "")
	})
}

// answer gives a suspended call the result that was typed.
func answer(c *call) (*view.Page, error) {
	return c.decide("answer", "The call has its answer.", func(key string, form func(string) string) tool.Decision {
		return tool.AnswerWith(key, state.JSONText(form("text")))
	})
}

// handlerNotice says who handles a message that was accepted.
func (c *call) handlerNotice() string {
	if c.h.handles() {
		return "This process goes on with it as soon as it can."
	}
	return "This process handles no messages. Another one that does goes on with it, within its TTL."
}

// message finds the dead letter or the waiting message that a form names. It
// reads the store.
func (c *call) message(tag string) (msg workspace.Message, running bool, err error) {
	v, err := c.h.manager.View(c.ctx(), c.user)
	if err != nil {
		return msg, false, err
	}
	for _, d := range v.DeadLetters {
		if c.h.src.Tag(d.Message.ID) == tag {
			return d.Message, v.Run != nil, nil
		}
	}
	for _, m := range v.Queue {
		if c.h.src.Tag(m.ID) == tag {
			return m, v.Run != nil, nil
		}
	}
	return msg, false, errNoMessage
}

// retry handles a dead letter again.
func retry(c *call) (*view.Page, error) {
	form, err := c.form()
	if err != nil {
		return nil, err
	}
	msg, running, err := c.message(form("message"))
	if err == nil {
		err = c.h.manager.Retry(c.ctx(), c.user, msg.ID)
	}
	then := c.handlerNotice()
	if running {
		then = "The run that is under way ends first."
	}
	return c.finish("retry", err, "The message is at the end of the queue, with no attempts counted.", then)
}

// discard drops a dead letter or a waiting message.
func discard(c *call) (*view.Page, error) {
	form, err := c.form()
	if err != nil {
		return nil, err
	}
	msg, _, err := c.message(form("message"))
	if err == nil {
		err = c.h.manager.Discard(c.ctx(), c.user, msg.ID)
	}
	return c.finish("discard", err, "The message was dropped.",
		"Those that wait for it are told that it was not handled. If it is sent again, it is a duplicate.")
}

// underWay returns the run that a form names, if it is under way.
func (c *call) underWay(tag string) (*workspace.RunInfo, error) {
	s, err := c.h.manager.Summary(c.ctx(), c.user)
	if err != nil {
		return nil, err
	}
	if s.Run == nil || c.h.src.Tag(s.Run.ID) != tag {
		return nil, errNoRun
	}
	return s.Run, nil
}

// cancel ends a run, whoever holds it.
func cancel(c *call) (*view.Page, error) {
	form, err := c.form()
	if err != nil {
		return nil, err
	}
	run, err := c.underWay(form("run"))
	var then string
	if err == nil {
		then = c.holderNotice(run)
		err = c.h.manager.Cancel(c.ctx(), c.user, run.ID, cmp.Or(form("reason"), "cancelled by "+c.actor()))
	}
	return c.finish("cancel", err, "The run has ended.", then)
}

func reset(c *call) (*view.Page, error) {
	return c.remove("reset", "The workspace is empty.", func() error {
		_, err := c.h.manager.Reset(c.ctx(), c.user)
		return err
	})
}

func remove(c *call) (*view.Page, error) {
	return c.remove("delete", "The workspace was deleted.", func() error { return c.h.manager.Delete(c.ctx(), c.user) })
}

// remove empties or deletes a workspace if the form carries its user id.
func (c *call) remove(action, did string, do func() error) (*view.Page, error) {
	form, err := c.form()
	if err != nil {
		return nil, err
	}
	if form("confirm") != c.user {
		return c.askRemoval(action, true)
	}
	s, err := c.h.src.Summary(c.ctx(), c.user)
	if status, _ := view.Explain(err); err == nil || status == http.StatusInternalServerError {
		err = do()
		c.h.src.Forget(c.user)
	}
	return c.finish(action, err, did, c.holderNotice(s.Run))
}

// holderNotice says when the holder of a run notices that the run has ended.
func (c *call) holderNotice(r *workspace.RunInfo) string {
	switch {
	case r == nil:
		return ""
	case slices.ContainsFunc(c.h.manager.Held(), func(held workspace.RunInfo) bool { return held.ID == r.ID }):
		return "This process holds the run; its context ends."
	}
	return "The process that holds the run notices it when it renews its lease, within about " +
		strconv.Itoa(1+int(r.TTL.Seconds()/3)) + " s. Until then it cannot write any more."
}

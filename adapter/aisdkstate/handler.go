package aisdkstate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/pagehttp/chat"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
)

// Options are those of package statehttp. Titles is not used.
type Options = statehttp.Options

// Handler is an http.Handler. It is safe for concurrent use.
type Handler struct {
	chats *chat.Handler
	mux   *http.ServeMux
}

// New returns a Handler for the workspaces of a Manager, which needs an Options.Run.
// It returns an error if the Options have no Who, or an invalid TrustedOrigin.
func New(m *workspace.Manager, opts *Options) (*Handler, error) {
	chats, err := chat.New("aisdkstate", "GET, POST", m, opts)
	if err != nil {
		return nil, err
	}
	h := &Handler{chats, http.NewServeMux()}
	h.handle("POST /{$}", (*call).chat)
	h.handle("GET /{id}", (*call).load)
	h.handle("GET /{id}/stream", (*call).resume)
	h.handle("POST /{id}/stop", (*call).stop)
	h.handle("POST /{id}/fields", (*call).edit)
	return h, nil
}

// ServeHTTP answers a request. A client that goes away ends nothing but the stream.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.chats.Admit(w, r) {
		h.mux.ServeHTTP(w, r)
	}
}

// call is a request.
type call struct {
	*chat.Request
	body []byte // of a POST
	in   input  // of one without a chat in the address
}

// input is what useChat sends.
type input struct {
	ID        string     `json:"id"`
	Trigger   string     `json:"trigger"`
	MessageID string     `json:"messageId"`
	Messages  []*message `json:"messages"`
}

// about returns the message that a request is about: the answer that goes on with a
// decision, also an earlier one, or what the person has said last.
func (in *input) about() *message {
	last := in.Messages[len(in.Messages)-1]
	for _, m := range in.Messages {
		if m.ID == in.MessageID && m.Role == "assistant" && in.Trigger != "regenerate-message" {
			last = m
		}
	}
	return last
}

// handle adds a route. The name of the chat may be in the body.
func (h *Handler) handle(pattern string, do func(*call) error) {
	h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		c := &call{}
		read := func(body []byte) (string, error) {
			c.body = body
			if id := r.PathValue("id"); id != "" {
				return id, nil
			}
			if json.Unmarshal(body, &c.in) != nil || slices.Contains(c.in.Messages, nil) {
				return "", errors.New("the body is not that of useChat")
			}
			return c.in.ID, nil
		}
		h.chats.Answer(w, r, read, func(req *chat.Request) error {
			c.Request = req
			return do(c)
		})
	})
}

// readNewest returns the newest branch of the chat as a page that may be read.
func (c *call) readNewest() (thread string, p *page.Page, err error) {
	if err = c.May(statehttp.ActionRead); err != nil {
		return "", nil, err
	}
	if thread, err = c.Newest(); err == nil {
		p, err = c.Pages.Read(c.R.Context(), thread)
	}
	return thread, p, err
}

// load answers with the messages of the chat, without the answer that is being made.
func (c *call) load() error {
	_, p, err := c.readNewest()
	if err != nil {
		return err
	}
	shown := []*message{}
	runs, ok := chat.Running(p)
	for _, m := range messagesOf(c.Chat, p) {
		if !ok || m.ID != answerID(c.Chat, p.Thread, questionOf(runs)) {
			shown = append(shown, m)
		}
	}
	c.W.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(c.W).Encode(map[string]any{"messages": shown, "state": p.Fields})
}

// questionOf returns the question that a turn is about.
func questionOf(t page.Turn) string { return cmp.Or(t.Of, t.ID) }

// resume streams the answer that is being made.
func (c *call) resume() error {
	thread, p, err := c.readNewest()
	if err != nil {
		return err
	}
	runs, ok := chat.Running(p)
	if !ok {
		c.W.WriteHeader(http.StatusNoContent)
		return nil
	}
	return c.stream(thread, questionOf(runs), runs.ID, nil)
}

func (c *call) stream(thread, turn, target string, has *message) error {
	out, ok := c.Begin(c.W, c.R)
	if !ok {
		return nil
	}
	defer out.End()
	s := &stream{call: c, out: out, thread: thread, turn: turn, target: target, sent: map[string]part{}}
	s.serve(has)
	return nil
}

// stop ends the run of the chat.
func (c *call) stop() error {
	if err := c.May(statehttp.ActionStop); err != nil {
		return err
	}
	thread, err := c.Newest()
	if err == nil {
		err = c.Pages.Stop(context.WithoutCancel(c.R.Context()), thread, "")
	}
	if err == nil {
		c.W.WriteHeader(http.StatusNoContent)
	}
	return err
}

// edit gives fields new values, in the branch that is loaded.
func (c *call) edit() error {
	if err := c.May(statehttp.ActionEdit); err != nil {
		return err
	}
	var fields map[string]state.JSON
	if err := json.Unmarshal(c.body, &fields); err != nil {
		return fmt.Errorf("aisdkstate: %w: want an object with the values of fields", workspace.ErrInvalid)
	}
	thread, err := c.Newest()
	if err == nil {
		_, err = c.Pages.Send(context.WithoutCancel(c.R.Context()), thread, page.Input{Fields: fields})
	}
	if err == nil {
		c.W.WriteHeader(http.StatusNoContent)
	}
	return err
}

// chat hands over what a person has said or decided, and streams the answer.
func (c *call) chat() error {
	if len(c.in.Messages) == 0 || c.Chat == "" {
		return fmt.Errorf("aisdkstate: %w: want an id and messages", workspace.ErrInvalid)
	}
	last := c.in.about()
	thread, err := c.find()
	if err != nil {
		return err
	}
	before, err := c.Pages.Read(c.R.Context(), thread)
	if err != nil {
		return err
	}
	in, err := c.read(last, before)
	if err != nil {
		return err
	}
	if err := errors.Join(c.May(statehttp.ActionRead), c.MaySend(in)); err != nil {
		return err
	}
	turn, has := in.ID, (*message)(nil)
	if last.Role == "assistant" && in.Replaces == "" { // it goes on
		for _, m := range messagesOf(c.Chat, before) {
			if m.ID == last.ID {
				has = m.asShown(last)
			}
		}
		turn, _ = chat.CutBranch(strings.TrimPrefix(last.ID, "answer-"))
	}
	if in.Content == nil && in.Replaces == "" && len(in.Decisions) == 0 { // others have decided
		runs, _ := chat.Running(before)
		return c.stream(thread, turn, runs.ID, has)
	}
	out, err := c.Pages.Send(context.WithoutCancel(c.R.Context()), thread, in)
	if err != nil {
		return err
	}
	return c.stream(out.Thread, turn, out.ID, has)
}

// find returns the thread of the branch that the client shows, which the ids of answers
// name.
func (c *call) find() (thread string, err error) {
	if c.in.Trigger == "regenerate-message" && c.in.MessageID == "" { // the client has dropped the answer that names the branch
		return c.Newest()
	}
	branch := ""
	for _, m := range append(c.in.Messages, &message{ID: c.in.MessageID, Role: "assistant"}) {
		if m.Role == "assistant" && strings.HasPrefix(m.ID, "answer-") {
			_, branch = chat.CutBranch(m.ID)
		}
	}
	return c.Thread(branch), nil
}

// read returns what a request says: the last message if it is a person's, and all
// decisions about calls that wait.
func (c *call) read(last *message, now *page.Page) (in page.Input, err error) {
	known := false
	for _, item := range now.Items {
		known = known || item.ID == last.ID
	}
	if last.Role == "user" {
		var parts []page.Part
		for _, p := range last.Parts {
			switch p.Type {
			case "text":
				parts = append(parts, page.Part{Kind: page.Text, Text: p.Text})
			case "file":
				parts = append(parts, page.Part{Kind: page.MediaPart, Media: &page.Media{Type: p.MediaType, URL: p.URL, Name: p.Filename}})
			}
		}
		in.ID = last.ID
		if in.Content, err = c.Pages.Content(parts...); err != nil {
			return in, err
		}
		if known && (c.in.Trigger == "regenerate-message" || c.in.MessageID == last.ID) {
			in.Replaces = last.ID
			if c.in.Trigger == "regenerate-message" {
				in.Content = nil
				in.ID = chat.ID(in.ID, now.Version+" "+c.in.MessageID)
			}
		}
	}
	in.Decisions = c.decisions(now)
	if in.Content == nil && in.Replaces == "" {
		in.ID = chat.ID("decision", string(rawOf(in.Decisions)))
	}
	return in, nil
}

// decisions returns what the messages of the client decide about calls that wait.
// Those about calls that others have decided are left out.
func (c *call) decisions(now *page.Page) (list []tool.Decision) {
	waiting := map[string]*page.Call{}
	for item, p := range chat.Waiting(now) {
		waiting[keyOf(item, p)] = p.Call
	}
	for _, m := range c.in.Messages {
		for _, p := range m.Parts {
			call := waiting[p.CallID]
			switch {
			case call == nil:
			case call.State == page.CallClient && p.State == "output-available":
				list = append(list, tool.AnswerWith(call.Key, state.JSON(p.Output)))
			case call.State == page.CallClient && p.State == "output-error":
				answer := tool.AnswerWith(call.Key, state.JSONText(p.ErrorText))
				answer.Failed = true
				list = append(list, answer)
			case p.State != "approval-responded" || p.Approval == nil || p.Approval.Approved == nil || p.Approval.ID != call.Key:
			case *p.Approval.Approved:
				list = append(list, tool.Approve(call.Key))
			default:
				list = append(list, tool.Refuse(call.Key, p.Approval.Reason))
			}
		}
	}
	return list
}

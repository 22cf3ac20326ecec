package aisdkstate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/pagehttp"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
)

// Options are those of package statehttp. Write and Titles are not used.
type Options = statehttp.Options

// Handler is an http.Handler. It is safe for concurrent use.
type Handler struct {
	m     *workspace.Manager
	opts  Options
	guard *pagehttp.Guard
	mux   *http.ServeMux
}

// New returns a Handler for the workspaces of a Manager, which needs an Options.Run.
// It returns an error if the Options have no Who, or an invalid TrustedOrigin.
func New(m *workspace.Manager, opts *Options) (*Handler, error) {
	if m == nil || opts == nil || opts.Who == nil {
		return nil, errors.New("aisdkstate: New needs a Manager, and Options with Who")
	}
	h := &Handler{m: m, opts: *opts, mux: http.NewServeMux()}
	if h.opts.May == nil {
		h.opts.May = statehttp.MayNotDelete
	}
	var err error
	h.guard, err = pagehttp.NewGuard(pagehttp.Config{
		Package: "aisdkstate", Methods: "GET, POST", Trusted: opts.TrustedOrigins, Hosts: opts.Hosts, MaxBody: opts.MaxBody, Logger: opts.Logger, Status: statehttp.Status,
	})
	if err != nil {
		return nil, err
	}
	h.mux.HandleFunc("POST /{$}", func(w http.ResponseWriter, r *http.Request) { h.answer(w, r, (*call).chat) })
	h.mux.HandleFunc("GET /{id}", func(w http.ResponseWriter, r *http.Request) { h.answer(w, r, (*call).load) })
	h.mux.HandleFunc("GET /{id}/stream", func(w http.ResponseWriter, r *http.Request) { h.answer(w, r, (*call).resume) })
	h.mux.HandleFunc("POST /{id}/stop", func(w http.ResponseWriter, r *http.Request) { h.answer(w, r, (*call).stop) })
	return h, nil
}

// ServeHTTP answers a request. A client that goes away ends nothing but the stream.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.guard.Admit(w, r) {
		h.mux.ServeHTTP(w, r)
	}
}

// call is a request.
type call struct {
	*Handler
	w     http.ResponseWriter
	r     *http.Request
	ctx   context.Context
	in    input
	who   statehttp.Who
	pages *page.Source
}

// input is what useChat sends.
type input struct {
	ID        string     `json:"id"`
	Trigger   string     `json:"trigger"`
	MessageID string     `json:"messageId"`
	Messages  []*message `json:"messages"`
}

// answer answers a request of somebody who is known. The name of the chat may be in
// the body.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, do func(*call) error) {
	c := &call{Handler: h, w: w, r: r, ctx: r.Context(), in: input{ID: r.PathValue("id")}}
	who, err := h.opts.Who(r, c.in.ID)
	leave, ok := h.guard.Enter(w, who.User, who.Agent, err)
	if !ok {
		return
	}
	defer leave()
	if r.Method == http.MethodPost {
		data, ok := h.guard.Body(w, r)
		if !ok {
			return
		}
		if err := json.Unmarshal(data, &c.in); err != nil {
			http.Error(w, "the body is not that of useChat", http.StatusBadRequest)
			return
		}
		c.in.ID = cmp.Or(r.PathValue("id"), c.in.ID)
		if who, err = h.opts.Who(r, c.in.ID); !h.guard.Knows(w, who.User, who.Agent, err) {
			return
		}
	}
	c.who, c.pages = who, &page.Source{Manager: h.m, Agent: who.Agent, Errors: h.opts.Errors, Files: h.opts.Files}
	if err := do(c); err != nil {
		status, text := h.guard.Explain(w, r, err)
		http.Error(w, text, status)
	}
}

func (c *call) may(a statehttp.Action) error { return c.opts.May(c.r, c.who, a, c.in.ID) }

// threadOf returns the thread of a chat that an id of an answer names, or that of the
// chat itself.
func (c *call) threadOf(answer string) string {
	return workspace.Thread(c.who.User, c.in.ID+branchOf.FindString(answer))
}

// readNewest returns the newest branch of the chat as a page that may be read.
func (c *call) readNewest() (thread string, p *page.Page, err error) {
	if err = c.may(statehttp.ActionRead); err != nil {
		return "", nil, err
	}
	if thread, err = c.pages.Newest(c.ctx, c.threadOf("")); err == nil {
		p, err = c.pages.Read(c.ctx, thread)
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
	turn, _, runs := running(p)
	for _, m := range messagesOf(c.in.ID, p) {
		if !runs || m.ID != answerID(c.in.ID, p.Thread, &page.Item{Turn: turn}) {
			shown = append(shown, m)
		}
	}
	c.w.Header().Set("Content-Type", "application/json")
	_, err = c.w.Write(rawOf(map[string]any{"messages": shown, "state": p.Fields}))
	return err
}

// running returns the question and the message whose run is under way.
func running(p *page.Page) (turn, message string, ok bool) {
	for _, t := range p.Turns {
		if t.State == page.TurnRunning {
			if t.Of != "" {
				return t.Of, t.ID, true
			}
			return t.ID, t.ID, true
		}
	}
	return "", "", false
}

// resume streams the answer that is being made.
func (c *call) resume() error {
	thread, p, err := c.readNewest()
	if err != nil {
		return err
	}
	turn, target, ok := running(p)
	if !ok {
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return c.stream(thread, turn, target, nil)
}

func (c *call) stream(thread, turn, target string, has *message) error {
	end, ok := c.guard.Begin(c.w)
	if !ok {
		return nil
	}
	defer end()
	s := newStream(c.w, c.pages, c.in.ID, thread)
	s.turn, s.target = turn, target
	s.serve(c.ctx, has)
	return nil
}

// stop ends the run of the chat.
func (c *call) stop() error {
	if err := c.may(statehttp.ActionStop); err != nil {
		return err
	}
	thread, err := c.pages.Newest(c.ctx, c.threadOf(""))
	if err == nil {
		err = c.pages.Stop(context.WithoutCancel(c.ctx), thread, "")
	}
	if err == nil {
		c.w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// chat hands over what a person has said or decided, and streams the answer.
func (c *call) chat() error {
	if len(c.in.Messages) == 0 || c.in.ID == "" {
		return fmt.Errorf("aisdkstate: %w: want an id and messages", workspace.ErrInvalid)
	}
	last := c.in.Messages[len(c.in.Messages)-1]
	thread := c.threadOf("")
	for _, m := range append(c.in.Messages, &message{ID: c.in.MessageID, Role: "assistant"}) {
		if m.Role == "assistant" && strings.HasPrefix(m.ID, "answer-") {
			thread = c.threadOf(m.ID)
		}
	}
	if c.in.Trigger == "regenerate-message" && c.in.MessageID == "" { // the client has dropped the answer that names the branch
		newest, err := c.pages.Newest(c.ctx, c.threadOf(""))
		if err != nil {
			return err
		}
		thread = newest
	}
	before, err := c.pages.Read(c.ctx, thread)
	if err != nil {
		return err
	}
	in, err := c.read(last, before)
	if err != nil {
		return err
	}
	for action, does := range map[statehttp.Action]bool{
		statehttp.ActionRead: true, statehttp.ActionSend: in.Content != nil || in.Replaces != "", statehttp.ActionDecide: len(in.Decisions) > 0,
	} {
		if does {
			err = errors.Join(err, c.may(action))
		}
	}
	if err != nil {
		return err
	}
	turn, has := in.ID, (*message)(nil)
	if last.Role == "assistant" && in.Replaces == "" { // it goes on
		for _, m := range messagesOf(c.in.ID, before) {
			if m.ID == last.ID {
				has = m.asShown(last)
			}
		}
		turn = strings.TrimSuffix(strings.TrimPrefix(last.ID, "answer-"), branchOf.FindString(last.ID))
	}
	if in.Content == nil && in.Replaces == "" && len(in.Decisions) == 0 { // others have decided
		_, target, _ := running(before)
		return c.stream(thread, turn, target, has)
	}
	out, err := c.pages.Send(context.WithoutCancel(c.ctx), thread, in)
	if err != nil {
		return err
	}
	return c.stream(out.Thread, turn, out.ID, has)
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
		if in.Content, err = c.pages.Content(parts...); err != nil {
			return in, err
		}
		if known && (c.in.Trigger == "regenerate-message" || c.in.MessageID == last.ID) {
			in.Replaces = last.ID
			if c.in.Trigger == "regenerate-message" {
				in.Content = nil
				sum := sha256.Sum256([]byte(now.Version + " " + c.in.MessageID))
				in.ID += "-" + base64.RawURLEncoding.EncodeToString(sum[:6])
			}
		}
	}
	in.Decisions = c.decisions(now)
	if in.Content == nil && in.Replaces == "" {
		sum := sha256.Sum256(rawOf(in.Decisions))
		in.ID = "decision-" + base64.RawURLEncoding.EncodeToString(sum[:12])
	}
	return in, nil
}

// decisions returns what the messages of the client decide about calls that wait.
// Those about calls that others have decided are left out.
func (c *call) decisions(now *page.Page) (list []tool.Decision) {
	waiting := map[string]*page.Call{}
	for _, m := range now.Items {
		for _, p := range m.Parts {
			if p.Call != nil && (p.Call.State == page.CallWaiting || p.Call.State == page.CallClient) {
				waiting[m.ID+"."+p.ID] = p.Call
			}
		}
	}
	for _, t := range now.Turns {
		for id, call := range waiting {
			for _, key := range t.Decides {
				if key == call.Key {
					delete(waiting, id)
				}
			}
		}
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

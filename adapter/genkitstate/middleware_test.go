package genkitstate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/genkitstate"
	"github.com/agentstate/state/internal/test/adaptertest"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
)

var (
	approved = &state.Field[bool]{Name: "approved", Read: state.Public}
	log      = &state.Field[[]string]{Name: "log", Read: state.Public, Write: state.Public}
	vault    = &state.Field[string]{Name: "vault", Secret: true, Read: state.Only("chief")}
	team     = state.MustSchema(approved, log, vault, state.Team{"chief": {"clerk"}})
)

// tools are those of a bench. write appends to a field, pay waits for an
// approval, and open needs a field that only the chief may read.
var tools = []*tool.Tool{
	tool.Must(tool.New("write", "Writes a line.", func(_ context.Context, in item) (string, error) {
		if in.Name == "" {
			return "", errors.New("the line is empty")
		}
		return in.Name, nil
	}, tool.ToFunc(log, "", func(line string) ([]string, error) { return []string{line}, nil }))),
	tool.Must(tool.New("pay", "Pays.", func(ctx context.Context, in struct {
		Amount   int  `json:"amount"`
		Approved bool `json:"approved,omitempty"`
	}) (string, error) {
		if !in.Approved {
			return "", tool.Suspend(errors.New("a person has to approve"))
		}
		call, _ := tool.CallOf(ctx)
		return fmt.Sprintf("paid %d as %s", in.Amount, call.ID), nil
	}, tool.From(approved, "approved"))),
	tool.Must(tool.New("open", "Opens the vault.", func(_ context.Context, in struct {
		Code string `json:"code"`
	}) (string, error) {
		return "opened with " + in.Code, nil
	}, tool.From(vault, "code"))),
}

// bench is a model that gives a list of answers, and what it was sent.
type bench struct {
	t       *testing.T
	ctx     context.Context
	g       *genkit.Genkit
	host    *state.State
	st      *state.State // of the agent
	model   ai.Model
	answers []*ai.Message
	sent    []*ai.ModelRequest
	foreign []ai.ToolRef // tools of Genkit
}

func newBench(t *testing.T, answers ...*ai.Message) *bench {
	b := &bench{t: t, ctx: t.Context(), g: genkit.Init(t.Context()), host: state.New(team), answers: answers}
	b.st = b.host.As("clerk")
	b.model = define(b.g, func(_ context.Context, req *ai.ModelRequest) (*ai.Message, error) {
		if len(b.sent) == len(b.answers) {
			return nil, errors.New("the model has no answer left")
		}
		sent := *req
		b.sent = append(b.sent, &sent)
		return b.answers[len(b.sent)-1], nil
	})
	return b
}

func (b *bench) try(opts *genkitstate.Options, more ...ai.GenerateOption) (*ai.ModelResponse, error) {
	return genkit.Generate(state.NewContext(b.ctx, b.st), b.g, append(more,
		ai.WithModel(b.model),
		ai.WithTools(append(genkitstate.Tools(tools...), b.foreign...)...),
		ai.WithMiddleware(genkitstate.Middleware(tools, opts)))...)
}

func (b *bench) generate(more ...ai.GenerateOption) *ai.ModelResponse {
	b.t.Helper()
	resp, err := b.try(nil, more...)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp
}

// says compares lines, of which each is a message.
func says(t *testing.T, got []state.Message, want ...string) {
	t.Helper()
	var lines []string
	for _, m := range got {
		switch m := m.(type) {
		case state.TextMessage:
			lines = append(lines, m.Role()+": "+m.Text())
		case state.ToolCallMessage:
			line := "calls:"
			for _, c := range m.Calls() {
				line += " " + c.Name + " " + c.ID
			}
			lines = append(lines, line)
		case state.ToolResultMessage:
			line := "result " + m.Call().ID + ": " + m.Text()
			if m.IsError() {
				line = "error " + m.Call().ID + ": " + m.Text()
			}
			lines = append(lines, line)
		}
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

// prompt returns what the model was sent last.
func (b *bench) prompt() []state.Message {
	b.t.Helper()
	msgs, err := genkitstate.Messages(b.sent[len(b.sent)-1].Messages...)
	must(err)
	if findings := transcript.Check(msgs, transcript.Anthropic); len(findings) > 0 {
		b.t.Errorf("a strict provider refuses the prompt: %v", findings)
	}
	return msgs
}

// An agent is offered the tools that it may use, in one order, without what is
// injected.
func TestToolsThatAnAgentMayUse(t *testing.T) {
	for agent, want := range map[string]string{"clerk": "[pay write]", "chief": "[open pay write]"} {
		for range 5 { // Genkit's order is random
			b := newBench(t, ai.NewModelTextMessage("Hi."))
			b.st = state.New(team).As(agent)
			b.generate(ai.WithPrompt("Hi."))
			names := []string{}
			for _, d := range b.sent[0].Tools {
				names = append(names, d.Name)
				if schema := fmt.Sprint(d.InputSchema); strings.Contains(schema, "approved") || strings.Contains(schema, "code") {
					t.Errorf("schema %s", schema)
				}
				if len(d.OutputSchema) > 0 {
					t.Errorf("schema of the result: %v", d.OutputSchema)
				}
			}
			if got := fmt.Sprint(names); got != want {
				t.Errorf("%s is offered %s, want %s", agent, got, want)
			}
		}
	}
}

// The model reads what is wrong with a call, and goes on.
func TestBadCallsAreAnswered(t *testing.T) {
	b := newBench(t, ai.NewModelMessage(
		request("write", "c1", `{"name":""}`), request("pay", "c2", `{"amount":7,"approved":true}`),
		request("open", "c3", `{}`), request("fly", "c4", `{}`), request("write", "c5", `{"name":"a"}`),
	), ai.NewModelTextMessage("Done."))
	b.generate(ai.WithPrompt("Go."))
	results := b.prompt()[2:]
	for i, want := range []string{"the line is empty", `"approved"`, "access denied", `tool "fly" not found`} {
		r := results[i].(state.ToolResultMessage)
		if !r.IsError() || !strings.Contains(r.Text(), want) {
			t.Errorf("result %d is %q, want an error with %q", i, r.Text(), want)
		}
	}
	says(t, results[4:], "result c5: a")
	if got := log.GetOr(b.st, nil); !slices.Equal(got, []string{"a"}) {
		t.Errorf("log %q", got)
	}
}

// The tools of Genkit are called by Genkit, and each result has the place of its
// call.
func TestToolsOfGenkit(t *testing.T) {
	b := newBench(t, ai.NewModelMessage(
		ai.NewReasoningPart("Hm.", []byte("sig")), ai.NewTextPart("Three calls."),
		request("look", "c1", `{"name":"x"}`), request("write", "c2", `{"name":"a"}`), request("look", "c3", `{"name":"y"}`),
	), ai.NewModelMessage(request("look", "c4", `{"name":"z"}`)), ai.NewModelTextMessage("Done."))
	later := make(chan struct{})
	b.foreign = []ai.ToolRef{ai.NewTool("look", "Looks.", func(_ *ai.ToolContext, in item) (string, error) {
		switch in.Name {
		case "x":
			<-later
		case "y":
			close(later)
		}
		return "seen " + in.Name, nil
	})}
	must(state.Messages.Set(b.st, []state.Message{state.UserText("Go.")}))
	resp := b.generate(ai.WithPrompt("Go."))

	want := []string{
		"user: Go.", "assistant: Three calls.", "calls: look c1 write c2 look c3",
		"result c1: seen x", "result c2: a", "result c3: seen y",
		"calls: look c4", "result c4: seen z",
	}
	says(t, b.prompt(), want...)
	want = append(want, "assistant: Done.")
	history, err := genkitstate.Messages(resp.History()...)
	must(err)
	says(t, history, want...)
	says(t, state.Messages.GetOr(b.st, nil), want...)
	if got := b.sent[1].Messages[1].Content[0].Metadata["signature"]; string(got.([]byte)) != "sig" {
		t.Errorf("signature %v", got)
	}
}

// suspended is a conversation in which pay waits and the other calls were made.
func suspended(t *testing.T) (*bench, *ai.ModelResponse) {
	t.Helper()
	b := newBench(t, ai.NewModelMessage(
		request("pay", "c1", `{"amount":7}`), request("look", "c2", `{"name":"x"}`), request("write", "c3", `{"name":"a"}`),
	), ai.NewModelTextMessage("Done."))
	b.foreign = []ai.ToolRef{ai.NewTool("look", "Looks.", func(_ *ai.ToolContext, in item) (string, error) {
		return "seen " + in.Name, nil
	})}
	must(state.Messages.Set(b.st, []state.Message{state.UserText("Go.")}))
	resp := b.generate(ai.WithPrompt("Go."))
	if calls := resp.Interrupts(); resp.FinishReason != ai.FinishReasonInterrupted || len(calls) != 1 || calls[0].ToolRequest.Ref != "c1" {
		t.Fatalf("the response is %s, with the interrupts %v", resp.FinishReason, calls)
	}
	return b, resp
}

// A suspended call is an interrupt of Genkit, and goes on as Genkit's do.
func TestSuspendedCallIsAnswered(t *testing.T) {
	b, resp := suspended(t)
	says(t, state.Messages.GetOr(b.st, nil), "user: Go.", "calls: pay c1 look c2 write c3", "result c3: a")
	decision := ai.NewResponseForToolRequest(resp.Interrupts()[0], "paid by hand")
	if final := b.generate(ai.WithMessages(resp.History()...), ai.WithToolResponses(decision)); final.Text() != "Done." {
		t.Errorf("the response is %q", final.Text())
	}
	b.prompt()
	says(t, state.Messages.GetOr(b.st, nil), "user: Go.", "calls: pay c1 look c2 write c3",
		"result c1: paid by hand", "result c2: seen x", "result c3: a", "assistant: Done.")
}

func TestSuspendedCallIsMadeAgain(t *testing.T) {
	b, resp := suspended(t)
	pay := genkitstate.Tools(tools...)[1].(ai.Tool)
	again := func() (*ai.ModelResponse, error) {
		return b.try(nil, ai.WithMessages(resp.History()...), ai.WithToolRestarts(pay.Restart(resp.Interrupts()[0], nil)))
	}
	var err error
	if resp, err = again(); err != nil || len(resp.Interrupts()) != 1 {
		t.Fatalf("without the approval, the response is %v, %v", resp, err)
	}
	must(approved.Set(b.host, true))
	if _, err := again(); err != nil {
		t.Fatal(err)
	}
	b.prompt()
	says(t, state.Messages.GetOr(b.st, nil), "user: Go.", "calls: pay c1 look c2 write c3",
		"result c1: paid 7 as c1", "result c2: seen x", "result c3: a", "assistant: Done.")
}

// Two identical suspended calls that are restarted are two calls: each has its
// own id.
func TestIdenticalSuspendedCallsAreMadeWithTheirIDs(t *testing.T) {
	b := newBench(t, ai.NewModelMessage(
		request("pay", "c1", `{"amount":7}`), request("pay", "c2", `{"amount":7}`), request("pay", "c3", `{"amount":7}`),
	), ai.NewModelTextMessage("Done."))
	must(state.Messages.Set(b.st, []state.Message{state.UserText("Go.")}))
	resp := b.generate(ai.WithPrompt("Go."))
	pay := genkitstate.Tools(tools...)[1].(ai.Tool)
	must(approved.Set(b.host, true))
	var again []*ai.Part
	for _, in := range resp.Interrupts() {
		again = append(again, pay.Restart(in, nil))
	}
	again[2] = pay.Restart(resp.Interrupts()[2], &ai.RestartOptions{ReplaceInput: map[string]any{"amount": 8}})
	b.generate(ai.WithMessages(resp.History()...), ai.WithToolRestarts(again...))
	b.prompt()
	says(t, state.Messages.GetOr(b.st, nil), "user: Go.", "calls: pay c1 pay c2 pay c3",
		"result c1: paid 7 as c1", "result c2: paid 7 as c2", `result c3: A person has changed the arguments to {"amount":8}. The result: "paid 8 as c3"`, "assistant: Done.")
}

// What the user says, outside of a workspace, is recorded once, also if the
// model is asked again after it has failed. What Genkit adds is not.
func TestUserMessagesAreRecorded(t *testing.T) {
	b := newBench(t)
	if _, err := b.try(nil, ai.WithPrompt("Go.")); err == nil {
		t.Fatal("the model has an answer")
	}
	b.answers = []*ai.Message{ai.NewModelTextMessage(`{"name":"done"}`), ai.NewModelTextMessage("Again.")}
	resp := b.generate(ai.WithPrompt("Go."), ai.WithOutputType(item{}))
	b.generate(ai.WithMessages(resp.History()...), ai.WithPrompt("Go."))
	says(t, state.Messages.GetOr(b.st, nil), "user: Go.", `assistant: {"name":"done"}`, "user: Go.", "assistant: Again.")
}

// A conversation of the state that ends with open calls goes on with them, as
// after the death of a process.
func TestOpenCallsAreMadeFirst(t *testing.T) {
	b, _ := suspended(t)
	must(approved.Set(b.host, true))
	conversation, err := genkitstate.From(state.Messages.GetOr(b.st, nil)...)
	must(err)
	if final := b.generate(ai.WithMessages(conversation...)); final.Text() != "Done." {
		t.Errorf("the response is %q", final.Text())
	}
	b.prompt()
	says(t, state.Messages.GetOr(b.st, nil), "user: Go.", "calls: pay c1 look c2 write c3",
		"result c1: paid 7 as c1", "result c2: seen x", "result c3: a", "assistant: Done.")
}

// A tool of Genkit may interrupt beside calls that have been made.
func TestInterruptOfGenkit(t *testing.T) {
	b := newBench(t, ai.NewModelMessage(
		ai.NewTextPart("Two."), request("write", "c1", `{"name":"a"}`), request("ask", "c2", `{"name":"x"}`),
	), ai.NewModelTextMessage("Done."))
	ask := ai.NewTool("ask", "Asks.", func(ctx *ai.ToolContext, in item) (string, error) {
		return "", ctx.Interrupt(nil)
	})
	b.foreign = []ai.ToolRef{ask}
	must(state.Messages.Set(b.st, []state.Message{state.UserText("Go.")}))
	resp := b.generate(ai.WithPrompt("Go."))
	answer, err := ask.RespondWith(resp.Interrupts()[0], "yes")
	must(err)
	b.generate(ai.WithMessages(resp.History()...), ai.WithToolResponses(answer))
	b.prompt()
	says(t, state.Messages.GetOr(b.st, nil), "user: Go.", "assistant: Two.", "calls: write c1 ask c2",
		"result c1: a", "result c2: yes", "assistant: Done.")
	if got := log.GetOr(b.st, nil); !slices.Equal(got, []string{"a"}) {
		t.Errorf("log %q", got)
	}
}

// A response is parsed by Genkit at the end, and calls on the way are not.
func TestTypedOutput(t *testing.T) {
	b := newBench(t, ai.NewModelMessage(ai.NewTextPart("I write."), request("write", "c1", `{"name":"a"}`), request("look", "c2", `{"name":"x"}`)),
		ai.NewModelTextMessage(`{"name":"done"}`))
	b.foreign = []ai.ToolRef{ai.NewTool("look", "Looks.", func(*ai.ToolContext, item) (string, error) { return "seen", nil })}
	resp := b.generate(ai.WithPrompt("Go."), ai.WithOutputType(item{}))
	var out item
	if err := resp.Output(&out); err != nil || out.Name != "done" {
		t.Errorf("output %v, %v", out, err)
	}
	b.prompt()
}

// The model is sent what the window shows, and the response has everything.
func TestWindow(t *testing.T) {
	var answers []*ai.Message
	want := []string{"user: Go."}
	for i := range 8 {
		id := fmt.Sprint("c", i)
		answers = append(answers, ai.NewModelMessage(request("write", id, `{"name":"a"}`)))
		want = append(want, "calls: write "+id, "result "+id+": a")
	}
	b := newBench(t, append(answers, ai.NewModelTextMessage("Done."))...)
	resp, err := b.try(&genkitstate.Options{Window: adaptertest.Window, MaxTurns: 8}, ai.WithSystem("Write."), ai.WithPrompt("Go."))
	must(err)
	says(t, b.prompt(), append([]string{"system: Write.", "user: Go."}, want[len(want)-4:]...)...)
	history, err := genkitstate.Messages(resp.History()...)
	must(err)
	says(t, history, append(append([]string{"system: Write."}, want...), "assistant: Done.")...)
}

// What Genkit adds to a message of the user is sent, and not what a window is found
// by.
func TestWindowWithOutput(t *testing.T) {
	var answers []*ai.Message
	for i := range 8 {
		answers = append(answers, ai.NewModelMessage(request("write", fmt.Sprint("c", i), `{"name":"a"}`)))
	}
	b := newBench(t, append(answers, ai.NewModelTextMessage(`{"name":"done"}`))...)
	_, err := b.try(&genkitstate.Options{Window: adaptertest.Window, MaxTurns: 8, Context: func(context.Context, *state.State) string { return "now" }},
		ai.WithPrompt("Go."), ai.WithOutputType(item{}), ai.WithDocs(ai.DocumentFromText("the manual", nil)))
	must(err)
	prompt := b.prompt()
	behind := string(prompt[len(prompt)-1].Raw())
	if len(prompt) > 7 || !strings.Contains(behind, `<context>\nnow\n</context>`) || !strings.Contains(behind, "the manual") {
		t.Errorf("the prompt is %v", prompt)
	}
	if first := string(prompt[0].Raw()); strings.Count(first, "Go.") != 1 || strings.Count(first, "JSON") != 1 {
		t.Errorf("the user says %s", first)
	}
	if got := string(state.Messages.GetOr(b.st, nil)[0].Raw()); strings.Contains(got, "JSON") {
		t.Errorf("recorded: %s", got)
	}
}

// A step too many is an error, as in Genkit. Calls without ids get some.
func TestMaxTurns(t *testing.T) {
	var answers []*ai.Message
	for range 6 {
		answers = append(answers, ai.NewModelMessage(request("write", "", `{"name":"a"}`), request("write", "", `{"name":"b"}`)))
	}
	b := newBench(t, answers...)
	if _, err := b.try(nil, ai.WithPrompt("Go.")); err == nil || !strings.Contains(err.Error(), "exceeded maximum tool call iterations (5)") {
		t.Errorf("error %v", err)
	}
	if got := log.GetOr(b.st, nil); !slices.Equal(got, slices.Repeat([]string{"a", "b"}, 5)) {
		t.Errorf("log %q", got)
	}
	ids := map[string]bool{}
	for _, m := range state.Messages.GetOr(b.st, nil) {
		if calls, ok := m.(state.ToolCallMessage); ok {
			ids[calls.Calls()[0].ID], ids[calls.Calls()[1].ID] = true, true
		}
	}
	if len(ids) != 12 || ids[""] {
		t.Errorf("the calls have %d ids", len(ids))
	}
}

func TestStreamHasResults(t *testing.T) {
	b := newBench(t, ai.NewModelMessage(request("write", "c1", `{"name":"a"}`)), ai.NewModelTextMessage("Done."))
	var chunks []string
	b.generate(ai.WithPrompt("Go."), ai.WithStreaming(func(_ context.Context, c *ai.ModelResponseChunk) error {
		for _, p := range c.Content {
			chunks = append(chunks, fmt.Sprint(c.Role, c.Index, p.ToolResponse.Output))
		}
		return nil
	}))
	if !slices.Equal(chunks, []string{"tool1a"}) {
		t.Errorf("chunks %q", chunks)
	}
}

// A step of Genkit's own tools alone does not concern this middleware: it does not count,
// no chunk of the stream is empty, and its tools are offered.
func TestStepsOfGenkitDoNotCount(t *testing.T) {
	b := newBench(t, ai.NewModelMessage(request("look", "c1", `{"name":"x"}`)), ai.NewModelMessage(request("look", "c2", `{"name":"y"}`)),
		ai.NewModelMessage(request("write", "c3", `{"name":"a"}`)), ai.NewModelTextMessage("Done."))
	b.foreign = []ai.ToolRef{ai.NewTool("look", "Looks.", func(_ *ai.ToolContext, in item) (string, error) { return "seen " + in.Name, nil })}
	must(state.Messages.Set(b.st, []state.Message{state.UserText("First.")}))
	began := time.Now()
	_, err := b.try(&genkitstate.Options{MaxTurns: 1}, ai.WithMessages(ai.NewUserTextMessage("Look twice.")), ai.WithPrompt("Then write."),
		ai.WithStreaming(func(_ context.Context, c *ai.ModelResponseChunk) error {
			if len(c.Content) == 0 {
				t.Error("a chunk without content")
			}
			return nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	says(t, state.Messages.GetOr(b.st, nil), "user: First.", "user: Look twice.", "user: Then write.", "calls: look c1", "result c1: seen x",
		"calls: look c2", "result c2: seen y", "calls: write c3", "result c3: a", "assistant: Done.")
	var offered []string
	for _, d := range b.sent[0].Tools {
		offered = append(offered, d.Name)
	}
	if !slices.Equal(offered, []string{"look", "pay", "write"}) {
		t.Errorf("the model is offered %q", offered)
	}
	for _, r := range b.st.History().All() {
		if r.StartedAt.Before(began) || r.StartedAt.After(r.CreatedAt) {
			t.Errorf("the model was asked at %v, between %v and %v", r.StartedAt, began, r.CreatedAt)
		}
	}
}

// Middleware around this one may ask again after an error. The results of Genkit's
// tools are recorded once.
func TestMiddlewareAroundTriesAgain(t *testing.T) {
	b := newBench(t, ai.NewModelMessage(request("look", "c1", `{"name":"x"}`), request("write", "c2", `{"name":"a"}`)))
	look := ai.NewTool("look", "Looks.", func(_ *ai.ToolContext, in item) (string, error) { return "seen " + in.Name, nil })
	again := func(next ai.ModelFunc) ai.ModelFunc {
		return func(ctx context.Context, req *ai.ModelRequest, cb ai.ModelStreamCallback) (*ai.ModelResponse, error) {
			resp, err := next(ctx, req, cb)
			if err == nil {
				return resp, nil
			}
			b.answers = append(b.answers, ai.NewModelTextMessage("Done."))
			return next(ctx, req, cb)
		}
	}
	_, err := genkit.Generate(state.NewContext(b.ctx, b.st), b.g, ai.WithPrompt("Go."), ai.WithModel(b.model),
		ai.WithTools(append(genkitstate.Tools(tools...), look)...), ai.WithMiddleware(again, genkitstate.Middleware(tools, nil)))
	if err != nil {
		t.Fatal(err)
	}
	says(t, state.Messages.GetOr(b.st, nil), "user: Go.", "calls: look c1 write c2", "result c1: seen x", "result c2: a", "assistant: Done.")
}

func TestContextWithoutState(t *testing.T) {
	b := newBench(t, ai.NewModelTextMessage("Hi."))
	_, err := genkit.Generate(t.Context(), b.g, ai.WithModel(b.model), ai.WithPrompt("Hi."),
		ai.WithMiddleware(genkitstate.Middleware(tools, nil)))
	if err == nil || !strings.Contains(err.Error(), "no state in the context") {
		t.Errorf("error %v", err)
	}
}

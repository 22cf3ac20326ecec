package statetest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/mistakes"
	"github.com/agentstate/state/internal/test/mutation"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
)

func init() {
	programs = append(programs,
		mistakes.Program{Row: 5, Part: "modelhttp", Name: "tool not offered", Run: offerAnotherTool,
			Words: []string{"calls refund, which the request does not offer: it has look"}},
		mistakes.Program{Row: 6, Part: "modelhttp", Name: "arguments against the schema", Run: offerAnotherSchema,
			Words: []string{"the input of refund is not what the request asks for", `{"amount":129.9}`, `"cents"`}},
		mistakes.Program{Row: 8, Part: "modelhttp", Name: "half a call of a cut stream kept", Run: keepHalfACall,
			Words: []string{`the stream with the call "call_1"`, "broke off"}},
		mistakes.Program{Part: "modelhttp", Name: "body that is no request", Run: postNonsense,
			Words: []string{"a request to OpenAI cannot be read"}},
		mistakes.Program{Part: "modelhttp", Name: "path without a model", Run: postElsewhere,
			Words: []string{"POST /v1/embeddings is no request to a model"}},
	)
	mutants["modelhttp"] = []mutation.Mutant{
		{Name: "any tool may be called", File: "modelhttp.go", Old: "if i < 0 {", New: "if i < 0 {\n\t\t\t\tcontinue\n\t\t\t}\n\t\t\tif i < -1 {"},
		{Name: "any input is accepted", File: "modelhttp.go", Old: "if err := checkInput(r.tools[i].Schema, call.Input); err != nil {", New: "if err := checkInput(\"\", call.Input); err != nil {"},
		{Name: "any body is read", File: "modelhttp.go", Old: "m.errorf(\"statetest: a request to %s cannot be read: %v\", format, err)", New: ""},
		{Name: "any path is accepted", File: "modelhttp.go", Old: "m.errorf(\"statetest: %s %s is no request to a model\", req.Method, req.URL.Path)", New: ""},
		{Name: "streams are never cut", File: "modelstream.go", Old: "if !e.isPiece {", New: "if !e.isPiece || true {"},
	}
}

// postChat sends a request of Chat Completions with a tool, as an SDK would.
func postChat(t *testing.T, m *statetest.Model, path, name, schema string, msgs ...state.Message) string {
	t.Helper()
	body, _, err := provider.OpenAI.EncodeRequest(provider.Request{
		Messages: append([]state.Message{state.UserText("The keyboard is broken.")}, msgs...),
		Tools:    []provider.Tool{{Name: name, Schema: state.JSON(schema)}},
		Settings: `{"model":"m"}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	if schema == "" {
		body = []byte(`{"messages":"none"}`)
	}
	r, err := m.Client().Post("https://model.test"+path, "application/json", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if r.StatusCode == http.StatusOK && !json.Valid(answer) {
		t.Fatalf("not JSON: %s", answer)
	}
	return string(answer)
}

const (
	chatPath   = "/v1/chat/completions"
	withAmount = `{"type":"object","properties":{"amount":{"type":"number"}},"required":["amount"]}`
	withCents  = `{"type":"object","properties":{"cents":{"type":"integer"}},"required":["cents"]}`
)

func offerAnotherTool(t *testing.T, mistake bool) {
	m, name := statetest.NewModel(t, provider.OpenAI, refundCall), "refund"
	if mistake {
		name = "look"
	}
	postChat(t, m, chatPath, name, withAmount)
}

func offerAnotherSchema(t *testing.T, mistake bool) {
	m, schema := statetest.NewModel(t, provider.OpenAI, refundCall), withAmount
	if mistake {
		schema = withCents
	}
	postChat(t, m, chatPath, "refund", schema)
}

// keepHalfACall is a program that asks again if a stream breaks off, or else
// keeps what has come.
func keepHalfACall(t *testing.T, mistake bool) {
	m := statetest.NewModel(t, provider.Anthropic, refundCall.Cut(1), statetest.Say("Refunded.").Times(-1))
	msgs := []state.Message{state.UserText("The keyboard is broken.")}
	result, err := m.Next(t.Context(), "billing", msgs)
	if err == nil {
		t.Fatal("the stream is whole")
	}
	if mistake {
		msgs = append(msgs, result.Output...)
		for _, message := range result.Output {
			if message, ok := message.(state.ToolCallMessage); ok {
				msgs = append(msgs, state.ToolResult(message.Calls()[0], `{"ok":true}`))
			}
		}
	}
	_, _ = m.Next(t.Context(), "billing", msgs)
}

func postNonsense(t *testing.T, mistake bool) {
	m, schema := statetest.NewModel(t, provider.OpenAI, refundCall.Times(-1)), withAmount
	if mistake {
		schema = ""
	}
	postChat(t, m, chatPath, "refund", schema)
}

func postElsewhere(t *testing.T, mistake bool) {
	m, path := statetest.NewModel(t, provider.OpenAI, refundCall.Times(-1)), chatPath
	if mistake {
		path = "/v1/embeddings"
	}
	postChat(t, m, path, "refund", withAmount)
}

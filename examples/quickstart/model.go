package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state"
)

// script is a model with prepared answers. A real model is called over HTTP
// with the same prompt and conversation.
type script struct {
	answers []answer
}

// answer is what the model says to an agent whose prompt or conversation
// contains the text reads.
type answer struct {
	agent, reads string
	says         state.Message
}

func theScript() *script {
	return &script{[]answer{
		{"support", "order_id (string) is not set", state.ToolCalls(
			call("c1", "set_fields", `{"order_id":"#W2378156","intent":"refund"}`))},
		{"retriever", `order_id (string) = "#W2378156"`, state.ToolCalls(
			call("c2", "search_orders", `{"order":"#W2378156"}`),
			call("c3", "search_policies", `{"topic":"refunds"}`))},
		{"billing", "129.90 USD", state.ToolCalls(
			call("c4", "refund", `{"amount":129.90}`))},
		{"general", "refund (number) = 129.9", state.ToolCalls(
			call("c5", "read_field", `{"name":"payment_token"}`))},
		{"general", "access denied", state.AssistantText(
			"I have refunded 129.90 USD to the card you paid with. I cannot see its number.")},
	}}
}

// complete answers a prompt and the conversation so far.
func (s *script) complete(agent string, prompt, talk []state.Message) (state.Message, error) {
	var seen strings.Builder
	for _, m := range slices.Concat(prompt, talk) {
		switch m := m.(type) {
		case state.TextMessage:
			seen.WriteString(m.Text())
		case state.ToolResultMessage:
			seen.WriteString(m.Text())
		}
	}
	for i, a := range s.answers {
		if a.agent == agent && strings.Contains(seen.String(), a.reads) {
			s.answers = slices.Delete(s.answers, i, i+1)
			return a.says, nil
		}
	}
	return nil, fmt.Errorf("the script has no answer to this prompt:\n%s", seen.String())
}

func call(id, name, input string) state.ToolCall {
	return state.ToolCall{ID: id, Name: name, Input: state.JSON(input)}
}

// tools are the functions that the agents can call. Each gets a handle with the
// rights of the agent that calls it.
var tools = map[string]func(me *state.State, args map[string]any) (string, error){
	"set_fields": func(me *state.State, args map[string]any) (string, error) {
		return "ok", me.Patch(args)
	},
	"search_orders": func(me *state.State, _ map[string]any) (string, error) {
		return "ok", Documents.Set(me, []Document{{"orders", "#W2378156: keyboard, 129.90 USD, delivered"}})
	},
	"search_policies": func(me *state.State, _ map[string]any) (string, error) {
		return "ok", Documents.Set(me, []Document{{"policies", "defects are refunded within 30 days"}})
	},
	"refund": func(me *state.State, args map[string]any) (string, error) {
		token, err := Token.Get(me)
		if err != nil {
			return "", err
		}
		// Like many responses of payment providers, this one repeats the token.
		return "refunded to " + token, me.KV().Set(Refund.Name, args["amount"])
	},
	"read_field": func(me *state.State, args map[string]any) (string, error) {
		value, err := state.GetAs[any](me, fmt.Sprint(args["name"]))
		return fmt.Sprint(value), err
	},
}

// call runs one call with the rights of me. An error becomes a result that the
// model reads. The desk redacts results, because it knows secrets that the
// agent may not read.
func (d *desk) call(me *state.State, call state.ToolCall) state.ToolResultMessage {
	tool, ok := tools[call.Name]
	if !ok {
		return state.ToolError(call, "no such tool")
	}
	var args map[string]any
	err := call.Input.Decode(&args)
	if err != nil {
		return state.ToolError(call, err.Error())
	}
	text, err := tool(me, args)
	if err != nil {
		return state.ToolError(call, d.st.Redact(err.Error()))
	}
	return state.ToolResult(call, state.JSONText(d.st.Redact(text)))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
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
			call("c1", "update_state", `{"order_id":"#W2378156","intent":"refund"}`))},
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

// ask sends one request for an agent: what the state is, and the conversation.
func (s *script) ask(ctx context.Context, turn *loop.Turn) error {
	me := turn.State() // reads, writes and signs with the agent's rights
	talk, err := turn.Prompt(ctx, state.Messages.GetOr(me, nil))
	if err != nil {
		return err
	}
	prompt := []state.Message{state.SystemText("You are " + me.Agent() + ".")}
	// What changes stands behind what stays, which the provider caches.
	now := state.UserText("<context>\n" + me.Describe() + "</context>")
	answer, err := s.complete(me.Agent(), prompt, append(slices.Clone(talk), now))
	if err != nil {
		return err
	}
	result := state.InferenceResult{Prompt: prompt, History: talk, Output: []state.Message{answer}}
	return errors.Join(turn.Said(ctx, result), Cost.Set(me, 0.002))
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

// tools are what the agents can call, with their own rights.
func tools() map[string][]*tool.Tool {
	type search struct {
		Order string `json:"order,omitempty"`
		Topic string `json:"topic,omitempty"`
	}
	find := func(name string, found Document) *tool.Tool {
		return tool.Must(tool.New(name, "Search.",
			func(context.Context, search) ([]Document, error) { return []Document{found}, nil },
			tool.To(Documents, "")))
	}
	type refund struct {
		Amount float64 `json:"amount"`
		Token  string  `json:"token"`
	}
	type field struct {
		Name string `json:"name"`
	}
	return map[string][]*tool.Tool{
		"support": {tool.Must(tool.Updater(schema, "support"))},
		"retriever": {
			find("search_orders", Document{"orders", "#W2378156: keyboard, 129.90 USD, delivered"}),
			find("search_policies", Document{"policies", "defects are refunded within 30 days"}),
		},
		// The token is injected. Like many responses of payment providers, this
		// one repeats it.
		"billing": {tool.Must(tool.New("refund", "Refund an amount.",
			func(_ context.Context, in refund) (refund, error) { return in, nil },
			tool.From(Token, "token"), tool.To(Refund, "amount")))},
		"general": {tool.Must(tool.NewStateful("read_field", "Read a field.",
			func(_ context.Context, me *state.State, in field) (any, error) { return state.GetAs[any](me, in.Name) }))},
	}
}

package provider_test

import (
	"fmt"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

// turn is a message of a framework for agents: a text, calls of tools, or both,
// or the result of a call.
type turn struct {
	By      string   `json:"by,omitempty"` // "human", "bot" or "tool"
	Says    string   `json:"says,omitempty"`
	Shows   []string `json:"shows,omitempty"` // URLs of images
	Uses    []use    `json:"uses,omitempty"`
	Answers string   `json:"answers,omitempty"` // the key of a use
	Mood    string   `json:"mood,omitempty"`
}

type use struct{ Key, Tool, With string }

var turnRoles = map[string]string{"human": "user", "bot": "assistant", "tool": provider.RoleTool}

func decodeTurn(t turn) (provider.Entry, error) {
	e := provider.Entry{Role: t.By}
	if role, ok := turnRoles[t.By]; ok {
		e.Role = role
	}
	rest := t // what the entry does not say
	rest.By, rest.Says = "", ""
	if t.By == "tool" {
		e.Parts = []provider.Part{{Kind: provider.PartResult, ID: t.Answers, Content: state.JSONText(t.Says)}}
		rest.Answers = ""
	} else {
		if t.Says != "" || len(t.Uses)+len(t.Shows) == 0 {
			e.Parts = append(e.Parts, provider.Part{Kind: provider.PartText, Text: t.Says})
		}
		for _, url := range t.Shows {
			e.Parts = append(e.Parts, provider.Part{Kind: provider.PartImage, URL: url})
		}
		for _, u := range t.Uses {
			e.Parts = append(e.Parts, provider.Part{Kind: provider.PartCall, ID: u.Key, Name: u.Tool, Input: provider.Arguments(u.With)})
		}
		rest.Shows, rest.Uses = nil, nil
	}
	e.Extra = provider.ExtraOf(rest)
	return e, nil
}

func encodeTurn(e provider.Entry) ([]turn, error) {
	var t turn
	if err := e.Extra.Decode(&t); err != nil {
		return nil, err
	}
	t.By = e.Role
	for by, role := range turnRoles {
		if e.Role == role {
			t.By = by
		}
	}
	var texts []string
	for _, p := range e.Parts {
		switch p.Kind {
		case provider.PartText:
			texts = append(texts, p.Text)
		case provider.PartImage:
			t.Shows = append(t.Shows, p.DataURL())
		case provider.PartCall:
			t.Uses = append(t.Uses, use{p.ID, p.Name, p.Input.Text()})
		case provider.PartResult:
			t.Answers = p.ID
			texts = append(texts, p.ContentText())
		}
	}
	t.Says = strings.Join(texts, "\n")
	return []turn{t}, nil
}

// turnCodec is the codec of turns.
var turnCodec = provider.MessageCodec[turn]{
	Decode: decodeTurn, Encode: encodeTurn, OneResult: true,
	Carries: func(role string, p provider.Part) bool {
		return p.Kind == provider.PartText || p.Kind == provider.PartImage && role != provider.RoleTool
	},
}

// A format for the messages of a framework keeps what is particular to them in
// the messages of a state, makes them again, and trims the framework's own.
func ExampleNewMessageFormat() {
	turns := provider.NewMessageFormat("turns", turnCodec)
	said := []turn{
		{By: "human", Says: "What is 2+3?", Mood: "curious"},
		{By: "bot", Says: "I add.", Uses: []use{{"u1", "add", `{"a": 2, "b": 3}`}}},
		{By: "tool", Answers: "u1", Says: "5"},
	}
	msgs, err := turns.Decode(said...)
	if err != nil {
		panic(err)
	}
	for _, m := range msgs {
		fmt.Println(m)
	}
	again, omitted, err := turns.Encode(msgs...)
	fmt.Println(again[0].Mood, again[1].Uses[0].With, omitted, err)

	said = append(said, turn{By: "bot", Says: "5."}, turn{By: "human", Says: "Thanks."})
	fmt.Println(len(turns.KeepLast(4)(said)))
	// Output:
	// text "user": "What is 2+3?"
	// text "assistant": "I add."
	// tool_call "assistant": "add" id "u1"
	// tool_result "add" id "u1": "5"
	// curious {"a": 2, "b": 3} [] <nil>
	// 3
}

package provider_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// parley is the codec of an API that this package does not know. A request is
//
//	{"model":"p1","prompt":"Be brief.","turns":[
//	  {"by":"human","says":"What is 2+3?"},
//	  {"by":"bot","uses":[{"key":"u1","tool":"add","with":[2,3]}]},
//	  {"by":"tool","key":"u1","says":"5"}]}
//
// and a response is {"id":"r1","turn":{"by":"bot","says":"5"},"end":"done"}.
type parley struct{}

// members are those of an object. A struct would take says and SAYS for the same.
type members = map[string]state.JSON

func (parley) DecodeRequest(body state.JSON) (b provider.Body, err error) {
	settings := members{}
	if err := body.Decode(&settings); err != nil {
		return b, err
	}
	if prompt := textOf(settings["prompt"]); prompt != nil {
		b.Entries = append(b.Entries, provider.Entry{Role: "system", Parts: prompt, JSON: settings["prompt"]})
		delete(settings, "prompt")
	}
	var turns []state.JSON
	if err := settings["turns"].Decode(&turns); err != nil {
		return b, errors.New("turns: want an array")
	}
	delete(settings, "turns")
	for _, turn := range turns {
		e, err := turnOf(turn)
		if err != nil {
			return b, err
		}
		b.Entries = append(b.Entries, e)
	}
	if tools := settings["tools"]; strings.HasPrefix(string(tools), "[{") {
		_ = tools.Decode(&b.Tools) // an array
		delete(settings, "tools")
	}
	b.Settings, err = state.JSONOf(settings)
	return b, err
}

// textOf returns a bare text, which has no JSON of its own.
func textOf(says state.JSON) []provider.Part {
	if !strings.HasPrefix(string(says), `"`) {
		return nil
	}
	return []provider.Part{{Kind: provider.PartText, Text: says.Text()}}
}

// text returns a member that is a string. Null is like a missing member.
func text(in members, name string) string {
	if in[name] == "null" {
		return ""
	}
	return in[name].Text()
}

func turnOf(turn state.JSON) (provider.Entry, error) {
	e := provider.Entry{JSON: turn}
	var in members
	if err := turn.Decode(&in); err != nil || in == nil {
		return e, errors.New("turns: want objects")
	}
	switch e.Role = text(in, "by"); e.Role {
	case "human":
		e.Role = "user"
	case "bot":
		e.Role = "assistant"
	case "tool":
		e.Role = provider.RoleTool
		e.Parts = []provider.Part{{Kind: provider.PartResult, ID: text(in, "key"), Content: in["says"]}}
		return e, nil
	}
	e.Parts = textOf(in["says"])
	var uses []members
	if e.Role != "assistant" || in["uses"].Decode(&uses) != nil {
		return e, nil // uses of another form are kept
	}
	var raw []state.JSON
	_ = in["uses"].Decode(&raw) // as above
	for i, use := range uses {
		e.Parts = append(e.Parts, provider.Part{
			Kind: provider.PartCall, ID: text(use, "key"), Name: text(use, "tool"), Input: use["with"], JSON: raw[i],
		})
	}
	return e, nil
}

func (parley) EncodePart(role string, p provider.Part) (state.JSON, bool) {
	switch p.Kind {
	case provider.PartText, provider.PartResult: // they are members of the turn
		return "null", true
	case provider.PartCall:
		use, err := state.JSONOf(members{"key": state.JSONText(p.ID), "tool": state.JSONText(p.Name), "with": p.Input})
		return use, err == nil
	}
	return "", false // no images
}

func (parley) EncodeEntry(e provider.Entry) []state.JSON {
	turn := members{"by": state.JSONText(e.Role)}
	var texts []string
	var uses, results []state.JSON
	for _, p := range e.Parts {
		switch p.Kind {
		case provider.PartText:
			texts = append(texts, p.Text)
		case provider.PartCall:
			uses = append(uses, p.JSON)
		case provider.PartResult:
			result := members{"by": `"tool"`, "key": state.JSONText(p.ID), "says": p.Content}
			for _, part := range p.Parts { // of another API
				texts = append(texts, part.Text)
			}
			if texts != nil {
				result["says"] = state.JSONText(strings.Join(texts, "\n"))
			}
			texts = nil
			encoded, _ := state.JSONOf(result) // JSON marshals
			results = append(results, encoded)
		}
	}
	said := state.JSONText(strings.Join(texts, "\n"))
	switch e.Role {
	case provider.RoleTool:
		return results
	case "system", "developer":
		return []state.JSON{said}
	case "user":
		turn["by"] = `"human"`
	case "assistant":
		turn["by"] = `"bot"`
	}
	if texts != nil {
		turn["says"] = said
	}
	if uses != nil {
		turn["uses"], _ = state.JSONOf(uses) // as above
	}
	encoded, _ := state.JSONOf(turn)
	return []state.JSON{encoded}
}

func (parley) EncodeRequest(b provider.Body) (state.JSON, error) {
	body := members{}
	if err := b.Settings.Decode(&body); err != nil {
		return "", err
	}
	var prompt []string
	turns := []state.JSON{}
	for _, e := range b.Entries {
		if e.Role == "system" || e.Role == "developer" {
			prompt = append(prompt, e.JSON.Text())
			continue
		}
		turns = append(turns, e.JSON)
	}
	if prompt != nil {
		body["prompt"] = state.JSONText(strings.Join(prompt, "\n"))
	}
	if b.Tools != nil {
		body["tools"], _ = state.JSONOf(b.Tools) // as above
	}
	body["turns"], _ = state.JSONOf(turns)
	return state.JSONOf(body)
}

func (parley) DecodeTool(element state.JSON) (t provider.Tool, ok bool) {
	var in members
	ok = element.Decode(&in) == nil && strings.HasPrefix(string(in["about"]), `"`)
	return provider.Tool{Name: text(in, "tool"), Description: text(in, "about"), Schema: in["takes"]}, ok
}

func (parley) EncodeTool(t provider.Tool) state.JSON {
	tool := members{"tool": state.JSONText(t.Name), "about": state.JSONText(t.Description)}
	if t.Schema != "" {
		tool["takes"] = t.Schema
	}
	element, _ := state.JSONOf(tool) // as above
	return element
}

func (parley) DecodeResponse(body state.JSON) (r provider.Response, err error) {
	var in members
	if err := body.Decode(&in); err != nil {
		return r, err
	}
	if refused := in["refused"]; refused != "" && refused != "null" {
		return r, &provider.ResponseError{Code: "refused", Message: refused.Text()}
	}
	r.ID = text(in, "id")
	if r.StopReason = text(in, "end"); r.StopReason == "done" {
		r.StopReason = "stop"
	}
	e, err := turnOf(in["turn"])
	if e.Parts != nil {
		r.Entries = []provider.Entry{e}
	}
	return r, err
}

func (parley) Summarize(s *provider.Summary, body state.JSON) bool {
	var in struct {
		ID        string
		Turn, Say json.RawMessage
		End       string
		Cost      *struct{ In, Out int }
	}
	if err := body.Decode(&in); err != nil || in.Turn == nil && in.Say == nil && in.End == "" {
		return false
	}
	if in.ID != "" {
		s.ID = in.ID
	}
	if s.StopReason = in.End; in.End == "done" {
		s.StopReason = "stop"
	}
	if in.Cost != nil {
		s.Usage.Input, s.Usage.Output = in.Cost.In, in.Cost.Out
	}
	return true
}

func (parley) NewAssembler(emit func(provider.Delta)) provider.Assembler {
	return &parleyStream{emit: emit, response: members{}}
}

// parleyStream reads {"id":"r1","say":"Hel"}, {"say":"lo"}, {"end":"done"}.
type parleyStream struct {
	emit     func(provider.Delta)
	response members
	said     strings.Builder
	ended    bool
}

func (s *parleyStream) Add(event state.JSON) error {
	var in members
	if err := event.Decode(&in); err != nil {
		return err
	}
	for name, value := range in {
		if name != "say" {
			s.response[name] = value
			continue
		}
		piece := text(in, "say")
		s.said.WriteString(piece)
		s.emit(provider.Delta{Kind: provider.DeltaText, Text: piece})
	}
	s.ended = s.ended || in["end"] != ""
	return nil
}

func (s *parleyStream) Ended() bool { return s.ended }

func (s *parleyStream) Result() (state.JSON, bool) {
	if len(s.response) == 0 {
		return "", false
	}
	turn := members{"by": `"bot"`, "says": state.JSONText(s.said.String())}
	s.response["turn"], _ = state.JSONOf(turn) // as above
	body, _ := state.JSONOf(s.response)
	return body, s.ended
}

// A format for another API reads its requests, and is a target and a source for
// conversations with the built-in ones.
func ExampleNew() {
	format := provider.New("Parley", transcript.Profile{}, parley{})
	request, err := format.DecodeRequest([]byte(`{"model":"p1","prompt":"Be brief.","turns":[
		{"by":"human","says":"What is 2+3?","mood":"curious"},
		{"by":"bot","uses":[{"key":"u1","tool":"add","with":[2,3]}]},
		{"by":"tool","key":"u1","says":"5"}]}`))
	if err != nil {
		panic(err)
	}
	for _, m := range request.Messages {
		fmt.Println(m)
	}
	again, _, _ := format.EncodeRequest(request)
	fmt.Println(strings.Contains(string(again), `"mood":"curious"`))

	body, omitted, _ := provider.OpenAI.EncodeRequest(provider.Request{Messages: request.Messages})
	fmt.Println(len(body) > 0, omitted)
	// Output:
	// text "system": "Be brief."
	// text "user": "What is 2+3?"
	// tool_call "assistant": "add" id "u1"
	// tool_result "add" id "u1": "5"
	// true
	// true [message 1: member mood]
}

package provider

import (
	"strconv"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// openAIResponses is the Responses API. A conversation is a text of the system,
// the instructions, and the input: a text of the user or a list of items.
type openAIResponses struct{}

func (openAIResponses) request(d *decoder, body jsontext.Object) (jsontext.Object, error) {
	instructions, input := body.Get("instructions"), body.Get("input")
	if err := want("$.instructions", instructions, "string", "null", "nothing"); err != nil {
		return nil, err
	}
	var taken []string
	if jsontext.Kind(instructions) == "string" {
		taken = append(taken, "instructions")
		kept := jsontext.Object{}.WithString("in", "instructions")
		if err := d.text("$.instructions", "system", instructions, kept); err != nil {
			return nil, err
		}
	}
	switch jsontext.Kind(input) {
	case "string":
		taken = append(taken, "input")
		kept := jsontext.Object{}.With("input", []byte("true"))
		if err := d.text("$.input", "user", input, kept); err != nil {
			return nil, err
		}
	case "array":
		items, err := jsontext.Elements(input)
		if err != nil {
			return nil, err
		}
		if len(items) == 0 {
			break // no message would tell it from an input that is missing
		}
		taken = append(taken, "input")
		if err := decodeItems(d, "$.input", items); err != nil {
			return nil, err
		}
	case "null", "nothing":
	default:
		return nil, want("$.input", input, "string", "array")
	}
	return body.Without(taken...), nil
}

func (openAIResponses) conversation(e *encoder, msgs []state.Message) (jsontext.Object, error) {
	w := itemWriter{e: e, types: map[string]string{}}
	var body jsontext.Object
	var whole []byte // the input if it is just that text
	for i, m := range msgs {
		kept, _ := e.kept(m)
		if m, ok := m.(state.TextMessage); ok && jsontext.Kind([]byte(m.Content())) == "string" {
			if stringOf(kept.Get("in")) == "instructions" && len(body)+len(w.items) == 0 {
				body = body.With("instructions", []byte(m.Content()))
				continue
			}
			if string(kept.Get("input")) == "true" {
				whole = []byte(m.Content())
			}
		}
		w.message(i, m)
	}
	switch {
	case len(w.items) == 1 && whole != nil:
		body = body.With("input", whole)
	case len(w.items) > 0:
		body = body.With("input", jsontext.Array(w.items))
	}
	return body, nil
}

func (openAIResponses) response(d *decoder, body jsontext.Object) (string, []byte, int64, error) {
	output := body.Get("output")
	if err := want("$.output", output, "array", "null"); err != nil {
		return "", nil, 0, err
	}
	items, _ := jsontext.Elements(output) // none if it is null
	if len(items) == 0 {
		if err := d.format.failure(jsontext.Object{}.With("error", body.Get("error"))); err != nil {
			return "", nil, 0, err
		}
	}
	if err := decodeItems(d, "$.output", items); err != nil {
		return "", nil, 0, err
	}
	stop := inside(body, "incomplete_details").Get("reason")
	if jsontext.Kind(stop) != "string" {
		stop = body.Get("status")
	}
	if status := stringOf(stop); status == "in_progress" || status == "queued" {
		stop = nil // it has not stopped
	}
	created, _ := strconv.ParseFloat(string(body.Get("created_at")), 64) // some send a fraction
	if !(created > 0 && created < 1<<53) {
		created = 0
	}
	return stringOf(body.Get("id")), stop, int64(created), nil
}

func (openAIResponses) assemble() assembler {
	return &responsesStream{items: map[itemKey]*streamedItem{}}
}

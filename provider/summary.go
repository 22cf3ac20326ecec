package provider

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// Summary is what a response says of itself and its cost, whose counts mean the
// same for all providers.
type Summary struct {
	Format     *Format // nil for a [Table], which is of one format
	Model      string  // as the response names it
	ID         string
	StopReason string // "stop", "tool", or the provider's word; empty if it is not known
	Usage      state.Usage
}

// Summarize reads what a response or a recorded stream of any format says of
// itself, such as the Raw of an [state.InferenceResult]. It recognises the format
// by the members of the JSON, and knows those of this package. It returns false
// if raw is not the response of a model. In the events of a stream, what is
// reported later counts.
func Summarize(raw string) (Summary, bool) { return summarize(raw, formatOf) }

// Summarize reads what a response or a recorded stream of the format says of
// itself, as the function [Summarize] does for those of this package.
func (f *Format) Summarize(raw string) (Summary, bool) {
	return summarize(raw, func(body jsontext.Object) *Format {
		if f.codec.HasForm(body) {
			return f
		}
		return nil
	})
}

// summarize reads bodies. recognise returns the format of a body, or nil.
func summarize(raw string, recognise func(body jsontext.Object) *Format) (Summary, bool) {
	var format *Format
	var said codec.Summary
	eachBody(raw, func(body jsontext.Object) {
		if format == nil {
			format = recognise(body)
		}
		if format != nil {
			format.codec.Summarize(&said, body)
		}
	})
	return Summary{format, said.Model, said.ID, said.StopReason, said.Usage}, format != nil
}

// formatOf returns the format of a response or of an event, nil if it is not
// one of a format of this package.
func formatOf(body jsontext.Object) *Format {
	for _, format := range []*Format{OpenAI, OpenAIResponses, Anthropic, Gemini} {
		if format.codec.HasForm(body) {
			return format
		}
	}
	return nil
}

// eachBody calls read with the response, or with each event of a stream: as
// server-sent events, one after the other, or in an array. It ends at what it
// cannot read.
func eachBody(raw string, read func(jsontext.Object)) {
	add := func(data []byte) {
		if jsontext.Check(data, jsontext.Limits{Depth: codec.BodyDepth, Halves: true}) == nil {
			if body, err := jsontext.Members(data); err == nil {
				read(body)
			}
		}
	}
	raw = strings.TrimLeft(raw, " \t\r\n\ufeff")
	if !strings.HasPrefix(raw, "{") && !strings.HasPrefix(raw, "[") {
		events := eventReader{
			take: func(_ string, data []byte) { add(bytes.TrimSpace(data)) },
			keep: func([]byte) bool { return true },
		}
		events.write([]byte(raw))
		events.takeLast()
		return
	}
	for values := json.NewDecoder(strings.NewReader(raw)); ; {
		var value json.RawMessage
		if values.Decode(&value) != nil {
			return
		}
		if elements, err := jsontext.Elements(value); err == nil {
			for _, element := range elements {
				add(element)
			}
			continue
		}
		add(value)
	}
}

// StopOf says what a word means by which an API says how an answer ended, such as
// finish_reason of Chat Completions or stop_reason of Anthropic: for a framework that
// passes the word. A word that no format of this package has is
// [state.StopUnknown], and an empty one says nothing.
func StopOf(word string) state.Stop { return codec.Stops(nil).Of(word) }

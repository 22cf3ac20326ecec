package provider

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// Usage is what a response says of itself and its cost. The counts are of
// tokens, and -1 if the provider has not reported them. They mean the same for
// all providers: Input is the whole prompt, with what was read from and written
// to a cache, and Output is all that the model has made, with its reasoning.
type Usage struct {
	Format     *Format
	Model      string // as the response names it
	ID         string
	StopReason string // "stop", "tool", or the provider's word; empty if it is not known

	Input      int
	Output     int
	CacheRead  int // of Input
	CacheWrite int // of Input
	Reasoning  int // of Output
}

// ReadUsage reads the usage in a response or in a recorded stream of any format,
// such as the Raw of an [state.InferenceResult]. It recognises the format by the
// members of the JSON, and knows those of this package. It returns false if raw
// is not the response of a model. In the events of a stream, what is reported
// later counts.
func ReadUsage(raw string) (Usage, bool) { return readUsage(raw, formatOf) }

// ReadUsage reads the usage in a response or a recorded stream of the format, as
// the function [ReadUsage] does for those of this package.
func (f *Format) ReadUsage(raw string) (Usage, bool) {
	return readUsage(raw, func(body jsontext.Object) *Format {
		if f.codec.HasForm(body) {
			return f
		}
		return nil
	})
}

// readUsage reads the usage. recognise returns the format of a body, or nil.
func readUsage(raw string, recognise func(body jsontext.Object) *Format) (Usage, bool) {
	var format *Format
	counts := codec.NoUsage
	eachBody(raw, func(body jsontext.Object) {
		if format == nil {
			format = recognise(body)
		}
		if format != nil {
			format.codec.ReadUsage(&counts, body)
		}
	})
	if format == nil {
		return Usage{}, false
	}
	usage := usageOf(counts)
	usage.Format = format
	return usage, true
}

func usageOf(u codec.Usage) Usage {
	return Usage{
		Model: u.Model, ID: u.ID, StopReason: u.StopReason, Input: u.Input, Output: u.Output,
		CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Reasoning: u.Reasoning,
	}
}

func (u Usage) internal() codec.Usage {
	return codec.Usage{
		Model: u.Model, ID: u.ID, StopReason: u.StopReason, Input: u.Input, Output: u.Output,
		CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Reasoning: u.Reasoning,
	}
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
		if jsontext.Check(data, jsontext.Limits{Depth: codec.BodyDepth}) == nil {
			if body, err := jsontext.Members(data); err == nil {
				read(body)
			}
		}
	}
	raw = strings.TrimLeft(raw, " \t\r\n\ufeff")
	if !strings.HasPrefix(raw, "{") && !strings.HasPrefix(raw, "[") {
		events := eventReader{
			take: func(data []byte) { add(bytes.TrimSpace(data)) },
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

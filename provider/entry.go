package provider

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/codec"
)

// RoleTool is the role of an entry with results, and stands for results in what a
// format asks a codec.
const RoleTool = origin.RoleTool

// Entry is a message of a framework for agents: what one participant says at
// once. Each run of its parts that are neither calls nor results becomes a text
// message, each run of calls a message, and each result a message.
type Entry struct {
	// Role is "system", "user", "assistant", RoleTool or another role. The role
	// "developer" comes from an API.
	Role string

	Parts []Part

	// Name is that of the participant, Reasoning the model's thinking as a member
	// of the message, and StopReason why the model stopped.
	Name, Reasoning, StopReason string

	// Extra is what else the message says.
	Extra Extra
}

// Part is a piece of an entry of a framework, or a part that a [Table] reads and
// writes.
type Part struct {
	Kind PartKind

	// Text is a text, or the model's thinking.
	Text string

	// An image, a sound or a file has data or a URL. MIME and the name of a file
	// are empty if unknown. PartOther has a name for reports, such as the type.
	MIME string
	Data string // base64
	URL  string
	Name string // also that of the tool of a call or a result

	// A call has an id and an input, and a result the id of its call. The result
	// is a value, usually a text, unless it has parts.
	ID      string
	Input   state.JSON
	Content state.JSON
	Parts   []Part
	IsError bool

	// Extra is what else a part of a message of a framework says.
	Extra Extra

	// JSON is the part in the words of the framework, for PartOther only.
	JSON state.JSON

	spaced bool // whether Input has space between its tokens
}

// PartKind says what a [Part] is.
type PartKind uint8

// The kinds of parts.
const (
	PartOther    PartKind = iota // what only the framework can express: its JSON
	PartText                     // a text
	PartThinking                 // the model's thinking, which only its source is sent
	PartImage
	PartAudio
	PartFile
	PartCall   // a call of a tool of the client
	PartResult // the result of such a call
)

// DataURL returns the URL of an image, a sound or a file, which is a data URL if
// the part has data.
func (p Part) DataURL() string { return codec.Part{MIME: p.MIME, Data: p.Data, URL: p.URL}.DataURL() }

// ContentText returns what a result says as a text: its content, or its parts
// that are texts, each in a line.
func (p Part) ContentText() string {
	if p.Parts == nil {
		return p.Content.Text()
	}
	var texts []string
	for _, part := range p.Parts {
		if part.Kind == PartText {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// Extra is what a message of a framework, or a part of one, says besides what an
// [Entry] or a [Part] has fields for: metadata, indexes, a signature. The zero
// Extra says nothing.
type Extra struct {
	value any        // to marshal when it is needed
	json  state.JSON // an object
}

// ExtraOf returns an Extra that holds v, which encoding/json must write as an
// object: usually a copy of a message without what its entry says. A v that is
// zero, a pointer to a zero value, or an object without members says nothing. v
// must not change until the messages are made.
func ExtraOf(v any) Extra { return Extra{value: v} }

// Decode sets dst as json.Unmarshal does. It leaves dst as it is if x says
// nothing.
func (x Extra) Decode(dst any) error {
	x, err := x.settle(new(jsontext.Checker))
	if err != nil || x.json == "" {
		return err
	}
	return json.Unmarshal([]byte(x.json), dst)
}

// IsEmpty reports whether x says nothing.
func (x Extra) IsEmpty() bool {
	x, err := x.settle(new(jsontext.Checker))
	return err == nil && x.json == ""
}

// settle returns x as checked JSON, which is empty if it says nothing.
func (x Extra) settle(c *jsontext.Checker) (Extra, error) {
	if x.value == nil {
		return x, nil
	}
	v := reflect.ValueOf(x.value)
	if v.IsZero() || v.Kind() == reflect.Pointer && v.Elem().IsZero() {
		return Extra{}, nil
	}
	text, err := jsontext.Marshal(x.value)
	if err != nil {
		return Extra{}, err
	}
	if err := c.Check(text, jsontext.Limits{Depth: codec.BodyDepth}); err != nil {
		return Extra{}, err
	}
	switch {
	case string(text) == "{}":
		return Extra{}, nil
	case jsontext.Kind(text) != "object":
		return Extra{}, &fault.Error{Path: "$", Want: "an Extra that is an object", Got: jsontext.Kind(text)}
	}
	return Extra{json: state.JSON(text)}, nil
}

// withoutExtra returns a copy of parts in which no Extra says anything.
func withoutExtra(parts []Part) []Part {
	parts = slices.Clone(parts)
	for i := range parts {
		parts[i].Extra, parts[i].Parts = Extra{}, withoutExtra(parts[i].Parts)
	}
	return parts
}

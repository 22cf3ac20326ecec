package anthropic

import (
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/codec"
)

// NewAssembler returns an assembler for a streamed response.
func (Format) NewAssembler(emit func(codec.Delta)) codec.Assembler { return &assembler{emit: emit} }

// assembler puts the events of a stream together. A stream can have several
// messages: the response has the blocks of all of them, the id of the first and
// the stop reason of the last.
type assembler struct {
	first   jsontext.Object           // the first message, as it began
	stop    []byte                    // why the latest message stopped
	runsIn  []byte                    // the container that was named last
	blocks  []*streamedBlock          // of all messages
	current map[string]*streamedBlock // of the latest message, by index; nil before the first
	ended   bool                      // the latest message has ended
	calls   int                       // that have begun
	emit    func(codec.Delta)
}

// Ended reports whether the latest message has ended.
func (a *assembler) Ended() bool { return a.ended }

// Add takes an event. Events of other types say nothing about the content.
func (a *assembler) Add(event jsontext.Object) error {
	switch event.String("type") {
	case "message_start":
		message, err := event.Members("message")
		if err != nil {
			return err
		}
		return fault.Under("$.message", a.start(message))
	case "content_block_start":
		block, err := event.Members("content_block")
		if err != nil {
			return err
		}
		return a.startBlock(string(event.Get("index")), block)
	case "content_block_delta":
		block := a.current[string(event.Get("index"))]
		if block == nil {
			return &fault.Error{Path: "$.index", Got: "no block of that index has begun"}
		}
		delta, err := event.Members("delta")
		if err != nil {
			return err
		}
		return fault.Under("$.delta", block.add(delta, a.emit))
	case "message_delta":
		delta := event.Object("delta")
		if reason := delta.Get("stop_reason"); reason != nil {
			a.stop = reason
		}
		a.setContainer(delta)
	case "message_stop":
		a.ended = true
	}
	return nil
}

// start begins a message, which may have blocks already.
func (a *assembler) start(message jsontext.Object) error {
	if a.current == nil {
		a.first = message
	}
	a.current, a.stop, a.ended = map[string]*streamedBlock{}, message.Get("stop_reason"), false
	a.setContainer(message)
	blocks, _ := message.Elements("content") // none if it has none
	for i, raw := range blocks {
		block, err := jsontext.Members(raw)
		if err != nil {
			return fault.Under(jsontext.Index("$.content", i), err)
		}
		if err := a.startBlock(strconv.Itoa(i), block); err != nil {
			return err
		}
	}
	return nil
}

func (a *assembler) setContainer(of jsontext.Object) {
	if container := of.Get(origin.Container); !jsontext.IsNull(container) {
		a.runsIn = container
	}
}

func (a *assembler) startBlock(index string, members jsontext.Object) error {
	if a.current == nil {
		return &fault.Error{Path: "$.type", Got: "no message has begun"}
	}
	block := &streamedBlock{Growing: codec.NewGrowing(members)}
	a.blocks, a.current[index] = append(a.blocks, block), block
	switch typ := members.String("type"); typ {
	case "text", "thinking":
		block.piece.Kind = codec.DeltaText
		if typ == "thinking" {
			block.piece.Kind = codec.DeltaThinking
		}
		block.emit(members.String(typ), a.emit)
	case "tool_use":
		block.piece = codec.Delta{
			Kind: codec.DeltaInput, Call: a.calls, ID: members.String("id"), Name: members.String("name"),
		}
		a.calls++
		if input := members.Object("input"); len(input) > 0 { // it comes whole
			block.piece.Text = string(members.Get("input"))
		}
		a.emit(block.piece)
	}
	return nil
}

// Result returns the response.
func (a *assembler) Result() (jsontext.Object, bool) {
	if a.current == nil {
		return nil, false
	}
	blocks := make([][]byte, len(a.blocks))
	for i, block := range a.blocks {
		blocks[i] = block.json()
	}
	body := jsontext.Object{}.With("id", a.first.Get("id")).With("role", a.first.Get("role")).
		With("content", jsontext.Array(blocks)).With("stop_reason", a.stop).With(origin.Container, a.runsIn)
	return body, a.ended
}

// streamedBlock is a block as far as it has come.
type streamedBlock struct {
	*codec.Growing
	input []byte      // of a call, the fragments of its JSON
	piece codec.Delta // what its deltas are pieces of
}

// emit emits a piece of the block.
func (b *streamedBlock) emit(text string, emit func(codec.Delta)) {
	if text != "" && b.piece.Kind != 0 {
		b.piece.Text = text
		emit(b.piece)
	}
}

// deltaMembers are what the known deltas have of a block. What they have besides,
// such as estimated_tokens, is of the delta: no block has it.
var deltaMembers = map[string][]string{
	"text_delta": {"text"}, "thinking_delta": {"thinking"}, "signature_delta": {"signature"},
	"compaction_delta": {"content", "encrypted_content"},
}

// add takes a delta. The input of a call and citations have separate deltas. In
// any other delta, known or not, a text continues that of the member, and
// anything else is the member's new value.
func (b *streamedBlock) add(delta jsontext.Object, emit func(codec.Delta)) error {
	switch delta.String("type") {
	case "input_json_delta":
		if err := delta.Want("partial_json", "string"); err != nil {
			return err
		}
		piece := delta.String("partial_json")
		b.input = append(b.input, piece...)
		if b.piece.Kind == codec.DeltaInput {
			b.emit(piece, emit)
		}
		return nil
	case "citations_delta":
		if err := delta.Want("citation", "object"); err != nil {
			return err
		}
		b.Member("citations").Append(delta.Get("citation"))
		return nil
	}
	names, isKnown := deltaMembers[delta.String("type")]
	for _, m := range delta {
		switch {
		case m.Name == "type", isKnown && !slices.Contains(names, m.Name):
		case jsontext.Kind(m.Value) == "string":
			text := jsontext.Unquote(m.Value)
			b.Member(m.Name).AppendText(text)
			if m.Name == "text" || m.Name == "thinking" {
				b.emit(text, emit)
			}
		default:
			b.SetMembers(jsontext.Object{m})
		}
	}
	return nil
}

// json returns the block as it would have come whole. The input of a call is
// what the fragments make. If that is not JSON, as when the model was cut
// short, it is their text, and nothing if they are spaces.
func (b *streamedBlock) json() []byte {
	if sent := jsontext.Whole(string(b.input)); strings.TrimSpace(sent) != "" {
		limits := jsontext.Limits{Depth: codec.InputDepth - 3}
		input := []byte(sent)
		if jsontext.Check(input, limits) != nil {
			input = jsontext.Mended(input)
		}
		if jsontext.Check(input, limits) != nil {
			input = jsontext.AppendQuote(nil, sent)
		}
		b.Member("input").Set(input)
	}
	return b.JSON()
}

package statetest

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider"
)

// streamer writes the response of a provider as the events of a stream. It has
// one method for each format, because each has its own events.
type streamer struct {
	events []modelEvent
	number int // of the event, for formats that count them
}

// modelEvent is one event of a stream.
type modelEvent struct {
	name    string // of the field event, if the format has one
	data    []byte
	isPiece bool // of a text or of an input
}

// streamOf returns the stream that a provider sends instead of a body.
func streamOf(f *provider.Format, body []byte) ([]modelEvent, error) {
	s := &streamer{}
	response, err := jsontext.Members(body)
	if err != nil {
		return nil, err
	}
	switch f {
	case provider.OpenAI:
		err = s.chat(response)
	case provider.OpenAIResponses:
		err = s.responses(response)
	case provider.Anthropic:
		err = s.anthropic(response)
	case provider.Gemini:
		err = s.gemini(response)
	default:
		err = errors.New("statetest: the format has no stream")
	}
	return s.events, err
}

// splitText splits a text after at most pieceSize bytes, and never within a
// character.
func splitText(text string) []string {
	var pieces []string
	for len(text) > pieceSize {
		n := pieceSize
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		pieces = append(pieces, text[:n])
		text = text[n:]
	}
	return append(pieces, text)
}

func (s *streamer) add(name string, data jsontext.Object, isPiece bool) {
	s.events = append(s.events, modelEvent{name, data.JSON(), isPiece})
}

func quote(text string) []byte { return jsontext.AppendQuote(nil, text) }

func intJSON(n int) []byte { return strconv.AppendInt(nil, int64(n), 10) }

var (
	emptyArray  = []byte(`[]`)
	emptyObject = []byte(`{}`)
	null        = []byte(`null`)
)

// chat writes the chunks of Chat Completions.
func (s *streamer) chat(response jsontext.Object) error {
	head := response.Without("choices", "usage").WithString("object", "chat.completion.chunk")
	chunk := func(index int, delta jsontext.Object, finish []byte, isPiece bool) {
		choice := jsontext.Object{}.With("index", intJSON(index)).With("delta", delta.JSON()).With("finish_reason", finish)
		s.add("", head.With("choices", jsontext.Array([][]byte{choice.JSON()})), isPiece)
	}
	index := 0
	err := response.EachObject("choices", func(_ []byte, choice jsontext.Object) error {
		message := choice.Object("message")
		chunk(index, jsontext.Object{}.With("role", message.Get("role")), null, false)
		for _, member := range message {
			switch {
			case member.Name == "role" || member.Name == "tool_calls":
			case jsontext.Kind(member.Value) == "string":
				for _, piece := range splitText(jsontext.Unquote(member.Value)) {
					chunk(index, jsontext.Object{}.WithString(member.Name, piece), null, true)
				}
			case !jsontext.IsNull(member.Value):
				chunk(index, jsontext.Object{}.With(member.Name, member.Value), null, false)
			}
		}
		call := 0
		if message.Get("tool_calls") != nil {
			err := message.EachObject("tool_calls", func(_ []byte, whole jsontext.Object) error {
				s.chatCall(func(delta jsontext.Object, isPiece bool) {
					delta = append(jsontext.Object{{Name: "index", Value: intJSON(call)}}, delta...)
					calls := jsontext.Array([][]byte{delta.JSON()})
					chunk(index, jsontext.Object{}.With("tool_calls", calls), null, isPiece)
				}, whole)
				call++
				return nil
			})
			if err != nil {
				return err
			}
		}
		chunk(index, jsontext.Object{}, choice.Get("finish_reason"), false)
		index++
		return nil
	})
	if usage := response.Get("usage"); usage != nil && err == nil {
		s.add("", head.With("choices", emptyArray).With("usage", usage), false)
	}
	s.events = append(s.events, modelEvent{data: []byte("[DONE]")})
	return err
}

// chatCall writes a call of a function, or another call as a whole.
func (s *streamer) chatCall(write func(delta jsontext.Object, isPiece bool), call jsontext.Object) {
	function := call.Object("function")
	if function == nil {
		write(call, false)
		return
	}
	write(call.With("function", function.WithString("arguments", "").JSON()), false)
	for _, piece := range splitText(function.String("arguments")) {
		write(jsontext.Object{}.With("function", jsontext.Object{}.WithString("arguments", piece).JSON()), true)
	}
}

// responses writes the events of the Responses API.
func (s *streamer) responses(response jsontext.Object) error {
	add := func(name string, data jsontext.Object, isPiece bool) {
		data = append(jsontext.Object{{Name: "type", Value: quote(name)}, {Name: "sequence_number", Value: intJSON(s.number)}}, data...)
		s.number++
		s.add(name, data, isPiece)
	}
	begun := response.WithString("status", "in_progress").With("output", emptyArray).With("usage", null)
	add("response.created", jsontext.Object{}.With("response", begun.JSON()), false)
	add("response.in_progress", jsontext.Object{}.With("response", begun.JSON()), false)
	index := 0
	err := response.EachObject("output", func(raw []byte, item jsontext.Object) error {
		at := jsontext.Object{}.With("item_id", item.Get("id")).With("output_index", intJSON(index))
		whole := jsontext.Object{}.With("output_index", intJSON(index))
		switch item.String("type") {
		case "message":
			added := item.WithString("status", "in_progress").With("content", emptyArray)
			add("response.output_item.added", whole.With("item", added.JSON()), false)
			part := 0
			err := item.EachObject("content", func(raw []byte, content jsontext.Object) error {
				at := at.With("content_index", intJSON(part))
				part++
				member, kind := "text", "response.output_text"
				if content.String("type") == "refusal" {
					member, kind = "refusal", "response.refusal"
				}
				add("response.content_part.added", at.With("part", content.WithString(member, "").JSON()), false)
				for _, piece := range splitText(content.String(member)) {
					add(kind+".delta", at.WithString("delta", piece), true)
				}
				add(kind+".done", at.With(member, content.Get(member)), false)
				add("response.content_part.done", at.With("part", raw), false)
				return nil
			})
			if err != nil {
				return err
			}
		case "function_call":
			added := item.WithString("status", "in_progress").WithString("arguments", "")
			add("response.output_item.added", whole.With("item", added.JSON()), false)
			for _, piece := range splitText(item.String("arguments")) {
				add("response.function_call_arguments.delta", at.WithString("delta", piece), true)
			}
			add("response.function_call_arguments.done", at.With("arguments", item.Get("arguments")), false)
		default:
			add("response.output_item.added", whole.With("item", raw), false)
		}
		add("response.output_item.done", whole.With("item", raw), false)
		index++
		return nil
	})
	name := "response.completed"
	if response.String("status") == "incomplete" {
		name = "response.incomplete"
	}
	add(name, jsontext.Object{}.With("response", response.JSON()), false)
	return err
}

// anthropic writes the events of the Messages API.
func (s *streamer) anthropic(response jsontext.Object) error {
	add := func(name string, data jsontext.Object, isPiece bool) {
		s.add(name, append(jsontext.Object{{Name: "type", Value: quote(name)}}, data...), isPiece)
	}
	usage := response.Object("usage")
	begun := response.With("content", emptyArray).With("stop_reason", null).With("stop_sequence", null)
	if usage != nil {
		begun = begun.With("usage", usage.With("output_tokens", intJSON(0)).JSON())
	}
	add("message_start", jsontext.Object{}.With("message", begun.JSON()), false)
	index := 0
	err := response.EachObject("content", func(raw []byte, block jsontext.Object) error {
		at := jsontext.Object{}.With("index", intJSON(index))
		index++
		delta := func(kind, member, text string, isPiece bool) {
			d := jsontext.Object{}.WithString("type", kind).WithString(member, text)
			add("content_block_delta", at.With("delta", d.JSON()), isPiece)
		}
		start := func(block jsontext.Object) { add("content_block_start", at.With("content_block", block.JSON()), false) }
		switch block.String("type") {
		case "text":
			start(block.WithString("text", ""))
			for _, piece := range splitText(block.String("text")) {
				delta("text_delta", "text", piece, true)
			}
		case "thinking":
			start(block.WithString("thinking", "").WithString("signature", ""))
			for _, piece := range splitText(block.String("thinking")) {
				delta("thinking_delta", "thinking", piece, true)
			}
			if signature := block.String("signature"); signature != "" {
				delta("signature_delta", "signature", signature, false)
			}
		case "tool_use", "server_tool_use":
			start(block.With("input", emptyObject))
			for _, piece := range splitText(string(block.Get("input"))) {
				delta("input_json_delta", "partial_json", piece, true)
			}
		default:
			start(block)
		}
		add("content_block_stop", at, false)
		return nil
	})
	d := jsontext.Object{}.With("stop_reason", response.Get("stop_reason")).With("stop_sequence", response.Get("stop_sequence"))
	end := jsontext.Object{}.With("delta", d.JSON())
	if usage != nil {
		end = end.With("usage", jsontext.Object{}.With("output_tokens", usage.Get("output_tokens")).JSON())
	}
	add("message_delta", end, false)
	add("message_stop", nil, false)
	return err
}

// gemini writes the responses of streamGenerateContent.
func (s *streamer) gemini(response jsontext.Object) error {
	head := response.Without("candidates", "usageMetadata")
	return response.EachObject("candidates", func(_ []byte, candidate jsontext.Object) error {
		content := candidate.Object("content")
		send := func(part []byte, isPiece bool) {
			c := content.With("parts", jsontext.Array([][]byte{part}))
			one := candidate.Without("finishReason").With("content", c.JSON())
			s.add("", head.With("candidates", jsontext.Array([][]byte{one.JSON()})), isPiece)
		}
		if content.Get("parts") != nil {
			err := content.EachObject("parts", func(raw []byte, part jsontext.Object) error {
				if part.Get("text") == nil {
					send(raw, true)
					return nil
				}
				pieces := splitText(part.String("text"))
				for i, piece := range pieces {
					p := part.WithString("text", piece)
					if i < len(pieces)-1 {
						p = p.Without("thoughtSignature")
					}
					send(p.JSON(), true)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		last := candidate.With("content", jsontext.Object{}.With("role", content.Get("role")).With("parts", emptyArray).JSON())
		s.add("", head.With("candidates", jsontext.Array([][]byte{last.JSON()})).
			With("usageMetadata", response.Get("usageMetadata")), false)
		return nil
	})
}

// cutAfter returns the events that come before a connection breaks off after a
// number of pieces. What belongs to the last piece, such as the end of its text,
// does not come.
func cutAfter(list []modelEvent, pieces int) []modelEvent {
	for i, e := range list {
		if !e.isPiece {
			continue
		}
		if pieces == 0 {
			return list[:i]
		}
		if pieces--; pieces == 0 {
			return list[:i+1]
		}
	}
	return list[:max(0, len(list)-1)] // the last event is missing, at least
}

// sse returns events as a body of server-sent events.
func sse(list []modelEvent) []byte {
	var b bytes.Buffer
	for _, e := range list {
		if e.name != "" {
			b.WriteString("event: " + e.name + "\n")
		}
		b.WriteString("data: ")
		b.Write(e.data)
		b.WriteString("\n\n")
	}
	return b.Bytes()
}

// eventArray returns events as the JSON array that Gemini sends without alt=sse.
func eventArray(list []modelEvent, isCut bool) []byte {
	var b strings.Builder
	b.WriteByte('[')
	for i, e := range list {
		if i > 0 {
			b.WriteString(",\r\n")
		}
		b.Write(e.data)
	}
	if !isCut {
		b.WriteByte(']')
	}
	return []byte(b.String())
}

// brokenBody is a body whose connection breaks off at its end.
type brokenBody struct{ io.Reader }

func (b brokenBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

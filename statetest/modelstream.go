package statetest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider"
)

// streamer writes the response of a provider as the events of a stream. It has
// one method for each format, because each has its own events.
type streamer struct{ events []modelEvent }

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

// add adds an event. Its data is a template of JSON.
func (s *streamer) add(name string, isPiece bool, format string, args ...any) {
	s.events = append(s.events, modelEvent{name, fmt.Appendf(nil, format, args...), isPiece})
}

func quote(text string) []byte { return jsontext.AppendQuote(nil, text) }

var (
	emptyArray = []byte(`[]`)
	null       = []byte(`null`)
)

// chat writes the chunks of Chat Completions.
func (s *streamer) chat(response jsontext.Object) error {
	head := response.Without("choices", "usage").WithString("object", "chat.completion.chunk")
	err := response.EachObject("choices", func(_ []byte, choice jsontext.Object) error {
		chunk := func(isPiece bool, finish []byte, format string, args ...any) {
			delta := fmt.Sprintf(format, args...)
			choices := fmt.Appendf(nil, `[{"index":%s,"delta":{%s},"finish_reason":%s}]`, choice.Get("index"), delta, finish)
			s.add("", isPiece, "%s", head.With("choices", choices).JSON())
		}
		message := choice.Object("message")
		chunk(false, null, `"role":%s`, message.Get("role"))
		for _, member := range message {
			switch {
			case member.Name == "role" || member.Name == "tool_calls":
			case jsontext.Kind(member.Value) == "string":
				for _, piece := range splitText(jsontext.Unquote(member.Value)) {
					chunk(true, null, `%s:%s`, quote(member.Name), quote(piece))
				}
			case !jsontext.IsNull(member.Value):
				chunk(false, null, `%s:%s`, quote(member.Name), member.Value)
			}
		}
		calls, _ := message.Elements("tool_calls")
		for i, raw := range calls {
			call, err := jsontext.Members(raw)
			if err != nil {
				return err
			}
			function := call.Object("function")
			if function != nil {
				call = call.With("function", function.WithString("arguments", "").JSON())
			}
			chunk(false, null, `"tool_calls":[%s]`, call.With("index", strconv.AppendInt(nil, int64(i), 10)).JSON())
			if function != nil {
				for _, piece := range splitText(function.String("arguments")) {
					chunk(true, null, `"tool_calls":[{"index":%d,"function":{"arguments":%s}}]`, i, quote(piece))
				}
			}
		}
		chunk(false, choice.Get("finish_reason"), "")
		return nil
	})
	if usage := response.Get("usage"); usage != nil && err == nil {
		s.add("", false, "%s", head.With("choices", emptyArray).With("usage", usage).JSON())
	}
	s.add("", false, "[DONE]")
	return err
}

// responses writes the events of the Responses API.
func (s *streamer) responses(response jsontext.Object) error {
	add := func(name string, isPiece bool, format string, args ...any) {
		s.add(name, isPiece, `{"type":%q,"sequence_number":%d,%s}`, name, len(s.events), fmt.Sprintf(format, args...))
	}
	begun := response.WithString("status", "in_progress").With("output", emptyArray).With("usage", null).JSON()
	add("response.created", false, `"response":%s`, begun)
	add("response.in_progress", false, `"response":%s`, begun)
	index := -1
	err := response.EachObject("output", func(raw []byte, item jsontext.Object) error {
		index++
		at := fmt.Sprintf(`"item_id":%s,"output_index":%d`, item.Get("id"), index)
		added := item
		switch item.String("type") {
		case "message":
			added = item.WithString("status", "in_progress").With("content", emptyArray)
		case "function_call":
			added = item.WithString("status", "in_progress").WithString("arguments", "")
		}
		add("response.output_item.added", false, `"output_index":%d,"item":%s`, index, added.JSON())
		switch item.String("type") {
		case "message":
			part := -1
			err := item.EachObject("content", func(raw []byte, content jsontext.Object) error {
				part++
				at := fmt.Sprintf(`%s,"content_index":%d`, at, part)
				member, kind := "text", "response.output_text"
				if content.String("type") == "refusal" {
					member, kind = "refusal", "response.refusal"
				}
				add("response.content_part.added", false, `%s,"part":%s`, at, content.WithString(member, "").JSON())
				for _, piece := range splitText(content.String(member)) {
					add(kind+".delta", true, `%s,"delta":%s`, at, quote(piece))
				}
				add(kind+".done", false, `%s,%q:%s`, at, member, content.Get(member))
				add("response.content_part.done", false, `%s,"part":%s`, at, raw)
				return nil
			})
			if err != nil {
				return err
			}
		case "function_call":
			for _, piece := range splitText(item.String("arguments")) {
				add("response.function_call_arguments.delta", true, `%s,"delta":%s`, at, quote(piece))
			}
			add("response.function_call_arguments.done", false, `%s,"arguments":%s`, at, item.Get("arguments"))
		}
		add("response.output_item.done", false, `"output_index":%d,"item":%s`, index, raw)
		return nil
	})
	name := "response.completed"
	if response.String("status") == "incomplete" {
		name = "response.incomplete"
	}
	add(name, false, `"response":%s`, response.JSON())
	return err
}

// anthropicBlocks are the blocks that come in pieces: the member that does, its
// value at the start, and the type and member of a delta.
var anthropicBlocks = map[string]struct{ member, empty, delta, piece string }{
	"text":            {"text", `""`, "text_delta", "text"},
	"thinking":        {"thinking", `""`, "thinking_delta", "thinking"},
	"tool_use":        {"input", `{}`, "input_json_delta", "partial_json"},
	"server_tool_use": {"input", `{}`, "input_json_delta", "partial_json"},
}

// anthropic writes the events of the Messages API.
func (s *streamer) anthropic(response jsontext.Object) error {
	add := func(name string, isPiece bool, format string, args ...any) {
		s.add(name, isPiece, `{"type":%q%s}`, name, fmt.Sprintf(format, args...))
	}
	usage := response.Object("usage")
	begun := response.With("content", emptyArray).With("stop_reason", null).With("stop_sequence", null)
	if usage != nil {
		begun = begun.With("usage", usage.With("output_tokens", []byte("0")).JSON())
	}
	add("message_start", false, `,"message":%s`, begun.JSON())
	index := -1
	err := response.EachObject("content", func(_ []byte, block jsontext.Object) error {
		index++
		delta := func(isPiece bool, kind, member, text string) {
			add("content_block_delta", isPiece, `,"index":%d,"delta":{"type":%q,%q:%s}`, index, kind, member, quote(text))
		}
		b, inPieces := anthropicBlocks[block.String("type")]
		signature := block.String("signature")
		value, start := block.Get(b.member), block
		if inPieces {
			start = start.With(b.member, []byte(b.empty))
		}
		if signature != "" {
			start = start.WithString("signature", "")
		}
		add("content_block_start", false, `,"index":%d,"content_block":%s`, index, start.JSON())
		if inPieces {
			text := string(value)
			if jsontext.Kind(value) == "string" {
				text = jsontext.Unquote(value)
			}
			for _, piece := range splitText(text) {
				delta(true, b.delta, b.piece, piece)
			}
		}
		if signature != "" {
			delta(false, "signature_delta", "signature", signature)
		}
		add("content_block_stop", false, `,"index":%d`, index)
		return nil
	})
	end := fmt.Sprintf(`,"delta":{"stop_reason":%s,"stop_sequence":%s}`, cmp.Or(string(response.Get("stop_reason")), "null"), cmp.Or(string(response.Get("stop_sequence")), "null"))
	if usage != nil {
		end += fmt.Sprintf(`,"usage":{"output_tokens":%s}`, usage.Get("output_tokens"))
	}
	add("message_delta", false, "%s", end)
	add("message_stop", false, "")
	return err
}

// gemini writes the responses of streamGenerateContent.
func (s *streamer) gemini(response jsontext.Object) error {
	head := response.Without("candidates", "usageMetadata")
	return response.EachObject("candidates", func(_ []byte, candidate jsontext.Object) error {
		content := candidate.Object("content")
		send := func(isPiece bool, candidate, head jsontext.Object, parts ...[]byte) {
			c := candidate.With("content", content.With("parts", jsontext.Array(parts)).JSON())
			s.add("", isPiece, "%s", head.With("candidates", jsontext.Array([][]byte{c.JSON()})).JSON())
		}
		running := candidate.Without("finishReason")
		parts, _ := content.Elements("parts")
		for _, raw := range parts {
			part, err := jsontext.Members(raw)
			if err != nil {
				return err
			}
			if part.Get("text") == nil {
				send(true, running, head, raw)
				continue
			}
			pieces := splitText(part.String("text"))
			for i, piece := range pieces {
				p := part.WithString("text", piece)
				if i < len(pieces)-1 {
					p = p.Without("thoughtSignature")
				}
				send(true, running, head, p.JSON())
			}
		}
		send(false, candidate, head.With("usageMetadata", response.Get("usageMetadata")))
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

// brokenBody is a body whose connection breaks off at its end.
type brokenBody struct{ io.Reader }

func (b brokenBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

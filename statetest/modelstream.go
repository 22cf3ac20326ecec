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
		chunk := func(isPiece bool, delta jsontext.Object, finish []byte) {
			choices := fmt.Appendf(nil, `[{"index":%s,"delta":%s,"finish_reason":%s}]`,
				choice.Get("index"), delta.JSON(), finish)
			s.add("", isPiece, "%s", head.With("choices", choices).JSON())
		}
		message := choice.Object("message")
		chunk(false, message.Without("content", "tool_calls"), null)
		if text := message.String("content"); text != "" {
			for _, piece := range splitText(text) {
				chunk(true, jsontext.Object{}.WithString("content", piece), null)
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
			delta := func(call jsontext.Object) jsontext.Object {
				return jsontext.Object{}.With("tool_calls",
					jsontext.Array([][]byte{call.With("index", strconv.AppendInt(nil, int64(i), 10)).JSON()}))
			}
			chunk(false, delta(call), null)
			if arguments := function.String("arguments"); arguments != "" {
				for _, piece := range splitText(arguments) {
					chunk(true, delta(jsontext.Object{}.With("function",
						jsontext.Object{}.WithString("arguments", piece).JSON())), null)
				}
			}
		}
		chunk(false, jsontext.Object{}, choice.Get("finish_reason"))
		return nil
	})
	if usage := response.Get("usage"); usage != nil {
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
		begun := item.WithString("status", "in_progress")
		var err error
		switch item.String("type") {
		case "message":
			add("response.output_item.added", false, `"output_index":%d,"item":%s`, index,
				begun.With("content", emptyArray).JSON())
			part := -1
			err = item.EachObject("content", func(raw []byte, content jsontext.Object) error {
				part++
				at := fmt.Sprintf(`%s,"content_index":%d`, at, part)
				add("response.content_part.added", false, `%s,"part":%s`, at, content.WithString("text", "").JSON())
				for _, piece := range splitText(content.String("text")) {
					add("response.output_text.delta", true, `%s,"delta":%s`, at, quote(piece))
				}
				add("response.output_text.done", false, `%s,"text":%s`, at, content.Get("text"))
				add("response.content_part.done", false, `%s,"part":%s`, at, raw)
				return nil
			})
		case "function_call":
			add("response.output_item.added", false, `"output_index":%d,"item":%s`, index,
				begun.WithString("arguments", "").JSON())
			for _, piece := range splitText(item.String("arguments")) {
				add("response.function_call_arguments.delta", true, `%s,"delta":%s`, at, quote(piece))
			}
			add("response.function_call_arguments.done", false, `%s,"arguments":%s`, at, item.Get("arguments"))
		default:
			add("response.output_item.added", false, `"output_index":%d,"item":%s`, index, raw)
		}
		add("response.output_item.done", false, `"output_index":%d,"item":%s`, index, raw)
		return err
	})
	add("response."+response.String("status"), false, `"response":%s`, response.JSON())
	return err
}

// anthropic writes the events of the Messages API.
func (s *streamer) anthropic(response jsontext.Object) error {
	add := func(name string, isPiece bool, format string, args ...any) {
		s.add(name, isPiece, `{"type":%q%s}`, name, fmt.Sprintf(format, args...))
	}
	begun := response.With("content", emptyArray).With("stop_reason", null).With("stop_sequence", null)
	add("message_start", false, `,"message":%s`, begun.JSON())
	index := -1
	err := response.EachObject("content", func(raw []byte, block jsontext.Object) error {
		index++
		pieces := func(start jsontext.Object, kind, member, text string) {
			add("content_block_start", false, `,"index":%d,"content_block":%s`, index, start.JSON())
			for _, piece := range splitText(text) {
				add("content_block_delta", true, `,"index":%d,"delta":{"type":%q,%q:%s}`, index, kind, member, quote(piece))
			}
		}
		switch block.String("type") {
		case "text":
			pieces(block.WithString("text", ""), "text_delta", "text", block.String("text"))
		case "tool_use":
			pieces(block.With("input", []byte("{}")), "input_json_delta", "partial_json", string(block.Get("input")))
		default:
			add("content_block_start", false, `,"index":%d,"content_block":%s`, index, raw)
		}
		add("content_block_stop", false, `,"index":%d`, index)
		return nil
	})
	end := jsontext.Object{}.With("stop_reason", response.Get("stop_reason")).With("stop_sequence", null)
	add("message_delta", false, `,"delta":%s,"usage":%s`, end.JSON(), cmp.Or(string(response.Get("usage")), "{}"))
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
			if part.Get("text") == nil || part.Get("thoughtSignature") != nil {
				send(true, running, head, raw)
				continue
			}
			for _, piece := range splitText(part.String("text")) {
				send(true, running, head, part.WithString("text", piece).JSON())
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

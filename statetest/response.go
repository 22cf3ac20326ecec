package statetest

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider"
)

// Response returns the body of a response in which a model says r.Output, as the
// provider of a built-in format would have sent it. The ID, the time and the
// usage are those of r, and the reason of the end is its StopWord, or else that of
// the last message.
// What the format cannot express is left out and reported. Messages that no single
// response can say are an error.
func Response(
	f *provider.Format, model string, r state.InferenceResult,
) (body []byte, omitted []provider.Omission, err error) {
	encode, ok := map[*provider.Format]func(reply, jsontext.Object) (jsontext.Object, error){
		provider.OpenAI: chatResponse, provider.OpenAIResponses: itemsResponse,
		provider.Anthropic: blocksResponse, provider.Gemini: contentsResponse,
	}[f]
	if !ok {
		return nil, nil, errors.New("statetest: the responses of " + f.String() + " are not known")
	}
	said, omitted, err := f.EncodeRequest(provider.Request{Messages: r.Output})
	if err != nil {
		return nil, nil, err
	}
	members, err := jsontext.Members(said)
	if err != nil {
		return nil, nil, err
	}
	response, err := encode(newReply(model, r), members)
	if err != nil {
		return nil, nil, err
	}
	return response.JSON(), omitted, nil
}

// errNotOneResponse is returned for messages that no single response can say.
var errNotOneResponse = errors.New("statetest: want what the model says in one response, got other messages")

// reply is what a response is to say besides its messages.
type reply struct {
	state.Usage
	id, model, stop string
	created         time.Time
	container       []byte // in which Anthropic has run code, nil if in none
}

func newReply(model string, r state.InferenceResult) reply {
	a := reply{Usage: r.Usage, id: r.ID, model: model, created: r.CreatedAt}
	if n := len(r.Output); r.StopWord != "" {
		a.stop = r.StopWord
	} else if n > 0 {
		a.stop = origin.StopReason(r.Output[n-1])
	}
	for _, m := range r.Output {
		if kept, _ := origin.Of(m, origin.Anthropic); kept.Get(origin.Container) != nil {
			a.container = kept.Get(origin.Container)
		}
	}
	return a
}

// createdUnix returns the time in seconds, as JSON.
func (a reply) createdUnix() []byte {
	if a.created.IsZero() {
		return []byte("0")
	}
	return strconv.AppendInt(nil, a.created.Unix(), 10)
}

// stopWord returns the word of a format for why the model stopped: that for the
// usual end, that for calls, that for a limit, or the reason as it is.
func (a reply) stopWord(stop, tool, limit string) string {
	switch a.stop {
	case "", "stop":
		return stop
	case "tool":
		return tool
	case "length", "max_tokens", "MAX_TOKENS", "max_output_tokens":
		return limit
	}
	return a.stop
}

// count is a member with a count.
func count(name string, n int) jsontext.Member {
	return jsontext.Member{Name: name, Value: strconv.AppendInt(nil, int64(n), 10)}
}

func counts(list ...jsontext.Member) []byte { return jsontext.Object(list).JSON() }

// one returns the only entry of a list, an empty one if there is none. Its role
// must be that of the model.
func one(said jsontext.Object, list, role string) (jsontext.Object, error) {
	entries, _ := said.Elements(list)
	if len(said) > 1 || len(said) == 1 && said.Get(list) == nil || len(entries) > 1 {
		return nil, errNotOneResponse
	}
	if len(entries) == 0 {
		return jsontext.Object{}.WithString("role", role), nil
	}
	entry, err := jsontext.Members(entries[0])
	if err != nil || entry.String("role") != role {
		return nil, errNotOneResponse
	}
	return entry, nil
}

func chatResponse(a reply, said jsontext.Object) (jsontext.Object, error) {
	message, err := one(said, "messages", "assistant")
	if err != nil {
		return nil, err
	}
	if len(message) == 1 { // nothing was said
		message = message.WithString("content", "")
	}
	choice := jsontext.Object{}.With("index", []byte("0")).With("message", message.JSON()).
		WithString("finish_reason", a.stopWord("stop", "tool_calls", "length"))
	usage := jsontext.Object{
		count("prompt_tokens", a.Input), count("completion_tokens", a.Output), count("total_tokens", a.Input+a.Output),
		{
			Name:  "prompt_tokens_details",
			Value: counts(count("cached_tokens", a.CacheRead), count("cache_write_tokens", a.CacheWrite)),
		},
		{Name: "completion_tokens_details", Value: counts(count("reasoning_tokens", a.Reasoning))},
	}
	return jsontext.Object{}.WithString("id", a.id).WithString("object", "chat.completion").
		With("created", a.createdUnix()).WithString("model", a.model).
		With("choices", jsontext.Array([][]byte{choice.JSON()})).With("usage", usage.JSON()), nil
}

func blocksResponse(a reply, said jsontext.Object) (jsontext.Object, error) {
	message, err := one(said, "messages", "assistant")
	if err != nil {
		return nil, err
	}
	content := message.Get("content")
	switch jsontext.Kind(content) {
	case "nothing": // nothing was said
		content = []byte("[]")
	case "string":
		text := jsontext.Object{}.WithString("type", "text").With("text", content)
		content = jsontext.Array([][]byte{text.JSON()})
	}
	usage := jsontext.Object{
		count("input_tokens", a.Input-a.CacheRead-a.CacheWrite), count("cache_creation_input_tokens", a.CacheWrite),
		count("cache_read_input_tokens", a.CacheRead), count("output_tokens", a.Output),
		{Name: "output_tokens_details", Value: counts(count("thinking_tokens", a.Reasoning))},
	}
	response := jsontext.Object{}.WithString("id", a.id).WithString("type", "message").WithString("role", "assistant").
		WithString("model", a.model).With("content", content).
		WithString("stop_reason", a.stopWord("end_turn", "tool_use", "max_tokens")).With("stop_sequence", []byte("null")).
		With("usage", usage.JSON())
	if a.container != nil {
		response = response.With(origin.Container, a.container)
	}
	return response, nil
}

func contentsResponse(a reply, said jsontext.Object) (jsontext.Object, error) {
	content, err := one(said, "contents", "model")
	if err != nil {
		return nil, err
	}
	if content.Get("parts") != nil {
		content = content.With("parts", withoutPlaceholders(content))
	}
	candidate := jsontext.Object{}.With("content", content.JSON()).
		WithString("finishReason", a.stopWord("STOP", "STOP", "MAX_TOKENS")).With("index", []byte("0"))
	usage := jsontext.Object{
		count("promptTokenCount", a.Input), count("cachedContentTokenCount", a.CacheRead),
		count("candidatesTokenCount", a.Output-a.Reasoning), count("thoughtsTokenCount", a.Reasoning),
		count("totalTokenCount", a.Input+a.Output),
	}
	response := jsontext.Object{}.With("candidates", jsontext.Array([][]byte{candidate.JSON()})).
		With("usageMetadata", usage.JSON()).WithString("modelVersion", a.model).WithString("responseId", a.id)
	if !a.created.IsZero() {
		response = response.WithString("createTime", a.created.UTC().Format(time.RFC3339))
	}
	return response, nil
}

// withoutPlaceholders returns the parts of a content without the signatures that
// only requests have. Clients decode the signatures of a response, and this text
// is not in base64.
func withoutPlaceholders(content jsontext.Object) []byte {
	parts, _ := content.Elements("parts") // made here
	for i, raw := range parts {
		part, _ := jsontext.Members(raw)
		if part.String("thoughtSignature") == origin.NoSignature {
			parts[i] = part.Without("thoughtSignature").JSON()
		}
	}
	return jsontext.Array(parts)
}

// itemsResponse gives items what the provider adds to them: a type, an id and a
// status.
func itemsResponse(a reply, said jsontext.Object) (jsontext.Object, error) {
	items, _ := said.Elements("input")
	if len(said) > 1 || len(said) == 1 && said.Get("input") == nil {
		return nil, errNotOneResponse
	}
	for i, raw := range items {
		item, _ := jsontext.Members(raw) // made here
		if role := item.Get("role"); role != nil && string(role) != `"assistant"` {
			return nil, errNotOneResponse
		}
		items[i] = asOutput(a.id, i, item).JSON()
	}
	status, details := "completed", []byte("null")
	if stop := a.stopWord("completed", "completed", "max_output_tokens"); stop != status {
		status, details = "incomplete", jsontext.Object{}.WithString("reason", stop).JSON()
	}
	usage := jsontext.Object{
		count("input_tokens", a.Input),
		{
			Name:  "input_tokens_details",
			Value: counts(count("cached_tokens", a.CacheRead), count("cache_write_tokens", a.CacheWrite)),
		},
		count("output_tokens", a.Output),
		{Name: "output_tokens_details", Value: counts(count("reasoning_tokens", a.Reasoning))},
		count("total_tokens", a.Input+a.Output),
	}
	return jsontext.Object{}.WithString("id", a.id).WithString("object", "response").
		With("created_at", a.createdUnix()).WithString("status", status).
		With("error", []byte("null")).With("incomplete_details", details).WithString("model", a.model).
		With("output", jsontext.Array(items)).With("usage", usage.JSON()), nil
}

// asOutput returns an item as it comes from the provider. Its id has that of the
// response: a conversation must not have an id twice.
func asOutput(response string, i int, item jsontext.Object) jsontext.Object {
	kind := item.String("type")
	if kind == "" {
		kind = "message"
		item = append(jsontext.Object{}.WithString("type", kind), item...)
	}
	prefix := map[string]string{"message": "msg_", "function_call": "fc_", "custom_tool_call": "ctc_"}[kind]
	if prefix != "" && item.Get("id") == nil { // else it came from the provider
		id := prefix + strconv.Itoa(i)
		if response != "" {
			id = prefix + strings.TrimPrefix(response, "resp_") + "_" + strconv.Itoa(i)
		}
		item = item.WithString("id", id).WithString("status", "completed")
	}
	if content := item.Get("content"); kind == "message" && jsontext.Kind(content) == "string" {
		part := jsontext.Object{}.WithString("type", "output_text").With("text", content).With("annotations", []byte("[]"))
		item = item.With("content", jsontext.Array([][]byte{part.JSON()}))
	}
	return item
}

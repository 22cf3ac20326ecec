package sdks

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// signature is the one of all thinking of the server.
const signature = "c2lnbmVk"

// fault is trouble of a provider.
type fault struct {
	status int // of the response, 0 for 200
	after  int // how many events come before the stream is cut; 0 for all
	abrupt bool
}

// provider is a server of all APIs, which refuses what the providers refuse. Its
// model looks up two orders at once, and then says what it has found.
type provider struct {
	*httptest.Server
	trouble func(n int64) fault // of a request by its number
	linger  bool                // keeps the connection open after the last event

	requests atomic.Int64
	streamed sync.Map // the number of events of a stream, by API

	mu      sync.Mutex
	sent    map[string]string // the bodies of responses by id
	refused []error
}

func newProvider(t testing.TB) *provider {
	p := &provider{sent: map[string]string{}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	n := p.requests.Add(1)
	api := map[string]string{
		"/v1/chat/completions": "chat", "/v1/responses": "responses", "/v1/messages": "anthropic",
		"/v1beta/models/m:generateContent": "gemini", "/v1beta/models/m:streamGenerateContent": "gemini",
	}[req.URL.Path]
	body, err := io.ReadAll(req.Body)
	var request object
	if err == nil {
		err = json.Unmarshal(body, &request)
	}
	if api == "" || err != nil {
		http.Error(w, `{"error":{"message":"bad request"}}`, http.StatusBadRequest)
		return
	}
	s, err := apiRules[api](request)
	if err != nil {
		p.mu.Lock()
		p.refused = append(p.refused, fmt.Errorf("%w in %s", err, body))
		p.mu.Unlock()
		http.Error(w, `{"type":"error","error":{"type":"invalid_request_error","message":"refused","code":400,"status":"INVALID_ARGUMENT"}}`, http.StatusBadRequest)
		return
	}
	var f fault
	if p.trouble != nil {
		f = p.trouble(n)
	}
	if f.status != 0 {
		w.Header().Set("Retry-After-Ms", "1") // which the official SDKs heed
		http.Error(w, `{"error":{"message":"overloaded"}}`, f.status)
		return
	}
	id := fmt.Sprint("resp_", n)
	a := answer{id: id, text: "Found: " + strings.Join(s.results, " and "), results: len(s.results)}
	if strings.HasSuffix(req.URL.Path, ":streamGenerateContent") || s.streams {
		p.stream(w, req, api, a, f)
		return
	}
	whole := render[api].whole(a)
	p.keep(id, whole)
	w.Header().Set("Content-Type", "application/json")
	if f.after > 0 {
		w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
		io.WriteString(w, whole[:len(whole)/2])
		return
	}
	io.WriteString(w, whole)
}

func (p *provider) stream(w http.ResponseWriter, req *http.Request, api string, a answer, f fault) {
	events := render[api].events(a)
	p.streamed.Store(api, len(events))
	p.keep(a.id, strings.Join(events, ""))
	w.Header().Set("Content-Type", "text/event-stream")
	for i, event := range events {
		if f.after > 0 && i == f.after {
			if f.abrupt {
				panic(http.ErrAbortHandler)
			}
			return
		}
		io.WriteString(w, event)
		w.(http.Flusher).Flush()
	}
	if p.linger {
		<-req.Context().Done()
	}
}

// keep keeps what is sent.
func (p *provider) keep(id, body string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent[id] = body
}

func (p *provider) sentAs(id string) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	body, ok := p.sent[id]
	return body, ok
}

// answer is what the model says: two calls, or a text if it has their results.
type answer struct {
	id, text string
	results  int
}

func (a answer) calls() bool { return a.results == 0 }

// arguments are those of the calls.
var arguments = []string{`{"order":"#1"}`, `{"order":"#2"}`}

func (a answer) callID(i int) string { return fmt.Sprintf("call_%s_%d", a.id, i) }

// render writes the answers of an API.
var render = map[string]struct {
	whole  func(answer) string
	events func(answer) []string
}{
	"chat":      {chatWhole, chatEvents},
	"responses": {responsesWhole, responsesEvents},
	"anthropic": {anthropicWhole, anthropicEvents},
	"gemini":    {geminiWhole, geminiEvents},
}

func quote(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

func data(format string, args ...any) string { return "data: " + fmt.Sprintf(format, args...) + "\n\n" }

func chatWhole(a answer) string {
	message, reason := `{"role":"assistant","content":`+quote(a.text)+`}`, "stop"
	if a.calls() {
		var calls []string
		for i, args := range arguments {
			calls = append(calls, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"lookup","arguments":%s}}`, a.callID(i), quote(args)))
		}
		message, reason = `{"role":"assistant","content":null,"tool_calls":[`+strings.Join(calls, ",")+`]}`, "tool_calls"
	}
	return fmt.Sprintf(`{"id":%q,"object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":%s,"finish_reason":%q}]}`, a.id, message, reason)
}

func chatEvents(a answer) []string {
	chunk := func(delta, reason string) string {
		return data(`{"id":%q,"object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, a.id, delta, reason)
	}
	events, reason := []string{chunk(`{"role":"assistant","content":""}`, "null")}, `"stop"`
	if a.calls() {
		reason = `"tool_calls"`
		for i, args := range arguments {
			events = append(events,
				chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":"lookup","arguments":""}}]}`, i, a.callID(i)), "null"),
				chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quote(args)), "null"))
		}
	} else {
		events = append(events, chunk(`{"content":`+quote(a.text[:3])+`}`, "null"), chunk(`{"content":`+quote(a.text[3:])+`}`, "null"))
	}
	return append(events, chunk("{}", reason), "data: [DONE]\n\n")
}

func responsesItems(a answer) []string {
	if !a.calls() {
		return []string{fmt.Sprintf(`{"type":"message","id":"msg_%s","role":"assistant","status":"completed","content":[{"type":"output_text","text":%s,"annotations":[]}]}`, a.id, quote(a.text))}
	}
	items := []string{fmt.Sprintf(`{"type":"reasoning","id":"rs_%s","summary":[],"encrypted_content":"eA=="}`, a.id)}
	for i, args := range arguments {
		items = append(items, fmt.Sprintf(`{"type":"function_call","id":"fc_%s_%d","call_id":%q,"name":"lookup","arguments":%s,"status":"completed"}`, a.id, i, a.callID(i), quote(args)))
	}
	return items
}

func responsesBody(a answer, status, items string) string {
	return fmt.Sprintf(`{"id":%q,"object":"response","created_at":1,"status":%q,"model":"m","output":[%s]}`, a.id, status, items)
}

func responsesWhole(a answer) string {
	return responsesBody(a, "completed", strings.Join(responsesItems(a), ","))
}

func responsesEvents(a answer) []string {
	event := func(typ, rest string) string {
		return "event: " + typ + "\n" + data(`{"type":%q,%s}`, typ, rest)
	}
	events := []string{event("response.created", `"response":`+responsesBody(a, "in_progress", ""))}
	for i, item := range responsesItems(a) {
		begun := strings.Replace(item, `"status":"completed"`, `"status":"in_progress"`, 1)
		events = append(events,
			event("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, i, begun)),
			event("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, i, item)))
	}
	return append(events, event("response.completed", `"response":`+responsesWhole(a)))
}

func anthropicBlocks(a answer) []string {
	blocks := []string{`{"type":"thinking","thinking":"Well.","signature":"` + signature + `"}`}
	if !a.calls() {
		return append(blocks, `{"type":"text","text":`+quote(a.text)+`}`)
	}
	for i, args := range arguments {
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"lookup","input":%s}`, a.callID(i), args))
	}
	return blocks
}

func (a answer) anthropicReason() string {
	if a.calls() {
		return "tool_use"
	}
	return "end_turn"
}

func anthropicWhole(a answer) string {
	return fmt.Sprintf(`{"id":%q,"type":"message","role":"assistant","model":"m","content":[%s],"stop_reason":%q,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`,
		a.id, strings.Join(anthropicBlocks(a), ","), a.anthropicReason())
}

func anthropicEvents(a answer) []string {
	event := func(typ, format string, args ...any) string {
		return "event: " + typ + "\n" + data(`{"type":"`+typ+`"`+format+`}`, args...)
	}
	events := []string{event("message_start", `,"message":{"id":%q,"type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}`, a.id)}
	block := func(start string, deltas ...string) {
		i := 0
		for _, e := range events {
			if strings.HasPrefix(e, "event: content_block_start") {
				i++
			}
		}
		events = append(events, event("content_block_start", `,"index":%d,"content_block":%s`, i, start))
		for _, d := range deltas {
			events = append(events, event("content_block_delta", `,"index":%d,"delta":%s`, i, d))
		}
		events = append(events, event("content_block_stop", `,"index":%d`, i))
	}
	block(`{"type":"thinking","thinking":"","signature":""}`,
		`{"type":"thinking_delta","thinking":"Well."}`, `{"type":"signature_delta","signature":"`+signature+`"}`)
	if a.calls() {
		for i, args := range arguments {
			block(fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"lookup","input":{}}`, a.callID(i)),
				`{"type":"input_json_delta","partial_json":`+quote(args[:5])+`}`, `{"type":"input_json_delta","partial_json":`+quote(args[5:])+`}`)
		}
	} else {
		block(`{"type":"text","text":""}`, `{"type":"text_delta","text":`+quote(a.text[:3])+`}`, `{"type":"text_delta","text":`+quote(a.text[3:])+`}`)
	}
	return append(events, event("message_delta", `,"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":1}`, a.anthropicReason()), event("message_stop", ""))
}

func geminiBody(a answer, parts, rest string) string {
	return fmt.Sprintf(`{"candidates":[{"index":0,"content":{"role":"model","parts":[%s]}%s}],"responseId":%q}`, parts, rest, a.id)
}

func geminiParts(a answer) []string {
	if !a.calls() {
		return []string{`{"text":` + quote(a.text) + `}`}
	}
	var parts []string
	for _, args := range arguments {
		parts = append(parts, `{"functionCall":{"name":"lookup","args":`+args+`},"thoughtSignature":"`+signature+`"}`)
	}
	return parts
}

func geminiWhole(a answer) string {
	return geminiBody(a, strings.Join(geminiParts(a), ","), `,"finishReason":"STOP"`)
}

func geminiEvents(a answer) []string {
	var events []string
	for _, part := range geminiParts(a) {
		events = append(events, data("%s", geminiBody(a, part, "")))
	}
	return append(events, data("%s", geminiBody(a, `{"text":""}`, `,"finishReason":"STOP"`)))
}

package traces

import (
	"errors"
	"net/url"
	"strings"

	"github.com/agentstate/state/lab/traces/loose"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// Layouts describes the files that Read reads, for the help of a command.
const Layouts = `A file has one of these contents, whatever its name. It may be compressed with
gzip.

  the envelope     {"exchanges": [EXCHANGE, …]}, see below
  VCR              YAML or JSON of VCR (Ruby, R), vcrpy, go-vcr and betamax
  HAR              of browsers, proxies and Polly.JS
  WireMock, nock   mappings with bodies in them; arrays of nock
  recordings       {"recordings": [{"request": {…}, "response": {…}}]}
  httprr           "httprr trace v1", as Go's tools write it
  one exchange     {"request": {…}, "response": {…}}; also an array of them
  Inspect          logs of inspect_ai in JSON, with the calls of the model
  a batch          the lines of an OpenAI batch, input or output
  a body           of a request, or of a response
  a conversation   a bare array of messages: [{"role": …}, …]
  a stream         server-sent events; an array of the data of its events
  JSONL            each line an exchange, a body, a message or an event
  logs             of τ-bench, SWE-agent, mini-swe-agent and ADK

An EXCHANGE of the envelope is an object with these members, all optional:

  api       openai_chat, openai_responses, anthropic_messages or
            gemini_generateContent
  url       of the request, which tells the API as well
  vendor    a name for the report
  status    of the response; 200 means that the provider took the request
  request   the body: JSON, or a string that holds it
  response  the body, if it was not streamed
  stream    the body, if it was: the text of the server-sent events, or an
            array of {"event": …, "data": …} or of the data itself

Without api and url, the shape of the bodies tells the API.
`

// callsIn returns the recorded calls in a value, and false if it is no recording
// of calls.
func callsIn(path string, o jsontext.Object) (list []httpCall, ok bool, err error) {
	for _, name := range []string{"exchanges", "interactions", "http_interactions", "recordings"} {
		switch elements := o.Get(name); {
		case jsontext.Kind(elements) == "array":
			return eachCall(jsontext.Path(path, name), elements, callOf)
		case jsontext.Kind(elements) == "null" || string(elements) == "{}": // as some recorders write none
			return nil, true, nil
		}
	}
	if entries := loose.Members(o.Get("log")).Get("entries"); jsontext.Kind(entries) == "array" {
		return eachCall(path+".log.entries", entries, callOf)
	}
	if mappings := o.Get("mappings"); jsontext.Kind(mappings) == "array" {
		return eachCall(path+".mappings", mappings, callOf)
	}
	if samples := o.Get("samples"); jsontext.Kind(samples) == "array" && o.Get("eval") != nil {
		return inspectCalls(path+".samples", samples), true, nil
	}
	if requests, responses := loose.Elements(o.Get("requests")), loose.Elements(o.Get("responses")); len(requests) > 0 && len(requests) == len(responses) {
		for i := range requests {
			o := jsontext.Object{}.With("request", requests[i]).With("response", responses[i])
			c, _ := callOf(jsontext.Index(path+".requests", i), o)
			c.response.path = jsontext.Index(path+".responses", i)
			list = append(list, c)
		}
		return list, true, nil
	}
	if isCall(o) {
		c, err := callOf(path, o)
		return []httpCall{c}, true, err
	}
	return nil, false, nil
}

// isCall reports whether an object is one recorded call.
func isCall(o jsontext.Object) bool {
	switch {
	case o.Get("custom_id") != nil: // of a batch
		return o.Get("body") != nil || o.Get("response") != nil
	case o.Get("scope") != nil && o.Get("path") != nil: // of nock
		return o.Get("response") != nil
	}
	request := jsontext.Kind(o.Get("request"))
	return (request == "object" || request == "string" && o.Get("api") != nil) && (o.Get("response") != nil || o.Get("stream") != nil)
}

// eachCall reads the calls in an array.
func eachCall(path string, list []byte, read func(path string, o jsontext.Object) (httpCall, error)) (found []httpCall, ok bool, err error) {
	var errs []error
	for i, raw := range loose.Elements(list) {
		path := jsontext.Index(path, i)
		o, err := jsontext.Members(raw)
		if err != nil {
			errs = append(errs, &fault.Error{Path: path, Want: "object", Got: jsontext.Kind(raw)})
			continue
		}
		c, err := read(path, o)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, c)
	}
	return found, true, errors.Join(errs...)
}

// callOf reads one call.
func callOf(path string, o jsontext.Object) (httpCall, error) {
	request, response := loose.Members(o.Get("request")), loose.Members(o.Get("response"))
	c := httpCall{path: path}
	switch {
	case o.Get("custom_id") != nil:
		c.url, c.status = loose.Text(o.Get("url")), statusOf(response)
		c.request = bodyValue(path+".body", nonNull(o, "body"))
		c.response = bodyValue(path+".response.body", nonNull(response, "body"))
	case o.Get("scope") != nil && o.Get("path") != nil:
		c.url, c.status = loose.Text(o.Get("scope"))+loose.Text(o.Get("path")), statusOf(o)
		c.request = bodyValue(path+".body", nonNull(o, "body"))
		c.response = bodyValue(path+".response", nonNull(o, "response"))
	case isHTTP(request):
		c.url, c.status = urlOf(request), statusOf(response)
		c.request = httpBody(path+".request", request)
		c.response = httpBody(path+".response", response)
	default:
		return envelopeCall(path, o)
	}
	return c, nil
}

// envelopeCall reads an exchange of the envelope, which holds the bodies
// themselves.
func envelopeCall(path string, o jsontext.Object) (httpCall, error) {
	c := httpCall{
		path: path, api: loose.Text(o.Get("api")), vendor: loose.Text(o.Get("vendor")),
		url: loose.Text(o.Get("url")), status: statusOf(o),
		request:  bodyValue(path+".request", nonNull(o, "request")),
		response: bodyValue(path+".response", nonNull(o, "response")),
	}
	if stream := nonNull(o, "stream"); stream != nil && nonNull(o, "response") == nil {
		var err error
		if c.response, err = envelopeStream(path+".stream", stream); err != nil {
			return c, atPath(path+".stream", err)
		}
	}
	return c, nil
}

// isHTTP reports whether an object is an HTTP request, and not its body.
func isHTTP(o jsontext.Object) bool {
	return loose.Has("url", "uri", "urlPath", "urlPattern", "urlPathPattern")(o)
}

func urlOf(o jsontext.Object) string {
	for _, name := range []string{"url", "uri", "urlPath", "urlPattern", "urlPathPattern"} {
		if at := loose.Text(o.Get(name)); at != "" {
			return at
		}
	}
	return ""
}

// inspectCalls returns the calls of models in the samples of an Inspect log.
func inspectCalls(path string, samples []byte) []httpCall {
	var list []httpCall
	for i, sample := range loose.Elements(samples) {
		for j, event := range loose.Elements(loose.Members(sample).Get("events")) {
			o := loose.Members(event)
			call := nonNull(o, "call")
			if loose.Text(o.Get("event")) != "model" || call == nil {
				continue
			}
			at := jsontext.Index(jsontext.Index(path, i)+".events", j) + ".call"
			c, err := callOf(at, loose.Members(call))
			if err != nil {
				continue // it has no stream that could be wrong
			}
			c.vendor, _, _ = strings.Cut(loose.Text(o.Get("model")), "/")
			list = append(list, c)
		}
	}
	return list
}

// urlPaths tell what is behind a URL by the end of its path.
var urlPaths = []struct {
	end  string
	wire *wire
	what string
}{
	{"/chat/completions", openAIChat, ""},
	{":generateContent", gemini, ""},
	{":streamGenerateContent", gemini, ""},
	{"/messages/count_tokens", nil, "a count of tokens"},
	{"/responses/input_tokens", nil, "a count of tokens"},
	{":countTokens", nil, "a count of tokens"},
	{"/embeddings", nil, "embeddings"},
	{":embedContent", nil, "embeddings"},
	{":batchEmbedContents", nil, "embeddings"},
	{"/api/embed", nil, "embeddings"},
	{"/completions", nil, "a legacy completion"},
	{"/v1/complete", nil, "a legacy completion"},
	{"/v1/chat", nil, "a Cohere chat exchange"},
	{"/v2/chat", nil, "a Cohere chat exchange"},
	{"/api/chat", nil, "an Ollama chat exchange"},
	{"/api/generate", nil, "an Ollama chat exchange"},
	{"/converse", nil, "a Bedrock Converse exchange"},
	{"/converse-stream", nil, "a Bedrock Converse exchange"},
	{"/invoke-with-response-stream", nil, "a Bedrock event stream"},
	{"/models", nil, "a list of models"},
	{"/moderations", nil, "moderations"},
	{"/interactions", nil, "a Gemini interaction"},
}

// wireAt returns the format that the path of a URL tells, or what else is
// there.
func wireAt(at *url.URL) (w *wire, other string) {
	path := strings.TrimSuffix(at.Path, "/")
	for _, p := range urlPaths {
		if strings.HasSuffix(path, p.end) {
			return p.wire, p.what
		}
	}
	switch {
	case strings.Contains(path, "/threads/"):
		return nil, "an Assistants exchange"
	case strings.HasSuffix(path, "/v1/messages"), strings.HasSuffix(path, "/anthropic/messages"):
		return anthropic, ""
	case strings.HasSuffix(path, "/responses"):
		return openAIResponses, ""
	}
	return nil, ""
}

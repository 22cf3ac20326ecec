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
const Layouts = `A file has one of these contents, whatever its name:

  the envelope     {"exchanges": [EXCHANGE, …]}
  one exchange     EXCHANGE with request and answer; also an array of them
  a body           of a request, or of a response
  a conversation   a bare array of messages: [{"role": …}, …]
  a stream         server-sent events; an array of the data of its events
  JSONL            each line an exchange, a body, a message or an event
  logs             of τ-bench, SWE-agent, mini-swe-agent and ADK

An EXCHANGE is an object with these members, all optional:

  api       openai_chat, openai_responses, anthropic_messages or
            gemini_generateContent
  url       of the request, which tells the API as well
  vendor    a name for the report
  status    of the response; 200 means that the provider took the request
  request   the body: JSON, or a string that holds it
  response  the body, if it was not streamed
  stream    the body, if it was: the text of the server-sent events, or an
            array of {"event": …, "data": …} or of the data itself

Without api and url, the shape of the bodies tells the API. Recordings in the
layout of another tool, such as VCR or HAR, have to be converted to it.
`

// callsIn returns the recorded calls in a value, and false if it is no recording
// of calls.
func callsIn(path string, o jsontext.Object) (list []httpCall, ok bool, err error) {
	if exchanges := o.Get("exchanges"); jsontext.Kind(exchanges) == "array" {
		list, err = eachCall(path+".exchanges", exchanges)
		return list, true, err
	}
	if isCall(o) {
		c, err := callOf(path, o)
		return []httpCall{c}, true, err
	}
	return nil, false, nil
}

// isCall reports whether an object is one recorded call. It may have only an answer
// if it names the API, or the address from which that is plain.
func isCall(o jsontext.Object) bool {
	request := jsontext.Kind(o.Get("request"))
	if jsontext.IsNull(o.Get("request")) {
		isNamed := jsontext.Kind(o.Get("api")) == "string" || jsontext.Kind(o.Get("url")) == "string"
		return isNamed && (!jsontext.IsNull(o.Get("response")) || !jsontext.IsNull(o.Get("stream")))
	}
	return (request == "object" || request == "string" && o.Get("api") != nil) && (o.Get("response") != nil || o.Get("stream") != nil)
}

// eachCall reads the calls in an array.
func eachCall(path string, list []byte) (found []httpCall, err error) {
	var errs []error
	for i, raw := range loose.Elements(list) {
		path := jsontext.Index(path, i)
		o, err := jsontext.Members(raw)
		if err != nil {
			errs = append(errs, &fault.Error{Path: path, Want: "object", Got: jsontext.Kind(raw)})
			continue
		}
		c, err := callOf(path, o)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, c)
	}
	return found, errors.Join(errs...)
}

// callOf reads one call.
func callOf(path string, o jsontext.Object) (httpCall, error) {
	c := httpCall{
		path: path, api: loose.Text(o.Get("api")), vendor: loose.Text(o.Get("vendor")),
		url: loose.Text(o.Get("url")), status: statusOf(o),
		request:  bodyValue(path+".request", nonNull(o, "request")),
		response: bodyValue(path+".response", nonNull(o, "response")),
	}
	if stream := nonNull(o, "stream"); stream != nil && nonNull(o, "response") == nil {
		var err error
		if c.response, err = streamValue(path+".stream", stream); err != nil {
			return c, atPath(path+".stream", err)
		}
	}
	return c, nil
}

// wireAt returns the format that the path of a URL tells, nil if it tells none.
func wireAt(at *url.URL) *wire {
	path := strings.TrimSuffix(at.Path, "/")
	for _, p := range []struct {
		end  string
		wire *wire
	}{
		{"/chat/completions", openAIChat},
		{"/v1/messages", anthropic},
		{"/anthropic/messages", anthropic},
		{"/responses", openAIResponses},
		{":generateContent", gemini},
		{":streamGenerateContent", gemini},
	} {
		if strings.HasSuffix(path, p.end) {
			return p.wire
		}
	}
	return nil
}

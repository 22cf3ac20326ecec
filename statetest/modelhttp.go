package statetest

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/wire"
)

// RoundTrip answers a request of an SDK. The end of the path determines the
// format: /chat/completions, /responses, /v1/messages, :generateContent or
// :streamGenerateContent.
func (m *Model) RoundTrip(req *http.Request) (*http.Response, error) {
	m.report.Helper()
	ctx, agent := req.Context(), ""
	if st, ok := state.FromContext(ctx); ok {
		m.secrets.Add(st)
		agent = st.Agent()
	}
	var body []byte
	if req.Body != nil {
		defer req.Body.Close()
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	format := wire.FormatOf(req)
	if format == nil {
		m.errorf("statetest: %s %s is no request to a model", req.Method, req.URL.Path)
		return response(req, http.StatusNotFound, refusalBody("no model answers at this path")), nil
	}
	decoded, err := format.DecodeRequest(body)
	if err != nil {
		m.errorf("statetest: a request to %s cannot be read: %v", format, err)
		return response(req, http.StatusBadRequest, refusalBody("the body cannot be read")), nil
	}
	r := asked{overHTTP: true, tools: decoded.Tools, body: string(body)}
	r.Request = Request{Agent: agent, Messages: decoded.Messages, Settings: decoded.Settings, Format: format}
	a, err := m.ask(ctx, r)
	if status, ok := err.(*StatusError); ok {
		return response(req, status.Code, []byte(status.Body)), nil
	}
	if err != nil {
		return nil, err
	}
	m.checkOffered(r, a)
	if body, err = a.body(format); err != nil {
		return nil, err
	}
	return a.send(req, decoded.Settings, body)
}

// send returns the response to a request, streamed if the request asks for that.
// A body that is cut without being streamed never comes.
func (a answer) send(req *http.Request, settings state.JSON, body []byte) (*http.Response, error) {
	format := wire.FormatOf(req)
	members, _ := jsontext.Members([]byte(settings)) // decoded
	streams := members.Bool("stream") || strings.HasSuffix(req.URL.Path, ":streamGenerateContent")
	switch {
	case !streams && a.from.isCut:
		return nil, io.ErrUnexpectedEOF
	case !streams:
		return response(req, http.StatusOK, body), nil
	}
	list, err := streamOf(format, body)
	if err != nil {
		return nil, err
	}
	if a.from.isCut {
		list = cutAfter(list, a.from.cut)
	}
	r := response(req, http.StatusOK, sse(list))
	r.Header.Set("Content-Type", "text/event-stream")
	r.ContentLength = -1
	if a.from.isCut {
		r.Body = io.NopCloser(brokenBody{r.Body})
	}
	return r, nil
}

// checkOffered reports the calls of an answer for which the request offers no
// tool, or one that does not accept their input.
func (m *Model) checkOffered(r asked, a answer) {
	m.report.Helper()
	for _, message := range a.output {
		calls, ok := message.(state.ToolCallMessage)
		if !ok {
			continue
		}
		for _, call := range calls.Calls() {
			i := slices.IndexFunc(r.tools, func(t provider.Tool) bool { return t.Name == call.Name })
			if i < 0 {
				m.errorf("statetest: %s calls %s, which the request does not offer: it has %s",
					a.from.shown(m.secrets.Mask), call.Name, toolNames(r.tools))
				continue
			}
			if err := checkInput(r.tools[i].Schema, call.Input); err != nil {
				m.errorf("statetest: the input of %s is not what the request asks for: %v\n      input  %s\n      schema %s",
					call.Name, err, call.Input, r.tools[i].Schema)
			}
		}
	}
}

func toolNames(tools []provider.Tool) string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return cmp.Or(strings.Join(names, ", "), "no tools")
}

// response returns a response with a body of JSON.
func response(req *http.Request, status int, body []byte) *http.Response {
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
	}
}

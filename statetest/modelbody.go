package statetest

import (
	"cmp"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider"
)

// body returns the response of a provider that gives the answer.
func (a answer) body(f *provider.Format) ([]byte, error) {
	body, omitted, err := Response(f, "statetest",
		state.InferenceResult{ID: a.id, Output: a.output, StopWord: a.from.stop})
	if err == nil && len(omitted) > 0 {
		err = fmt.Errorf("%s cannot express %s", f, omitted[0])
	}
	if err != nil {
		return nil, fmt.Errorf("statetest: reply %d: %w", a.from.number, err)
	}
	return body, nil
}

// result returns the answer as the provider's response says it. If it is cut, it
// is what has come of a stream.
func (a answer) result(f *provider.Format) (state.InferenceResult, error) {
	body, err := a.body(f)
	if err != nil {
		return state.InferenceResult{}, err
	}
	if !a.from.isCut {
		return f.DecodeResponse(body)
	}
	list, err := streamOf(f, body)
	if err != nil {
		return state.InferenceResult{}, err
	}
	stream := f.Stream()
	for _, e := range cutAfter(list, a.from.cut) {
		if err := stream.Event(e.data); err != nil {
			return state.InferenceResult{}, err
		}
	}
	return stream.Result()
}

// refusalBody returns a body that all SDKs read as an error.
func refusalBody(problem string) []byte {
	text := jsontext.AppendQuote(nil, cmp.Or(problem, "refused"))
	detail := jsontext.Object{}.WithString("type", "invalid_request_error").With("message", text).
		With("code", []byte("400")).WithString("status", "INVALID_ARGUMENT")
	return jsontext.Object{}.WithString("type", "error").With("error", detail.JSON()).JSON()
}

package provider_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

// membersOf are the names of the members that objects have, by their places in a
// body. The type of an object belongs to its place.
type membersOf map[string]map[string]string

// add adds the members of a value, whose example is at.
func (m membersOf) add(place string, value any, at string) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			m.add(place+"[]", element, at)
		}
	case map[string]any:
		if typ, ok := value["type"].(string); ok {
			place += "<" + typ + ">"
		}
		if m[place] == nil {
			m[place] = map[string]string{}
		}
		for name, inner := range value {
			m[place][name] = at
			switch name {
			case "input", "args", "arguments", "response", "container": // what a model says, not the API
			default:
				m.add(place+"."+name, inner, at)
			}
		}
	}
}

// addSaid adds what a result sends back.
func (m membersOf) addSaid(t *testing.T, format *provider.Format, result state.InferenceResult, at string) {
	t.Helper()
	body, _, err := format.EncodeRequest(provider.Request{Messages: result.Output})
	require.NoError(t, err, at)
	var value any
	require.NoError(t, json.Unmarshal(body, &value), at)
	m.add("$", value, at)
}

// A message of a stream has no member that no whole answer has, in the recordings
// and in the rows of types: what only deltas have is not sent back. Objects of a type
// that no whole answer has are not compared.
func TestTracesHaveNoMembersOfDeltas(t *testing.T) {
	for _, target := range targets {
		t.Run(target.api, func(t *testing.T) {
			whole, streamed := membersOf{}, membersOf{}
			assemble := func(events [][]byte, at string) {
				stream := target.format.Stream()
				for _, event := range events {
					_ = stream.Event(event) // Result reports the error
				}
				if result, err := stream.Result(); err == nil {
					streamed.addSaid(t, target.format, result, at)
				}
			}
			decode := func(body []byte, at string) {
				if result, err := target.format.DecodeResponse(body); err == nil { // or no answer
					whole.addSaid(t, target.format, result, at)
				}
			}
			for _, e := range exchanges(t, target.api) {
				if at := fmt.Sprint(e.file, " ", e.name, " ", e.index); e.stream == nil {
					decode(e.response, at)
				} else {
					assemble(e.stream, at)
				}
			}
			for _, f := range recordings(t, "stream_"+target.api) {
				assemble(events(t, f), f.name)
			}
			for _, f := range recordings(t, "raw_"+target.api) {
				decode(f.data, f.name)
			}
			for name, f := range typeFormats {
				for _, row := range readRows(t, name) {
					if f.format == target.format && !row.isStop() && !row.isStreamed() {
						decode([]byte(f.answer(string(row.Example))), row.Type)
					}
				}
			}
			require.NotEmpty(t, streamed)
			for _, place := range slices.Sorted(maps.Keys(streamed)) {
				for _, name := range slices.Sorted(maps.Keys(streamed[place])) {
					if _, has := whole[place][name]; !has && whole[place] != nil {
						t.Errorf("%s: only streams have %s, as %s", place, name, streamed[place][name])
					}
				}
			}
		})
	}
}

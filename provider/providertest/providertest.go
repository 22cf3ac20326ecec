// Package providertest contains the laws of a [provider.Format], for tables of
// other APIs:
//
//	func TestBedrock(t *testing.T) {
//		format := provider.New("bedrock", transcript.Profile{}, bedrock)
//		providertest.Run(t, format, os.DirFS("testdata/bedrock"))
//	}
//
// The table bedrock is the example of [provider.New].
//
// # Laws
//
// The name of a failed test says what is wrong with the table.
//
//   - Requests: a request that is decoded and encoded is equal as JSON, with
//     unknown members in every object.
//   - Null: a member that may be missing may be null, and says the same.
//   - Changes: what a message says is encoded, and not what was decoded, if a
//     program has changed the message.
//   - Omissions: what a message of any origin says is in the body, or in an
//     [provider.Omission]. The same holds for what other formats make of the
//     recorded requests.
//   - Repair: a conversation that was repaired for the profile of the format is
//     valid for it, before it is encoded and after it was decoded again, and
//     has the same turns of the user.
//   - Tools: tools come back with their names, descriptions and schemas.
//   - Responses: what a response says can be sent back in a request, and says
//     the same. A recorded failure is an error.
//   - Usage: the counts of a response are those of its stream, and those that a
//     recording expects.
//   - Streams: a stream says what its response says, in pieces of any size, and
//     is incomplete without its end.
//   - Hostile: JSON of any other kind is an error or comes back equal. Nothing
//     panics.
//
// # Recordings
//
// The folder has files whose names end with .json, in any of its folders. A file
// is one of
//
//	{"exchanges":[{"status":200,"request":{…},"response":{…}},…]}
//	{"request":{…},"response":{…},"stream":[{"data":{…}},…]}
//	{…}         a response
//	[{…},{…}]   the events of a stream
//
// An exchange needs only one of request, response and stream. One with a
// response and a stream says that both are the same. A status of 400 or more
// marks a failure, and "broken":true a stream that ends early or with one. A
// member "usage" has the counts that are expected, as those of a [state.Usage].
package providertest

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

// Run tests a format on a folder of recordings. A law for which the folder has
// nothing is skipped, except those that need no recordings.
func Run(t *testing.T, format *provider.Format, recordings fs.FS) {
	s := &suite{format: format}
	if err := s.read(recordings); err != nil {
		t.Fatalf("recordings: %v", err)
	}
	runLaws(t, []law{
		{"Requests", s.requests}, {"Null", s.nulls}, {"Changes", s.changes}, {"Omissions", s.omissions},
		{"Repair", s.repairs},
		{"Tools", s.tools}, {"Responses", s.responses}, {"Usage", s.usage}, {"Streams", s.streams}, {"Hostile", s.hostile},
	})
}

// law is a law of a format.
type law struct {
	name string
	test func(t *testing.T)
}

func runLaws(t *testing.T, laws []law) {
	for _, law := range laws {
		t.Run(law.name, law.test)
	}
}

// suite tests one format.
type suite struct {
	format    *provider.Format
	exchanges []exchange
}

// exchange is a recorded exchange. What was not recorded is nil.
type exchange struct {
	name     string
	failed   bool // the response reports a failure
	broken   bool // the stream ends early or with a failure
	request  []byte
	response []byte
	events   [][]byte
	usage    *state.Usage // that is expected
}

// recorded is an exchange in a file.
type recorded struct {
	Status   int
	Broken   bool
	Request  json.RawMessage
	Response json.RawMessage
	Stream   []struct{ Data json.RawMessage }
	Usage    *state.Usage
}

// read reads the recordings.
func (s *suite) read(files fs.FS) error {
	return fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".json") {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if err := s.readFile(name, data); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

func (s *suite) readFile(name string, data []byte) error {
	var events []json.RawMessage
	if json.Unmarshal(data, &events) == nil {
		s.exchanges = append(s.exchanges, exchange{name: name, events: texts(events)})
		return nil
	}
	var file struct {
		recorded
		Exchanges []recorded
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return err
	}
	if file.Exchanges == nil && file.Request == nil && file.Response == nil && file.Stream == nil {
		file.recorded = recorded{Response: data} // whose members are the provider's
	}
	all := file.Exchanges
	if all == nil {
		all = []recorded{file.recorded}
	}
	for i, r := range all {
		e := exchange{name: fmt.Sprintf("%s[%d]", name, i), failed: r.Status >= 400, broken: r.Broken, usage: r.Usage}
		if string(r.Request) != "null" {
			e.request = r.Request
		}
		if string(r.Response) != "null" {
			e.response = r.Response
		}
		for _, event := range r.Stream {
			e.events = append(e.events, event.Data)
		}
		s.exchanges = append(s.exchanges, e)
	}
	return nil
}

func texts(raw []json.RawMessage) [][]byte {
	texts := make([][]byte, len(raw))
	for i, text := range raw {
		texts[i] = text
	}
	return texts
}

// each calls test for each exchange that has something, and skips the law if
// none has.
func (s *suite) each(t *testing.T, what string, has func(exchange) bool, test func(t *testing.T, e exchange)) {
	t.Helper()
	found := false
	for _, e := range s.exchanges {
		if has(e) {
			found = true
			t.Run(e.name, func(t *testing.T) { test(t, e) })
		}
	}
	if !found {
		t.Skipf("no %s is recorded", what)
	}
}

func hasRequest(e exchange) bool { return e.request != nil }

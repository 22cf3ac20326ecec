package provider_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

// typeRow says what becomes of a type that an API has: an entry of a conversation
// (item), a part or a member of one, a piece of a stream (delta, event), or a word
// for how an answer ended (stop, block). The rows of a format are a file in
// testdata/types. Module lab/sdks fails with the types of the newest SDKs that have
// no row.
type typeRow struct {
	Kind  string `json:"kind"`
	Type  string `json:"type"`
	Since string `json:"since,omitempty"` // the source, if no SDK has the type

	// Example is an entry with the type, the whole answer of a stop, the events of a
	// stream, or what is added to a block, an item or a message (delta).
	Example json.RawMessage `json:"example"`
	Whole   json.RawMessage `json:"whole,omitempty"` // what a stream makes

	// Gives are the messages that the example becomes, or what the word means.
	Gives  string   `json:"gives"`
	Deltas []string `json:"deltas,omitempty"` // the kinds of pieces that a stream passes on
	Left   []string `json:"left,omitempty"`   // the formats that cannot express it, or not all of it
}

// isStreamed reports whether the example is of a stream.
func (r typeRow) isStreamed() bool { return r.Kind == "delta" || r.Kind == "event" }

// isStop reports whether the example ends an answer.
func (r typeRow) isStop() bool { return r.Kind == "stop" || r.Kind == "block" }

// typeFormats have the types of the files, and make bodies of examples.
var typeFormats = map[string]struct {
	format  *provider.Format
	entries string                         // the member of a request with the entries
	answer  func(entry string) string      // of the entry, "" if no model says it
	events  func(pieces []string) []string // of what a delta adds to
	whole   func(made string) string
}{
	"openai_chat": {provider.OpenAI, "messages", ofRole("assistant", chatWhole),
		func(pieces []string) []string { return chatEvents(pieces...) }, chatWhole},
	"openai_responses": {provider.OpenAIResponses, "input", func(item string) string {
		if role := member(item, "role"); role != "" && role != "assistant" {
			return ""
		}
		return responsesWhole(item)
	}, func(pieces []string) []string { return responsesEvents(pieces[0], pieces[1:]...) }, responsesWhole},
	"anthropic": {provider.Anthropic, "messages", ofRole("assistant", func(entry string) string {
		return `{"id":"m","type":"message","stop_reason":"end_turn",` + entry[1:]
	}), func(pieces []string) []string { return anthropicEvents(pieces[0], pieces[1:]...) }, anthropicWhole},
	"gemini": {provider.Gemini, "contents", ofRole("model", func(entry string) string {
		return `{"candidates":[{"content":` + entry + `,"finishReason":"STOP"}]}`
	}), func(pieces []string) []string { return geminiEvents(pieces...) }, geminiWhole},
}

// ofRole returns the answer of an entry of the model's role.
func ofRole(role string, answer func(entry string) string) func(entry string) string {
	return func(entry string) string {
		if member(entry, "role") != role {
			return ""
		}
		return answer(entry)
	}
}

// member returns a member that is a text.
func member(object, name string) string {
	var members map[string]any
	_ = json.Unmarshal([]byte(object), &members) // none if it is not an object
	text, _ := members[name].(string)
	return text
}

// Each type that the SDKs have becomes what its row says, comes back as it came,
// and is the same whole and streamed. After an intended change, run the test with
// -update and read the difference.
func TestTypes(t *testing.T) {
	for name, f := range typeFormats {
		t.Run(name, func(t *testing.T) {
			rows := readRows(t, name)
			seen := map[string]bool{}
			for i, row := range rows {
				key := row.Kind + "/" + row.Type
				require.False(t, seen[key], "%s is there twice", key)
				seen[key] = true
				t.Run(key, func(t *testing.T) {
					got := row
					got.Deltas, got.Left = nil, nil
					switch {
					case row.isStop():
						got.Gives = stopMeant(t, f.format, row)
					case row.isStreamed():
						got.Gives, got.Deltas = streamOf(t, name, row)
					default:
						got.Gives, got.Left = entryOf(t, name, row)
					}
					if *updateGolden {
						rows[i] = got
						return
					}
					require.Equal(t, row.Gives, got.Gives)
					require.Equal(t, row.Deltas, got.Deltas)
					require.Equal(t, row.Left, got.Left)
				})
			}
			if *updateGolden {
				require.NoError(t, os.WriteFile(rowsPath(name), writeRows(t, rows), 0o644))
			}
		})
	}
}

func rowsPath(name string) string { return filepath.Join("testdata", "types", name+".json") }

// readRows returns the rows of a format.
func readRows(t *testing.T, name string) (rows []typeRow) {
	t.Helper()
	data, err := os.ReadFile(rowsPath(name))
	require.NoError(t, err)
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&rows))
	return rows
}

// writeRows returns rows with one in a line.
func writeRows(t *testing.T, rows []typeRow) []byte {
	t.Helper()
	lines := make([]string, len(rows))
	for i, row := range rows {
		var line bytes.Buffer
		encoder := json.NewEncoder(&line)
		encoder.SetEscapeHTML(false)
		require.NoError(t, encoder.Encode(row))
		lines[i] = "  " + strings.TrimSpace(line.String())
	}
	return []byte("[\n" + strings.Join(lines, ",\n") + "\n]\n")
}

// typesPage has a table of the rows.
const typesPage = "../lab/reports/sdks.md"

// The page has the numbers of the rows, and the versions of the SDKs that they are of.
func TestTypesTable(t *testing.T) {
	var table strings.Builder
	table.WriteString("| format | entries | parts | of streams | ends | only for itself |\n|---|---|---|---|---|---|\n")
	for _, name := range []string{"openai_chat", "openai_responses", "anthropic", "gemini"} {
		entries, parts, pieces, ends, own := 0, 0, 0, 0, 0
		for _, row := range readRows(t, name) {
			switch {
			case row.isStop():
				ends++
			case row.isStreamed():
				pieces++
			case row.Kind == "item":
				entries++
			default:
				parts++
			}
			if len(row.Left) == len(typeFormats)-1 {
				own++
			}
		}
		fmt.Fprintf(&table, "| [`%s`](../../provider/testdata/types/%s.json) | %d | %d | %d | %d | %d |\n", typeFormats[name].format, name, entries, parts, pieces, ends, own)
	}
	page, err := os.ReadFile(typesPage)
	require.NoError(t, err)
	if *updateGolden {
		page = regexp.MustCompile(`\| format \| entries (.*\n\|)*.*\n`).ReplaceAllLiteral(page, []byte(table.String()))
		require.NoError(t, os.WriteFile(typesPage, page, 0o644))
	}
	require.Contains(t, string(page), table.String())
	versions, err := os.ReadFile("../lab/sdks/go.mod")
	require.NoError(t, err)
	for _, sdk := range []string{"openai-go/v3", "anthropic-sdk-go", "genai"} {
		version := regexp.MustCompile(`/` + sdk + ` (v\S+)`).FindStringSubmatch(string(versions))
		require.NotNil(t, version, sdk)
		require.Contains(t, string(page), sdk+" "+version[1])
	}
}

// stopMeant returns what the word of an answer means.
func stopMeant(t *testing.T, f *provider.Format, row typeRow) string {
	t.Helper()
	result, err := f.DecodeResponse(row.Example)
	require.NoError(t, err)
	require.Contains(t, []string{row.Type, ""}, result.StopWord)
	if result.Stop == "" {
		return "nothing"
	}
	return string(result.Stop)
}

// entryOf returns the messages of an entry, which goes back as it came from a
// request and from an answer, and the formats that leave something of it out.
func entryOf(t *testing.T, api string, row typeRow) (gives string, left []string) {
	t.Helper()
	f, entry := typeFormats[api], string(row.Example)
	body := []byte(`{"` + f.entries + `":[` + entry + `]}`)
	request := roundTrip(t, f.format, body)
	gives = inShort(request.Messages)
	if answer := f.answer(entry); answer != "" {
		result, err := f.format.DecodeResponse([]byte(answer))
		require.NoError(t, err)
		require.Equal(t, gives, inShort(result.Output))
		if member(entry, "content") == "" || api != "anthropic" { // an answer has blocks
			requireEncoded(t, f.format, result.Output, string(body), nil)
		}
	}
	for other, to := range typeFormats {
		_, omitted, err := to.format.EncodeRequest(provider.Request{Messages: request.Messages})
		require.NoError(t, err)
		if omitted != nil {
			left = append(left, other)
		}
	}
	slices.Sort(left)
	return gives, left
}

// streamOf returns the messages of a stream, which are those of the whole
// answer, and the kinds of pieces that it passes on.
func streamOf(t *testing.T, api string, row typeRow) (gives string, deltas []string) {
	t.Helper()
	f := typeFormats[api]
	var elements []json.RawMessage
	require.NoError(t, json.Unmarshal(row.Example, &elements))
	events := make([]string, len(elements))
	for i, element := range elements {
		events[i] = string(element)
	}
	whole := string(row.Whole)
	if row.Kind == "delta" {
		events, whole = f.events(events), f.whole(whole)
	}
	require.Contains(t, strings.Join(events, ""), `"`+row.Type+`"`)
	stream := f.format.Stream()
	stream.OnDelta = func(d provider.Delta) {
		if kind := d.Kind.String(); !slices.Contains(deltas, kind) {
			deltas = append(deltas, kind)
		}
	}
	for _, event := range events {
		_ = stream.Event([]byte(event)) // Result reports the error
	}
	result, err := stream.Result()
	var failed *provider.ResponseError
	if row.Whole == nil {
		require.ErrorAs(t, err, &failed)
	} else if _, wholeErr := f.format.DecodeResponse([]byte(whole)); wholeErr != nil {
		require.ErrorAs(t, err, &failed)
		require.EqualError(t, wholeErr, failed.Error())
	}
	if failed != nil {
		return "error " + failed.Code, deltas
	}
	require.NoError(t, err)
	requireWhole(t, f.format, events, whole)
	return inShort(result.Output), deltas
}

// inShort returns the types of messages, with their roles, and those of the parts
// of a text. A part without a type has that of its first member.
func inShort(msgs []state.Message) string {
	lines := make([]string, len(msgs))
	for i, m := range msgs {
		lines[i] = m.Type() + " " + m.Role()
		text, ok := m.(state.TextMessage)
		if !ok || !strings.HasPrefix(string(text.Content()), "[") {
			continue
		}
		var parts []json.RawMessage
		_ = json.Unmarshal([]byte(text.Content()), &parts) // checked with the message
		types := make([]string, len(parts))
		for i, part := range parts {
			if types[i] = member(string(part), "type"); types[i] == "" {
				first, _, _ := strings.Cut(string(part[2:]), `"`)
				types[i] = first
			}
		}
		lines[i] += " of " + strings.Join(types, " and ")
	}
	return strings.Join(lines, ", ")
}

package document

import (
	"slices"
	"strconv"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/persist"
)

// The fields of PartConversation that this package knows.
const (
	fieldEntries = "entries" // the numbers of messages; missing if the field messages is unset
	fieldResults = "results" // each a form.Result, see result
	fieldVersion = "version" // of the state
	fieldNumbers = "numbers" // see numbers.go
)

// knownFields are the values of these fields, nil for one that is not set. Each run
// changes all of them, so they are not in a map.
type knownFields [4]*fieldValue

const (
	knownEntries = iota
	knownResults
	knownVersion
	knownNumbers
)

var knownNames = [...]string{fieldEntries, fieldResults, fieldVersion, fieldNumbers}

// place returns the place of a known field, or nil.
func (k *knownFields) place(part, field string) **fieldValue {
	if part != PartConversation {
		return nil
	}
	if i := slices.Index(knownNames[:], field); i >= 0 {
		return &k[i]
	}
	return nil
}

// count returns how many of the fields are set.
func (k *knownFields) count() (n int) {
	for _, v := range k {
		if v != nil {
			n++
		}
	}
	return n
}

// list returns the list of a field, of elements of type E. It is empty if the field is
// not set.
func list[E any](v *fieldValue) *persist.List {
	if v != nil {
		return v.list
	}
	return newList([]E(nil))
}

// entryList returns the numbers of the messages of the conversation, as a list of
// int. It is empty if the field messages is unset.
func (d *Document) entryList() *persist.List { return list[int](d.known[knownEntries]) }

func (d *Document) entries() []int {
	l := d.entryList()
	return persist.SliceOf[int](l, 0, l.Len())
}

// resultList returns the results of the history, as a list of result.
func (d *Document) resultList() *persist.List { return list[result](d.known[knownResults]) }

func (d *Document) results() []result {
	l := d.resultList()
	return persist.SliceOf[result](l, 0, l.Len())
}

// resultPath is the place of a result.
func resultPath(i int) string { return jsontext.Index("$.conversation.results", i) }

// version returns the version of the state.
func (d *Document) version() uint64 {
	v := d.known[knownVersion]
	if v == nil {
		return 0
	}
	n, _ := readVersion(v.text)
	return n
}

func readVersion(text state.JSON) (uint64, bool) {
	const most = 1 << 53 // JSON readers lose larger integers; no state counts that far
	n, err := strconv.ParseUint(string(text), 10, 64)
	return n, err == nil && n <= most
}

func versionEffect(n uint64) state.Effect {
	return setEffect(PartConversation, fieldVersion, state.JSON(strconv.FormatUint(n, 10)))
}

// IsVersion reports whether an effect sets only the version of the state.
func IsVersion(e state.Effect) bool { return e.Part == PartConversation && e.Field == fieldVersion }

// nextVersion returns the effect that counts effects of this package as a
// version of the state.
func (d *Document) nextVersion() state.Effect { return versionEffect(d.version() + 1) }

// RedactConversation returns the value of an effect on PartConversation with
// the texts of results and the ids of runs passed through redact. Everything
// else in it is numbers of messages.
func RedactConversation(e state.Effect, redact func(string) string) state.JSON {
	if e.Field == fieldNumbers {
		text := state.JSON(redact(string(e.Value)))
		if !text.Valid() {
			text = state.JSONText(string(text))
		}
		return text
	}
	if e.Field != fieldResults {
		return e.Value
	}
	texts, ok := readAll(e.Value, func(data []byte) (state.JSON, bool) { return redactResult(data, redact) })
	if !ok {
		return state.JSONText(redact(string(e.Value)))
	}
	return arrayText(texts)
}

// redactResult returns the text of a result with its strings passed through
// redact.
func redactResult(data []byte, redact func(string) string) (state.JSON, bool) {
	members, err := jsontext.Members(data)
	if err != nil {
		return "", false
	}
	out := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(jsontext.AppendQuote(out, m.Name), ':')
		isTime := m.Name == "started_at" || m.Name == "created_at"
		if jsontext.Kind(m.Value) == "string" && !isTime {
			out = jsontext.AppendQuote(out, redact(jsontext.Unquote(m.Value)))
		} else {
			out = append(out, m.Value...)
		}
	}
	return state.JSON(append(out, '}')), true
}

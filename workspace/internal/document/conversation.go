package document

import (
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/persist"
)

// The fields of PartConversation.
const (
	fieldEntries = "entries" // the numbers of messages; missing if the field messages is unset
	fieldResults = "results" // each a form.Result whose ranges are of message numbers
	fieldVersion = "version" // of the state
	fieldNumbers = "numbers" // see numbers.go
)

// entries returns the numbers of the messages of the conversation, and false if
// the field messages is unset.
func (d *Document) entries() ([]int, bool, error) {
	v := d.get(PartConversation, fieldEntries)
	if v == nil {
		return nil, false, nil
	}
	l, err := d.entryList()
	if err != nil {
		return nil, false, err
	}
	return l.Slice(0, l.Len()).([]int), true, nil
}

// entryList is entries as a list of ints, which is empty if the field messages
// is unset.
func (d *Document) entryList() (*persist.List, error) {
	if l := d.entryNumbers.Load(); l != nil {
		return l, nil
	}
	l := persist.NewList(reflect.TypeFor[[]int]())
	if v := d.get(PartConversation, fieldEntries); v != nil {
		numbers, ok := v.numbers()
		if !ok {
			return nil, corrupt("$.conversation.entries", "not a list of messages")
		}
		l = l.Append(numbers, 0)
	}
	d.entryNumbers.Store(l)
	return l, nil
}

// noteEntries makes the numbers of the conversation those after an effect.
func (d *Document) noteEntries(e *state.Effect) {
	l := d.entryNumbers.Load()
	if l == nil {
		return
	}
	var added []int
	switch e.Kind {
	case state.EffectDropFirst, state.EffectTruncate, state.EffectRemoveAt:
	case state.EffectAppend, state.EffectInsert:
		numbers, ok := messageNumbers(e.Value)
		if !ok {
			d.entryNumbers.Store(nil)
			return
		}
		added = numbers
	default:
		d.entryNumbers.Store(nil)
		return
	}
	d.entryNumbers.Store(edited(l, e, added))
}

// results returns the texts of the results.
func (d *Document) results() ([]state.JSON, error) {
	v := d.get(PartConversation, fieldResults)
	if v == nil {
		return nil, nil
	}
	texts, ok := v.texts()
	if !ok {
		return nil, corrupt("$.conversation.results", "not a list")
	}
	return texts, nil
}

// resultPath is the place of a result.
func resultPath(i int) string { return jsontext.Index("$.conversation.results", i) }

// decodeResult decodes the result with an index into v.
func decodeResult(text state.JSON, i int, v any) error {
	if json.Unmarshal([]byte(text), v) != nil {
		return corrupt(resultPath(i), "not a result")
	}
	return nil
}

// version returns the version of the state.
func (d *Document) version() (uint64, error) {
	v := d.get(PartConversation, fieldVersion)
	if v == nil {
		return 0, nil
	}
	const most = 1 << 53 // JSON readers lose larger integers; no state counts that far
	n, err := strconv.ParseUint(string(v.json()), 10, 64)
	if err != nil || n > most {
		return 0, corrupt("$.conversation.version", "not a version")
	}
	return n, nil
}

func versionEffect(n uint64) state.Effect {
	return setEffect(PartConversation, fieldVersion, state.JSON(strconv.FormatUint(n, 10)))
}

// IsVersion reports whether an effect sets only the version of the state.
func IsVersion(e state.Effect) bool { return e.Part == PartConversation && e.Field == fieldVersion }

// nextVersion returns the effect that counts effects of this package as a
// version of the state.
func (d *Document) nextVersion() (state.Effect, error) {
	n, err := d.version()
	return versionEffect(n + 1), err
}

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
	elements, err := jsontext.Elements([]byte(e.Value))
	texts := make([]state.JSON, len(elements))
	for i, data := range elements {
		if err == nil {
			texts[i], err = redactResult(data, redact)
		}
	}
	if err != nil {
		return state.JSONText(redact(string(e.Value)))
	}
	return arrayText(texts)
}

// redactResult returns the text of a result with its strings passed through
// redact.
func redactResult(data []byte, redact func(string) string) (state.JSON, error) {
	members, err := jsontext.Members(data)
	if err != nil {
		return "", err
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
	return state.JSON(append(out, '}')), nil
}

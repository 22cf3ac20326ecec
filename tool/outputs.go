package tool

import "github.com/agentstate/state/internal/jsontext"

// outputs returns what a result writes to fields.
func (t *Tool) outputs(r result) ([]output, error) {
	if len(t.sinks) == 0 {
		return nil, nil
	}
	var room [8][]byte
	texts, err := t.sinkTexts(room[:0], []byte(r.text))
	if err != nil {
		return nil, err
	}
	outputs := make([]output, 0, len(t.sinks))
	for i, text := range texts {
		s := &t.sinks[i]
		if text == nil {
			continue
		}
		write, err := s.delete, error(nil)
		if string(text) != "null" && !isNil(memberOf(r.value, s.key)) {
			write, err = s.decode(text)
		}
		if err != nil {
			return nil, &OutputError{Tool: t.name, Field: s.field, Err: err}
		}
		if write != nil {
			outputs = append(outputs, output{s.field, write})
		}
	}
	return outputs, nil
}

// sinkTexts appends the part of a result that each sink takes, or nil.
func (t *Tool) sinkTexts(texts [][]byte, data []byte) ([][]byte, error) {
	for i := range t.sinks {
		texts = append(texts, nil)
		if t.sinks[i].key == "" {
			texts[i] = data
		}
	}
	if !t.keyed || string(data) == "null" {
		return texts, nil
	}
	err := jsontext.EachMember(data, func(name []byte, value jsontext.Span) error {
		for i := range t.sinks {
			if key := t.sinks[i].key; key != "" && key == string(name) {
				texts[i] = value.In(data)
			}
		}
		return nil
	})
	if err != nil {
		return nil, &OutputError{Tool: t.name,
			Err: badResult("the result is not an object but " + jsontext.Kind(data) + ": its keys cannot be written to fields")}
	}
	return texts, nil
}

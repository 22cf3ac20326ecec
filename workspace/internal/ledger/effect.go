package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// storedEffect is an effect on a document as a record has it: an array of its
// kind, its part and its field, then the number and the value that the kind has,
// and then an object with its agent and its cause, if it has one of them.
type storedEffect state.Effect

// effectSigns are the members of the object at the end of a storedEffect.
type effectSigns struct {
	Agent string `json:"agent,omitempty"`
	Cause string `json:"cause,omitempty"`
}

// effectMembers returns whether effects of a kind have a number and a value.
func effectMembers(kind state.EffectKind) (hasNumber, hasValue bool, err error) {
	switch kind {
	case state.EffectSet, state.EffectAppend:
		return false, true, nil
	case state.EffectInsert:
		return true, true, nil
	case state.EffectDropFirst, state.EffectTruncate, state.EffectRemoveAt:
		return true, false, nil
	case state.EffectDelete:
		return false, false, nil
	}
	return false, false, fmt.Errorf("workspace: an effect of the kind %q", kind)
}

// appendEffect appends an effect as a record has it.
func appendEffect(b []byte, e *state.Effect) ([]byte, error) {
	hasNumber, hasValue, err := effectMembers(e.Kind)
	if err != nil {
		return nil, err
	}
	b = jsontext.AppendQuote(append(b, '['), string(e.Kind))
	b = jsontext.AppendQuote(append(b, ','), e.Part)
	b = jsontext.AppendQuote(append(b, ','), e.Field)
	if hasNumber {
		b = strconv.AppendInt(append(b, ','), int64(e.N), 10)
	}
	if hasValue {
		b = append(b, ',')
		n := len(b)
		b = append(b, e.Value...)
		b = jsontext.AppendCompact(b[:n], b[n:]) // which writes nothing that it has not read
	}
	if e.Agent != "" || e.Cause != "" {
		b = append(b, ',', '{')
		b = appendOptional(b, "agent", e.Agent)
		b = append(appendOptional(b, "cause", e.Cause), '}')
	}
	return append(b, ']'), nil
}

var errEffect = errors.New("not an effect")

// UnmarshalJSON is the inverse of appendEffect.
func (e *storedEffect) UnmarshalJSON(data []byte) error {
	elements, err := jsontext.Elements(data)
	if err != nil || len(elements) < 3 {
		return errEffect
	}
	for _, text := range elements[:3] {
		if jsontext.Kind(text) != "string" {
			return errEffect
		}
	}
	*e = storedEffect{
		Kind: state.EffectKind(jsontext.Unquote(elements[0])),
		Part: jsontext.Unquote(elements[1]), Field: jsontext.Unquote(elements[2]),
	}
	hasNumber, hasValue, err := effectMembers(e.Kind)
	if err != nil {
		return err
	}
	rest := elements[3:]
	if hasNumber && len(rest) > 0 {
		if e.N, err = strconv.Atoi(string(rest[0])); err != nil {
			return errEffect
		}
		rest, hasNumber = rest[1:], false
	}
	if hasValue && len(rest) > 0 {
		e.Value, rest, hasValue = state.JSON(rest[0]), rest[1:], false
	}
	if len(rest) == 1 {
		var signs effectSigns
		if json.Unmarshal(rest[0], &signs) != nil {
			return errEffect
		}
		e.Agent, e.Cause, rest = signs.Agent, signs.Cause, nil
	}
	if hasNumber || hasValue || len(rest) > 0 {
		return errEffect
	}
	return nil
}

package state

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentstate/state/internal/jsontext"
)

// JSON is a JSON text that never changes: the arguments of a tool call, the
// result of a tool, a member that this library does not know. Numbers keep
// their spelling, so that 9007199254740993 and 1.0 stay what they are. The
// empty string is not JSON. It stands for an absent value and marshals as null.
//
// Any string can be converted to JSON. [JSON.Valid] tells whether it is JSON.
type JSON string

// jsonDepth is the nesting up to which a JSON is valid, as in encoding/json.
const jsonDepth = 10_000

// JSONText returns s as a JSON string. Invalid UTF-8 is replaced by U+FFFD.
func JSONText(s string) JSON {
	return JSON(jsontext.AppendQuote(make([]byte, 0, len(s)+2), s))
}

// JSONOf returns v as encoding/json writes it, but does not escape <, > and &.
// It fails if encoding/json fails, and if a Marshaler or a json.RawMessage
// inside v writes text that is not [JSON.Valid].
func JSONOf(v any) (JSON, error) {
	data, err := jsontext.Marshal(v)
	if err != nil {
		return "", jsonError("JSON", err)
	}
	if err := jsontext.Check(data, jsontext.Limits{Depth: jsonDepth}); err != nil {
		return "", jsonError("JSON", err)
	}
	return JSON(data), nil
}

// Valid reports whether j is one JSON value in UTF-8 in which no object has a
// member twice and no string has half a surrogate pair.
func (j JSON) Valid() bool {
	return jsontext.Check([]byte(j), jsontext.Limits{Depth: jsonDepth}) == nil
}

// Text returns the content of j if j is a JSON string, and j itself otherwise.
func (j JSON) Text() string {
	trimmed := JSON(strings.Trim(string(j), " \t\r\n"))
	if n := len(trimmed); n >= 2 && trimmed[0] == '"' && trimmed[n-1] == '"' {
		// Most strings have no escapes. They are checked without a copy.
		if content := string(trimmed[1 : n-1]); utf8.ValidString(content) && !strings.ContainsFunc(content, isEscaped) {
			return content
		}
		if trimmed.Valid() {
			return trimmed.text()
		}
	}
	return string(j)
}

// isEscaped reports whether a JSON string must escape r.
func isEscaped(r rune) bool { return r < ' ' || r == '"' || r == '\\' }

// text is Text of a valid j without space around it. It allocates only if there
// are escapes.
func (j JSON) text() string {
	if j == "" || j[0] != '"' {
		return string(j)
	}
	if strings.IndexByte(string(j), '\\') < 0 {
		return string(j[1 : len(j)-1])
	}
	return jsontext.Unquote([]byte(j))
}

// Equal reports whether both are the same JSON value. Space, the order of
// members and escapes in strings do not count. Numbers are the same only if
// they are spelled the same. A text that is not valid equals only itself.
func (j JSON) Equal(other JSON) bool {
	if j == other {
		return true
	}
	a, err := jsontext.Decode([]byte(j), jsontext.Limits{Depth: jsonDepth})
	if err != nil {
		return false
	}
	b, err := jsontext.Decode([]byte(other), jsontext.Limits{Depth: jsonDepth})
	return err == nil && reflect.DeepEqual(a, b)
}

// Decode stores the value in dst as json.Unmarshal does, with two differences:
// a number becomes a json.Number if dst leaves its type open, and j must be
// valid.
func (j JSON) Decode(dst any) error {
	if err := jsontext.Check([]byte(j), jsontext.Limits{Depth: jsonDepth}); err != nil {
		return jsonError("JSON", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(j)))
	dec.UseNumber()
	if err := dec.Decode(dst); err != nil {
		return jsonError("JSON", err)
	}
	return nil
}

// MarshalJSON returns the text, or null for "". It does not check the text:
// encoding/json does, and also removes space and, by default, escapes <, > and
// &.
func (j JSON) MarshalJSON() ([]byte, error) {
	if j == "" {
		return []byte("null"), nil
	}
	return []byte(j), nil
}

// UnmarshalJSON copies data without the space between its tokens. It fails if
// the text is not [JSON.Valid]. A null is kept: the JSON is "null", not "".
func (j *JSON) UnmarshalJSON(data []byte) error {
	if err := jsontext.Check(data, jsontext.Limits{Depth: jsonDepth}); err != nil {
		return jsonError("JSON", err)
	}
	*j = JSON(jsontext.AppendCompact(make([]byte, 0, len(data)), data))
	return nil
}

// Time is an instant in UTC, in the form in which people and models write it.
// It is read from RFC 3339, or from 2006-01-02, which means the start of that
// day. The zero Time is the zero [time.Time]. Schemas in JSON call the type
// "date".
type Time struct{ t time.Time }

// TimeOf returns the instant of t, without its location and its monotonic
// clock reading.
func TimeOf(t time.Time) Time { return Time{t.UTC().Round(0)} }

// ParseTime parses RFC 3339 or 2006-01-02. The error is a [TypeError] that does
// not hold the text.
func ParseTime(text string) (Time, error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return TimeOf(t), nil
		}
	}
	return Time{}, &TypeError{Field: "date", Path: "$", Want: "RFC 3339 or 2006-01-02", Got: "other text"}
}

// Time returns the instant in UTC.
func (t Time) Time() time.Time { return t.t.UTC() }

// Equal reports whether t and other are the same instant.
func (t Time) Equal(other Time) bool { return t.t.Equal(other.t) }

// String returns the instant as 2006-01-02 if it is the start of a day, and in
// RFC 3339 otherwise.
func (t Time) String() string {
	if t.t.Equal(t.t.Truncate(24 * time.Hour)) {
		return t.Time().Format(time.DateOnly)
	}
	return t.Time().Format(time.RFC3339Nano)
}

// MarshalText returns the text of String. Years outside 0 to 9999, which RFC
// 3339 cannot express, are a [TypeError].
func (t Time) MarshalText() ([]byte, error) {
	if y := t.Time().Year(); y < 0 || y > 9999 {
		return nil, &TypeError{Field: "date", Path: "$", Want: "a year from 0 to 9999", Got: strconv.Itoa(y)}
	}
	return []byte(t.String()), nil
}

// UnmarshalText sets t to the instant that [ParseTime] reads from text.
func (t *Time) UnmarshalText(text []byte) error {
	parsed, err := ParseTime(string(text))
	if err == nil {
		*t = parsed
	}
	return err
}

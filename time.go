package state

import (
	"strconv"
	"time"
)

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

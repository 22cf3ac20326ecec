package state

import (
	"strconv"
	"time"
)

// Date is a point in time as people and models write it: it is read from
// RFC 3339 or from 2006-01-02, which is the start of that day in UTC. It keeps
// UTC, and two dates are equal if they are the same instant. The zero Date is
// the zero [time.Time].
type Date struct{ t time.Time }

// DateOf returns the date of a time.
func DateOf(t time.Time) Date { return Date{t.UTC().Round(0)} }

// ParseDate reads a date from RFC 3339 or 2006-01-02.
func ParseDate(text string) (Date, error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return DateOf(t), nil
		}
	}
	return Date{}, &TypeError{Field: "date", Path: "$", Want: "RFC 3339 or 2006-01-02", Got: "other text"}
}

// Time returns the instant in UTC.
func (d Date) Time() time.Time { return d.t.UTC() }

// Equal reports whether both are the same instant.
func (d Date) Equal(other Date) bool { return d.t.Equal(other.t) }

// String returns the date in RFC 3339, or as 2006-01-02 if it is the start of a
// day.
func (d Date) String() string {
	if d.t.Equal(d.t.Truncate(24 * time.Hour)) {
		return d.Time().Format(time.DateOnly)
	}
	return d.Time().Format(time.RFC3339Nano)
}

// MarshalText returns String.
func (d Date) MarshalText() ([]byte, error) {
	if y := d.Time().Year(); y < 0 || y > 9999 {
		return nil, &TypeError{Field: "date", Path: "$", Want: "a year from 0 to 9999", Got: strconv.Itoa(y)}
	}
	return []byte(d.String()), nil
}

// UnmarshalText is ParseDate.
func (d *Date) UnmarshalText(text []byte) error {
	parsed, err := ParseDate(string(text))
	if err == nil {
		*d = parsed
	}
	return err
}

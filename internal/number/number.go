// Package number converts between the number types of Go and the numbers of
// JSON, and reports when that would change a value.
//
// A normalised number is an int64, a uint64 that int64 does not hold, or a
// float64. Its kind is that of its source: a float64 stays one even if it is
// whole, and so does a text with a fraction or an exponent, such as 5.0 or 1e3.
// [Append] and [Normalize] keep the kind. A source is one of these types or a
// json.Number.
package number

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// A decimal is the exact value of the text of a number: ±0.digits × 10^exp.
// digits neither begins nor ends with a zero, and is empty for zero, so that
// equal numbers are equal decimals.
type decimal struct {
	negative bool
	digits   string
	exp      int
}

// IsValid reports whether text is a JSON number, or empty as the zero
// json.Number.
func IsValid(text string) bool {
	_, ok := parseDecimal(text)
	return ok || text == ""
}

// parseDecimal reads a JSON number. It cuts exponents to 29 bits: those are far
// beyond the range of any float, and sums of them do not overflow.
func parseDecimal(s string) (d decimal, ok bool) {
	s, d.negative = strings.CutPrefix(s, "-")
	mantissa, exponent := s, "0"
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exponent = s[:i], s[i+1:]
	}
	whole, fraction, hasDot := strings.Cut(mantissa, ".")
	exponent, down := strings.CutPrefix(exponent, "-")
	if !down {
		exponent = strings.TrimPrefix(exponent, "+")
	}
	if !isDigits(whole) || len(whole) > 1 && whole[0] == '0' || hasDot && !isDigits(fraction) || !isDigits(exponent) {
		return d, false
	}
	d.exp = 1 << 29
	if exponent = strings.TrimLeft(exponent, "0"); len(exponent) < 9 {
		d.exp, _ = strconv.Atoi("0" + exponent)
	}
	if down {
		d.exp = -d.exp
	}
	d.exp += len(whole)
	d.digits = whole + fraction
	trimmed := strings.TrimLeft(d.digits, "0")
	d.exp -= len(d.digits) - len(trimmed)
	d.digits = strings.TrimRight(trimmed, "0")
	if d.digits == "" {
		d.exp = 0
	}
	return d, true
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// integerDigits returns the digits of an integer of at most 20 digits, which is
// the length of the largest uint64.
func (d decimal) integerDigits() (string, bool) {
	if d.exp < len(d.digits) || d.exp > 20 {
		return "", false
	}
	return d.digits + strings.Repeat("0", d.exp-len(d.digits)), true
}

func (d decimal) int64() (int64, bool) {
	s, ok := d.integerDigits()
	if !ok || s == "" {
		return 0, ok
	}
	if d.negative {
		s = "-" + s
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

func (d decimal) uint64() (uint64, bool) {
	s, ok := d.integerDigits()
	if !ok || s == "" {
		return 0, ok
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && !d.negative
}

// floatOf returns the float that text spells. A fraction is rounded, because
// decimal fractions are rarely exact. An integer must be exactly the float, or
// its shortest spelling: 1e23 is a float, 100000000000000000000001 is not.
func floatOf(text string, bits int) (float64, bool) {
	d, ok := parseDecimal(text)
	if !ok {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, bits)
	if err != nil || f == 0 && d.digits != "" {
		return 0, false
	}
	if d.exp < len(d.digits) || d.digits == "" {
		return f, true
	}
	shortest, _ := parseDecimal(strconv.FormatFloat(f, 'e', -1, bits))
	if shortest == d {
		return f, true
	}
	exact, _ := new(big.Int).SetString(d.digits+strings.Repeat("0", d.exp-len(d.digits)), 10)
	if d.negative {
		exact.Neg(exact)
	}
	whole, _ := big.NewFloat(f).Int(nil)
	return f, whole.Cmp(exact) == 0
}

// Normalize returns the number that the text spells: a float64 if it has a
// fraction or an exponent, and otherwise an integer, in each case unless only
// the other kind holds the number. It reports false if no int64, uint64 or
// float64 holds it.
func Normalize(n json.Number) (any, bool) {
	if n == "" { // encoding/json writes it as 0
		return int64(0), true
	}
	d, ok := parseDecimal(string(n))
	if !ok {
		return nil, false
	}
	f, isFloat := floatOf(string(n), 64)
	if isFloat && spellsFloat(string(n)) {
		return f, true
	}
	if i, ok := d.int64(); ok {
		return i, true
	}
	if u, ok := d.uint64(); ok {
		return u, true
	}
	return f, isFloat
}

// spellsFloat reports whether a number is spelled as a float and not as an
// integer.
func spellsFloat[T string | []byte](number T) bool {
	for i := range len(number) {
		if c := number[i]; c == '.' || c == 'e' || c == 'E' {
			return true
		}
	}
	return false
}

// NormalizeUint returns the normalised number of an unsigned integer.
func NormalizeUint(u uint64) any {
	if u <= math.MaxInt64 {
		return int64(u)
	}
	return u
}

// IsFinite reports whether f is neither NaN nor infinite.
func IsFinite(f float64) bool { return f-f == 0 }

// ToInt returns a source as an int64. It reports false if that is not exact, or
// src is not a number.
func ToInt(src any) (int64, bool) {
	switch n := src.(type) {
	case int64:
		return n, true
	case uint64:
		return int64(n), n <= math.MaxInt64
	case float64:
		return int64(n), n == math.Trunc(n) && n >= -(1<<63) && n < 1<<63
	case json.Number:
		if d, ok := parseDecimal(string(n)); ok {
			return d.int64()
		}
	}
	return 0, false
}

// ToUint returns a source as a uint64, as [ToInt] does.
func ToUint(src any) (uint64, bool) {
	switch n := src.(type) {
	case int64:
		return uint64(n), n >= 0
	case uint64:
		return n, true
	case float64:
		return uint64(n), n == math.Trunc(n) && n >= 0 && n < 1<<64
	case json.Number:
		if d, ok := parseDecimal(string(n)); ok {
			return d.uint64()
		}
	}
	return 0, false
}

// ToFloat returns a source as a float of 32 or 64 bits, as [ToInt] does. Text
// is rounded to the float that it spells.
func ToFloat(src any, bits int) (float64, bool) {
	switch n := src.(type) {
	case int64:
		return wholeFloat(strconv.FormatInt(n, 10), float64(n), bits)
	case uint64:
		return wholeFloat(strconv.FormatUint(n, 10), float64(n), bits)
	case float64:
		f := float64(float32(n))
		if bits == 64 || f == n {
			return n, true
		}
		// 0.1 spells a float32 and another float64: nothing is lost for a reader.
		return f, IsFinite(f) && strconv.FormatFloat(n, 'g', -1, 64) == strconv.FormatFloat(f, 'g', -1, 32)
	case json.Number:
		return floatOf(string(n), bits)
	}
	return 0, false
}

// wholeFloat returns f, the float nearest to an integer, and whether it is
// exactly the integer. A number that was kept as an integer does not spell a
// float.
func wholeFloat(text string, f float64, bits int) (float64, bool) {
	if bits == 32 {
		f = float64(float32(f))
	}
	return f, strconv.FormatFloat(f, 'f', 0, 64) == text
}

// AppendFloat appends a float in the spelling of encoding/json.
func AppendFloat(dst []byte, f float64, bits int) []byte {
	format := byte('f')
	abs := math.Abs(f)
	small, large := abs < 1e-6, abs >= 1e21
	if bits == 32 {
		small, large = float32(abs) < 1e-6, float32(abs) >= 1e21
	}
	if abs != 0 && (small || large) {
		format = 'e'
	}
	dst = strconv.AppendFloat(dst, f, format, -1, bits)
	if n := len(dst); format == 'e' && n >= 4 && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' {
		dst[n-2] = dst[n-1] // e-09 becomes e-9
		dst = dst[:n-1]
	}
	return dst
}

// Append appends an int64, uint64, float64 or json.Number as JSON from which
// Normalize returns the same kind of number: a whole float64 ends in .0.
func Append(dst []byte, n any) []byte {
	switch n := n.(type) {
	case int64:
		return strconv.AppendInt(dst, n, 10)
	case uint64:
		return strconv.AppendUint(dst, n, 10)
	case json.Number:
		if n == "" {
			return append(dst, '0')
		}
		return append(dst, n...)
	}
	start := len(dst)
	dst = AppendFloat(dst, n.(float64), 64)
	if !spellsFloat(dst[start:]) {
		dst = append(dst, ".0"...)
	}
	return dst
}

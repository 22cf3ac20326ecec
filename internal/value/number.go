package value

import (
	"encoding/json"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
)

// A decimal is the exact value of a number's text: ±0.digits × 10^exp. There
// are no zeros at the ends of digits; zero has no digits.
type decimal struct {
	negative bool
	digits   string
	exp      int
}

// parseDecimal reads a JSON number. Exponents beyond any float's are cut off.
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

// integer returns the digits of a whole number of at most 20 digits.
func (d decimal) integer() (string, bool) {
	if d.exp < len(d.digits) || d.exp > 20 {
		return "", false
	}
	return d.digits + strings.Repeat("0", d.exp-len(d.digits)), true
}

func (d decimal) int64() (int64, bool) {
	s, ok := d.integer()
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
	s, ok := d.integer()
	if !ok || s == "" {
		return 0, ok
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && !d.negative
}

// float returns the float that text spells. A fraction is rounded, as JSON's
// numbers are; a whole number must be the float's, or how the float is spelled.
func float(text string, bits int) (float64, bool) {
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

// normalNumber returns the int64, uint64 or float64 that the text spells.
func normalNumber(n json.Number) (any, bool) {
	if n == "" { // what encoding/json writes as 0
		return int64(0), true
	}
	d, ok := parseDecimal(string(n))
	if !ok {
		return nil, false
	}
	if i, ok := d.int64(); ok {
		return i, true
	}
	if u, ok := d.uint64(); ok {
		return u, true
	}
	f, ok := float(string(n), 64)
	return normalFloat(f), ok
}

// normalFloat returns an integer as int64 or, if only that holds it, as uint64.
func normalFloat(f float64) any {
	switch {
	case f != math.Trunc(f):
	case f >= -(1<<63) && f < 1<<63:
		return int64(f)
	case f >= 1<<63 && f < 1<<64:
		return uint64(f)
	}
	return f
}

func normalUint(u uint64) any {
	if u <= math.MaxInt64 {
		return int64(u)
	}
	return u
}

func finite(f float64) bool { return f-f == 0 }

// toInt, toUint and toFloat return what src is as such a number if that is
// exact. src is an int64, uint64, float64 or json.Number.
func toInt(src any) (int64, bool) {
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

func toUint(src any) (uint64, bool) {
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

func toFloat(src any, bits int) (float64, bool) {
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
		// 0.1 is the spelling of two different floats.
		return f, finite(f) && strconv.FormatFloat(n, 'g', -1, 64) == strconv.FormatFloat(f, 'g', -1, 32)
	case json.Number:
		return float(string(n), bits)
	}
	return 0, false
}

// wholeFloat is exact: a number kept as an integer is no spelling of a float.
func wholeFloat(text string, f float64, bits int) (float64, bool) {
	if bits == 32 {
		f = float64(float32(f))
	}
	return f, strconv.FormatFloat(f, 'f', 0, 64) == text
}

// appendFloat spells a float as encoding/json does.
func appendFloat(dst []byte, f float64, bits int) []byte {
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

// numberCodec is for json.Number, which stays the text it is.
type numberCodec struct{}

func (numberCodec) check(v reflect.Value, w *walk) error {
	s := v.String()
	if err := w.add(max(len(s), scalarSize)); err != nil {
		return err
	}
	if s != "" {
		if _, ok := parseDecimal(s); !ok {
			return w.fail("a number", "other text")
		}
	}
	return nil
}

func (numberCodec) isolate(reflect.Value, bool) error { return nil }

func (numberCodec) tree(v reflect.Value, w *walk) (any, error) {
	return tree(json.Number(v.String()), w)
}

func (numberCodec) convert(dst reflect.Value, src any, w *walk) error {
	switch n := src.(type) {
	case int64, uint64, float64:
		dst.SetString(string(appendNumber(nil, n)))
	case json.Number:
		dst.SetString(string(n))
	default:
		return w.fail("number", kindOf(src))
	}
	return nil
}

func appendNumber(dst []byte, n any) []byte {
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
	return appendFloat(dst, n.(float64), 64)
}

func (numberCodec) append(dst []byte, v reflect.Value) ([]byte, error) {
	return appendNumber(dst, json.Number(v.String())), nil
}

func (numberCodec) equal(a, b reflect.Value) bool {
	x, y := a.String(), b.String()
	return x == y || x == "" && y == "0" || x == "0" && y == ""
}

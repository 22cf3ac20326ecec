package statetest

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"io"
	"unicode/utf8"
)

// base64Digits has the value of each digit of both alphabets, and -1.
var base64Digits = func() (digits [256]int8) {
	for c := range digits {
		digits[c] = -1
	}
	for i, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" {
		digits[c] = int8(i)
	}
	digits['-'], digits['_'] = 62, 63
	return digits
}()

// decodeBase64 decodes the runs of digits of which skip are left out at the
// beginning: where base64 begins in a run is not known.
func decodeBase64(v *view, skip, least int) *view {
	d := v.decodedChild("base64")
	src := v.text
	for i := 0; i < len(src); i++ {
		if base64Digits[src[i]] < 0 {
			continue
		}
		start := i
		for i < len(src) && base64Digits[src[i]] >= 0 {
			i++
		}
		if i-start-skip < least {
			continue
		}
		bits, n := uint32(0), 0
		for at := start + skip; at < i; at++ {
			bits = bits<<6 | uint32(base64Digits[src[at]])
			n += 6
			if n >= 8 {
				n -= 8
				d.add(byte(bits>>n), at-1, at+1)
			}
		}
		last := len(d.to) - 1
		d.add(0, i, i)
		for i < len(src) && src[i] == '=' {
			i++
			d.to[last] = int32(i)
		}
		i-- // what ends the run may begin the next
	}
	return d.ifAny()
}

// ifAny returns the view, or nil if nothing was decoded.
func (v *view) ifAny() *view {
	if len(v.text) == 0 {
		return nil
	}
	return v
}

func hexDigit(c byte) int {
	switch {
	case isDigit(c):
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// minHexDigits are those of the shortest token that counts.
const minHexDigits = 2 * minDecodedToken

// decodeHex decodes the runs of digits, also if there is one space or colon
// between the bytes, of which skip are left out at the beginning.
func decodeHex(v *view, skip int) *view {
	d := v.decodedChild("hex")
	src := v.text
	for i := 0; i < len(src); i++ {
		if hexDigit(src[i]) < 0 {
			continue
		}
		start, begun := i, len(d.text)
		for i += skip; i+1 < len(src); i += 2 {
			if i > start+skip && i+2 < len(src) && (src[i] == ' ' || src[i] == ':') && hexDigit(src[i+1]) >= 0 {
				i++
			}
			high, low := hexDigit(src[i]), hexDigit(src[i+1])
			if high < 0 || low < 0 {
				break
			}
			d.add(byte(high<<4|low), i, i+2)
		}
		for i < len(src) && hexDigit(src[i]) >= 0 {
			i++
		}
		if len(d.text)-begun < minHexDigits/2 {
			d.text, d.from, d.to = d.text[:begun], d.from[:begun], d.to[:begun]
			continue
		}
		d.add(0, min(i, len(src)), min(i, len(src)))
	}
	return d.ifAny()
}

// decodeNumbers decodes lists of at least minDecodedToken numbers that are
// bytes, as fmt and encoding/json write arrays of bytes.
func decodeNumbers(v *view) *view {
	d := v.decodedChild("a list of bytes")
	src := v.text
	begun, last := 0, -1 // where the list began in d, and the last number ended
	finish := func() {
		if len(d.text)-begun < minDecodedToken {
			d.text, d.from, d.to = d.text[:begun], d.from[:begun], d.to[:begun]
		} else {
			d.add(0, last, last)
		}
		begun = len(d.text)
	}
	for i := 0; i < len(src); i++ {
		if !isDigit(src[i]) {
			continue
		}
		start, n := i, 0
		for ; i < len(src) && isDigit(src[i]); i++ {
			n = min(n*10+int(src[i]-'0'), 1000)
		}
		if last < 0 || len(bytes.Trim(src[last:start], " ,+\r\n\t")) > 0 {
			finish()
		}
		if n > 255 {
			finish()
			last = -1
			continue
		}
		d.add(byte(n), start, i)
		last = i
	}
	finish()
	return d.ifAny()
}

// maxNarrow is the last character that decodeUTF16 takes for text: those of
// most alphabets. Others would make text of any two bytes.
const maxNarrow = 0x06ff

// highBytes are the first bytes of the code units up to maxNarrow.
const highBytes = "\x00\x01\x02\x03\x04\x05\x06"

// decodeUTF16 decodes the runs of code units of text, from the first or the
// second byte on.
func decodeUTF16(v *view, skip int, order binary.ByteOrder) *view {
	d := v.decodedChild("UTF-16")
	src := v.text
	for i := skip; i+1 < len(src); i += 2 {
		begun := len(d.text)
		n := 0
		for ; i+1 < len(src); i += 2 {
			u := order.Uint16(src[i:])
			if u < ' ' && u != '\n' && u != '\t' && u != '\r' || u > maxNarrow {
				break
			}
			var c [utf8.UTFMax]byte
			for _, b := range c[:utf8.EncodeRune(c[:], rune(u))] {
				d.add(b, i, i+2)
			}
			n++
		}
		if n < minDecodedToken {
			d.text, d.from, d.to = d.text[:begun], d.from[:begun], d.to[:begun]
		} else {
			d.add(0, i, i)
		}
	}
	return d.ifAny()
}

// maxInflated bounds what is read of one compressed text.
const maxInflated = 16 << 20

// inflate calls push with what is compressed by gzip or zlib, while more
// returns true.
func inflate(v *view, push func(*view), more func() bool) {
	var r io.ReadCloser
	src := v.text
	for i := 0; i+2 < len(src) && more(); i++ {
		kind, head, tail := "", 0, 0
		switch {
		case src[i] == 0x1f && src[i+1] == 0x8b && src[i+2] == 8:
			kind, head, tail = "gzip", gzipHeader(src[i:]), 8
		case src[i] == 0x78 && src[i+1]&0x20 == 0 && (int(src[i])<<8|int(src[i+1]))%31 == 0:
			kind, head, tail = "zlib", 2, 4
		}
		if head == 0 {
			continue
		}
		in := bytes.NewReader(src[i+head:])
		if r == nil {
			r = flate.NewReader(in)
		} else if err := r.(flate.Resetter).Reset(in, nil); err != nil {
			return
		}
		out, _ := io.ReadAll(io.LimitReader(r, maxInflated)) // what is cut off is searched, too
		if len(out) < minDecodedToken {
			continue
		}
		d := v.decodedChild(kind)
		d.parts = false
		end := min(len(src), len(src)-in.Len()+tail)
		d.grow(len(out))
		for _, c := range out {
			d.add(c, i, end)
		}
		push(d)
	}
}

// gzipHeader returns the length of the header at the beginning, or 0.
func gzipHeader(src []byte) int {
	if len(src) < 10 {
		return 0
	}
	flags, n := src[3], 10
	if flags&4 != 0 { // extra
		if n+2 > len(src) {
			return 0
		}
		n += 2 + int(binary.LittleEndian.Uint16(src[n:]))
	}
	for _, flag := range []byte{8, 16} { // name, comment
		if flags&flag == 0 {
			continue
		}
		if n > len(src) {
			return 0
		}
		i := bytes.IndexByte(src[n:], 0)
		if i < 0 {
			return 0
		}
		n += i + 1
	}
	if flags&2 != 0 { // checksum
		n += 2
	}
	if n > len(src) {
		return 0
	}
	return n
}

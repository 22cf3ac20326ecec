package transcript

import "unicode/utf8"

// The weights of what a text has, in hundredths of a token. They were fitted to
// what o200k_base, a tokenizer of OpenAI, makes of one half of the texts in 960
// recorded conversations; of the texts in the other half that have 50 tokens or
// more, half are estimated within 3 %, and 95 % within 10 %.
const (
	wordWeight    = 96  // for a word, and each of its parts that begins with a capital
	letterWeight  = 7   // for each letter of a part behind the seventh
	tailWeight    = 25  // for each behind the fourteenth, where no dictionary has the word
	capitalWeight = 14  // for a capital behind a capital
	accentWeight  = 90  // for a letter that is not ASCII
	numberWeight  = 126 // for three digits
	blankWeight   = 73  // for two or more spaces
	lineWeight    = 131 // for line breaks, with the spaces around, unless marks are in front
	markWeight    = 120 // for a run of marks
	moreWeight    = 5   // for each mark of a run behind the first
	prefixWeight  = 56  // for a mark in front of a word

	wordLetters = 7
	longLetters = 14
)

// scripts has the weight of one rune of the writing systems without words of
// Latin letters, by the rune behind the last one.
var scripts = []struct {
	end    rune
	weight int
}{
	{0x00c0, 60}, {0x0370, 30}, {0x0590, 33}, // signs, Greek and Cyrillic
	{0x0900, 38}, {0x0e00, 29}, {0x0f00, 49}, // Hebrew and Arabic, those of India, Thai
	{0x1200, 67}, {0x2000, 60}, {0x2e80, 80}, // Hangul, others, punctuation and symbols
	{0xac00, 84}, {0xd7b0, 67}, {0x10000, 84}, // Chinese and Japanese, Hangul
	{0x20000, 130}, {utf8.MaxRune + 1, 84}, // emoji
}

// class is what a byte is in a text.
type class uint8

const (
	classWide class = iota // a byte of a rune that is not ASCII
	classLower
	classUpper
	classDigit
	classBlank
	classLine
	classMark
)

var classes = func() (of [256]class) {
	for c := range utf8.RuneSelf {
		switch {
		case 'a' <= c && c <= 'z':
			of[c] = classLower
		case 'A' <= c && c <= 'Z':
			of[c] = classUpper
		case '0' <= c && c <= '9':
			of[c] = classDigit
		case c == '\n':
			of[c] = classLine
		case c <= ' ':
			of[c] = classBlank
		default:
			of[c] = classMark
		}
	}
	return of
}()

// textTokens returns about how many tokens a text has.
func textTokens(s string) int {
	weight, before := 0, classMark
	for i := 0; i < len(s); {
		var w, n int
		c := classes[s[i]]
		switch c {
		case classDigit:
			n = runLen(s[i:], c)
			w = numberWeight * ((n + 2) / 3)
		case classBlank, classLine:
			w, n = spaces(s[i:], before == classMark)
		case classMark:
			n = runLen(s[i:], c)
			if w = markWeight + moreWeight*(n-1); n == 1 && i+1 < len(s) && beginsWord(s[i+1]) {
				w = prefixWeight
			}
		default:
			w, n = word(s[i:])
		}
		weight += w
		i += n
		before = c
	}
	return (weight + 50) / 100
}

func beginsWord(c byte) bool { return classes[c] == classLower || classes[c] == classUpper }

// runLen returns how many bytes at the beginning of a text are of a class.
func runLen(s string, c class) int {
	n := 0
	for n < len(s) && classes[s[n]] == c {
		n++
	}
	return n
}

// spaces returns the weight and the length of the spaces that a text begins with,
// behind marks or not. One space is part of the word behind it, and so is that of
// an indentation.
func spaces(s string, behindMarks bool) (weight, n int) {
	blanks := 0
	for ; n < len(s); n++ {
		if c := classes[s[n]]; c == classBlank {
			blanks++
		} else if c != classLine {
			break
		} else if blanks = 0; !behindMarks {
			weight = lineWeight
		}
	}
	if blanks > 1 {
		weight += blankWeight
	}
	return weight, n
}

// word returns the weight and the length of the word that a text begins with, or
// of a rune that is no part of one. Each part of a word is capitals, and then
// other letters.
func word(s string) (weight, n int) {
	for n < len(s) {
		capitals := runLen(s[n:], classUpper)
		n += capitals
		others := 0
		for n < len(s) {
			if classes[s[n]] == classLower {
				others++
				n++
				continue
			}
			if classes[s[n]] != classWide {
				break
			}
			r, size := utf8.DecodeRuneInString(s[n:])
			if !isLatin(r) {
				if n == 0 {
					return runeWeight(r), size
				}
				break
			}
			weight += accentWeight
			others++
			n += size
		}
		letters := capitals + others
		if letters == 0 {
			break
		}
		weight += wordWeight + capitalWeight*max(capitals-1, 0)
		weight += letterWeight*max(min(letters, longLetters)-wordLetters, 0) + tailWeight*max(letters-longLetters, 0)
	}
	return weight, n
}

// isLatin reports whether a rune that is not ASCII is a letter of the Latin
// alphabet.
func isLatin(r rune) bool { return 0xc0 <= r && r < 0x250 || 0x1e00 <= r && r < 0x1f00 }

func runeWeight(r rune) int {
	i := 0
	for scripts[i].end <= r {
		i++
	}
	return scripts[i].weight
}

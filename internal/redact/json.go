package redact

// A jsonReader follows a text as long as it is a sequence of JSON objects and
// arrays. It needs to know what a byte is before it has seen the whole text.
type jsonReader struct {
	state  jsonState
	after  jsonState // the string that is being read
	digits int       // missing of a \u escape
	rest   string    // missing of true, false or null
	stack  []byte    // the open containers
}

type jsonState uint8

const (
	jsonTop   jsonState = iota // between values at the top
	jsonFirst                  // after "[": a value or its end
	jsonValue                  // a value must follow
	jsonEnd                    // after a value
	jsonName                   // after "," in an object
	jsonNames                  // after "{": a name or its end
	jsonColon                  // after a name
	jsonString
	jsonEscape
	jsonHex
	jsonWord
	jsonMinus // the states of a number, by what was read last
	jsonZero
	jsonInteger
	jsonPoint
	jsonFraction
	jsonExponent
	jsonSign
	jsonPower
	jsonDead // it is not JSON
)

// maxJSONDepth is the depth to which encoding/json reads.
const maxJSONDepth = 10_000

// A jsonClass is what a byte of JSON is part of.
type jsonClass uint8

const (
	jsonPunctuation jsonClass = iota // also quotes and white space
	jsonContent                      // of a string
	jsonLiteral                      // a number, true, false or null
	jsonNone                         // the text is not JSON
)

func (j *jsonReader) reset() { *j = jsonReader{stack: j.stack[:0]} }

// step reads a byte.
func (j *jsonReader) step(b byte) jsonClass {
	class := j.read(b)
	if class == jsonNone {
		j.state = jsonDead
	}
	return class
}

func (j *jsonReader) read(b byte) jsonClass {
	switch j.state {
	case jsonString:
		switch {
		case b == '"':
			j.state = j.after
			return jsonPunctuation
		case b == '\\':
			j.state = jsonEscape
		case b < ' ':
			return jsonNone
		}
		return jsonContent
	case jsonEscape:
		switch b {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			j.state = jsonString
		case 'u':
			j.state, j.digits = jsonHex, 4
		default:
			return jsonNone
		}
		return jsonContent
	case jsonHex:
		if hexText.values[b] < 0 {
			return jsonNone
		}
		if j.digits--; j.digits == 0 {
			j.state = jsonString
		}
		return jsonContent
	case jsonDead:
		return jsonNone
	}
	if j.state >= jsonWord {
		if j.readLiteral(b) {
			return jsonLiteral
		}
		switch j.state {
		case jsonZero, jsonInteger, jsonFraction, jsonPower:
		default:
			if j.state != jsonWord || j.rest != "" {
				return jsonNone
			}
		}
		j.state = jsonEnd
	}
	return j.readStructure(b)
}

// readLiteral reads a byte of a number or a word. It reports false if the byte
// does not belong to it.
func (j *jsonReader) readLiteral(b byte) bool {
	digit := b >= '0' && b <= '9'
	switch s := j.state; {
	case s == jsonWord:
		if j.rest == "" || j.rest[0] != b {
			return false
		}
		j.rest = j.rest[1:]
	case s == jsonMinus && b == '0':
		j.state = jsonZero
	case (s == jsonMinus || s == jsonInteger) && digit:
		j.state = jsonInteger
	case (s == jsonZero || s == jsonInteger) && b == '.':
		j.state = jsonPoint
	case (s == jsonPoint || s == jsonFraction) && digit:
		j.state = jsonFraction
	case (s == jsonZero || s == jsonInteger || s == jsonFraction) && (b == 'e' || b == 'E'):
		j.state = jsonExponent
	case s == jsonExponent && (b == '+' || b == '-'):
		j.state = jsonSign
	case (s == jsonExponent || s == jsonSign || s == jsonPower) && digit:
		j.state = jsonPower
	default:
		return false
	}
	return true
}

// readStructure reads a byte between the strings and literals.
func (j *jsonReader) readStructure(b byte) jsonClass {
	if isBlank(b) {
		return jsonPunctuation
	}
	s := j.state
	value := s == jsonValue || s == jsonFirst
	switch {
	case (value || s == jsonTop) && (b == '{' || b == '['):
		if len(j.stack) == maxJSONDepth {
			return jsonNone
		}
		j.stack = append(j.stack, b)
		j.state = jsonFirst
		if b == '{' {
			j.state = jsonNames
		}
	case b == ']' && (s == jsonFirst || s == jsonEnd && j.in('[')),
		b == '}' && (s == jsonNames || s == jsonEnd && j.in('{')):
		j.stack = j.stack[:len(j.stack)-1]
		j.state = jsonEnd
		if len(j.stack) == 0 {
			j.state = jsonTop
		}
	case b == ',' && s == jsonEnd:
		j.state = jsonValue
		if j.in('{') {
			j.state = jsonName
		}
	case b == ':' && s == jsonColon:
		j.state = jsonValue
	case b == '"' && value:
		j.state, j.after = jsonString, jsonEnd
	case b == '"' && (s == jsonName || s == jsonNames):
		j.state, j.after = jsonString, jsonColon
	case value:
		return j.beginLiteral(b)
	default:
		return jsonNone
	}
	return jsonPunctuation
}

func (j *jsonReader) beginLiteral(b byte) jsonClass {
	switch {
	case b == '-':
		j.state = jsonMinus
	case b == '0':
		j.state = jsonZero
	case b >= '1' && b <= '9':
		j.state = jsonInteger
	case b == 't':
		j.state, j.rest = jsonWord, "rue"
	case b == 'f':
		j.state, j.rest = jsonWord, "alse"
	case b == 'n':
		j.state, j.rest = jsonWord, "ull"
	default:
		return jsonNone
	}
	return jsonLiteral
}

// in reports whether the innermost open container is of a kind.
func (j *jsonReader) in(open byte) bool { return len(j.stack) > 0 && j.stack[len(j.stack)-1] == open }

package transcript

import "github.com/agentstate/state"

// EstimateTokens returns about how many tokens a message has: a quarter of the
// bytes of its JSON, which is about right for text and code. The data of a
// picture or another file, and what else is spelled in base64, counts as 1 500
// tokens, however long it is. A message that is nil has none.
func EstimateTokens(m state.Message) int {
	if m == nil {
		return 0
	}
	raw := m.Raw()
	if len(raw) < dataBytes {
		return len(raw)/bytesPerToken + 1
	}
	tokens, plain, run := 1, 0, 0
	for i := 0; i <= len(raw); i++ {
		if i < len(raw) && isBase64(raw[i]) {
			run++
			continue
		}
		if run < dataBytes {
			plain += run
		} else {
			tokens += dataTokens
		}
		plain, run = plain+1, 0
	}
	return tokens + plain/bytesPerToken
}

const (
	bytesPerToken = 4
	dataBytes     = 4 << 10 // a text without a space that is longer is data
	dataTokens    = 1500
)

func isBase64(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_' || c == '='
}

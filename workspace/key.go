package workspace

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/agentstate/state/store"
)

// headPrefix begins the keys of all workspaces.
const headPrefix = "agent:workspace:"

// headKey returns the key of a user's head.
func headKey(user string) (string, error) {
	if user == "" || !utf8.ValidString(user) {
		return "", fmt.Errorf("%w: the name of a user must be non-empty UTF-8", ErrInvalid)
	}
	key := headPrefix + encodeUser(user)
	if len(key)+len(blobInfix)+len(newBlobName(0)) > store.MaxKey {
		return "", fmt.Errorf("%w: the name of the user is too long", ErrInvalid)
	}
	return key, nil
}

const plainBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

// encodeUser writes all bytes except letters, digits, _ and - as %XX.
func encodeUser(user string) string {
	var b strings.Builder
	for _, c := range []byte(user) {
		if strings.IndexByte(plainBytes, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

var errUserName = errors.New("not the name of a workspace")

// decodeUser is the inverse of encodeUser.
func decodeUser(text string) (string, error) {
	var b []byte
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b = append(b, text[i])
			continue
		}
		if i+3 > len(text) {
			return "", errUserName
		}
		c, err := hex.DecodeString(text[i+1 : i+3])
		if err != nil {
			return "", errUserName
		}
		b = append(b, c[0])
		i += 2
	}
	if user := string(b); user != "" && utf8.ValidString(user) && encodeUser(user) == text {
		return user, nil
	}
	return "", errUserName
}

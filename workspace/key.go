package workspace

import (
	"errors"
	"fmt"
	"net/url"
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
	user, err := url.PathUnescape(text)
	if err != nil || user == "" || !utf8.ValidString(user) || encodeUser(user) != text {
		return "", errUserName
	}
	return user, nil
}

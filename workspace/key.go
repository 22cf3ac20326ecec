package workspace

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentstate/state/store"
)

// prefix is that of all keys of workspaces.
const headPrefix = "agent:workspace:"

// blobs is what stands between the key of a head and the names of its blobs. No
// encoded user has it, and all heads of users who begin with this one are sorted
// before or after all of this one's blobs.
const blobInfix = "/b/"

// headKey returns the key of a user's head.
func headKey(user string) (string, error) {
	if user == "" || !utf8.ValidString(user) {
		return "", fmt.Errorf("%w: a user is named by text", ErrInvalid)
	}
	key := headPrefix + encodeUser(user)
	if len(key)+len(blobInfix)+len(blobName(0)) > store.MaxKey {
		return "", fmt.Errorf("%w: name of the user is too long", ErrInvalid)
	}
	return key, nil
}

const plainBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

// encodeUser writes everything but letters, digits, _ and - as %XX.
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

// lead is how far a blob's expiry is ahead of the head that its writer read. It is a
// variable, like opsRing and tailBytes, so that tests get there with a few writes.
var blobLead uint64 = 64

// blobName returns a name that no blob has had. A head refers to the blob for the
// first time at the logical time exp or never.
func blobName(exp uint64) string {
	return fmt.Sprintf("%016x-%s", exp, hex.EncodeToString(randomBytes(16)))
}

// expiry returns the logical time in a blob's name.
func blobExpiry(name string) (uint64, bool) {
	text, _, ok := strings.Cut(name, "-")
	if !ok || len(text) != 16 {
		return 0, false
	}
	exp, err := strconv.ParseUint(text, 16, 64)
	return exp, err == nil
}

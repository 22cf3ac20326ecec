package ledger

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/work"
)

// The entries of workspaces, each followed by EncodeUser of the user.
const (
	headPrefix = "agent:workspace:"
	blobPrefix = "agent:blob:" // then a slash, which EncodeUser escapes, and the name of the blob
)

// HeadKey returns the key of the head of a workspace.
func HeadKey(user string) (string, error) {
	if user == "" || !utf8.ValidString(user) {
		return "", fmt.Errorf("%w: the name of a user must be non-empty UTF-8", work.ErrInvalid)
	}
	if !isID(user) {
		return "", fmt.Errorf("%w: %s is not the id of a thread: names from outside are escaped by workspace.Thread",
			work.ErrInvalid, fault.Quote(user))
	}
	key := headPrefix + EncodeUser(user)
	if most := store.MaxKey - len("/") - maxBlobName; len(key) > most {
		return "", fmt.Errorf("%w: the name of the user is too long: its key has %d bytes, and %d are possible",
			work.ErrInvalid, len(key), most)
	}
	return key, nil
}

const plainBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

// EncodeUser writes all bytes except letters, digits, _ and - as %XX.
func EncodeUser(user string) string {
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

// decodeUser is the inverse of EncodeUser.
func decodeUser(text string) (string, error) {
	user, err := url.PathUnescape(text)
	if err != nil || user == "" || !utf8.ValidString(user) || EncodeUser(user) != text {
		return "", errUserName
	}
	return user, nil
}

// The id of a workspace is the name of a user, or that of a user and that of one
// of the user's threads with a slash between them. A slash and a percent sign in
// a name are escaped. With nothing behind the slash, it is the id of what the
// threads of the user share.
const threadSeparator = "/"

var (
	escapeName   = strings.NewReplacer("%", "%25", threadSeparator, "%2F")
	unescapeName = strings.NewReplacer("%25", "%", "%2F", threadSeparator)
)

// ThreadID returns the id of a thread, or of the user's own workspace if thread
// is empty.
func ThreadID(user, thread string) string {
	if thread == "" {
		return escapeName.Replace(user)
	}
	return SharedID(user) + escapeName.Replace(thread)
}

// SharedID returns the id of what the threads of a user share. It begins the ids
// of all of them, except that of the user's own workspace.
func SharedID(user string) string { return escapeName.Replace(user) + threadSeparator }

// SplitID returns the user and the thread of an id.
func SplitID(id string) (user, thread string) {
	user, thread, _ = strings.Cut(id, threadSeparator)
	return unescaped(user), unescaped(thread)
}

func unescaped(name string) string {
	if !strings.Contains(name, "%") { // the Replacer would copy it
		return name
	}
	return unescapeName.Replace(name)
}

// IsShared reports whether an id is that of what the threads of a user share.
func IsShared(id string) bool { return strings.HasSuffix(id, threadSeparator) }

// isID reports whether ThreadID or SharedID returns an id. So two ids never name
// the same thread.
func isID(id string) bool {
	user, thread := SplitID(id)
	return user != "" && (id == ThreadID(user, thread) || id == SharedID(user))
}

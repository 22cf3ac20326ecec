package ledger

import "strings"

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

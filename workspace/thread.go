package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/agentstate/state/internal/fault"

	"github.com/agentstate/state/workspace/internal/ledger"
)

// Thread returns the id of a thread, which is a workspace of its own: one of
// several conversations of a user, with its own content, queue and run. With ""
// as threadID, it is the id of the user's own workspace: userID itself, unless
// that contains "/" or "%".
//
// Every method of a Manager that takes the id of a workspace takes that of a
// thread. A program that gets names from outside always makes the id with Thread:
// both names are escaped, so that no name reaches what belongs to another user.
// A Manager returns ErrInvalid for an id that neither Thread nor [Shared] returns:
// one with more than one "/", with a "%" that escapes neither "/" nor "%", without
// a user, or that is not UTF-8.
func Thread(userID, threadID string) string { return ledger.ThreadID(userID, threadID) }

// NewThread returns the id of a new thread, which cannot be guessed. The ids of
// a user are ordered by the time when they were made, the newest first.
func NewThread(userID string) string {
	age := math.MaxInt64 - time.Now().UnixMicro() // 63 bits, which shrink
	return Thread(userID, fmt.Sprintf("%016x-%s", age, rand.Text()))
}

// SplitThread is the inverse of Thread. It returns "" as threadID for the user's
// own workspace, and also for what [Shared] returns.
func SplitThread(id string) (userID, threadID string) { return ledger.SplitID(id) }

// Shared returns the id of the user part: the workspace of what all threads of a
// user share. It has no messages and no runs.
func Shared(userID string) string { return ledger.SharedID(userID) }

// Threads yields the summaries of the threads of a user, by name as [Thread] takes
// it, that come after an id; with "", of all. They come in the order of their ids:
// the user's own workspace, if it exists, and then the threads, of those of
// [NewThread] the newest first. For another order, such as that of LastActive,
// collect and sort them. Threads reads the heads with one list of the store, and
// errors are those of [Manager.Summaries]. The user part is not yielded.
func (m *Manager) Threads(ctx context.Context, userID, after string) iter.Seq2[Summary, error] {
	return func(yield func(Summary, error) bool) {
		own, shared := Thread(userID, ""), Shared(userID)
		if after == "" {
			s, err := m.Summary(ctx, own)
			if err != nil && (mayPass(err) || errors.Is(err, ErrInvalid)) {
				yield(Summary{}, err)
				return
			}
			if (err != nil || s.Seq > 0) && !yield(s, nil) {
				return
			}
		}
		m.summaries(ctx, shared, after, func(s Summary, err error) bool {
			return s.UserID == shared && err == nil || yield(s, err)
		})
	}
}

// maxTitle is the length of a title, in bytes.
const maxTitle = 200

// titleOf returns the title of a content after a change, or "" if that stays.
func (m *Manager) titleOf(ctx context.Context, c *liveContent, d contentDelta) string {
	if m.opts.Title == nil {
		return ""
	}
	redact := func(text string) string { return c.redactStored(c.Redact(text)) }
	var title string
	code := startCode("title", redact, func() error {
		title = m.opts.Title(d.state)
		return nil
	})
	<-code.done
	if code.err != nil {
		m.warnLater(ctx, c.user, "no title", code.err)
		return ""
	}
	return fault.Prefix(redact(strings.ToValidUTF8(title, "\uFFFD")), maxTitle)
}

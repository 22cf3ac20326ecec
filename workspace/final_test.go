package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
)

var (
	// final are the errors of operations that would fail again.
	final = []error{
		work.ErrExists, work.ErrUserDeleted, work.ErrInvalid, work.ErrInvalidKey, work.ErrSchema, work.ErrCorrupt, work.ErrNewerFormat, work.ErrRolledBack,
		work.ErrFenced, work.ErrBusy, work.ErrQueueFull, work.ErrClosed, work.ErrHolder, work.ErrNotFound,
		ledger.ErrAttempts, ledger.ErrLeaseRenewed, ledger.ErrContentChanged,
		store.ErrInvalid, store.ErrInvalidKey, store.ErrTooLarge, store.ErrClosed, store.ErrReadOnly, store.ErrRefused, store.ErrUnknownOutcome,
	}
	// passing are the errors of operations that may succeed later.
	passing = []error{
		work.ErrInterrupted, work.ErrRunCancelled, work.ErrRunFailed, work.ErrRunEnded, work.ErrRunTimeout, workspace.ErrNotSuspended,
		ledger.ErrIncarnationEnded, ledger.ErrReplaced,
		store.ErrNotFound, store.ErrConflict,
		state.ErrDenied, state.ErrConflict, state.ErrReadOnly, state.ErrInvalid, loop.ErrMaxSteps,
		context.Canceled, context.DeadlineExceeded, errors.New("the database is being restarted"),
	}
)

// An operation whose store has failed is tried again, unless the error, or one of
// those that it wraps, is final.
func TestOperationsAreTriedAgainUnlessTheErrorIsFinal(t *testing.T) {
	test := func(name string, isFinal bool, err error) {
		t.Run(name, func(t *testing.T) {
			onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
				var failures atomic.Int32
				m := open(t, fakestore.New(db, func(_ context.Context, c fakestore.Call, do func() error) error {
					if c.Op == "Get" && failures.Add(-1) >= 0 {
						return err
					}
					return do()
				}), workspace.Options{TTL: ttl, Run: visit})
				_, handled := m.Handle(t.Context(), "ann", text("1"))
				require.NoError(t, handled)
				failures.Store(3)
				out, got := m.Await(t.Context(), "ann", "1")
				if isFinal {
					require.ErrorIs(t, got, err)
				} else {
					require.NoError(t, got)
					require.Equal(t, workspace.StatusDone, out.Status)
				}
			})
		})
	}
	for _, err := range final {
		test(err.Error(), true, err)
		test("wrapped "+err.Error(), true, fmt.Errorf("%w: %w", work.ErrInterrupted, &store.Error{Op: "get", Err: err}))
	}
	for _, err := range passing {
		test(err.Error(), false, err)
		test("wrapped "+err.Error(), false, fmt.Errorf("get: %w", err))
	}
}

// A write of the holder record whose outcome is not known says nothing of the
// message, which is accepted then.
func TestUnknownOutcomeOfTheHolderRecordIsNotFinal(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		var holderWrites atomic.Int32
		m := open(t, fakestore.New(db, func(_ context.Context, c fakestore.Call, do func() error) error {
			if c.Op == "Batch" && strings.HasPrefix(c.Writes[0].Key, "agent:holder:") && holderWrites.Add(1) == 1 {
				return store.ErrUnknownOutcome
			}
			return do()
		}), workspace.Options{TTL: ttl, Run: visit})
		out, err := m.Handle(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		require.Greater(t, holderWrites.Load(), int32(1))
		require.Equal(t, workspace.StatusDone, out.Status)
	})
}

// A message with an answer that cannot be given is refused at once.
func TestAnswersThatCannotBeGivenAreNotTriedAgain(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		m, _ := suspended(t, db, workspace.Options{TTL: ttl})
		began := time.Now()
		_, err := m.Submit(t.Context(), "ann", workspace.Message{Decisions: []tool.Decision{tool.AnswerWith("unknown", "1")}})
		require.ErrorIs(t, err, state.ErrUnknownCall)
		require.Zero(t, time.Since(began))
	})
}

// A sentinel is declared by a function that says whether it is final, so that none
// is tried again because nobody has thought of it.
func TestSentinelsSayWhetherTheyAreFinal(t *testing.T) {
	undecided := regexp.MustCompile(`\bErr\w+( error)? += errors\.New`)
	for _, folder := range []string{".", "work", "internal/ledger", "internal/document", "../store"} {
		files, err := filepath.Glob(folder + "/*.go")
		require.NoError(t, err)
		for _, file := range files {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			if !strings.HasSuffix(file, "_test.go") {
				require.Empty(t, undecided.FindString(string(source)), file)
			}
		}
	}
}

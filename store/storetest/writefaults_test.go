package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agentstate/state/store"
)

func writeFaults() []fault {
	return []fault{
		{"compares and then sets", "Concurrency/NoUpdateIsLost", func(b *broken) {
			b.put = func(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
				entry, err := store.Get(ctx, b.Memory, key)
				if err != nil && !errors.Is(err, store.ErrNotFound) {
					return "", err
				}
				if !cond.Holds(entry.Revision, err == nil) {
					return store.Put(ctx, b.Memory, key, value, cond)
				}
				time.Sleep(100 * time.Microsecond)
				return store.Put(ctx, b.Memory, key, value, store.Always)
			}
		}},
		{"looks and then creates", "Concurrency/OneWinnerIfAbsent", func(b *broken) {
			b.onPut(func(key string, value []byte, cond store.Condition) ([]byte, store.Condition) {
				if cond.Absent() && !b.exists(key) {
					time.Sleep(100 * time.Microsecond)
					cond = store.Always
				}
				return value, cond
			})
		}},
		{"looks and then deletes", "Concurrency/OneDeleteIfRevision", func(b *broken) {
			b.del = func(ctx context.Context, key string, cond store.Condition) error {
				if entry, err := store.Get(ctx, b.Memory, key); err == nil && cond.Holds(entry.Revision, true) {
					time.Sleep(100 * time.Microsecond)
					cond = store.Always
				}
				return store.Delete(ctx, b.Memory, key, cond)
			}
		}},
		{"accepts a stale revision", "Conditions/IfRevisionRefusesStale", func(b *broken) {
			b.onPut(func(key string, value []byte, cond store.Condition) ([]byte, store.Condition) {
				if _, ok := cond.Revision(); ok && b.exists(key) {
					cond = store.Always
				}
				return value, cond
			})
		}},
		{"accepts a revision for a missing key", "Conditions/IfRevisionRefusesMissing", func(b *broken) {
			b.onPut(func(key string, value []byte, cond store.Condition) ([]byte, store.Condition) {
				if _, ok := cond.Revision(); ok && !b.exists(key) {
					cond = store.IfAbsent
				}
				return value, cond
			})
		}},
		{"treats the empty revision as no condition", "Conditions/IfRevisionRefusesForeign", func(b *broken) {
			b.onPut(func(_ string, value []byte, cond store.Condition) ([]byte, store.Condition) {
				if cond == store.IfRevision("") {
					cond = store.Always
				}
				return value, cond
			})
		}},
		{"overwrites if absent", "Conditions/IfAbsentRefusesExisting", func(b *broken) {
			b.onPut(func(_ string, value []byte, cond store.Condition) ([]byte, store.Condition) {
				if cond.Absent() {
					cond = store.Always
				}
				return value, cond
			})
		}},
		{"reports a conflict and writes", "Conditions/ConflictChangesNothing", func(b *broken) {
			b.put = func(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
				revision, err := store.Put(ctx, b.Memory, key, value, cond)
				if errors.Is(err, store.ErrConflict) {
					_, _ = store.Put(ctx, b.Memory, key, value, store.Always)
				}
				return revision, err
			}
		}},
		{"ignores the revision of a delete", "Delete/IfRevisionRefusesStale", func(b *broken) {
			b.del = func(ctx context.Context, key string, cond store.Condition) error {
				if _, ok := cond.Revision(); ok && b.exists(key) {
					cond = store.Always
				}
				return store.Delete(ctx, b.Memory, key, cond)
			}
		}},
		{"ignores the revision of a delete of a missing key", "Delete/IfRevisionRefusesMissing", func(b *broken) {
			b.del = func(ctx context.Context, key string, cond store.Condition) error {
				if _, ok := cond.Revision(); ok && !b.exists(key) {
					return nil
				}
				return store.Delete(ctx, b.Memory, key, cond)
			}
		}},
		{"fails to delete a missing key", "Delete/Missing", func(b *broken) {
			b.del = func(ctx context.Context, key string, cond store.Condition) error {
				if !b.exists(key) {
					return &store.Error{Store: "broken", Op: "delete", Key: key, Err: store.ErrNotFound}
				}
				return store.Delete(ctx, b.Memory, key, cond)
			}
		}},
		{"deletes if absent", "Delete/IfAbsentIsInvalid", func(b *broken) {
			b.del = func(ctx context.Context, key string, cond store.Condition) error {
				if cond.Absent() {
					cond = store.Always
				}
				return store.Delete(ctx, b.Memory, key, cond)
			}
		}},
		{"cuts long values", "Values/300KB", func(b *broken) {
			b.onPut(func(_ string, value []byte, cond store.Condition) ([]byte, store.Condition) {
				return value[:min(len(value), 1<<16-1)], cond
			})
		}},
		{"trims values", "Values/TrailingSpace", func(b *broken) {
			b.onPut(func(_ string, value []byte, cond store.Condition) ([]byte, store.Condition) {
				return bytes.TrimSpace(value), cond
			})
		}},
		{"keeps values as text", "Values/NotUTF8", func(b *broken) {
			b.onPut(func(_ string, value []byte, cond store.Condition) ([]byte, store.Condition) {
				return bytes.ToValidUTF8(value, []byte("\ufffd")), cond
			})
		}},
		{"keeps the slice that it receives", "Aliasing/GivenBytes", func(b *broken) {
			given := map[store.Revision][]byte{}
			b.put = func(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
				revision, err := store.Put(ctx, b.Memory, key, value, cond)
				given[revision] = value
				return revision, err
			}
			b.get = func(ctx context.Context, key string) (store.Entry, error) {
				entry, err := store.Get(ctx, b.Memory, key)
				if value, ok := given[entry.Revision]; ok {
					entry.Value = bytes.Clone(value)
				}
				return entry, err
			}
		}},
		{"keeps the revision of an equal value", "Revisions/ChangeWithEachWrite", func(b *broken) {
			b.put = func(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
				entry, err := store.Get(ctx, b.Memory, key)
				if err == nil && cond.Holds(entry.Revision, true) && bytes.Equal(entry.Value, value) {
					return entry.Revision, nil
				}
				return store.Put(ctx, b.Memory, key, value, cond)
			}
		}},
		{"reuses revisions after a delete", "Revisions/NotReusedAfterDelete", func(b *broken) {
			b.counting(func(key string, n int) string { return key + strconv.Itoa(n) })
		}},
		{"counts revisions per key", "Revisions/NotSharedByKeys", func(b *broken) {
			b.counting(func(_ string, n int) string { return strconv.Itoa(n) })
		}},
		{"writes although the context has ended", "Contexts/CancelledPut", func(b *broken) {
			b.put = func(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
				return store.Put(context.WithoutCancel(ctx), b.Memory, key, value, cond)
			}
		}},
		{"writes and returns the error of the context", "Contexts/CancelledPutOfNewKey", func(b *broken) {
			b.put = func(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
				revision, err := store.Put(context.WithoutCancel(ctx), b.Memory, key, value, cond)
				if ctx.Err() != nil {
					return "", &store.Error{Store: "broken", Op: "put", Key: key, Err: ctx.Err()}
				}
				return revision, err
			}
		}},
		{"deletes although the context has ended", "Contexts/CancelledDelete", func(b *broken) {
			b.del = func(ctx context.Context, key string, cond store.Condition) error {
				return store.Delete(context.WithoutCancel(ctx), b.Memory, key, cond)
			}
		}},
		{"makes the writes of a batch one by one", "Batch/ConflictChangesNothing", func(b *broken) {
			b.batch = func(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
				var revisions []store.Revision
				for _, write := range writes {
					revision, err := b.Memory.Batch(ctx, []store.Write{write})
					if err != nil {
						return nil, err
					}
					revisions = append(revisions, revision...)
				}
				return revisions, nil
			}
		}},
		{"does not name the key of a batch", "Batch/ConflictNamesTheKey", func(b *broken) {
			b.batch = func(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
				revisions, err := b.Memory.Batch(ctx, writes)
				if errors.Is(err, store.ErrConflict) {
					err = &store.Error{Store: "broken", Op: "write", Err: store.ErrConflict}
				}
				return revisions, err
			}
		}},
		{"accepts a key twice in a batch", "Batch/InvalidChangesNothing", func(b *broken) {
			b.batch = func(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
				if n := len(writes); n > 1 && writes[0].Key == writes[n-1].Key {
					writes = writes[1:]
				}
				return b.Memory.Batch(ctx, writes)
			}
		}},
		{"puts the value into an error", "Errors/ContainNoValue", func(b *broken) {
			b.onErrors(func(err error, value []byte) error {
				var named *store.Error
				if errors.As(err, &named) {
					named.Err = fmt.Errorf("%w: value %s", named.Err, value)
				}
				return err
			})
		}},
		{"returns bare errors", "Errors/NameStoreAndKey", func(b *broken) {
			b.onErrors(func(err error, _ []byte) error { return errors.Unwrap(err) })
		}},
		{"reports a conflict as an unknown outcome", "Errors/MatchOneSentinel", func(b *broken) {
			b.onErrors(func(err error, _ []byte) error {
				if errors.Is(err, store.ErrConflict) {
					err = fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
				}
				return err
			})
		}},
		{"continues after Close", "Closing/CallsAfterClose", func(b *broken) { b.close = func() error { return nil } }},
		{"fails to close twice", "Closing/Twice", func(b *broken) {
			closed := false
			b.close = func() error {
				if closed {
					return store.ErrClosed
				}
				closed = true
				return b.Memory.Close()
			}
		}},
		{"deletes the entries on Close", "Closing/DataRemains", func(b *broken) {
			b.close = func() error {
				for entry := range b.Memory.List(context.Background(), "", "", true) {
					_ = store.Delete(context.Background(), b.Memory, entry.Key, store.Always)
				}
				return b.Memory.Close()
			}
		}},
	}
}

// counting makes the store derive revisions from the number of writes of a key since
// it was created. The store keeps the number in front of each value.
func (b *broken) counting(name func(key string, n int) string) {
	read := func(entry store.Entry) (store.Entry, int) {
		count, value, _ := strings.Cut(string(entry.Value), " ")
		n, _ := strconv.Atoi(count)
		return store.Entry{Key: entry.Key, Value: []byte(value), Revision: store.Revision(name(entry.Key, n))}, n
	}
	translated := func(key string, cond store.Condition) (store.Condition, int) {
		entry, err := store.Get(context.Background(), b.Memory, key)
		if err != nil {
			return cond, 0
		}
		shown, n := read(entry)
		if revision, ok := cond.Revision(); ok && revision == shown.Revision {
			cond = store.IfRevision(entry.Revision)
		}
		return cond, n
	}
	b.get = func(ctx context.Context, key string) (store.Entry, error) {
		entry, err := store.Get(ctx, b.Memory, key)
		if err != nil {
			return store.Entry{}, err
		}
		entry, _ = read(entry)
		return entry, nil
	}
	b.onList(func(entries []store.Entry, prefix, after string) []store.Entry {
		var kept []store.Entry
		for _, entry := range wanted(entries, prefix, after) {
			entry, _ = read(entry)
			kept = append(kept, entry)
		}
		return kept
	})
	b.put = func(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
		cond, n := translated(key, cond)
		_, err := store.Put(ctx, b.Memory, key, []byte(strconv.Itoa(n+1)+" "+string(value)), cond)
		return store.Revision(name(key, n+1)), err
	}
	b.del = func(ctx context.Context, key string, cond store.Condition) error {
		cond, _ = translated(key, cond)
		return store.Delete(ctx, b.Memory, key, cond)
	}
}

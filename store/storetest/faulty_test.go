package storetest_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agentstate/state/store"
)

// fault is a fault of a store and the test that must detect it.
type fault struct {
	name     string
	detector string // name of the test
	inject   func(b *broken)
}

// faults are those in what a store does with keys, values, writes, reads,
// lists and events.
var faults = slices.Concat(keyFaults, valueFaults, writeFaults, readFaults, listFaults, watchFaults)

var keyFaults = []fault{
	{"folds case", "Keys/Case", func(b *broken) { b.onKeys(strings.ToLower) }},
	{"trims keys", "Keys/TrailingSpace", func(b *broken) {
		b.onKeys(func(key string) string { return cmp.Or(strings.TrimRight(key, " "), key) })
	}},
	{"normalises keys", "Keys/UnicodeForms", func(b *broken) {
		b.onKeys(func(key string) string { return strings.ReplaceAll(key, "e\u0301", "\u00e9") })
	}},
	{"ends keys at NUL", "Keys/NUL", func(b *broken) {
		b.onKeys(func(key string) string {
			before, _, _ := strings.Cut(key, "\x00")
			return cmp.Or(before, key)
		})
	}},
	{"reads keys as numbers", "Keys/Numbers", func(b *broken) {
		b.onKeys(func(key string) string { return cmp.Or(strings.TrimLeft(key, "0"), key) })
	}},
	{"repairs invalid keys", "Refusals/InvalidKey", func(b *broken) {
		b.onKeys(func(key string) string { return strings.ToValidUTF8(key, "?") })
	}},
	{"cuts long keys", "Keys/Length512", func(b *broken) {
		b.onKeys(func(key string) string {
			if len(key) == store.MaxKey {
				return strings.ToValidUTF8(key[:255], "")
			}
			return key
		})
	}},
}

var valueFaults = []fault{
	{"confuses an empty value with a missing one", "Values/EmptyIsNotMissing", func(b *broken) {
		b.onEntry(func(e *store.Entry) {
			if len(e.Value) == 0 {
				e.Revision = ""
			}
		})
	}},
	{"cuts long values", "Values/300KB", func(b *broken) {
		b.onValue(func(value []byte) []byte { return value[:min(len(value), 1<<16-1)] })
	}},
	{"trims values", "Values/TrailingSpace", func(b *broken) { b.onValue(bytes.TrimSpace) }},
	{"keeps values as text", "Values/NotUTF8", func(b *broken) {
		b.onValue(func(value []byte) []byte { return bytes.ToValidUTF8(value, []byte("\ufffd")) })
	}},
	{"keeps the slice that it receives", "Aliasing/GivenBytes", func(b *broken) {
		given := map[store.Revision][]byte{}
		b.onBatch(func(writes []store.Write, batch func() ([]store.Revision, error)) ([]store.Revision, error) {
			revisions, err := batch()
			for i := range revisions {
				given[revisions[i]] = writes[i].Value
			}
			return revisions, err
		})
		b.onEntry(func(e *store.Entry) {
			if value, ok := given[e.Revision]; ok {
				e.Value = bytes.Clone(value)
			}
		})
	}},
	{"returns the slice that it keeps", "Aliasing/BytesOfGet", func(b *broken) {
		kept := map[store.Revision][]byte{}
		b.onEntry(func(e *store.Entry) {
			if _, ok := kept[e.Revision]; !ok {
				kept[e.Revision] = e.Value
			}
			e.Value = kept[e.Revision]
		})
	}},
	{"yields the same slice for each entry", "Aliasing/BytesOfList", func(b *broken) {
		b.onYield(func(list iter.Seq2[store.Entry, error], _ bool, yield func(store.Entry, error) bool) {
			var buffer []byte
			for entry, err := range list {
				buffer = append(buffer[:0], entry.Value...)
				if entry.Value = buffer; !yield(entry, err) {
					return
				}
			}
		})
	}},
}

var writeFaults = []fault{
	{"compares and then sets", "Concurrency/NoUpdateIsLost", func(b *broken) {
		b.races(func(w store.Write) bool { return !w.Delete })
	}},
	{"looks and then creates", "Concurrency/OneWinnerIfAbsent", func(b *broken) {
		b.races(func(w store.Write) bool { return w.Cond.Absent() })
	}},
	{"looks and then deletes", "Concurrency/OneDeleteIfRevision", func(b *broken) {
		b.races(func(w store.Write) bool { return w.Delete })
	}},
	{"accepts a stale revision", "Refusals/IfRevisionRefusesStale", func(b *broken) {
		b.always(func(w store.Write, exists bool) bool { return isIfRevision(w) && !w.Delete && exists })
	}},
	{"accepts a revision for a missing key", "Refusals/IfRevisionRefusesMissing", func(b *broken) {
		b.always(func(w store.Write, exists bool) bool { return isIfRevision(w) && !w.Delete && !exists })
	}},
	{"treats the empty revision as no condition", "Refusals/IfRevisionRefusesForeign", func(b *broken) {
		b.always(func(w store.Write, _ bool) bool { return w.Cond == store.IfRevision("") })
	}},
	{"accepts the revision of another key", "Refusals/IfRevisionRefusesOtherKey", func(b *broken) {
		b.always(func(w store.Write, _ bool) bool {
			revision, _ := w.Cond.Revision()
			other, exists := b.look("other")
			return exists && revision == other.Revision
		})
	}},
	{"overwrites if absent", "Refusals/IfAbsentRefusesExisting", func(b *broken) {
		b.always(func(w store.Write, _ bool) bool { return w.Cond.Absent() && !w.Delete })
	}},
	{"ignores the revision of a delete", "Refusals/IfRevisionRefusesStale", func(b *broken) {
		b.always(func(w store.Write, exists bool) bool { return isIfRevision(w) && w.Delete && exists })
	}},
	{"ignores the revision of a delete of a missing key", "Refusals/IfRevisionRefusesMissing", func(b *broken) {
		b.always(func(w store.Write, exists bool) bool { return isIfRevision(w) && w.Delete && !exists })
	}},
	{"deletes if absent", "Refusals/DeleteIfAbsentIsInvalid", func(b *broken) {
		b.always(func(w store.Write, _ bool) bool { return w.Cond.Absent() && w.Delete })
	}},
	{"reports a conflict and writes", "Refusals/IfRevisionRefusesStale", func(b *broken) {
		b.onBatch(func(writes []store.Write, batch func() ([]store.Revision, error)) ([]store.Revision, error) {
			revisions, err := batch()
			if errors.Is(err, store.ErrConflict) {
				_, _ = store.Put(context.Background(), b.Memory, writes[0].Key, writes[0].Value, store.Always)
			}
			return revisions, err
		})
	}},
	{"fails to delete a missing key", "Conditions/DeleteMissing", func(b *broken) {
		b.onBatch(func(writes []store.Write, batch func() ([]store.Revision, error)) ([]store.Revision, error) {
			if _, exists := b.look(writes[0].Key); writes[0].Delete && !exists {
				return nil, &store.Error{Store: "broken", Op: "delete", Key: writes[0].Key, Err: store.ErrNotFound}
			}
			return batch()
		})
	}},
	{"keeps the revision of an equal value", "Revisions/ChangeWithEachWrite", func(b *broken) {
		b.onBatch(func(writes []store.Write, batch func() ([]store.Revision, error)) ([]store.Revision, error) {
			entry, exists := b.look(writes[0].Key)
			if exists && writes[0].Cond.Holds(entry.Revision, true) && bytes.Equal(entry.Value, writes[0].Value) {
				return []store.Revision{entry.Revision}, nil
			}
			return batch()
		})
	}},
	{"reuses revisions after a delete", "Revisions/NotReusedAfterDelete", func(b *broken) {
		b.naming(func(key string, n int) string { return key + strconv.Itoa(n) })
	}},
	{"counts revisions per key", "Revisions/NotSharedByKeys", func(b *broken) {
		b.naming(func(_ string, n int) string { return strconv.Itoa(n) })
	}},
	{"writes although the context has ended", "Contexts/CancelledPut", func(b *broken) {
		b.batch = func(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
			return b.Memory.Batch(context.WithoutCancel(ctx), writes)
		}
	}},
	{"writes and returns the error of the context", "Contexts/CancelledPutNew", func(b *broken) {
		b.batch = func(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
			revisions, err := b.Memory.Batch(context.WithoutCancel(ctx), writes)
			if ctx.Err() != nil {
				return nil, &store.Error{Store: "broken", Op: "put", Key: writes[0].Key, Err: ctx.Err()}
			}
			return revisions, err
		}
	}},
	{"deletes although the context has ended", "Contexts/CancelledDelete", func(b *broken) {
		b.batch = func(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
			if writes[0].Delete {
				ctx = context.WithoutCancel(ctx)
			}
			return b.Memory.Batch(ctx, writes)
		}
	}},
	{"makes the writes of a batch one by one", "Refusals/IfAbsentRefusesExisting", func(b *broken) {
		b.batch = func(ctx context.Context, writes []store.Write) (revisions []store.Revision, _ error) {
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
	{"accepts a key twice in a batch", "Batch/KeyTwiceIsInvalid", func(b *broken) {
		b.batch = func(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
			if n := len(writes); n > 1 && writes[0].Key == writes[n-1].Key {
				writes = writes[1:]
			}
			return b.Memory.Batch(ctx, writes)
		}
	}},
	{"does not name the key of a batch", "Batch/ConflictNamesTheKey", func(b *broken) {
		b.onError(func(err *store.Error, _ []byte) error {
			return &store.Error{Store: err.Store, Op: err.Op, Err: err.Err}
		})
	}},
	{"puts the value into an error", "Errors/ContainNoValue", func(b *broken) {
		b.onError(func(err *store.Error, value []byte) error {
			err.Err = fmt.Errorf("%w: value %s", err.Err, value)
			return err
		})
	}},
	{"returns bare errors", "Errors/NameStoreAndKey", func(b *broken) {
		b.onError(func(err *store.Error, _ []byte) error { return err.Err })
	}},
	{"reports a conflict as an unknown outcome", "Errors/MatchOneSentinel", func(b *broken) {
		b.onError(func(err *store.Error, _ []byte) error {
			if errors.Is(err, store.ErrConflict) {
				return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
			}
			return err
		})
	}},
	{"matches a sentinel without wrapping it", "Errors/MatchOneSentinel", func(b *broken) {
		b.onError(func(err *store.Error, _ []byte) error {
			if errors.Is(err, store.ErrInvalid) {
				err.Err = alikeError{err.Err}
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
	{"invents a durability", "Durability/IsOneOfTheConstants", func(b *broken) {
		b.durability = func() store.Durability { return store.DurabilityFailover + 1 }
	}},
}

func isIfRevision(w store.Write) bool {
	_, conditional := w.Cond.Revision()
	return conditional
}

var readFaults = []fault{
	{"reads from a cache", "Concurrency/AllHandlesSeeAWrite", func(b *broken) { b.cached(20 * time.Millisecond) }},
	{"reads stale entries", "Concurrency/Linearizable", func(b *broken) { b.cached(5 * time.Millisecond) }},
	{"reads several keys from a cache", "Concurrency/AllHandlesSeeAWrite", func(b *broken) {
		b.cached(20 * time.Millisecond)
		cached := b.get
		b.get = func(ctx context.Context, keys ...string) ([]store.Entry, error) {
			if len(keys) == 1 {
				return b.Memory.Get(ctx, keys...)
			}
			return cached(ctx, keys...)
		}
	}},
	{"reads although the context has ended", "Contexts/CancelledGet", func(b *broken) { b.get = b.uncancelled }},
	{"reads several keys although the context has ended", "Contexts/CancelledGetMany", func(b *broken) { b.get = b.uncancelled }},
	{"reads although the store is closed", "Closing/CallsAfterClose", func(b *broken) {
		b.get = func(ctx context.Context, keys ...string) ([]store.Entry, error) {
			return b.Memory.Open().Get(ctx, keys...)
		}
	}},
	{"reads keys in their order in the store", "Get/OrderOfKeys", func(b *broken) {
		b.onGet(func(entries []store.Entry) []store.Entry {
			slices.SortFunc(entries, func(x, y store.Entry) int { return cmp.Compare(x.Key, y.Key) })
			return entries
		})
	}},
	{"leaves missing keys out", "Get/MissingKeys", func(b *broken) {
		b.onGet(func(entries []store.Entry) []store.Entry {
			if len(entries) == 1 {
				return entries
			}
			return slices.DeleteFunc(entries, func(e store.Entry) bool { return e.Revision == "" })
		})
	}},
	{"does not name missing keys", "Get/MissingKeys", func(b *broken) {
		b.onEntry(func(e *store.Entry) {
			if e.Revision == "" {
				e.Key = ""
			}
		})
	}},
	{"fails for a missing key", "Get/MissingKeys", func(b *broken) {
		b.get = func(ctx context.Context, keys ...string) ([]store.Entry, error) {
			entries, err := b.Memory.Get(ctx, keys...)
			if i := slices.IndexFunc(entries, func(e store.Entry) bool { return e.Revision == "" }); i >= 0 && len(keys) > 1 {
				return nil, &store.Error{Store: "broken", Op: "get", Key: keys[i], Err: store.ErrNotFound}
			}
			return entries, err
		}
	}},
	{"returns each key once", "Get/RepeatedKeys", func(b *broken) {
		b.onGet(func(entries []store.Entry) []store.Entry {
			seen := map[string]bool{}
			return slices.DeleteFunc(entries, func(e store.Entry) bool {
				before := seen[e.Key]
				seen[e.Key] = true
				return before
			})
		})
	}},
	{"returns the same bytes twice", "Aliasing/BytesOfGet", func(b *broken) {
		b.onGet(func(entries []store.Entry) []store.Entry {
			first := map[string][]byte{}
			for i, e := range entries {
				if value, known := first[e.Key]; known {
					entries[i].Value = value
				}
				first[e.Key] = entries[i].Value
			}
			return entries
		})
	}},
	{"reads a statement full of keys and no more", "Get/ManyKeys", func(b *broken) {
		b.onGet(func(entries []store.Entry) []store.Entry {
			for i := 64; i < len(entries); i++ {
				entries[i] = store.Entry{Key: entries[i].Key}
			}
			return entries
		})
	}},
	{"cuts what several keys have", "Get/LargeValues", func(b *broken) {
		b.onGet(func(entries []store.Entry) []store.Entry {
			left := 4 << 20
			for i, e := range entries {
				n := min(len(e.Value), left)
				entries[i].Value, left = e.Value[:n], left-n
			}
			return entries
		})
	}},
	{"looks an invalid key up", "Get/InvalidKey", func(b *broken) {
		b.get = func(ctx context.Context, keys ...string) ([]store.Entry, error) {
			valid := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return store.CheckKey(key) != nil })
			return b.Memory.Get(ctx, valid...)
		}
	}},
	{"returns what it has read when the time is over", "Contexts/DeadlineWhileReading", func(b *broken) {
		b.get = func(ctx context.Context, keys ...string) ([]store.Entry, error) {
			entries, err := b.Memory.Get(context.WithoutCancel(ctx), keys...)
			if ctx.Err() != nil {
				return entries[:len(keys)/3], ctx.Err()
			}
			return entries, err
		}
	}},
}

// uncancelled is Get without the end of its context.
func (b *broken) uncancelled(ctx context.Context, keys ...string) ([]store.Entry, error) {
	return b.Memory.Get(context.WithoutCancel(ctx), keys...)
}

var listFaults = []fault{
	{"lists although the context has ended", "Contexts/CancelledList", func(b *broken) {
		b.list = func(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
			return b.Memory.List(context.WithoutCancel(ctx), prefix, after, values)
		}
	}},
	{"ends a cancelled scan as if it were complete", "List/CancelledInTheMiddle", func(b *broken) {
		b.onYield(func(list iter.Seq2[store.Entry, error], _ bool, yield func(store.Entry, error) bool) {
			for entry, err := range list {
				if err != nil || !yield(entry, nil) {
					return
				}
			}
		})
	}},
	{"treats a prefix as a LIKE pattern", "List/PrefixIsLiteral", func(b *broken) {
		b.onList(func(entries []store.Entry, prefix, after string) []store.Entry {
			pattern := strings.NewReplacer("%", ".*", "_", ".").Replace(regexp.QuoteMeta(prefix))
			like := regexp.MustCompile("(?s)^" + pattern)
			return slices.DeleteFunc(wanted(entries, "", after), func(e store.Entry) bool { return !like.MatchString(e.Key) })
		})
	}},
	{"folds the case of a prefix", "List/PrefixIsCaseSensitive", func(b *broken) {
		b.onList(func(entries []store.Entry, prefix, after string) []store.Entry {
			return slices.DeleteFunc(wanted(entries, "", after), func(e store.Entry) bool {
				return !strings.HasPrefix(strings.ToLower(e.Key), strings.ToLower(prefix))
			})
		})
	}},
	{"treats a prefix as a folder", "List/PrefixIsNotFolder", func(b *broken) {
		b.without(func(e store.Entry, prefix string) bool {
			rest := strings.TrimPrefix(e.Key, prefix)
			return prefix != "" && rest != "" && rest[0] != '/' && !strings.HasSuffix(prefix, "/")
		})
	}},
	{"ends a prefix at the highest rune", "List/PrefixOfHighestRunes", func(b *broken) {
		b.without(func(e store.Entry, prefix string) bool { return e.Key >= prefix+"\U0010ffff" })
	}},
	{"orders keys without case", "List/ByteOrder", func(b *broken) {
		b.onList(func(entries []store.Entry, prefix, after string) []store.Entry {
			entries = wanted(entries, prefix, after)
			slices.SortStableFunc(entries, func(x, y store.Entry) int { return cmp.Compare(strings.ToLower(x.Key), strings.ToLower(y.Key)) })
			return entries
		})
	}},
	{"begins with the key it should begin after", "List/After", func(b *broken) {
		b.onList(func(entries []store.Entry, prefix, after string) []store.Entry {
			return slices.DeleteFunc(wanted(entries, prefix, ""), func(e store.Entry) bool { return e.Key < after })
		})
	}},
	{"misses a key between pages", "List/ManyKeysOnceInOrder", func(b *broken) {
		b.onList(func(entries []store.Entry, prefix, after string) []store.Entry {
			if entries = wanted(entries, prefix, after); len(entries) > 256 {
				entries = slices.Delete(entries, 256, 257)
			}
			return entries
		})
	}},
	{"repeats the last key of a page", "List/ManyKeysOnceInOrder", func(b *broken) {
		b.onList(func(entries []store.Entry, prefix, after string) []store.Entry {
			if entries = wanted(entries, prefix, after); len(entries) > 256 {
				entries = slices.Insert(entries, 256, entries[255])
			}
			return entries
		})
	}},
	{"pages by number while others write", "List/ConcurrentWrites", func(b *broken) { b.list = b.listByNumber }},
	{"yields deleted keys", "List/DeletedKeysAreGone", func(b *broken) {
		var gone []store.Entry
		b.onWrite(func(w *store.Write) {
			if w.Delete {
				gone = append(gone, store.Entry{Key: w.Key})
			}
		})
		b.onList(func(entries []store.Entry, prefix, after string) []store.Entry {
			return wanted(append(entries, gone...), prefix, after)
		})
	}},
	{"reads values that nobody wants", "List/OnlyKeys", func(b *broken) {
		b.list = func(ctx context.Context, prefix, after string, _ bool) iter.Seq2[store.Entry, error] {
			return b.Memory.List(ctx, prefix, after, true)
		}
	}},
	{"leaves folders out without values", "List/PrefixIsNotFolder", func(b *broken) {
		b.onYield(func(list iter.Seq2[store.Entry, error], values bool, yield func(store.Entry, error) bool) {
			for entry, err := range list {
				if err == nil && !values && strings.Contains(entry.Key, "/") {
					continue
				}
				if !yield(entry, err) {
					return
				}
			}
		})
	}},
	{"holds a lock during a list", "List/CallsInsideLoop", func(b *broken) {
		var mu sync.RWMutex
		b.onYield(func(list iter.Seq2[store.Entry, error], _ bool, yield func(store.Entry, error) bool) {
			mu.RLock()
			defer mu.RUnlock()
			list(yield)
		})
		b.onWrite(func(*store.Write) {
			mu.Lock()
			defer mu.Unlock()
		})
	}},
}

// listByNumber reads pages of ten entries. A page begins at the position at which the
// previous one ended.
func (b *broken) listByNumber(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for from := 0; ; from += 10 {
			n := 0
			for entry, err := range b.Memory.List(ctx, prefix, after, values) {
				if n++; n <= from {
					continue
				}
				if n > from+10 {
					break
				}
				if !yield(entry, err) {
					return
				}
			}
			if n <= from+10 {
				return
			}
		}
	}
}

var watchFaults = []fault{
	{"loses some of many events", "Watch/LastChangeIsYielded", func(b *broken) {
		b.onWatch(func(_ store.Event, n int) bool { return n < 15 })
	}},
	{"starts to watch late", "Watch/StartsWithCall", func(b *broken) {
		b.watch = func(ctx context.Context, prefix string) iter.Seq2[store.Event, error] {
			return func(yield func(store.Event, error) bool) { b.Memory.Watch(ctx, prefix)(yield) }
		}
	}},
	{"watches all keys", "Watch/PrefixIsLiteral", func(b *broken) {
		b.watch = func(ctx context.Context, _ string) iter.Seq2[store.Event, error] { return b.Memory.Watch(ctx, "") }
	}},
	{"does not report deletes", "Watch/PutAndDelete", func(b *broken) {
		b.onWatch(func(event store.Event, _ int) bool { return !event.Deleted })
	}},
	{"watches although the context has ended", "Watch/EndsWithContext", func(b *broken) {
		b.watch = func(ctx context.Context, prefix string) iter.Seq2[store.Event, error] {
			return b.Memory.Watch(context.WithoutCancel(ctx), prefix)
		}
	}},
}

// alikeError matches ErrInvalid without wrapping it.
type alikeError struct{ error }

func (alikeError) Is(target error) bool { return target == store.ErrInvalid }

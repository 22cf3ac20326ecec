package storetest_test

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentstate/state/store"
)

func readFaults() []fault {
	return []fault{
		{"folds case", "Keys/Case", func(b *broken) { b.onKeys(strings.ToLower) }},
		{"trims keys", "Keys/TrailingSpace", func(b *broken) { b.onKeys(trimmed) }},
		{"normalises keys", "Keys/UnicodeForms", func(b *broken) {
			b.onKeys(func(key string) string { return strings.ReplaceAll(key, "e\u0301", "\u00e9") })
		}},
		{"ends keys at NUL", "Keys/NUL", func(b *broken) {
			b.onKeys(func(key string) string {
				if i := strings.IndexByte(key, 0); i > 0 {
					return key[:i]
				}
				return key
			})
		}},
		{"reads keys as numbers", "Keys/Numbers", func(b *broken) {
			b.onKeys(func(key string) string {
				if number := strings.TrimLeft(key, "0"); number != "" {
					return number
				}
				return key
			})
		}},
		{"repairs invalid keys", "Keys/Invalid", func(b *broken) {
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
		{"confuses an empty value with a missing one", "Values/EmptyIsNotMissing", func(b *broken) {
			b.get = func(ctx context.Context, key string) (store.Entry, error) {
				entry, err := store.Get(ctx, b.Memory, key)
				if err == nil && len(entry.Value) == 0 {
					return store.Entry{}, &store.Error{Store: "broken", Op: "get", Key: key, Err: store.ErrNotFound}
				}
				return entry, err
			}
		}},
		{"returns the slice that it keeps", "Aliasing/BytesOfGet", func(b *broken) {
			kept := map[store.Revision][]byte{}
			b.get = func(ctx context.Context, key string) (store.Entry, error) {
				entry, err := store.Get(ctx, b.Memory, key)
				if _, ok := kept[entry.Revision]; !ok {
					kept[entry.Revision] = entry.Value
				}
				entry.Value = kept[entry.Revision]
				return entry, err
			}
		}},
		{"yields the same slice for each entry", "Aliasing/BytesOfScanStay", func(b *broken) {
			b.list = func(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
				return func(yield func(store.Entry, error) bool) {
					var buffer []byte
					for entry, err := range b.Memory.List(ctx, prefix, after, values) {
						buffer = append(buffer[:0], entry.Value...)
						if entry.Value = buffer; !yield(entry, err) {
							return
						}
					}
				}
			}
		}},
		{"reads from a cache", "Concurrency/AllHandlesSeeAWrite", func(b *broken) { b.cached(20 * time.Millisecond) }},
		{"reads stale entries", "Concurrency/Linearizable", func(b *broken) { b.cached(5 * time.Millisecond) }},
		{"reads although the context has ended", "Contexts/CancelledGet", func(b *broken) {
			b.get = func(ctx context.Context, key string) (store.Entry, error) {
				return store.Get(context.WithoutCancel(ctx), b.Memory, key)
			}
		}},
		{"lists although the context has ended", "Contexts/CancelledScan", func(b *broken) {
			b.list = func(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
				return b.Memory.List(context.WithoutCancel(ctx), prefix, after, values)
			}
		}},
		{"ends a cancelled scan as if it were complete", "List/Pages/CancelledInTheMiddle", func(b *broken) {
			b.list = func(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
				return func(yield func(store.Entry, error) bool) {
					for entry, err := range b.Memory.List(ctx, prefix, after, values) {
						if err != nil || !yield(entry, nil) {
							return
						}
					}
				}
			}
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
			b.onList(func(entries []store.Entry, prefix, after string) []store.Entry {
				return slices.DeleteFunc(wanted(entries, prefix, after), func(e store.Entry) bool {
					rest := strings.TrimPrefix(e.Key, prefix)
					return prefix != "" && rest != "" && rest[0] != '/' && !strings.HasSuffix(prefix, "/")
				})
			})
		}},
		{"ends a prefix at the highest rune", "List/PrefixOfHighestRunes", func(b *broken) {
			b.onList(func(entries []store.Entry, prefix, after string) []store.Entry {
				return slices.DeleteFunc(wanted(entries, prefix, after), func(e store.Entry) bool { return e.Key >= prefix+"\U0010ffff" })
			})
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
		{"misses a key between pages", "List/Pages/Complete", func(b *broken) {
			b.onList(func(entries []store.Entry, prefix, after string) []store.Entry {
				if entries = wanted(entries, prefix, after); len(entries) > 256 {
					entries = slices.Delete(entries, 256, 257)
				}
				return entries
			})
		}},
		{"repeats the last key of a page", "List/Pages/NoKeyTwice", func(b *broken) {
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
			b.del = func(ctx context.Context, key string, cond store.Condition) error {
				gone = append(gone, store.Entry{Key: key})
				return store.Delete(ctx, b.Memory, key, cond)
			}
			b.onList(func(entries []store.Entry, prefix, after string) []store.Entry {
				return wanted(append(entries, gone...), prefix, after)
			})
		}},
		{"reads several keys in their order in the store", "Get/OrderOfKeys", func(b *broken) {
			b.onMulti(func(entries []store.Entry) []store.Entry {
				slices.SortFunc(entries, func(x, y store.Entry) int { return cmp.Compare(x.Key, y.Key) })
				return entries
			})
		}},
		{"leaves missing keys out", "Get/MissingKeys", func(b *broken) {
			b.onMulti(func(entries []store.Entry) []store.Entry {
				return slices.DeleteFunc(entries, func(e store.Entry) bool { return e.Revision == "" })
			})
		}},
		{"does not name missing keys", "Get/MissingKeys", func(b *broken) {
			b.onMulti(func(entries []store.Entry) []store.Entry {
				for i := range entries {
					if entries[i].Revision == "" {
						entries[i].Key = ""
					}
				}
				return entries
			})
		}},
		{"takes empty values for missing keys", "Get/MissingKeys", func(b *broken) {
			b.onMulti(func(entries []store.Entry) []store.Entry {
				for i := range entries {
					if len(entries[i].Value) == 0 {
						entries[i].Revision = ""
					}
				}
				return entries
			})
		}},
		{"fails for a missing key", "Get/MissingKeys", func(b *broken) {
			b.multi = func(ctx context.Context, keys ...string) ([]store.Entry, error) {
				var entries []store.Entry
				for _, key := range keys {
					e, err := store.Get(ctx, b.Memory, key)
					if err != nil {
						return nil, err
					}
					entries = append(entries, e)
				}
				return entries, nil
			}
		}},
		{"returns each key once", "Get/RepeatedKeys", func(b *broken) {
			b.onMulti(func(entries []store.Entry) []store.Entry {
				seen := map[string]bool{}
				return slices.DeleteFunc(entries, func(e store.Entry) bool {
					before := seen[e.Key]
					seen[e.Key] = true
					return before
				})
			})
		}},
		{"returns the same bytes twice", "Get/BytesOfEntries", func(b *broken) {
			b.onMulti(func(entries []store.Entry) []store.Entry {
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
			b.onMulti(func(entries []store.Entry) []store.Entry {
				for i := range entries {
					if i >= 64 {
						entries[i] = store.Entry{Key: entries[i].Key}
					}
				}
				return entries
			})
		}},
		{"cuts what several keys have", "Get/LargeValues", func(b *broken) {
			b.onMulti(func(entries []store.Entry) []store.Entry {
				left := 4 << 20
				for i, e := range entries {
					n := min(len(e.Value), left)
					entries[i].Value, left = e.Value[:n], left-n
				}
				return entries
			})
		}},
		{"reads several keys from a cache", "Get/SeesAcknowledgedWrites", func(b *broken) {
			cache := map[string]store.Entry{}
			b.onMulti(func(entries []store.Entry) []store.Entry {
				for i, e := range entries {
					if old, known := cache[e.Key]; known {
						entries[i] = old
					}
					cache[e.Key] = entries[i]
				}
				return entries
			})
		}},
		{"looks an invalid key up", "Get/InvalidKey", func(b *broken) {
			b.multi = func(ctx context.Context, keys ...string) ([]store.Entry, error) {
				valid := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return store.CheckKey(key) != nil })
				return b.Memory.Get(ctx, valid...)
			}
		}},
		{"reads several keys although the context has ended", "Get/Cancelled", func(b *broken) {
			b.multi = func(ctx context.Context, keys ...string) ([]store.Entry, error) {
				return b.Memory.Get(context.WithoutCancel(ctx), keys...)
			}
		}},
		{"returns what it has read when the time is over", "Get/Deadline", func(b *broken) {
			b.multi = func(ctx context.Context, keys ...string) ([]store.Entry, error) {
				entries, err := b.Memory.Get(context.WithoutCancel(ctx), keys...)
				if len(keys) == 300 && ctx.Err() != nil {
					return entries[:100], nil
				}
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				return entries, err
			}
		}},
		{"reads several keys although the store is closed", "Get/Closed", func(b *broken) {
			b.multi = func(ctx context.Context, keys ...string) ([]store.Entry, error) {
				return b.Memory.Open().Get(ctx, keys...)
			}
		}},
		{"reads values that nobody wants", "List/OnlyKeys", func(b *broken) {
			b.list = func(ctx context.Context, prefix, after string, _ bool) iter.Seq2[store.Entry, error] {
				return b.Memory.List(ctx, prefix, after, true)
			}
		}},
		{"leaves folders out without values", "List/PrefixIsNotFolder", func(b *broken) {
			b.list = func(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
				return func(yield func(store.Entry, error) bool) {
					for entry, err := range b.Memory.List(ctx, prefix, after, values) {
						if err == nil && !values && strings.Contains(strings.TrimPrefix(entry.Key, prefix), "/") {
							continue
						}
						if !yield(entry, err) {
							return
						}
					}
				}
			}
		}},
		{"holds a lock during a list", "List/CallsInsideLoop", func(b *broken) {
			var mu sync.RWMutex
			b.list = func(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
				return func(yield func(store.Entry, error) bool) {
					mu.RLock()
					defer mu.RUnlock()
					b.Memory.List(ctx, prefix, after, values)(yield)
				}
			}
			b.put = func(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
				mu.Lock()
				defer mu.Unlock()
				return store.Put(ctx, b.Memory, key, value, cond)
			}
		}},
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
		{"invents a durability", "Durability/IsOneOfTheConstants", func(b *broken) {
			b.durability = func() store.Durability { return store.DurabilityFailover + 1 }
		}},
	}
}

func trimmed(key string) string {
	if short := strings.TrimRight(key, " "); short != "" {
		return short
	}
	return key
}

// wanted returns the entries that a list must yield, in order.
func wanted(entries []store.Entry, prefix, after string) []store.Entry {
	entries = slices.DeleteFunc(entries, func(e store.Entry) bool { return !strings.HasPrefix(e.Key, prefix) || e.Key <= after })
	slices.SortFunc(entries, func(x, y store.Entry) int { return cmp.Compare(x.Key, y.Key) })
	return entries
}

// cached makes Get return earlier results for a while.
func (b *broken) cached(while time.Duration) {
	type read struct {
		entry store.Entry
		err   error
		at    time.Time
	}
	var mu sync.Mutex
	reads := map[string]read{}
	b.get = func(ctx context.Context, key string) (store.Entry, error) {
		mu.Lock()
		defer mu.Unlock()
		r, ok := reads[key]
		if !ok || time.Since(r.at) > while {
			r = read{at: time.Now()}
			r.entry, r.err = store.Get(ctx, b.Memory, key)
			reads[key] = r
		}
		r.entry.Value = bytes.Clone(r.entry.Value)
		return r.entry, r.err
	}
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

// onWatch replaces Watch: keep receives each event and its number and decides whether
// Watch yields it.
func (b *broken) onWatch(keep func(event store.Event, n int) bool) {
	b.watch = func(ctx context.Context, prefix string) iter.Seq2[store.Event, error] {
		events := b.Memory.Watch(ctx, prefix)
		return func(yield func(store.Event, error) bool) {
			n := 0
			for event, err := range events {
				if n++; (err != nil || keep(event, n)) && !yield(event, err) {
					return
				}
			}
		}
	}
}

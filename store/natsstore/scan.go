package natsstore

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentstate/state/store"
)

// Scan implements [store.Store]. It holds all matching keys in memory and reads
// a few entries at a time.
func (s *Store) Scan(ctx context.Context, prefix, after string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		keys, err := s.listKeys(ctx, prefix, after, ">")
		if err != nil {
			yield(store.Entry{}, newError("scan", "", err))
			return
		}
		for page := range slices.Chunk(keys, getsAtOnce) {
			entries, err := s.getEntries(ctx, page)
			if err != nil {
				yield(store.Entry{}, newError("scan", "", err))
				return
			}
			for _, entry := range entries {
				if entry.Revision != "" && !yield(entry, nil) {
					return
				}
			}
		}
	}
}

// List implements [store.Lister]. It holds all keys in memory, and yields
// deleted ones, too.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		keys, err := s.listKeys(ctx, prefix, after, "*")
		for _, key := range keys {
			if err = s.checkUsable(ctx); err != nil {
				break
			}
			if !yield(key, nil) {
				return
			}
		}
		if err != nil {
			yield("", newError("list", "", err))
		}
	}
}

// listKeys returns the matching keys in order, including deleted ones, of which
// the last tokens match last. It asks the leader, because a consumer may be on a
// stale replica.
func (s *Store) listKeys(ctx context.Context, prefix, after, last string) ([]string, error) {
	ctx, endCall, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer endCall()
	var keys []string
	filter := subjectFilter(prefix, last)
	for subject, err := range allSubjects(func(offset int) (map[string]uint64, int, error) {
		return s.listSubjects(ctx, filter, offset)
	}) {
		if err != nil {
			return nil, s.withClosed(err)
		}
		key, ok := decodeKey(strings.TrimPrefix(subject, s.subject))
		if ok && key > after && strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

// pageOverlap is by how many subjects a page begins earlier if the page before
// it does not reach it.
const pageOverlap = 1000

// allSubjects yields the subjects of all pages, some of them repeatedly. page
// returns the sorted subjects from an offset on, as many as the server sends,
// and how many there are in all. Subjects may be removed meanwhile, so that
// others move to smaller offsets: a page must begin where the page before it has
// come to.
func allSubjects(page func(offset int) (subjects map[string]uint64, total int, err error)) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		last := ""
		for offset := 0; ; {
			subjects, total, err := page(offset)
			if err != nil {
				yield("", err)
				return
			}
			sorted := slices.Sorted(maps.Keys(subjects))
			if offset > 0 && (len(sorted) == 0 || sorted[0] > last) {
				offset = max(0, min(offset, total)-pageOverlap)
				continue
			}
			for _, subject := range sorted {
				if !yield(subject, nil) {
					return
				}
			}
			if offset += len(sorted); len(sorted) == 0 || offset >= total {
				return
			}
			last = sorted[len(sorted)-1]
			offset-- // the page begins with last, unless that is removed
		}
	}
}

// listTimeout is the time that a server has for a page of subjects. A server of
// 2.9 looks at all keys of the bucket for each page: with a million of them, that
// takes seconds.
const listTimeout = time.Minute

// listSubjects asks the leader for a page of the subjects of the bucket. The
// method of the client for this does not end if keys are added between pages.
func (s *Store) listSubjects(ctx context.Context, filter string, offset int) (page map[string]uint64, total int, err error) {
	request, err := json.Marshal(map[string]any{"subjects_filter": s.subject + filter, "offset": offset})
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	msg, err := s.nc.RequestWithContext(ctx, jetstream.DefaultAPIPrefix+"STREAM.INFO.KV_"+s.kv.Bucket(), request)
	if err != nil {
		return nil, 0, err
	}
	var response struct {
		Error *jetstream.APIError `json:"error"`
		Total int                 `json:"total"`
		State struct {
			Subjects map[string]uint64 `json:"subjects"`
		} `json:"state"`
	}
	if err := json.Unmarshal(msg.Data, &response); err != nil {
		return nil, 0, err
	}
	if response.Error != nil {
		return nil, 0, response.Error
	}
	return response.State.Subjects, response.Total, nil
}

// Watch implements [store.Watcher]. The returned sequence can be ranged over
// once.
func (s *Store) Watch(ctx context.Context, prefix string) iter.Seq2[store.Event, error] {
	watching, endCall, err := s.beginCall(ctx)
	var watcher jetstream.KeyWatcher
	if err == nil {
		watcher, err = s.kv.Watch(watching, subjectFilter(prefix, ">"), jetstream.UpdatesOnly())
		if err != nil {
			endCall()
			err = s.withClosed(err)
		}
	}
	if err != nil {
		return func(yield func(store.Event, error) bool) {
			if ctx.Err() == nil {
				yield(store.Event{}, newError("watch", "", err))
			}
		}
	}
	context.AfterFunc(watching, func() {
		_ = watcher.Stop() // fails if it has ended
		for range watcher.Updates() {
			// Drain the channel: the watcher ends only when it can send.
		}
	})
	return func(yield func(store.Event, error) bool) {
		defer endCall()
		for update := range watcher.Updates() {
			key, ok := decodeKey(update.Key())
			if !ok || !strings.HasPrefix(key, prefix) {
				continue
			}
			event, err := decodeEvent(key, update)
			if err != nil {
				yield(store.Event{}, newError("watch", key, err))
				return
			}
			if !yield(event, nil) {
				return
			}
		}
		if ctx.Err() == nil {
			yield(store.Event{}, newError("watch", "", s.withClosed(errors.New("the subscription has ended"))))
		}
	}
}

func decodeEvent(key string, update jetstream.KeyValueEntry) (store.Event, error) {
	if update.Operation() != jetstream.KeyValuePut {
		return store.Event{Entry: store.Entry{Key: key}, Deleted: true}, nil
	}
	entry, err := decodeEntry(key, update.Value())
	return store.Event{Entry: entry}, err
}

package natsstore

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentstate/state/store"
)

// Scan implements [store.Store]. It holds all matching keys in memory and reads
// one entry at a time.
func (s *Store) Scan(ctx context.Context, prefix, after string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		keys, err := s.listKeys(ctx, prefix, after)
		if err != nil {
			yield(store.Entry{}, newError("scan", "", err))
			return
		}
		for _, key := range keys {
			entry, err := s.getEntry(ctx, key)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				yield(store.Entry{}, newError("scan", key, err))
				return
			}
			if !yield(entry, nil) {
				return
			}
		}
	}
}

// listKeys returns the matching keys in order, including deleted ones. It asks
// the leader, because a consumer may be on a stale replica.
func (s *Store) listKeys(ctx context.Context, prefix, after string) ([]string, error) {
	ctx, endCall, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer endCall()
	var keys []string
	// The server counts the offset of a page from the first subject. Subjects
	// are added but never removed, so that pages may repeat keys but miss none.
	for offset := 0; ; {
		subjects, total, err := s.listSubjects(ctx, subjectFilter(prefix), offset)
		if err != nil {
			return nil, s.withClosed(err)
		}
		for subject := range subjects {
			key, ok := decodeKey(strings.TrimPrefix(subject, s.subject))
			if ok && key > after && strings.HasPrefix(key, prefix) {
				keys = append(keys, key)
			}
		}
		offset += len(subjects)
		if len(subjects) == 0 || offset >= total {
			break
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

// listSubjects asks the leader for a page of the subjects of the bucket. The
// method of the client for this does not end if keys are added between pages.
func (s *Store) listSubjects(ctx context.Context, filter string, offset int) (page map[string]uint64, total int, err error) {
	request, err := json.Marshal(map[string]any{"subjects_filter": s.subject + filter, "offset": offset})
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.js.Options().DefaultTimeout)
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
		watcher, err = s.kv.Watch(watching, subjectFilter(prefix), jetstream.UpdatesOnly())
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

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

// Scan yields the entries whose keys begin with prefix and come after after. It
// holds all these keys in memory, and reads one entry at a time.
func (s *Store) Scan(ctx context.Context, prefix, after string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		keys, err := s.keys(ctx, prefix, after)
		if err != nil {
			yield(store.Entry{}, fail("scan", "", err))
			return
		}
		for _, key := range keys {
			entry, err := s.get(ctx, key)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				yield(store.Entry{}, fail("scan", key, err))
				return
			}
			if !yield(entry, nil) {
				return
			}
		}
	}
}

// keys returns the keys in their order, deleted ones too. The leader knows all of
// them; a consumer may be on a replica that does not yet.
func (s *Store) keys(ctx context.Context, prefix, after string) ([]string, error) {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	var keys []string
	// A page counts from the first subject, and none but the owner of the bucket
	// removes any: with new ones a page repeats keys, and leaves out none.
	for offset := 0; ; {
		subjects, total, err := s.subjects(ctx, filter(prefix), offset)
		if err != nil {
			return nil, s.ended(err)
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

// subjects asks the leader for a page of the subjects of the bucket. The client
// has a method for this, which does not end when keys are added between pages.
func (s *Store) subjects(ctx context.Context, filter string, offset int) (page map[string]uint64, total int, err error) {
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

// Watch yields the changes of keys that begin with prefix. It can be ranged over
// once, and just ends when ctx does.
func (s *Store) Watch(ctx context.Context, prefix string) iter.Seq2[store.Event, error] {
	watching, end, err := s.begin(ctx)
	var watcher jetstream.KeyWatcher
	if err == nil {
		watcher, err = s.kv.Watch(watching, filter(prefix), jetstream.UpdatesOnly())
		if err != nil {
			end()
			err = s.ended(err)
		}
	}
	if err != nil {
		return func(yield func(store.Event, error) bool) {
			if ctx.Err() == nil {
				yield(store.Event{}, fail("watch", "", err))
			}
		}
	}
	context.AfterFunc(watching, func() {
		_ = watcher.Stop() // fails if it has ended
		for range watcher.Updates() {
			// It blocks while there is something to take.
		}
	})
	return func(yield func(store.Event, error) bool) {
		defer end()
		for update := range watcher.Updates() {
			key, ok := decodeKey(update.Key())
			if !ok || !strings.HasPrefix(key, prefix) {
				continue
			}
			event, err := decodeEvent(key, update)
			if err != nil {
				yield(store.Event{}, fail("watch", key, err))
				return
			}
			if !yield(event, nil) {
				return
			}
		}
		if ctx.Err() == nil {
			yield(store.Event{}, fail("watch", "", s.ended(errors.New("the subscription has ended"))))
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

package natsstore

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// markers are the markers that this process has written for deleted keys. It has
// the server remove them when watchers have seen them: otherwise a bucket would
// grow with each key that it has ever had, and listing and writing would become
// slower.
type markers struct {
	mu     sync.Mutex
	oldest []marker // the oldest first
}

type marker struct {
	subject  string
	sequence uint64
	written  time.Time
}

const (
	// markerAge is the time after which watchers have seen a marker. What a write
	// costs grows with the markers that are left.
	markerAge = 3 * time.Second
	// maxMarkers is the number of markers that a process remembers.
	maxMarkers = 1 << 16
	// markersAtOnce is the number of markers that are removed after a deletion,
	// so that none waits long while there are deletions.
	markersAtOnce = 4
)

// note remembers the marker of a deleted key, and returns those that are due.
func (m *markers) note(subject string, sequence uint64) (due []marker) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.oldest = append(m.oldest, marker{subject, sequence, now})
	for len(due) < markersAtOnce && (now.Sub(m.oldest[0].written) >= markerAge || len(m.oldest) > maxMarkers) {
		due = append(due, m.oldest[0])
		m.oldest = m.oldest[1:]
	}
	return due
}

// removeMarkers has the server remove markers that are due, after the deletion
// of a key with a marker. It does not wait for it: a marker that stays only takes
// room. The server leaves a newer message of the key alone.
func (s *Store) removeMarkers(subject string, sequence uint64) {
	for _, m := range s.markers.note(subject, sequence) {
		request, err := json.Marshal(map[string]any{"filter": m.subject, "seq": m.sequence + 1})
		if err == nil {
			_ = s.nc.Publish(jetstream.DefaultAPIPrefix+"STREAM.PURGE."+s.stream.CachedInfo().Config.Name, request)
		}
	}
}

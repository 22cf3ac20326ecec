package workspace

import (
	"sync"
	"time"
)

// logInterval is the least time between two records of one event for one user,
// at slog.LevelWarn and above.
const logInterval = time.Minute

// logLimiter limits the records of one event.
type logLimiter struct {
	mu     sync.Mutex
	events map[loggedEvent]*logCount
	pruned time.Time // when old ones were forgotten
}

type loggedEvent struct{ name, user string }

type logCount struct {
	logged time.Time
	held   int // records that were held back since
}

// maxLoggedEvents is the number of events above which old ones are forgotten.
const maxLoggedEvents = 1024

// admit reports whether an event may be logged, and how many were held back
// before.
func (l *logLimiter) admit(e loggedEvent) (held int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	c := l.events[e]
	if c != nil && now.Sub(c.logged) < logInterval {
		c.held++
		return 0, false
	}
	if c != nil {
		held = c.held
	}
	if l.events == nil {
		l.events = map[loggedEvent]*logCount{}
	}
	if len(l.events) >= maxLoggedEvents && now.Sub(l.pruned) >= logInterval { // not for each of many users
		l.pruned = now
		for e, c := range l.events {
			if now.Sub(c.logged) >= logInterval {
				delete(l.events, e)
			}
		}
	}
	l.events[e] = &logCount{logged: now}
	return held, true
}

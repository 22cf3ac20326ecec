package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/work"
)

// manyTries is the number of attempts of one write above which it is reported, as
// contention if that many failed because others were faster.
const manyTries = 8

// log returns the Logger for a level, or nil. What is wrong goes to that of the process
// if Options has none: whoever gives up a message in silence is looked for long.
func (m *telemetry) log(level slog.Level) *slog.Logger {
	if m.logger == nil && level >= slog.LevelWarn {
		return slog.Default()
	}
	return m.logger
}

// logs reports whether records of a level are logged.
func (m *telemetry) logs(ctx context.Context, level slog.Level) (ok bool) {
	logger := m.log(level)
	if logger == nil {
		return false
	}
	defer func() { _ = recover() }() // then it does not
	return logger.Enabled(ctx, level)
}

// logEvent logs an event of a user's workspace. A Logger that panics is ignored.
func (m *telemetry) logEvent(ctx context.Context, level slog.Level, name, user string, attrs ...slog.Attr) {
	if !m.logs(ctx, level) {
		return
	}
	if level >= slog.LevelWarn {
		held, ok := m.logLimit.admit(loggedEvent{name, user})
		if !ok {
			return
		}
		if held > 0 {
			attrs = append(attrs, slog.Int("held_back", held))
		}
	}
	if user != "" {
		attrs = append([]slog.Attr{slog.String("user", user)}, attrs...)
	}
	defer func() { _ = recover() }()
	m.log(level).LogAttrs(ctx, level, name, attrs...)
}

// logEvent logs an event of an operation.
func (o *operation) logEvent(level slog.Level, name string, err error) {
	if !o.m.logs(o.ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 8)
	text := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	text("run", o.RunID)
	text("message", o.MessageID)
	if o.Kind == work.OpRun {
		attrs = append(attrs, slog.Int("attempt", o.Attempt))
	}
	if o.Version > 0 {
		attrs = append(attrs, slog.Uint64("version", o.Version))
	}
	if o.Tries > manyTries {
		attrs = append(attrs, slog.Int("tries", o.Tries))
	}
	attrs = append(attrs, slog.Duration("took", time.Since(o.began)))
	if err != nil {
		attrs = append(attrs, errorAttr(err, o.errorText(err)))
	}
	o.m.logEvent(o.ctx, level, name, o.UserID, attrs...)
}

// log logs that an operation has ended.
func (o *operation) log() {
	err := o.Err
	if o.Conflicts >= manyTries {
		o.raise(alarmContention, &maskedError{
			fmt.Sprintf("workspace: %d attempts to write, %d of them too late", o.Tries, o.Conflicts), store.ErrConflict})
	}
	if a, ok := seriousAlarm(err); ok {
		o.raise(a, err)
		return
	}
	if errors.Is(err, store.ErrUnknownOutcome) && o.Kind != work.OpHandle {
		o.raise(alarmUnknown, err)
	}
	switch o.Kind {
	case work.OpRun:
		o.logRun()
	case work.OpHeartbeat:
		if o.late() {
			o.raise(alarmHeartbeat, cmp.Or(err, fmt.Errorf("workspace: %v of the lease were left", o.Left)))
			return
		}
		o.logEvent(slog.LevelDebug, "heartbeat", err)
	case work.OpTakeover:
		switch {
		case o.Taken:
			o.logEvent(slog.LevelInfo, "run taken over", nil)
		case err != nil:
			o.logEvent(slog.LevelDebug, "takeover failed", err)
		}
	case work.OpCompact:
		switch {
		case err != nil:
			o.raise(alarmCompaction, err)
		case o.wrote:
			o.logEvent(slog.LevelDebug, "compaction", nil)
		}
	case opRelease:
		if err != nil && !errors.Is(err, ErrFenced) {
			o.raise(alarmNotReleased, err)
		}
	default:
		if e, ok := endEvents[o.Kind]; ok && err == nil && o.wrote {
			o.logEvent(e.level, e.name, nil)
		}
	}
}

// endEvents are the events of operations that have succeeded.
var endEvents = map[work.OpKind]struct {
	level slog.Level
	name  string
}{
	work.OpCommit:  {slog.LevelDebug, "commit"},
	work.OpUpdate:  {slog.LevelDebug, "update"},
	work.OpReset:   {slog.LevelInfo, "workspace reset"},
	work.OpDelete:  {slog.LevelInfo, "workspace deleted"},
	opDeleteUser:   {slog.LevelInfo, "user deleted"},
	work.OpCancel:  {slog.LevelInfo, "run cancelled"},
	work.OpRetry:   {slog.LevelInfo, "message retried"},
	work.OpDiscard: {slog.LevelInfo, "message discarded"},
}

// logRun logs that a run that was held here has ended.
func (o *operation) logRun() {
	switch o.Ended {
	case work.EndingFinished:
		o.logEvent(slog.LevelDebug, "run finished", nil)
	case work.EndingFailed:
		if errors.Is(o.Err, errPanic) {
			o.raise(alarmPanic.of("run"), o.Err)
		}
		o.logEvent(slog.LevelDebug, "run failed", o.Err)
	case work.EndingFenced:
		o.raise(alarmFenced, o.Err)
	case work.EndingAbandoned:
		if errors.Is(o.Err, errEndNotStored) {
			o.raise(alarmEndNotStored, o.Err)
			return
		}
		o.logEvent(slog.LevelDebug, "run released", o.Err)
	case "":
		o.logEvent(slog.LevelDebug, "run waits for another attempt", o.Err)
	default:
		o.logEvent(slog.LevelInfo, "run interrupted", o.Err)
	}
}

// logSubmitted logs what happened to a message when it was handed over.
func (m *telemetry) logSubmitted(ctx context.Context, user, messageID string, status Status, err error) {
	message := slog.String("message", messageID)
	switch {
	case errors.Is(err, ErrQueueFull):
		m.raise(ctx, alarmQueueFull, user, err, message)
	case status == StatusStarted: // even if its run could not be begun
		m.logEvent(ctx, slog.LevelDebug, "message accepted", user, message)
	case errors.Is(err, store.ErrUnknownOutcome):
		m.raise(ctx, alarmUnknown, user, err, message)
	case err == nil: // else see log
		m.logEvent(ctx, slog.LevelDebug, "message "+string(status), user, message)
	}
}

// logSlow logs that code of the user has held the Manager up.
func (m *telemetry) logSlow(ctx context.Context, what, user string, took time.Duration) {
	m.raise(ctx, alarmSlow.of(what), user, fmt.Errorf("workspace: it took %v", took), slog.Duration("took", took))
}

// errorAttr returns the class of an error, and its text, in which secrets are
// masked. The error of a panic has the stack as well, and that of a right which an
// agent lacks the setting that would give it.
func errorAttr(err error, text string) slog.Attr {
	attrs := []any{slog.String("class", ErrorClass(err)), slog.String("text", text)}
	var panicked *panicError
	if errors.As(err, &panicked) && panicked.stack != "" {
		attrs = append(attrs, slog.String("stack", panicked.stack))
	}
	if denied := (*state.AccessError)(nil); errors.As(err, &denied) {
		attrs = append(attrs, slog.String("hint", denied.Hint()))
	}
	return slog.Group("err", attrs...)
}

// errorText returns the text of an error of the operation, in which the secrets
// of the content are masked. If the content is not known, an error that code of
// the user may have made has no text.
func (o *operation) errorText(err error) string {
	switch {
	case !o.callsUser(), errors.As(err, new(*maskedError)):
		return err.Error()
	case o.Redact != nil:
		return o.Redact(err.Error())
	}
	return masked
}

// callsUser reports whether an error of the operation may be one of a function
// of the user.
func (o *operation) callsUser() bool {
	switch o.Kind {
	case work.OpHandle:
		return o.RunID != ""
	case work.OpRun:
		return o.Redact != nil // else it was not loaded
	case work.OpCommit, work.OpUpdate, opDo:
		return true
	}
	return false
}

// seriousAlarm returns the alarm of an error that an operator must look after.
func seriousAlarm(err error) (a alarm, ok bool) {
	switch {
	case err == nil:
		return a, false
	case errors.Is(err, ErrRolledBack):
		return alarmRolledBack, true
	case errors.Is(err, ErrNewerFormat):
		return alarmNewerFormat, true
	case errors.Is(err, ErrInvalidKey):
		return alarmWrongKey, true
	case errors.Is(err, ErrCorrupt):
		return alarmCorrupt, true
	}
	return a, false
}

// logInterval is the least time between two records of one event for one user,
// at slog.LevelWarn and above.
const logInterval = time.Minute

// logLimiter lets one record of each event and user through in each interval.
type logLimiter struct {
	mu          sync.Mutex
	began       time.Time // when the interval began
	now, before map[loggedEvent]int
}

type loggedEvent struct{ name, user string }

// admit reports whether an event may be logged, and how many were held back in
// the interval before.
func (l *logLimiter) admit(e loggedEvent) (held int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if age := time.Since(l.began); age >= logInterval {
		l.before = l.now
		if age >= 2*logInterval {
			l.before = nil
		}
		l.began, l.now = time.Now(), map[loggedEvent]int{}
	}
	l.now[e]++
	return max(0, l.before[e]-1), l.now[e] == 1
}

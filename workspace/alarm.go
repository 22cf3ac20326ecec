package workspace

import (
	"context"
	"log/slog"
	"strings"
)

// alarm is an event at slog.LevelWarn or slog.LevelError. The table in
// docs/production.md has all of them, and what to do. "…" stands for the code or
// the work that it is about.
type alarm struct {
	name  string
	level slog.Level
}

var (
	alarmNotDurable     = alarm{"store is not durable", slog.LevelWarn}
	alarmContention     = alarm{"contention", slog.LevelWarn}
	alarmUnknown        = alarm{"unknown outcome", slog.LevelWarn}
	alarmStore          = alarm{"store error", slog.LevelWarn}
	alarmHeartbeat      = alarm{"late heartbeat", slog.LevelWarn}
	alarmFenced         = alarm{"run fenced", slog.LevelWarn}
	alarmNotBegun       = alarm{"run was not begun", slog.LevelWarn}
	alarmQueueFull      = alarm{"queue full", slog.LevelWarn}
	alarmDeadLetter     = alarm{"dead letter", slog.LevelWarn}
	alarmDropped        = alarm{"dead letter dropped", slog.LevelWarn}
	alarmCompaction     = alarm{"compaction failed", slog.LevelWarn}
	alarmHolderLost     = alarm{"holder record was lost", slog.LevelWarn}
	alarmHolderLeft     = alarm{"holder record was not deleted", slog.LevelWarn}
	alarmTitle          = alarm{"no title", slog.LevelWarn}
	alarmWindow         = alarm{"window was not moved", slog.LevelWarn}
	alarmExpired        = alarm{"calls have expired and are not answered", slog.LevelWarn}
	alarmNotMade        = alarm{"approved calls were not made", slog.LevelWarn}
	alarmNotTold        = alarm{"nobody was told of a call", slog.LevelWarn}
	alarmUserNotDeleted = alarm{"user is not deleted yet", slog.LevelWarn}
	alarmUnread         = alarm{"stored fields are not in the schema", slog.LevelWarn}
	alarmLacking        = alarm{"… is read and not in the schema", slog.LevelWarn}
	alarmDenied         = alarm{"access denied to a tool", slog.LevelWarn}
	alarmSlow           = alarm{"… took long", slog.LevelWarn}
	alarmPanic          = alarm{"… panicked", slog.LevelError}
	alarmLeftBehind     = alarm{"… was left behind", slog.LevelError}
	alarmGivenUp        = alarm{"… was given up", slog.LevelError}
	alarmNotReleased    = alarm{"run was not released", slog.LevelError}
	alarmEndNotStored   = alarm{"end of run was not stored", slog.LevelError}
	alarmClock          = alarm{"clocks differ", slog.LevelError}
	alarmRolledBack     = alarm{"rolled back", slog.LevelError}
	alarmNewerFormat    = alarm{"newer format", slog.LevelError}
	alarmWrongKey       = alarm{"wrong key", slog.LevelError}
	alarmCorrupt        = alarm{"corrupt", slog.LevelError}
)

// of returns the alarm with what "…" stands for.
func (a alarm) of(what string) alarm { return alarm{strings.Replace(a.name, "…", what, 1), a.level} }

// raise logs an alarm that is not about an operation. The error is none of a
// function in Options, or a maskedError.
func (m *telemetry) raise(ctx context.Context, a alarm, user string, err error, attrs ...slog.Attr) {
	m.logEvent(ctx, a.level, a.name, user, append(attrs, errorAttr(err, err.Error()))...)
}

// raise logs an alarm.
func (o *operation) raise(a alarm, err error) { o.logEvent(a.level, a.name, err) }

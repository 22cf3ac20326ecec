package workspace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
)

// Options configures a Manager. All Managers of one workspace, in all
// processes, should have the same Options, except Name.
type Options struct {
	// Schema is the schema of the State (default: any name is accepted).
	Schema *state.Schema

	// Run handles a message. If it returns nil, the run is finished: the
	// changes of the State are stored, and the message is done. If it returns
	// an error, the uncommitted changes are lost and the message has failed;
	// but with an error of RetryAfter, Run is called again later, and if ctx
	// has ended, another holder continues the run at once. After the death of a
	// process, Run is called again with the committed changes: the calls of tools
	// that have no result are open, and are to be made before a model is asked, as
	// Loop and loop.Turn do. ctx ends when
	// the run loses its lease; context.Cause says why.
	//
	// Run is called in a goroutine of its own. If it panics, or ends the
	// goroutine, the message has failed. For one user it is called only after
	// the function of the run before has returned, but it does not wait longer
	// than TTL, nor for other processes.
	Run func(ctx context.Context, run *Run) error

	// ThreadMemory says that the memory belongs to a thread also if the Schema has
	// shared fields. Without shared fields it always does; otherwise it belongs to
	// the user, as they do.
	ThreadMemory bool

	// WhenBusy determines what happens to a message that arrives during a run and
	// whose own WhenBusy is BusyDefault (default BusyEnqueue).
	WhenBusy WhenBusy

	// Queue is the maximum number of messages that wait for a workspace (default
	// 32), and QueueBytes is the maximum length of their JSON (default 16 MiB).
	// Beyond that, a message is ErrQueueFull during a run.
	Queue, QueueBytes int

	// Runs is the maximum number of runs that a Manager holds at once (default
	// 256). Beyond it, Handle and Submit store the message, whose run then waits
	// until this Manager, or another one that looks at the workspace, has room
	// for it.
	Runs int

	// TTL is the lifetime of a lease that is not renewed (default 4 s). The
	// Manager renews all of its leases together, every TTL/3, while it holds
	// runs. A run is taken over 1.5 × TTL after the last heartbeat of its holder,
	// or at once if a Manager with the same Name has begun. A store that is
	// away ends no run, however long.
	TTL time.Duration

	// StoreTimeout is the time after which a call returns the error of a store
	// that refuses what the call needs again and again, or does not answer
	// (default 15 s). An error that cannot pass, which matches store.ErrRefused,
	// is returned at once. If the error is store.ErrUnknownOutcome, a message may
	// have been accepted: send it again with its ID. A run does not end with it:
	// it tries again until the store is back or another holder has the run.
	StoreTimeout time.Duration

	// RunTimeout is the longest time that Run may take for one attempt (default:
	// no limit). Then the context of the run ends with ErrRunTimeout. If Run
	// returns nil all the same, the run is finished; otherwise the attempt has
	// failed, and the run begins again after a second, which doubles with each
	// attempt, or after the delay of RetryAfter. After Attempts, its message
	// becomes a dead letter.
	//
	// Go cannot end a goroutine. A Run that has not returned one TTL after the
	// end of its context, for whatever reason, is left behind: see
	// Stats.Abandoned. Its stack is logged, what it has committed stands, and its
	// later writes are ErrFenced. The attempt has failed, too, and its slot is
	// free. Without RunTimeout, a Run whose context nobody ends keeps its user
	// waiting for as long as it takes.
	RunTimeout time.Duration

	// Name is that of this Manager as a holder of runs, for a process that is begun
	// again after its death, such as that of a container with a stable host name: 1
	// to 64 visible ASCII characters (default: a random name). When the next
	// Manager with the name is opened, runs that the one before has left need not
	// wait for the end of their leases. No two Managers may have the name at the
	// same time: the first one would lose its runs, with ErrHolder, and go on under
	// a random name. Within one process, Open logs that of the second.
	Name string

	// Takeover determines what happens to the committed changes of a run that
	// is taken over (default TakeoverResume).
	Takeover Takeover

	// Attempts is the maximum number of times that a run is begun (default 3).
	// After that, its message becomes a dead letter.
	Attempts int

	// DeadLetters is the maximum number of dead letters that a workspace keeps
	// (default 64). They have at most 64 KiB, unless there is only one. Beyond
	// that, the oldest is dropped: its ending is EndingDropped.
	DeadLetters int

	// UserRuns is the maximum number of runs that a Manager holds at once for the
	// threads of one user (default: no limit but Runs). Beyond it, the next run of
	// the user waits as beyond Runs.
	UserRuns int

	// Title returns the title of a conversation, for [Summary.Title], or "" if it
	// stays what it is (default: no titles). It is called with the State that is
	// about to be stored, and reads only that. Whoever lists threads shows the title:
	// make it of what State.As lets them read. Secrets are masked, and at most the
	// first 200 bytes are kept. A Title that panics changes nothing.
	Title func(st *state.State) string

	// KeepMessages is the number of messages of the conversation that a finished
	// run keeps, as transcript.KeepLast does (default 50; with a Window, 10 000).
	// Of messages with more than 12 MiB, it keeps at most 6 MiB. KeepResults is the
	// number of results of the history that it keeps (default 50). A negative
	// number keeps all.
	KeepMessages, KeepResults int

	// Window decides what of the conversation models are shown: package wire
	// applies it within runs, unless its Transport has one, and so does a call of
	// its method Messages with the context of a run (default: none). Summaries
	// that are due are made after a run has ended and its sender has the reply,
	// and take no turn: a message that comes meanwhile is handled with what was
	// shown before. A run waits for one only if a request would have more than
	// Target+Keep tokens. After 5 minutes the context of such a summary ends, and a
	// TTL later it is left behind, as a Run is. One that is made while the
	// workspace is reset or deleted is dropped.
	Window *transcript.Window

	// RecordBytes is the number of bytes of records that compaction keeps for
	// [Manager.Records], ViewAt, Diff and Revert, the newest ones (default 256 KiB,
	// at most 1 GiB). It also keeps the content before them: a workspace takes
	// RecordBytes and some of its own size more in the store. What one compaction
	// moves, 64 KiB of records or more, is kept whole until the next, and may
	// exceed RecordBytes. A negative number keeps none. Records since the last
	// compaction are held in any case.
	//
	// When a run or update has replaced or deleted a secret, all records before
	// its end are deleted at once, whatever RecordBytes says, and so they are by
	// [Manager.Compact], Reset and Delete.
	RecordBytes int

	// Keys seal the stored data (default: not sealed). The first key seals, and
	// all of them open.
	Keys []Key

	// Notify is told that a call waits for a decision, to mail or to ring, and, if
	// it has a time, again when that is over: then call.Expired is true (default: nobody
	// is told). It is called for all users, after the call was stored, with the Key
	// that a decision names, in a goroutine of its own, for 3 × TTL at most.
	//
	// It is called at least once. If it returns an error or panics, or its process
	// dies, it is called again, by any Manager with Options.Run that has it, 30 s
	// after the call was suspended, or every TTL if the time is over. Until then, a call
	// whose time is over has no result. Several Managers may call it at once; the
	// key tells repetitions.
	Notify func(ctx context.Context, userID string, call Suspended) error

	// Live lets those who watch a workspace in another process see the text that a
	// model is streaming, about a second late: see [Run.Emit]. While it is streamed,
	// its last 64 KiB are written to the store twice a second, sealed with Keys. They
	// go with the run.
	Live bool

	// Tracer is told of operations (default: none). If it is also a
	// [tool.Tracer], it is told of the calls of tools in runs.
	Tracer work.Tracer

	// Logger gets what happens to workspaces (default: slog.Default gets what no
	// caller is told, such as a message that is given up, a panic or a store that is
	// away; slog.DiscardHandler silences it). What runs and messages do is logged at
	// slog.LevelDebug, what operators do and takeovers at LevelInfo, what needs
	// attention at LevelWarn, and damaged data, panics and work that was given up at
	// LevelError. The attributes are user, run,
	// message, attempt, version, took and err, a group with the class of the
	// error and its text. Values are not logged, and the secrets of the
	// workspace are masked in the text of errors. From LevelWarn on, an event is
	// logged once a minute for each user; held_back is the number of those that
	// were not logged in the minute before.
	Logger *slog.Logger

	Hooks Hooks
}

// maxTTL is the longest TTL. Ten times as much must be a time.Duration.
const maxTTL = 366 * 24 * time.Hour

// maxRecordBytes is the largest RecordBytes.
const maxRecordBytes = 1 << 30

// complete sets the defaults and checks the options.
func (o *Options) complete() error {
	if o.Window != nil && o.KeepMessages == 0 {
		o.KeepMessages = 10_000
	}
	for _, d := range []struct {
		n     *int
		value int
	}{
		{&o.Queue, 32}, {&o.QueueBytes, 16 << 20}, {&o.Runs, 256}, {&o.Attempts, 3}, {&o.DeadLetters, 64},
		{&o.KeepMessages, 50}, {&o.KeepResults, 50}, {&o.RecordBytes, 256 << 10},
	} {
		if *d.n == 0 {
			*d.n = d.value
		}
	}
	if o.TTL == 0 {
		o.TTL = 4 * time.Second
	}
	if o.StoreTimeout == 0 {
		o.StoreTimeout = 15 * time.Second
	}
	if o.WhenBusy == BusyDefault {
		o.WhenBusy = BusyEnqueue
	}
	switch {
	case o.Queue < 0 || o.QueueBytes < 0 || o.Runs < 0 || o.UserRuns < 0 || o.Attempts < 0 || o.DeadLetters < 0:
		return fmt.Errorf("%w: Queue, QueueBytes, Runs, UserRuns, Attempts and DeadLetters must not be negative", ErrInvalid)
	case o.RecordBytes > maxRecordBytes:
		return fmt.Errorf("%w: RecordBytes is more than 1 GiB", ErrInvalid)
	case o.TTL < 10*time.Millisecond:
		return fmt.Errorf("%w: TTL is less than 10 ms", ErrInvalid)
	case o.StoreTimeout < 0 || o.RunTimeout < 0:
		return fmt.Errorf("%w: StoreTimeout and RunTimeout must not be negative", ErrInvalid)
	case o.TTL > maxTTL:
		return fmt.Errorf("%w: TTL is more than a year", ErrInvalid)
	case !isKnown(o.WhenBusy):
		return fmt.Errorf("%w: WhenBusy is unknown", ErrInvalid)
	case o.Takeover < TakeoverResume || o.Takeover > TakeoverRestart:
		return fmt.Errorf("%w: Takeover is unknown", ErrInvalid)
	case o.Name != "":
		return ledger.CheckHolderName(o.Name)
	}
	return nil
}

// Hooks observe what a Manager does. Each hook is called after the change was
// stored, without any lock, and at most once: it is not called if the process
// dies in between. The run waits for its hooks, for 3 × TTL at most, so they
// should return soon. A
// panic in a hook, and the end of its goroutine, are reported to Options.Logger
// and change nothing else. A nil hook is not called. The hooks for runs are not
// called for those of [Manager.Do].
type Hooks struct {
	// OnRunStart is called when a run begins, and again for each further attempt.
	OnRunStart func(ctx context.Context, run *Run)
	// OnRunComplete is called when a run has ended. err is nil if the run is
	// finished, and otherwise the error with which it has failed. It is not called
	// for a run that is left to another holder, or that another message has ended.
	OnRunComplete func(ctx context.Context, run *Run, err error)
}

func (m *Manager) runStarted(run *Run) {
	if hook := m.opts.Hooks.OnRunStart; hook != nil {
		m.callHook(run.ctx, "OnRunStart", run.user, run.Redact, func() { hook(run.ctx, run) })
	}
}

func (m *Manager) runCompleted(ctx context.Context, run *Run, err error) {
	if run.ticket {
		return
	}
	if hook := m.opts.Hooks.OnRunComplete; hook != nil {
		m.callHook(ctx, "OnRunComplete", run.user, run.Redact, func() { hook(ctx, run, err) })
	}
}

// maxHookTime is the longest time that a run waits for a hook, in TTLs.
const maxHookTime = 3

// callHook calls a hook. What goes wrong in it does not concern the run.
func (m *Manager) callHook(ctx context.Context, name, user string, redact func(string) string, hook func()) {
	err := m.callInTime(ctx, "hook "+name, user, redact, func() error { hook(); return nil })
	if err != nil && !errors.Is(err, errHookOverdue) {
		m.raise(ctx, alarmPanic.of("hook "+name), user, err)
	}
}

// callInTime calls code of the user, for maxHookTime at most.
func (m *Manager) callInTime(
	ctx context.Context, what, user string, redact func(string) string, code func() error,
) error {
	began := time.Now()
	c := startCode(what, redact, code)
	timeout := time.NewTimer(maxHookTime * m.opts.TTL)
	defer timeout.Stop()
	err := errHookOverdue
	select {
	case <-c.done:
		err = c.err
	case <-timeout.C:
		m.leaveCode(ctx, c, user, "")
	}
	if took := time.Since(began); took > m.opts.TTL/10 {
		m.logSlow(ctx, what, user, took)
	}
	return err
}

// Key is a master key, from which a key for each workspace is derived. A Key
// that is printed, logged or marshalled never shows the Secret.
//
// A process that is not given the key of a value cannot read it: it gets
// ErrInvalidKey and writes nothing, and a run that it holds is left to other
// processes. So a new key is introduced in this order:
//
//  1. Add it as the second of Options.Keys in every process: all can read what
//     is sealed with it, and none seals with it yet.
//  2. When every process runs so, make it the first everywhere.
//  3. When every process runs so, call [Manager.Compact] for every workspace of
//     [Manager.Summaries], and again for one as long as Verify reports the old
//     key, because a run was under way.
//  4. Remove the old key, unless [Manager.Expire] still has to remove deleted
//     workspaces that are sealed with it.
//
// Data that was written without keys is ErrInvalidKey for a Manager that has
// some: nothing authenticates it. So a deployment without keys gets its first
// key while no process uses the workspaces. For each of them, a Manager
// without keys calls Export and Delete, and then Expire with 0. A Manager with
// the key calls ImportWorkspace. The values of [Manager.Store] go along. Keep
// the exports until that is done.
type Key struct {
	ID     string // stored next to sealed data: 1 to 64 visible ASCII characters
	Secret []byte // at least 32 random bytes
}

// String returns the ID.
func (k Key) String() string { return fmt.Sprintf("key %s %s", fault.Quote(k.ID), masked) }

// Format prints String, whatever the verb.
func (k Key) Format(f fmt.State, _ rune) { fmt.Fprint(f, k.String()) }

// LogValue returns String.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText returns String.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// newSealer returns a sealer that seals with the first key and opens with all
// of them, or nil if there are no keys.
func newSealer(keys []Key) (*ledger.Sealer, error) {
	plain := make([]ledger.Key, len(keys))
	for i, k := range keys {
		plain[i] = ledger.Key(k)
	}
	return ledger.NewSealer(plain)
}

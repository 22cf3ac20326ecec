package processes

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentstate/state/internal/test/worker"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

func TestMain(m *testing.M) {
	// Most of the time the tests wait until a process counts as dead.
	_ = flag.Set("test.parallel", "32")
	os.Exit(worker.Main(m, task.do))
}

// task is what a worker does.
type task struct {
	Job      string
	Address  string
	TTL      time.Duration
	Takeover workspace.Takeover
	Holder   string `json:",omitempty"`
	Joins    bool   // messages join the runs of a Loop
	Updates  bool   // each step is an update of what is shared: its run may be begun anew
}

// request is an operation that a worker executes.
type request struct {
	Op      string
	User    string `json:",omitempty"`
	Message string `json:",omitempty"`
	Busy    workspace.WhenBusy
	Handle  int `json:",omitempty"` // of a run that the worker holds
}

// reply is the answer to a request, or if it has an Event, something that happened
// without one.
type reply struct {
	Event    event            `json:",omitempty"`
	User     string           `json:",omitempty"`
	Run      string           `json:",omitempty"`
	Message  string           `json:",omitempty"`
	Attempt  int              `json:",omitempty"`
	Token    string           `json:",omitempty"` // what was committed
	Handle   int              `json:",omitempty"`
	Status   workspace.Status `json:",omitempty"`
	Fate     fate             `json:",omitempty"`
	Steps    int              `json:",omitempty"`
	Snapshot string           `json:",omitempty"`
	Problem  string           `json:",omitempty"` // the test fails with it
}

type event string

const (
	began     event = "began"     // a run has begun, or was taken over
	committed event = "committed" // Commit has returned
	completed event = "completed" // the run is finished
	lost      event = "lost"      // the run can no longer commit
	wrong     event = "wrong"     // Problem says what
)

// fate is the outcome of a call.
type fate string

const (
	made    fate = "made"
	busy    fate = "busy"
	full    fate = "full"
	fenced  fate = "fenced"
	silent  fate = "silent" // fenced because the lease was not renewed
	ended   fate = "ended"
	unknown fate = "unknown"
	failed  fate = "failed"
)

func (t task) do() error {
	jobs := map[string]func(task) error{"serve": serve, "hold": hold, "operate": operate}
	job, ok := jobs[t.Job]
	if !ok {
		return fmt.Errorf("no job %q", t.Job)
	}
	return job(t)
}

// say prints what has happened in a worker without a request.
func say(r reply) {
	_ = worker.Print(r) // fails if the parent is gone
}

// process is a worker as its parent sees it.
type process = worker.Process[request, reply]

// start starts a worker, which is killed when ctx ends. The events of the worker
// go to hear, one at a time.
func start(ctx context.Context, t task, hear func(*process, reply)) (*process, error) {
	return worker.Start(ctx, t, hear)
}

// fateOf returns the outcome that an error stands for. It is failed for an error
// that the tests do not expect.
func fateOf(err error) fate {
	if errors.Is(err, store.ErrUnknownOutcome) { // also of a run that has lost its lease
		return unknown
	}
	// Only the text of the error says which side has ended the lease.
	if errors.Is(err, workspace.ErrFenced) {
		switch {
		case strings.Contains(err.Error(), "the lease was not renewed"),
			strings.Contains(err.Error(), "the workspace could not be written"),
			strings.Contains(err.Error(), "holder record is lost"):
			return silent
		case strings.Contains(err.Error(), "the end of the run was not stored"):
			return unknown
		}
	}
	for _, known := range []struct {
		err  error
		fate fate
	}{
		{workspace.ErrBusy, busy},
		{workspace.ErrQueueFull, full},
		{workspace.ErrFenced, fenced},
		{context.DeadlineExceeded, unknown}, // of a Finish on a slow machine: the run is taken over
		{workspace.ErrRunEnded, ended},
	} {
		if errors.Is(err, known.err) {
			return known.fate
		}
	}
	if err == nil {
		return made
	}
	return failed
}

// underRace reports whether this was built with the race detector.
func underRace() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

#!/usr/bin/env bash
# go-workflows makes an activity twice at the same time, in one worker, if its lock is shorter than the activity and than
# the interval of the worker's heartbeat, which is an option of another package (25 s by default). Nothing warns.
# The guess was that the heartbeat follows from the timeout of the lock.
#
# Seen on 2026-11-28, with Go 1.26 and github.com/cschleiden/go-workflows v1.2.0.
set -euo pipefail

folder=$(mktemp -d)
trap 'chmod -R u+w -- "$folder"; rm -rf -- "$folder"' EXIT
cd -- "$folder"
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>get.log && go get github.com/cschleiden/go-workflows@v1.2.0 2>>get.log || {
	cat get.log >&2
	exit 1
}
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/cschleiden/go-workflows/backend"
	"github.com/cschleiden/go-workflows/backend/sqlite"
	"github.com/cschleiden/go-workflows/client"
	"github.com/cschleiden/go-workflows/worker"
	"github.com/cschleiden/go-workflows/workflow"
)

var started, running, most atomic.Int32

func activity(context.Context) (int, error) {
	call := started.Add(1)
	if now := running.Add(1); now > most.Load() {
		most.Store(now)
	}
	defer running.Add(-1)
	time.Sleep(3 * time.Second)
	return int(call), nil
}

func once(ctx workflow.Context) (int, error) {
	return workflow.ExecuteActivity[int](ctx, workflow.ActivityOptions{RetryOptions: workflow.RetryOptions{MaxAttempts: 1}}, activity).Get(ctx)
}

func main() {
	for _, lock := range []time.Duration{time.Minute, 2 * time.Second} {
		started.Store(0)
		most.Store(0)
		ctx, stop := context.WithCancel(context.Background())
		b := sqlite.NewInMemoryBackend(sqlite.WithBackendOptions(backend.WithActivityLockTimeout(lock),
			backend.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))))
		w := worker.New(b, nil)
		for _, err := range []error{w.RegisterWorkflow(once), w.RegisterActivity(activity), w.Start(ctx)} {
			if err != nil {
				panic(err)
			}
		}
		c := client.New(b)
		instance, err := c.CreateWorkflowInstance(ctx, client.WorkflowInstanceOptions{InstanceID: "1"}, once)
		if err != nil {
			panic(err)
		}
		_, err = client.GetWorkflowResult[int](ctx, c, instance, time.Minute)
		fmt.Printf("lock %v: made %d times, at once %d, error %v\n", lock, started.Load(), most.Load(), err)
		stop()
		if err := w.WaitForCompletion(); err != nil {
			panic(err)
		}
	}
}
GO
want=$(
	cat <<'END_OF_WANT'
lock 1m0s: made 1 times, at once 1, error <nil>
lock 2s: made 2 times, at once 2, error <nil>
END_OF_WANT
)
got=$(go run . 2>run.log) || {
	cat run.log >&2
	exit 1
}
echo "$got"
[ "$got" = "$want" ] || {
	printf 'it has changed: it was\n%s\n' "$want" >&2
	exit 1
}

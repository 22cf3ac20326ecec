package main

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/workspace"
)

// runnerFolder names the folder of a process that ends behind the run of a message,
// before DBOS has stored its step.
const runnerFolder = "PEERS_RUNNER"

// asking is a workflow with one step.
type asking struct {
	m     *workspace.Manager
	after func()
}

func (a asking) run(ctx dbos.Context, in request) (string, error) {
	id, err := dbos.GetWorkflowID(ctx)
	if err != nil {
		return "", err
	}
	return dbos.RunAsStep(ctx, func(ctx context.Context) (string, error) {
		out, err := say(ctx, a.m, in.User, workspace.Message{ID: id, Content: state.UserText(in.Text)})
		a.after()
		return out.Reply, err
	})
}

// startRunner launches DBOS and a Manager on the files of a folder. Each run of an
// agent adds a line to a file.
func startRunner(t *testing.T, folder string, after func()) (asking, dbos.Context) {
	db, err := sqlitestore.Open(t.Context(), filepath.Join(folder, "state.db"), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	m, err := workspace.Open(t.Context(), db, &workspace.Options{Run: func(_ context.Context, run *workspace.Run) error {
		run.SetReply("hello")
		f, err := os.OpenFile(filepath.Join(folder, "runs"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		if _, err = f.WriteString("run\n"); err != nil {
			return err
		}
		return f.Close()
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	system, err := sql.Open("sqlite", filepath.Join(folder, "dbos.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, system.Close()) })
	d, err := dbos.NewContext(context.Background(), dbos.Config{
		AppName: "runner", SQLiteSystemDB: system, ApplicationVersion: "1", Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	a := asking{m, after}
	dbos.RegisterWorkflow(d, a.run)
	require.NoError(t, dbos.Launch(d))
	t.Cleanup(func() { require.NoError(t, dbos.Shutdown(d, 10*time.Second)) })
	return a, d
}

// A process dies behind the run of a message, before DBOS has stored the step. The
// next process makes the step again, and is given the reply of the first run.
func TestDBOSMakesAStepAgainAndTheMessageIsHandledOnce(t *testing.T) {
	if folder := os.Getenv(runnerFolder); folder != "" {
		a, d := startRunner(t, folder, func() { os.Exit(3) })
		started, err := dbos.RunWorkflow(d, a.run, request{"ann", "Hi!"}, dbos.WithWorkflowID("w1"))
		require.NoError(t, err)
		_, err = started.GetResult()
		require.NoError(t, err)
		return
	}
	folder := t.TempDir()
	process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	process.Env = append(os.Environ(), runnerFolder+"="+folder)
	output, err := process.CombinedOutput()
	require.Equal(t, 3, process.ProcessState.ExitCode(), "%v: %s", err, output)

	steps := 0
	_, d := startRunner(t, folder, func() { steps++ })
	started, err := dbos.RetrieveWorkflow[string](d, "w1")
	require.NoError(t, err)
	reply, err := started.GetResult()
	require.NoError(t, err)
	require.Equal(t, "hello 1", fmt.Sprint(reply, " ", steps))
	runs, err := os.ReadFile(filepath.Join(folder, "runs"))
	require.NoError(t, err)
	require.Equal(t, "run\n", string(runs))
}

package browsertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/workspace"
)

// processFile is set for a process that newProcess has started: the file of the desk.
const processFile = "STATE_BROWSERTEST_FILE"

func TestMain(m *testing.M) {
	if file := os.Getenv(processFile); file != "" {
		if err := work(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	closeBrowser()
	os.Exit(code)
}

// process is another process that uses a desk while a page of it is open.
type process struct {
	t     testing.TB
	input io.Writer
	lines *bufio.Scanner
	kill  func()
}

// newProcess starts a process, which is killed when the test ends.
func newProcess(t testing.TB, file string) *process {
	t.Helper()
	executable, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(executable)
	cmd.Env = append(os.Environ(), processFile+"="+file)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	p := &process{t: t, input: input, lines: bufio.NewScanner(output)}
	p.kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(p.kill)
	return p
}

// do waits until the process has done what a line says.
func (p *process) do(format string, args ...any) {
	p.t.Helper()
	line := fmt.Sprintf(format, args...)
	_, err := fmt.Fprintln(p.input, line)
	require.NoError(p.t, err)
	require.True(p.t, p.lines.Scan(), "the process has ended")
	require.Equal(p.t, "done: "+line, p.lines.Text())
}

// work is the process. It does what the lines of its input say:
//
//	note USER TEXT   adds a note to a workspace
//	order USER TEXT  sets the order
//	begin USER TEXT  begins to handle a message, and does not end; the next one waits
func work(file string) error {
	ctx := context.Background()
	db, err := sqlitestore.Open(ctx, file, nil)
	if err != nil {
		return err
	}
	m, err := workspace.Open(ctx, db, &workspace.Options{Schema: deskSchema, Run: func(ctx context.Context, _ *workspace.Run) error {
		<-ctx.Done()
		return ctx.Err()
	}})
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	for n := 1; lines.Scan(); n++ {
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		user, text, _ := strings.Cut(rest, " ")
		msg := workspace.Message{ID: fmt.Sprint("line-", n), Content: state.UserText(text)}
		switch verb {
		case "note":
			err = m.Update(ctx, user, func(w *workspace.Workspace) error {
				return notes.Set(w.State().As("search").WithCause("call_"+fmt.Sprint(n)), []string{text})
			})
		case "order":
			err = m.Update(ctx, user, func(w *workspace.Workspace) error { return orderID.Set(w.State().As("support"), text) })
		case "begin":
			_, err = m.Submit(ctx, user, msg)
		default:
			err = errors.New("no such verb: " + verb)
		}
		if err != nil {
			return err
		}
		fmt.Println("done:", lines.Text())
	}
	return lines.Err()
}

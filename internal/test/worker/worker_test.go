package worker_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/worker"
)

func TestMain(m *testing.M) { os.Exit(worker.Main(m, work)) }

// work is what the workers of these tests do, by the name of the task.
func work(task string) error {
	switch task {
	case "count":
		for i := range 3 {
			if err := worker.Print(i); err != nil {
				return err
			}
		}
		return nil
	case "print no JSON":
		fmt.Println("PASS")
		return nil
	case "fail":
		return errors.New("out of luck")
	}
	return worker.Serve(func(request string) string {
		if request == "end" {
			os.Exit(3)
		}
		_ = worker.Print("asked for " + request)
		return request + " for " + task
	})
}

func start(t *testing.T, task string) *worker.Process {
	t.Helper()
	p, err := worker.Start(t.Context(), task)
	require.NoError(t, err)
	t.Cleanup(p.Stop)
	return p
}

type client = worker.Client[string, string]

func TestReadReadsEveryLine(t *testing.T) {
	p := start(t, "count")
	for want := range 3 {
		var got int
		ok, err := p.Read(&got)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	ok, err := p.Read(new(int))
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, p.Wait())
	require.True(t, p.Exited())
}

func TestWaitTellsWhatWentWrong(t *testing.T) {
	p := start(t, "fail")
	ok, err := p.Read(new(int))
	require.NoError(t, err)
	require.False(t, ok)
	require.ErrorContains(t, p.Wait(), "out of luck")
}

// It happens if TestMain does not call Main.
func TestReadRefusesOtherOutput(t *testing.T) {
	_, err := start(t, "print no JSON").Read(new(int))
	require.ErrorContains(t, err, "does TestMain call Main?")
	c := worker.NewClient(start(t, "print no JSON"), func(*client, string) {})
	<-c.Done()
	require.ErrorContains(t, c.Problem(), "does TestMain call Main?")
}

func TestClientGetsAnswersAndHearsTheRest(t *testing.T) {
	heard := make(chan string, 1)
	c := worker.NewClient(start(t, "ann"), func(_ *client, said string) { heard <- said })
	reply, ok := c.Ask("tea")
	require.True(t, ok)
	require.Equal(t, "tea for ann", reply)
	require.Equal(t, "asked for tea", <-heard)
	require.NoError(t, c.Problem())
	require.NoError(t, c.Close())
}

func TestClientTellsAKillFromAnEnd(t *testing.T) {
	c := worker.NewClient(start(t, "ann"), func(*client, string) {})
	_, ok := c.Ask("end")
	require.False(t, ok)
	<-c.Done()
	require.ErrorContains(t, c.Problem(), "a worker ended by itself")

	c = worker.NewClient(start(t, "ann"), func(*client, string) {})
	c.Kill()
	_, ok = c.Ask("tea")
	require.False(t, ok)
	<-c.Done()
	require.NoError(t, c.Problem())
	require.False(t, c.Exited())
}

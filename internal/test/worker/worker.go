// Package worker lets the tests of a package start their own binary again, as
// worker processes. Only tests import it.
//
// TestMain calls [Main]. A process that [Start] has started does its task there
// and runs no test. Workers and the test exchange lines of JSON: a worker
// prints with [Print], and one that calls [Serve] answers the requests of its
// [Process].
package worker

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
)

// variable holds the task of a worker, as JSON. Other processes do not have it.
const variable = "STATE_WORKER"

// Is reports whether this process is a worker.
func Is() bool { return os.Getenv(variable) != "" }

// Main runs the tests. In a worker it calls do with the task instead. It
// returns the exit code of the process.
func Main[Task any](m *testing.M, do func(Task) error) int {
	text := os.Getenv(variable)
	if text == "" {
		return m.Run()
	}
	var task Task
	err := json.Unmarshal([]byte(text), &task)
	if err == nil {
		err = do(task)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A line is what a worker prints, or a request to it.
type line[T any] struct {
	ID   int `json:",omitempty"` // of the request, 0 if a worker prints by itself
	Body T
}

// output keeps the lines of a worker apart.
var output sync.Mutex

// Print writes a line to standard output. It fails if the parent has stopped
// reading.
func Print(body any) error { return printLine(0, body) }

// printLine writes each line in one system call, so that a kill never leaves
// half a line.
func printLine(id int, body any) error {
	text, err := json.Marshal(line[any]{id, body})
	if err != nil {
		return err
	}
	output.Lock()
	defer output.Unlock()
	_, err = os.Stdout.Write(append(text, '\n'))
	return err
}

// Serve calls answer for each request of a [Process], in a separate goroutine,
// and prints what it returns. It returns when the Process is closed.
func Serve[Request, Reply any](answer func(Request) Reply) error {
	var calls sync.WaitGroup
	defer calls.Wait()
	requests := json.NewDecoder(os.Stdin)
	for {
		var request line[Request]
		if err := requests.Decode(&request); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		calls.Go(func() {
			_ = printLine(request.ID, answer(request.Body)) // the parent may be gone
		})
	}
}

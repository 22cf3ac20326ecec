// Command way measures the way of a message through the library.
//
//	go -C lab run ./way [-update] [-calls FOLDER]
//
// It builds a copy of the library that notes each function that is entered, and
// makes a few trips, such as the handling of a message. For each trip it prints the
// number of calls, functions, files and packages, and how often the file and the
// package change from one call to the next: first for functions that have names,
// and then with function literals. All goroutines count until they are idle. The
// exit status is 1 if a trip is longer than testdata/table.md says.
//
// TestTrips makes the trips, on one processor and in bubbles of package synctest,
// so that the scheduler has little influence.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/agentstate/state/lab/way/marks"
)

const page = "way/testdata/table.md"

func main() {
	update := flag.Bool("update", false, "write "+page)
	calls := flag.String("calls", "", "the `folder` to which the calls of each trip are written, one a line")
	flag.Parse()
	if err := run(*update, *calls); err != nil {
		fmt.Fprintln(os.Stderr, "way:", err)
		os.Exit(1)
	}
}

func run(update bool, folder string) error {
	trips, err := measure()
	if err != nil {
		return err
	}
	if folder != "" {
		if err := writeCalls(folder, trips); err != nil {
			return err
		}
	}
	now := newTable(trips)
	fmt.Print(now)
	if update {
		at, err := measured()
		if err != nil {
			return err
		}
		text := fmt.Sprintf("The way of a message at %s. `go -C lab run ./way -update` writes this page.\n\n%s", at, now)
		return os.WriteFile(page, []byte(text), 0o644)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	fixed, err := parseTable(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	shorter, err := now.compare(fixed)
	for _, change := range shorter {
		fmt.Println("shorter:", change)
	}
	if err != nil {
		return fmt.Errorf("the trips differ from %s, which -update writes:\n%w", page, err)
	}
	return nil
}

// measured names what was measured: the last commit that changed code outside of
// lab, and whether there are uncommitted changes.
func measured() (string, error) {
	code := []string{"--", ":(top)*.go", ":(top,exclude)lab"}
	commit, err := exec.Command("git", append([]string{"log", "-1", "--format=%h", "--abbrev=10"}, code...)...).Output()
	if err != nil {
		return "", fmt.Errorf("git log: %w", err)
	}
	at := string(bytes.TrimSpace(commit))
	if exec.Command("git", append([]string{"diff", "--quiet", "HEAD"}, code...)...).Run() != nil {
		at += " with changes"
	}
	return at, nil
}

// trip is a trip with its calls, in their order.
type trip struct {
	Name  string
	Calls []marks.Call
}

// measure makes the trips in a library with marks, see [mark].
func measure() ([]trip, error) {
	work, err := os.MkdirTemp("", "way")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	overlay, err := writeOverlay(work)
	if err != nil {
		return nil, err
	}
	made := filepath.Join(work, "trips.json")
	test := exec.Command("go", "test", "-overlay", overlay, "-vet=off", "-count=1", "-cpu=1", "-run=^TestTrips$", "./way")
	test.Env = append(os.Environ(), "WAY="+made)
	if out, err := test.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go test: %w\n%s", err, out)
	}
	text, err := os.ReadFile(made)
	if err != nil {
		return nil, err
	}
	var trips []trip
	return trips, json.Unmarshal(text, &trips)
}

func writeCalls(folder string, trips []trip) error {
	var errs []error
	for _, trip := range trips {
		var text strings.Builder
		for _, c := range trip.Calls {
			fmt.Fprintln(&text, c.Goroutine, c.Function)
		}
		name := strings.NewReplacer(" ", "_", ":", "").Replace(trip.Name) + ".txt"
		errs = append(errs, os.WriteFile(filepath.Join(folder, name), []byte(text.String()), 0o644))
	}
	return errors.Join(errs...)
}

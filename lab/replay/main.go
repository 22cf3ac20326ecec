// Replay plays recorded runs of agents through a State: τ-bench, SWE-agent and
// mini-swe-agent trajectories, sessions of the ADK, recorded exchanges with
// providers, and bodies and streams of their responses.
//
//	go run ./examples/replay [-verify] [-files] PATH…
//
// A PATH is a file, or a folder in which all .json and .traj files are tried.
// Each turn of a model becomes an InferenceResult with the conversation that it
// was given, what it said, the tool results that followed, and the turn as it is
// in the file, byte for byte. How traces are read and played is in
// internal/traces; begin with its play.go.
//
// With -verify the state is checked after every step: messages decode and encode
// without loss and hold all that the file had, Export and Import give the same
// state, and a fork taken there is not changed by any later step. What went over
// the wire is encoded again and has to be the same. What a provider accepted has
// to pass transcript.Check, and so has what is left of it when it is trimmed to
// any length. Repaired for any other provider it has to pass, too, and so once
// the model's answer is added.
//
// The report has a row for each kind of trace, and with -files one for each file.
// JSON of other kinds in a folder is named and counted.
//
// It exits with 1 if anything could not be read or played or failed a check, and
// if there was nothing to play.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/agentstate/state/lab/traces"
)

func main() {
	verify := flag.Bool("verify", false, "check the state after every step, and what went over the wire")
	perFile := flag.Bool("files", false, "print a row for each file")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: replay [-verify] [-files] PATH…")
		flag.PrintDefaults()
	}
	flag.Parse()
	var paths []string
	for flag.NArg() > 0 { // a flag may also come after a path
		paths = append(paths, flag.Arg(0))
		_ = flag.CommandLine.Parse(flag.Args()[1:]) // exits on an error
	}
	if len(paths) == 0 {
		flag.Usage()
		os.Exit(2)
	}
	report := report{verify: *verify, perFile: *perFile}
	report.replay(paths, os.Stderr)
	report.print(os.Stdout)
	if !report.ok() {
		os.Exit(1)
	}
}

// replay plays all files of paths.
func (r *report) replay(paths []string, progress io.Writer) {
	files := traces.Find(paths)
	p := newProgress(progress, len(files))
	defer p.end()
	for i, file := range files {
		switch {
		case file.Err != nil:
			r.failed(file.Path, file.Err)
			continue
		case file.Skip != "":
			r.other(file.Path, file.Skip)
			continue
		}
		data, err := os.ReadFile(file.Path)
		if err != nil {
			r.failed(file.Path, err)
			continue
		}
		p.file(i, file.Path)
		played := traces.PlayFile(data, traces.Options{Verify: r.verify, Progress: p.step})
		if len(played.Kinds) > 0 {
			r.played(file.Path, len(data), played)
		} else if file.Given && played.Err == nil { // somebody thinks that it is a trace
			r.failed(file.Path, errors.New("not a trace: "+strings.Join(slices.Compact(played.Others), ", ")))
			continue
		}
		for _, what := range played.Others {
			r.other(file.Path, what)
		}
		if played.Err != nil {
			r.failed(file.Path, played.Err)
		}
	}
}

// progress says on a long run how far it is. A terminal gets one line that is
// written over; anything else gets lines, seldom, and none if the run is short.
type progress struct {
	to       io.Writer
	terminal bool
	files    int
	at       string // which file
	next     time.Time
	shown    bool
}

const (
	terminalPause = 100 * time.Millisecond
	linePause     = 2 * time.Second
)

func newProgress(to io.Writer, files int) *progress {
	p := &progress{to: to, files: files}
	if f, ok := to.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	p.next = time.Now().Add(p.pause())
	return p
}

func (p *progress) pause() time.Duration {
	if p.terminal {
		return terminalPause
	}
	return linePause
}

func (p *progress) file(i int, name string) {
	p.at = fmt.Sprintf("%d/%d %q", i+1, p.files, name)
	p.show("")
}

func (p *progress) step(done int) { p.show(fmt.Sprintf(", step %d", done)) }

func (p *progress) show(more string) {
	now := time.Now()
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(p.pause())
	p.shown = true
	if p.terminal {
		fmt.Fprintf(p.to, "\r\x1b[K%s%s", p.at, more)
	} else {
		fmt.Fprintf(p.to, "%s%s\n", p.at, more)
	}
}

// end removes the line.
func (p *progress) end() {
	if p.terminal && p.shown {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}

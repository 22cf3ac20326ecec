// Command replay plays recordings of agents through a State, and puts what went
// over the wire through the packages provider and transcript. It is for
// recordings of your own, too.
//
//	go -C lab run ./replay [-verify] [-files] PATH…
//
// A PATH is a file, or a folder. -h lists the contents that it reads, such as
// bodies, server-sent events and JSONL, and describes the envelope for all other
// recordings. Each turn of a model
// becomes an InferenceResult with the conversation before it, the output, the
// tool results that followed, and the turn in the file byte for byte. Package
// lab/traces does the reading and playing. Its play.go is the place to begin.
//
// With -verify, the command checks the following. After every step, Export and
// Import restore the State, and later steps do not change a fork. At the end,
// messages decode and encode without loss. Every request
// and response is equal after it was decoded and encoded. A stream gives the
// same result event by event and as text in small pieces. A conversation that a
// provider accepted passes transcript.Check, even after it was trimmed to any
// length. Every conversation passes after it was repaired for any provider,
// with and without the answer of the model.
//
// The report has a row for each kind of recording, and with -files a row for
// each file. It then tells the vendors and models, what was changed or left out
// on the way to other providers, which requests were refused and whether Check
// finds something in them, and which streams are not whole. It names and counts
// everything that was not read.
//
// The exit status is 1 if something could not be read or played, if a check
// failed, if a file that was named is no recording, or if there was nothing to
// play. It is 2 if the arguments are wrong.
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
		usage(flag.CommandLine.Output())
		flag.PrintDefaults()
	}
	flag.Parse()
	var paths []string
	for flag.NArg() > 0 { // flags may follow paths
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

func usage(out io.Writer) {
	fmt.Fprintf(out, `usage: replay [-verify] [-files] PATH…

Replay plays recordings of agents and model providers. A PATH is a file, or a
folder, of which it reads the files whose names end with
%s.

%s
`, strings.Join(traces.Extensions, " "), traces.Layouts)
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
		} else if file.Given && played.Err == nil { // the caller takes it for a recording
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

// progress prints the file and the step of a long run. On a terminal it
// overwrites one line. Elsewhere it prints a line every two seconds, none for a
// short run.
type progress struct {
	to       io.Writer
	terminal bool
	files    int
	at       string // the file
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

// end removes the line on a terminal.
func (p *progress) end() {
	if p.terminal && p.shown {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}

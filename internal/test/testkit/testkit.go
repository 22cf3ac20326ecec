// Package testkit contains helpers that the tests of several modules share.
// Only tests import it.
package testkit

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Until waits until ready returns true. It has no deadline: the -timeout of go
// test ends a test that hangs, and prints where it waits.
func Until(ready func() bool) {
	for !ready() {
		time.Sleep(5 * time.Millisecond)
	}
}

// Buffer is a bytes.Buffer that is safe for concurrent use, for logs.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Work is what a test counts in place of time. A case does what it is about for
// an input of a size.
type Work struct {
	// Packages are those whose statements are counted, as -coverpkg takes them.
	// "deps" stands for the packages of the module of which Of is built: the
	// pattern of all would build the others too.
	Packages string

	// Of is a package (default: the tested one).
	Of string

	// Size is that of the small input, and More how many times as large the
	// large one is.
	Size, More int

	Cases map[string]func(t *testing.T, n int)
}

const (
	workEnv    = "STATE_WORK" // size and name of the case, for the process that is counted
	workAll    = "*"
	workBytes  = 64 << 10 // which a case may always allocate
	workFactor = 2        // for a logarithm
)

// Linear fails the test if a case does more than proportionally more for the
// large input: a statement is executed more often than that, or more bytes are
// allocated. Statements are counted as for the coverage of a test, so that the
// result does not depend on the machine. The loops of the standard library are
// counted too if Packages names its packages.
//
// The test must do nothing else: it is started once more for each count. All
// cases are counted together, and only if that fails each alone, to name it.
func (w Work) Linear(t *testing.T) {
	t.Helper()
	if work := os.Getenv(workEnv); work != "" {
		w.run(t, work)
		return
	}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.ImportPath}}{{end}}{{end}}", cmp.Or(w.Of, ".")).Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Replace(w.Packages, "deps", strings.Join(strings.Fields(string(out)), ","), 1)
	program := filepath.Join(t.TempDir(), "work.test")
	out, err = exec.Command("go", "test", "-c", "-covermode=count", "-coverpkg="+packages, "-vet=off", "-o",
		program, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	more := w.excess(t, program, workAll)
	if more == nil {
		return
	}
	named := false
	for _, name := range slices.Sorted(maps.Keys(w.Cases)) {
		for _, what := range w.excess(t, program, name) {
			named = true
			t.Errorf("%s: %s", name, what)
		}
	}
	if !named {
		t.Errorf("all together: %s", strings.Join(more, "\n"))
	}
}

// run does a case, or all, and prints what they have allocated.
func (w Work) run(t *testing.T, work string) {
	size, name, _ := strings.Cut(work, " ")
	n, err := strconv.Atoi(size)
	if err != nil || name != workAll && w.Cases[name] == nil {
		t.Fatal("no case ", work)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for one, do := range w.Cases {
		if name == workAll || name == one {
			do(t, n)
		}
	}
	runtime.ReadMemStats(&after)
	fmt.Printf("%s %d\n", workEnv, after.TotalAlloc-before.TotalAlloc)
}

// excess returns what is done too often for the large input of a case, or of
// all.
func (w Work) excess(t *testing.T, program, name string) (more []string) {
	few, many := w.count(t, program, name, w.Size), w.count(t, program, name, w.Size*w.More)
	if len(few.statements) == 0 {
		t.Fatal("no statements of ", w.Packages)
	}
	limit := workFactor * w.More
	for place, times := range many.statements {
		if first := few.statements[place]; times > limit*max(first, w.Size) {
			more = append(more, fmt.Sprintf("%s is executed %d times for %d and %d times for %d", place, first,
				w.Size, times, w.Size*w.More))
		}
	}
	slices.Sort(more)
	if many.bytes > limit*max(few.bytes, workBytes) {
		more = append(more, fmt.Sprintf("%d bytes are allocated for %d and %d for %d", few.bytes, w.Size,
			many.bytes, w.Size*w.More))
	}
	return more
}

// counts is what was counted of a case.
type counts struct {
	statements map[string]int // how often each block was executed
	bytes      int            // allocated
}

func (w Work) count(t *testing.T, program, name string, n int) counts {
	t.Helper()
	file := filepath.Join(t.TempDir(), "counts")
	run := exec.Command(program, "-test.run=^"+t.Name()+"$", "-test.coverprofile="+file)
	run.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", workEnv, n, name))
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := counts{statements: map[string]int{}}
	for line := range strings.Lines(string(out)) {
		if bytes, ok := strings.CutPrefix(line, workEnv+" "); ok {
			if c.bytes, err = strconv.Atoi(strings.TrimSpace(bytes)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if c.bytes == 0 {
		t.Fatalf("nothing counted: %s", out)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 3 && !strings.HasPrefix(words[0], "slices/zsort") { // sorting takes longer than its input
			if c.statements[words[0]], err = strconv.Atoi(words[2]); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

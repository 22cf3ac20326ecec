package workspace

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mutant is a mistake in the sources that the explorer must find.
type mutant struct {
	name    string
	variant string // of the store (default: all)
	fault   string // of the store
	edits   []textEdit
}

// textEdit replaces a text that a file has exactly once.
type textEdit struct{ file, old, new string }

var mutants = []mutant{
	{name: "a commit does not check the lease", edits: []textEdit{
		{"transition.go", "if t.Run != nil && t.Run.LeaseID == by.leaseID {", "if t.Run != nil {"},
	}},
	{name: "collect does not wait for the expiry", edits: []textEdit{
		{"compact.go", "expiry <= h.Seq && ", "expiry > 0 && "},
	}},
	{name: "an unknown outcome is a failure", edits: []textEdit{
		{"commit.go", "c.openSeqs = append(c.openSeqs, t.baseSeq)", "return nil, errNoChange"},
	}},
	{name: "an older head is believed", variant: "plain", edits: []textEdit{
		{"ledger.go", "if l.noteSeen(h, before) {", "if l.noteSeen(h, before) || true {"},
	}},
	{name: "an operation does not find itself", edits: []textEdit{
		{"commit.go", "if h.hasOp(c.op) {", "if false {"},
	}},
	{name: "an operation that the head has forgotten did not take effect", edits: []textEdit{
		{"commit.go", "case !h.hasOpsSince(seq + 1):", "case false:"},
	}},
	{name: "an attempt on this very head is over", edits: []textEdit{
		{"commit.go", "open = append(open, seq)", "_ = seq"},
	}},
	{name: "a message is finished before its record", edits: []textEdit{
		{"operations.go", "	var to position\n	h, err := l.commitHead(ctx, func(t *transition) error {", `	_, _ = l.commitHead(ctx, func(t *transition) error {
		if err := t.checkLease(by); err != nil {
			return err
		}
		t.finishMessage(pendingMessage{ID: by.messageID}, finishedHandled)
		return nil
	})
	var to position
	h, err := l.commitHead(ctx, func(t *transition) error {`},
	}},
	{name: "blobs after the head", variant: "plain", edits: []textEdit{
		{"commit.go", "if c.batch == nil && len(t.newBlobs) > 0 {", "if c.batch == nil && len(t.newBlobs) < 0 {"},
		{"commit.go", "	l.noteSeen(t.head, Mark{})\n	if l.batch == nil {", "	l.noteSeen(t.head, Mark{})\n	if l.batch == nil {\n	_ = l.putBlobs(ctx, t.newBlobs)"},
	}},
	{name: "reset deletes the head", edits: resetDeletes},
	{name: "reset deletes the head and revisions begin again", fault: "restarts", edits: resetDeletes},
	{name: "a message is accepted twice", edits: []textEdit{
		{"operations.go", `case t.messageState(s.message.ID) != "":`, "case false:"},
	}},
	{name: "a takeover keeps the lease", edits: []textEdit{
		{"operations.go", "t.Run.Renewals = next.leaseID,", "t.Run.Renewals = t.Run.LeaseID,"},
	}},
	{name: "a snapshot past the base of the run", edits: []textEdit{
		{"head.go", "		return h.Run.Base\n", "		return h.position()\n"},
	}},
	{name: "compact overwrites any head", edits: []textEdit{
		{"transition.go", "	newBlobs     []newBlob ", "	always       bool\n	newBlobs     []newBlob "},
		{"commit.go", "rev, err := c.replaceHead(ctx, t, cond)", "if t.always {\n			cond = store.Always\n		}\n		rev, err := c.replaceHead(ctx, t, cond)"},
		{"compact.go", "t.Snapshot = &snapshot{position: limit}", "t.Snapshot, t.always = &snapshot{position: limit}, true"},
	}},
	{name: "reset forgets what it has dropped", edits: []textEdit{
		{"operations.go", "t.Finished = append(t.Finished, finishedMessage{ID: m.ID, Outcome: finishedReset})", ""},
	}},
	{name: "revisions come again", variant: "failover", fault: "again"},
	{name: "a run is known by its fencing token", variant: "failover", edits: []textEdit{
		{"content.go", "	cache   contentAt\n", "	cache   contentAt\n	tokens  map[string]uint64\n"},
		{"commit.go", "	l.noteSeen(t.head, Mark{})\n	if l.batch == nil {", `	l.noteSeen(t.head, Mark{})
	if t.Run != nil {
		if l.tokens == nil {
			l.tokens = map[string]uint64{}
		}
		l.tokens[t.Run.LeaseID] = t.Run.Token
	}
	if l.batch == nil {`},
		{"transition.go", "t.Run.LeaseID == by.leaseID {", "(t.Run.LeaseID == by.leaseID || t.Run.Token == t.reader.tokens[by.leaseID]) {"},
	}},
	{name: "a prepared blob is known by the version", variant: "plain", edits: []textEdit{
		{"transition.go", "	sum := hash(data)\n	if p, ok := t.prepared[sum]; ok && t.Seq < p.expiry && p.chain == t.base.Chain {",
			"	if p, ok := t.prepared[fmt.Sprint(t.base.Version, len(data) > 0)]; ok && t.Seq < p.expiry {"},
		{"commit.go", "c.prepared[r.Hash] = preparedBlob{", "c.prepared[fmt.Sprint(t.base.Version, true)] = preparedBlob{"},
	}},
	{name: "a prepared blob never expires", variant: "plain", edits: []textEdit{
		{"transition.go", "ok && t.Seq < p.expiry &&", "ok &&"},
	}},
	{name: "a rollback goes back too far", edits: []textEdit{
		{"transition.go", "base, err := t.reader.content(t.ctx, t.head, t.Run.Base)", "base, err := t.reader.content(t.ctx, t.head, t.oldest())"},
	}},
	{name: "records are read without their chain", variant: "failover", edits: []textEdit{
		{"record.go", "case hash([]byte(after.Chain), body) != s.chain:", "case false:"},
	}},
	{name: "compact drops a segment that it needs in part", edits: []textEdit{
		{"compact.go", "t.Segments[old].To <= limit.Version", "t.Segments[old].From <= limit.Version"},
	}},
	{name: "compact drops a record too many", edits: []textEdit{
		{"compact.go", "return s.version <= limit.Version }", "return s.version <= limit.Version+1 }"},
	}},
	{name: "blobs are dropped before the head is written", variant: "plain", edits: []textEdit{
		{"commit.go", "rev, err := c.replaceHead(ctx, t, cond)", `for _, name := range t.droppedBlobs {
			_ = c.db.Delete(ctx, c.blobKey(name), store.Always)
		}
		rev, err := c.replaceHead(ctx, t, cond)`},
	}},
	{name: "a restarted run keeps its base", edits: []textEdit{
		{"operations.go", "			t.Run.Base = t.position()\n", ""},
	}},
	{name: "the queue is left behind", edits: []textEdit{
		{"transition.go", "	if len(t.Queue) == 0 {\n		return\n	}", "	if len(t.Queue) < 100 {\n		return\n	}"},
	}},
	{name: "a run is taken over although its lease was renewed", edits: []textEdit{
		{"operations.go", "if leaseStateOf(t.head) != observed {", "if leaseStateOf(t.head).leaseID != observed.leaseID {"},
	}},
	{name: "another head with the same seq is believed", variant: "failover", edits: []textEdit{
		{"ledger.go", " || h.Seq == l.seen.Seq && h.Nonce != l.seen.Nonce {", " {"},
	}},
	{name: "a transition changes the cached head", edits: []textEdit{
		{"ledger.go", "return l.lastHead.clone()", "return l.lastHead"},
	}},
	{name: "a finish does not check what was lost", variant: "failover", edits: []textEdit{
		{"operations.go", "		if err := t.checkHolder(by); err != nil {\n			return err\n		}\n		if len(c.effects)", "		if err := t.checkLease(by); err != nil {\n			return err\n		}\n		if len(c.effects)"},
	}},
}

var resetDeletes = []textEdit{
	{"operations.go", "	\"github.com/agentstate/state\"\n)\n", "	\"github.com/agentstate/state\"\n	\"github.com/agentstate/state/store\"\n)\n"},
	{"operations.go", "	var ids []string\n	h, err := l.commitHead", "	_ = l.db.Delete(ctx, l.key, store.Always)\n	var ids []string\n	h, err := l.commitHead"},
}

// patched returns the edited files.
func (m *mutant) patched(t *testing.T) map[string]string {
	texts := map[string]string{}
	for _, e := range m.edits {
		text, edited := texts[e.file]
		if !edited {
			data, err := os.ReadFile(e.file)
			require.NoError(t, err)
			text = string(data)
		}
		require.Equal(t, 1, strings.Count(text, e.old), "%s must have this text exactly once:\n%s", e.file, e.old)
		texts[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	return texts
}

// TestMutantsCompile applies the edits of all mutants and checks the types of
// the result, so that a change of the sources that breaks a mutant is found
// without TestMutants.
func TestMutantsCompile(t *testing.T) {
	files := token.NewFileSet()
	parse := func(name string, text any) *ast.File {
		f, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
		require.NoError(t, err)
		return f
	}
	sources := map[string]*ast.File{}
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			sources[name] = parse(name, nil)
		}
	}
	config := types.Config{Importer: importer.ForCompiler(files, "gc", exportedTypes(t))}
	for _, m := range mutants {
		t.Run(strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) {
			mutated := maps.Clone(sources)
			for name, text := range m.patched(t) {
				mutated[name] = parse(name, text)
			}
			_, err := config.Check("workspace", files, slices.Collect(maps.Values(mutated)), nil)
			require.NoError(t, err)
		})
	}
}

// exportedTypes finds the compiled form of the imports of this package.
func exportedTypes(t *testing.T) func(path string) (io.ReadCloser, error) {
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}", ".").Output()
	require.NoError(t, err)
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		exports[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
}

// TestMutants builds this package with each mutant, and requires that the
// explorer finds it. It takes minutes, and runs only if STATE_MUTANTS is set.
func TestMutants(t *testing.T) {
	if os.Getenv("STATE_MUTANTS") == "" {
		t.Skip("STATE_MUTANTS is not set")
	}
	for _, m := range mutants {
		t.Run(strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			m.test(t)
		})
	}
}

var finding = regexp.MustCompile(`VIOLATION with STATE_SEED=\d+.*`)

func (m *mutant) test(t *testing.T) {
	dir := t.TempDir()
	here, err := os.Getwd()
	require.NoError(t, err)
	replace := map[string]string{}
	tests, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	for _, file := range tests {
		if !strings.HasPrefix(file, "explorer_") {
			replace[filepath.Join(here, file)] = "" // quicker without
		}
	}
	for file, text := range m.patched(t) {
		replace[filepath.Join(here, file)] = filepath.Join(dir, file)
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	file, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "explorer.test")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))
	out, err := exec.Command("go", "test", "-c", "-ldflags=-s -w", "-overlay", file, "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)

	cmd := exec.Command(program, "-test.run=^TestExplorer$", "-test.v")
	cmd.Env = append(os.Environ(), "STATE_VARIANT="+m.variant, "STATE_FAULT="+m.fault, "STATE_SEED=", "STATE_EFFORT=10")
	out, err = cmd.CombinedOutput()
	found := finding.Find(out)
	require.Error(t, err, "the explorer has not found it")
	require.NotEmpty(t, found, "%s", out[max(0, len(out)-2000):])
	require.False(t, bytes.Contains(found, []byte("panic")), "%s", found)
	t.Logf("%s", found)
}

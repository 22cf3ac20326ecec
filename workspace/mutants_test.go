package workspace

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mutant is a mistake that the explorer has to find.
type mutant struct {
	name    string
	variant string // of the store; "" is any
	fault   string // of the store
	edits   []textEdit
}

type textEdit struct{ file, old, new string }

var mutants = []mutant{
	{name: "a commit does not ask whose the run is", edits: []textEdit{
		{"transition.go", "if d.Run != nil && d.Run.ID == lease {", "if d.Run != nil {"},
	}},
	{name: "collect does not wait for the expiry", edits: []textEdit{
		{"compact.go", "exp <= h.Seq && ", "exp > 0 && "},
	}},
	{name: "an unknown outcome is a failure", edits: []textEdit{
		{"ledger.go", "doubts = append(doubts, base)", "return nil, errNothing"},
	}},
	{name: "an older head is believed", variant: "plain", edits: []textEdit{
		{"ledger.go", "if l.fresh(h, before) {", "if l.fresh(h, before) || true {"},
	}},
	{name: "an operation does not find itself", edits: []textEdit{
		{"ledger.go", "if h.knows(op) {", "if false {"},
	}},
	{name: "what the ring has forgotten was not made", edits: []textEdit{
		{"ledger.go", "case !h.recalls(base + 1):", "case false:"},
	}},
	{name: "an attempt on this very head is over", edits: []textEdit{
		{"ledger.go", "open = append(open, base)", "_ = base"},
	}},
	{name: "a message is done before its record", edits: []textEdit{
		{"transition.go", "	var to point\n	h, err := l.transact(ctx, func(d *draft) error {", `	_, _ = l.transact(ctx, func(d *draft) error {
		if err := d.mine(lease, message); err != nil {
			return err
		}
		d.end(message, handled)
		return nil
	})
	var to point
	h, err := l.transact(ctx, func(d *draft) error {`},
	}},
	{name: "blobs after the head", variant: "plain", edits: []textEdit{
		{"ledger.go", "if l.batch == nil && len(d.missing) > 0 {", "if l.batch == nil && len(d.missing) < 0 {"},
		{"ledger.go", "	l.fresh(d.head, Mark{})\n	if l.batch == nil {", "	l.fresh(d.head, Mark{})\n	if l.batch == nil {\n	_ = l.put(ctx, d.missing)"},
	}},
	{name: "reset deletes the head", edits: resetDeletes},
	{name: "reset deletes the head and revisions begin again", fault: "restarts", edits: resetDeletes},
	{name: "a message is taken twice", edits: []textEdit{
		{"transition.go", `if d.fate(o.item.ID) != "" {`, "if false {"},
	}},
	{name: "who takes over keeps the lease", edits: []textEdit{
		{"transition.go", "d.Run.Beat = next.id,", "d.Run.Beat = d.Run.ID,"},
	}},
	{name: "a snapshot past the base of the run", edits: []textEdit{
		{"head.go", "		return h.Run.Base\n", "		return h.now()\n"},
	}},
	{name: "compact overwrites whatever is there", edits: []textEdit{
		{"ledger.go", "	missing []blob ", "	always  bool\n	missing []blob "},
		{"ledger.go", "rev, err := l.replace(ctx, d, cond)", "if d.always {\n			cond = store.Always\n		}\n		rev, err := l.replace(ctx, d, cond)"},
		{"compact.go", "d.Snap = &snap{point: limit}", "d.Snap, d.always = &snap{point: limit}, true"},
	}},
	{name: "reset forgets what it has dropped", edits: []textEdit{
		{"transition.go", "d.Done = append(d.Done, done{ID: i.ID, As: reset})", ""},
	}},
	{name: "revisions come again", variant: "failover", fault: "again"},
	{name: "a run is known by its number", variant: "failover", edits: []textEdit{
		{"ledger.go", "	cache cached\n", "	cache cached\n	tokens map[string]uint64\n"},
		{"ledger.go", "	l.fresh(d.head, Mark{})\n	if l.batch == nil {", `	l.fresh(d.head, Mark{})
	if d.Run != nil {
		if l.tokens == nil {
			l.tokens = map[string]uint64{}
		}
		l.tokens[d.Run.ID] = d.Run.Token
	}
	if l.batch == nil {`},
		{"transition.go", "d.Run.ID == lease {", "(d.Run.ID == lease || d.Run.Token == d.ledger.tokens[lease]) {"},
	}},
	{name: "a prepared blob is known by the version", variant: "plain", edits: []textEdit{
		{"ledger.go", "if r, ok := d.ready[sum]; ok && d.Seq < r.exp && r.made == d.read.Chain {",
			"if r, ok := d.ready[fmt.Sprint(d.read.Version, len(data) > 0)]; ok && d.Seq < r.exp {"},
		{"ledger.go", "made[r.Hash] = ready{", "made[fmt.Sprint(d.read.Version, true)] = ready{"},
	}},
	{name: "a prepared blob is good for ever", variant: "plain", edits: []textEdit{
		{"ledger.go", "ok && d.Seq < r.exp &&", "ok &&"},
	}},
	{name: "a rollback goes back too far", edits: []textEdit{
		{"transition.go", "base, err := d.ledger.content(d.ctx, d.head, d.Run.Base)", "base, err := d.ledger.content(d.ctx, d.head, d.start())"},
	}},
	{name: "records are read without their chain", variant: "failover", edits: []textEdit{
		{"record.go", "case hash([]byte(after.Chain), body) != e.chain:", "case false:"},
	}},
	{name: "compact drops a segment that it needs in part", edits: []textEdit{
		{"compact.go", "d.Segs[old].To <= limit.Version", "d.Segs[old].From <= limit.Version"},
	}},
	{name: "compact drops a record too many", edits: []textEdit{
		{"compact.go", "return e.version <= limit.Version }", "return e.version <= limit.Version+1 }"},
	}},
	{name: "blobs are dropped before the head is written", variant: "plain", edits: []textEdit{
		{"ledger.go", "rev, err := l.replace(ctx, d, cond)", `for _, name := range d.dropped {
			_ = l.db.Delete(ctx, l.blobKey(name), store.Always)
		}
		rev, err := l.replace(ctx, d, cond)`},
	}},
	{name: "a restarted run keeps its base", edits: []textEdit{
		{"transition.go", "			d.Run.Base = d.now()\n", ""},
	}},
	{name: "the queue is left behind", edits: []textEdit{
		{"transition.go", "	if len(d.Queue) == 0 {\n		return\n	}", "	if len(d.Queue) < 100 {\n		return\n	}"},
	}},
	{name: "a live run is taken over", edits: []textEdit{
		{"transition.go", "if pulseOf(d.head) != seen {", "if pulseOf(d.head).lease != seen.lease {"},
	}},
	{name: "another head with the same seq is believed", variant: "failover", edits: []textEdit{
		{"ledger.go", " || h.Seq == l.seen.Seq && h.Nonce != l.seen.Nonce {", " {"},
	}},
	{name: "a draft changes the head that is remembered", edits: []textEdit{
		{"ledger.go", "return l.last.clone()", "return l.last"},
	}},
	{name: "a finish does not ask what was lost", variant: "failover", edits: []textEdit{
		{"transition.go", "		if d.now() != at {\n			return d.behind()\n		}\n		if len(effects)", "		if len(effects)"},
	}},
}

var resetDeletes = []textEdit{
	{"transition.go", "	\"time\"\n)\n", "	\"time\"\n\n	\"github.com/agentstate/state/store\"\n)\n"},
	{"transition.go", "	var ids []string\n	h, err := l.transact", "	_ = l.db.Delete(ctx, l.key, store.Always)\n	var ids []string\n	h, err := l.transact"},
}

// TestMutants builds this package with one mistake after the other, and requires
// that the explorer finds it. It takes minutes, and runs when STATE_MUTANTS is set.
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
	texts := map[string]string{}
	for _, e := range m.edits {
		text, edited := texts[e.file]
		if !edited {
			data, err := os.ReadFile(e.file)
			require.NoError(t, err)
			text = string(data)
		}
		require.Equal(t, 1, strings.Count(text, e.old), "%s has to have once:\n%s", e.file, e.old)
		texts[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	replace := map[string]string{}
	tests, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	for _, file := range tests {
		if !strings.HasPrefix(file, "explorer_") {
			replace[filepath.Join(here, file)] = "" // quicker without
		}
	}
	for file, text := range texts {
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

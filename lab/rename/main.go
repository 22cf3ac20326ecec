// Command rename gives the names of the library that have changed to a tree
// that was written with the old ones..
//
//	go -C lab run ./rename [-base COMMIT] DIR…
//
// DIR is the root of a checkout, with all of its nested modules. With -base,
// only the files that differ from the commit are renamed, in little time: the
// others come with the merge of the tag names. The packages must compile,
// because a name is found by its type: a field Max of something else stays. All
// are read before the first file is written. Comments, Markdown and the code in
// strings of mutants have no types: there the qualified forms are replaced. A
// second run changes nothing. What it cannot decide, it prints.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/tools/go/packages"
)

func main() {
	base := flag.String("base", "", "rename only what differs from this commit")
	flag.Parse()
	for _, dir := range flag.Args() {
		if err := rename(dir, *base); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// rename renames in a checkout.
func rename(root, base string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	t := &tree{edits: map[string]map[edit]bool{}, unloaded: map[string]bool{}}
	if err := filepath.WalkDir(root, t.find); err != nil {
		return err
	}
	if base != "" {
		if err := t.keepChanged(root, base); err != nil {
			return err
		}
	}
	for _, dir := range t.modules {
		if err := t.load(dir); err != nil {
			fmt.Printf("%s: only by text: %v\n", dir, err)
			t.unloaded[dir] = true
		}
	}
	for _, file := range t.files {
		if err := t.write(file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// tree is a checkout.
type tree struct {
	modules, files []string
	unloaded       map[string]bool // modules
	edits          map[string]map[edit]bool
}

// edit replaces a part of a file.
type edit struct {
	from, to int
	text     string
}

func (t *tree) find(path string, d fs.DirEntry, err error) error {
	switch name := d.Name(); {
	case err != nil:
		return err
	case d.IsDir() && (name == ".git" || name == "rename"):
		return fs.SkipDir
	case name == "go.mod":
		t.modules = append(t.modules, filepath.Dir(path))
	case strings.HasSuffix(name, ".go") || strings.HasSuffix(name, ".md"):
		t.files = append(t.files, path)
	}
	return nil
}

// keepChanged leaves the files that differ from a commit, or are new.
func (t *tree) keepChanged(root, base string) error {
	var changed []byte
	for _, args := range [][]string{
		{"diff", "--name-only", "--no-renames", base}, {"ls-files", "--others", "--exclude-standard"},
	} {
		names, err := exec.Command("git", append([]string{"-C", root}, args...)...).Output()
		if err != nil {
			return fmt.Errorf("git %s: %w", args[0], err)
		}
		changed = append(changed, names...)
	}
	list := strings.Fields(string(changed))
	t.files = slices.DeleteFunc(t.files, func(file string) bool {
		name, err := filepath.Rel(root, file)
		return err != nil || !slices.Contains(list, filepath.ToSlash(name))
	})
	return nil
}

// mayHave matches a file that may have one of the names.
var mayHave = sync.OnceValue(func() *regexp.Regexp {
	words := []string{"Transport"}
	for _, n := range names {
		words = append(words, n.old)
	}
	return regexp.MustCompile(`\b(` + strings.Join(words, "|") + `)\b`)
})

// packages returns the directories of a module that may have names.
func (t *tree) packages(module string) []string {
	var dirs []string
	for _, file := range t.files {
		dir := filepath.Dir(file)
		if !strings.HasSuffix(file, ".go") || t.moduleOf(file) != module || slices.Contains(dirs, dir) {
			continue
		}
		if src, err := os.ReadFile(file); err == nil && mayHave().Match(src) && !strings.Contains(dir, "/testdata") {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func (t *tree) moduleOf(file string) string {
	dir := filepath.Dir(file)
	for !slices.Contains(t.modules, dir) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	return dir
}

// load collects the edits of the code of a module.
func (t *tree) load(dir string) error {
	dirs := t.packages(dir)
	if len(dirs) == 0 {
		return nil
	}
	loaded, err := packages.Load(&packages.Config{
		Dir: dir, Tests: true,
		Env: append(os.Environ(), "CGO_ENABLED=0"), // nothing is compiled
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo,
	}, dirs...)
	if err != nil {
		return err
	}
	for _, p := range loaded {
		if strings.HasSuffix(p.ID, ".test") {
			continue // the generated main
		}
		for _, e := range p.Errors {
			return e
		}
	}
	for _, p := range loaded {
		if !strings.HasSuffix(p.ID, ".test") {
			newUse(t, p).collect()
		}
	}
	return nil
}

func (t *tree) add(fset *token.FileSet, from, to token.Pos, text string) {
	f := fset.Position(from)
	if t.edits[f.Filename] == nil {
		t.edits[f.Filename] = map[edit]bool{}
	}
	t.edits[f.Filename][edit{f.Offset, fset.Position(to).Offset, text}] = true
}

// write writes a file with its edits and with the replaced texts.
func (t *tree) write(path string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var now string
	switch {
	case filepath.Base(path) == "CHANGELOG.md":
		now = replaceProse(string(old))
	case strings.HasSuffix(path, ".md"), t.unloaded[t.moduleOf(path)]:
		now = replace(string(old))
	default:
		now, err = t.rewrite(path, string(old))
	}
	if err != nil || now == string(old) {
		return err
	}
	if strings.HasSuffix(path, ".go") {
		formatted, err := format.Source([]byte(now))
		if err != nil {
			return err
		}
		now = string(formatted)
	}
	return os.WriteFile(path, []byte(now), 0o600)
}

// replaceProse leaves tables: that of the names has the old ones.
func replaceProse(s string) string {
	lines := strings.SplitAfter(s, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "|") {
			lines[i] = replace(line)
		}
	}
	return strings.Join(lines, "")
}

var ofMutants = regexp.MustCompile(`(mutants|mistakes)\w*_test\.go$`)

// rewrite returns a file of Go with its edits, and with the texts of its
// comments replaced.
func (t *tree) rewrite(path, src string) (string, error) {
	edits := t.edits[path]
	if edits == nil {
		edits = map[edit]bool{}
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return src, nil // a file of testdata that is none of Go
	}
	at := func(p token.Pos) int { return fset.Position(p).Offset }
	for _, g := range file.Comments {
		from, to := at(g.Pos()), at(g.End())
		text := src[from:to]
		for e := range edits { // the subject
			if from <= e.from && e.to <= to {
				text = src[from:e.from] + e.text + src[e.to:to]
				delete(edits, e)
			}
		}
		if replace(text) != src[from:to] {
			edits[edit{from, to, replace(text)}] = true
		}
	}
	if ofMutants.MatchString(path) {
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, err := strconv.Unquote(lit.Value); err == nil && replace(s) != s {
					edits[edit{at(lit.Pos()), at(lit.End()), replace(lit.Value)}] = true
				}
			}
			return true
		})
	}
	list := make([]edit, 0, len(edits))
	for e := range edits {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b edit) int {
		if a.from != b.from {
			return b.from - a.from
		}
		return b.to - a.to
	})
	for _, e := range list { // from the end to the beginning
		src = src[:e.from] + e.text + src[e.to:]
	}
	return src, nil
}

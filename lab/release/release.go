package main

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// checkout is a work tree whose modules are released together.
type checkout struct {
	root    string
	version string
	time    string             // of the commit, as .info files have it
	files   []string           // tracked by git, relative to root
	modules map[string]*member // by module path
}

// member is one module of a checkout.
type member struct {
	folder string // relative to the checkout, "." for the root
	file   *modfile.File
	sums   []string // lines of go.sum about it, once it is packed
}

// release prepares all modules and packs them. A module is packed after those
// that it requires: its go.sum, which is a part of it, has their hashes.
func release(root, version, proxy string) (tags []string, err error) {
	if !semver.IsValid(version) || semver.Canonical(version) != version {
		return nil, fmt.Errorf("%q is not a version such as v1.2.3", version)
	}
	c, err := open(root, version)
	if err != nil {
		return nil, err
	}
	order, err := c.order()
	if err != nil {
		return nil, err
	}
	for _, name := range order {
		m := c.modules[name]
		if err := c.prepare(m); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if m.sums, err = c.pack(name, m, proxy); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		tags = append(tags, path.Join(m.folder, version))
	}
	return tags, nil
}

func open(root, version string) (*checkout, error) {
	c := &checkout{root: root, version: version, modules: map[string]*member{}}
	git := func(args ...string) (string, error) {
		cmd := exec.Command("git", append([]string{"-C", root}, args...)...)
		cmd.Env = append(os.Environ(), "TZ=UTC")
		out, err := cmd.Output()
		return strings.Trim(string(out), "\x00\n"), err
	}
	list, err := git("ls-files", "-z")
	if err != nil {
		return nil, err
	}
	c.files = strings.Split(list, "\x00")
	if c.time, err = git("log", "-1", "--format=%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ"); err != nil {
		return nil, err
	}
	for _, name := range c.files {
		if path.Base(name) != "go.mod" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		file, err := modfile.Parse(name, data, nil)
		if err != nil {
			return nil, err
		}
		c.modules[file.Module.Mod.Path] = &member{folder: path.Dir(name), file: file}
	}
	return c, nil
}

// order returns the paths of the modules, each after those that it requires.
func (c *checkout) order() ([]string, error) {
	var order []string
	var visit func(name string, above []string) error
	visit = func(name string, above []string) error {
		if slices.Contains(above, name) {
			return fmt.Errorf("modules require each other: %s", strings.Join(append(above, name), ", "))
		}
		if slices.Contains(order, name) {
			return nil
		}
		for _, required := range c.siblings(c.modules[name]) {
			if err := visit(required, append(above, name)); err != nil {
				return err
			}
		}
		order = append(order, name)
		return nil
	}
	names := make([]string, 0, len(c.modules))
	for name := range c.modules {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := visit(name, nil); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// siblings returns the modules of the checkout that a module requires.
func (c *checkout) siblings(m *member) []string {
	var names []string
	for _, require := range m.file.Require {
		if c.modules[require.Mod.Path] != nil {
			names = append(names, require.Mod.Path)
		}
	}
	return names
}

// prepare writes the go.mod and the go.sum of a module as they are released.
func (c *checkout) prepare(m *member) error {
	for _, replace := range slices.Clone(m.file.Replace) {
		if c.modules[replace.Old.Path] == nil {
			return fmt.Errorf("go.mod replaces %s, which is not released with it", replace.Old.Path)
		}
		if err := m.file.DropReplace(replace.Old.Path, replace.Old.Version); err != nil {
			return err
		}
	}
	siblings := c.siblings(m)
	if len(siblings) == 0 {
		return nil
	}
	for _, name := range siblings {
		if err := m.file.AddRequire(name, c.version); err != nil {
			return err
		}
	}
	m.file.Cleanup()
	data, err := m.file.Format()
	if err != nil {
		return err
	}
	folder := filepath.Join(c.root, m.folder)
	if err := os.WriteFile(filepath.Join(folder, "go.mod"), data, 0o644); err != nil {
		return err
	}
	return c.writeSums(filepath.Join(folder, "go.sum"), siblings)
}

// writeSums puts the hashes of siblings into a go.sum, in go's own order.
func (c *checkout) writeSums(name string, siblings []string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var mods []module.Version
	lines := map[module.Version]string{}
	add := func(line string) {
		words := strings.Fields(line)
		mod := module.Version{Path: words[0], Version: words[1]}
		mods, lines[mod] = append(mods, mod), line
	}
	for line := range strings.Lines(string(data)) {
		if c.modules[strings.Fields(line)[0]] == nil {
			add(strings.TrimSpace(line))
		}
	}
	for _, sibling := range siblings {
		for _, line := range c.modules[sibling].sums {
			add(line)
		}
	}
	module.Sort(mods)
	var out strings.Builder
	for _, mod := range mods {
		out.WriteString(lines[mod] + "\n")
	}
	return os.WriteFile(name, []byte(out.String()), 0o644)
}

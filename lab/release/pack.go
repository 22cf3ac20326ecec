package main

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// packed is a file of a module: its name in the module, and where it is.
type packed struct{ name, source string }

func (p packed) Path() string                 { return p.name }
func (p packed) Lstat() (os.FileInfo, error)  { return os.Lstat(p.source) }
func (p packed) Open() (io.ReadCloser, error) { return os.Open(p.source) }

// pack writes a module to a proxy, as go makes it of a tag: a module without a
// LICENSE has that of the repository. It returns the module's lines for go.sum.
func (c *checkout) pack(name string, m *member, proxy string) (sums []string, err error) {
	var files []zip.File
	licensed := false
	for _, file := range c.files {
		inside, ok := file, true
		if m.folder != "." {
			inside, ok = strings.CutPrefix(file, m.folder+"/")
		}
		if ok && !c.nested(m, file) {
			files = append(files, packed{inside, filepath.Join(c.root, file)})
			licensed = licensed || inside == "LICENSE"
		}
	}
	if !licensed {
		files = append(files, packed{"LICENSE", filepath.Join(c.root, "LICENSE")})
	}
	folder := filepath.Join(proxy, name, "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	base := filepath.Join(folder, c.version)
	mod, err := os.ReadFile(filepath.Join(c.root, m.folder, "go.mod"))
	if err != nil {
		return nil, err
	}
	for suffix, text := range map[string]string{
		".mod":  string(mod),
		".info": fmt.Sprintf("{\"Version\":%q,\"Time\":%q}\n", c.version, c.time),
	} {
		if err := os.WriteFile(base+suffix, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "list"), []byte(c.version+"\n"), 0o644); err != nil {
		return nil, err
	}
	archive, err := os.Create(base + ".zip")
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	if err := zip.Create(archive, module.Version{Path: name, Version: c.version}, files); err != nil {
		return nil, err
	}
	hash, err := dirhash.HashZip(base+".zip", dirhash.Hash1)
	if err != nil {
		return nil, err
	}
	modHash, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return os.Open(base + ".mod")
	})
	if err != nil {
		return nil, err
	}
	return []string{
		fmt.Sprintf("%s %s %s", name, c.version, hash),
		fmt.Sprintf("%s %s/go.mod %s", name, c.version, modHash),
	}, nil
}

// nested reports whether a file of the module's folder is part of another
// module below it.
func (c *checkout) nested(m *member, file string) bool {
	for _, other := range c.modules {
		below := other.folder != "." && other.folder != m.folder &&
			(m.folder == "." || strings.HasPrefix(other.folder, m.folder+"/"))
		if below && strings.HasPrefix(file, path.Clean(other.folder)+"/") {
			return true
		}
	}
	return false
}

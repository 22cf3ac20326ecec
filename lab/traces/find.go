package traces

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Found is a file that Find has found.
type Found struct {
	Path  string
	Given bool   // named by the caller, and not only in a folder
	Skip  string // why it must not be read, empty if it may be
	Err   error  // Find could not look at it
}

// Extensions are the ends of the names of files that may be recordings.
var Extensions = []string{".json", ".traj", ".jsonl", ".ndjson", ".sse", ".txt"}

// Find returns the files among paths and those in the folders among paths, in
// the order of their names. A file in a folder has Skip set unless its name
// ends with one of Extensions. Find follows symbolic links to files.
func Find(paths []string) []Found {
	var found []Found
	for _, name := range paths {
		info, err := os.Stat(name)
		switch {
		case err != nil:
			found = append(found, Found{Path: name, Given: true, Err: err})
		case info.IsDir():
			found = append(found, walk(name)...)
		default:
			found = append(found, Found{Path: name, Given: true})
		}
	}
	return found
}

func walk(dir string) []Found {
	var found []Found
	files := os.DirFS(dir)
	_ = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		f := Found{Path: filepath.Join(dir, filepath.FromSlash(name)), Err: err}
		switch {
		case err != nil:
			found = append(found, f)
			return nil // continue with the others
		case d.IsDir():
			return nil
		}
		ext := path.Ext(strings.ToLower(name))
		if !slices.Contains(Extensions, ext) {
			f.Skip = "a file with another extension"
		} else if info, err := fs.Stat(files, name); err != nil {
			f.Err = err
		} else if !info.Mode().IsRegular() {
			f.Skip = "not a regular file"
		}
		found = append(found, f)
		return nil
	})
	return found
}

package traces

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Found is a file among the paths that Find was given.
type Found struct {
	Path  string
	Given bool   // it was named itself, so it has to be a trace
	Skip  string // why it is not to be read, if it is not
	Err   error  // what kept Find from looking
}

// Find returns the files that are named and those in the folders that are named,
// in the order of their names. In folders, files named neither .json nor .traj
// are to be skipped. Symbolic links to files are followed.
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
			return nil // and go on with the others
		case d.IsDir():
			return nil
		}
		ext := strings.ToLower(path.Ext(name))
		if ext != ".json" && ext != ".traj" {
			f.Skip = "neither .json nor .traj"
		} else if info, err := fs.Stat(files, name); err != nil {
			f.Err = err
		} else if !info.Mode().IsRegular() {
			f.Skip = "no file"
		}
		found = append(found, f)
		return nil
	})
	return found
}

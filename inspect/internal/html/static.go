package html

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed static
var embeddedStatic embed.FS

// File is a file that pages load.
type File struct {
	kind string
	data []byte
}

// Files has the files by their paths, which contain a hash of the
// content. paths has these paths by the names of the files.
var Files, paths = loadStatic()

func loadStatic() (map[string]File, map[string]string) {
	files, paths := map[string]File{}, map[string]string{}
	for name, kind := range map[string]string{
		"inspect.css": "text/css; charset=utf-8",
		"inspect.js":  "text/javascript; charset=utf-8",
	} {
		data, err := embeddedStatic.ReadFile("static/" + name)
		if err != nil {
			panic(err) // it is part of the program
		}
		sum := sha256.Sum256(data)
		ext := path.Ext(name)
		paths[name] = "/static/" + strings.TrimSuffix(name, ext) + "-" + hex.EncodeToString(sum[:8]) + ext
		files[paths[name]] = File{kind, data}
	}
	return files, paths
}

// Serve answers with the file.
func (f File) Serve(w http.ResponseWriter) {
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(f.data)))
	w.Write(f.data) // an error means that nobody waits for it
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/agentstate/state/lab/way/marks"
)

const library = "github.com/agentstate/state"

// writeOverlay writes to a folder marked copies of the library's files that the
// trips link, and a file for go's flag -overlay that replaces the originals by
// them. It returns the path of that file.
func writeOverlay(folder string) (string, error) {
	list := exec.Command("go", "list", "-deps", "-test", "-json=Dir,GoFiles,ImportPath,Module", library+"/lab/way")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	replaced := map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var pkg struct {
			Dir, ImportPath string
			GoFiles         []string
			Module          *struct{ Path, Dir string }
		}
		if err := dec.Decode(&pkg); err != nil {
			return "", err
		}
		if pkg.Module == nil || pkg.Module.Path != library || strings.HasPrefix(pkg.ImportPath, library+"/internal/test/") {
			continue
		}
		for _, name := range pkg.GoFiles {
			path := filepath.Join(pkg.Dir, name)
			text, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			inside, err := filepath.Rel(pkg.Module.Dir, path)
			if err != nil {
				return "", err
			}
			if text, err = mark(filepath.ToSlash(inside), text); err != nil {
				return "", err
			}
			copied := filepath.Join(folder, strconv.Itoa(len(replaced))+".go")
			if err := os.WriteFile(copied, text, 0o644); err != nil {
				return "", err
			}
			replaced[path] = copied
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "overlay.json")
	return path, os.WriteFile(path, overlay, 0o644)
}

// mark returns the text of a file with a call of [marks.Pass] at the beginning of
// each function. No line moves.
func mark(file string, text []byte) ([]byte, error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var marked bytes.Buffer
	written := 0
	insert := func(pos token.Pos, added string) {
		offset := files.Position(pos).Offset
		marked.Write(text[written:offset])
		marked.WriteString(added)
		written = offset
	}
	pass := func(body *ast.BlockStmt, function string) {
		if written == 0 { // the first one
			insert(f.Name.End(), `; import marks_ "`+library+`/lab/way/marks"`)
		}
		insert(body.Lbrace+1, "marks_.Pass("+strconv.Quote(function)+"); ")
	}
	for _, decl := range f.Decls {
		name, literals := file+":"+nameOf(decl), 0
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Body != nil {
					pass(n.Body, name)
				}
			case *ast.FuncLit:
				literals++
				pass(n.Body, marks.Literal(name, strconv.Itoa(literals)))
			}
			return true
		})
	}
	marked.Write(text[written:])
	return marked.Bytes(), nil
}

// nameOf returns the name of a function, with the type of its receiver, or the
// keyword of another declaration.
func nameOf(decl ast.Decl) string {
	f, ok := decl.(*ast.FuncDecl)
	if !ok {
		return decl.(*ast.GenDecl).Tok.String()
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	for {
		switch t := receiver.(type) {
		case *ast.StarExpr:
			receiver = t.X
		case *ast.IndexExpr:
			receiver = t.X
		case *ast.IndexListExpr:
			receiver = t.X
		default:
			return t.(*ast.Ident).Name + "." + f.Name.Name
		}
	}
}

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/packages"
)

// use finds what a package has of the names.
type use struct {
	*tree
	*packages.Package
	objects  map[types.Object]string // the new name of each
	converse types.Object            // the field that is inverted, nil if it is gone
	inverted map[*ast.Ident]bool     // uses of it that are done
}

func newUse(t *tree, p *packages.Package) *use {
	u := &use{tree: t, Package: p, objects: map[types.Object]string{}, inverted: map[*ast.Ident]bool{}}
	seen := map[*types.Package]bool{}
	var visit func(*types.Package)
	visit = func(p *types.Package) {
		if seen[p] {
			return
		}
		seen[p] = true
		for _, n := range names {
			if p.Path() == strings.TrimSuffix(library+"/"+n.pkg, "/") {
				u.addObject(p, n)
			}
		}
		for _, imported := range p.Imports() {
			visit(imported)
		}
	}
	visit(p.Types)
	return u
}

func (u *use) addObject(p *types.Package, n name) {
	if n.owner == "" {
		if o := p.Scope().Lookup(n.old); o != nil {
			u.objects[o] = n.now
		}
		return
	}
	owner, ok := p.Scope().Lookup(n.owner).(*types.TypeName)
	if !ok {
		return
	}
	named, ok := types.Unalias(owner.Type()).(*types.Named)
	if !ok {
		return
	}
	for m := range named.Methods() {
		if m.Name() == n.old {
			u.objects[m] = n.now
		}
	}
	if s, ok := named.Underlying().(*types.Struct); ok {
		for f := range s.Fields() {
			if f.Name() == n.old {
				u.objects[f] = n.now
				if n.old == "Converse" {
					u.converse = f
				}
			}
		}
	}
}

// object returns what an identifier is, and not one of its instances.
func (u *use) object(id *ast.Ident) types.Object {
	switch o := u.TypesInfo.ObjectOf(id).(type) {
	case *types.Func:
		return o.Origin()
	case *types.Var:
		return o.Origin()
	default:
		return o
	}
}

func (u *use) replace(from, to token.Pos, text string) { u.add(u.Fset, from, to, text) }

func (u *use) collect() {
	for _, file := range u.Syntax {
		if u.converse != nil {
			u.invert(file)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				if now := u.objects[u.object(n)]; now != "" && !u.inverted[n] {
					u.replace(n.Pos(), n.End(), now)
				}
			case *ast.FuncDecl:
				u.documented(n.Doc, n.Name)
				u.example(n.Name)
			case *ast.GenDecl:
				for _, s := range n.Specs {
					if s, ok := s.(*ast.TypeSpec); ok {
						u.documented(n.Doc, s.Name)
					}
				}
			case *ast.Field:
				for _, id := range n.Names {
					u.documented(n.Doc, id)
				}
			}
			return true
		})
	}
}

// documented renames the subject of a doc comment.
func (u *use) documented(doc *ast.CommentGroup, id *ast.Ident) {
	now := u.objects[u.object(id)]
	if now == "" || doc == nil || !strings.HasPrefix(doc.List[0].Text, "// "+id.Name+" ") {
		return
	}
	from := doc.Pos() + token.Pos(len("// "))
	u.replace(from, from+token.Pos(len(id.Name)), now)
}

// example renames the Example of a name.
func (u *use) example(id *ast.Ident) {
	path, _ := strings.CutSuffix(u.PkgPath, "_test")
	for _, n := range names {
		of := strings.TrimPrefix(n.owner+"_"+n.old, "_")
		rest, ok := strings.CutPrefix(id.Name, "Example"+of)
		if ok && (rest == "" || rest[0] == '_') && path == strings.TrimSuffix(library+"/"+n.pkg, "/") {
			u.replace(id.Pos(), id.End(), "Example"+strings.TrimPrefix(n.owner+"_"+n.now, "_")+rest)
		}
	}
}

// invert changes the uses of Transport.Converse to those of RecordOnly, which
// is true where the other was false.
func (u *use) invert(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			u.invertLiteral(n)
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if id := u.isConverse(left); id != nil && len(n.Rhs) == len(n.Lhs) {
					u.inverted[id] = true
					u.replace(id.Pos(), id.End(), "RecordOnly")
					u.negate(n.Rhs[i])
				}
			}
		case *ast.UnaryExpr:
			if id := u.isConverse(n.X); id != nil && n.Op == token.NOT {
				u.inverted[id] = true
				u.replace(n.Pos(), n.X.Pos(), "")
				u.replace(id.Pos(), id.End(), "RecordOnly")
			}
		case *ast.SelectorExpr:
			if id := u.isConverse(n); id != nil && !u.inverted[id] {
				u.inverted[id] = true
				u.replace(n.Pos(), n.Pos(), "!")
				u.replace(id.Pos(), id.End(), "RecordOnly")
			}
		case *ast.ValueSpec:
			if n.Type != nil && len(n.Values) == 0 && u.isTransport(u.TypesInfo.TypeOf(n.Type)) {
				u.report(n, "a zero Transport was one that records only")
			}
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "new" && u.isTransport(u.TypesInfo.TypeOf(n.Args[0])) {
				u.report(n, "a zero Transport was one that records only")
			}
		}
		return true
	})
}

func (u *use) report(n ast.Node, why string) { fmt.Printf("%s: %s\n", u.Fset.Position(n.Pos()), why) }

func (u *use) isConverse(e ast.Expr) *ast.Ident {
	if s, ok := e.(*ast.SelectorExpr); ok && u.object(s.Sel) == u.converse {
		return s.Sel
	}
	return nil
}

func (u *use) isTransport(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Name() == "Transport" && named.Obj().Pkg() == u.converse.Pkg()
}

// negate negates an expression.
func (u *use) negate(e ast.Expr) {
	switch id, _ := e.(*ast.Ident); {
	case id != nil && id.Name == "true":
		u.replace(e.Pos(), e.End(), "false")
	case id != nil && id.Name == "false":
		u.replace(e.Pos(), e.End(), "true")
	default:
		if not, ok := e.(*ast.UnaryExpr); ok && not.Op == token.NOT {
			u.replace(e.Pos(), not.X.Pos(), "")
			return
		}
		if _, ok := e.(*ast.BinaryExpr); ok {
			u.replace(e.Pos(), e.Pos(), "!(")
			u.replace(e.End(), e.End(), ")")
			return
		}
		u.replace(e.Pos(), e.Pos(), "!")
	}
}

// invertLiteral changes a literal of a Transport.
func (u *use) invertLiteral(lit *ast.CompositeLit) {
	t := u.TypesInfo.TypeOf(lit)
	if p, ok := t.(*types.Pointer); ok { // &Transport, left out in a list
		t = p.Elem()
	}
	if !u.isTransport(t) {
		return
	}
	for i, e := range lit.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return
		}
		id, ok := kv.Key.(*ast.Ident)
		if !ok || u.object(id) != u.converse {
			continue
		}
		u.inverted[id] = true
		if v, ok := kv.Value.(*ast.Ident); !ok || v.Name != "true" {
			u.replace(id.Pos(), id.End(), "RecordOnly")
			u.negate(kv.Value)
			return
		}
		switch {
		case i+1 < len(lit.Elts):
			u.replace(kv.Pos(), lit.Elts[i+1].Pos(), "")
		case i > 0:
			u.replace(lit.Elts[i-1].End(), kv.End(), "")
		default:
			u.replace(kv.Pos(), lit.Rbrace, "")
		}
		return
	}
	switch {
	case len(lit.Elts) == 0:
		u.replace(lit.Lbrace+1, lit.Lbrace+1, "RecordOnly: true")
	case u.Fset.Position(lit.Lbrace).Line == u.Fset.Position(lit.Elts[0].Pos()).Line:
		u.replace(lit.Elts[0].Pos(), lit.Elts[0].Pos(), "RecordOnly: true, ")
	default:
		u.replace(lit.Elts[0].Pos(), lit.Elts[0].Pos(), "RecordOnly: true,\n")
	}
}

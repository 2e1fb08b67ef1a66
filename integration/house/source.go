package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
)

// source is one Go file.
type source struct {
	path      string
	lines     int
	functions []function
	exported  []name
}

// function is a function or method with a body, by its name as in T.Method.
type function struct {
	name  string
	lines int
}

// name is an exported name as go doc shows it: a constant, variable, function or type, a method or field of an exported
// type as in T.Field. What package main exports is nobody's to import, and does not count.
type name struct {
	name       string
	documented bool
}

func parse(path string, text []byte) (*source, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	s := &source{path: path, lines: bytes.Count(text, []byte("\n"))}
	for _, decl := range parsed.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
			lines := files.Position(f.End()).Line - files.Position(f.Pos()).Line + 1
			s.functions = append(s.functions, function{qualified(f), lines})
		}
		if parsed.Name.Name != "main" {
			s.exported = append(s.exported, namesOf(decl)...)
		}
	}
	return s, nil
}

// qualified returns a function's name, with its receiver's type before it.
func qualified(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	return receiver(f.Recv.List[0].Type) + "." + f.Name.Name
}

// receiver returns the name of a receiver's type, without pointer and type parameters.
func receiver(t ast.Expr) string {
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return "?"
		}
	}
}

package main

import "go/ast"

// namesOf returns the exported names that a declaration brings.
func namesOf(decl ast.Decl) []name {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		return funcNames(d)
	case *ast.GenDecl:
		var names []name
		for _, spec := range d.Specs {
			names = append(names, specNames(d, spec)...)
		}
		return names
	default:
		return nil
	}
}

// funcNames returns a function, or a method of an exported type.
func funcNames(f *ast.FuncDecl) []name {
	if !f.Name.IsExported() || f.Recv != nil && !ast.IsExported(receiver(f.Recv.List[0].Type)) {
		return nil
	}
	return []name{{qualified(f), f.Doc != nil}}
}

// specNames returns what one line of a declaration brings. The comment of a whole group documents each of its members.
func specNames(group *ast.GenDecl, spec ast.Spec) []name {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		return identNames("", s.Names, group.Doc, s.Doc, s.Comment)
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return nil
		}
		return append(identNames("", []*ast.Ident{s.Name}, group.Doc, s.Doc, s.Comment), memberNames(s)...)
	default:
		return nil
	}
}

// memberNames returns the fields of a struct, or the methods of an interface. What is embedded has its doc elsewhere.
func memberNames(t *ast.TypeSpec) []name {
	var members *ast.FieldList
	switch x := t.Type.(type) {
	case *ast.StructType:
		members = x.Fields
	case *ast.InterfaceType:
		members = x.Methods
	default:
		return nil
	}
	var names []name
	for _, m := range members.List {
		names = append(names, identNames(t.Name.Name+".", m.Names, m.Doc, m.Comment)...)
	}
	return names
}

// identNames returns the exported ones of some identifiers that share their comments.
func identNames(prefix string, idents []*ast.Ident, comments ...*ast.CommentGroup) []name {
	documented := false
	for _, c := range comments {
		documented = documented || c != nil
	}
	var names []name
	for _, ident := range idents {
		if ident.IsExported() {
			names = append(names, name{prefix + ident.Name, documented})
		}
	}
	return names
}

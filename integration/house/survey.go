package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// house is a checkout: the packages of the product, and the modules beside it.
type house struct {
	packages, modules []*room
}

// room is what has a line of its own.
type room struct {
	name  string
	files []*source
}

// survey reads every Go file under root that is not a test.
func survey(root string) (*house, error) {
	tree := os.DirFS(root)
	files, err := goFiles(tree)
	if err != nil {
		return nil, err
	}
	packages, modules := map[string]*room{}, map[string]*room{}
	for _, file := range files {
		rooms, in := packages, path.Dir(file)
		if module := moduleOf(tree, file); module != "." {
			rooms, in = modules, module
		}
		if err := put(rooms, in, tree, file); err != nil {
			return nil, err
		}
	}
	if len(packages) == 0 {
		return nil, fmt.Errorf("no Go package in %s", root)
	}
	return &house{packages: sorted(packages), modules: sorted(modules)}, nil
}

func goFiles(tree fs.FS) (files []string, err error) {
	err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return enter(name)
		case path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go"):
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

// enter says whether a folder counts.
func enter(dir string) error {
	base := path.Base(dir)
	if dir != "." && (base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_') {
		return fs.SkipDir
	}
	return nil
}

// moduleOf returns the innermost folder with a go.mod above a file, or the root.
func moduleOf(tree fs.FS, file string) string {
	dir := path.Dir(file)
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := fs.Stat(tree, path.Join(dir, "go.mod")); err == nil {
			break
		}
	}
	return dir
}

func sorted(rooms map[string]*room) []*room {
	var all []*room
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		all = append(all, rooms[name])
	}
	return all
}

// put reads a file into the room of that name.
func put(rooms map[string]*room, in string, tree fs.FS, file string) error {
	text, err := fs.ReadFile(tree, file)
	if err != nil {
		return err
	}
	s, err := parse(file, text)
	if err != nil {
		return err
	}
	if rooms[in] == nil {
		rooms[in] = &room{name: in}
	}
	rooms[in].files = append(rooms[in].files, s)
	return nil
}

// product is all packages of the root module as one room.
func (h *house) product() *room {
	all := &room{name: "product"}
	for _, p := range h.packages {
		all.files = append(all.files, p.files...)
	}
	return all
}

// rooms returns a line each: the packages, the product, the modules.
func (h *house) rooms() []*room {
	return slices.Concat(h.packages, []*room{h.product()}, h.modules)
}

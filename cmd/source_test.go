package cmd

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/linked.txt")

// eachPackage calls visit with the files of each folder that has Go files, by its path from the root.
func eachPackage(t *testing.T, visit func(folder string, set *token.FileSet, files map[string]*ast.File)) {
	t.Helper()
	packages := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return err
		case slices.Contains([]string{"node_modules", ".git", "bin", "testdata"}, d.Name()):
			return filepath.SkipDir
		}
		names, err := filepath.Glob(filepath.Join(path, "*.go"))
		if err != nil || len(names) == 0 {
			return err
		}
		set, files := token.NewFileSet(), map[string]*ast.File{}
		for _, name := range names {
			file, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			files[name] = file
		}
		packages++
		visit(strings.TrimPrefix(path, "../"), set, files)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if packages < 40 {
		t.Fatalf("found only %d packages", packages)
	}
}

// TestPackagesAreDescribed: each package has one comment, which says what it is for.
func TestPackagesAreDescribed(t *testing.T) {
	eachPackage(t, func(folder string, _ *token.FileSet, files map[string]*ast.File) {
		var described []string
		for name, file := range files {
			if file.Doc == nil || strings.TrimSpace(file.Doc.Text()) == "" {
				continue
			}
			described = append(described, name)
			first, _, _ := strings.Cut(file.Doc.Text(), "\n")
			if begin := "Package " + file.Name.Name + " "; file.Name.Name != "main" && !strings.HasPrefix(first, begin) {
				t.Errorf("%s: the comment of a package begins with %q", name, begin)
			}
		}
		if len(described) != 1 {
			t.Errorf("%s has %d comments on the package, in %q", folder, len(described), described)
		}
	})
}

// TestExportedNamesAreDescribed: each name that another package can use has a comment, of its own or of its group.
func TestExportedNamesAreDescribed(t *testing.T) {
	names := 0
	eachPackage(t, func(_ string, set *token.FileSet, files map[string]*ast.File) {
		for path, file := range files {
			if strings.HasSuffix(path, "_test.go") || file.Name.Name == "main" {
				continue
			}
			for _, d := range file.Decls {
				for name, described := range exported(d) {
					names++
					if !described {
						t.Errorf("%s: %s has no comment", set.Position(d.Pos()), name)
					}
				}
			}
		}
	})
	if names < 500 {
		t.Errorf("found only %d names", names)
	}
}

// exported are the exported names of a declaration, and whether each has a comment.
func exported(d ast.Decl) map[string]bool {
	names := map[string]bool{}
	switch d := d.(type) {
	case *ast.FuncDecl:
		method := d.Recv != nil
		switch {
		case !d.Name.IsExported() || method && !ast.IsExported(receiver(d.Recv.List[0].Type)):
		case method && d.Name.Name == "Error": // of an error: there is nothing to say
		default:
			names[d.Name.Name] = d.Doc != nil
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					names[s.Name.Name] = d.Doc != nil || s.Doc != nil || s.Comment != nil
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() {
						names[n.Name] = d.Doc != nil || s.Doc != nil || s.Comment != nil
					}
				}
			}
		}
	}
	return names
}

// receiver is the name of the type that a method is of.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// TestLinkedPackages: what is linked into what operators get is what testdata/linked.txt says, by package: what is added
// is read before it is committed. The standard library is left out.
func TestLinkedPackages(t *testing.T) {
	const list = "testdata/linked.txt"
	var b strings.Builder
	for _, program := range []struct{ name, cgo string }{{"executord", "0"}, {"executorctl", "0"}, {"executor-worker", "1"}} {
		fmt.Fprintf(&b, "%s\n", program.name)
		c := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./"+program.name)
		c.Env = append(os.Environ(), "CGO_ENABLED="+program.cgo, "GOOS=linux", "GOARCH=amd64")
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, pkg := range slices.Sorted(strings.FieldsSeq(string(out))) {
			fmt.Fprintf(&b, "  %s\n", pkg)
		}
	}
	if *update {
		if err := os.WriteFile(list, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		old := strings.Split(string(want), "\n")
		for line := range strings.SplitSeq(got, "\n") {
			if !slices.Contains(old, line) {
				t.Errorf("now linked: %s", strings.TrimSpace(line))
			}
		}
		t.Errorf("%s is not what is linked; look at what changed, then go test ./cmd -run Linked -update", list)
	}
}

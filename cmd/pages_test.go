package cmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/executord/executord/ipc/worker"
)

// readPage returns a file of the repository, by its path from the root.
func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile("../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReadmeShowsTheExample: the Go program of the README is the compiled example of package client.
func TestReadmeShowsTheExample(t *testing.T) {
	example := strings.NewReplacer("package client_test", "package main", "func Example()", "func main()").
		Replace(readPage(t, "ipc/client/example_test.go"))
	if !strings.Contains(readPage(t, "README.md"), "\n```go\n"+example+"```\n") {
		t.Error("the README shows another program than ipc/client/example_test.go")
	}
}

// deviation is a row of docs/runtime-deviations.md.
type deviation struct{ area, what, reason, tests string }

func deviations(t *testing.T) (rows []deviation) {
	t.Helper()
	for line := range strings.Lines(readPage(t, "docs/runtime-deviations.md")) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| area |") || strings.HasPrefix(line, "| --- |") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 4 {
			t.Errorf("a row of %d cells: %s", len(cells), line)
			continue
		}
		rows = append(rows, deviation{cells[0], cells[1], cells[2], cells[3]})
	}
	return rows
}

// TestDeviationsNameTests: each deviation names the tests that show it, and they exist: cases of sandbox/runtime/testdata,
// Go tests of a package, or web-platform-tests of an area that is run.
func TestDeviationsNameTests(t *testing.T) {
	rows := deviations(t)
	if len(rows) == 0 {
		t.Fatal("the page has no rows")
	}
	for _, row := range rows {
		t.Run(row.area+"/"+row.what, func(t *testing.T) {
			for ref := range strings.SplitSeq(row.tests, "; ") {
				switch {
				case strings.HasPrefix(ref, "testdata/"):
					checkCase(t, ref)
				case strings.HasPrefix(ref, "WPT "):
					checkWPT(t, ref)
				default:
					checkGoTests(t, ref)
				}
			}
		})
	}
}

// checkCase reads "testdata/FILE.txt" or "testdata/FILE.txt: CASE".
func checkCase(t *testing.T, ref string) {
	file, name, named := strings.Cut(ref, ": ")
	text := readPage(t, "sandbox/runtime/"+file)
	if named && !strings.Contains("\n"+text, "\n=== "+name+"\n") {
		t.Errorf("%s has no case %q", file, name)
	}
}

// checkWPT reads "WPT PATH", after which further names of the same folder and a remark in parentheses may stand. The tests
// themselves are not in this repository; that their area is run can be seen.
func checkWPT(t *testing.T, ref string) {
	var areas []struct {
		Name  string
		Paths []string
	}
	if err := json.Unmarshal([]byte(readPage(t, "cmd/wpt/data/areas.json")), &areas); err != nil {
		t.Fatal(err)
	}
	path := strings.FieldsFunc(ref, func(r rune) bool { return r == ' ' || r == ',' })[1]
	for _, area := range areas {
		if area.Name == path {
			return
		}
		for _, p := range area.Paths {
			if p == path || strings.HasPrefix(path, p+"/") || strings.HasPrefix(p, path+".") {
				return
			}
		}
	}
	t.Errorf("%s belongs to no area that is run", path)
}

var goTest = regexp.MustCompile("`(Test\\w+)`")

// checkGoTests reads "PACKAGE `TestA`, `TestB`".
func checkGoTests(t *testing.T, ref string) {
	folder, names, _ := strings.Cut(ref, " ")
	files, err := filepath.Glob("../" + folder + "/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%q names no package with tests", ref)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	found := goTest.FindAllStringSubmatch(names, -1)
	if len(found) == 0 {
		t.Errorf("%q names no test", ref)
	}
	for _, name := range found {
		if !strings.Contains(all.String(), "\nfunc "+name[1]+"(") {
			t.Errorf("%s has no %s", folder, name[1])
		}
	}
}

// TestThreatModelNamesTests: each claim about the boundary names the tests that show it, and each layer of isolation has
// its row.
func TestThreatModelNamesTests(t *testing.T) {
	page := readPage(t, "docs/threat-model.md")
	_, claims, _ := strings.Cut(page, "| claim | by | test |\n| --- | --- | --- |\n")
	claims, rest, _ := strings.Cut(claims, "\n\n")
	if rest == "" {
		t.Fatal("the page has no claims")
	}
	for claim := range strings.SplitSeq(claims, "\n") {
		cells := strings.Split(strings.Trim(claim, "| "), " | ")
		if len(cells) != 3 {
			t.Fatalf("a claim of %d cells: %s", len(cells), claim)
		}
		for ref := range strings.SplitSeq(cells[2], "; ") {
			checkGoTests(t, ref)
		}
	}
	for _, layer := range worker.Layers() {
		if !strings.Contains(rest, "`"+layer+"`") {
			t.Errorf("the page says nothing of the layer %s", layer)
		}
	}
}

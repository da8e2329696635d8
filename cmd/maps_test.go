package cmd

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// The maps of the project are the pages that say where things are and what they are called. What they name is there.

// maxSummary bounds the summary of a primitive, and the line of a concept, in characters.
const maxSummary = 120

// writings are all pages in Markdown, by their paths from the root.
func writings(t *testing.T) (pages []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"node_modules", ".git", "bin", "dist"}, d.Name()):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".md"):
			pages = append(pages, strings.TrimPrefix(path, "../"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 25 {
		t.Fatalf("found only %q", pages)
	}
	return pages
}

// built is what a checkout has only once it was built.
var built = regexp.MustCompile(`^(bin|dist|bench/out|sandbox/runtime/(dist|node_modules)|sandbox/v8/include)(/|$)`)

var (
	span       = regexp.MustCompile("(?s)```.*?```|`[^`]+`")
	indented   = regexp.MustCompile(`(?m)^ {4}.*$`)
	wordInCode = regexp.MustCompile(`[^\s"'(),;|<>=` + "`" + `]+`)
)

// codeOf is all that a page shows as code: spans, fenced and indented blocks.
func codeOf(page string) string {
	return strings.Join(append(span.FindAllString(page, -1), indented.FindAllString(page, -1)...), "\n")
}

// TestNamedPathsExist: each path of the repository that a page names is there.
func TestNamedPathsExist(t *testing.T) {
	top, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	roots := map[string]bool{}
	for _, e := range top {
		roots[e.Name()] = true
	}
	found := 0
	for _, page := range writings(t) {
		for _, word := range wordInCode.FindAllString(codeOf(readPage(t, page)), -1) {
			path := strings.TrimRight(strings.TrimPrefix(word, "./"), ".:…")
			root, _, deep := strings.Cut(path, "/")
			if !roots[root] || !deep && filepath.Ext(root) == "" || built.MatchString(path) || strings.Contains(path, "...") {
				continue
			}
			found++
			if there, err := filepath.Glob("../" + path); err != nil || len(there) == 0 {
				t.Errorf("%s names %s, which is not there", page, path)
			}
		}
	}
	if found < 200 {
		t.Errorf("found only %d paths", found)
	}
}

// TestArchitectureHasOneLineForEachConcept: each line of the list is short and names a place.
func TestArchitectureHasOneLineForEachConcept(t *testing.T) {
	_, list, _ := strings.Cut(readPage(t, "ARCHITECTURE.md"), "\n## Where each concept lives\n\n")
	list, _, _ = strings.Cut(list, "\n\n")
	lines := strings.Split(strings.TrimSpace(list), "\n")
	if len(lines) < 40 {
		t.Fatalf("the list has %d lines", len(lines))
	}
	for _, line := range lines {
		switch {
		case !strings.HasPrefix(line, "- ") || !strings.Contains(line, ": "):
			t.Errorf("a concept is one line, and says where: %s", line)
		case !strings.Contains(line, "`"):
			t.Errorf("no place is named: %s", line)
		case utf8.RuneCountInString(line) > maxSummary:
			t.Errorf("more than %d characters: %s", maxSummary, line)
		}
	}
}

// TestPrimitives: each has a name of its own, a group, a short line, and a root that is there; each invariant has a test.
func TestPrimitives(t *testing.T) {
	var file struct {
		Primitives []struct{ Name, Group, Root, Summary string }
		Invariants []struct{ Rule, Test string }
	}
	d := yaml.NewDecoder(strings.NewReader(readPage(t, "primitives.yaml")))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	if len(file.Primitives) < 30 || len(file.Invariants) < 8 {
		t.Errorf("%d primitives and %d invariants", len(file.Primitives), len(file.Invariants))
	}
	names := map[string]bool{}
	for _, p := range file.Primitives {
		if p.Name == "" || names[p.Name] {
			t.Errorf("the name %q is empty, or comes twice", p.Name)
		}
		names[p.Name] = true
		if !slices.Contains([]string{"contract", "connection", "workers", "sandbox", "operation"}, p.Group) {
			t.Errorf("%s: there is no group %q", p.Name, p.Group)
		}
		checkSummary(t, p.Name, p.Summary)
		if _, err := os.Stat("../" + p.Root); p.Root == "" || err != nil {
			t.Errorf("%s: the root %q is not there", p.Name, p.Root)
		}
	}
	for _, i := range file.Invariants {
		checkSummary(t, "an invariant", i.Rule)
		folder, test, _ := strings.Cut(i.Test, " ")
		checkGoTests(t, folder+" `"+test+"`")
	}
}

func checkSummary(t *testing.T, of, text string) {
	t.Helper()
	if n := utf8.RuneCountInString(text); n == 0 || n > maxSummary || strings.Contains(text, "\n") {
		t.Errorf("%s: a summary is one line of 1 to %d characters, not %d: %s", of, maxSummary, n, text)
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// TestLinksResolve: each link to another page, or to a heading, leads there. What is elsewhere is not asked.
func TestLinksResolve(t *testing.T) {
	for _, page := range writings(t) {
		text := span.ReplaceAllString(readPage(t, page), "")
		for _, l := range link.FindAllStringSubmatch(text, -1) {
			path, anchor, _ := strings.Cut(l[1], "#")
			if strings.Contains(l[1], "://") {
				continue
			}
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat("../" + target); err != nil {
				t.Errorf("%s leads to %s, which is not there", page, l[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(readPage(t, target)), anchor) {
				t.Errorf("%s leads to %s, which is no heading", page, l[1])
			}
		}
		for _, title := range titles.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(anchors(readPage(t, page)), anchorOf(title[1])) {
				t.Errorf("%s says see %s, which is no heading of it", page, title[1])
			}
		}
	}
}

// titles are headings of the same page, as "see *Resuming*".
var titles = regexp.MustCompile(`\b[Ss]ee \*([^*]+)\*`)

func anchors(page string) (list []string) {
	for _, h := range heading.FindAllStringSubmatch(page, -1) {
		list = append(list, anchorOf(h[1]))
	}
	return list
}

// anchorOf is what GitHub makes of a heading.
func anchorOf(heading string) string {
	kept := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(kept, " ", "-")
}

var (
	flagInCode = regexp.MustCompile(`(^|[\s"'` + "`" + `\[,(])--([a-z][a-z0-9-]*[a-z0-9])`)
	variable   = regexp.MustCompile(`\bEXECUTOR(?:D|CTL)_[A-Z][A-Z0-9_]*[A-Z0-9]\b`)
)

// foreign are flags of programs that are not the operator's.
var foreign = strings.Fields(`always append build-arg by-file from-file groups help list now out raise tags test unix-socket`)

// TestSettingsAreSpelt: each flag and each variable that a page names is one of executord, of executorctl or of the tests.
func TestSettingsAreSpelt(t *testing.T) {
	known := readPage(t, "docs/settings.md") + strings.ReplaceAll(readPage(t, "man/executorctl.1"), `\-`, "-") + readPage(t, "man/executorctl.1")
	variables := known + readPage(t, "Makefile") + readPage(t, "ipc/testbin/testbin.go") + readPage(t, ".ci/run")
	found := 0
	for _, page := range writings(t) {
		if strings.HasPrefix(page, "docs/decisions/") { // they stay as they were written, and name flags of V8
			continue
		}
		code := codeOf(readPage(t, page))
		for _, f := range flagInCode.FindAllStringSubmatch(code, -1) {
			found++
			name := f[2]
			if !regexp.MustCompile(`--(\[no-\])?`+name+`\b`).MatchString(known) && !slices.Contains(foreign, name) {
				t.Errorf("%s names --%s, which is no setting", page, name)
			}
		}
		for _, name := range variable.FindAllString(code, -1) {
			if !strings.Contains(variables, strings.TrimSuffix(name, "NAME")) { // as in --default-NAME
				t.Errorf("%s names %s, which is no variable", page, name)
			}
		}
	}
	if found < 100 {
		t.Errorf("found only %d flags", found)
	}
}

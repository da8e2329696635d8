package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// area is a part of the suite that is scored by itself.
type area struct {
	Name    string   `json:"name"`
	Paths   []string `json:"paths"`             // files, and folders whose *.any.js count
	Exclude []string `json:"exclude,omitempty"` // regular expressions on the path
	ECMA429 bool     `json:"ecma429"`           // asked for by ECMA-429
	Server  bool     `json:"server,omitempty"`  // needs a server of the suite

	// Patch has replacements in a file, as pairs of old and new text: for the few window tests that touch a document
	// beside what they test.
	Patch map[string][][2]string `json:"patch,omitempty"`
}

//go:embed data/areas.json
var areasText []byte

// areas are all, in the order of tables.
var areas = func() (list []area) {
	if err := json.Unmarshal(areasText, &list); err != nil {
		panic(err) // the file is part of this program
	}
	return list
}()

// groups are names for several areas.
var groups = map[string]func(area) bool{
	"all":      func(area) bool { return true },
	"ecma429":  func(a area) bool { return a.ECMA429 && !a.Server },
	"noserver": func(a area) bool { return !a.Server },
	"server":   func(a area) bool { return a.Server },
}

// pick returns the areas of these names and groups, in the order of tables.
func pick(names []string) ([]area, error) {
	wanted := map[string]bool{}
	for _, name := range names {
		found := false
		for _, a := range areas {
			if in := groups[name]; a.Name == name || in != nil && in(a) {
				wanted[a.Name], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no area %q", name)
		}
	}
	var picked []area
	for _, a := range areas {
		if wanted[a.Name] {
			picked = append(picked, a)
		}
	}
	return picked, nil
}

// testCase is one run: a file, or one variant of it.
type testCase struct {
	Area, Path, Search string // Path begins with '/', Search with '?' unless it is empty
	Long, Tentative    bool
	Scripts            []string // that the file asks for
	Patch              [][2]string
}

func (t testCase) id() string { return t.Path + t.Search }

// collect finds the cases of areas in the tree whose id matches only; nil is all.
func collect(tree fs.FS, list []area, only *regexp.Regexp) (cases []testCase, err error) {
	for _, a := range list {
		files, err := a.files(tree)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			of, err := readCases(tree, a, f)
			if err != nil {
				return nil, err
			}
			for _, c := range of {
				if only == nil || only.MatchString(c.id()) {
					cases = append(cases, c)
				}
			}
		}
	}
	return cases, nil
}

// files are the paths of an area's files.
func (a area) files(tree fs.FS) (files []string, err error) {
	for _, root := range a.Paths {
		err := fs.WalkDir(tree, root, func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && (p == root || strings.HasSuffix(p, ".any.js")) && !a.excludes(p) {
				files = append(files, p)
			}
			return err
		})
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the tree has no %s, which the area %s is made of", root, a.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

func (a area) excludes(p string) bool {
	for _, e := range a.Exclude {
		if regexp.MustCompile(e).MatchString(p) {
			return true
		}
	}
	return false
}

var metaLine = regexp.MustCompile(`^//\s*META:\s*([a-z]+)=(.*?)\s*$`)

// readCases reads the head of a test file
// (https://web-platform-tests.org/writing-tests/testharness.html#specifying-a-title-and-timeout-metadata). There are
// no cases when the file is for neither a window nor a shell.
func readCases(tree fs.FS, a area, p string) ([]testCase, error) {
	text, err := fs.ReadFile(tree, p)
	if err != nil {
		return nil, err
	}
	t := testCase{Area: a.Name, Path: "/" + p, Tentative: strings.Contains(p, "tentative"), Patch: a.Patch[p]}
	globals := "window,dedicatedworker"
	var variants []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "//") {
			break
		}
		m := metaLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		switch m[1] {
		case "script":
			t.Scripts = append(t.Scripts, resolve(path.Dir(t.Path), m[2]))
		case "global":
			globals = m[2]
		case "variant":
			variants = append(variants, m[2])
		case "timeout":
			t.Long = m[2] == "long"
		}
	}
	if !isOurs(globals) {
		return nil, nil
	}
	return t.variants(variants), nil
}

// isOurs tells whether a file for these globals is for the sandbox too, which is like a window without documents.
func isOurs(globals string) bool {
	for g := range strings.SplitSeq(globals, ",") {
		if g = strings.TrimSpace(g); g == "window" || g == "jsshell" {
			return true
		}
	}
	return false
}

// variants has a case for each variant; those over HTTP/2 are left to browsers.
func (t testCase) variants(variants []string) (cases []testCase) {
	if len(variants) == 0 {
		return []testCase{t}
	}
	for _, v := range variants {
		if !strings.Contains(v, "wpt_flags=h2") {
			t.Search = v
			cases = append(cases, t)
		}
	}
	return cases
}

// resolve is the path that a script names from a folder.
func resolve(folder, p string) string {
	if strings.HasPrefix(p, "/") {
		return p
	}
	return path.Join(folder, p)
}

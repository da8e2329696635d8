package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/executord/executord/ipc/protocol"
)

// origin is that of the suite's own server, whose addresses tests expect.
const origin = "http://web-platform.test:8000"

// Time-outs of the harness: what a test gets, and how many times that when it says that it is long.
const (
	shortTest  = 10 * time.Second
	longFactor = 6
)

//go:embed prelude.js
var prelude string

// maker makes programs of cases.
type maker struct {
	tree   fs.FS
	server string        // address of a server of the suite; without one, data files travel in the program
	short  time.Duration // time-out of the harness for tests that are not long
}

// script is one text of a program.
type script struct{ path, text string }

func (m maker) timeout(t testCase) time.Duration {
	if t.Long {
		return longFactor * m.short
	}
	return m.short
}

// make returns the program of a case: statements with a return at the end. The scripts run as in a page, each part in
// the global scope, and what the program returns is a JSON text for payload.
func (m maker) make(t testCase) (string, error) {
	scripts, err := m.scripts(t)
	if err != nil {
		return "", err
	}
	harness, err := m.read("/resources/testharness.js")
	if err != nil {
		return "", err
	}
	program := fmt.Sprintf(
		"(0, eval)(%s)(%s);\n(0, eval)(%s);\n__wpt.arm();\ntry { (0, eval)(%s) } catch (e) { __wpt.loadError(e) }\nreturn await __wpt.done;\n",
		quote(prelude), quote(m.config(t, scripts)), quote(harness), quote(joined(scripts, m.base()+t.Path)),
	)
	if len(program) > protocol.MaxCodeBytes {
		return "", fmt.Errorf("the program has %d bytes, more than %d", len(program), protocol.MaxCodeBytes)
	}
	return program, nil
}

// config is the prelude's argument.
func (m maker) config(t testCase, scripts []script) any {
	c := struct {
		Path          string              `json:"path"`
		Search        string              `json:"search"`
		Base          string              `json:"base"`
		TimeoutMs     int64               `json:"timeoutMs"`
		PretendWindow bool                `json:"pretendWindow"`
		Files         map[string]dataFile `json:"files"`
	}{
		Path: strings.TrimSuffix(t.Path, ".js") + ".html", Search: t.Search, Base: m.base(),
		TimeoutMs: m.timeout(t).Milliseconds(), PretendWindow: isIDL(scripts),
	}
	if m.server == "" {
		c.Files = m.dataFiles(t, scripts)
	}
	return c
}

// base is where programs believe to come from.
func (m maker) base() string {
	if m.server != "" {
		return m.server
	}
	return origin
}

// scripts are those that a case asks for, and the test itself at the end.
func (m maker) scripts(t testCase) (scripts []script, err error) {
	for _, p := range append(append([]string{}, t.Scripts...), t.Path) {
		if p == "/resources/WebIDLParser.js" {
			p = "/resources/webidl2/lib/webidl2.js" // the suite's server answers with the one for the other
		}
		text, err := m.read(p)
		if err != nil {
			return nil, err
		}
		if p == t.Path {
			for _, r := range t.Patch {
				text = strings.ReplaceAll(text, r[0], r[1])
			}
		}
		scripts = append(scripts, script{p, text})
	}
	return scripts, nil
}

// read reads a script. The server fills in the templates of *.sub.* files.
func (m maker) read(p string) (string, error) {
	if m.server != "" && strings.Contains(path.Base(p), ".sub.") {
		return get(m.server + p)
	}
	text, err := fs.ReadFile(m.tree, strings.TrimPrefix(path.Clean(p), "/"))
	return string(text), err
}

func get(url string) (string, error) {
	response, err := http.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, response.Status)
	}
	return string(text), err
}

// strict is a text that begins with a directive for strict mode, after comments.
var strict = regexp.MustCompile(`^(?:\s|//[^\n]*\n|/\*(?s:.*?)\*/)*["']use strict["']`)

// joined makes one script of several, whose last is the test: what let and const declare in one must be seen by the
// next. The others are not strict, and a strict test gets a function of its own for that. Stacks name the address.
func joined(scripts []script, address string) string {
	var b strings.Builder
	for _, s := range scripts {
		text := s.text
		if s == scripts[len(scripts)-1] && strict.MatchString(text) {
			text = "(function () {" + text + "\n}).call(this);"
		}
		fmt.Fprintf(&b, ";// %s\n%s\n", s.path, text)
	}
	return b.String() + "//# sourceURL=" + address
}

func isIDL(scripts []script) bool {
	for _, s := range scripts {
		if s.path == "/resources/idlharness.js" {
			return true
		}
	}
	return false
}

// quote is a value as an expression of JavaScript.
func quote(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings, numbers and maps of them
	}
	return string(text)
}

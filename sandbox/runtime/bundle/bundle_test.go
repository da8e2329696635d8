package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDistIsUpToDate fails when a source was edited and the bundler did not run: the other tests would test old texts.
func TestDistIsUpToDate(t *testing.T) {
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	targets, err := allTargets(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range targets {
		want, err := build(root, target)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(root, "dist", target.output))
		if err != nil || string(got) != want {
			t.Errorf("dist/%s is old: run go generate ./sandbox/runtime (%v)", target.output, err)
		}
	}
}

func TestAsScript(t *testing.T) {
	for _, c := range []struct {
		name, module string
		value        bool
		want         string
	}{
		{"default export", "var a=1;export{a as default};\n", true, `(()=>{"use strict";var a=1;return a})();` + "\n"},
		{"other exports", "var a=1;export{a,a as default};", true, ""},
		{"none", "var a=1;", true, ""},
		{"no value", "a();\n", false, `(()=>{"use strict";a();})();` + "\n"},
		{"no value with export", "export{a};", false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := asScript(c.module, target{entry: "x", value: c.value})
			if got != c.want || (err != nil) != (c.want == "") {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestInstallPackagesLeavesTheRightOnesAlone(t *testing.T) {
	root := t.TempDir()
	lock := `{"packages":{"":{},"node_modules/a":{"version":"1.0.0","integrity":"sha512-x"}}}`
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("package-lock.json", lock)
	write("node_modules/.package-lock.json", strings.Replace(lock, `"":{},`, "", 1))
	t.Setenv("PATH", "") // npm cannot be found, so it must not be wanted
	if err := installPackages(root); err != nil {
		t.Error(err)
	}
	write("node_modules/.package-lock.json", strings.Replace(lock, "1.0.0", "0.9.0", 1))
	if err := installPackages(root); err == nil {
		t.Error("an old package was left alone")
	}
}

// TestLockNamesNoHost keeps the registry a matter of whoever builds.
func TestLockNamesNoHost(t *testing.T) {
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "package-lock.json"))
	if err != nil || strings.Contains(string(text), "://") || strings.Contains(string(text), `"resolved"`) {
		t.Errorf("package-lock.json names a host (npm install --omit-lockfile-registry-resolved): %v", err)
	}
}

package cmd

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/executord/executord/"

// dependencies are the packages of the module with what each needs, directly or not, without the needs of its tests. Those
// of the worker are no packages without cgo.
func dependencies(t *testing.T, cgo string) map[string][]string {
	t.Helper()
	c := exec.Command("go", "list", "-e", "-f", `{{.ImportPath}} {{join .Deps " "}}`, module+"...")
	c.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		deps[strings.TrimPrefix(f[0], module)] = f[1:]
	}
	return deps
}

// matching are the packages of a pattern, as "ipc/..." or "cmd/executord".
func matching(t *testing.T, deps map[string][]string, pattern string) (packages []string) {
	t.Helper()
	folder, all := strings.CutSuffix(pattern, "/...")
	for pkg := range deps {
		if pkg == folder || all && strings.HasPrefix(pkg, folder+"/") {
			packages = append(packages, pkg)
		}
	}
	if len(packages) == 0 {
		t.Fatalf("no package matches %s", pattern)
	}
	return packages
}

func TestImportArrows(t *testing.T) {
	withCgo, pure := dependencies(t, "1"), dependencies(t, "0")
	for _, c := range []struct{ from, never, why string }{
		{"ipc/...", module + "daemon", "ipc is below the service"},
		{"ipc/...", module + "sandbox", "ipc is below the sandbox"},
		{"ipc/...", module + "cmd", "mains are on top"},
		{"daemon/...", module + "sandbox", "the two meet only in ipc"},
		{"daemon/...", module + "cmd", "mains are on top"},
		{"sandbox/...", module + "daemon", "the two meet only in ipc"},
		{"sandbox/...", module + "cmd", "mains are on top"},
		{"daemon/...", "github.com/tommie/v8go", "only the worker links V8"},
		{"ipc/...", "github.com/tommie/v8go", "only the worker links V8"},
		{"cmd/executord", "github.com/tommie/v8go", "only the worker links V8"},
		{"cmd/executorctl", "github.com/tommie/v8go", "only the worker links V8"},
		{"cmd/executord", "runtime/cgo", "the service is pure Go"},
		{"cmd/executorctl", "runtime/cgo", "the service is pure Go"},
		{"ipc/...", "github.com/modelcontextprotocol/go-sdk", "only executorctl speaks MCP"},
		{"daemon/...", "github.com/modelcontextprotocol/go-sdk", "only executorctl speaks MCP"},
		{"cmd/executord", "github.com/modelcontextprotocol/go-sdk", "only executorctl speaks MCP"},
		{"cmd/executor-worker", "github.com/modelcontextprotocol/go-sdk", "only executorctl speaks MCP"},
		{"cmd/executor-worker", "github.com/gorilla/websocket", "a worker has no network"},
	} {
		t.Run(c.from+" never "+strings.TrimPrefix(c.never, module), func(t *testing.T) {
			all := withCgo
			if c.never == "runtime/cgo" {
				all = pure
			}
			for _, pkg := range matching(t, all, c.from) {
				for _, d := range all[pkg] {
					if d == c.never || strings.HasPrefix(d, c.never+"/") {
						t.Errorf("%s needs %s: %s", pkg, d, c.why)
					}
				}
			}
		})
	}
}

func TestProtocolImportsOnlyTheStandardLibrary(t *testing.T) {
	needs := dependencies(t, "0")["ipc/protocol"]
	if len(needs) == 0 {
		t.Fatal("it needs nothing at all")
	}
	for _, d := range needs {
		if strings.Contains(strings.Split(d, "/")[0], ".") {
			t.Errorf("ipc/protocol needs %s", d)
		}
	}
}

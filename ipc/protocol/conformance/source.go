package conformance

import (
	"os/exec"
	"strings"
	"testing"
)

// sourceDir is a folder of this module's source.
func sourceDir(t testing.TB, pkg string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/executord/executord/"+pkg).Output()
	if err != nil {
		t.Fatalf("cannot find the source of %s: %v", pkg, err)
	}
	return strings.TrimSpace(string(out))
}

package settings

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/ipc/protocol"
)

// Each limit has exactly one setting, and its row in the documentation.
func TestLimitsHaveSettings(t *testing.T) {
	text, err := os.ReadFile("../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	d := pool.Defaults()
	var names []string
	for s := range (Limits{}).fields() {
		names = append(names, s.limit)
		row := fmt.Sprintf("| `%s` | `%s` | %s | %s |", s.limit, s.name, s.text(*d.Limits.Field(s.limit)), s.text(*d.MaxLimits.Field(s.limit)))
		if !strings.Contains(string(text), "\n"+row) {
			t.Errorf("docs/limits.md has no row that begins with %s", row)
		}
	}
	if !slices.Equal(names, protocol.LimitNames()) {
		t.Errorf("settings are for %q, limits are %q", names, protocol.LimitNames())
	}
	if n := strings.Count(string(text), "\n| `"); n != len(names) {
		t.Errorf("docs/limits.md has %d rows for %d limits", n, len(names))
	}
}

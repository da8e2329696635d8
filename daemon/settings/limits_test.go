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
	var names []string
	for _, d := range declared {
		if name, is := strings.CutPrefix(d.name, "default-"); is && d.limit != "" {
			names = append(names, d.limit)
			row := fmt.Sprintf("| `%s` | `%s` | %s | %s |", d.limit, name, d.def, find("max-"+name).def)
			if !strings.Contains(string(text), "\n"+row) {
				t.Errorf("docs/limits.md has no row that begins with %s", row)
			}
		}
	}
	if !slices.Equal(names, protocol.LimitNames()) {
		t.Errorf("settings are for %q, limits are %q", names, protocol.LimitNames())
	}
	if n := strings.Count(string(text), "\n| `"); n != len(names) {
		t.Errorf("docs/limits.md has %d rows for %d limits", n, len(names))
	}
}

func TestLimitsAreThoseOfThePool(t *testing.T) {
	s, want := Defaults(), pool.Defaults()
	if s.Default.Protocol() != want.Limits || s.Max.Protocol() != want.MaxLimits {
		t.Errorf("limits are %+v and %+v, those of the pool %+v and %+v", s.Default, s.Max, want.Limits, want.MaxLimits)
	}
}

// A maximum below the default lowers a default that nobody set.
func TestLowerMaximumLowersTheDefault(t *testing.T) {
	l, err := load("--max-heap=32", "--max-cpu=1s")
	if err != nil {
		t.Fatal(err)
	}
	if s := l.Settings(); s.Default.HeapMiB != 32 || s.Default.CPU.Seconds() != 1 || s.Default.BufferMiB != 64 {
		t.Errorf("defaults are %+v", s.Default)
	}
}

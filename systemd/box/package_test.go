package box

import (
	"strings"
	"testing"
)

// TestFirstProgram: after the installation the sockets listen, the service does not run yet, and the first program of a
// member of the group starts it.
func TestFirstProgram(t *testing.T) {
	fresh(t)
	for _, unit := range []string{"executord.socket", "executord-admin.socket"} {
		if s := state(t, unit); s != "active" {
			t.Errorf("%s is %s", unit, s)
		}
	}
	for unit, want := range map[string]string{
		"executord.socket": "enabled", "executord-admin.socket": "enabled", "executord-tcp.socket": "disabled",
	} {
		if got, _ := try(t, "systemctl", "is-enabled", unit); got != want {
			t.Errorf("%s is %s, must be %s", unit, got, want)
		}
	}
	if s := state(t, "executord.service"); s != "inactive" {
		t.Errorf("the service is %s", s)
	}
	serves(t)
	if s := state(t, "executord.service"); s != "active" {
		t.Errorf("the service is %s", s)
	}
	out, status := runProgram(t, stranger, "1")
	if status == 0 || !strings.Contains(out, "you may not use the socket "+socketPath) {
		t.Errorf("a program of somebody else: exit status %d\n%s", status, out)
	}
	if out := run(t, "systemctl", "--failed", "--no-legend", "--plain"); out != "" {
		t.Errorf("failed units:\n%s", out)
	}
}

package systemd

import (
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"

	"github.com/executord/executord/ipc/worker"
)

// TestIsolationIsReadFromTheUnit: the values have the types that systemd gives them (org.freedesktop.systemd1(5)).
func TestIsolationIsReadFromTheUnit(t *testing.T) {
	unit := map[string]dbus.Variant{}
	for name, value := range map[string]any{
		"PrivateUsers": true, "PrivateNetwork": true, "PrivateIPC": true, "ProtectHostname": true, "DynamicUser": true,
		"LimitNOFILE": uint64(64), "KeyringMode": "private", "RootDirectory": "/run/executord/worker-root",
	} {
		unit[name] = dbus.MakeVariant(value)
	}
	i := judge(unit)
	if len(i.layers) != len(guards) || len(i.missing) != 1 || i.missing[0] != worker.LayerPID+": this systemd has no PrivatePIDs" {
		t.Errorf("of the template: %+v", i)
	}
	unit["PrivatePIDs"] = dbus.MakeVariant("yes")
	if i := judge(unit); len(i.missing) != 0 {
		t.Errorf("with all: %+v", i)
	}
	for name, value := range map[string]any{
		"PrivateUsers": false, "LimitNOFILE": ^uint64(0), "KeyringMode": "inherit", "RootDirectory": "",
		"PrivatePIDs": "no", "DynamicUser": "true",
	} {
		was := unit[name]
		unit[name] = dbus.MakeVariant(value)
		if i := judge(unit); len(i.missing) != 1 || !strings.Contains(i.missing[0], ": the unit has "+name+"=") {
			t.Errorf("with %s=%v: %+v", name, value, i)
		}
		unit[name] = was
	}
	if i := judge(nil); len(i.missing) != len(guards) || len(i.layers) != 1 {
		t.Errorf("of nothing: %+v", i)
	}
}

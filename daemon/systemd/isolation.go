package systemd

import (
	"context"
	"fmt"
	"slices"

	systemdbus "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"

	"github.com/executord/executord/ipc/worker"
)

// isolation is what systemd puts around a unit, by the names of ipc/worker, and what not, each as "NAME: REASON".
type isolation struct{ layers, missing []string }

// Isolation implements pool.Process. It is that of the unit that made the snapshot, as all are instances of one template.
func (w *unit) Isolation() (layers, missing []string) {
	return slices.Clone(w.isolation.layers), slices.Clone(w.isolation.missing)
}

// guards are the settings of a unit (systemd.exec(5)) that make a layer.
var guards = []struct {
	layer, setting string
	on             func(value any) bool
}{
	{worker.LayerUser, "PrivateUsers", isTrue},
	{worker.LayerNetwork, "PrivateNetwork", isTrue},
	{worker.LayerPID, "PrivatePIDs", func(v any) bool { return v != nil && v != "no" }}, // since systemd 257
	{worker.LayerIPC, "PrivateIPC", isTrue},
	{worker.LayerUTS, "ProtectHostname", isTrue},
	{worker.LayerID, "DynamicUser", isTrue},
	{worker.LayerRlimits, "LimitNOFILE", func(v any) bool { n, ok := v.(uint64); return ok && n <= 64 }},
	{worker.LayerKeyring, "KeyringMode", func(v any) bool { return v == "private" }},
	{worker.LayerRoot, "RootDirectory", func(v any) bool { return v != nil && v != "" && v != "/" }}, // has the worker and libc
}

func isTrue(v any) bool { return v == true }

// judge reads the properties of a unit's service.
func judge(properties map[string]dbus.Variant) (i isolation) {
	i.layers = []string{worker.LayerProcess}
	for _, g := range guards {
		switch value := properties[g.setting].Value(); {
		case g.on(value):
			i.layers = append(i.layers, g.layer)
		case value == nil:
			i.missing = append(i.missing, g.layer+": this systemd has no "+g.setting)
		default:
			i.missing = append(i.missing, fmt.Sprintf("%s: the unit has %s=%v", g.layer, g.setting, value))
		}
	}
	return i
}

func (b *bus) isolation(ctx context.Context, unit string) (isolation, error) {
	var properties map[string]dbus.Variant
	path := dbus.ObjectPath(managerPath + "/unit/" + systemdbus.PathBusEscape(unit))
	err := b.conn.Object(managerName, path).CallWithContext(ctx, propertyIface+".GetAll", 0, serviceIface).Store(&properties)
	return judge(properties), err
}

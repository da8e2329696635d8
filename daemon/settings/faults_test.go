package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/executord/executord/ipc/testcert"
)

// load reads a command line in an environment where there is a worker.
func load(args ...string) (*Loaded, error) {
	return Load(args, []string{"EXECUTORD_WORKER_BINARY=/bin/true", "PATH=/usr/bin:/bin"})
}

// write makes a file of variables.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "executord.env")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFaults has a row for each kind of fault. Each is told with its flag, its variable and its value.
func TestFaults(t *testing.T) {
	tokens := tokenFile(t, "ci short\n", 0o600)
	ca := testcert.New(t)
	pair, other := ca.Server("a"), ca.Server("b")
	cert, key, otherKey := tokenFile(t, string(pair.Cert), 0o644), tokenFile(t, string(pair.Key), 0o600), tokenFile(t, string(other.Key), 0o600)
	for _, tc := range []struct {
		name string
		args []string
		flag string // that is to blame; empty for one that is no setting
		want string // of the reason
	}{
		{"no listener", []string{"--listen="}, "listen", "from 1 to 16 entries"},
		{"too many listeners", []string{"--listen=" + strings.Repeat("unix:/a,", 16) + "unix:/b"}, "listen", "at most 16 entries"},
		{"bad address", []string{"--listen=localhost:80"}, "listen", "begins with unix: or tcp://"},
		{"relative socket", []string{"--listen=unix:run/s"}, "listen", "must be absolute"},
		{"long socket", []string{"--listen=unix:/" + strings.Repeat("x", 107)}, "listen", "at most 107 bytes"},
		{"address twice", []string{"--listen=unix:/a", "--listen=unix:/a"}, "listen", `"unix:/a": it is there twice`},
		{"open to the world", []string{"--listen=unix:/a,tcp://0.0.0.0:80"}, "listen", "only loopback addresses"},
		{"operator over TCP", []string{"--admin-listen=tcp://127.0.0.1:80"}, "admin-listen", "must be a unix socket"},
		{"operator where callers are", []string{"--listen=unix:/a", "--admin-listen=unix:///a"}, "admin-listen", "callers connect there"},
		{"operator nowhere to be", []string{"--admin-listen=/run/a"}, "admin-listen", "begins with unix: or tcp://"},
		{"group of operators that is not there", []string{"--admin-group=no-such-group"}, "admin-group", "there is no group"},
		{"zero workers", []string{"--workers=0"}, "workers", "from 1 to 4096 programs"},
		{"zero of a limit", []string{"--max-heap=0"}, "max-heap", "from 1 to 1048576 MiB"},
		{"negative", []string{"--queue=-1"}, "queue", "from 0 to 1048576 requests"},
		{"more than a number holds", []string{"--workers=99999999999999999999"}, "workers", "from 1 to 4096"},
		{"no number", []string{"--workers=many"}, "workers", "a whole number of programs"},
		{"fraction", []string{"--workers=1.5"}, "workers", "a whole number of programs"},
		{"empty number", []string{"--queue="}, "queue", "a whole number of requests"},
		{"bytes for MiB", []string{"--max-heap=268435456"}, "max-heap", "the unit is MiB: write 256"},
		{"bytes for MiB of the service", []string{"--max-message=33554432"}, "max-message", "the unit is MiB: write 32"},
		{"no whole MiB", []string{"--max-heap=268435457"}, "max-heap", "the unit is MiB"},
		{"unit with a number", []string{"--max-heap=256MiB"}, "max-heap", "a whole number of MiB: write 256"},
		{"larger unit with a number", []string{"--max-heap=1G"}, "max-heap", "a whole number of MiB: write 1024"},
		{"unit with bytes", []string{"--max-log=64kb"}, "max-log", "a whole number of bytes: write 65536"},
		{"unit that does not fit", []string{"--max-stack=512b"}, "max-stack", "a whole number of KiB"},
		{"KiB of a stack that no thread has", []string{"--max-stack=9000"}, "max-stack", "from 128 to 6144 KiB"},
		{"no duration", []string{"--queue-timeout=soon"}, "queue-timeout", "a duration, as 500ms, 30s or 5m"},
		{"duration without a unit", []string{"--queue-timeout=30"}, "queue-timeout", "write 30s for seconds, or 30ms"},
		{"zero duration", []string{"--ping-interval=0"}, "ping-interval", "from 10ms to 1h"},
		{"negative duration", []string{"--default-wall=-1s"}, "default-wall", "from 1ms to 168h"},
		{"part of a millisecond", []string{"--max-total=1500us"}, "max-total", "whole milliseconds"},
		{"too long", []string{"--worker-max-age=9000h"}, "worker-max-age", "from 1s to 8760h"},
		{"default over the maximum", []string{"--default-heap=600"}, "default-heap", "at most --max-heap, which is 512"},
		{"maximum below the default", []string{"--default-cpu=2s", "--max-cpu=1s"}, "default-cpu", "at most --max-cpu, which is 1s"},
		{"share of what is retained over the whole", []string{"--retained-executions=5", "--retained-per-caller=6"}, "retained-per-caller", "at most --retained-executions, which is 5"},
		{"no share of what is retained", []string{"--retained-executions=5", "--retained-per-caller=0"}, "retained-per-caller", "at least 1 while --retained-executions is 5"},
		{"share over the whole", []string{"--queue=5", "--queue-per-caller=6"}, "queue-per-caller", "at most --queue, which is 5"},
		{"caller's share over the whole", []string{"--max-caller-sessions=257"}, "max-caller-sessions", "at most --max-sessions, which is 256"},
		{"grace over the stop timeout", []string{"--drain-grace=2m"}, "drain-grace", "shorter than --stop-timeout, which is 1m30s"},
		{"delay and grace over the stop timeout", []string{"--drain-delay=1m", "--drain-grace=30s"}, "drain-grace", "with --drain-delay, which is 1m, it must be shorter than --stop-timeout"},
		{"group that is not there", []string{"--allow-group=0,no-such-group"}, "allow-group", `there is no group "no-such-group"`},
		{"state folder that is none", []string{"--state-dir=/etc/passwd"}, "state-dir", "no folder"},
		{"relative state folder", []string{"--state-dir=state"}, "state-dir", "must be absolute"},
		{"certificate without a key", []string{"--tls-cert=" + cert}, "tls-cert", "no --tls-key"},
		{"key without a certificate", []string{"--tls-key=" + key}, "tls-key", "no --tls-cert"},
		{"key of another certificate", []string{"--tls-cert=" + cert, "--tls-key=" + otherKey}, "tls-cert", "private key does not match"},
		{"key that everybody may read", []string{"--tls-cert=" + cert, "--tls-key=" + cert}, "tls-cert", "open to every user"},
		{"client CA without TLS", []string{"--tls-client-ca=" + cert}, "tls-client-ca", "only where there is a --tls-cert"},
		{"client CA that is none", []string{"--tls-cert=" + cert, "--tls-key=" + key, "--tls-client-ca=" + key}, "tls-client-ca", "certificates only"},
		{"client CA that is empty", []string{"--tls-cert=" + cert, "--tls-key=" + key, "--tls-client-ca=/dev/null"}, "tls-client-ca", "no regular file"},
		{"worker that is not there", []string{"--worker-binary=/nowhere/none"}, "worker-binary", "no such file"},
		{"worker that cannot run", []string{"--worker-binary=/etc/passwd"}, "worker-binary", "permission denied"},
		{"token file that is not there", []string{"--token-file=/nowhere/none"}, "token-file", "no such file"},
		{"short secret", []string{"--token-file=" + tokens}, "token-file", "secret of at least 16 bytes"},
		{"no host", []string{"--allow-host=https://example.com"}, "allow-host", "without scheme and port"},
		{"host with a port", []string{"--allow-host=a,example.com:80"}, "allow-host", `"example.com:80": it must be a name`},
		{"no origin", []string{"--allow-origin=example.com"}, "allow-origin", "as a browser sends it"},
		{"origin with a path", []string{"--allow-origin=https://example.com/"}, "allow-origin", "as a browser sends it"},
		{"no user id", []string{"--allow-uid=5,root"}, "allow-uid", `"root": it must be a whole number`},
		{"no pattern", []string{"--egress-allow=example.com"}, "egress-allow", "http://host[:port]"},
		{"pattern with a path", []string{"--egress-allow=https://x/path"}, "egress-allow", "host"},
		{"no network", []string{"--egress-allow=https://x", "--egress-allow-private=10.0.0.1"}, "egress-allow-private", "no '/'"},
		{"exception to nothing", []string{"--egress-allow-private=10.0.0.0/8"}, "egress-allow-private", "there is no --egress-allow"},
		{"no level", []string{"--log-level=warning"}, "log-level", "one of debug, info, warn, error"},
		{"no format", []string{"--log-format=xml"}, "log-format", "one of auto, text, json, journal"},
		{"no switch", []string{"--metrics=on"}, "metrics", "true or false"},
		{"binary data", []string{"--token-file=a\x00b"}, "token-file", "no text"},
		{"settings file that is not there", []string{"--settings-file=/nowhere/none"}, "settings-file", "no such file"},
		{"settings file that is none", []string{"--settings-file=" + t.TempDir()}, "settings-file", "no regular file"},
		{"settings file with a bad line", []string{"--settings-file=" + writeFile(t, "EXECUTORD_QUEUE 3")}, "settings-file", "line 1: it is not a variable"},
		{"settings file that names another", []string{"--settings-file=" + writeFile(t, "\nEXECUTORD_SETTINGS_FILE=/x")}, "settings-file", "line 2: a file cannot name another"},
		{"value in a settings file", []string{"--settings-file=" + writeFile(t, "\nEXECUTORD_QUEUE=3x")}, "queue", "line 2: it must be a whole number"},
		{"name in a settings file", []string{"--settings-file=" + writeFile(t, "EXECUTORD_QEUE=3")}, "", "EXECUTORD_QEUE, given in"},
		{"its suggestion", []string{"--settings-file=" + writeFile(t, "EXECUTORD_QEUE=3")}, "", "did you mean EXECUTORD_QUEUE?"},
		{"variable of nobody's in a settings file", []string{"--settings-file=" + writeFile(t, "TZ=UTC")}, "", "only variables that begin with EXECUTORD_ or OTEL_"},
		{"unknown flag", []string{"--quue=3"}, "", `unknown flag --quue, did you mean "--queue"?`},
		{"flag without a value", []string{"--queue"}, "", "--queue"},
		{"argument", []string{"serve"}, "", "unexpected argument serve"},
		{"unknown letters (L5)", []string{"-qz"}, "", "-q"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := load(tc.args...)
			var faults Faults
			if !errors.As(err, &faults) || len(faults) != 1 {
				t.Fatalf("got %v", err)
			}
			text := faults.Error()
			if !strings.Contains(text, tc.want) {
				t.Errorf("got %s, want %q in it", text, tc.want)
			}
			if tc.flag == "" {
				return
			}
			var fault *Fault
			if !errors.As(err, &fault) || fault.Name != tc.flag {
				t.Fatalf("got %#v", faults[0])
			}
			for _, named := range []string{"--" + tc.flag + " ", "(" + find(tc.flag).variable + ")", fault.Value[:min(len(fault.Value), 10)]} {
				if !strings.Contains(strings.ReplaceAll(text, `\x00`, "\x00"), named) {
					t.Errorf("%s does not name %q", text, named)
				}
			}
		})
	}
}

// A worker is looked for where none is named.
func TestNoWorkerAnywhere(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Load(nil, nil)
	if err == nil || !strings.Contains(err.Error(), "--worker-binary (EXECUTORD_WORKER_BINARY)") {
		t.Errorf("got %v", err)
	}
}

func TestAllFaultsInOneMessage(t *testing.T) {
	file := writeFile(t, "EXECUTORD_MAX_HEAP=268435456\nEXECUTORD_WORKERZ=3\n")
	_, err := Load([]string{"--settings-file", file, "--workers=0", "--drain-grace=5m"},
		[]string{"EXECUTORD_QUEUE_TIMEOUT=30", "EXECUTORD_LISTEN=", "EXECUTORD_WORKER_BINARY=/nowhere"})
	var faults Faults
	if !errors.As(err, &faults) || len(faults) != 7 {
		t.Fatalf("got %v", err)
	}
	text := err.Error()
	for _, want := range []string{
		"for 7 reasons:\n  ",
		`--max-heap (EXECUTORD_MAX_HEAP) is "268435456", given in ` + file + ", line 1: ",
		"EXECUTORD_WORKERZ, given in " + file + ", line 2: there is no such setting; did you mean EXECUTORD_WORKERS?",
		`--workers (EXECUTORD_WORKERS) is "0", given as the flag: `,
		`--drain-grace (EXECUTORD_DRAIN_GRACE) is "5m", given as the flag: `,
		`--queue-timeout (EXECUTORD_QUEUE_TIMEOUT) is "30", given as the variable: `,
		`--listen (EXECUTORD_LISTEN) is "", given as the variable: `,
		`--worker-binary (EXECUTORD_WORKER_BINARY) is "/nowhere", given as the variable: `,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "queue-per-caller") {
		t.Errorf("what follows from a fault is told as another:\n%s", text)
	}
}

package sandbox

import (
	"encoding/json"
	"os"
	"os/exec"
	goruntime "runtime"
	"slices"
	"testing"
	"time"

	"github.com/executord/executord/sandbox/runtime"
	"github.com/executord/executord/sandbox/v8"
)

// A library with nothing in it: what it leaves is V8's own global.
const bareLibrary = `(native) => { const f = () => {}; return { begin: f, fire: f, settle: f, report: f, inspect: f }; }`

// libraryVariable tells a child process of BenchmarkRestore which library to work with, and blobVariable where its
// snapshot is. A process can live with one snapshot only, and should not go on after it made one.
const (
	libraryVariable = "EXECUTORD_RESTORE_LIBRARY"
	blobVariable    = "EXECUTORD_RESTORE_BLOB"
)

// TestRestoreChild is not a test: it is what BenchmarkRestore starts.
func TestRestoreChild(t *testing.T) {
	library, blob := os.Getenv(libraryVariable), os.Getenv(blobVariable)
	switch {
	case library == "":
		t.Skip("started by BenchmarkRestore only")
	case blob == "":
		made, err := v8.MakeSnapshot(bareLibrary, "")
		if library == "full" {
			made, err = v8.MakeSnapshot(runtime.Source(), runtime.Warm())
		}
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.Write(made)
	default:
		made, err := os.ReadFile(blob)
		if err != nil {
			t.Fatal(err)
		}
		_ = json.NewEncoder(os.Stdout).Encode(restoreSeveral(t, made))
	}
	os.Exit(0)
}

// restoreSeveral times isolates restored from a blob beside one that stays alive, as a worker's anchor does.
func restoreSeveral(t *testing.T, blob []byte) []time.Duration {
	t.Helper()
	goruntime.LockOSThread()
	v8.Init(-1)
	config := v8.Config{
		Snapshot: v8.LoadSnapshot(blob), HeapBytes: spareHeapBytes, BufferBytes: spareBufferBytes,
		AllowEval: true, AllowWasm: true, Host: partsOnly{},
	}
	anchor, err := v8.New(config)
	if err != nil {
		t.Fatal(err)
	}
	times := make([]time.Duration, 50)
	for i := range times {
		begin := time.Now()
		iso, err := v8.New(config)
		times[i] = time.Since(begin)
		if err != nil {
			t.Fatal(err)
		}
		if err := iso.Close(); err != nil {
			t.Fatal(err)
		}
	}
	goruntime.KeepAlive(anchor)
	return times
}

// BenchmarkRestore prints what making an isolate and its context from the startup snapshot costs with the library and
// without, in turn, so that the noise of the machine falls on both, and the ratio of the two medians.
func BenchmarkRestore(b *testing.B) {
	libraries := []string{"full", "bare"}
	blobs := map[string]string{}
	for _, library := range libraries {
		blobs[library] = b.TempDir() + "/blob"
		if err := os.WriteFile(blobs[library], restoreChild(b, library, ""), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	times := map[string][]time.Duration{}
	for b.Loop() {
		for _, library := range libraries {
			var some []time.Duration
			if err := json.Unmarshal(restoreChild(b, library, blobs[library]), &some); err != nil {
				b.Fatal(err)
			}
			times[library] = append(times[library], some...)
		}
	}
	median := func(library string) float64 {
		slices.Sort(times[library])
		return float64(times[library][len(times[library])/2].Nanoseconds()) / 1e3
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median("full"), "µs-library")
	b.ReportMetric(median("bare"), "µs-bare")
	b.ReportMetric(median("full")/median("bare"), "ratio")
}

func restoreChild(b *testing.B, library, blob string) []byte {
	b.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestRestoreChild$")
	c.Env = append(os.Environ(), libraryVariable+"="+library, blobVariable+"="+blob)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		b.Fatal(err)
	}
	return out
}

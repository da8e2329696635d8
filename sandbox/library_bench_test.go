package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/sandbox/runtime"
	"github.com/executord/executord/sandbox/v8"
)

// A library with nothing in it: what it leaves is V8's own global.
const bareLibrary = `(native) => { const f = () => {}; return { begin: f, fire: f, settle: f, report: f, inspect: f }; }`

// jobVariable tells a child process of a benchmark what to do, and fileVariable with which snapshot. A process can live
// with one snapshot only, and should not go on after it made one.
const (
	jobVariable  = "EXECUTORD_BENCH_JOB"
	fileVariable = "EXECUTORD_BENCH_FILE"
)

var jobs = map[string]func() (any, error){
	"make bare":    func() (any, error) { return v8.MakeSnapshot(bareLibrary, "") },
	"make library": func() (any, error) { return v8.MakeSnapshot(runtime.Source(), runtime.Warm()) },
	"make file":    func() (any, error) { return MakeSnapshot() },
	"restore":      func() (any, error) { return restoreSeveral(os.Getenv(fileVariable)) },
	"touch":        func() (any, error) { return touchEach(os.Getenv(fileVariable)) },
}

// TestBenchmarkChild is not a test: it is what the benchmarks start.
func TestBenchmarkChild(t *testing.T) {
	job, ok := jobs[os.Getenv(jobVariable)]
	if !ok {
		t.Skip("started by benchmarks only")
	}
	goruntime.LockOSThread()
	v8.Init(-1)
	result, err := job()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		t.Fatal(err)
	}
	os.Exit(0)
}

// child does a job in a process of its own.
func child[T any](b *testing.B, job, file string) T {
	b.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestBenchmarkChild$")
	c.Env = append(os.Environ(), jobVariable+"="+job, fileVariable+"="+file)
	c.Stderr = os.Stderr
	out, err := c.Output()
	var result T
	if err == nil {
		err = json.Unmarshal(out, &result)
	}
	if err != nil {
		b.Fatal(err)
	}
	return result
}

// made returns the path of what a job made.
func made(b *testing.B, job string) string {
	b.Helper()
	file := b.TempDir() + "/file"
	if err := os.WriteFile(file, child[[]byte](b, job, ""), 0o600); err != nil {
		b.Fatal(err)
	}
	return file
}

// micros is the median in microseconds.
func micros(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/2].Nanoseconds()) / 1e3
}

// restoreSeveral times isolates restored from a blob beside one that stays alive, as a worker's anchor does.
func restoreSeveral(file string) ([]time.Duration, error) {
	blob, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	config := v8.Config{
		Snapshot: v8.LoadSnapshot(blob), HeapBytes: spareHeapBytes, BufferBytes: spareBufferBytes,
		AllowEval: true, AllowWasm: true, Host: partsOnly{},
	}
	anchor, err := v8.New(config)
	if err != nil {
		return nil, err
	}
	defer anchor.Close()
	times := make([]time.Duration, 50)
	for i := range times {
		begin := time.Now()
		iso, err := v8.New(config)
		times[i] = time.Since(begin)
		if err != nil {
			return nil, err
		}
		if err := iso.Close(); err != nil {
			return nil, err
		}
	}
	return times, nil
}

// BenchmarkRestore prints what making an isolate and its context from the startup snapshot costs with the library and
// without, in turn, so that the noise of the machine falls on both, and the ratio of the two medians.
func BenchmarkRestore(b *testing.B) {
	library, bare := made(b, "make library"), made(b, "make bare")
	var with, without []time.Duration
	for b.Loop() {
		with = append(with, child[[]time.Duration](b, "restore", library)...)
		without = append(without, child[[]time.Duration](b, "restore", bare)...)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(micros(with), "µs-library")
	b.ReportMetric(micros(without), "µs-bare")
	b.ReportMetric(micros(with)/micros(without), "ratio")
}

// touches has, for each part of the library, a program that is the first to touch it: the first read of one of its names,
// or the smallest use of a part that has none. A part that others load is touched through them: "urls" is what the first
// URL costs, "http" what a first fetch() has to load beside its own part, "subtle" the same for crypto.subtle.
var touches = map[string]string{
	"abort": "AbortSignal", "exception": "DOMException", "kinds": "ErrorEvent",
	"base64": "atob", "blob": "Blob", "broadcastchannel": "BroadcastChannel", "bytes": "new Uint8Array(1).toHex()", "eventsource": "EventSource", "filereader": "FileReader",
	"clone": "structuredClone", "compression": "CompressionStream", "console": "console.log({})",
	"crypto": "crypto", "encoding": "TextDecoder", "events": "Event", "fetch": "fetch", "formdata": "FormData", "http": "Request",
	"language": "Math.sumPrecise([1])", "messaging": "MessageChannel", "navigator": "navigator", "performance": "performance",
	"streams": "ReadableStream", "subtle": "SubtleCrypto", "url": "URL", "urlpattern": "URLPattern", "urls": `new URL("https://example.com/")`,
}

// touchEach times each program of touches in isolates of their own, less what an empty program takes there and then: the
// making of the isolate and its beginning are not in it.
func touchEach(file string) (map[string][]time.Duration, error) {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	content, err := mapSnapshot(fd)
	if err != nil {
		return nil, err
	}
	image, err := openSnapshot(content)
	if err != nil {
		return nil, err
	}
	parts := services{caches: image.caches, parts: map[string]v8.Part{}}
	snapshot := v8.MapSnapshot(image.blob)
	once := func(program string) (time.Duration, error) {
		shared := parts.begin()
		defer shared.end()
		iso, err := v8.New(v8.Config{
			Snapshot: snapshot, HeapBytes: spareHeapBytes, BufferBytes: spareBufferBytes, AllowEval: true, AllowWasm: true,
			Host: partsOnly{services: shared},
		})
		if err != nil {
			return 0, err
		}
		limits := v8.Limits{HeapBytes: 64 << 20, BufferBytes: 64 << 20, StackBytes: v8.DefaultStackBytes, Depth: protocol.MaxValueDepth, Nodes: protocol.MaxValueParts, MessageBytes: 1 << 20}
		if err := iso.Begin(`{"providers":[]}`, limits); err != nil {
			return 0, err
		}
		begin := time.Now()
		if err := iso.Run("touch.js", program, false, nil); err != nil {
			return 0, err
		}
		took := time.Since(begin)
		return took, iso.Close()
	}
	anchor, err := v8.New(v8.Config{Snapshot: snapshot, HeapBytes: 64 << 20, BufferBytes: 1 << 20, Host: partsOnly{services: parts}})
	if err != nil {
		return nil, err
	}
	defer anchor.Close()
	times := map[string][]time.Duration{}
	for range 10 {
		for part, program := range touches {
			empty, err := once("")
			if err != nil {
				return nil, err
			}
			full, err := once(program)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", part, err)
			}
			times[part] = append(times[part], full-empty)
		}
	}
	return times, nil
}

// BenchmarkFirstTouch prints what the first touch of each part of the library costs a program: reading its text from the
// code cache, and making its interfaces.
func BenchmarkFirstTouch(b *testing.B) {
	file := made(b, "make file")
	times := map[string][]time.Duration{}
	for b.Loop() {
		for part, some := range child[map[string][]time.Duration](b, "touch", file) {
			times[part] = append(times[part], some...)
		}
	}
	b.ReportMetric(0, "ns/op")
	for part, all := range times {
		b.ReportMetric(micros(all), "µs-"+part)
	}
}

// TestEveryPartIsTouched keeps the list of BenchmarkFirstTouch whole.
func TestEveryPartIsTouched(t *testing.T) {
	for _, part := range runtime.Parts() {
		inner := part == "idna" || part == "legacy" || part == "values" || part == "handles" // loaded by other parts, or by the codec
		if _, ok := touches[part]; !ok && !inner {
			t.Errorf("part %s is not in the list", part)
		}
	}
}

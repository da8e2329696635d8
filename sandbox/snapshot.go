package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	goruntime "runtime"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/sandbox/runtime"
	"github.com/executord/executord/sandbox/v8"
)

// A snapshot file is this magic, the tag of V8's version and flags, the hash of the library, the hash of the rest, and
// the rest: the blob, the code cache of the analyzer and then, for each part of the library in order, its code cache, each
// behind a 64-bit length and filled up to eight bytes, for V8 reads them where they are. V8 ends the process when it is
// given a blob of another build, so everything is checked before.
var magic = []byte("executord-snapshot-0003\n")

const (
	headerBytes  = 24 + 8 + sha256.Size + sha256.Size
	sectionAlign = 8
)

// image is what a snapshot file holds.
type image struct {
	blob     []byte
	analyzer []byte            // code cache
	caches   map[string][]byte // by part
}

// MakeSnapshot builds the startup snapshot file. The process should exit afterwards.
func MakeSnapshot() ([]byte, error) {
	blob, err := v8.MakeSnapshot(runtime.Source(), runtime.Warm())
	if err != nil {
		return nil, fmt.Errorf("cannot make the startup snapshot: %w", err)
	}
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	snapshot := v8.LoadSnapshot(blob)
	defer snapshot.Close()
	analyzer, err := makeAnalyzerCache(snapshot)
	if err != nil {
		return nil, fmt.Errorf("cannot make the code cache of the analyzer: %w", err)
	}
	rest := appendSection(appendSection(nil, blob), analyzer)
	for _, name := range runtime.Parts() {
		cache, err := makeCache(snapshot, name)
		if err != nil {
			return nil, fmt.Errorf("cannot make the code cache of part %s: %w", name, err)
		}
		rest = appendSection(rest, cache)
	}
	return append(header(rest), rest...), nil
}

func appendSection(dst, section []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(section)))
	dst = append(dst, section...)
	return append(dst, make([]byte, padding(len(section)))...)
}

func padding(n int) int { return -n & (sectionAlign - 1) }

// makeAnalyzerCache reads the samples and takes the code that V8 compiled for them.
func makeAnalyzerCache(snapshot *v8.Snapshot) ([]byte, error) {
	iso, err := newAnalyzer(snapshot, nil)
	if err != nil {
		return nil, err
	}
	defer iso.Close()
	for _, sample := range analyzerSamples {
		if _, err := iso.Call(sample, string(protocol.FormAuto)); err != nil {
			return nil, err
		}
	}
	cache, err := iso.LibraryCache()
	if err == nil && len(cache) == 0 {
		err = errors.New("there is none")
	}
	return cache, err
}

// newAnalyzer makes the isolate that reads entries.
func newAnalyzer(snapshot *v8.Snapshot, cache []byte) (*v8.Isolate, error) {
	return v8.New(v8.Config{
		Snapshot: snapshot, Library: runtime.AnalyzerSource(), Plain: true, Cache: cache, AllowEval: true, HeapBytes: analyzerHeap, BufferBytes: 1 << 20,
	})
}

// analyzerSamples have in them what programs do.
var analyzerSamples = []string{
	"async () => { const { a, b = 1, ...c } = await tools.call({ id: `x${1}` }, [1, ...d]); for (const x of a) { if (x?.y ?? z) continue; } return { a, [b]: c }; }",
	"import x from 'y';\nconst f = async (v) => v.map((e) => e * 2).filter(Boolean);\ntry { await f([1]); } catch (e) { console.log(e.message); }\nclass A extends B { #p = 1; get q() { return this.#p; } }\nf(/a+b/g, 1n)",
	"export default function (input) { switch (input) { case 1: return new Map([[1, 2]]); default: throw new Error('no'); } }",
}

// makeCache uses a part in an isolate of its own and takes the code that V8 compiled for it.
func makeCache(snapshot *v8.Snapshot, name string) ([]byte, error) {
	shared := services{}.begin()
	defer shared.end()
	iso, err := v8.New(v8.Config{Snapshot: snapshot, HeapBytes: 256 << 20, BufferBytes: 64 << 20, AllowEval: true, Host: partsOnly{services: shared}})
	if err != nil {
		return nil, err
	}
	defer iso.Close()
	if err := iso.Begin(`{"providers":[]}`, v8.Limits{HeapBytes: 256 << 20, BufferBytes: 64 << 20, StackBytes: v8.DefaultStackBytes, Depth: protocol.MaxValueDepth, Nodes: protocol.MaxValueParts, MessageBytes: 1 << 20}); err != nil {
		return nil, err
	}
	if err := iso.Run("warm.js", runtime.PartWarm(name), false, nil); err != nil {
		return nil, err
	}
	if _, err := iso.Drain(); err != nil {
		return nil, err
	}
	if name == codecPart {
		if err := warmCodec(iso); err != nil {
			return nil, err
		}
	}
	return iso.PartCache(name)
}

// codecPart is the part that the value codec wakes, which no name of a program's does.
const codecPart = "values"

func warmCodec(iso *v8.Isolate) error {
	const all = `[new URL("https://example.com/"), new Blob(["warm"]), new Request("https://example.com/"), new Response("warm")]`
	text, err := iso.RoundTrip(all, true, 1<<20)
	if err == nil {
		_, err = iso.RoundTrip(string(text), false, 1<<20)
	}
	return err
}

// partsOnly is the host of an isolate that only warms parts.
type partsOnly struct {
	v8.Host
	services
}

func (partsOnly) Log(string, string)                                {}
func (partsOnly) TimerStart(float64, bool) uint32                   { return 1 }
func (partsOnly) TimerStop(uint32)                                  {}
func (partsOnly) MapPosition(_ string, line, column int) (int, int) { return line, column }
func (p partsOnly) Op(args []any) (any, error)                      { return p.services.Op(args) }
func (p partsOnly) Part(name string) (v8.Part, bool)                { return p.services.Part(name) }

func header(rest []byte) []byte {
	library := sha256.Sum256([]byte(runtime.Hash()))
	sum := sha256.Sum256(rest)
	h := append([]byte(nil), magic...)
	h = binary.LittleEndian.AppendUint64(h, v8.VersionTag())
	h = append(h, library[:]...)
	return append(h, sum[:]...)
}

// openSnapshot checks a snapshot file against this process.
func openSnapshot(file []byte) (*image, error) {
	if len(file) <= headerBytes || !bytes.HasPrefix(file, magic) {
		return nil, errors.New("cannot use the startup snapshot: it is not one")
	}
	rest := file[headerBytes:]
	if !bytes.Equal(file[:headerBytes], header(rest)) {
		return nil, errors.New("cannot use the startup snapshot: it was made by another version, or is damaged")
	}
	m := &image{caches: map[string][]byte{}}
	m.blob, rest = cutSection(rest)
	m.analyzer, rest = cutSection(rest)
	for _, name := range runtime.Parts() {
		m.caches[name], rest = cutSection(rest)
	}
	return m, nil
}

// cutSection takes the first section; a damaged length was found out by the hash.
func cutSection(b []byte) (section, rest []byte) {
	if len(b) < 8 {
		return nil, nil
	}
	n := binary.LittleEndian.Uint64(b)
	b = b[8:]
	if n > uint64(len(b)) || uint64(padding(int(n))) > uint64(len(b))-n {
		return nil, nil
	}
	return b[:n:n], b[int(n)+padding(int(n)):]
}

package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/executord/executord/sandbox/runtime"
	"github.com/executord/executord/sandbox/v8"
)

// A snapshot file is this magic, the tag of V8's version and flags, the hash of the library, the hash of the blob, and
// the blob. V8 ends the process when it is given a blob of another build, so it is checked before.
var magic = []byte("executord-snapshot-1\n")

const headerBytes = 21 + 8 + sha256.Size + sha256.Size

// MakeSnapshot builds the startup snapshot, with its header. The process should exit afterwards.
func MakeSnapshot() ([]byte, error) {
	blob, err := v8.MakeSnapshot(runtime.Source(), runtime.Warm())
	if err != nil {
		return nil, fmt.Errorf("cannot make the startup snapshot: %w", err)
	}
	return append(header(blob), blob...), nil
}

func header(blob []byte) []byte {
	library := sha256.Sum256([]byte(runtime.Source() + "\x00" + runtime.Warm()))
	sum := sha256.Sum256(blob)
	h := append([]byte(nil), magic...)
	h = binary.LittleEndian.AppendUint64(h, v8.VersionTag())
	h = append(h, library[:]...)
	return append(h, sum[:]...)
}

// openSnapshot checks a snapshot file against this process and returns its blob.
func openSnapshot(file []byte) ([]byte, error) {
	if len(file) <= headerBytes || !bytes.HasPrefix(file, magic) {
		return nil, errors.New("cannot use the startup snapshot: it is not one")
	}
	blob := file[headerBytes:]
	if !bytes.Equal(file[:headerBytes], header(blob)) {
		return nil, errors.New("cannot use the startup snapshot: it was made by another version, or is damaged")
	}
	return blob, nil
}

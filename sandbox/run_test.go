package sandbox

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// What cannot be mapped is told, and not taken for a start without a snapshot.
func TestSnapshotIsAFile(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	fd, err := unix.Dup(int(r.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if file, err := mapSnapshot(fd); err == nil {
		t.Errorf("a pipe was taken for a snapshot of %d bytes", len(file))
	}
}

package nowait

import (
	"bytes"
	"errors"
	"io"
	"net"
	"path/filepath"
	"syscall"
	"testing"
)

func TestWrite(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	w := NewWriter(c)
	sent := bytes.Repeat([]byte("x"), 16<<20)
	n, err := w.Write(sent)
	if n == 0 || n == len(sent) || err != nil {
		t.Fatalf("the kernel took %d bytes, %v", n, err)
	}
	for { // what is left of its room
		more, err := w.Write(sent)
		if err != nil {
			t.Fatal(err)
		}
		if more == 0 {
			break
		}
		n += more
	}
	if _, err := io.ReadFull(peer, make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	if n, err := w.Write([]byte("y")); n != 1 || err != nil {
		t.Errorf("with room again: %d, %v", n, err)
	}
	peer.Close()
	if _, err := w.Write([]byte("z")); !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("without a peer: %v", err)
	}
}

func TestWithoutADescriptor(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if NewWriter(a) != nil {
		t.Error("a pipe in memory has a descriptor")
	}
}

package daemon

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/executord/executord/daemon/settings"
)

func socketPath(t *testing.T) string { return filepath.Join(t.TempDir(), "s") }

func TestUnixSocketIsRemovedAndReplaced(t *testing.T) {
	path := socketPath(t)
	l, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != fs.ModeSocket|socketMode {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := listenUnix(path); err == nil || !strings.Contains(err.Error(), "another process listens") {
		t.Errorf("a socket in use was taken over: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	path := socketPath(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	_ = dead.Close()
	l, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

func TestOtherFilesAreLeftAlone(t *testing.T) {
	path := socketPath(t)
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listenUnix(path); err == nil {
		t.Error("a file was replaced")
	}
	if text, err := os.ReadFile(path); string(text) != "mine" {
		t.Errorf("the file has %q, %v", text, err)
	}
	link := socketPath(t)
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := listenUnix(link); err == nil {
		t.Error("a link was followed")
	}
}

// The socket of a successor at the same path survives our end.
func TestClosingLeavesASuccessorsSocket(t *testing.T) {
	path := socketPath(t)
	l, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	successor, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	defer successor.Close()
	_ = l.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the successor's socket is gone: %v", err)
	}
}

// Many that start at once: one gets the socket, the others are told.
func TestOneOfManyGetsTheSocket(t *testing.T) {
	path := socketPath(t)
	var mu sync.Mutex
	var got []net.Listener
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if l, err := listenUnix(path); err == nil {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, l)
			}
		})
	}
	wg.Wait()
	if len(got) != 1 {
		t.Fatalf("%d listeners", len(got))
	}
	if _, err := net.Dial("unix", path); err != nil {
		t.Error(err)
	}
	closeAll(got)
}

// U1: from its first moment on, the socket has its mode: no other user can connect while the service starts.
func TestU1ModeHoldsFromTheFirstMoment(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := t.TempDir()
	stop, watched := make(chan struct{}), make(chan fs.FileMode, 1)
	go func() {
		var worst fs.FileMode
		defer func() { watched <- worst }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			list, _ := os.ReadDir(dir)
			for _, e := range list {
				if info, err := e.Info(); err == nil && info.Mode().Type() == fs.ModeSocket {
					worst |= info.Mode().Perm()
				}
			}
		}
	}()
	for range 200 {
		l, err := listenUnix(filepath.Join(dir, "s"))
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
	}
	close(stop)
	if worst := <-watched; worst&^socketMode != 0 {
		t.Errorf("the socket was seen with mode %v", worst)
	}
}

// A strict mask of the process takes nothing from the socket's group, and the mask itself is left alone.
func TestSocketModeUnderAStrictMask(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	path := socketPath(t)
	l, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != socketMode {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if mask := syscall.Umask(0o077); mask != 0o077 {
		t.Errorf("the mask became %o", mask)
	}
}

func TestAddresses(t *testing.T) {
	for _, bad := range []string{"", "unix:relative", "tcp://", "tcp://127.0.0.1", "tcp://example.com:80", "http://127.0.0.1:80", "127.0.0.1:80", "tcp://127.0.0.1:99999"} {
		if a, err := settings.ParseAddress(bad); err == nil {
			t.Errorf("%q was taken for %s", bad, a)
		}
	}
	for _, good := range []string{"tcp://127.0.0.1:0", "tcp://localhost:0", "tcp://[::1]:0"} {
		a, err := settings.ParseAddress(good)
		if err != nil {
			t.Errorf("%q: %v", good, err)
			continue
		}
		l, err := listen(a)
		if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
			continue // no IPv6 here
		}
		if err != nil {
			t.Errorf("%q: %v", good, err)
			continue
		}
		_ = l.Close()
	}
	for _, same := range []string{"unix:/run/s", "unix:///run/s"} {
		if a, err := settings.ParseAddress(same); err != nil || a.String() != "/run/s" {
			t.Errorf("%q: %v, %v", same, a, err)
		}
	}
}

func TestListenAllOrNone(t *testing.T) {
	path := socketPath(t)
	addresses, err := parseAddresses([]string{"unix:" + path, "unix:" + filepath.Join(path, "below")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listenAll(addresses); err == nil {
		t.Error("one bad address of two was taken")
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the good address is still open")
	}
	if _, err := parseAddresses(nil); err == nil {
		t.Error("no address was taken")
	}
}

// The socket belongs to the first group whose members may call, who could not reach it otherwise.
func TestSocketsBelongToCallers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a socket to any group")
	}
	s := start(t, []string{"--allow-group=4242,4343"})
	info, err := os.Lstat(s.socket)
	if err != nil {
		t.Fatal(err)
	}
	if gid := info.Sys().(*syscall.Stat_t).Gid; gid != 4242 || info.Mode().Perm() != socketMode {
		t.Errorf("group %d, mode %v", gid, info.Mode())
	}
}

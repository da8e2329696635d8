package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/executord/executord/daemon/settings"
)

// socketMode is that of unix sockets: the service's user and group may connect.
const socketMode = 0o660

// parseAddresses reads the addresses to listen on.
func parseAddresses(texts []string) ([]net.Addr, error) {
	if len(texts) == 0 {
		return nil, errors.New("cannot listen on no address")
	}
	var addresses []net.Addr
	for _, text := range texts {
		a, err := settings.ParseAddress(text)
		if err != nil {
			return nil, fmt.Errorf("cannot listen on %s: %w", text, err)
		}
		addresses = append(addresses, a)
	}
	return addresses, nil
}

// open opens what is to be listened on, and tells where.
func (d *Daemon) open() ([]net.Listener, error) {
	ls := d.listeners
	if len(ls) == 0 {
		var err error
		if ls, err = listenAll(d.listen); err != nil {
			return nil, err
		}
		d.give(ls, d.server.Policy.GIDs, "callers")
	}
	var addresses []net.Addr
	for _, l := range ls {
		a := l.Addr()
		addresses = append(addresses, a)
		tcp, is := a.(*net.TCPAddr)
		d.log.Info("listening", "address", a.String(), "tls", is && d.server.Certificate != nil)
		if is && !tcp.IP.IsLoopback() && d.server.Certificate == nil {
			d.log.Warn("TCP is not encrypted: tokens and programs can be read on their way", "address", a.String())
		}
	}
	d.mu.Lock()
	d.addresses = addresses
	d.mu.Unlock()
	return ls, nil
}

// listenAll opens all addresses, or none.
func listenAll(addresses []net.Addr) (ls []net.Listener, err error) {
	for _, a := range addresses {
		l, err := listen(a)
		if err != nil {
			closeAll(ls)
			return nil, fmt.Errorf("cannot listen on %s: %w", a, err)
		}
		ls = append(ls, l)
	}
	return ls, nil
}

func closeAll(ls []net.Listener) {
	for _, l := range ls {
		_ = l.Close()
	}
}

// listen opens an address that settings.ParseAddress made.
func listen(address net.Addr) (net.Listener, error) {
	if tcp, ok := address.(*net.TCPAddr); ok {
		return net.ListenTCP("tcp", tcp)
	}
	return listenUnix(address.String())
}

// listenUnix binds a socket that has its mode from its first moment on. A socket file that nobody listens on any more
// is replaced; a lock on the directory keeps two services that start at once from replacing each other's.
func listenUnix(path string) (net.Listener, error) {
	unlock, err := lockDirectory(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := bindUnix(path)
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Perm()&^socketMode != 0 {
		err = fmt.Errorf("this kernel made the socket with mode %s, open to others", info.Mode().Perm())
	}
	if err == nil { // what the mask of the process took away
		err = os.Chmod(path, socketMode)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close(), os.Remove(path))
	}
	return &ownedSocket{UnixListener: l, path: path, info: info}, nil
}

// bindUnix makes the file of the socket. Linux takes its mode from that of the socket itself, less the mask of the process
// (unix_bind in net/unix/af_unix.c, seen in 6.18): so nothing of the process has to be changed for it, and several
// services in one process do not get in each other's way.
func bindUnix(path string) (*net.UnixListener, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failure error
		err := c.Control(func(fd uintptr) { failure = unix.Fchmod(int(fd), socketMode) })
		return errors.Join(err, failure)
	}}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	return l.(*net.UnixListener), nil
}

// lockDirectory waits a moment for another service that is starting.
func lockDirectory(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for range 40 {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
		time.Sleep(50 * time.Millisecond) // flock has no deadline of its own
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", dir, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// removeStale removes a socket that refuses connections, and nothing else.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there and is no socket", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	switch {
	case err == nil:
		_ = c.Close()
		return errors.New("another process listens there")
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	}
	return fmt.Errorf("cannot tell whether another process listens there: %w", err)
}

// ownedSocket removes its file when it is closed, unless the file is another one by then.
type ownedSocket struct {
	*net.UnixListener
	path string
	info fs.FileInfo
}

func (s *ownedSocket) Close() error {
	err := s.UnixListener.Close()
	if now, statErr := os.Lstat(s.path); statErr == nil && os.SameFile(now, s.info) {
		err = errors.Join(err, os.Remove(s.path))
	}
	return err
}

package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// maxSnapshot bounds the startup snapshot.
const maxSnapshot = 16 << 20

// snapshotMaker gives the startup snapshot that the workers of a launcher begin with.
type snapshotMaker func(l *Child, ctx context.Context) ([]byte, error)

// makeSnapshot returns the startup snapshot as a sealed memory file.
func (l *Child) makeSnapshot(ctx context.Context, from snapshotMaker) (*os.File, error) {
	blob, err := from(l, ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot make snapshot: %w", err)
	}
	f, err := SealedFile("executor-snapshot", blob)
	if err != nil {
		return nil, fmt.Errorf("cannot make snapshot: %w", err)
	}
	return f, nil
}

// snapshotBytes runs the worker binary once to make it.
func (l *Child) snapshotBytes(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.config.SnapshotTimeout, fmt.Errorf("not done within %s", l.config.SnapshotTimeout))
	defer cancel()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	c, err := l.run(ctx, append([]string{"executor-worker", "-make-snapshot"}, l.config.Args...), w)
	w.Close()
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() {
		c.Kill()
		_ = r.SetReadDeadline(time.Now().Add(drainGrace)) // what it started may hold the pipe
	})
	defer stop()
	blob, err := io.ReadAll(io.LimitReader(r, maxSnapshot+1))
	if err != nil || len(blob) > maxSnapshot {
		c.Kill()
	}
	<-c.Exited()
	if err := snapshotFault(ctx, c, blob, err); err != nil {
		return nil, err
	}
	return blob, nil
}

// snapshotFault says what is wrong with how the process ended or what it wrote.
func snapshotFault(ctx context.Context, c *child, blob []byte, err error) error {
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case len(blob) > maxSnapshot:
		err = fmt.Errorf("it is over %d bytes", maxSnapshot)
	case err != nil:
	case c.exit.Code != 0 || c.exit.Signal != 0:
		err = errors.New("the process failed")
	case len(blob) == 0:
		err = errors.New("the process wrote nothing")
	default:
		return nil
	}
	return fmt.Errorf("%w (%s; stderr: %q)%s", err, c.exit, c.Stderr(), inheritedBan())
}

// inheritedBan explains a failure of a child that may make no memory executable, as its parent may not: V8 compiles.
func inheritedBan() string {
	if ban, err := unix.PrctlRetInt(unix.PR_GET_MDWE, 0, 0, 0, 0); err == nil && ban&unix.PR_MDWE_REFUSE_EXEC_GAIN != 0 && ban&unix.PR_MDWE_NO_INHERIT == 0 {
		return "; workers cannot be children of a process that is denied memory both writable and executable (MemoryDenyWriteExecute)"
	}
	return ""
}

// SealedFile makes a memory file that nobody can change, the holder of a descriptor included.
func SealedFile(name string, data []byte) (*os.File, error) {
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_NOEXEC_SEAL)
	if err == unix.EINVAL { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.Write(data); err != nil {
		f.Close()
		return nil, err
	}
	seals := unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if err := addSeals(fd, seals); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// addSeals tries again for a while where the kernel says that the file is busy: something in it, as its moving of pages,
// holds one for a moment, which could be a writer.
func addSeals(fd, seals int) (err error) {
	for range 20 {
		if _, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != unix.EBUSY {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

package pool

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// inside is a Launcher whose workers are goroutines of the test, for tests that are about the pool alone.
type inside struct {
	starts atomic.Int64
	fail   atomic.Bool // starts fail
	mode   string      // of the fakes; empty means well-behaved
	alive  sync.WaitGroup
}

func (l *inside) Start(context.Context) (Process, error) {
	l.starts.Add(1)
	if l.fail.Load() {
		return nil, errors.New("no more processes")
	}
	ours, file, err := socketPair()
	if err != nil {
		return nil, err
	}
	theirs, err := net.FileConn(file)
	file.Close()
	if err != nil {
		return nil, err
	}
	p := &insideProcess{conn: ours, far: theirs, exited: make(chan struct{})}
	mode := l.mode
	if mode == "" {
		mode = "inside"
	}
	l.alive.Go(func() {
		defer p.end(ExitState{Code: -1})
		runFake(theirs, mode, func(status int) { p.end(ExitState{Code: status}) })
	})
	return p, nil
}

func (l *inside) Close() error {
	l.alive.Wait()
	return nil
}

type insideProcess struct {
	conn, far net.Conn
	once      sync.Once
	exit      ExitState
	exited    chan struct{}
}

func (p *insideProcess) end(s ExitState) {
	p.once.Do(func() {
		p.exit = s
		p.far.Close()
		close(p.exited)
	})
}

func (p *insideProcess) Conn() net.Conn                        { return p.conn }
func (p *insideProcess) Isolation() (layers, missing []string) { return nil, nil }
func (p *insideProcess) PID() int                              { return os.Getpid() }
func (p *insideProcess) Kill()                                 { p.end(ExitState{Signal: 9}) }
func (p *insideProcess) Exited() <-chan struct{}               { return p.exited }
func (p *insideProcess) Exit() ExitState                       { return p.exit }
func (p *insideProcess) Stderr() string                        { return "" }

// dial is a meter that a test sets.
type dial struct {
	cpuTime  atomic.Int64
	isolate  atomic.Int64 // CPU time of its thread
	resident atomic.Int64
}

func (d *dial) cpu() (time.Duration, error) { return time.Duration(d.cpuTime.Load()), nil }
func (d *dial) thread() (time.Duration, error) {
	return time.Duration(d.isolate.Load()), nil
}
func (d *dial) rss() (int64, error) { return d.resident.Load(), nil }
func (d *dial) close()              {}

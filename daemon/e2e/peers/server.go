package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// readyTime is how long a server may take to begin.
const readyTime = 30 * time.Second

// server is a process that is asked over a socket.
type server struct {
	cmd     *exec.Cmd
	running context.Context // ends with the process
	said    bytes.Buffer    // to be read when running ended
}

// spawn starts a server; it is told to end with ctx.
func spawn(ctx context.Context, program string, args ...string) (*server, error) {
	s := &server{cmd: exec.CommandContext(ctx, program, args...)}
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.Stdout, s.cmd.Stderr = &s.said, &s.said
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	var ended context.CancelFunc
	s.running, ended = context.WithCancel(context.Background())
	go func() {
		_ = s.cmd.Wait()
		ended()
	}()
	return s, nil
}

// ready tries to ask until it works. When it never does, the server is ended and its words are in the error.
func (s *server) ready(ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(s.running, readyTime)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			s.end()
			return fmt.Errorf("cannot reach %s: %w\n%s", filepath.Base(s.cmd.Path), err, bytes.TrimSpace(s.said.Bytes()))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *server) pid() int { return s.cmd.Process.Pid }

// end ends the server and waits for it.
func (s *server) end() {
	_ = s.cmd.Cancel()
	<-s.running.Done()
}

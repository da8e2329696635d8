// Package testlog gives tests a log that they read while it is written, as that of a service or of a process. Only tests
// import it.
package testlog

import (
	"bytes"
	"sync"
)

// Buffer is that log; the zero value is empty. All methods may be called by several goroutines at once.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends p. It does not fail.
func (l *Buffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String is all that was written so far.
func (l *Buffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

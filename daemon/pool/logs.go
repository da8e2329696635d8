package pool

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// logbook keeps the console lines of one execution up to its bounds, counts the rest, and reads them out to OnLog on
// a goroutine of its own, so that a slow listener never holds up the worker's channel.
type logbook struct {
	maxLines, maxBytes int64
	listen             func(protocol.Log) // may be nil
	read               sync.WaitGroup     // the goroutine that reads out

	mu     sync.Mutex
	news   sync.Cond // lines or closed changed
	lines  []protocol.Log
	bytes  int64
	lost   protocol.Truncated
	closed bool
}

func newLogbook(l protocol.Limits, listen func(protocol.Log)) *logbook {
	b := &logbook{maxLines: l.LogLines, maxBytes: l.LogBytes, listen: listen, lines: []protocol.Log{}}
	b.news.L = &b.mu
	if listen != nil {
		b.read.Go(b.readOut)
	}
	return b
}

// levels are those that a worker may use.
var levels = map[protocol.Level]bool{
	protocol.LevelDebug: true, protocol.LevelInfo: true, protocol.LevelLog: true, protocol.LevelWarn: true, protocol.LevelError: true,
}

// add keeps the first lines that fit. Once one did not, all that follow are counted only.
func (b *logbook) add(l worker.Log) error {
	level := protocol.Level(l.Level)
	if !levels[level] {
		return violationf("a log line of an unknown level")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n := int64(len(l.Text))
	if b.lost.Lines > 0 || int64(len(b.lines)) >= b.maxLines || b.bytes+n > b.maxBytes {
		b.lost.Lines++
		b.lost.Bytes += n
		return nil
	}
	b.bytes += n
	b.lines = append(b.lines, protocol.Log{Level: level, Time: ms(l.Time), Text: l.Text})
	b.news.Signal()
	return nil
}

// close ends the book with a marker if anything is missing, lines and bytes being what the worker itself left out, and
// returns all lines. at is the time of the marker. It does not wait for the reader.
func (b *logbook) close(at time.Duration, lines, bytes uint64) []protocol.Log {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lost.Lines = saturate(b.lost.Lines, lines)
	b.lost.Bytes = saturate(b.lost.Bytes, bytes)
	if b.lost.Lines > 0 {
		lost := b.lost
		text := fmt.Sprintf("%d more log lines with %d bytes were left out", lost.Lines, lost.Bytes)
		b.lines = append(b.lines, protocol.Log{Level: protocol.LevelWarn, Time: ms(at), Text: text, Truncated: &lost})
	}
	b.closed = true
	b.news.Signal()
	return b.lines
}

// saturate adds up to what every JSON reader keeps exactly.
func saturate(a int64, b uint64) int64 {
	return min(a+int64(min(b, math.MaxInt64/2)), protocol.MaxLimit)
}

func (b *logbook) readOut() {
	for next := 0; ; {
		b.mu.Lock()
		for next == len(b.lines) && !b.closed {
			b.news.Wait()
		}
		fresh := b.lines[next:]
		b.mu.Unlock()
		if len(fresh) == 0 {
			return
		}
		next += len(fresh)
		for _, l := range fresh {
			b.listen(l)
		}
	}
}

// ms is d as the protocol carries times.
func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

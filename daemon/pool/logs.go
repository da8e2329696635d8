package pool

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// logbook keeps the console lines of one execution: all of them while they are within its bounds, else the first and the
// last with a marker in between. It reads them out to OnLog on a goroutine of its own, so that a slow listener never
// holds up the worker's channel: as they come while they are within the bounds; what is kept of the others follows at
// the end, after a marker of its own.
type logbook struct {
	listen func(protocol.Log) // may be nil
	read   sync.WaitGroup     // the goroutine that reads out

	mu     sync.Mutex
	lines  ends[numbered]
	count  int64 // lines that came
	closed bool

	news       sync.Cond // stream or closed changed
	stream     []protocol.Log
	streamed   protocol.Truncated // what was given to stream
	cut        bool               // the bounds are passed: no more is given to it before the end
	untold     protocol.Truncated // what came after that
	untoldFrom int64              // number of the first such line
}

// numbered is a line with its number, from 1.
type numbered struct {
	protocol.Log
	number int64
}

func newLogbook(l protocol.Limits, listen func(protocol.Log)) *logbook {
	b := &logbook{
		listen: listen,
		lines: ends[numbered]{
			maxItems: l.LogLines, maxBytes: l.LogBytes, size: func(n numbered) int64 { return int64(len(n.Text)) },
		},
	}
	b.news.L = &b.mu
	return b
}

// open starts the reader.
func (b *logbook) open() {
	if b.listen != nil {
		b.read.Go(b.readOut)
	}
}

// levels are those that a worker may use.
var levels = map[protocol.Level]bool{
	protocol.LevelDebug: true, protocol.LevelInfo: true, protocol.LevelLog: true, protocol.LevelWarn: true, protocol.LevelError: true,
}

// add takes one line, and what the worker itself left out before it.
func (b *logbook) add(l worker.Log) error {
	level := protocol.Level(l.Level)
	if !levels[level] {
		return violationf("a log line of an unknown level")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.SkippedLines > 0 || l.SkippedBytes > 0 {
		b.lose(l.SkippedLines, l.SkippedBytes)
	}
	if n := int64(len(l.Text)); n > b.lines.room() {
		l.Text = Clip(l.Text, int(b.lines.room()))
		b.lose(0, uint64(n-int64(len(l.Text))))
	}
	b.count++
	line := numbered{protocol.Log{Level: level, Time: ms(l.Time), Text: l.Text}, b.count}
	b.lines.add(line)
	b.tell(line)
	return nil
}

func (b *logbook) lose(lines, bytes uint64) {
	b.lines.lose(lines, bytes)
	b.untell(b.count + 1)
	b.untold.Lines, b.untold.Bytes = saturate(b.untold.Lines, lines), saturate(b.untold.Bytes, bytes)
}

// tell gives a line to the stream while all are within the bounds.
func (b *logbook) tell(l numbered) {
	n := int64(len(l.Text))
	if b.streamed.Lines >= b.lines.maxItems || b.streamed.Bytes+n > b.lines.maxBytes {
		b.untell(l.number)
	}
	if b.cut {
		b.untold.Lines, b.untold.Bytes = b.untold.Lines+1, b.untold.Bytes+n
		return
	}
	b.streamed.Lines++
	b.streamed.Bytes += n
	b.say(l.Log)
}

// untell ends the stream of lines as they come, with the line of that number as the first that it is not told of.
func (b *logbook) untell(first int64) {
	if !b.cut {
		b.cut, b.untoldFrom = true, first
	}
}

func (b *logbook) say(l protocol.Log) {
	if b.listen != nil {
		b.stream = append(b.stream, l)
		b.news.Signal()
	}
}

// close ends the book and returns what is kept. at is the time of a marker behind which nothing stands. It does not wait
// for the reader.
func (b *logbook) close(at time.Duration) []protocol.Log {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sayRest(at)
	kept := b.lines.list(func(lost protocol.Truncated) numbered { return numbered{Log: marker(lost, b.gapTime(at))} })
	lines := make([]protocol.Log, len(kept))
	for i, l := range kept {
		lines[i] = l.Log
	}
	b.closed = true
	b.news.Signal()
	return lines
}

// last are copies of the last lines so far, within the bounds of what is kept.
func (b *logbook) last() []protocol.Log {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := b.lines.tail
	if len(lines) < keptLines {
		lines = slices.Concat(b.lines.head, lines)
	}
	lines = lines[max(0, len(lines)-keptLines):]
	text := make([]protocol.Log, len(lines))
	for i, l := range lines {
		text[i] = l.Log
	}
	return lastLines(text)
}

// truncated names the bounds that lines were left out for.
func (b *logbook) truncated() (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.lines.any() {
		return nil
	}
	if int64(len(b.lines.head)+len(b.lines.tail)) >= b.lines.maxItems {
		return []string{"logLines"}
	}
	return []string{"logBytes"}
}

// gapTime is when the first line after the marker was printed.
func (b *logbook) gapTime(at time.Duration) float64 {
	if len(b.lines.tail) > 0 {
		return b.lines.tail[0].Time
	}
	return ms(at)
}

// sayRest gives the stream what is kept of the lines that it was not told of.
func (b *logbook) sayRest(at time.Duration) {
	if !b.cut || b.listen == nil {
		return
	}
	rest := b.lines.tail
	for len(rest) > 0 && rest[0].number < b.untoldFrom {
		rest = rest[1:]
	}
	lost := b.untold
	for _, l := range rest {
		lost.Lines--
		lost.Bytes -= int64(len(l.Text))
	}
	if lost != (protocol.Truncated{}) {
		b.say(marker(lost, b.gapTime(at)))
	}
	for _, l := range rest {
		b.say(l.Log)
	}
}

// marker stands where lines were left out.
func marker(lost protocol.Truncated, at float64) protocol.Log {
	text := fmt.Sprintf("%d log lines with %d bytes were left out here", lost.Lines, lost.Bytes)
	return protocol.Log{Level: protocol.LevelWarn, Time: at, Text: text, Truncated: &lost}
}

// saturate adds up to what every JSON reader keeps exactly.
func saturate(a int64, b uint64) int64 {
	return min(a+int64(min(b, math.MaxInt64/2)), protocol.MaxLimit)
}

func (b *logbook) readOut() {
	for {
		b.mu.Lock()
		for len(b.stream) == 0 && !b.closed {
			b.news.Wait()
		}
		fresh := b.stream
		b.stream = nil
		b.mu.Unlock()
		if len(fresh) == 0 {
			return
		}
		for _, l := range fresh {
			b.listen(l)
		}
	}
}

// ms is d as the protocol carries times.
func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

package sandbox

import (
	"sync"
	"time"
	"unicode/utf8"

	"github.com/executord/executord/ipc/worker"
)

// console sends the lines that a program prints. Within the limits on logs each leaves as it is printed. After that only
// the newest are kept, up to half of the limits, and leave in batches worker.LogInterval apart, so that a program that
// prints without end does not keep the parent busy, and the parent still has the last lines when the process is killed.
// Any goroutine may use it.
type console struct {
	execution          uint64
	send               func(worker.Message) error
	maxLines, maxBytes int64

	mu           sync.Mutex
	lines, bytes int64        // that left within the limits
	over         bool         // the limits are passed
	held         []worker.Log // wait for the next batch
	heldBytes    int64
	skipped      skipped   // before the first of held, or in it
	last         time.Time // of the last batch
	timer        *time.Timer
}

// skipped counts what is not sent.
type skipped struct{ lines, bytes uint64 }

func newConsole(execution uint64, l worker.Limits, send func(worker.Message) error) *console {
	return &console{execution: execution, send: send, maxLines: l.LogLines, maxBytes: l.LogBytes}
}

// half is how much of a limit the newest lines may take once it was passed.
func half(limit int64) int64 { return max(1, limit/2) }

// print takes one line, at being its time since the execution began.
func (c *console) print(level, text string, at time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	line, n := worker.Log{ID: c.execution, Level: level, Time: at, Text: text}, int64(len(text))
	if !c.over && c.lines < c.maxLines && c.bytes+n <= c.maxBytes {
		c.lines++
		c.bytes += n
		_ = c.send(line)
		return
	}
	c.over = true
	c.hold(line)
	switch wait := worker.LogInterval - time.Since(c.last); {
	case wait <= 0:
		c.batch()
	case c.timer == nil:
		c.timer = time.AfterFunc(wait, c.flush)
	}
}

// hold keeps line for the next batch, in place of older ones where there are too many. c.mu is held.
func (c *console) hold(line worker.Log) {
	lines, bytes := half(c.maxLines), half(c.maxBytes)
	if n := int64(len(line.Text)); n > bytes {
		line.Text = line.Text[:boundary(line.Text, int(bytes))]
		c.skipped.bytes += uint64(n - int64(len(line.Text)))
	}
	c.held = append(c.held, line)
	c.heldBytes += int64(len(line.Text))
	for int64(len(c.held)) > lines || c.heldBytes > bytes {
		n := len(c.held[0].Text)
		c.held[0] = worker.Log{}
		c.held = c.held[1:]
		c.heldBytes -= int64(n)
		c.skipped.lines++
		c.skipped.bytes += uint64(n)
	}
}

// boundary is the last place between two characters of s up to n.
func boundary(s string, n int) int {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}

// batch sends what is held. c.mu is held.
func (c *console) batch() {
	for i, line := range c.held {
		if i == 0 {
			line.SkippedLines, line.SkippedBytes = c.skipped.lines, c.skipped.bytes
			c.skipped = skipped{}
		}
		_ = c.send(line)
	}
	c.held, c.heldBytes, c.last = nil, 0, time.Now()
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
}

// flush sends what is held back. It follows the last line, and may block like Send of the channel.
func (c *console) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.held) > 0 {
		c.batch()
	}
}

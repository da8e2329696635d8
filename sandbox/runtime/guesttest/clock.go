package guesttest

import "slices"

// clock runs timers in the order in which they are due, without waiting.
type clock struct {
	now    float64
	lastID uint32
	timers []timer
}

type timer struct {
	id       uint32
	due      float64
	interval float64 // negative for a timer that fires once
}

func (c *clock) start(ms float64, repeat bool) uint32 {
	c.lastID++
	t := timer{c.lastID, c.now + ms, -1}
	if repeat {
		t.interval = max(ms, 1)
	}
	c.timers = append(c.timers, t)
	return t.id
}

func (c *clock) stop(id uint32) {
	c.timers = slices.DeleteFunc(c.timers, func(t timer) bool { return t.id == id })
}

// next takes the timer that is due first, of two at once the older.
func (c *clock) next() (id uint32, last, ok bool) {
	if len(c.timers) == 0 {
		return 0, false, false
	}
	first := 0
	for i, t := range c.timers {
		if t.due < c.timers[first].due {
			first = i
		}
	}
	t := c.timers[first]
	c.now = t.due
	if t.interval < 0 {
		c.timers = slices.Delete(c.timers, first, first+1)
		return t.id, true, true
	}
	c.timers[first].due += t.interval
	return t.id, false, true
}

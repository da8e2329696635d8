package channel

import "time"

// Config bounds a connection. A zero field means its default; there is no unlimited.
type Config struct {
	MaxMessageBytes int64         // largest message accepted, decompressed; default 32 MiB
	QueueBytes      int64         // messages waiting to be written; default 16 MiB
	PingInterval    time.Duration // a peer silent for two of them is gone; default 15 s
	WriteStall      time.Duration // a write that does not progress for so long drops the peer; default 30 s
	CloseWait       time.Duration // how long a closing end waits for the other's close frame; default 2 s
	Compress        bool          // agree to permessage-deflate when the client offers it
	Traffic         *Traffic      // counts messages; nil means nobody does
}

// compressFrom is the smallest message worth compressing.
const compressFrom = 1 << 10

// fragmentBytes is how much of a long message is written before control frames get their turn.
const fragmentBytes = 32 << 10

// bufferBytes is the size of the buffer that gathers small frames into one system call.
const bufferBytes = 16 << 10

// keptBytes is the largest buffer for reading that is kept for the next messages.
const keptBytes = 4 << 20

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	if c.MaxMessageBytes <= 0 {
		c.MaxMessageBytes = 32 << 20
	}
	if c.QueueBytes <= 0 {
		c.QueueBytes = 16 << 20
	}
	set(&c.PingInterval, 15*time.Second)
	set(&c.WriteStall, 30*time.Second)
	set(&c.CloseWait, 2*time.Second)
	return c
}

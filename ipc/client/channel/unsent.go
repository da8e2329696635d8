package channel

import (
	"crypto/tls"
	"net"

	"golang.org/x/sys/unix"
)

// unsentBytes is how much of what was written may wait in the kernel before it is sent.
const unsentBytes = 128 << 10

// limitUnsent keeps the kernel's send buffer short on TCP (TCP_NOTSENT_LOWAT, tcp(7)). By default it grows to
// megabytes and reports room only once a third is free: a slow reader would then look like one that stopped, and a
// ping would wait behind all of it. It is an improvement and not a need, so a kernel that refuses is left alone.
func limitUnsent(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentBytes)
	})
}

package channel

// Receipts counts the messages received, so that the peer, which keeps what it sent, learns now and then what it need
// not keep any more. The zero value is ready; it has no lock.
type Receipts struct {
	Received uint64 // messages
	since    uint64 // messages since the last acknowledgement
	bytes    int    // of those
}

// How much may go unacknowledged. From a quarter of it on an acknowledgement goes along with the next message.
const (
	ackMessages = 64
	ackBytes    = 64 << 10
)

// Count counts a message of so many bytes. It tells whether to acknowledge, and whether at once or with the next message
// that is sent.
func (r *Receipts) Count(bytes int) (due, now bool) {
	r.Received++
	r.since++
	r.bytes += bytes
	due = r.since%(ackMessages/4) == 0 || r.bytes >= ackBytes
	now = r.since >= ackMessages || r.bytes >= ackBytes
	if now {
		r.since, r.bytes = 0, 0
	}
	return due, now
}

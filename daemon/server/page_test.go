package server

import (
	"flag"
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/executord/executord/ipc/pagetest"
	"github.com/executord/executord/ipc/protocol"
)

var update = flag.Bool("update", false, "write the tables of docs/protocol.md")

// The tables of docs/protocol.md that are this package's are what it does.
func TestProtocolPage(t *testing.T) {
	const page = "../../docs/protocol.md"
	c, err := Config{}.check()
	if err != nil {
		t.Fatal(err)
	}
	pagetest.Part(t, page, "transport", pagetest.Table([]string{"", "unless set otherwise", "setting"}, [][]string{
		{"time from connecting to `session.open`", c.OpenTimeout.String(), ""},
		{"interval of pings", c.PingInterval.String(), "`--ping-interval`"},
		{"stall of a client that takes nothing", c.WriteStall.String(), ""},
		{"one message, or the body of a request over HTTP, in MiB", mib(c.MaxMessageBytes), "`--max-message`"},
		{"messages on their way to one client, in MiB", mib(c.QueueBytes), ""},
		{"answers that one client has not read or acknowledged, past which nothing new is begun, in MiB", mib(c.OwedBytes), ""},
		{"the same of all, past which the session that owes the most ends, in MiB", mib(c.TotalOwedBytes), ""},
		{"head of a request over HTTP, in KiB", strconv.Itoa(maxHeaderBytes >> 10), ""},
		{"time for that head, and between parts of a body", headerTimeout.String(), ""},
	}), *update)
	var rows [][]string
	for _, i := range protocol.Types() {
		if !i.Ran {
			rows = append(rows, []string{"`" + string(i.Type) + "`", statuses(i.Type)})
		}
	}
	pagetest.Part(t, page, "statuses", pagetest.Table([]string{"error over HTTP", "status"}, rows), *update)
}

func mib(bytes int64) string { return strconv.FormatInt(bytes>>20, 10) }

// statuses are those of answers with an error of type t.
func statuses(t protocol.Type) string {
	text := strconv.Itoa(statusOf(t))
	also := func(status int, when string) { text += fmt.Sprintf("; %d %s", status, when) }
	switch t {
	case protocol.InvalidParams:
		also(http.StatusRequestEntityTooLarge, "for a body that is too large")
	case protocol.InvalidRequest:
		also(http.StatusRequestTimeout, "for a body that does not come")
	case protocol.UnknownMethod:
		also(http.StatusMethodNotAllowed, "for another method than the path has")
	case protocol.Unauthorized:
		also(http.StatusUnauthorized, "where no bearer token was shown and one is needed")
	case protocol.Overloaded:
		also(http.StatusTooManyRequests, "for one who was refused too often of late")
	}
	return text
}

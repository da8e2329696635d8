package server

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"
)

// A client that announces a body and sends none is answered, whatever it asked for, and holds nothing.
func TestBodiesThatDoNotCome(t *testing.T) {
	r := serve(t, script{}, Config{MaxRequests: 1})
	for _, c := range []struct {
		line   string
		status int
	}{
		{"POST /v1/execute", http.StatusRequestTimeout}, {"POST /nothing", http.StatusNotFound}, {"POST /healthz", http.StatusMethodNotAllowed},
	} {
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("unix", r.unix)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n", c.line); err != nil {
				t.Fatal(err)
			}
			_ = conn.SetReadDeadline(time.Now().Add(4 * headerTimeout))
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || answer.StatusCode != c.status {
				t.Errorf("got %v, %v, want status %d", answer, err, c.status)
			}
		})
	}
}

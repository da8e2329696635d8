package e2e

import (
	"bytes"
	"context"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

// TestTranscript: a service says what docs/protocol.md says that it does, to a host that says its part of it.
func TestTranscript(t *testing.T) {
	page, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, transcript, _ := strings.Cut(string(page), "\n## A session by hand\n")
	_, transcript, _ = strings.Cut(transcript, "\n```\n")
	transcript, _, found := strings.Cut(transcript, "\n```\n")
	if !found {
		t.Fatal("the page has no transcript")
	}
	s := start(t, testbin.Worker(t), "--workers", "1")
	dialer := websocket.Dialer{
		Subprotocols: []string{protocol.Subprotocol},
		NetDialContext: func(context.Context, string, string) (net.Conn, error) {
			return net.Dial("unix", strings.TrimPrefix(s.address, "unix:"))
		},
	}
	ws, _, err := dialer.Dial("ws://localhost/v1/session", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	_ = ws.SetReadDeadline(time.Now().Add(30 * time.Second))
	for line := range strings.SplitSeq(transcript, "\n") {
		who, text, _ := strings.Cut(line, " ")
		if who == "→" {
			if err := ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		_, got, err := ws.ReadMessage()
		if err == nil && bytes.Contains(got, []byte(`"state":"queued"`)) { // on a machine that is slow to make a worker ready
			_, got, err = ws.ReadMessage()
		}
		if err != nil {
			t.Fatalf("%v, want %s", err, text)
		}
		want := "^" + strings.ReplaceAll(regexp.QuoteMeta(text), "…", ".*") + "$"
		if who != "←" || !regexp.MustCompile(want).Match(got) {
			t.Fatalf("the service says\n%s\nthe page\n%s", got, line)
		}
	}
}

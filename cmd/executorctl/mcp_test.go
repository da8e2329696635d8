package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/executord/executord/ipc/testbin"
)

// TestMCP starts the real program as an MCP client does.
func TestMCP(t *testing.T) {
	var stderr bytes.Buffer
	cmd := exec.Command(testbin.Executorctl(t), "mcp", "--embedded", "--worker-binary", testbin.Worker(t), "--timeout", "5s", "--max-output", "100")
	cmd.Stderr = &stderr
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	for code, want := range map[string]string{"[6 * 7]": "[\n  42\n]", `"x".repeat(1000)`: "--- TRUNCATED --- 1000 characters", "typeof fetch": "function"} {
		r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "code", Arguments: map[string]string{"code": code}})
		if err != nil || r.IsError || !strings.HasSuffix(r.Content[0].(*mcp.TextContent).Text, want) {
			t.Errorf("%s: %v, %v", code, r, err)
		}
	}
	if err := c.Close(); err != nil || stderr.Len() != 0 {
		t.Errorf("it ended with %v, and said %s", err, &stderr)
	}
}

func TestMCPRefuses(t *testing.T) {
	config := filepath.Join(t.TempDir(), "servers.json")
	if err := os.WriteFile(config, []byte(`{"mcpServers":{"a":{}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		exit int
		want string
	}{
		{[]string{"mcp", config}, exitOther, `cannot use the configuration`},
		{[]string{"mcp", "/nowhere/none"}, exitOther, "cannot read the configuration"},
		{[]string{"mcp", "--max-output", "5"}, exitOther, "--max-output"},
		{[]string{"mcp", "--timeout", "0s"}, exitOther, "positive"},
		{[]string{"mcp", "--embedded", "--address", "unix:/x"}, exitOther, "--address"},
		{[]string{"mcp", "--address", "unix:/nowhere/none"}, exitUnreachable, "nobody listens"},
	} {
		var out, err bytes.Buffer
		w := &world{in: strings.NewReader(""), out: stream{Writer: &out}, err: stream{Writer: &err}, env: func(string) string { return "" }, exists: func(string) bool { return false }}
		if got := execute(t.Context(), tc.args, w); got != tc.exit || !strings.Contains(err.String(), tc.want) || out.Len() != 0 {
			t.Errorf("%q: exit %d, %s", tc.args, got, &err)
		}
	}
}

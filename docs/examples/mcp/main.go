// Command mcp is an MCP client that gets code mode by executorctl mcp, and the MCP server whose tools its programs call:
//
//	go run ./docs/examples/mcp bin/executorctl --embedded
//
// Other clients have a line for it in their own configuration, as {"command": "executorctl", "args": ["mcp", "servers.json"]}.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	run := client
	if len(os.Args) == 2 && os.Args[1] == "notes" {
		run = notes
	}
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// notes is an MCP server on standard input and output.
func notes(ctx context.Context) error {
	type query struct {
		Word string `json:"word" jsonschema:"what the notes are about"`
	}
	type answer struct {
		Notes []string `json:"notes"`
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "notes"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "find-notes", Description: "Finds notes."},
		func(_ context.Context, _ *mcp.CallToolRequest, q query) (*mcp.CallToolResult, answer, error) {
			return nil, answer{[]string{q.Word + " is good", "buy " + q.Word}}, nil
		})
	return s.Run(ctx, &mcp.StdioTransport{})
}

// client starts executorctl with the server behind it, and runs what a model might have written.
func client(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "executord-example-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	servers := filepath.Join(folder, "servers.json")
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"notes": map[string]any{"command": self, "args": []string{"notes"}}}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(servers, config, 0o600); err != nil {
		return err
	}
	command := exec.Command(os.Args[1], append([]string{"mcp", servers}, os.Args[2:]...)...)
	command.Stderr = os.Stderr
	session, err := mcp.NewClient(&mcp.Implementation{Name: "example"}, nil).Connect(ctx, &mcp.CommandTransport{Command: command}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	program := `const all = await Promise.all(["tea", "milk"].map((word) => notes.find_notes({ word })));
return all.flatMap(({ notes }) => notes).filter((note) => note.startsWith("buy")).join(", ")`
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "code", Arguments: map[string]string{"code": program}})
	if err != nil {
		return err
	}
	for _, part := range result.Content {
		if text, ok := part.(*mcp.TextContent); ok {
			fmt.Println(text.Text)
		}
	}
	return nil
}

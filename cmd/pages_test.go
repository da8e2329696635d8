package cmd

import (
	"os"
	"strings"
	"testing"
)

// readPage returns a file of the repository, by its path from the root.
func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile("../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReadmeShowsTheExample: the Go program of the README is the compiled example of package client.
func TestReadmeShowsTheExample(t *testing.T) {
	example := strings.NewReplacer("package client_test", "package main", "func Example()", "func main()").
		Replace(readPage(t, "ipc/client/example_test.go"))
	if !strings.Contains(readPage(t, "README.md"), "\n```go\n"+example+"```\n") {
		t.Error("the README shows another program than ipc/client/example_test.go")
	}
}

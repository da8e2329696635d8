package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"text/template"

	"github.com/alecthomas/kong"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/roff"
)

const manFile = "../../man/executorctl.1"

// manCommand is one command of the page, in troff.
type manCommand struct {
	Name, Usage, Help string
	Details           []string
	Arguments, Flags  []manItem
}

type manItem struct{ Name, Help string }

type manStatus struct {
	Status int
	Help   string
}

// TestManPageIsMadeFromTheCommands: -update writes it anew.
func TestManPageIsMadeFromTheCommands(t *testing.T) {
	page, err := template.ParseFiles("testdata/executorctl.1.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	var data struct {
		Commands []manCommand
		Statuses []manStatus
	}
	w := &world{out: stream{Writer: new(bytes.Buffer)}, err: stream{Writer: new(bytes.Buffer)}}
	for _, leaf := range grammar(w).Model.Leaves(true) {
		data.Commands = append(data.Commands, manOf(leaf))
	}
	data.Statuses = []manStatus{
		{exitOther, "The command line is wrong, or something failed that has no status of its own."},
		{exitUnreachable, "No service answers."},
		{exitCheck, "check found something wrong."},
		{exitInterrupted, "It was interrupted."},
	}
	for _, info := range protocol.Types() {
		data.Statuses = append(data.Statuses, manStatus{info.Exit, roff.Text(string(info.Type))})
	}
	var b bytes.Buffer
	if err := page.Execute(&b, data); err != nil {
		t.Fatal(err)
	}
	goldenText(t, manFile, b.Bytes())
}

func manOf(n *kong.Node) manCommand {
	path := strings.TrimPrefix(n.FullPath(), "executorctl ")
	c := manCommand{Name: roff.Text(path), Usage: roff.Text(path), Help: roff.Paragraph(n.Help)}
	if n.Detail != "" {
		for text := range strings.SplitSeq(n.Detail, "\n\n") {
			c.Details = append(c.Details, roff.Paragraph(text))
		}
	}
	for _, p := range n.Positional {
		c.Usage += " " + roff.Text(p.Summary())
		c.Arguments = append(c.Arguments, manItem{roff.Text(p.Name), roff.Paragraph(p.Help)})
	}
	for _, f := range n.Flags {
		if f.Name == "help" {
			continue
		}
		name := ".B " + roff.Text("--"+f.Name)
		if !f.IsBool() {
			name = fmt.Sprintf(".BI %s= %s", roff.Text("--"+f.Name), roff.Text(strings.ReplaceAll(f.FormatPlaceHolder(), " ", "")))
		}
		c.Flags = append(c.Flags, manItem{name, roff.Paragraph(f.Help)})
	}
	return c
}

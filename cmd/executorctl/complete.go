package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/executord/executord/daemon/admin"
	"github.com/executord/executord/daemon/events"
	"github.com/executord/executord/ipc/protocol"
)

// completeCommand is executorctl complete, which the scripts of completion ask. It never fails: a shell has no place for
// what it would say.
type completeCommand struct {
	Describe bool     `help:"With each word, behind a tabulator, what it means."`
	Words    []string `arg:"" optional:"" passthrough:"all" help:"The words so far, the one to complete last."`
}

// askTime is how long a shell may be kept waiting for names that the service knows.
const askTime = 500 * time.Millisecond

// suggestion is one way to go on.
type suggestion struct{ word, help string }

// Run prints how the words may go on. Nothing means the name of a file, or anything.
func (c *completeCommand) Run(ctx context.Context, w *world) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	for _, s := range complete(ctx, w, words) {
		if c.Describe && s.help != "" {
			_, _ = fmt.Fprintf(w.out, "%s\t%s\n", s.word, s.help)
		} else {
			_, _ = fmt.Fprintln(w.out, s.word)
		}
	}
	return nil
}

// complete finds how the last word may go on.
func complete(ctx context.Context, w *world, words []string) (list []suggestion) {
	before, last := words[:len(words)-1], words[len(words)-1]
	at := position{node: grammar(w).Model.Node}
	for _, word := range before {
		at.step(word)
	}
	for _, s := range at.next(ctx, w, last) {
		if strings.HasPrefix(s.word, last) {
			list = append(list, s)
		}
	}
	return list
}

// position is where a command line is after some words.
type position struct {
	node    *kong.Node
	args    int        // positional arguments of node so far
	value   *kong.Flag // whose value the next word is
	plain   bool       // "--" was there
	address string     // of the service, where a flag said it
}

func (p *position) step(word string) {
	switch {
	case p.value != nil:
		if p.value.Name == "address" {
			p.address = word
		}
		p.value = nil
	case word == "--":
		p.plain = true
	case strings.HasPrefix(word, "-") && word != "-" && !p.plain:
		name, value, given := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		flag := p.flag(name)
		switch {
		case flag == nil || flag.IsBool():
		case given && flag.Name == "address":
			p.address = value
		case !given:
			p.value = flag
		}
	default:
		if child := p.child(word); child != nil {
			p.node, p.args = child, 0
			return
		}
		p.args++
	}
}

func (p *position) child(name string) *kong.Node {
	at := slices.IndexFunc(p.node.Children, func(n *kong.Node) bool { return n.Name == name })
	if at < 0 || p.args > 0 {
		return nil
	}
	return p.node.Children[at]
}

// flags are those that may stand here.
func (p *position) flags() (list []*kong.Flag) {
	for _, group := range p.node.AllFlags(true) {
		list = append(list, group...)
	}
	return list
}

func (p *position) flag(name string) *kong.Flag {
	flags := p.flags()
	at := slices.IndexFunc(flags, func(f *kong.Flag) bool { return f.Name == name })
	if at < 0 {
		return nil
	}
	return flags[at]
}

// next are the words that may follow.
func (p *position) next(ctx context.Context, w *world, last string) (list []suggestion) {
	if name, _, given := strings.Cut(strings.TrimPrefix(last, "--"), "="); given && strings.HasPrefix(last, "--") {
		if flag := p.flag(name); flag != nil {
			for _, s := range p.values(ctx, w, flag.Value) {
				list = append(list, suggestion{"--" + name + "=" + s.word, s.help})
			}
		}
		return list
	}
	switch {
	case p.value != nil:
		return p.values(ctx, w, p.value.Value)
	case strings.HasPrefix(last, "-") && !p.plain:
		for _, f := range p.flags() {
			list = append(list, suggestion{"--" + f.Name, firstSentence(f.Help)})
		}
		return list
	case len(p.node.Children) > 0:
		for _, n := range p.node.Children {
			if !n.Hidden {
				list = append(list, suggestion{n.Name, firstSentence(n.Help)})
			}
		}
		return list
	case p.args < len(p.node.Positional):
		return p.values(ctx, w, p.node.Positional[p.args])
	}
	return nil
}

// values are the words that a flag or an argument takes.
func (p *position) values(ctx context.Context, w *world, v *kong.Value) (list []suggestion) {
	words := v.EnumSlice()
	switch v.Tag.Get("complete") {
	case "level":
		words = []string{"debug", "info", "warn", "error"}
	case "outcome":
		words = []string{admin.OK, "failed"}
		for _, t := range protocol.Types() {
			words = append(words, string(t.Type))
		}
	case "kind":
		for _, k := range events.Kinds() {
			words = append(words, string(k))
		}
	case "worker", "execution":
		return p.ask(ctx, w, v.Tag.Get("complete"))
	}
	for _, word := range words {
		list = append(list, suggestion{word: word})
	}
	return list
}

// ask takes names from the service, as far as it answers soon.
func (p *position) ask(ctx context.Context, w *world, what string) (list []suggestion) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	a, err := admin.NewClient(operator{Address: p.address}.address(w))
	if err != nil {
		return nil
	}
	defer a.Close()
	switch what {
	case "worker":
		all, _ := a.Workers(ctx)
		for _, x := range all.Workers {
			list = append(list, suggestion{x.Name, x.State})
		}
	case "execution":
		all, _ := a.Executions(ctx, admin.ExecutionFilter{})
		for _, x := range all.Executions {
			list = append(list, suggestion{x.ID, clean(x.Label()+" "+x.Name, true)})
		}
	}
	return list
}

// firstSentence is help up to its first full stop.
func firstSentence(help string) string {
	text, _, _ := strings.Cut(help, ". ")
	return strings.TrimSuffix(oneLine(text), ".")
}

package codemcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/executord/executord/ipc/codemode"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// ownNamespace has the tools that tell a program of the others.
const ownNamespace = "codemode"

// Bounds of what a model is told.
const (
	maxTypes   = 24 << 10 // bytes of types in the description; more are to be asked for
	maxList    = 8 << 10  // bytes of a list of tools
	maxFound   = 20       // tools that a search finds
	maxSummary = 160      // bytes of a description in a list
)

const introduction = `Runs JavaScript in a sandbox and returns its value. Write statements with await and return at the top, or one async arrow function. ` +
	`console.log prints. There is no network, no file system and no state from one call to the next. ` +
	`Each tool takes one object, and has to be awaited; one that fails throws. Call several tools in one program, and return only what is needed.`

// describe is what a model reads of the tool: the types of all tools, or where those are too long their names, and how to ask
// for more.
func describe(servers []*upstream) string {
	var b strings.Builder
	b.WriteString(introduction)
	var types strings.Builder
	for _, u := range servers {
		tools, skipped, gone := u.known()
		if gone != nil {
			fmt.Fprintf(&b, "\n\n%s is not available now.", u.namespace)
		}
		if skipped > 0 {
			fmt.Fprintf(&b, "\n\n%s has tools that programs cannot call.", u.namespace)
		}
		if len(tools) > 0 && types.Len() <= maxTypes {
			types.WriteString("\n" + typesOf(u, tools...))
		}
	}
	switch {
	case types.Len() == 0:
		return b.String()
	case types.Len() <= maxTypes:
		return b.String() + "\n\n```ts" + types.String() + "```"
	}
	b.WriteString("\n\nawait codemode.search({query}) finds tools by words of their names and descriptions; await codemode.describe({tool: \"namespace.name\"}) " +
		"gives the types of one. There are:\n")
	start := b.Len()
	for _, u := range servers {
		tools, _, _ := u.known()
		for _, t := range tools {
			if b.Len()-start > maxList {
				return b.String() + "\nand more."
			}
			fmt.Fprintf(&b, "\n%s.%s", u.namespace, t.known)
		}
	}
	return b.String()
}

// typesOf declares tools of a server.
func typesOf(u *upstream, tools ...tool) string {
	var list []codemode.ToolType
	for _, t := range tools {
		list = append(list, t.types)
	}
	prefix := strings.ToUpper(u.namespace[:1]) + u.namespace[1:]
	return codemode.Types(u.namespace, prefix, list)
}

// library is the provider that tells a program of the tools.
func library(servers []*upstream) codemode.Provider {
	return codemode.Provider{Name: ownNamespace, Tools: []codemode.Tool{
		{Name: "search", Call: asked("query", func(query string) (any, error) { return search(servers, query), nil })},
		{Name: "describe", Call: asked("tool", func(name string) (any, error) {
			for _, u := range servers {
				tools, _, _ := u.known()
				for _, t := range tools {
					if u.namespace+"."+t.known == name {
						return typesOf(u, t), nil
					}
				}
			}
			return nil, fmt.Errorf("there is no tool %s", codemode.Cut(name, maxSummary))
		})},
	}}
}

// asked makes a tool of a function of one text: the member of that name of its argument.
func asked(member string, f func(string) (any, error)) executor.Tool {
	return func(_ context.Context, args []protocol.Value) (protocol.Value, error) {
		given := map[string]json.RawMessage{}
		text := ""
		if len(args) > 0 {
			plain, err := codemode.ToJSON(args[0])
			if err == nil && json.Unmarshal(plain, &text) != nil && json.Unmarshal(plain, &given) == nil {
				_ = json.Unmarshal(given[member], &text)
			}
		}
		if text == "" {
			return nil, errors.New("it takes {" + member + "}, a text")
		}
		answer, err := f(text)
		if err != nil {
			return nil, err
		}
		return protocol.Marshal(answer)
	}
}

type found struct {
	Tool        string `json:"tool"`
	Description string `json:"description"`
	score       int
}

// search finds the tools that have most words of a query, the name counting more than the description.
func search(servers []*upstream, query string) []found {
	words := strings.Fields(strings.ToLower(codemode.Cut(query, 1000)))
	list := []found{}
	for _, u := range servers {
		tools, _, _ := u.known()
		for _, t := range tools {
			f := found{Tool: u.namespace + "." + t.known, Description: codemode.Cut(t.types.Description, maxSummary)}
			name, text := strings.ToLower(f.Tool), strings.ToLower(t.types.Description)
			for _, w := range words {
				if strings.Contains(name, w) {
					f.score += 3
				}
				if strings.Contains(text, w) {
					f.score++
				}
			}
			if f.score > 0 {
				list = append(list, f)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b found) int { return cmp.Compare(b.score, a.score) })
	return list[:min(len(list), maxFound)]
}

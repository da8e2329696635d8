package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/executord/executord/ipc/protocol"
)

// maxLateNames bounds how many calls the warning names.
const maxLateNames = 10

// maxLateName bounds one of the names, in bytes.
const maxLateName = 100

// nameLateCalls warns of tool calls whose results nobody waited for: their promises were not awaited, and the program
// ended before they came. A program that was stopped is not to blame for its calls.
func (e *execution) nameLateCalls() {
	if reason, _ := e.dog.why(); reason != "" || len(e.pending) == 0 {
		return
	}
	var names []string
	for _, call := range slices.Sorted(maps.Keys(e.pending)) { // in the order in which they were made
		if len(names) == maxLateNames {
			names = append(names, fmt.Sprintf("and %d more", len(e.pending)-maxLateNames))
			break
		}
		name := e.pending[call]
		if len(name) > maxLateName {
			name = strings.ToValidUTF8(name[:maxLateName], "") + "…"
		}
		names = append(names, name)
	}
	calls, were := "tool calls", "were"
	if len(e.pending) == 1 {
		calls, were = "tool call", "was"
	}
	e.Log(string(protocol.LevelWarn), fmt.Sprintf("%d %s %s still running when the program ended: %s (await each call)", len(e.pending), calls, were, strings.Join(names, ", ")))
}

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

// nameLateCalls warns of tool calls and fetches whose results nobody waited for: their promises were not awaited, and the
// program ended before they came. A program that was stopped is not to blame for its calls.
func (e *execution) nameLateCalls() {
	late, fetches := e.lateCalls()
	if reason, _ := e.dog.why(); reason != "" || len(late) == 0 {
		return
	}
	var names []string
	for i, name := range late {
		if i == maxLateNames {
			names = append(names, fmt.Sprintf("and %d more", len(late)-maxLateNames))
			break
		}
		if len(name) > maxLateName {
			name = strings.ToValidUTF8(name[:maxLateName], "") + "…"
		}
		names = append(names, name)
	}
	calls, were := "tool calls", "were"
	if fetches {
		calls = "calls"
	}
	if len(late) == 1 {
		calls, were = strings.TrimSuffix(calls, "s"), "was"
	}
	e.print(string(protocol.LevelWarn), fmt.Sprintf("%d %s %s still running when the program ended: %s (await each call)", len(late), calls, were, strings.Join(names, ", ")))
}

// lateCalls names the calls of the current task under way in the order in which they were made, and tells whether a fetch is among them.
func (e *execution) lateCalls() (names []string, fetches bool) {
	for _, call := range slices.Sorted(maps.Keys(e.pending)) {
		if p := e.pending[call]; p.name != "" && p.task == e.task {
			names = append(names, p.name)
			fetches = fetches || p.fetch != 0
		}
	}
	return names, fetches
}

// Package man tests the man pages. It has no code of its own and nothing imports it. Three of the pages are made from what
// the programs declare; the tests that make them are beside those declarations.
package man

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/executord/executord/ipc/roff"
	"github.com/executord/executord/ipc/worker"
)

func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("*.[1-8]")
	if err != nil || len(found) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	return found
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPagesAreClean has their formatters read all pages.
func TestPagesAreClean(t *testing.T) {
	for _, page := range pages(t) {
		t.Run(page, func(t *testing.T) { roff.Check(t, page) })
	}
}

var (
	reference = regexp.MustCompile(`(?m)^\.BR "?(execut[a-z.\\-]+)"? \(([1-8])\)`)
	manual    = regexp.MustCompile(`man:([a-z.-]+)\(([1-8])\)`)
)

// TestReferencesLeadSomewhere: each page of the project that a page or a unit names is there.
func TestReferencesLeadSomewhere(t *testing.T) {
	units, err := filepath.Glob("../systemd/*.s*")
	if err != nil || len(units) == 0 {
		t.Fatalf("no units: %v", err)
	}
	checked := 0
	for _, file := range append(pages(t), units...) {
		text := strings.ReplaceAll(read(t, file), `\-`, "-")
		for _, found := range append(reference.FindAllStringSubmatch(text, -1), manual.FindAllStringSubmatch(text, -1)...) {
			checked++
			if _, err := os.Stat(found[1] + "." + found[2]); err != nil {
				t.Errorf("%s names %s(%s), which is not there", file, found[1], found[2])
			}
		}
	}
	if checked < len(units) {
		t.Errorf("only %d references were found", checked)
	}
}

// TestUnitsHaveAPage: executord.socket(7) is about every unit.
func TestUnitsHaveAPage(t *testing.T) {
	page := strings.ReplaceAll(read(t, "executord.socket.7"), `\-`, "-")
	for _, pattern := range []string{"../systemd/*.socket", "../systemd/*.service", "../systemd/*.slice"} {
		units, err := filepath.Glob(pattern)
		if err != nil || len(units) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, unit := range units {
			if !strings.Contains(page, "\n.TP\n.I "+filepath.Base(unit)+"\n") {
				t.Errorf("it says nothing of %s", filepath.Base(unit))
			}
		}
	}
}

// TestWorkerStatusesHaveAPage: executor-worker(8) has the statuses of the contract.
func TestWorkerStatusesHaveAPage(t *testing.T) {
	page := read(t, "executor-worker.8")
	for _, status := range []int{
		worker.ExitClosed, worker.ExitUsage, worker.ExitHeapOOM, worker.ExitProcessOOM, worker.ExitFatal, worker.ExitProtocol,
		worker.ExitCPU, worker.ExitWall, worker.ExitTotal, worker.ExitCancelled, worker.ExitSpent,
	} {
		if !strings.Contains(page, "\n.TP\n.B "+strconv.Itoa(status)+"\n") {
			t.Errorf("it says nothing of %d", status)
		}
	}
}

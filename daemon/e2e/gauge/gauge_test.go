package gauge

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestFamilyCPU: what a child used counts while it lives and when it has ended and was waited for.
func TestFamilyCPU(t *testing.T) {
	const burn = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo"
	sh := exec.Command("sh", "-c", "sh -c '"+burn+"' & wait; echo; read x")
	out, err := sh.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := sh.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	defer sh.Wait()
	defer in.Close()
	line := make([]byte, 1)
	var seen []time.Duration
	for range 2 {
		if _, err := out.Read(line); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, FamilyCPU(sh.Process.Pid))
	}
	own := ProcessCPU(sh.Process.Pid)
	for _, family := range seen {
		if family < own+20*time.Millisecond {
			t.Errorf("the family used %v, the parent alone %v", family, own)
		}
	}
}

func TestProcessCPUGrows(t *testing.T) {
	before := ProcessCPU(os.Getpid())
	if before == 0 {
		t.Fatal("this process used nothing")
	}
	for ProcessCPU(os.Getpid()) == before {
	}
	if got := ProcessCPU(1 << 25); got != 0 { // above the kernel's largest process id
		t.Errorf("no process used %v", got)
	}
}

func TestQuantile(t *testing.T) {
	list := []float64{5, 1, 4, 2, 3}
	for p, want := range map[float64]float64{0: 1, 0.2: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := Quantile(list, p); got != want {
			t.Errorf("the %v quantile is %v, not %v", p, got, want)
		}
	}
	if list[0] != 5 || !math.IsNaN(Quantile(nil, 0.5)) {
		t.Error("sorted in place, or something for nothing")
	}
}

// TestMachine: all that the benchmarks say of a machine is known on Linux, and stays the same.
func TestMachine(t *testing.T) {
	if got := Machine(); !regexp.MustCompile(`^\S.*, [1-9]\d* processors, \d+ GiB, Linux \d\S+$`).MatchString(got) || got != Machine() {
		t.Errorf("got %q", got)
	}
}

// TestLoad: it is the first of the kernel's means, which may change while it is read.
func TestLoad(t *testing.T) {
	for {
		before, got := strings.Fields(read("/proc/loadavg"))[0], Load()
		if after := strings.Fields(read("/proc/loadavg"))[0]; after == before {
			if fmt.Sprintf("%.2f", got) != before {
				t.Errorf("the load is %v, not %s", got, before)
			}
			return
		}
	}
}

func TestMilliseconds(t *testing.T) {
	if got := Milliseconds(1500 * time.Microsecond); got != 1.5 {
		t.Errorf("got %v", got)
	}
}

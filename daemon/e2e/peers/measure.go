package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/executord/executord/daemon/e2e/gauge"
)

const (
	// settle is how long work that an execution left behind, such as preparing the next isolate, is waited for.
	settle = 60 * time.Millisecond
	// inFlight is how many executions are under way where throughput is measured.
	inFlight = 4
	// gap is the idle time between executions where latency is measured.
	gap = 10 * time.Millisecond
)

// The jobs of a turn, without their programs. Their times bound what a slow engine takes.
var (
	once       = job{Count: 1, ForMs: 60_000, Lanes: 1}
	warming    = job{Count: 5, ForMs: 2_000, Lanes: 1}
	costing    = job{Count: 30, ForMs: 500, Lanes: 1}
	timing     = job{Count: 40, ForMs: 800, Lanes: 1, GapMs: int(gap / time.Millisecond)}
	throughput = job{Count: 1 << 30, ForMs: 1_000, Lanes: inFlight}
)

// of makes a job one for a program.
func (j job) of(p program) job {
	j.Code, j.Want = p.code, p.want
	return j
}

// cell names what was measured of one program in one engine.
type cell struct{ engine, program string }

// figures are all that was measured, a list for each cell.
type figures struct {
	cpuMs    map[cell][]float64 // of an execution, one figure a turn
	clientMs map[cell][]float64 // CPU time of this process for an execution, one figure a turn
	wallMs   map[cell][]float64 // one figure an execution
	rate     map[cell][]float64 // executions a second, one figure a turn
	turns    int
}

func newFigures() *figures {
	return &figures{
		cpuMs:    map[cell][]float64{},
		clientMs: map[cell][]float64{},
		wallMs:   map[cell][]float64{},
		rate:     map[cell][]float64{},
	}
}

// measure gives every engine its turns with every program, one engine after the other, so that what else the machine
// does hits them alike. It makes one turn at least; onTurn is called after each.
func measure(ctx context.Context, engines []*engine, turns int, budget time.Duration, onTurn func()) (*figures, error) {
	f := newFigures()
	for _, e := range engines {
		for _, p := range programs {
			if _, err := e.turn(ctx, warming.of(p)); err != nil {
				return nil, fmt.Errorf("%s, %s: %w", e.name, p.name, err)
			}
		}
	}
	begin := time.Now()
	for f.turns == 0 || f.turns < turns && fits(time.Since(begin), f.turns, budget) {
		for _, p := range programs {
			for _, e := range engines {
				if err := f.take(ctx, e, p); err != nil {
					return nil, fmt.Errorf("%s, %s: %w", e.name, p.name, err)
				}
			}
		}
		f.turns++
		onTurn()
	}
	return f, nil
}

// fits tells whether one turn more would end in time.
func fits(took time.Duration, turns int, budget time.Duration) bool {
	return took+took/time.Duration(turns) <= budget
}

// take measures one turn of an engine with a program.
func (f *figures) take(ctx context.Context, e *engine, p program) error {
	if _, err := e.turn(ctx, once.of(p)); err != nil { // awake again
		return err
	}
	time.Sleep(settle)
	at, self := cell{e.name, p.name}, os.Getpid()
	engineBefore, clientBefore := e.cpu(), gauge.ProcessCPU(self)
	r, err := e.turn(ctx, costing.of(p))
	if err != nil {
		return err
	}
	time.Sleep(settle)
	n := float64(len(r.WallMs))
	f.cpuMs[at] = append(f.cpuMs[at], gauge.Milliseconds(e.cpu()-engineBefore)/n)
	f.clientMs[at] = append(f.clientMs[at], gauge.Milliseconds(gauge.ProcessCPU(self)-clientBefore)/n)
	if r, err = e.turn(ctx, timing.of(p)); err != nil {
		return err
	}
	f.wallMs[at] = append(f.wallMs[at], r.WallMs...)
	if p.name != oneCall {
		return nil
	}
	if r, err = e.turn(ctx, throughput.of(p)); err != nil {
		return err
	}
	f.rate[at] = append(f.rate[at], float64(len(r.WallMs))/r.TookMs*1000)
	return nil
}

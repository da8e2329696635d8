package daemon

import (
	"context"
	"time"

	"github.com/executord/executord/daemon/lifecycle"
	"github.com/executord/executord/daemon/server"
)

// Stop asks the service to end in order, and does not wait for it; Run returns when it has. Asked a second time it makes
// the delay and the grace short: what runs is cancelled, and its outcomes are delivered. Asked a third time it ends at
// once.
func (d *Daemon) Stop() {
	d.asking.Lock()
	defer d.asking.Unlock()
	d.asked++
	switch d.asked {
	case 1:
		d.fire(lifecycle.Stop, "", "")
	case 2:
		d.fire(lifecycle.Hurry, "", "")
	default:
		d.fire(lifecycle.Cut, "it was asked for a third time", "")
	}
}

// stopMargin is the part of the stop timeout that is kept for the end itself.
func stopMargin(timeout time.Duration) time.Duration { return min(2*time.Second, timeout/5) }

// bound lets a stop take so long and no longer. Whoever started the service would kill it then.
func (d *Daemon) bound() {
	timeout := d.settings.Load().StopTimeout
	by := time.Now().Add(timeout)
	d.stopBy.Store(&by)
	timer := time.AfterFunc(timeout-stopMargin(timeout), func() { d.fire(lifecycle.Cut, "it took as long as --stop-timeout allows", "") })
	d.machine.Subscribe(func(t lifecycle.Transition) {
		if t.To.Final() {
			timer.Stop()
		}
	})
}

// end waits until the service has to stop, and drains it.
func (d *Daemon) end(srv *server.Server, front *server.Front) (fault error) {
	leaving, release := d.machine.Until(context.Background(), func(s lifecycle.State) bool {
		return s != lifecycle.Ready && s != lifecycle.Maintenance
	})
	defer release()
	fault = d.failedBefore(leaving, front)
	if fault == nil {
		delay, release := d.machine.Until(context.Background(), func(s lifecycle.State) bool { return s != lifecycle.DrainDelay })
		defer release()
		delay, cancel := context.WithTimeout(delay, d.settings.Load().DrainDelay)
		defer cancel()
		if fault = d.failedBefore(delay, front); fault == nil {
			d.fire(lifecycle.DelayOver, "", "")
		}
	}
	d.drain(srv, front)
	return fault
}

// failedBefore returns why a listener failed, if that is before ctx ends.
func (d *Daemon) failedBefore(ctx context.Context, front *server.Front) error {
	select {
	case err := <-front.Failed():
		d.fire(lifecycle.ListenerFailed, err.Error(), "")
		return err
	case <-ctx.Done():
		return nil
	}
}

// grace is what running work has, so that after it there is time to deliver the outcomes of what did not end.
func (d *Daemon) grace() time.Duration {
	s := d.settings.Load()
	grace := s.DrainGrace
	if by := d.stopBy.Load(); by != nil {
		grace = min(grace, time.Until(*by)-2*stopMargin(s.StopTimeout))
	}
	return max(0, grace)
}

// drain has sessions told, what waits refused and what runs end, within the grace.
func (d *Daemon) drain(srv *server.Server, front *server.Front) {
	cut, release := d.machine.Until(context.Background(), lifecycle.State.Final)
	defer release()
	hurried, release := d.machine.Until(cut, func(s lifecycle.State) bool { return s == lifecycle.Hurrying })
	defer release()
	grace, cancel := context.WithTimeout(hurried, d.grace())
	defer cancel()
	if d.succeeded {
		front.Leave()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = srv.Drain(grace) // what had to be cancelled has been told so
		if d.fire(lifecycle.Drained, "", "") {
			front.Close()
		}
	}()
	select {
	case <-ended:
	case <-cut.Done():
		srv.Abort()
		front.Abort()
	}
}

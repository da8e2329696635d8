package pool

// config is the configuration in force. It never changes; another takes its place.
func (p *Pool) config() *Config { return p.current.Load() }

// Reconfigure takes over a new configuration, but for Launcher, Logger, Meter, Tracer, OnEvent and SpawnTimeout, which
// stay as New got them. What makes no sense is an error and changes nothing.
//
// A request keeps the limits, the network and the longest wait of when it came. Nothing that runs or waits ends because
// there is less room now; workers that are too many end when they have nothing to do. A new HeartbeatTimeout counts from a
// worker's next frame.
func (p *Pool) Reconfigure(next Config) error {
	now := p.config()
	next.Launcher, next.Logger, next.Meter, next.Tracer = now.Launcher, now.Logger, now.Meter, now.Tracer
	next.OnEvent, next.SpawnTimeout = now.OnEvent, now.SpawnTimeout
	if err := cannot("reconfigure pool", next.faults()); err != nil {
		return err
	}
	p.mu.Lock()
	p.current.Store(&next)
	members := make([]*member, 0, len(p.members))
	for m := range p.members {
		members = append(members, m)
	}
	p.serve()
	p.announce()
	p.mu.Unlock()
	for _, m := range members {
		m.accept(next.frameBytes())
	}
	p.poke()
	return nil
}

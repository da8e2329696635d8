package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"

	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/daemon/server"
	"github.com/executord/executord/daemon/settings"
	"github.com/executord/executord/ipc/protocol"
)

// poolConfig makes the pool's configuration, complete but for the launcher.
func poolConfig(s *settings.Settings, log *slog.Logger) (pool.Config, error) {
	c := pool.Defaults()
	c.Workers, c.Spares, c.Queue, c.QueuePerIdentity, c.QueueTimeout = s.Workers, s.Spares, s.Queue, cmp.Or(s.QueueShare, s.Queue), s.QueueTimeout
	c.WorkerMaxExecutions = s.WorkerRuns
	c.Logger = log
	var err error
	c.Direct, err = s.Egress.Fetch()
	err = errors.Join(err, s.Max.Apply("max", &c.MaxLimits))
	for _, name := range protocol.LimitNames() { // a lower maximum lowers a default that nobody set
		p := c.Limits.Field(name)
		*p = min(*p, *c.MaxLimits.Field(name))
	}
	err = errors.Join(err, s.Default.Apply("default", &c.Limits))
	if err == nil {
		err = c.Check()
	}
	return c, err
}

// serverConfig makes the server's configuration.
func serverConfig(s *settings.Settings, version string, limits protocol.Limits, log *slog.Logger) (server.Config, error) {
	const maxMiB = 1024
	for _, positive := range []struct {
		name string
		n    int64
	}{
		{"max-sessions", int64(s.MaxSessions)},
		{"max-session-executions", int64(s.MaxSessionExecutions)},
		{"max-message", int64(s.MaxMessageMiB)},
		{"ping-interval", int64(s.PingInterval)},
		{"drain-grace", int64(s.DrainGrace)},
	} {
		if positive.n <= 0 {
			return server.Config{}, fmt.Errorf("--%s must be positive", positive.name)
		}
	}
	if s.MaxMessageMiB > maxMiB {
		return server.Config{}, fmt.Errorf("--max-message is %d MiB, must be at most %d: the unit is MiB", s.MaxMessageMiB, maxMiB)
	}
	tokens, err := readTokens(s.TokenFile)
	if err != nil {
		return server.Config{}, err
	}
	return server.Config{
		Version: version, Limits: limits, Logger: log,
		Policy:        server.Policy{UIDs: s.AllowUID, Hosts: s.AllowHost, Origins: s.AllowOrigin, Tokens: tokens},
		MaxSessions:   s.MaxSessions,
		MaxExecutions: s.MaxSessionExecutions, MaxMessageBytes: int64(s.MaxMessageMiB) << 20,
		PingInterval: s.PingInterval, DrainGrace: s.DrainGrace,
	}, nil
}

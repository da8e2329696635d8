package daemon

import (
	"log/slog"

	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/daemon/server"
	"github.com/executord/executord/daemon/settings"
)

// poolConfig is what settings that were checked mean for the pool, complete but for the launcher.
func poolConfig(s *settings.Settings, log *slog.Logger) (pool.Config, error) {
	c := pool.Defaults()
	c.Workers, c.Spares, c.Queue, c.QueuePerIdentity, c.QueueTimeout = s.Workers, s.Spares, s.Queue, s.QueueShare, s.QueueTimeout
	c.WorkerMaxExecutions, c.WorkerMaxAge, c.HeartbeatTimeout = s.WorkerRuns, s.WorkerMaxAge, s.HeartbeatTimeout
	c.Limits, c.MaxLimits = s.Default.Protocol(), s.Max.Protocol()
	c.Logger = log
	var err error
	if c.Direct, err = s.Egress.Fetch(); err != nil {
		return c, err
	}
	return c, c.Check()
}

// serverConfig is what they mean for the server.
func serverConfig(s *settings.Settings, version string, log *slog.Logger) (server.Config, error) {
	tokens, err := settings.ReadTokens(s.TokenFile)
	if err != nil {
		return server.Config{}, err
	}
	return server.Config{
		Version: version, Limits: s.Max.Protocol(), Logger: log,
		Policy:        server.Policy{UIDs: s.AllowUID, Hosts: s.AllowHost, Origins: s.AllowOrigin, Tokens: tokens},
		MaxSessions:   s.MaxSessions,
		MaxExecutions: s.MaxSessionExecutions, MaxMessageBytes: int64(s.MaxMessageMiB) << 20,
		PingInterval: s.PingInterval, DrainGrace: s.DrainGrace,
	}, nil
}

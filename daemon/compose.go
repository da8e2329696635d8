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
	c.Retained, c.RetainedPerIdentity, c.RetainIdle, c.RetainLifetime = s.Retained, s.RetainedShare, s.RetainIdle, s.RetainLifetime
	c.WorkerMaxExecutions, c.WorkerMaxAge = s.WorkerRuns, s.WorkerMaxAge
	c.SpawnTimeout, c.HeartbeatTimeout = s.WorkerStart, s.HeartbeatTimeout
	c.Limits, c.MaxLimits = s.Default.Protocol(), s.Max.Protocol()
	c.RequireLayers, c.Logger = s.RequireLayers, log
	var err error
	if c.Direct, err = s.Egress.Fetch(); err != nil {
		return c, err
	}
	return c, c.Check()
}

// serverConfig is what they mean for the server. It reads the files that they name.
func (d *Daemon) serverConfig(s *settings.Settings) (c server.Config, err error) {
	c = server.Config{
		Version: d.version, Limits: s.Max.Protocol(), Logger: d.log, Admit: d.admit, OnRefused: d.refused,
		MaxSessions: s.MaxSessions, MaxExecutions: s.MaxSessionExecutions,
		MaxCallerSessions: s.MaxCallerSessions, MaxCallerExecutions: s.MaxCallerExecutions,
		MaxMessageBytes: int64(s.MaxMessageMiB) << 20,
		PingInterval:    s.PingInterval, DrainGrace: s.DrainGrace,
		MaxSessionAge: s.MaxSessionAge, ResumeWindow: s.ResumeWindow,
		ResumeSessions: s.ResumeSessions, ResumeBytes: int64(s.ResumeMiB) << 20,
	}
	if c.Certificate, err = settings.ReadCertificate(s.TLSCert, s.TLSKey); err != nil {
		return c, err
	}
	c.Policy, err = policy(s)
	return c, err
}

func policy(s *settings.Settings) (p server.Policy, err error) {
	p = server.Policy{UIDs: s.AllowUID, Hosts: s.AllowHost, Origins: s.AllowOrigin, Proxies: s.Proxy}
	if p.GIDs, err = settings.GroupIDs(s.AllowGroup); err != nil {
		return p, err
	}
	if p.Tokens, err = settings.ReadTokens(s.TokenFile); err != nil {
		return p, err
	}
	p.ClientCAs, err = settings.ReadCAs(s.TLSClientCA)
	return p, err
}

package server

import (
	"errors"
	"fmt"
)

// Reconfigure takes over what a new configuration says about callers: Policy, Certificate, Limits, PingInterval,
// WriteStall, OpenTimeout and all Max fields but MaxMessageBytes. The rest stays as New got it. What makes no sense is
// an error and changes nothing.
//
// New limits hold for what comes; nothing that is open ends for them. A session whose caller would not be let in any
// more, by the same credential and under the same identity, ends in order: its executions are cancelled, their outcomes
// sent, and its connection closed with status 1008. Single requests under way finish.
func (s *Server) Reconfigure(next Config) error {
	next, err := next.check()
	if err == nil && (next.Certificate == nil) != (s.cfg.Certificate == nil) {
		err = errors.New("plain TCP and TLS cannot change places while listening")
	}
	var revoked []*session
	if err == nil {
		revoked, err = s.adopt(next)
	}
	if err != nil {
		return fmt.Errorf("cannot reconfigure server: %w", err)
	}
	for _, x := range revoked {
		x.revoke()
	}
	return nil
}

// adopt makes next the current configuration, and returns the sessions that it has no place for.
func (s *Server) adopt(next Config) (revoked []*session, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := next.Policy.Check(s.addresses...); err != nil {
		return nil, err
	}
	now := s.cfg
	now.Policy, now.Certificate, now.Limits = next.Policy, next.Certificate, next.Limits
	now.PingInterval, now.WriteStall, now.OpenTimeout = next.PingInterval, next.WriteStall, next.OpenTimeout
	now.MaxConnections, now.MaxSessions, now.MaxExecutions, now.MaxRequests = next.MaxConnections, next.MaxSessions, next.MaxExecutions, next.MaxRequests
	now.MaxCallerSessions, now.MaxCallerExecutions = next.MaxCallerSessions, next.MaxCallerExecutions
	now.MaxSessionAge = next.MaxSessionAge
	s.current.Store(&now)
	for x := range s.sessions {
		if !now.Policy.holds(x.caller) {
			revoked = append(revoked, x)
		}
	}
	return revoked, nil
}

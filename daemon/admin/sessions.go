package admin

import (
	"context"
	"net/http"
	"time"
)

// Session is one session of a caller.
type Session struct {
	ID         string    `json:"id"`
	Identity   string    `json:"identity"`
	State      string    `json:"state"` // opening, open, away (its connection was lost) or draining
	Since      time.Time `json:"since"` // it was begun
	Executions int       `json:"executions"`
	Retained   int       `json:"retained"`  // executions whose isolates stay for it
	OwedBytes  int64     `json:"owedBytes"` // answers that its client has not read
}

// SessionList is all sessions, oldest first.
type SessionList struct {
	Sessions []Session `json:"sessions"`
}

func (a *App) sessions(*call) (any, error) {
	return SessionList{append([]Session{}, a.cfg.Sessions()...)}, nil
}

// Sessions asks for all sessions.
func (c *Client) Sessions(ctx context.Context) (SessionList, error) {
	return ask[SessionList](ctx, c, http.MethodGet, "/v1/sessions", nil)
}

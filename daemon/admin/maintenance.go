package admin

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/executord/executord/ipc/protocol"
)

// Maintenance is whether new sessions and executions are refused, and why.
type Maintenance struct {
	Active     bool       `json:"active"`
	Reason     string     `json:"reason,omitempty"`
	Who        string     `json:"who,omitempty"` // the operator, as the kernel knows him
	Since      *time.Time `json:"since,omitempty"`
	Persistent bool       `json:"persistent"` // it holds after a restart
}

// EnterMaintenance says why, and for how long.
type EnterMaintenance struct {
	Reason     string `json:"reason"`               // callers read it; 512 bytes at most
	Persistent bool   `json:"persistent,omitempty"` // after a restart too
}

func (a *App) maintenance(*call) (any, error) { return a.cfg.Service.Maintenance(), nil }

func (a *App) enterMaintenance(c *call) (any, error) {
	m := body[EnterMaintenance](c)
	m.Reason = strings.TrimSpace(m.Reason)
	switch {
	case m.Reason == "":
		return nil, protocol.FieldError("reason", "is missing: callers and other operators want to know")
	case len(m.Reason) > maxReasonBytes:
		return nil, protocol.FieldError("reason", "has more than %d bytes", maxReasonBytes)
	}
	if err := a.cfg.Service.EnterMaintenance(c.who.name, m); err != nil {
		return nil, conflict("%s", err)
	}
	return a.cfg.Service.Maintenance(), nil
}

func (a *App) leaveMaintenance(c *call) (any, error) {
	if a.cfg.Service.Maintenance().Active {
		if err := a.cfg.Service.LeaveMaintenance(c.who.name); err != nil {
			return nil, conflict("%s", err)
		}
	}
	return a.cfg.Service.Maintenance(), nil
}

// Maintenance asks whether the service is in maintenance.
func (c *Client) Maintenance(ctx context.Context) (Maintenance, error) {
	return ask[Maintenance](ctx, c, http.MethodGet, "/v1/maintenance", nil)
}

// EnterMaintenance has new sessions and executions refused, or changes the reason.
func (c *Client) EnterMaintenance(ctx context.Context, m EnterMaintenance) (Maintenance, error) {
	return ask[Maintenance](ctx, c, http.MethodPut, "/v1/maintenance", m)
}

// LeaveMaintenance has them taken again.
func (c *Client) LeaveMaintenance(ctx context.Context) (Maintenance, error) {
	return ask[Maintenance](ctx, c, http.MethodDelete, "/v1/maintenance", nil)
}

package admin

import (
	"context"
	"net/http"

	"github.com/executord/executord/daemon/settings"
)

// SettingList is all settings, in the order of their declaration.
type SettingList struct {
	Settings []settings.Setting `json:"settings"`
}

func (a *App) settings(*call) (any, error) { return SettingList{a.cfg.Settings()}, nil }

// Settings asks for all settings.
func (c *Client) Settings(ctx context.Context) (SettingList, error) {
	return ask[SettingList](ctx, c, http.MethodGet, "/v1/settings", nil)
}

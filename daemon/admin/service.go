package admin

import (
	"context"
	_ "embed"
	"log/slog"
	"net/http"
	"time"

	"github.com/executord/executord/ipc/protocol"
)

// LogLevel is the least level that is logged: DEBUG, INFO, WARN or ERROR; in a request also in small letters.
type LogLevel struct {
	Level string `json:"level"`
}

func (a *App) logLevel(*call) (any, error) { return LogLevel{a.cfg.LogLevel.Level().String()}, nil }

func (a *App) setLogLevel(c *call) (any, error) {
	var level slog.Level
	wanted := body[LogLevel](c).Level
	if err := level.UnmarshalText([]byte(wanted)); err != nil {
		return nil, protocol.FieldError("level", "must be debug, info, warn or error, not %.40q", wanted)
	}
	a.cfg.LogLevel.Set(level)
	return a.logLevel(c)
}

// LogLevel asks for the level.
func (c *Client) LogLevel(ctx context.Context) (LogLevel, error) {
	return ask[LogLevel](ctx, c, http.MethodGet, "/v1/log-level", nil)
}

// SetLogLevel changes the level.
func (c *Client) SetLogLevel(ctx context.Context, l LogLevel) (LogLevel, error) {
	return ask[LogLevel](ctx, c, http.MethodPut, "/v1/log-level", l)
}

// Reload is what reading the settings again came to, by the names of settings.
type Reload struct {
	Applied     []string `json:"applied"`     // have their new value
	NeedRestart []string `json:"needRestart"` // have their old one until the service is restarted
}

func (a *App) reload(c *call) (any, error) {
	r, err := a.cfg.Service.Reload(c.who.name)
	if err != nil {
		return nil, conflict("cannot reload: %s", err)
	}
	r.Applied, r.NeedRestart = append([]string{}, r.Applied...), append([]string{}, r.NeedRestart...)
	return r, nil
}

// Reload has the settings read again.
func (c *Client) Reload(ctx context.Context) (Reload, error) {
	return ask[Reload](ctx, c, http.MethodPost, "/v1/reload", nil)
}

func (a *App) metrics(*call) (any, error) {
	if a.cfg.Metrics == nil {
		return nil, missing("", "there are no metrics: the settings turn them off")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
		a.cfg.Metrics.ServeHTTP(w, r)
	}), nil
}

// Metrics asks for the metrics, in the text format of Prometheus.
func (c *Client) Metrics(ctx context.Context) ([]byte, error) { return c.text(ctx, "/v1/metrics") }

//go:embed openapi.json
var openapiText []byte

func (a *App) openapi(*call) (any, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answerText(w, http.StatusOK, jsonText, openapiText) }), nil
}

// OpenAPI asks for the OpenAPI 3.1 document of the API.
func (c *Client) OpenAPI(ctx context.Context) ([]byte, error) { return c.text(ctx, "/v1/openapi.json") }

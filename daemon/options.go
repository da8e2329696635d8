package daemon

import (
	"log/slog"
	"net"

	"github.com/executord/executord/daemon/events"
	"github.com/executord/executord/daemon/settings"
	"github.com/executord/executord/daemon/telemetry"
)

// Option changes how a Daemon works.
type Option func(*options)

type options struct {
	version   string
	log       *slog.Logger
	level     *slog.LevelVar
	listeners []net.Listener
	hear      []func(events.Event)
	telemetry *telemetry.Telemetry
	reload    func(apply func(settings.Settings) error) (settings.Changes, error)
	loaded    *settings.Loaded // nil where nobody knows what the settings are from

	adminListener net.Listener
	succeeded     bool
}

// WithVersion is what callers are told; "devel" unless set.
func WithVersion(version string) Option { return func(o *options) { o.version = version } }

// WithLogger hears of everything that an operator should know. The default discards.
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.log = l } }

// WithLevel has reloads set the level of the log there.
func WithLevel(level *slog.LevelVar) Option { return func(o *options) { o.level = level } }

// WithListeners serves on listeners that are open already, in the place of Settings.Listen: on unix sockets and TCP. The
// operator is then served where WithAdminListener says, and not by Settings.AdminListen. Run closes them. Whether the file
// of a unix socket goes with it is for whoever opened it to say (SetUnlinkOnClose).
func WithListeners(listeners ...net.Listener) Option {
	return func(o *options) { o.listeners = append(o.listeners, listeners...) }
}

// WithAdminListener serves the operator on a unix socket that is open already, in the place of Settings.AdminListen. Run
// closes it.
func WithAdminListener(l net.Listener) Option { return func(o *options) { o.adminListener = l } }

// WithSuccessor says that somebody else goes on holding the listeners, as systemd does with its sockets, and will hand them
// to who serves next. Once the service drains it takes no connection any more: callers wait for the successor, where
// they would be turned away else.
func WithSuccessor() Option { return func(o *options) { o.succeeded = true } }

// WithEvents has hear called with the news of the service, in their order and on one goroutine. It may be slow: what it
// misses is left out, and counted in events.Event.Omitted. Run returns after it has had the last, or two seconds later.
func WithEvents(hear func(events.Event)) Option {
	return func(o *options) { o.hear = append(o.hear, hear) }
}

// WithTelemetry has metrics and traces go to t, which is for this Daemon only, rather than where Settings.Metrics and the
// OTEL_* variables of the process say. Run closes t, which does nothing where the providers in it are the caller's own.
func WithTelemetry(t *telemetry.Telemetry) Option { return func(o *options) { o.telemetry = t } }

// WithLoaded has Reload read the settings again, from the same command line and environment, and the file that they
// name. Without it a reload only reads the files again that the settings name: tokens and certificates.
func WithLoaded(l *settings.Loaded, args, environ []string) Option {
	return func(o *options) {
		o.loaded = l
		o.reload = func(apply func(settings.Settings) error) (settings.Changes, error) {
			return l.Reload(args, environ, apply)
		}
	}
}

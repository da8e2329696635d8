package settings

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/executord/executord/daemon/egress"
	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/ipc/executor"
)

// Settings are what the operator of the service decides. The tags are those of github.com/alecthomas/kong.
type Settings struct {
	Listen       []string      `env:"EXECUTORD_LISTEN" sep:"," default:"unix:/run/executord/executord.sock" placeholder:"ADDRESS" help:"Where to listen: unix:/path or tcp://127.0.0.1:port. May be repeated. Default: ${default}"`
	Workers      int           `env:"EXECUTORD_WORKERS" default:"${workers}" help:"Programs that run at once. Default: the number of CPUs, here ${default}"`
	Spares       int           `name:"spare-workers" env:"EXECUTORD_SPARE_WORKERS" default:"1" help:"Worker processes beyond those, which take over at once from one that had to be ended with its program. Default: ${default}"`
	Queue        int           `env:"EXECUTORD_QUEUE" default:"${queue}" help:"Requests that wait beyond those. Default: four for each CPU, here ${default}"`
	QueueShare   int           `name:"queue-per-caller" env:"EXECUTORD_QUEUE_PER_CALLER" default:"0" help:"Of those, requests of one caller. Default: all"`
	QueueTimeout time.Duration `env:"EXECUTORD_QUEUE_TIMEOUT" default:"30s" help:"How long a request waits at most. Default: ${default}"`
	WorkerBinary string        `env:"EXECUTORD_WORKER_BINARY" placeholder:"FILE" help:"The executor-worker to run. Default: beside this program, then in PATH"`
	WorkerRuns   int           `name:"worker-max-executions" env:"EXECUTORD_WORKER_MAX_EXECUTIONS" default:"1000" help:"A worker process is replaced after so many programs; 1 is a fresh process for each. Default: ${default}"`

	Default Limits `embed:"" prefix:"default-" group:"default" envprefix:"EXECUTORD_DEFAULT_"`
	Max     Limits `embed:"" prefix:"max-" group:"max" envprefix:"EXECUTORD_MAX_"`

	Egress Egress `embed:"" prefix:"egress-" envprefix:"EXECUTORD_EGRESS_"`

	AllowUID    []uint32 `name:"allow-uid" env:"EXECUTORD_ALLOW_UID" sep:"," placeholder:"UID" help:"Users besides root and the service's own who may use unix sockets"`
	TokenFile   string   `name:"token-file" env:"EXECUTORD_TOKEN_FILE" placeholder:"FILE" help:"Bearer tokens that callers on TCP need one of: a line with a name and a secret for each. Addresses beyond this machine can be listened on only with it"`
	AllowHost   []string `name:"allow-host" env:"EXECUTORD_ALLOW_HOST" sep:"," placeholder:"NAME" help:"Host headers besides those of loopback that are taken on TCP, as that of a reverse proxy"`
	AllowOrigin []string `name:"allow-origin" env:"EXECUTORD_ALLOW_ORIGIN" sep:"," placeholder:"ORIGIN" help:"Origins of web pages that may use the service; none unless given"`

	MaxSessions          int           `env:"EXECUTORD_MAX_SESSIONS" default:"256" help:"Sessions open at once. Default: ${default}"`
	MaxSessionExecutions int           `env:"EXECUTORD_MAX_SESSION_EXECUTIONS" default:"64" help:"Programs of one session at once, waiting ones included. Default: ${default}"`
	MaxMessageMiB        int           `name:"max-message" env:"EXECUTORD_MAX_MESSAGE" default:"32" placeholder:"MIB" help:"Size of one message. Default: ${default} MiB"`
	PingInterval         time.Duration `env:"EXECUTORD_PING_INTERVAL" default:"15s" help:"How often a client is probed; silent for two of these it counts as gone. Default: ${default}"`
	DrainGrace           time.Duration `env:"EXECUTORD_DRAIN_GRACE" default:"10s" help:"How long running programs may go on when the service stops. Default: ${default}"`

	LogLevel slog.Level `env:"EXECUTORD_LOG_LEVEL" default:"info" placeholder:"LEVEL" help:"debug, info, warn or error. Default: ${default}"`
}

// Egress is what programs with network "direct" may reach.
type Egress struct {
	Allow        []egress.Pattern `env:"ALLOW" sep:"," placeholder:"PATTERN" help:"What programs with network \"direct\" may reach: scheme://host[:port], with *.name for all names below one, and * for any host or port. May be repeated. Default: nothing, which refuses that network"`
	AllowPrivate []netip.Prefix   `env:"ALLOW_PRIVATE" sep:"," placeholder:"CIDR" help:"Addresses that they may reach although they are private, as 10.1.0.0/16. May be repeated"`
}

// Fetch performs exchanges within these bounds; nil when nothing is allowed.
func (e Egress) Fetch() (executor.Fetch, error) {
	if len(e.Allow) == 0 {
		if len(e.AllowPrivate) > 0 {
			return nil, errors.New("--egress-allow-private makes exceptions for addresses, but there is no --egress-allow")
		}
		return nil, nil
	}
	c := egress.Defaults()
	c.Allow, c.Private = e.Allow, e.AllowPrivate
	x, err := egress.New(c)
	if err != nil {
		return nil, err
	}
	return x.Fetch, nil
}

// Defaults are the variables of the tags that depend on the machine, and texts for the two groups of limits.
func Defaults() map[string]string {
	d := pool.Defaults()
	return map[string]string{
		"workers": fmt.Sprint(d.Workers),
		"queue":   fmt.Sprint(d.Queue),
		"default": "Limits where a request names none. Unless given: " + limitText(d.Limits),
		"max":     "The most that a request may ask for. Unless given: " + limitText(d.MaxLimits),
	}
}

package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"github.com/executord/executord/daemon/egress"
	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/daemon/server"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
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

// Limits of one program. Nil means the default of package pool. The tag limit is the name in protocol.Limits.
type Limits struct {
	CPU          *time.Duration `limit:"cpuMs" env:"CPU" placeholder:"TIME" help:"CPU time of a program"`
	Wall         *time.Duration `limit:"wallMs" env:"WALL" placeholder:"TIME" help:"Its own time, without waiting for tools"`
	Total        *time.Duration `limit:"totalMs" env:"TOTAL" placeholder:"TIME" help:"Its time in all"`
	HeapMiB      *int64         `limit:"heapMiB" name:"heap" env:"HEAP" placeholder:"MIB" help:"Its JavaScript heap"`
	BufferMiB    *int64         `limit:"bufferMiB" name:"buffers" env:"BUFFERS" placeholder:"MIB" help:"Its ArrayBuffers and memories of WebAssembly"`
	SlackMiB     *int64         `limit:"slackMiB" name:"slack" env:"SLACK" placeholder:"MIB" help:"Its process beyond that at rest, twice the heap and the buffers"`
	StackKiB     *int64         `limit:"stackKiB" name:"stack" env:"STACK" placeholder:"KIB" help:"Its JavaScript stack"`
	ResultBytes  *int64         `limit:"resultBytes" name:"result" env:"RESULT" placeholder:"BYTES" help:"Its encoded result"`
	MessageBytes *int64         `limit:"messageBytes" name:"tool-message" env:"TOOL_MESSAGE" placeholder:"BYTES" help:"Arguments of one tool call, its answer, and one HTTP request"`
	ModuleBytes  *int64         `limit:"moduleBytes" name:"modules" env:"MODULES" placeholder:"BYTES" help:"Its code and modules together"`
	ValueDepth   *int64         `limit:"valueDepth" name:"value-depth" env:"VALUE_DEPTH" placeholder:"N" help:"Nesting of one value that it gets or gives"`
	ValueParts   *int64         `limit:"valueParts" name:"value-parts" env:"VALUE_PARTS" placeholder:"N" help:"Objects and primitives in one such value"`
	LogBytes     *int64         `limit:"logBytes" name:"log" env:"LOG" placeholder:"BYTES" help:"Text of its console lines that are kept"`
	LogLines     *int64         `limit:"logLines" name:"log-lines" env:"LOG_LINES" placeholder:"N" help:"Its console lines that are kept"`
	ToolCalls    *int64         `limit:"toolCalls" name:"tool-calls" env:"TOOL_CALLS" placeholder:"N" help:"Its tool calls"`
	InFlight     *int64         `limit:"toolCallsInFlight" name:"tool-calls-in-flight" env:"TOOL_CALLS_IN_FLIGHT" placeholder:"N" help:"Its tool calls at once; more wait for their turn"`
	Fetches      *int64         `limit:"fetches" name:"fetches" env:"FETCHES" placeholder:"N" help:"Its HTTP requests"`
	FetchBytes   *int64         `limit:"fetchBytes" name:"fetch-bytes" env:"FETCH_BYTES" placeholder:"BYTES" help:"Bodies of its HTTP requests and responses"`
	Timers       *int64         `limit:"timers" name:"timers" env:"TIMERS" placeholder:"N" help:"Its timers that are pending"`
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

// limitText lists the limits by the names of their settings.
func limitText(l protocol.Limits) string {
	var list []string
	for s := range (Limits{}).settings() {
		list = append(list, s.name+" "+s.text(*l.Field(s.limit)))
	}
	return strings.Join(list, ", ")
}

// limitSetting is one field of Limits.
type limitSetting struct {
	name  string // of the flag, without the prefix
	limit string
	value any // *time.Duration or *int64, nil where it is not set
}

func (s limitSetting) text(n int64) string {
	if _, ok := s.value.(*time.Duration); ok {
		return (time.Duration(n) * time.Millisecond).String()
	}
	return fmt.Sprint(n)
}

// settings are the fields in their order.
func (l Limits) settings() iter.Seq[limitSetting] {
	return func(yield func(limitSetting) bool) {
		v := reflect.ValueOf(l)
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name := cmp.Or(f.Tag.Get("name"), strings.ToLower(f.Name))
			if !yield(limitSetting{name, f.Tag.Get("limit"), v.Field(i).Interface()}) {
				return
			}
		}
	}
}

// apply overwrites what is set, and refuses what is not positive.
func (l Limits) apply(prefix string, into *protocol.Limits) error {
	var faults []error
	for s := range l.settings() {
		n, set := int64(0), false
		switch v := s.value.(type) {
		case *time.Duration:
			if set = v != nil; set {
				n = v.Milliseconds()
				if n <= 0 {
					faults = append(faults, fmt.Errorf("--%s-%s is %s, must be at least 1ms", prefix, s.name, *v))
				}
			}
		case *int64:
			if set = v != nil; set {
				n = *v
				if n <= 0 {
					faults = append(faults, fmt.Errorf("--%s-%s is %d, must be positive", prefix, s.name, n))
				}
			}
		}
		if set {
			*into.Field(s.limit) = n
		}
	}
	return errors.Join(faults...)
}

// pool makes the pool's configuration, complete but for the launcher.
func (s *Settings) pool(log *slog.Logger) (pool.Config, error) {
	c := pool.Defaults()
	c.Workers, c.Spares, c.Queue, c.QueuePerIdentity, c.QueueTimeout = s.Workers, s.Spares, s.Queue, cmp.Or(s.QueueShare, s.Queue), s.QueueTimeout
	c.WorkerMaxExecutions = s.WorkerRuns
	c.Logger = log
	var err error
	c.Direct, err = s.Egress.Fetch()
	err = errors.Join(err, s.Max.apply("max", &c.MaxLimits))
	for _, name := range protocol.LimitNames() { // a lower maximum lowers a default that nobody set
		p := c.Limits.Field(name)
		*p = min(*p, *c.MaxLimits.Field(name))
	}
	err = errors.Join(err, s.Default.apply("default", &c.Limits))
	if err == nil {
		err = c.Check()
	}
	return c, err
}

// server makes the server's configuration.
func (s *Settings) server(version string, limits protocol.Limits, log *slog.Logger) (server.Config, error) {
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

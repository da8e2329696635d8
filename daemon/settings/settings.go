package settings

import (
	"log/slog"
	"net/netip"
	"reflect"
	"time"

	"github.com/executord/executord/daemon/egress"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// Settings are what the operator of the service decides. Each field is one setting, and its tags are the only place where
// that is declared:
//
//	name         of the flag
//	env          the variable, EXECUTORD_ and the name
//	default      as it would be written; without one the field's zero, or what auto says and derive sets
//	auto         what the default is where it depends on the machine or on other settings
//	unit         of a number; that of a duration is "duration"
//	bounds       LEAST..MOST of a number or a duration, of the bytes of a text, of the entries of a list
//	enum         the only values of a text
//	group        of groups; that of a struct is its fields'
//	placeholder  for the value, in help
//	help         one line, without the default
//	reload       a reload of the service applies it, or all fields of a struct; the rest needs a restart
//	secret       the value is never shown
//	limit        of protocol.Limits: unit, bounds and default are those of package pool
//
// What several settings must agree on is in rules.
type Settings struct {
	SettingsFile string `name:"settings-file" env:"EXECUTORD_SETTINGS_FILE" group:"file" bounds:"0..4095" placeholder:"FILE" auto:"none" help:"File of variables, as systemd's EnvironmentFile has them; flags and the environment come before it"`

	Listen      []string       `name:"listen" env:"EXECUTORD_LISTEN" group:"listen" bounds:"1..16" sep:"," default:"unix:/run/executord/executord.sock" placeholder:"ADDRESS" help:"Where callers connect: unix:/path or tcp://127.0.0.1:port"`
	AllowUID    []uint32       `name:"allow-uid" env:"EXECUTORD_ALLOW_UID" group:"listen" bounds:"0..1024" sep:"," auto:"none" placeholder:"UID" unit:"user ids" reload:"" help:"Users besides root and the service's own who may use unix sockets"`
	AllowGroup  []string       `name:"allow-group" env:"EXECUTORD_ALLOW_GROUP" group:"listen" bounds:"0..1024" sep:"," auto:"executord, where there is such a group" placeholder:"GROUP" reload:"" help:"Groups, by name or number, whose members may use unix sockets; the sockets belong to the first"`
	TokenFile   string         `name:"token-file" env:"EXECUTORD_TOKEN_FILE" group:"listen" bounds:"0..4095" auto:"none" placeholder:"FILE" reload:"" help:"Bearer tokens that callers on TCP need one of: a line with a name and a secret for each. Addresses beyond this machine can be listened on only with it, or with --tls-client-ca"`
	TLSCert     string         `name:"tls-cert" env:"EXECUTORD_TLS_CERT" group:"listen" bounds:"0..4095" auto:"none, and TCP is not encrypted" placeholder:"FILE" reload:"" help:"Certificate of the service in PEM, with those between it and its CA; with it TCP speaks TLS, and only that"`
	TLSKey      string         `name:"tls-key" env:"EXECUTORD_TLS_KEY" group:"listen" bounds:"0..4095" auto:"none" placeholder:"FILE" reload:"" help:"Its private key in PEM"`
	TLSClientCA string         `name:"tls-client-ca" env:"EXECUTORD_TLS_CLIENT_CA" group:"listen" bounds:"0..4095" auto:"none" placeholder:"FILE" reload:"" help:"CA certificates in PEM; with them every caller on TCP needs a certificate of one, whose name becomes its identity"`
	AllowHost   []string       `name:"allow-host" env:"EXECUTORD_ALLOW_HOST" group:"listen" bounds:"0..256" sep:"," auto:"none" placeholder:"NAME" reload:"" help:"Host headers besides those of loopback that are taken on TCP, as that of a reverse proxy"`
	Proxy       []netip.Prefix `name:"proxy" env:"EXECUTORD_PROXY" group:"listen" bounds:"0..256" sep:"," auto:"none" placeholder:"CIDR" reload:"" help:"Addresses of load balancers and reverse proxies, as 10.0.0.0/24: one of the callers behind them that keeps being refused does not make the others wait"`
	AllowOrigin []string       `name:"allow-origin" env:"EXECUTORD_ALLOW_ORIGIN" group:"listen" bounds:"0..256" sep:"," auto:"none" placeholder:"ORIGIN" reload:"" help:"Origins of web pages that may use the service"`

	AdminListen  string   `name:"admin-listen" env:"EXECUTORD_ADMIN_LISTEN" group:"admin" bounds:"0..112" auto:"admin.sock beside the first unix socket of --listen" placeholder:"ADDRESS" help:"Where the operator connects: unix:/path; nowhere when it is empty"`
	AdminGroup   []string `name:"admin-group" env:"EXECUTORD_ADMIN_GROUP" group:"admin" bounds:"0..1024" sep:"," auto:"executord-admin, where there is such a group" placeholder:"GROUP" help:"Groups, by name or number, whose members may operate the service, besides root and its own user; the socket belongs to the first"`
	AdminReadUID []uint32 `name:"admin-read-uid" env:"EXECUTORD_ADMIN_READ_UID" group:"admin" bounds:"0..1024" sep:"," auto:"none" placeholder:"UID" unit:"user ids" help:"Users who may look at what the operator sees, and do nothing"`

	Workers          int           `name:"workers" env:"EXECUTORD_WORKERS" group:"workers" bounds:"1..4096" unit:"programs" auto:"the number of CPUs, or what the quota of its cgroup comes to" reload:"" help:"Programs that run at once"`
	Spares           int           `name:"spare-workers" env:"EXECUTORD_SPARE_WORKERS" group:"workers" bounds:"0..4096" unit:"processes" default:"1" reload:"" help:"Worker processes beyond those, which take over at once from one that had to be ended with its program"`
	WorkerBinary     string        `name:"worker-binary" env:"EXECUTORD_WORKER_BINARY" group:"workers" bounds:"0..4095" auto:"executor-worker beside this program, then in PATH" placeholder:"FILE" help:"The executor-worker to run"`
	WorkerSocket     string        `name:"worker-socket" env:"EXECUTORD_WORKER_SOCKET" group:"workers" bounds:"0..107" auto:"none, and workers are child processes" placeholder:"FILE" help:"Socket of executor-worker.socket: each worker is a unit of systemd then, which a connection to it starts"`
	RequireLayers    []string      `name:"require-layers" env:"EXECUTORD_REQUIRE_LAYERS" group:"workers" bounds:"0..32" sep:"," auto:"none; what is missing is logged" placeholder:"LAYER" help:"Layers of isolation without which no worker is used, as seccomp or network-namespace; the status lists those in force"`
	WorkerRuns       int           `name:"worker-max-executions" env:"EXECUTORD_WORKER_MAX_EXECUTIONS" group:"workers" bounds:"1..1073741824" unit:"programs" default:"1000" reload:"" help:"A worker process is replaced after so many; 1 is a fresh process for each"`
	WorkerMaxAge     time.Duration `name:"worker-max-age" env:"EXECUTORD_WORKER_MAX_AGE" group:"workers" bounds:"1s..8760h" unit:"duration" default:"1h" reload:"" help:"And at this age, give or take a tenth"`
	WorkerStart      time.Duration `name:"worker-start-timeout" env:"EXECUTORD_WORKER_START_TIMEOUT" group:"workers" bounds:"1s..10m" unit:"duration" default:"10s" help:"A worker process that is not ready after so long, from its start or from a program's end, is replaced; a slow machine needs more"`
	HeartbeatTimeout time.Duration `name:"heartbeat-timeout" env:"EXECUTORD_HEARTBEAT_TIMEOUT" group:"workers" bounds:"1s..10m" unit:"duration" default:"5s" reload:"" help:"A worker process that is silent for so long is ended"`

	Queue        int           `name:"queue" env:"EXECUTORD_QUEUE" group:"queue" bounds:"0..1048576" unit:"requests" auto:"four for each of --workers" reload:"" help:"Requests that wait while all workers are busy; more are refused at once"`
	QueueShare   int           `name:"queue-per-caller" env:"EXECUTORD_QUEUE_PER_CALLER" group:"queue" bounds:"0..1048576" unit:"requests" auto:"all of --queue" reload:"" help:"Of those, requests of one caller"`
	QueueTimeout time.Duration `name:"queue-timeout" env:"EXECUTORD_QUEUE_TIMEOUT" group:"queue" bounds:"1ms..24h" unit:"duration" default:"30s" reload:"" help:"How long a request waits at most"`

	Retained       int           `name:"retained-executions" env:"EXECUTORD_RETAINED_EXECUTIONS" group:"retained" bounds:"0..4096" unit:"programs" auto:"the number of CPUs, as for --workers" reload:"" help:"Programs whose functions stay callable after their result, where the request asks for it: each keeps a worker process to itself, beyond --workers and --spare-workers; at 0 none does"`
	RetainedShare  int           `name:"retained-per-caller" env:"EXECUTORD_RETAINED_PER_CALLER" group:"retained" bounds:"0..4096" unit:"programs" auto:"half of --retained-executions, but at least 1" reload:"" help:"Of those, programs of one caller"`
	RetainIdle     time.Duration `name:"retain-idle" env:"EXECUTORD_RETAIN_IDLE" group:"retained" bounds:"1s..24h" unit:"duration" default:"5m" reload:"" help:"One that was not called for so long ends"`
	RetainLifetime time.Duration `name:"retain-lifetime" env:"EXECUTORD_RETAIN_LIFETIME" group:"retained" bounds:"1s..168h" unit:"duration" default:"1h" reload:"" help:"And in any case after so long, or less where the request says so"`

	Default Limits `prefix:"default-" envprefix:"EXECUTORD_DEFAULT_" group:"default" reload:""`
	Max     Limits `prefix:"max-" envprefix:"EXECUTORD_MAX_" group:"max" reload:""`

	Egress Egress `prefix:"egress-" envprefix:"EXECUTORD_EGRESS_" group:"egress" reload:""`

	MaxSessions          int           `name:"max-sessions" env:"EXECUTORD_MAX_SESSIONS" group:"sessions" bounds:"1..1048576" unit:"sessions" default:"256" reload:"" help:"Sessions open at once"`
	MaxSessionExecutions int           `name:"max-session-executions" env:"EXECUTORD_MAX_SESSION_EXECUTIONS" group:"sessions" bounds:"1..1048576" unit:"programs" default:"64" reload:"" help:"Programs of one session at once, waiting ones included"`
	MaxCallerSessions    int           `name:"max-caller-sessions" env:"EXECUTORD_MAX_CALLER_SESSIONS" group:"sessions" bounds:"1..1048576" unit:"sessions" auto:"all of --max-sessions" reload:"" help:"Sessions of one caller open at once"`
	MaxCallerExecutions  int           `name:"max-caller-executions" env:"EXECUTORD_MAX_CALLER_EXECUTIONS" group:"sessions" bounds:"1..1048576" unit:"programs" auto:"what all sessions may have" reload:"" help:"Programs of one caller at once, over all its sessions and single requests"`
	MaxMessageMiB        int           `name:"max-message" env:"EXECUTORD_MAX_MESSAGE" group:"sessions" bounds:"1..1024" unit:"MiB" default:"32" help:"Size of one message"`
	PingInterval         time.Duration `name:"ping-interval" env:"EXECUTORD_PING_INTERVAL" group:"sessions" bounds:"10ms..1h" unit:"duration" default:"15s" reload:"" help:"How often a client is probed; silent for two of these it counts as gone"`
	MaxSessionAge        time.Duration `name:"max-session-age" env:"EXECUTORD_MAX_SESSION_AGE" group:"sessions" bounds:"0s..8760h" unit:"duration" default:"24h" reload:"" help:"A session this old is told so, takes no more programs, and is closed when the last has ended: clients then open another; at 0s sessions may be as old as they like"`
	ResumeWindow         time.Duration `name:"resume-window" env:"EXECUTORD_RESUME_WINDOW" group:"sessions" bounds:"0s..1h" unit:"duration" default:"30s" help:"How long the programs of a lost connection go on, and their results are kept, until the client resumes the session; at 0s they are cancelled at once"`
	ResumeSessions       int           `name:"resume-sessions" env:"EXECUTORD_RESUME_SESSIONS" group:"sessions" bounds:"1..1048576" unit:"sessions" default:"64" help:"Sessions that wait for their clients at once, beyond --max-sessions; one caller may have half of them"`
	ResumeMiB            int           `name:"resume-memory" env:"EXECUTORD_RESUME_MEMORY" group:"sessions" bounds:"1..1048576" unit:"MiB" default:"256" help:"Messages kept for those sessions; one caller may have half of it"`

	DrainDelay  time.Duration `name:"drain-delay" env:"EXECUTORD_DRAIN_DELAY" group:"stop" bounds:"0s..1h" unit:"duration" default:"0s" reload:"" help:"How long callers are still served when the service stops, while /readyz turns them away: what a load balancer needs to notice"`
	DrainGrace  time.Duration `name:"drain-grace" env:"EXECUTORD_DRAIN_GRACE" group:"stop" bounds:"1ms..24h" unit:"duration" default:"10s" reload:"" help:"How long running programs may go on when the service stops"`
	StopTimeout time.Duration `name:"stop-timeout" env:"EXECUTORD_STOP_TIMEOUT" group:"stop" bounds:"1s..48h" unit:"duration" default:"1m30s" reload:"" help:"When whoever started the service kills it after asking it to stop (TimeoutStopSec of systemd); --drain-delay and --drain-grace have to fit"`
	StateDir    string        `name:"state-dir" env:"EXECUTORD_STATE_DIR" group:"stop" bounds:"0..4095" auto:"none" placeholder:"DIR" help:"Folder for what outlives a restart: a maintenance that is asked to"`

	Metrics bool `name:"metrics" env:"EXECUTORD_METRICS" group:"telemetry" default:"true" help:"Answer GET /metrics with a page for Prometheus, where callers connect. Export by OTLP is for the OTEL_* variables to say, as OTEL_EXPORTER_OTLP_ENDPOINT"`

	LogFormat string     `name:"log-format" env:"EXECUTORD_LOG_FORMAT" group:"log" enum:"auto,text,json,journal" default:"auto" placeholder:"FORMAT" help:"How lines are written: text, json, journal, or auto, which is the journal where systemd connects standard error to it, else text"`
	LogLevel  slog.Level `name:"log-level" env:"EXECUTORD_LOG_LEVEL" group:"log" enum:"debug,info,warn,error" default:"info" placeholder:"LEVEL" reload:"" help:"The least level that is logged: debug, info, warn or error"`
}

// groups are those of the settings, in the order of help.
var groups = []struct{ key, title string }{
	{"file", "Settings"},
	{"listen", "Callers"},
	{"admin", "Operator"},
	{"workers", "Workers"},
	{"queue", "Queue"},
	{"retained", "Programs that stay callable"},
	{"default", "Limits of a program whose request names none"},
	{"max", "The most that a request may ask for"},
	{"egress", `Network "direct"`},
	{"sessions", "Sessions"},
	{"stop", "Stopping"},
	{"telemetry", "Telemetry"},
	{"log", "Log"},
}

// Limits of one program.
type Limits struct {
	CPU          time.Duration `limit:"cpuMs" name:"cpu" env:"CPU" help:"CPU time of a program"`
	Wall         time.Duration `limit:"wallMs" name:"wall" env:"WALL" help:"Its own time, without waiting for tools"`
	Total        time.Duration `limit:"totalMs" name:"total" env:"TOTAL" help:"Its time in all"`
	HeapMiB      int64         `limit:"heapMiB" name:"heap" env:"HEAP" help:"Its JavaScript heap"`
	BufferMiB    int64         `limit:"bufferMiB" name:"buffers" env:"BUFFERS" help:"Its ArrayBuffers and memories of WebAssembly"`
	SlackMiB     int64         `limit:"slackMiB" name:"slack" env:"SLACK" help:"Its process beyond that at rest, twice the heap and the buffers"`
	StackKiB     int64         `limit:"stackKiB" name:"stack" env:"STACK" help:"Its JavaScript stack"`
	ResultBytes  int64         `limit:"resultBytes" name:"result" env:"RESULT" help:"Its encoded result"`
	MessageBytes int64         `limit:"messageBytes" name:"tool-message" env:"TOOL_MESSAGE" help:"Arguments of one tool call, its answer, and one HTTP request"`
	ModuleBytes  int64         `limit:"moduleBytes" name:"modules" env:"MODULES" help:"Its code and modules together"`
	ValueDepth   int64         `limit:"valueDepth" name:"value-depth" env:"VALUE_DEPTH" help:"Nesting of one value that it gets or gives"`
	ValueParts   int64         `limit:"valueParts" name:"value-parts" env:"VALUE_PARTS" help:"Objects and primitives in one such value"`
	LogBytes     int64         `limit:"logBytes" name:"log" env:"LOG" help:"Text of its console lines that are kept"`
	LogLines     int64         `limit:"logLines" name:"log-lines" env:"LOG_LINES" help:"Its console lines that are kept"`
	ToolCalls    int64         `limit:"toolCalls" name:"tool-calls" env:"TOOL_CALLS" help:"Its tool calls"`
	InFlight     int64         `limit:"toolCallsInFlight" name:"tool-calls-in-flight" env:"TOOL_CALLS_IN_FLIGHT" help:"Its tool calls at once; more wait for their turn"`
	Fetches      int64         `limit:"fetches" name:"fetches" env:"FETCHES" help:"Its HTTP requests"`
	FetchBytes   int64         `limit:"fetchBytes" name:"fetch-bytes" env:"FETCH_BYTES" help:"Bodies of its HTTP requests and responses"`
	Timers       int64         `limit:"timers" name:"timers" env:"TIMERS" help:"Its timers that are pending"`
}

// Protocol is l as the protocol and package pool have it.
func (l Limits) Protocol() (p protocol.Limits) {
	v := reflect.ValueOf(l)
	for i := range v.NumField() {
		n := v.Field(i).Int()
		if d, ok := v.Field(i).Interface().(time.Duration); ok {
			n = d.Milliseconds()
		}
		*p.Field(v.Type().Field(i).Tag.Get("limit")) = n
	}
	return p
}

// Egress is what programs with network "direct" may reach.
type Egress struct {
	Allow        []egress.Pattern `name:"allow" env:"ALLOW" bounds:"0..1024" sep:"," auto:"nothing, which refuses that network" placeholder:"PATTERN" help:"What programs with network \"direct\" may reach: scheme://host[:port], with *.name for all names below one, and * for any host or port"`
	AllowPrivate []netip.Prefix   `name:"allow-private" env:"ALLOW_PRIVATE" bounds:"0..1024" sep:"," auto:"none" placeholder:"CIDR" help:"Addresses that they may reach although they are private, as 10.1.0.0/16"`
}

// Fetch performs exchanges within these bounds; nil when nothing is allowed.
func (e Egress) Fetch() (executor.Fetch, error) {
	if len(e.Allow) == 0 {
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

package admin

import (
	"net/http"
	"strings"
)

// Route is one thing that can be done.
type Route struct {
	Method, Path string
	May          Right  // who may
	Command      string // of executorctl, that does the same
	Summary      string // for the OpenAPI document
	Query        []Query
	In, Out      any // zero values of the bodies; nil for none. A Text is no JSON
	handle       func(*App, *call) (any, error)
}

// Query is a parameter in the query of a URL.
type Query struct {
	Name, Summary string
	Zero          any // of its type: a string, an int, a bool or a []string with commas
}

// Right is what a caller may do.
type Right string

// The rights. Whoever may operate may read.
const (
	Read    Right = "read"
	Operate Right = "operate"
)

// Text is a body of that media type.
type Text string

const (
	eventStream Text = "text/event-stream"
	plainText   Text = "text/plain"
	jsonText    Text = "application/json"
	htmlText    Text = "text/html; charset=utf-8"
	cssText     Text = "text/css; charset=utf-8"
	scriptText  Text = "text/javascript; charset=utf-8"
)

// Routes is the whole API, and the page that shows it.
func Routes() []Route { return routes }

// forPeople tells that a route is a file of the live page. It is no part of the API, and may change at any time.
func (r Route) forPeople() bool { return !strings.HasPrefix(r.Path, "/v1/") }

var routes []Route

func init() { // their handlers look at the table
	routes = []Route{
		{http.MethodGet, "/v1/status", Read, "status", "What the service is doing, and how much.", nil, nil, Status{}, (*App).status},
		{http.MethodGet, "/v1/settings", Read, "setting list", "All settings in force, and where they are from.", nil, nil, SettingList{}, (*App).settings},
		{http.MethodGet, "/v1/workers", Read, "worker list", "The worker processes, oldest first.", nil, nil, WorkerList{}, (*App).workers},
		{http.MethodGet, "/v1/workers/{worker}", Read, "worker show", "One worker process.", nil, nil, Worker{}, (*App).worker},
		{http.MethodPost, "/v1/workers/{worker}/retire", Operate, "worker retire", "Has a worker replaced as soon as it has nothing to run.", nil, nil, Worker{}, (*App).retire},
		{http.MethodGet, "/v1/executions", Read, "execution list", "Executions that wait or run, longest first, then those that ended, latest first.", executionFilter, nil, ExecutionList{}, (*App).executions},
		{http.MethodGet, "/v1/executions/{execution}", Read, "execution show", "One execution, with its limits and its last console lines. Its caller's id will do where it is the only one of that.", nil, nil, Execution{}, (*App).execution},
		{http.MethodPost, "/v1/executions/{execution}/cancel", Operate, "execution cancel", "Ends an execution, queued, running or retained, as cancelled.", nil, Cancel{}, Execution{}, (*App).cancel},
		{http.MethodGet, "/v1/sessions", Read, "session list", "The sessions of callers, oldest first.", nil, nil, SessionList{}, (*App).sessions},
		{http.MethodGet, "/v1/events", Read, "event watch", "News as they come, as server-sent events (WHATWG HTML, section 9.2). The data of each is an Event, or a Missed where some are not kept any more. The field id of one resumes after it, as Last-Event-ID.", eventFilter, nil, eventStream, (*App).events},
		{http.MethodGet, "/v1/maintenance", Read, "maintenance show", "Whether the service is in maintenance, and why.", nil, nil, Maintenance{}, (*App).maintenance},
		{http.MethodPut, "/v1/maintenance", Operate, "maintenance enter", "Refuses new sessions and executions; what is under way finishes.", nil, EnterMaintenance{}, Maintenance{}, (*App).enterMaintenance},
		{http.MethodDelete, "/v1/maintenance", Operate, "maintenance leave", "Takes new sessions and executions again.", nil, nil, Maintenance{}, (*App).leaveMaintenance},
		{http.MethodPost, "/v1/check", Operate, "check", "Runs real programs through the protocol port and says what is wrong.", nil, nil, Check{}, (*App).check},
		{http.MethodGet, "/v1/log-level", Read, "log-level", "The least level that is logged.", nil, nil, LogLevel{}, (*App).logLevel},
		{http.MethodPut, "/v1/log-level", Operate, "log-level", "Changes the level until the next reload or restart.", nil, LogLevel{}, LogLevel{}, (*App).setLogLevel},
		{http.MethodPost, "/v1/reload", Operate, "reload", "Reads the settings again and applies those that can change while the service runs.", nil, nil, Reload{}, (*App).reload},
		{http.MethodGet, "/v1/metrics", Read, "metrics", "The metrics, in the text format of Prometheus.", nil, nil, plainText, (*App).metrics},
		{http.MethodGet, "/v1/openapi.json", Read, "openapi", "This document.", nil, nil, jsonText, (*App).openapi},
		{http.MethodGet, "/{$}", Read, "page", "The live page.", nil, nil, htmlText, pageFile("page.html", htmlText)},
		{http.MethodGet, "/page.css", Read, "page", "How the live page looks.", nil, nil, cssText, pageFile("page.css", cssText)},
		{http.MethodGet, "/page.js", Read, "page", "What the live page does.", nil, nil, scriptText, pageFile("page.js", scriptText)},
	}
}

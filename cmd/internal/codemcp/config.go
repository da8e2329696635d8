package codemcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/executord/executord/ipc/codemode"
)

// Bounds of the configuration.
const (
	MaxConfigBytes = 1 << 20
	maxServers     = 50
)

// Config is the file that other hosts of MCP have: {"mcpServers": {name: server}}.
type Config struct {
	Servers map[string]ServerConfig `json:"mcpServers"`
}

// ServerConfig is one MCP server: a command, which talks on its standard input and output, or a URL that speaks streamable
// HTTP. Values of Env and Headers may name variables of this process's environment as ${NAME}.
type ServerConfig struct {
	Type    string            `json:"type,omitempty"` // says no more than the rest: "stdio", "http"
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Cwd     string            `json:"cwd,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Approve Approvals         `json:"approve,omitzero"`
}

// Approval says what becomes of a call of a tool.
type Approval string

// The approvals. Without one a tool that says that it is destructive is asked about, and others are called.
const (
	Always Approval = "always" // it is made
	Ask    Approval = "ask"    // the user of the client is asked each time
	Never  Approval = "never"  // programs do not have the tool
)

// Approvals are the approvals of a server: one word for all tools, or an object of words by tool in which "*" stands for
// the others.
type Approvals map[string]Approval

// UnmarshalJSON reads a word or an object of words.
func (a *Approvals) UnmarshalJSON(text []byte) error {
	var word Approval
	if json.Unmarshal(text, &word) == nil {
		*a = Approvals{"*": word}
	} else if json.Unmarshal(text, (*map[string]Approval)(a)) != nil {
		return errors.New(`approve is "always", "ask" or "never", or an object of them by tool`)
	}
	for tool, word := range *a {
		if word != Always && word != Ask && word != Never {
			return fmt.Errorf(`approve of %q is "always", "ask" or "never", not %.40q`, tool, word)
		}
	}
	return nil
}

// of is the approval of a tool, by its name at the server.
func (a Approvals) of(tool string, destructive bool) Approval {
	for _, name := range []string{tool, "*"} {
		if word, ok := a[name]; ok {
			return word
		}
	}
	if destructive {
		return Ask
	}
	return Always
}

// ReadConfig reads and checks a configuration. lookup is os.LookupEnv, or a test's own.
func ReadConfig(r io.Reader, lookup func(string) (string, bool)) (Config, error) {
	var c Config
	text, err := io.ReadAll(io.LimitReader(r, MaxConfigBytes+1))
	if err != nil {
		return c, err
	}
	if len(text) > MaxConfigBytes {
		return c, fmt.Errorf("it has more than %d bytes", MaxConfigBytes)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if d.More() {
		return c, errors.New("there is more than one JSON value")
	}
	return c, c.check(lookup)
}

func (c Config) check(lookup func(string) (string, bool)) error {
	if len(c.Servers) > maxServers {
		return fmt.Errorf("it has more than %d servers", maxServers)
	}
	seen := map[string]string{ownNamespace: ownNamespace}
	for _, name := range slices.Sorted(maps.Keys(c.Servers)) {
		s := c.Servers[name]
		if err := s.check(lookup); err != nil {
			return fmt.Errorf("server %q: %w", name, err)
		}
		namespace := codemode.SanitizeToolName(name)
		if before, ok := seen[namespace]; ok {
			return fmt.Errorf("server %q: programs would know it as %s, and %q too", name, namespace, before)
		}
		seen[namespace] = name
		if fault := codemode.CheckNamespace(namespace); fault != "" {
			return fmt.Errorf("server %q: %s", name, fault)
		}
	}
	return nil
}

func (s ServerConfig) check(lookup func(string) (string, bool)) error {
	switch {
	case (s.Command == "") == (s.URL == ""):
		return errors.New("it needs a command or a url")
	case s.URL != "" && !strings.HasPrefix(s.URL, "https://") && !strings.HasPrefix(s.URL, "http://"):
		return errors.New("its url does not begin with https:// or http://")
	case s.URL != "" && (s.Args != nil || s.Env != nil || s.Cwd != ""):
		return errors.New("args, env and cwd are for a command")
	case s.Command != "" && s.Headers != nil:
		return errors.New("headers are for a url")
	}
	for _, values := range []map[string]string{s.Env, s.Headers} {
		for key, value := range values {
			expanded, err := expand(value, lookup)
			if err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			values[key] = expanded
		}
	}
	return nil
}

var variable = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)

func expand(value string, lookup func(string) (string, bool)) (_ string, err error) {
	out := variable.ReplaceAllStringFunc(value, func(name string) string {
		name = name[2 : len(name)-1]
		found, ok := lookup(name)
		if !ok {
			err = errors.Join(err, fmt.Errorf("$%s is not set", name))
		}
		return found
	})
	return out, err
}

// inherited are variables that every command gets. Others are this process's own, a token of the service among them.
var inherited = []string{"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"}

// environment is that of a server's command.
func (s ServerConfig) environment() []string {
	var env []string
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		env = append(env, name+"="+s.Env[name])
	}
	return env
}

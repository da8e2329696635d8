package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/executord/executord/daemon/executor"
	"github.com/executord/executord/daemon/server"
)

// Check returns all faults of s at once, as Faults: for settings that are not from Load.
func (s *Settings) Check() error {
	r := resolved{settings: *s, origins: map[string]Origin{}}
	if faults := r.check(map[string]bool{}); len(faults) > 0 {
		return faults
	}
	return nil
}

// check holds all settings to their bounds, and to the rules between them; those that are wrong already are left out.
func (r *resolved) check(wrong map[string]bool) (faults Faults) {
	fault := func(d *declaration, reason string) {
		wrong[d.name] = true
		faults = append(faults, r.fault(d, encode(d.in(&r.settings)), reason))
	}
	for i := range declared {
		if d := &declared[i]; !wrong[d.name] && !r.byDefault(d.name) {
			if reason := d.outside(&r.settings); reason != "" {
				fault(d, reason)
			}
		}
	}
	for _, rule := range slices.Concat(rules, limitRules()) {
		isWrong := func(name string) bool { return wrong[name] }
		if slices.ContainsFunc(rule.of, isWrong) {
			continue
		}
		if reason := rule.broken(&r.settings); reason != "" {
			d := find(rule.of[0])
			faults = append(faults, r.fault(d, encode(d.in(&r.settings)), reason))
		}
	}
	return faults
}

// outside says in which way the value is not within its bounds; empty when it is.
func (d *declaration) outside(s *Settings) string {
	v := d.in(s)
	text := encode(v)
	switch {
	case len(d.enum) > 0:
		if !slices.Contains(d.enum, text) {
			return "it must be one of " + strings.Join(d.enum, ", ")
		}
	case d.isDuration():
		if n := v.Int(); n < d.least || n > d.most {
			return fmt.Sprintf("it must be from %s to %s", durationText(time.Duration(d.least)), durationText(time.Duration(d.most)))
		}
	case v.CanInt():
		if n := v.Int(); n < d.least || n > d.most {
			return fmt.Sprintf("it must be from %d to %d %s", d.least, d.most, d.unit) + d.hint(n)
		}
	case d.isList():
		if n := int64(v.Len()); n < d.least || n > d.most {
			return fmt.Sprintf("it must have from %d to %d entries", d.least, d.most)
		}
	case v.Kind() == reflect.Bool:
	case int64(len(text)) < d.least || int64(len(text)) > d.most:
		return fmt.Sprintf("it must have from %d to %d bytes", d.least, d.most)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "it is no text in UTF-8"
	}
	return ""
}

// hint is for a number that may have been meant in another unit.
func (d *declaration) hint(n int64) string {
	if n <= d.most || sizes[d.unit] <= 1 {
		return ""
	}
	text := "; the unit is " + d.unit
	if meant := n / sizes[d.unit]; meant >= d.least && meant <= d.most {
		text += write(n, d.unit)
	}
	return text
}

// rule is what several settings must agree on, or what one must be beyond its bounds. The first is the one to blame.
type rule struct {
	of     []string
	broken func(*Settings) (reason string)
}

var rules = []rule{
	{[]string{"listen", "token-file", "tls-client-ca"}, brokenListen},
	{[]string{"token-file"}, brokenTokens},
	{[]string{"admin-listen", "listen"}, brokenAdminListen},
	{[]string{"admin-group"}, func(s *Settings) string { _, err := GroupIDs(s.AdminGroup); return reasonOf(err) }},
	{[]string{"allow-group"}, func(s *Settings) string { _, err := GroupIDs(s.AllowGroup); return reasonOf(err) }},
	{[]string{"tls-cert", "tls-key"}, func(s *Settings) string { _, err := ReadCertificate(s.TLSCert, s.TLSKey); return reasonOf(err) }},
	{[]string{"tls-key", "tls-cert"}, func(s *Settings) string {
		return over(s.TLSKey != "" && s.TLSCert == "", "there is no --tls-cert for it")
	}},
	{[]string{"tls-client-ca"}, func(s *Settings) string { _, err := ReadCAs(s.TLSClientCA); return reasonOf(err) }},
	{[]string{"tls-client-ca", "tls-cert"}, func(s *Settings) string {
		return over(s.TLSClientCA != "" && s.TLSCert == "", "callers can show certificates only where there is a --tls-cert")
	}},
	{[]string{"allow-host"}, func(s *Settings) string { return firstBroken(s.AllowHost, brokenHost) }},
	{[]string{"allow-origin"}, func(s *Settings) string { return firstBroken(s.AllowOrigin, brokenOrigin) }},
	{[]string{"worker-binary", "worker-socket"}, brokenWorkerBinary},
	{[]string{"worker-socket"}, brokenWorkerSocket},
	{[]string{"queue-per-caller", "queue"}, func(s *Settings) string {
		return over(s.QueueShare > s.Queue, "it must be at most --queue, which is %d", s.Queue)
	}},
	{[]string{"retained-per-caller", "retained-executions"}, func(s *Settings) string {
		if s.Retained > 0 && s.RetainedShare < 1 {
			return fmt.Sprintf("it must be at least 1 while --retained-executions is %d", s.Retained)
		}
		return over(s.RetainedShare > s.Retained, "it must be at most --retained-executions, which is %d", s.Retained)
	}},
	{[]string{"max-caller-sessions", "max-sessions"}, func(s *Settings) string {
		return over(s.MaxCallerSessions > s.MaxSessions, "it must be at most --max-sessions, which is %d", s.MaxSessions)
	}},
	{[]string{"egress-allow-private", "egress-allow"}, func(s *Settings) string {
		return over(len(s.Egress.AllowPrivate) > 0 && len(s.Egress.Allow) == 0, "it makes exceptions for addresses, but there is no --egress-allow")
	}},
	{[]string{"drain-grace", "drain-delay", "stop-timeout"}, func(s *Settings) string {
		if s.DrainDelay > 0 {
			return over(s.DrainDelay+s.DrainGrace >= s.StopTimeout, "with --drain-delay, which is %s, it must be shorter than --stop-timeout, which is %s",
				durationText(s.DrainDelay), durationText(s.StopTimeout))
		}
		return over(s.DrainGrace >= s.StopTimeout, "it must be shorter than --stop-timeout, which is %s", durationText(s.StopTimeout))
	}},
	{[]string{"state-dir"}, func(s *Settings) string { return brokenFolder(s.StateDir) }},
}

// limitRules hold each default to its maximum.
func limitRules() (list []rule) {
	for i := range declared {
		most := &declared[i]
		name, is := strings.CutPrefix(most.name, "max-")
		if !is || most.limit == "" {
			continue
		}
		usual := find("default-" + name)
		list = append(list, rule{[]string{usual.name, most.name}, func(s *Settings) string {
			return over(usual.in(s).Int() > most.in(s).Int(), "it must be at most --%s, which is %s", most.name, encode(most.in(s)))
		}})
	}
	return list
}

func over(broken bool, format string, args ...any) string {
	if !broken {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// firstBroken is about the first of a list that is broken, and names it where there are others.
func firstBroken(list []string, broken func(string) string) string {
	for _, one := range list {
		reason := broken(one)
		switch {
		case reason != "" && len(list) > 1:
			return fmt.Sprintf("%.200q: %s", one, reason)
		case reason != "":
			return reason
		}
	}
	return ""
}

func brokenTokens(s *Settings) string {
	tokens, err := ReadTokens(s.TokenFile)
	if err == nil {
		err = server.Policy{Tokens: tokens}.Check()
	}
	return reasonOf(err)
}

// brokenListen holds the addresses to the server's policy.
func brokenListen(s *Settings) string {
	seen := map[string]bool{}
	return firstBroken(s.Listen, func(text string) string {
		a, err := ParseAddress(text)
		if err == nil && s.TokenFile == "" && s.TLSClientCA == "" { // what is wrong with the file is another fault
			err = server.Policy{}.Check(a)
		}
		if err != nil {
			return err.Error()
		}
		key := a.Network() + " " + a.String()
		twice := seen[key] && !anyPort(a)
		seen[key] = true
		return over(twice, "it is there twice")
	})
}

// brokenAdminListen wants a unix socket of its own: only there the kernel says who is calling.
func brokenAdminListen(s *Settings) string {
	if s.AdminListen == "" {
		return ""
	}
	a, err := ParseAddress(s.AdminListen)
	switch {
	case err != nil:
		return err.Error()
	case a.Network() != "unix":
		return "it must be a unix socket"
	}
	taken := slices.ContainsFunc(s.Listen, func(text string) bool {
		other, err := ParseAddress(text)
		return err == nil && other.Network() == "unix" && other.String() == a.String()
	})
	return over(taken, "callers connect there, by --listen")
}

func anyPort(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.Port == 0
}

// brokenFolder takes one that is not there yet, too.
func brokenFolder(path string) string {
	if path == "" {
		return ""
	}
	info, err := os.Stat(path)
	switch {
	case !filepath.IsAbs(path):
		return "it must be absolute"
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return err.Error()
	}
	return over(!info.IsDir(), "it is no folder")
}

// brokenHost takes what a Host header has before its port.
func brokenHost(host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	if host == "" || len(host) > 253 || strings.ContainsAny(host, "/:@*? ") {
		return "it must be a name or an address, without scheme and port"
	}
	return ""
}

// brokenOrigin takes what browsers send as an Origin header: an origin in its serialized form, or null.
func brokenOrigin(origin string) string {
	u, err := url.Parse(origin)
	if origin == "null" || err == nil && u.Host != "" && origin == strings.ToLower(u.Scheme+"://"+u.Host) {
		return ""
	}
	return "it must be as a browser sends it: scheme://host or scheme://host:port, in lower case"
}

// brokenWorkerBinary: units have their own word on what they run.
func brokenWorkerBinary(s *Settings) string {
	if s.WorkerSocket != "" {
		return ""
	}
	_, err := executor.FindWorker(s.WorkerBinary)
	return reasonOf(err)
}

func brokenWorkerSocket(s *Settings) string {
	if s.WorkerSocket == "" {
		return ""
	}
	info, err := os.Stat(s.WorkerSocket)
	switch {
	case !filepath.IsAbs(s.WorkerSocket):
		return "it must be an absolute path"
	case err != nil:
		return reasonOf(err) + "; is executor-worker.socket started?"
	case info.Mode().Type() != fs.ModeSocket:
		return "it is no socket"
	}
	return ""
}

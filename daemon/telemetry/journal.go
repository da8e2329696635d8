package telemetry

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"unicode"

	"github.com/coreos/go-systemd/v22/journal"
)

// journalHandler sends records with their attributes as fields: EXECUTION=, SESSION=, WORKER= and so on. MESSAGE has them
// too, for those who only look at that.
type journalHandler struct {
	level    slog.Leveler
	fallback slog.Handler // where the journal does not take a record
	prefix   string       // of groups
	attrs    []slog.Attr  // flat
}

// maxFieldBytes is the longest name of a field that journald takes (journal-file.h, systemd 257).
const maxFieldBytes = 64

// reserved are fields with a meaning of their own, systemd.journal-fields(7).
var reserved = map[string]bool{"MESSAGE": true, "MESSAGE_ID": true, "PRIORITY": true, "SYSLOG_IDENTIFIER": true, "ERRNO": true}

func (h *journalHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level.Level() }

// Handle implements slog.Handler.
func (h *journalHandler) Handle(ctx context.Context, r slog.Record) error {
	attrs := append([]slog.Attr(nil), h.attrs...)
	r.Attrs(func(a slog.Attr) bool {
		attrs = flatten(attrs, h.prefix, a)
		return true
	})
	fields := map[string]string{"SYSLOG_IDENTIFIER": "executord"}
	var message strings.Builder
	message.WriteString(quoted(plain(r.Message), true))
	for _, a := range attrs {
		value := plain(a.Value.String())
		message.WriteString(" " + quoted(a.Key, false) + "=" + quoted(value, false))
		fields[fieldName(a.Key)] = value
	}
	if journal.Send(message.String(), priority(r.Level), fields) != nil {
		return h.fallback.Handle(ctx, r)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (h *journalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.attrs = append([]slog.Attr(nil), h.attrs...)
	for _, a := range attrs {
		next.attrs = flatten(next.attrs, h.prefix, a)
	}
	next.fallback = h.fallback.WithAttrs(attrs)
	return &next
}

// WithGroup implements slog.Handler.
func (h *journalHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	next := *h
	next.prefix += name + "."
	next.fallback = h.fallback.WithGroup(name)
	return &next
}

// flatten appends a, or what it groups.
func flatten(list []slog.Attr, prefix string, a slog.Attr) []slog.Attr {
	a.Value = a.Value.Resolve()
	if a.Equal(slog.Attr{}) {
		return list
	}
	if a.Value.Kind() != slog.KindGroup {
		a.Key = prefix + a.Key
		return append(list, a)
	}
	if a.Key != "" {
		prefix += a.Key + "."
	}
	for _, inner := range a.Value.Group() {
		list = flatten(list, prefix, inner)
	}
	return list
}

func priority(l slog.Level) journal.Priority {
	switch {
	case l >= slog.LevelError:
		return journal.PriErr
	case l >= slog.LevelWarn:
		return journal.PriWarning
	case l >= slog.LevelInfo:
		return journal.PriInfo
	}
	return journal.PriDebug
}

// fieldName makes a field of a key: capital letters, digits and underscores, a letter first.
func fieldName(key string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, key)
	name = strings.TrimLeft(name, "_0123456789")
	if name == "" || reserved[name] {
		name = "EXECUTORD_" + name
	}
	return name[:min(len(name), maxFieldBytes)]
}

// quoted is a word as slog's text has it; loose leaves spaces alone.
func quoted(s string, loose bool) string {
	if s == "" && !loose {
		return `""`
	}
	for _, r := range s {
		if !unicode.IsPrint(r) || !loose && (r == ' ' || r == '=' || r == '"') || r == unicode.ReplacementChar {
			return strconv.Quote(s)
		}
	}
	return s
}

package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/coreos/go-systemd/v22/journal"
	"golang.org/x/term"
)

// Format is how log lines are written.
type Format string

// The formats.
const (
	FormatAuto    Format = "auto"    // FormatJournal where standard error is the journal's, else FormatText
	FormatText    Format = "text"    // key=value, quoted
	FormatJSON    Format = "json"    // one object a line
	FormatJournal Format = "journal" // fields of the journal, https://systemd.io/JOURNAL_NATIVE_PROTOCOL/
)

// maxValueBytes bounds one value in a log line; the native stack of a crashed worker fits.
const maxValueBytes = 16 << 10

// NewLogger makes the logger of a service. Lines go to w, or to the journal, and to w where that does not take them. The
// level may change at any time if it is a *slog.LevelVar.
func NewLogger(w io.Writer, format Format, level slog.Leveler) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: level}
	switch format {
	case FormatAuto, FormatText:
		options.ReplaceAttr = bounded(onTerminal(w))
		text := slog.NewTextHandler(w, options)
		if format == FormatAuto && toJournal(w) {
			return slog.New(&journalHandler{level: level, fallback: text}), nil
		}
		return slog.New(text), nil
	case FormatJSON:
		options.ReplaceAttr = bounded(false)
		return slog.New(slog.NewJSONHandler(w, options)), nil
	case FormatJournal:
		if !journal.Enabled() {
			return nil, fmt.Errorf("cannot log to the journal: it does not listen on this machine")
		}
		options.ReplaceAttr = bounded(false)
		return slog.New(&journalHandler{level: level, fallback: slog.NewTextHandler(w, options)}), nil
	}
	return nil, fmt.Errorf("cannot log as %q: must be auto, text, json or journal", format)
}

// toJournal tells whether w is a standard error that systemd connected to the journal (JOURNAL_STREAM, systemd.exec(5)).
func toJournal(w io.Writer) bool {
	if w != io.Writer(os.Stderr) {
		return false
	}
	ours, err := journal.StderrIsJournalStream()
	return err == nil && ours && journal.Enabled()
}

func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// bounded keeps values within bounds and free of what a terminal would obey. Slog's handlers quote the rest.
func bounded(shortTime bool) func(groups []string, a slog.Attr) slog.Attr {
	return func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
			if shortTime {
				return slog.String(a.Key, a.Value.Time().Format("15:04:05.000"))
			}
			return a
		}
		if len(groups) == 0 && a.Key == slog.LevelKey {
			return a
		}
		switch a.Value.Kind() {
		case slog.KindString, slog.KindAny:
			a.Value = slog.StringValue(plain(a.Value.String()))
		}
		return a
	}
}

// plain is s within bounds, in valid UTF-8, without control characters but line ends and tabs.
func plain(s string) string {
	if len(s) > maxValueBytes {
		n := maxValueBytes
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + "…"
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20, r >= 0x7f && r < 0xa0, bidi(r):
			return utf8.RuneError
		}
		return r // bytes that are no UTF-8 come as utf8.RuneError
	}, s)
}

// bidi are the characters that reorder what stands around them, https://www.unicode.org/reports/tr9/.
func bidi(r rune) bool {
	return r == 0x061c || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

package telemetry

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
	_ "unsafe" // for go:linkname

	_ "github.com/coreos/go-systemd/v22/journal"
)

// journalSocket is where that package finds the journal.
//
//go:linkname journalSocket github.com/coreos/go-systemd/v22/journal.journalSocket
var journalSocket string

// fakeJournal listens where the journal would.
func fakeJournal(t *testing.T) *net.UnixConn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "socket")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	real := journalSocket
	journalSocket = path
	t.Cleanup(func() { journalSocket = real; _ = l.Close() })
	return l
}

// entry reads one datagram as journald does, one in a file descriptor too.
func entry(t *testing.T, l *net.UnixConn) map[string]string {
	t.Helper()
	_ = l.SetReadDeadline(time.Now().Add(10 * time.Second))
	buf, oob := make([]byte, 1<<20), make([]byte, 1024)
	n, oobn, _, _, err := l.ReadMsgUnix(buf, oob)
	if err != nil {
		t.Fatal(err)
	}
	text := buf[:n]
	if oobn > 0 {
		messages, err := syscall.ParseSocketControlMessage(oob[:oobn])
		if err != nil {
			t.Fatal(err)
		}
		fds, err := syscall.ParseUnixRights(&messages[0])
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fds[0]), "entry")
		defer f.Close()
		_, _ = f.Seek(0, io.SeekStart)
		if text, err = io.ReadAll(f); err != nil {
			t.Fatal(err)
		}
	}
	fields := map[string]string{}
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		name, value, short := bytes.Cut(line, []byte("="))
		if !short {
			size := binary.LittleEndian.Uint64(rest)
			value, rest = rest[8:8+size], rest[8+size+1:]
		}
		if _, twice := fields[string(name)]; twice {
			t.Errorf("field %s comes twice", name)
		}
		fields[string(name)] = string(value)
		text = rest
	}
	return fields
}

func logger(t *testing.T, w io.Writer, f Format, level slog.Leveler) *slog.Logger {
	t.Helper()
	log, err := NewLogger(w, f, level)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// hostile are texts as programs and clients choose them.
var hostile = map[string]string{
	"line":     "one\nlevel=ERROR msg=forged\nMESSAGE=forged",
	"return":   "over\rwritten",
	"ansi":     "\x1b[31mred\x1b]0;title\x07\x9b31m\u009b31m",
	"equals":   `a=b "c" d`,
	"format":   "%s %d %!x(MISSING) %n",
	"invalid":  "\xff\xfe\xc3(",
	"zero":     "a\x00b",
	"bidi":     "user\u202etxt.exe\u2066",
	"empty":    "",
	"huge":     strings.Repeat("é", 1<<20),
	"json":     `{"level":"ERROR"}`,
	"journal":  "x\nPRIORITY=0\n",
	"delete":   "a\x7fb",
	"newlines": strings.Repeat("\n", 100),
}

// What clients and programs choose is one value of one field, whatever it is made of.
func TestHostileTextInLogs(t *testing.T) {
	l := fakeJournal(t)
	for name, text := range hostile {
		for _, f := range []Format{FormatText, FormatJSON, FormatJournal} {
			t.Run(name+" as "+string(f), func(t *testing.T) {
				var out bytes.Buffer
				log := logger(t, &out, f, slog.LevelDebug)
				log.With("execution", text).Warn("worker ended", "detail", errors.New(text), slog.Group("caller", "identity", text))
				if f != FormatJournal {
					checkLine(t, out.String())
				}
				switch f {
				case FormatText:
					checkText(t, out.String())
				case FormatJSON:
					checkJSON(t, out.Bytes(), text)
				case FormatJournal:
					checkEntry(t, entry(t, l), text)
					if out.Len() > 0 {
						t.Errorf("%q was written too", out.String())
					}
				}
			})
		}
	}
}

// checkLine wants one line that a terminal shows as it is.
func checkLine(t *testing.T, text string) {
	t.Helper()
	if strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") || !utf8.ValidString(text) {
		t.Errorf("not one line: %.300q", text)
	}
	if len(text) > 3*(6*maxValueBytes)+1000 {
		t.Errorf("%d bytes", len(text))
	}
	for _, r := range strings.TrimSuffix(text, "\n") {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			t.Fatalf("a raw %q in %.300q", r, text)
		}
	}
}

// checkText wants the fields in their order: nothing in a value looks like one.
func checkText(t *testing.T, line string) {
	t.Helper()
	var keys []string
	rest := strings.TrimSuffix(line, "\n")
	for rest != "" {
		key, value, ok := strings.Cut(rest, "=")
		if !ok {
			t.Fatalf("no field in %.100q", rest)
		}
		keys = append(keys, key)
		if strings.HasPrefix(value, `"`) {
			end := 1
			for end < len(value) && value[end] != '"' {
				if value[end] == '\\' {
					end++
				}
				end++
			}
			rest = strings.TrimPrefix(value[end+1:], " ")
		} else {
			_, rest, _ = strings.Cut(value, " ")
		}
	}
	if got := strings.Join(keys, " "); got != "time level msg execution detail caller.identity" {
		t.Errorf("fields %s", got)
	}
}

func checkJSON(t *testing.T, line []byte, text string) {
	t.Helper()
	var o struct {
		Time                          time.Time
		Level, Msg, Execution, Detail string
		Caller                        struct{ Identity string }
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		t.Fatal(err)
	}
	if want := plain(text); o.Level != "WARN" || o.Msg != "worker ended" || o.Execution != want || o.Detail != want || o.Caller.Identity != want {
		t.Errorf("got %.300s", line)
	}
}

func checkEntry(t *testing.T, got map[string]string, text string) {
	t.Helper()
	value := plain(text)
	want := map[string]string{
		"PRIORITY": "4", "SYSLOG_IDENTIFIER": "executord", "EXECUTION": value, "DETAIL": value, "CALLER_IDENTITY": value,
	}
	message := got["MESSAGE"]
	delete(got, "MESSAGE")
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %.300q", got)
	}
	checkLine(t, message+"\n")
	if !strings.HasPrefix(message, "worker ended execution=") {
		t.Errorf("message %.100q", message)
	}
}

func TestTextsOfOurOwnKeepTheirLines(t *testing.T) {
	l := fakeJournal(t)
	log := logger(t, io.Discard, FormatJournal, slog.LevelInfo)
	stack := "goroutine 1:\n\tmain.go:1"
	log.Error("an execution panicked", "stack", stack, "worker", "worker-3", "pid", 42, "took", 1500*time.Millisecond)
	got := entry(t, l)
	if got["STACK"] != stack || got["WORKER"] != "worker-3" || got["PID"] != "42" || got["TOOK"] != "1.5s" || got["PRIORITY"] != "3" {
		t.Errorf("got %q", got)
	}
	if want := `an execution panicked stack="goroutine 1:\n\tmain.go:1" worker=worker-3 pid=42 took=1.5s`; got["MESSAGE"] != want {
		t.Errorf("message %s\nwant    %s", got["MESSAGE"], want)
	}
}

// An entry over the size of a datagram goes by a file.
func TestLargeEntry(t *testing.T) {
	l := fakeJournal(t)
	log := logger(t, io.Discard, FormatJournal, slog.LevelInfo)
	var attrs []any
	for i := range 20 {
		attrs = append(attrs, fmt.Sprintf("part%d", i), strings.Repeat("x", maxValueBytes))
	}
	log.Info("large", attrs...)
	if got := entry(t, l); len(got["PART19"]) != maxValueBytes || len(got) != 23 {
		t.Errorf("%d fields, the last of %d bytes", len(got), len(got["PART19"]))
	}
}

func TestFieldNames(t *testing.T) {
	for key, want := range map[string]string{
		"execution": "EXECUTION", "caller.identity": "CALLER_IDENTITY", "totalMs": "TOTALMS", "_hidden": "HIDDEN", "9lives": "LIVES",
		"message": "EXECUTORD_MESSAGE", "priority": "EXECUTORD_PRIORITY", "": "EXECUTORD_", "ü=\n": "EXECUTORD_",
		strings.Repeat("k", 100): strings.Repeat("K", maxFieldBytes),
	} {
		if got := fieldName(key); got != want {
			t.Errorf("%q became %q, want %q", key, got, want)
		}
	}
}

// Under systemd, which says so by JOURNAL_STREAM, lines go to the journal; otherwise they are text.
func TestAutoFormat(t *testing.T) {
	l := fakeJournal(t)
	var stat syscall.Stat_t
	if err := syscall.Fstat(syscall.Stderr, &stat); err != nil {
		t.Fatal(err)
	}
	t.Setenv("JOURNAL_STREAM", fmt.Sprintf("%d:%d", stat.Dev, stat.Ino))
	logger(t, os.Stderr, FormatAuto, slog.LevelInfo).Info("to the journal")
	if got := entry(t, l)["MESSAGE"]; got != "to the journal" {
		t.Errorf("message %q", got)
	}
	for name, stream := range map[string]string{"another file": fmt.Sprintf("%d:%d", stat.Dev, stat.Ino+1), "nonsense": "x"} {
		t.Setenv("JOURNAL_STREAM", stream)
		if toJournal(os.Stderr) {
			t.Errorf("%s is taken for the journal", name)
		}
	}
	t.Setenv("JOURNAL_STREAM", fmt.Sprintf("%d:%d", stat.Dev, stat.Ino))
	var out bytes.Buffer
	logger(t, &out, FormatAuto, slog.LevelInfo).Info("to a writer")
	if !strings.Contains(out.String(), `level=INFO msg="to a writer"`) {
		t.Errorf("got %q", out.String())
	}
}

// Where the journal is not there any more, lines are text.
func TestJournalThatIsGone(t *testing.T) {
	l := fakeJournal(t)
	var out bytes.Buffer
	log := logger(t, &out, FormatJournal, slog.LevelInfo).WithGroup("a").With("b", 1)
	_ = l.Close()
	log.Info("still heard", "c", 2)
	if !strings.Contains(out.String(), `msg="still heard" a.b=1 a.c=2`) {
		t.Errorf("got %q", out.String())
	}
	if _, err := NewLogger(&out, FormatJournal, slog.LevelInfo); err == nil {
		t.Error("a journal that is not there was taken")
	}
	if _, err := NewLogger(&out, "xml", slog.LevelInfo); err == nil || !strings.Contains(err.Error(), `"xml"`) {
		t.Errorf("a format that is none: %v", err)
	}
}

// The level changes while loggers that were derived before are in use.
func TestLevelChangesLive(t *testing.T) {
	fakeJournal(t)
	for _, f := range []Format{FormatText, FormatJSON, FormatJournal} {
		level := new(slog.LevelVar)
		log := logger(t, io.Discard, f, level).With("session", "s")
		if log.Enabled(t.Context(), slog.LevelDebug) || !log.Enabled(t.Context(), slog.LevelInfo) {
			t.Errorf("%s begins at another level", f)
		}
		level.Set(slog.LevelDebug)
		if !log.Enabled(t.Context(), slog.LevelDebug) {
			t.Errorf("%s does not hear of the new level", f)
		}
	}
}

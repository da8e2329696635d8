package entry

import (
	"regexp"
	"strings"
	"sync"

	"github.com/executord/executord/ipc/protocol"
)

// mistaken returns what to add to a syntax error when the text does not look like JavaScript at all: callers send what
// was meant for a shell, a Markdown block, or another language. Empty where nothing is known.
func mistaken(code string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(code), "\n")
	line = strings.TrimSpace(line)
	for _, m := range mistakes() {
		if m.looks.MatchString(line) {
			return "; " + m.hint
		}
	}
	return ""
}

// fenced matches a Markdown block. Engines read its fences as templates, and run it to some strange end: what begins so
// calls the empty string.
var fenced = regexp.MustCompile("^\\s*```")

// fences is a line that begins or ends a Markdown block. A template cannot have it, but with backslashes.
var fences = regexp.MustCompile("(?m)^\\s*(```|~~~)")

// fence is the error for a Markdown block.
func fence(t *text, form protocol.Form) error {
	at := strings.Index(t.code, "`") // only blanks, of one unit each, come before
	r := &Rejected{text: t, at: at, form: form}
	if form == protocol.FormAuto {
		r.form = protocol.FormScript
	}
	line, column := t.position(at)
	r.fault = r.error("Unexpected token '```'", line, column)
	return r
}

const fenceHint = "; it has Markdown fences in it: send only the JavaScript between them"

type mistake struct {
	looks *regexp.Regexp // matched against the first line
	hint  string
}

// Compiled when they are first wanted: a worker's start is everybody's time.
var mistakes = sync.OnceValue(func() []mistake {
	return []mistake{
		{
			regexp.MustCompile(`^(\$ +\S|#! */(usr/)?bin/(env +)?(ba|z|da)?sh\b|(sudo|ls|cd|cat|grep|rg|find|echo|mkdir|rm|cp|mv|touch|chmod|curl|wget|npm|npx|pnpm|yarn|node|deno|bun|python3?|pip3?|git|docker|kubectl|apt|apt-get|brew|head|tail|sed|awk|ps|kill|which|tar|ssh)( +[^=(.;\s]|$))`),
			"it looks like a shell command: the text is run as JavaScript, and there is no shell",
		},
		{
			regexp.MustCompile(`^(def \w+\(.*\).*:$|from [\w.]+ import |import \w+( as \w+)?$|print\(.*\)$|if .+:$|for \w+ in .+:$|elif |class \w+(\(.*\))?:$)`),
			"it looks like Python: the text is run as JavaScript",
		},
		{
			regexp.MustCompile(`^<(!DOCTYPE|html|script|div|body)\b`),
			"it looks like HTML: send only the JavaScript",
		},
	}
})

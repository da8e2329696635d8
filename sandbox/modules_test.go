package sandbox

import "testing"

func TestLocate(t *testing.T) {
	for _, c := range []struct{ specifier, referrer, want string }{
		{"./a.js", "main.js", "a.js"},
		{"../a.js", "lib/b/c.js", "lib/a.js"},
		{"../../../a.js", "lib/c.js", "a.js"},
		{"a.js", "lib/c.js", "a.js"},
		{"/a.js", "lib/c.js", "a.js"},
		{"./a.js", "./main.js", "a.js"},
		{"executor:///lib/a%20b.js", "main.js", "lib/a b.js"},
		{"node:fs", "main.js", "node:fs"},
		{"./b.js", "https://e.com/x/a.js", "https://e.com/x/b.js"},
		{"a//b/./c.js", "main.js", "a/b/c.js"},
		{"..", "lib/a/b.js", "lib"},
		{".", "lib/a.js", "lib"},
		{"@s/p", "x.js", "@s/p"},
	} {
		if got := locate(c.specifier, c.referrer); got != c.want {
			t.Errorf("%q from %q is %q, want %q", c.specifier, c.referrer, got, c.want)
		}
	}
}

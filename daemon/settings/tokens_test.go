package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/executord/executord/daemon/server"
)

const (
	secretA = "a0123456789abcdef"
	secretB = "b0123456789abcdef"
)

func tokenFile(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, mode); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTokenFile(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		mode       os.FileMode
		want       []server.Token
		err        string
	}{
		{"names and secrets", "# who\nci " + secretA + "\n\n  app-1\t" + secretB + "\r\n", 0o600, []server.Token{{Name: "ci", Secret: secretA}, {Name: "app-1", Secret: secretB}}, ""},
		{"a secret that is being replaced", "ci " + secretA + "\nci " + secretB, 0o440, []server.Token{{Name: "ci", Secret: secretA}, {Name: "ci", Secret: secretB}}, ""},
		{"one secret of two", "a " + secretA + "\nb " + secretA, 0o600, nil, `"a" and "b" have the same secret`},
		{"a secret without a name", "a " + secretA + "\n" + secretB, 0o600, nil, "line 2"},
		{"three words", "a b " + secretB, 0o600, nil, "line 1"},
		{"a name with other characters", "a:b " + secretB, 0o600, nil, "line 1"},
		{"a long name", strings.Repeat("n", maxTokenNameBytes+1) + " " + secretB, 0o600, nil, "line 1"},
		{"nothing", "# none yet\n", 0o600, nil, "has no tokens"},
		{"open to all", "a " + secretA, 0o644, nil, "open to every user"},
		{"too large", strings.Repeat("#\n", maxSmallFileBytes/2+1), 0o600, nil, "more than"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ReadTokens(tokenFile(t, tc.text, tc.mode))
			if !slices.Equal(got, tc.want) || tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("got %v, %v", got, err)
			}
			if err != nil && (strings.Contains(err.Error(), secretA) || strings.Contains(err.Error(), secretB)) {
				t.Errorf("the error tells a secret: %v", err)
			}
		})
	}
	if _, err := ReadTokens(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a directory: %v", err)
	}
	if tokens, err := ReadTokens(""); tokens != nil || err != nil {
		t.Errorf("no file: %v, %v", tokens, err)
	}
}

// TestOpenAddressesNeedTokens: the settings are refused before anything is started.
func TestOpenAddressesNeedTokens(t *testing.T) {
	tokens := tokenFile(t, "ci "+secretA, 0o600)
	short := tokenFile(t, "ci short", 0o600)
	for _, tc := range []struct {
		name string
		args []string
		want string // in the error; empty for none but that of the worker's binary
	}{
		{"loopback", []string{"--listen=tcp://127.0.0.1:0"}, ""},
		{"loopback of IPv6", []string{"--listen=tcp://[::1]:0"}, ""},
		{"all addresses", []string{"--listen=tcp://0.0.0.0:0"}, "only loopback"},
		{"one of two", []string{"--listen=unix:/a", "--listen=tcp://[::]:0"}, "only loopback"},
		{"with tokens", []string{"--listen=tcp://0.0.0.0:0", "--token-file=" + tokens}, ""},
		{"a short secret", []string{"--listen=tcp://0.0.0.0:0", "--token-file=" + short}, "secret of at least"},
		{"no file", []string{"--token-file=/nowhere/none"}, "no such file"},
		{"a name", []string{"--listen=tcp://example.com:80"}, "an IP address and a port"},
		{"no scheme", []string{"--listen=127.0.0.1:80"}, "begins with unix: or tcp://"},
		{"a relative path", []string{"--listen=unix:a"}, "must be absolute"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := load(tc.args...)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

package settings

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/executord/executord/daemon/server"
)

// Bounds of a file of tokens.
const (
	maxTokenFileBytes = 1 << 20
	maxTokenNameBytes = 64
)

// ReadTokens reads a file of bearer tokens: a line for each, its name and its secret with space between them. Empty lines
// and those that begin with '#' do not count. A name may stand there twice, so that a secret can be replaced while the old
// one is still in use; a secret has one name. No file name means no tokens.
func ReadTokens(file string) ([]server.Token, error) {
	if file == "" {
		return nil, nil
	}
	text, err := readSecretFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read tokens: %w", err)
	}
	var tokens []server.Token
	owner := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || fields[0][0] == '#' {
			continue
		}
		if len(fields) != 2 || !isTokenName(fields[0]) { // the line is not repeated: it may be a secret
			return nil, fmt.Errorf("cannot read tokens: line %d is not a name of letters, digits and ._- and a secret", n)
		}
		name, secret := fields[0], fields[1]
		if other, taken := owner[secret]; taken && other != name {
			return nil, fmt.Errorf("cannot read tokens: %q and %q have the same secret", other, name)
		}
		owner[secret] = name
		tokens = append(tokens, server.Token{Name: name, Secret: secret})
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("cannot read tokens: %s has no tokens", file)
	}
	return tokens, nil
}

// readSecretFile refuses a file that every user may read.
func readSecretFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", file)
	case info.Mode().Perm()&0o007 != 0:
		return nil, fmt.Errorf("%s is open to every user: its mode is %s", file, info.Mode().Perm())
	case info.Size() > maxTokenFileBytes:
		return nil, fmt.Errorf("%s has more than %d bytes", file, maxTokenFileBytes)
	}
	return io.ReadAll(io.LimitReader(f, maxTokenFileBytes))
}

func isTokenName(name string) bool {
	return len(name) <= maxTokenNameBytes && strings.Trim(name,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

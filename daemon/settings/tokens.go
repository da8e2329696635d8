package settings

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/executord/executord/daemon/server"
)

// Bounds of a file of tokens or certificates, and of the name of a token.
const (
	maxSmallFileBytes = 1 << 20
	maxTokenNameBytes = 64
)

// ReadTokens reads a file of bearer tokens: a line for each, its name and its secret with space between them. Empty lines
// and those that begin with '#' do not count. A name may stand there twice, so that a secret can be replaced while the old
// one is still in use; a secret has one name. No file name means no tokens.
func ReadTokens(file string) ([]server.Token, error) {
	if file == "" {
		return nil, nil
	}
	text, err := readRegularFile(file, everybody)
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

// everybody is the part of a file's mode that is about all users.
const everybody fs.FileMode = 0o007

// readRegularFile reads a file of bounded size. One whose mode has any of the bits that are not wanted is refused.
func readRegularFile(file string, unwanted fs.FileMode) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not keep the service waiting
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
	case info.Mode().Perm()&unwanted != 0:
		return nil, fmt.Errorf("%s is open to every user: its mode is %s", file, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSmallFileBytes+1)) // it may grow meanwhile, or have no size
	if err == nil && len(text) > maxSmallFileBytes {
		return nil, fmt.Errorf("%s has more than %d bytes", file, maxSmallFileBytes)
	}
	return text, err
}

func isTokenName(name string) bool {
	return len(name) <= maxTokenNameBytes && strings.Trim(name,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// allPaths is what all areas need.
var allPaths = []string{
	"url", "urlpattern", "encoding", "streams", "compression", "fetch", "FileAPI", "dom", "console", "hr-time",
	"performance-timeline", "user-timing", "html/webappapis", "html/infrastructure", "html/resources", "WebCryptoAPI",
	"webidl", "webmessaging", "wasm", "xhr", "common", "resources", "interfaces", "mimesniff", "eventsource", "websockets",
	"scheduler", "web-locks", "service-workers/service-worker/resources", "images", "media", "storage/buckets/resources",
	"LICENSE.md",
}

// layCommand is wpt lay.
type layCommand struct {
	Git   string   `required:"" placeholder:"DIR" help:"A git directory: .git of a clone, or a bare repository."`
	Rev   string   `default:"HEAD" help:"The commit. Default: ${default}."`
	Out   string   `required:"" placeholder:"DIR" help:"Where the files go."`
	Paths []string `arg:"" optional:"" help:"Files and folders. Default: what the areas need."`
}

// Help is shown below the flags.
func (layCommand) Help() string {
	return "The suite is https://github.com/web-platform-tests/wpt; the figures of other runtimes and the floors are for " +
		"its revision " + peers.Revision + " (" + peers.Date + "). A clone without history is enough: git init --bare wpt.git; " +
		"git -C wpt.git fetch --depth 1 https://github.com/web-platform-tests/wpt " + peers.Revision + "; " +
		"wpt lay --git wpt.git --rev FETCH_HEAD --out DIR. Nothing of the suite is to be committed here."
}

// Run writes the files, and the revision into DIR/REVISION. What the git directory lacks is named and left out.
func (c *layCommand) Run(ctx context.Context, s streams) error {
	if len(c.Paths) == 0 {
		c.Paths = allPaths
	}
	list, err := c.git(ctx, append([]string{"ls-tree", "-r", "-z", c.Rev, "--"}, c.Paths...)...).Output()
	if err != nil {
		return fmt.Errorf("cannot list the files: %w", err)
	}
	written, missing, err := c.write(ctx, strings.Split(string(list), "\x00"), s.err)
	if err != nil {
		return err
	}
	revision, err := c.git(ctx, "log", "-1", "--format=%H %cs", c.Rev).Output()
	if err != nil {
		return fmt.Errorf("cannot read the commit: %w", err)
	}
	printf(s.out, "%d files, %d missing, at %s", written, missing, revision)
	return os.WriteFile(filepath.Join(c.Out, "REVISION"), revision, 0o644)
}

// git is a command that never asks a remote for what the directory lacks.
func (c *layCommand) git(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", append([]string{"--git-dir=" + c.Git}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_NO_LAZY_FETCH=1")
	return cmd
}

// write writes the files of ls-tree's lines, by one git that answers with contents.
func (c *layCommand) write(ctx context.Context, lines []string, report io.Writer) (written, missing int, err error) {
	cmd := c.git(ctx, "cat-file", "--batch")
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	defer func() {
		in.Close()
		err = errors.Join(err, cmd.Wait())
	}()
	contents := bufio.NewReader(out)
	for _, line := range lines {
		name, object, ok := entry(line)
		if !ok {
			continue
		}
		if _, err := fmt.Fprintln(in, object); err != nil {
			return written, missing, err
		}
		text, found, err := readObject(contents)
		switch {
		case err != nil:
			return written, missing, err
		case !found:
			missing++
			printf(report, "not in the git directory: %s\n", name)
		default:
			if err := c.put(name, text); err != nil {
				return written, missing, err
			}
			written++
		}
	}
	return written, missing, nil
}

// entry reads a line of ls-tree. Links are passed over.
func entry(line string) (name, object string, ok bool) {
	meta, name, _ := strings.Cut(line, "\t")
	f := strings.Fields(meta)
	const link = "120000"
	if len(f) != 3 || f[1] != "blob" || f[0] == link || !filepath.IsLocal(name) {
		return "", "", false
	}
	return name, f[2], true
}

// readObject reads one answer of cat-file --batch.
func readObject(r *bufio.Reader) (text []byte, found bool, err error) {
	head, err := r.ReadString('\n')
	if err != nil {
		return nil, false, fmt.Errorf("cannot read from git: %w", err)
	}
	f := strings.Fields(head)
	if len(f) != 3 {
		return nil, false, nil
	}
	size, err := strconv.Atoi(f[2])
	if err != nil {
		return nil, false, fmt.Errorf("cannot read from git: %w", err)
	}
	text = make([]byte, size+1) // a line end follows
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, false, fmt.Errorf("cannot read from git: %w", err)
	}
	return text[:size], true, nil
}

func (c *layCommand) put(name string, text []byte) error {
	path := filepath.Join(c.Out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

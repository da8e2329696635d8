package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/executord/executord/daemon/pool"
)

// workerName is the worker's binary.
const workerName = "executor-worker"

// FindWorker returns the path of the worker binary: path itself when it is not empty, else the one beside this
// executable, else the one in PATH.
func FindWorker(path string) (string, error) {
	if path != "" {
		if _, err := exec.LookPath(path); err != nil {
			return "", fmt.Errorf("cannot use worker binary: %w", err)
		}
		return path, nil
	}
	if self, err := os.Executable(); err == nil {
		if self, err = filepath.EvalSymlinks(self); err == nil {
			beside := filepath.Join(filepath.Dir(self), workerName)
			if _, err := exec.LookPath(beside); err == nil {
				return beside, nil
			}
		}
	}
	path, err := exec.LookPath(workerName)
	if err != nil {
		return "", fmt.Errorf("cannot find %s beside this program or in PATH", workerName)
	}
	return path, nil
}

// StartPool starts a pool whose workers are child processes that run the worker binary, and waits until they are ready.
func StartPool(ctx context.Context, binary string, c pool.Config) (*pool.Pool, error) {
	launcher, err := pool.NewChild(ctx, pool.ChildConfig{Path: binary})
	if err != nil {
		return nil, err
	}
	c.Launcher = launcher
	p, err := pool.New(c)
	if err != nil {
		return nil, errors.Join(err, launcher.Close())
	}
	if err := p.WaitReady(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

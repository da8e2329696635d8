package executor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// workerName is the worker's binary.
const workerName = "executor-worker"

// FindWorker returns the absolute path of the worker binary, for workers begin in a folder of their own: that of path when
// it is not empty, else the one beside this executable, else the one in PATH.
func FindWorker(path string) (string, error) {
	if path != "" {
		found, err := exec.LookPath(path)
		if err != nil {
			return "", fmt.Errorf("cannot use worker binary: %w", err)
		}
		return filepath.Abs(found)
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

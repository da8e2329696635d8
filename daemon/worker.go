package daemon

import (
	"context"
	"errors"

	"github.com/executord/executord/daemon/pool"
)

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

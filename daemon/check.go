package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/executord/executord/daemon/executor"
	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/ipc/protocol"
)

// selfCheck runs one real program from end to end, with a call of a tool and bytes both ways, so that a service that
// cannot do its work does not take any.
func selfCheck(ctx context.Context, e executor.Executor) error {
	r := executor.Request{
		Execute: protocol.Execute{
			Code: "const got = await check.echo(new Uint8Array([1, 2, 3])); got.length * 14", Form: protocol.FormScript, Name: "check.js",
		},
		Identity: "check",
	}
	r.Provide(executor.Provider{Name: "check", Tools: map[string]executor.Tool{
		"echo": executor.Func(func(b []byte) []byte { return b }),
	}})
	o, err := e.Execute(ctx, r)
	if err == nil {
		err = o.Err()
	}
	if err != nil {
		return fmt.Errorf("cannot run a program: %w", err)
	}
	if string(o.Value) != "42" {
		return fmt.Errorf("cannot run a program: what is 42 came to %.40q", o.Value)
	}
	return nil
}

// workersReady says why there is no worker at all; being busy is not unreadiness.
func workersReady(p *pool.Pool) error {
	s := p.Stats()
	if s.Idle+s.Running+s.Restoring > 0 {
		return nil
	}
	if s.LastFailure != "" {
		return fmt.Errorf("no worker runs: %s", s.LastFailure)
	}
	return errors.New("no worker runs yet")
}

package client_test

import (
	"context"
	"fmt"
	"log"

	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

func Example() {
	ctx := context.Background()
	c, err := client.Dial(ctx, "unix:/tmp/executord.sock")
	if err != nil {
		log.Fatal(err)
	}
	request := executor.Request{Execute: protocol.Execute{Code: `await math.add(2, 3)`}}
	request.Provide(executor.Provider{Name: "math", Tools: map[string]executor.Tool{
		"add": executor.Func(func(a, b float64) float64 { return a + b }),
	}})
	outcome, err := c.Execute(ctx, request)
	if err == nil {
		err = outcome.Err() // how the program ended
	}
	var sum int
	if err == nil {
		err = protocol.Unmarshal(outcome.Value, &sum)
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum) // 5
	_ = c.Close()
}

package executor_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/executord/executord/daemon/executor"
	"github.com/executord/executord/ipc/protocol"
)

// A program that calls a tool of this process, in a worker that was started for it. The worker binary is found beside
// this program or in PATH; Config.WorkerBinary names another.
func Example() {
	ctx := context.Background()
	e, err := executor.New(ctx, executor.Config{Workers: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	request := executor.Request{Execute: protocol.Execute{Code: `await math.add(2, 3)`}}
	request.Provide(executor.Provider{Name: "math", Tools: map[string]executor.Tool{
		"add": executor.Func(func(a, b float64) float64 { return a + b }),
	}})
	outcome, err := e.Execute(ctx, request)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(outcome.Value))
	// Output: 5
}

// Every ending has a name, and comes with what the program had printed.
func ExampleNew_limits() {
	ctx := context.Background()
	e, err := executor.New(ctx, executor.Config{Workers: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	outcome, err := e.Execute(ctx, executor.Request{Execute: protocol.Execute{
		Code:   `console.log("thinking"); for (;;);`,
		Limits: protocol.Limits{CPUMs: 50},
	}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(outcome.Logs[0].Text, errors.Is(outcome.Err(), protocol.CPUTimeout))
	// Output: thinking true
}

// A program may leave functions, iterators and streams with its host, which calls them as it likes.
func ExampleNewHandles() {
	ctx := context.Background()
	e, err := executor.New(ctx, executor.Config{Workers: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	request := executor.Request{Session: "mine", Execute: protocol.Execute{
		Code: `
			const pages = ["first", "second", "third"];
			return { count: () => pages.length, read: (async function* () { yield* pages })() }`,
		Retain: &protocol.Retain{},
	}}
	outcome, err := e.Execute(ctx, request)
	if err != nil {
		log.Fatal(err)
	}
	handles := executor.NewHandles(e, request)
	defer handles.Close()
	list, err := handles.In(outcome.Value)
	if err != nil {
		log.Fatal(err)
	}
	var count int
	if err := list[0].CallInto(ctx, &count); err != nil {
		log.Fatal(err)
	}
	fmt.Println(count)
	for page, err := range list[1].All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(page))
	}
	// Output:
	// 3
	// "first"
	// "second"
	// "third"
}

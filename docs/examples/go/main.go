// Command go runs what a model wrote for the codemode dialect, with a tool that is a Go function:
//
//	go run ./docs/examples/go unix:/tmp/executord.sock
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/codemode"
	"github.com/executord/executord/ipc/executor"
)

const program = `async () => {
  const prices = await Promise.all(["tea", "milk"].map((item) => shop.price_of({ item })));
  console.log("asked for", prices.length);
  return prices.reduce((sum, price) => sum + price, 0);
}`

func main() {
	ctx := context.Background()
	service, err := client.Dial(ctx, os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer service.Close()
	shop := codemode.Provider{Name: "shop", Tools: []codemode.Tool{
		{Name: "price-of", Call: executor.Func(func(order struct{ Item string }) int {
			return len(order.Item)
		})},
	}}
	result := codemode.New(service, codemode.Config{}).Execute(ctx, program, []codemode.Provider{shop}, codemode.Options{})
	fmt.Printf("%s %q %q\n", result.Value, result.Logs, result.Error)
}

package main

import "fmt"

// program is what an engine runs. It has a provider `codemode` with the tools echo, which answers with its argument, and
// len, which answers with the length of bytes.
type program struct {
	name, code string
	want       int // the value, or the length of a string
}

// The programs that bars are set for by name.
const (
	onePlusOne   = "1+1"
	oneCall      = "1 call"
	hundredCalls = "100 calls"
	bytesIn      = "1 MiB bytes argument"
)

var programs = []program{
	{onePlusOne, "async () => 1 + 1", 2},
	{oneCall, calls(1), 1},
	{"10 calls", calls(10), 10},
	{hundredCalls, calls(100), 100},
	{"100 parallel", "async () => (await Promise.all(Array.from({ length: 100 }, () => codemode.echo(1)))).length", 100},
	{"1 MiB string", "async () => 'x'.repeat(1048576)", 1048576},
	{bytesIn, "async () => codemode.len(new Uint8Array(1048576))", 1048576},
}

func calls(n int) string {
	return fmt.Sprintf("async () => { let t = 0; for (let i = 0; i < %d; i++) t += await codemode.echo(1); return t; }", n)
}

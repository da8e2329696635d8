//go:build executor_faults

package sandbox

// #include <signal.h>
// #include <stdlib.h>
// #include <string.h>
// #include <unistd.h>
// static void segv(void) { volatile int* p = (int*)8; *p = 1; }
// static void spin(void) { for (;;) { volatile int x = 0; (void)x; } }
// static void fill(void) { for (;;) { char* p = malloc(8 << 20); if (p == NULL) _exit(71); memset(p, 1, 8 << 20); } }
import "C"

import (
	"math"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/executord/executord/ipc/worker"
)

// onLog makes a worker of this build die when a program prints "fault:NAME", after that line was sent: the suite's
// way to native crashes. It is never part of a package.
func onLog(e *execution, text string) {
	name, ok := strings.CutPrefix(text, "fault:")
	if !ok {
		return
	}
	e.console.flush()
	e.flush()
	switch name {
	case "abort":
		C.abort()
	case "segv":
		C.signal(C.SIGSEGV, nil) // the default action: Go's handler would turn it into a trace and status 2
		C.segv()
	case "kill":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "exit":
		C._exit(3)
	case "spin":
		C.spin()
	case "fill":
		C.fill()
	case "stop":
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case "garbage":
		syscall.Write(3, []byte("\xff\xff\xff\xffgarbage"))
	case "panic":
		panic("fault")
	}
}

// baseURL gives a worker of this build the program's name as the base of relative addresses, where it is one: the suite
// of web-platform-tests needs that.
func baseURL(e *execution) string {
	if strings.HasPrefix(e.request.Name, "http://") || strings.HasPrefix(e.request.Name, "https://") {
		return e.request.Name
	}
	return ""
}

// without tells that a layer of the limits is broken in this build: the program's name lists those, as in
// "without:engine,watchdog". They are engine (V8 is not told to stop), watchdog (the worker does not end itself), heap
// (V8's limits on heap and buffers are far), stack (so is that on the stack), rlimit (there is none), calls and turns
// (tool calls are not counted), result (its size is not looked at), timers (nor their number).
func without(request worker.Execute, layer string) bool {
	list, ok := strings.CutPrefix(request.Name, "without:")
	return ok && slices.Contains(strings.Split(list, ","), layer)
}

// effective are the limits that V8 gets.
func effective(request worker.Execute) worker.Limits {
	l := request.Limits
	if without(request, "heap") {
		l.HeapBytes, l.BufferBytes = spareHeapBytes, math.MaxInt64/2
	}
	if without(request, "stack") {
		l.StackBytes = 1 << 40
	}
	if without(request, "result") {
		l.ResultBytes = math.MaxInt64 / 2
	}
	return l
}

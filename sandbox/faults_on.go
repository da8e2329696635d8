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
	"os"
	"strings"
	"syscall"
)

// onLog makes a worker of this build die when a program prints "fault:NAME", after that line was sent: the suite's
// way to native crashes. It is never part of a package.
func onLog(e *execution, text string) {
	name, ok := strings.CutPrefix(text, "fault:")
	if !ok {
		return
	}
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

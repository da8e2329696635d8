//go:build executor_faults

package sandbox

// #define _GNU_SOURCE
// #include <signal.h>
// #include <stdlib.h>
// #include <string.h>
// #include <sys/mman.h>
// #include <sys/syscall.h>
// #include <time.h>
// #include <unistd.h>
// #define FAULT static __attribute__((noinline)) void
// FAULT fault_segv(void) { volatile int* p = (int*)8; *p = 1; }
// static volatile int* empty_file;
// __attribute__((constructor)) static void map_empty_file(void) { empty_file = mmap(NULL, 4096, PROT_READ, MAP_SHARED, memfd_create("empty", 0), 0); }
// FAULT fault_bus(void) { (void)*empty_file; }
// FAULT fault_call(void) { void (*volatile f)(void) = (void (*)(void))16; f(); __asm__(""); }
// FAULT fault_ill(void) {
// #if defined(__x86_64__)
//   __asm__("ud2");
// #else
//   __asm__(".inst 0");
// #endif
// }
// FAULT fault_trap(void) {
// #if defined(__x86_64__)
//   __asm__("int3; ud2");
// #else
//   __asm__("brk #0");
// #endif
// }
// FAULT fault_fpe(void) { volatile int zero = 0; zero = 7 / zero; }
// FAULT fault_abort(void) { abort(); }
// // Two functions of V8 by their names in C++: v8::Isolate::TerminateExecution and V8_Fatal.
// extern void _ZN2v87Isolate18TerminateExecutionEv(void*);
// extern void _Z8V8_FatalPKcz(const char*, ...);
// FAULT fault_engine(void) { _ZN2v87Isolate18TerminateExecutionEv((void*)64); __asm__(""); }
// FAULT fault_check(void) { _Z8V8_FatalPKcz("Check failed: %s.", "false"); __asm__(""); }
// // fault_later sends this thread a SIGILL in 50 ms of its time, when the program has gone on.
// FAULT fault_later(void) {
//   struct sigevent e = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGILL};
//   e._sigev_un._tid = syscall(SYS_gettid);
//   struct itimerspec in = {.it_value.tv_nsec = 50000000};
//   timer_t t;
//   timer_create(CLOCK_THREAD_CPUTIME_ID, &e, &t);
//   timer_settime(t, 0, &in, NULL);
// }
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
	"github.com/executord/executord/sandbox/confine"
	"github.com/executord/executord/sandbox/confine/calls"
)

// onLog makes a worker of this build die when a program prints "fault:NAME", after that line was sent: the suite's
// way to native crashes. After "fault:later" it dies while the program goes on. "attack:NAME" is for attacks_on.go. It is
// never part of a package.
func onLog(e *execution, text string) {
	if name, ok := strings.CutPrefix(text, "attack:"); ok {
		e.console.flush()
		e.flush()
		e.console.print("log", attack(name), 0)
		return
	}
	name, ok := strings.CutPrefix(text, "fault:")
	if !ok {
		return
	}
	e.console.flush()
	e.flush()
	switch name {
	case "abort":
		C.fault_abort()
	case "segv":
		C.fault_segv()
	case "bus":
		C.fault_bus()
	case "call":
		C.fault_call()
	case "ill":
		C.fault_ill()
	case "trap":
		C.fault_trap()
	case "fpe":
		C.fault_fpe()
	case "engine":
		C.fault_engine()
	case "check":
		C.fault_check()
	case "later":
		C.fault_later()
	case "exit":
		C._exit(3)
	case "spin":
		C.spin()
	case "fill":
		C.fill()
	case "garbage":
		syscall.Write(3, []byte("\xff\xff\xff\xffgarbage"))
	case "panic":
		panic("fault")
	case "nil":
		var nobody *execution
		nobody.request.ID++
	}
}

// seal is the last step of confinement. Where the arguments of this build end with "unsealed" it does nothing, so that
// tests see what stands without it, and with "logging" it refuses nothing, so that the list of system calls can be made.
func seal() confine.Outcome {
	switch os.Args[len(os.Args)-1] {
	case "unsealed":
		return confine.Outcome{Missing: []string{worker.LayerSeccomp + ": the test wants it so"}}
	case "logging":
		return confine.Seal(calls.Log)
	}
	return confine.Seal(calls.Kill)
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

// effective are the limits that V8 gets of those of a task.
func effective(request worker.Execute, l worker.Limits) worker.Limits {
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

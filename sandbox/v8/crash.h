// What crash.cc and the last words of engine.cc have of each other.
#ifndef EXECUTORD_V8_CRASH_H
#define EXECUTORD_V8_CRASH_H
#include <cstdint>

namespace executord {

// CatchFaults makes native faults of the process from now on leave a report and end it by their signal. Faults in Go code
// remain Go's.
void CatchFaults();

// ReportStack writes the stack of the calling thread to standard error, for a process that is about to end itself: if
// that takes longer than a second SIGABRT ends it.
void ReportStack();

// These are engine.cc's, and may be called by a signal handler.
uint64_t CurrentExecution();
void AwaitWriter();
void EndIfOutOfMemory();

}  // namespace executord
#endif

// C interface between Go and V8. Everything that V8 owns stays behind it; what crosses is numbers, borrowed views
// (valid during the call) and malloc'ed buffers (owned by whoever receives them).
#ifndef EXECUTORD_V8_ENGINE_H
#define EXECUTORD_V8_ENGINE_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct { const char* p; size_t n; } ex_view;
typedef struct { char* p; size_t n; } ex_buf;
typedef struct ex_isolate ex_isolate;

// The name of the library's scripts in messages, and of a plain isolate's script for ex_part_cache.
#define EX_LIBRARY_NAME "executor:library"

// An argument or the reply of a host operation. A fault's text is "Name: message".
enum { EX_ARG_NONE, EX_ARG_NUMBER, EX_ARG_TEXT, EX_ARG_BYTES, EX_ARG_FAULT };
typedef struct { int kind; double number; ex_view value; } ex_arg;
typedef struct { int kind; double number; ex_buf value; } ex_reply;

// What went wrong. EX_NONE means nothing did.
enum { EX_NONE, EX_EXCEPTION, EX_SYNTAX, EX_MODULE, EX_TERMINATED, EX_MEMORY, EX_UNSERIALIZABLE, EX_TOO_LARGE, EX_INTERNAL, EX_INPUT, EX_HANDLE };

// line and column count from 1; 0 means unknown. cause and thrown are encoded values, empty where absent.
typedef struct {
  int kind, line, column;
  ex_buf name, message, stack, cause, thrown, file;
} ex_error;

typedef struct { ex_buf value; ex_error error; } ex_result;

// States of a run as ex_drain reports them.
enum { EX_PENDING, EX_SETTLED, EX_STOPPED };

// Kinds of module that the resolver hands out.
enum { EX_MODULE_NONE, EX_MODULE_ESM, EX_MODULE_JSON, EX_MODULE_TEXT, EX_MODULE_BYTES, EX_MODULE_COMMONJS };

typedef struct {
  ex_view blob;     // startup snapshot; empty: `library` is evaluated instead
  ex_view library;  // classic script, value: function (native) => internals, or any function for ex_call
  ex_view cache;    // code cache of that script, empty where there is none
  int plain;        // the library's value is kept as it is, not called with the native functions
  uint64_t heap_bytes, buffer_bytes;
  uintptr_t handle; // cgo handle, passed back to the callbacks
  int allow_eval, allow_wasm;
} ex_options;

// Memory that waits for the next isolate: its bytes, those of them that are not zero, which none may be, and how often the
// kernel was asked to change mappings.
typedef struct { uint64_t kept, dirty, asked; } ex_pages;

typedef struct {
  uint64_t heap_used, heap_peak, heap_limit, buffers_used;
  int memory_hit, buffer_denied;
} ex_stats;

// ex_gate is what Go's writer of the channel and the handlers of fatal conditions share; all access is atomic.
typedef struct {
  int32_t taken;    // 1 while somebody writes
  int32_t waiting;  // 1 while something that was sent is not written yet
} ex_gate;

void ex_init(const char* flags, int channel_fd, ex_gate* gate);
const char* ex_version(void);
uint64_t ex_version_tag(void);
ex_result ex_snapshot_make(ex_view library, ex_view warm);

ex_isolate* ex_isolate_new(const ex_options* o, ex_error* err);
void ex_isolate_free(ex_isolate*);
void ex_terminate(ex_isolate*);
void ex_set_execution(uint64_t id);

// Limits of a program: stack_bytes of JavaScript's stack; depth and nodes of one value; message_bytes of one call.
typedef struct {
  uint64_t heap_bytes, buffer_bytes, stack_bytes, message_bytes;
  int depth, nodes;
} ex_limits;

ex_error ex_begin(ex_isolate*, ex_view config, const ex_limits* limits);
void ex_count(ex_isolate*);
ex_error ex_run(ex_isolate*, ex_view name, ex_view source, int call, ex_view input);
ex_error ex_compile(ex_isolate*, ex_view name, ex_view source);
int ex_drain(ex_isolate*);
int ex_stirred(ex_isolate*);
ex_result ex_value(ex_isolate*, uint64_t max_bytes);  // its value stays the isolate's, until ex_value_free
void ex_value_free(ex_isolate*);
ex_result ex_stalled(ex_isolate*);
void ex_hush(ex_isolate*, uint64_t id);
ex_error ex_resolve(ex_isolate*, uint64_t id, int ok, ex_view text);
void ex_fire(ex_isolate*, uint32_t id, int last, uint64_t task);
void ex_retain(ex_isolate*, ex_view prefix);
uint64_t ex_handles(ex_isolate*);
void ex_release(ex_isolate*, const uint64_t* handles, size_t n);
ex_error ex_invoke(ex_isolate*, uint64_t task, uint64_t handle, ex_view method, const ex_view* args, size_t n);
int ex_invoked(ex_isolate*, uint64_t task);
ex_result ex_invocation_value(ex_isolate*, uint64_t task, uint64_t max_bytes);
uint64_t ex_task(ex_isolate*);
ex_result ex_call(ex_isolate*, ex_view a, ex_view b);
ex_result ex_roundtrip(ex_isolate*, ex_view text, int is_script, uint64_t max_bytes);
ex_result ex_part_cache(ex_isolate*, ex_view name);
void ex_stats_read(ex_isolate*, ex_stats*);
uint64_t ex_heap_sample(ex_isolate*);
int ex_background_busy(void);
uint64_t ex_background_begun(void);
ex_pages ex_pages_read(void);
void ex_buf_free(ex_buf);
void ex_error_free(ex_error*);
#ifdef __cplusplus
}
#endif
#endif

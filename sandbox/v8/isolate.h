// The C++ side of one isolate, shared by the files of this package.
#ifndef EXECUTORD_V8_ISOLATE_H
#define EXECUTORD_V8_ISOLATE_H
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine.h"
#include "libplatform/libplatform.h"
#include "v8-platform.h"
#include "v8.h"

namespace executord {

// BoundedAllocator counts the bytes of fixed-length ArrayBuffers and refuses what goes over the limit. Resizable buffers
// and memories of WebAssembly pass it by (V8 13.6): CountBuffers finds those. It finds no shared ones, which V8 does not
// count: RLIMIT_DATA and the process watch stop them.
class BoundedAllocator : public v8::ArrayBuffer::Allocator {
 public:
  explicit BoundedAllocator(size_t limit) : inner_(NewDefaultAllocator()), limit_(limit) {}
  void* Allocate(size_t n) override { return Counted(n, [&] { return inner_->Allocate(n); }); }
  void* AllocateUninitialized(size_t n) override { return Counted(n, [&] { return inner_->AllocateUninitialized(n); }); }
  void Free(void* p, size_t n) override {
    inner_->Free(p, n);
    used_ -= n;
  }
  v8::PageAllocator* GetPageAllocator() override { return inner_->GetPageAllocator(); }
  void SetLimit(size_t limit) { limit_ = limit; }
  size_t limit() const { return limit_; }
  size_t used() const { return used_; }
  bool denied() const { return denied_; }

 private:
  template <typename F>
  void* Counted(size_t n, F allocate) {
    if (used_.fetch_add(n) + n <= limit_) {
      if (void* p = allocate()) return p;
    }
    used_ -= n;
    denied_ = true;
    return nullptr;
  }
  std::unique_ptr<v8::ArrayBuffer::Allocator> inner_;
  std::atomic<size_t> limit_, used_{0};
  std::atomic<bool> denied_{false};
};

// ModuleEntry is one module of the graph, in any state.
struct ModuleEntry {
  v8::Global<v8::Module> module;
  std::string key;
  int kind = EX_MODULE_ESM;
  std::string payload;  // source of a synthetic module
  v8::Global<v8::Function> body;  // of a CommonJS module
  std::string names;    // what a CommonJS module exports by name, as far as its text tells; a name a line
};

// PendingCall is a tool call that waits for its result, with the place it was made from.
struct PendingCall {
  v8::Global<v8::Promise::Resolver> resolver;
  std::string tool, file;
  int line = 0, column = 0;
  bool hushed = false;
};

// Handle is what the host of a retained execution holds: a function with the object that it was a property of, or what
// can be iterated with its iterator.
struct Handle {
  v8::Global<v8::Object> object;
  v8::Global<v8::Value> receiver;
  v8::Global<v8::Object> iterator;  // empty for a function
};

// Unhandled is a promise that was rejected, and that nobody handles so far, by the code of a task; see ex_task.
struct Unhandled {
  v8::Global<v8::Promise> promise;
  v8::Global<v8::Value> reason;
  uint64_t task;
};

// CodecLimits bound one walk over values: how many arrays and objects of its text may be open at once, how many values
// there may be, and how long the text.
struct CodecLimits {
  int depth = 512;
  int nodes = 1 << 20;
  size_t bytes = 8u << 20;
  bool handles = false;  // functions and what can be iterated become handles
};

}  // namespace executord

namespace executord {
// kStackBytes is JavaScript's stack where nobody says otherwise: V8's own default on 64 bits.
inline constexpr size_t kStackBytes = 984 << 10;
}  // namespace executord

struct ex_isolate {
  v8::Isolate* iso = nullptr;
  std::unique_ptr<executord::BoundedAllocator> allocator;
  v8::StartupData blob{nullptr, 0};
  uintptr_t handle = 0;
  v8::Global<v8::Context> context;
  v8::Global<v8::Object> internals;
  v8::Global<v8::Function> begin, fire, settle, report, inspect, entry, wake;
  std::map<std::string, v8::Global<v8::UnboundScript>> parts;  // of the library, as far as they were woken
  bool branded = false;                                         // something was marked as a platform object
  v8::Global<v8::Context> realm;                                // of the parts that must not meet the program; see Load

  executord::CodecLimits codec;
  std::vector<executord::ModuleEntry> modules;
  std::unordered_map<std::string, int> by_key;
  std::unordered_multimap<int, int> by_hash;
  std::map<std::string, int> links;  // referrer \n specifier \n type → module
  int main_module = -1;
  std::string compiling;  // the module that is or was compiled last
  v8::Global<v8::Object> required;  // require.cache: CommonJS modules by file name
  // The import that could not be resolved; no file where that is not what went wrong.
  std::string import_file;
  int import_line = 0, import_column = 0;

  uint64_t next_call = 1;
  std::unordered_map<uint64_t, executord::PendingCall> calls;
  std::vector<executord::Unhandled> rejected;
  std::vector<v8::Global<v8::Promise>> handled_late;  // after a turn in which they were in rejected
  bool rejected_more = false;  // in this turn, than are kept

  v8::Global<v8::Promise> evaluation, outcome;  // of the entry module, of the program's value
  std::string value;  // text of the program's value, once it was asked for
  v8::Global<v8::Value> input;
  bool call_entry = false;
  bool stirred = false;  // the program may have gone on in the last drain by itself

  // Of a retained execution.
  std::string retain;  // what the ids of its handles begin with; empty for any other
  uint64_t last_handle = 0;
  std::unordered_map<uint64_t, executord::Handle> handles;
  std::unordered_map<uint64_t, v8::Global<v8::Promise>> invocations;  // by task

  size_t stack_bytes = executord::kStackBytes;  // of JavaScript

  std::atomic<bool> counting{false};  // ex_count was called and its interrupt has not come
  std::atomic<bool> memory_hit{false}, stopped{false};  // V8 forgets a termination once no JavaScript is on the stack
  std::atomic<uint64_t> heap_sample{0}, heap_peak{0};
};

namespace executord {

inline ex_isolate* Self(v8::Isolate* iso) { return static_cast<ex_isolate*>(iso->GetData(0)); }

v8::Local<v8::String> Str(v8::Isolate* iso, std::string_view s);
std::string Utf8(v8::Isolate* iso, v8::Local<v8::Value> v);
// Wtf8 is Utf8 that keeps lone surrogates, as three bytes each.
std::string Wtf8(v8::Isolate* iso, v8::Local<v8::String> s);
// PointerStep is "/" and a key, escaped as RFC 6901 asks.
std::string PointerStep(const std::string& key);
// ViewClass names the class of a typed array or DataView; MakeError makes an error of a native class by its name, a plain
// Error for any other.
const char* ViewClass(v8::Local<v8::Value> view);
v8::Local<v8::Value> MakeError(v8::Isolate* iso, const std::string& name, v8::Local<v8::String> message);
ex_buf Buf(std::string_view s);
inline std::string_view View(ex_view v) { return {v.p, v.n}; }
ex_error Fail(int kind, std::string_view message);

// Caught turns what a TryCatch holds into an error; Describe does so for any thrown value.
ex_error Caught(ex_isolate* s, v8::Local<v8::Context> c, v8::TryCatch& tc, int kind = EX_EXCEPTION);
ex_error Describe(ex_isolate* s, v8::Local<v8::Context> c, v8::Local<v8::Value> thrown, v8::Local<v8::Message> m, int kind);

// kMaxBigIntWords bounds a BigInt that crosses, as ipc/protocol does: conversion from and to decimal is slow for a huge
// number and cannot be interrupted.
inline constexpr int kMaxBigIntWords = 1 << 10;

// IsMarked tells that an object is marked as the library's; IsPlatformObject finds the mark on the object or on a
// prototype of it, for the library marks the prototypes of its classes. MarkPlatform puts it there.
void MarkPlatform(v8::Isolate* iso, v8::Local<v8::Context> c, v8::Local<v8::Object> o);
bool IsMarked(v8::Isolate* iso, v8::Local<v8::Context> c, v8::Local<v8::Object> o);
bool IsPlatformObject(v8::Isolate* iso, v8::Local<v8::Context> c, v8::Local<v8::Object> o);

// Library calls a function among the library's internals that is wanted rarely; it throws a TypeError where the library
// has none of that name.
v8::MaybeLocal<v8::Value> Library(ex_isolate* s, v8::Local<v8::Context> c, const char* name, int n, v8::Local<v8::Value>* args);

// Encode appends the JSON text of v. On failure it returns false and fills err; root names the value in its message.
// parts gets the number of objects and primitives in v.
bool Encode(ex_isolate* s, v8::Local<v8::Context> c, v8::Local<v8::Value> v, const CodecLimits& limits, const std::string& root, std::string* out, ex_error* err, int* parts = nullptr);
// Decode makes the value of a JSON text; on failure it throws a TypeError in the isolate, in which what names the text.
v8::MaybeLocal<v8::Value> Decode(ex_isolate* s, v8::Local<v8::Context> c, std::string_view text, const CodecLimits& limits, const std::string& what);

// NewHandle keeps an object for the host and gives its number; 0 where there are too many. ForgetHandles drops those after
// the one of that number.
uint64_t NewHandle(ex_isolate* s, v8::Local<v8::Object> o, v8::Local<v8::Value> receiver, v8::Local<v8::Object> iterator);
void ForgetHandles(ex_isolate* s, uint64_t after);
// HandleNamed finds the object of a handle by its id; empty for one that is not there.
v8::MaybeLocal<v8::Object> HandleNamed(ex_isolate* s, std::string_view id);
// Outcome is what a promise that has settled came to.
ex_error Outcome(ex_isolate* s, v8::Local<v8::Context> c, v8::Local<v8::Promise> p, uint64_t max_bytes, std::string* out);
bool Stopping(ex_isolate* s);

v8::MaybeLocal<v8::Value> FormatStack(v8::Local<v8::Context> c, v8::Local<v8::Value> error, v8::Local<v8::Array> sites);
v8::MaybeLocal<v8::Promise> ImportDynamically(v8::Local<v8::Context> c, v8::Local<v8::Data> host, v8::Local<v8::Value> resource, v8::Local<v8::String> specifier, v8::Local<v8::FixedArray> attributes);
// Load resolves one specifier and compiles what it names, without its own imports; LoadRequests loads those. On failure
// they throw.
int Load(ex_isolate* s, v8::Local<v8::Context> c, const std::string& specifier, const std::string& referrer, const std::string& type);
bool LoadRequests(ex_isolate* s, v8::Local<v8::Context> c, int index);
v8::MaybeLocal<v8::Module> ResolveLink(v8::Local<v8::Context> c, v8::Local<v8::String> specifier, v8::Local<v8::FixedArray> attributes, v8::Local<v8::Module> referrer);
v8::ScriptOrigin Origin(v8::Isolate* iso, const std::string& key, int index, bool module);
// FileOf is the name of the script that a message is about: of a module its own, whatever a comment sourceURL in its text
// says.
std::string FileOf(ex_isolate* s, v8::Local<v8::Context> c, v8::Local<v8::Message> m);
// UrlOf is a module's import.meta.url.
std::string UrlOf(const std::string& key);
// CompileCommonJS makes the function of a CommonJS module, RunCommonJS evaluates a CommonJS module, once, and returns its module.exports.
v8::MaybeLocal<v8::Function> CompileCommonJS(v8::Isolate* iso, v8::Local<v8::Context> c, const std::string& key, std::string_view text, int index);
v8::MaybeLocal<v8::Value> RunCommonJS(ex_isolate* s, v8::Local<v8::Context> c, int index);
void InitImportMeta(v8::Local<v8::Context> c, v8::Local<v8::Module> m, v8::Local<v8::Object> meta);
void PromiseRejected(v8::PromiseRejectMessage m);

// Hush has nothing said of promises that are rejected with this reason, should nobody handle them.
void Hush(v8::Isolate* iso, v8::Local<v8::Context> c, v8::Local<v8::Value> reason);

// NativeFunction is one function that the library may call.
struct NativeFunction {
  const char* name;
  v8::FunctionCallback function;
};
const std::vector<NativeFunction>& ServiceFunctions();
void Finish(const v8::FunctionCallbackInfo<v8::Value>& info);
// RunCached runs a script of the library, from its code cache where there is one, and keeps it by name for ex_part_cache.
v8::MaybeLocal<v8::Value> RunCached(ex_isolate* s, v8::Local<v8::Context> c, const std::string& name, v8::Local<v8::String> source, ex_view cache);
v8::MaybeLocal<v8::Function> LoadPart(ex_isolate* s, v8::Local<v8::Context> c, const std::string& name);
void WakeName(v8::Local<v8::Name> name, const v8::PropertyCallbackInfo<v8::Value>& info);
bool InstallLazy(v8::Isolate* iso, v8::Local<v8::Context> c, std::string_view names);
bool RemoveLazy(ex_isolate* s, v8::Local<v8::Context> c);

v8::Local<v8::Object> NativeFunctions(v8::Isolate* iso, v8::Local<v8::Context> c);
const intptr_t* ExternalReferences();

// SetStackLimit leaves JavaScript so many bytes of the calling thread's stack, or what the thread has.
void SetStackLimit(v8::Isolate* iso, size_t bytes);
v8::Platform* ThePlatform();
void InstallDeathHandlers(v8::Isolate::CreateParams* p);

// Thread readies the calling thread for V8. Where the processor has memory protection keys V8 keeps code under one, and
// a thread that is older than V8's initialization may not even read there.
struct Thread {
  Thread() {
    static thread_local bool ready = false;
    if (!ready) v8::ThreadIsolatedAllocator::SetDefaultPermissionsForSignalHandler();
    ready = true;
  }
};

// Scope enters an isolate and its context on this thread.
struct Scope {
  explicit Scope(ex_isolate* s) : s(s), isolate_scope(s->iso), handles(s->iso), context(s->context.Get(s->iso)), context_scope(context) {
    SetStackLimit(s->iso, s->stack_bytes);
  }
  ex_isolate* s;
  Thread thread;
  v8::Isolate::Scope isolate_scope;
  v8::HandleScope handles;
  v8::Local<v8::Context> context;
  v8::Context::Scope context_scope;
};

// Attribution says for which task of a retained execution code runs, which promises remember. 0 leaves it open.
struct Attribution {
  Attribution(ex_isolate* s, uint64_t task) : iso(task == 0 ? nullptr : s->iso) {
    if (iso) iso->SetContinuationPreservedEmbedderData(v8::Number::New(iso, static_cast<double>(task)));
  }
  ~Attribution() {
    if (iso) iso->SetContinuationPreservedEmbedderData(v8::Undefined(iso));
  }
  v8::Isolate* iso;
};

// Script origins: the submitted program's modules carry their index; the library has this name.
inline constexpr char kLibraryName[] = EX_LIBRARY_NAME;

}  // namespace executord

extern "C" {  // implemented in Go; called on the isolate's goroutine
int goToolCall(uintptr_t h, uint64_t id, ex_view provider, ex_view* path, size_t path_n, ex_view args);
void goLog(uintptr_t h, ex_view level, ex_view text);
uint32_t goTimerStart(uintptr_t h, double ms, int repeat);
void goTimerStop(uintptr_t h, uint32_t id);
int goResolveModule(uintptr_t h, ex_view specifier, ex_view referrer, ex_view type, ex_buf* key, ex_buf* source, ex_buf* names);
ex_reply goOp(uintptr_t h, ex_arg* args, int n);
int goPart(uintptr_t h, ex_view name, ex_view* text, ex_view* cache);
ex_buf goHint(uintptr_t h, ex_view name);
void goMapPosition(uintptr_t h, ex_view file, int* line, int* column);
}
#endif

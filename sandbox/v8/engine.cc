// V8 as a process sees it: initialization, last words, and the making of a startup snapshot.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "crash.h"
#include "isolate.h"
#include "v8-version.h"

namespace executord {

void InitPlatform();
bool BackgroundBusy();
uint64_t BackgroundBegun();

v8::Local<v8::String> Str(v8::Isolate* iso, std::string_view s) {
  return v8::String::NewFromUtf8(iso, s.data(), v8::NewStringType::kNormal, static_cast<int>(s.size())).FromMaybe(v8::String::Empty(iso));
}

std::string Utf8(v8::Isolate* iso, v8::Local<v8::Value> v) {
  v8::String::Utf8Value u(iso, v);
  return *u ? std::string(*u, u.length()) : std::string();
}

std::string Wtf8(v8::Isolate* iso, v8::Local<v8::String> s) {
  v8::String::Value units(iso, s);
  std::string out;
  bool lone = false;
  for (uint32_t i = 0; i < units.length(); i++) {
    uint16_t u = (*units)[i];
    if (u < 0xd800 || u > 0xdfff) continue;
    bool pair = u <= 0xdbff && i + 1 < units.length() && (*units)[i + 1] >= 0xdc00 && (*units)[i + 1] <= 0xdfff;
    if (pair) i++;
    else lone = true;
  }
  if (!lone) return Utf8(iso, s);
  for (uint32_t i = 0; i < units.length(); i++) {
    uint32_t u = (*units)[i];
    if (u >= 0xd800 && u <= 0xdbff && i + 1 < units.length() && (*units)[i + 1] >= 0xdc00 && (*units)[i + 1] <= 0xdfff) {
      u = 0x10000 + ((u - 0xd800) << 10) + ((*units)[++i] - 0xdc00);
      out += {static_cast<char>(0xf0 | u >> 18), static_cast<char>(0x80 | (u >> 12 & 0x3f)), static_cast<char>(0x80 | (u >> 6 & 0x3f)), static_cast<char>(0x80 | (u & 0x3f))};
    } else if (u < 0x80) {
      out += static_cast<char>(u);
    } else if (u < 0x800) {
      out += {static_cast<char>(0xc0 | u >> 6), static_cast<char>(0x80 | (u & 0x3f))};
    } else {
      out += {static_cast<char>(0xe0 | u >> 12), static_cast<char>(0x80 | (u >> 6 & 0x3f)), static_cast<char>(0x80 | (u & 0x3f))};
    }
  }
  return out;
}

std::string PointerStep(const std::string& key) {
  std::string out = "/";
  for (char ch : key) {
    if (ch == '~') out += "~0";
    else if (ch == '/') out += "~1";
    else out += ch;
  }
  return out;
}

ex_buf Buf(std::string_view s) {
  ex_buf b{static_cast<char*>(malloc(s.size() + 1)), s.size()};
  if (b.p == nullptr) std::terminate();
  memcpy(b.p, s.data(), s.size());
  b.p[s.size()] = 0;
  return b;
}

ex_error Fail(int kind, std::string_view message) {
  ex_error e{};
  e.kind = kind;
  e.message = Buf(message);
  return e;
}

// ---- last words

namespace {

// Exit statuses and the frame of a last word follow ipc/worker; a test there decodes what this writes.
enum { kExitHeapOOM = 70, kExitProcessOOM = 71, kExitFatal = 72 };
constexpr unsigned char kLastWord = 0x87;

int channel_fd = -1;
ex_gate* channel_gate = nullptr;
std::atomic<uint64_t> execution_id{0};

size_t PutVarint(unsigned char* p, uint64_t v) {
  size_t n = 0;
  for (; v >= 0x80; v >>= 7) p[n++] = static_cast<unsigned char>(v) | 0x80;
  p[n++] = static_cast<unsigned char>(v);
  return n;
}

size_t PutText(unsigned char* p, const char* s, size_t max) {
  size_t n = s ? strnlen(s, max) : 0;
  size_t k = PutVarint(p, n);
  for (size_t i = 0; i < n; i++) p[k + i] = (s[i] >= 0x20 && s[i] < 0x7f) ? s[i] : '?';
  return k + n;
}

void SleepOneMillisecond() {
  timespec ms{0, 1000000};
  nanosleep(&ms, nullptr);
}

}  // namespace

uint64_t CurrentExecution() { return execution_id; }

// AwaitWriter lets Go's writer, which is on another thread, write the console lines that wait.
void AwaitWriter() {
  if (channel_fd < 0) return;
  for (int i = 0; i < 100 && __atomic_load_n(&channel_gate->waiting, __ATOMIC_ACQUIRE); i++) SleepOneMillisecond();
}

namespace {

bool TakeGate() {
  for (int i = 0; i < 50; i++) {
    int32_t free = 0;
    if (__atomic_compare_exchange_n(&channel_gate->taken, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return true;
    SleepOneMillisecond();
  }
  return false;
}

// Die writes the last word as one frame, after what was sent before it, unless the Go writer is stuck in the middle of
// another, and ends the process. It allocates nothing: memory may be what ran out.
[[noreturn]] void Die(int status, const char* type, const char* where, const char* detail) {
  char text[512];
  snprintf(text, sizeof text, "%s: %s", where ? where : "", detail ? detail : "");
  AwaitWriter();
  if (channel_fd >= 0 && TakeGate()) {
    unsigned char frame[1024];
    size_t n = 4;
    frame[n++] = kLastWord;
    n += PutVarint(frame + n, execution_id.load());
    n += PutText(frame + n, type, 64);
    n += PutText(frame + n, text, sizeof text);
    uint32_t body = static_cast<uint32_t>(n - 4);
    for (int i = 0; i < 4; i++) frame[i] = static_cast<unsigned char>(body >> (8 * i));
    (void)!write(channel_fd, frame, n);
  }
  dprintf(2, "executor-worker: %s: %s\n", type, text);
  if (status == kExitFatal) ReportStack();
  _exit(status);
}

void OnOutOfMemory(const char* where, const v8::OOMDetails& d) {
  Die(d.is_heap_oom ? kExitHeapOOM : kExitProcessOOM, "memory_limit", where, d.detail);
}
void OnFatal(const char* where, const char* message) { Die(kExitFatal, "worker_crashed", where, message); }
void OnCheck(const char* file, int line, const char* message) {
  // V8 checks sizes of what a program made by CHECK; those are the program's doing, not the engine's fault.
  bool size = message && (strstr(message, "invalid size error") || strstr(message, "Check failed: length"));
  Die(size ? kExitHeapOOM : kExitFatal, size ? "memory_limit" : "worker_crashed", file, message);
}

}  // namespace

// EndIfOutOfMemory tells an abort for want of memory from a fault: ICU and libstdc++ do not survive an allocation that
// fails. It is want of memory when the process can map no more, and then it says so.
void EndIfOutOfMemory() {
  constexpr size_t kProbe = 64 << 20;
  void* p = mmap(nullptr, kProbe, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) Die(kExitProcessOOM, "memory_limit", "abort", "out of memory in native code");
  syscall(SYS_munmap, p, kProbe);  // pages.cc's takes a lock, which the thread that a signal came to may hold
}

void InstallDeathHandlers(v8::Isolate::CreateParams* p) {
  p->oom_error_callback = OnOutOfMemory;
  p->fatal_error_callback = OnFatal;
}

namespace {

// StackEnd is the lowest address of the calling thread's stack.
uintptr_t StackEnd() {
  pthread_attr_t attr;
  void* base = nullptr;
  size_t size = 0;
  pthread_getattr_np(pthread_self(), &attr);
  pthread_attr_getstack(&attr, &base, &size);
  pthread_attr_destroy(&attr);
  return reinterpret_cast<uintptr_t>(base);
}

// For the main thread that takes /proc, which a worker has no more when Go starts.
uintptr_t main_end = 0;
__attribute__((constructor(200))) void AskBeforeGo() { main_end = StackEnd(); }

}  // namespace

void SetStackLimit(v8::Isolate* iso, size_t bytes) {
  // An isolate keeps the limit of the thread that made it; on another thread every call would overflow at once. The
  // limit leaves room for C++ frames below JavaScript's (checked on V8 13.6).
  constexpr uintptr_t kReserve = 160 * 1024;
  static thread_local uintptr_t top = 0, bottom = 0;
  if (top == 0) {
    top = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    bottom = (gettid() == getpid() ? main_end : StackEnd()) + kReserve;
  }
  iso->SetStackLimit(std::max(top - bytes, bottom));
}

}  // namespace executord

using namespace executord;

void ex_init(const char* flags, int fd, ex_gate* gate) {
  channel_fd = fd;
  channel_gate = gate;
  CatchFaults();
  v8::V8::SetFlagsFromString(flags);
  v8::V8::SetFatalErrorHandler(OnCheck);
  v8::V8::SetFatalMemoryErrorCallback(OnOutOfMemory);
  // V8 and ICU use the throwing operator new: an allocation that fails ends here.
  std::set_terminate([] { Die(kExitProcessOOM, "memory_limit", "std::terminate", "out of memory in native code"); });
  v8::V8::SetEntropySource([](unsigned char* p, size_t n) { return getentropy(p, n) == 0; });
  InitPlatform();
  v8::V8::Initialize();
}

const char* ex_version(void) { return v8::V8::GetVersion(); }
uint64_t ex_version_tag(void) { return v8::ScriptCompiler::CachedDataVersionTag(); }
int ex_background_busy(void) { return BackgroundBusy(); }
uint64_t ex_background_begun(void) { return BackgroundBegun(); }
void ex_set_execution(uint64_t id) { execution_id = id; }
void ex_buf_free(ex_buf b) { free(b.p); }
void ex_error_free(ex_error* e) {
  for (ex_buf* b : {&e->name, &e->message, &e->stack, &e->cause, &e->thrown, &e->file}) {
    free(b->p);
    *b = ex_buf{};
  }
}

namespace {

// RunScript compiles and runs a classic script of the library; eager compiles every function of it at once.
v8::MaybeLocal<v8::Value> RunScript(v8::Isolate* iso, v8::Local<v8::Context> c, ex_view source, const char* name, bool eager) {
  v8::ScriptCompiler::Source text(Str(iso, View(source)), v8::ScriptOrigin(Str(iso, name)));
  v8::Local<v8::Script> script;
  auto how = eager ? v8::ScriptCompiler::kEagerCompile : v8::ScriptCompiler::kNoCompileOptions;
  if (!v8::ScriptCompiler::Compile(c, &text, how).ToLocal(&script)) return {};
  return script->Run(c);
}

// GlobalTemplate is what contexts of the library are made from. The prototypes of a global cannot be changed (Web IDL, 3.8
// "[Global]"): that of the global object, of the object behind it, and of the next, which becomes EventTarget.prototype.
v8::Local<v8::ObjectTemplate> GlobalTemplate(v8::Isolate* iso) {
  v8::Local<v8::FunctionTemplate> target = v8::FunctionTemplate::New(iso), global = v8::FunctionTemplate::New(iso);
  global->Inherit(target);
  for (auto t : {target->PrototypeTemplate(), global->PrototypeTemplate(), global->InstanceTemplate()}) t->SetImmutableProto();
  return global->InstanceTemplate();
}

// Awaken evaluates the library in a fresh context and returns what it hands to the event loop. What goes into the
// snapshot is compiled to the last function, so that no execution has to.
v8::MaybeLocal<v8::Object> Awaken(v8::Isolate* iso, v8::Local<v8::Context> c, ex_view library, bool eager) {
  v8::Local<v8::Value> f, r, lazy;
  if (!RunScript(iso, c, library, kLibraryName, eager).ToLocal(&f) || !f->IsFunction()) return {};
  v8::Local<v8::Value> native = NativeFunctions(iso, c);
  if (!f.As<v8::Function>()->Call(c, v8::Undefined(iso), 1, &native).ToLocal(&r) || !r->IsObject()) return {};
  auto internals = r.As<v8::Object>();
  if (!internals->Get(c, Str(iso, "lazy")).ToLocal(&lazy) || (lazy->IsString() && !InstallLazy(iso, c, Utf8(iso, lazy)))) return {};
  return internals;
}

std::string Explain(v8::Isolate* iso, v8::Local<v8::Context> c, v8::TryCatch& tc) {
  if (!tc.HasCaught()) return "the library's value is not what the engine expects";
  std::string at;
  if (!tc.Message().IsEmpty()) {
    at = " at " + std::to_string(tc.Message()->GetLineNumber(c).FromMaybe(0)) + ":" + std::to_string(tc.Message()->GetStartColumn(c).FromMaybe(0) + 1);
  }
  return Utf8(iso, tc.Exception()) + at;
}

}  // namespace

ex_result ex_snapshot_make(ex_view library, ex_view warm) {
  Thread thread;
  v8::Isolate::CreateParams params;
  std::unique_ptr<v8::ArrayBuffer::Allocator> allocator(v8::ArrayBuffer::Allocator::NewDefaultAllocator());
  params.array_buffer_allocator = allocator.get();
  params.external_references = ExternalReferences();
  v8::StartupData data{nullptr, 0};
  std::string fault;
  {
    v8::SnapshotCreator creator(params);
    v8::Isolate* iso = creator.GetIsolate();
    SetStackLimit(iso, kStackBytes);
    {
      v8::HandleScope handles(iso);
      v8::Local<v8::Context> c = v8::Context::New(iso, nullptr, GlobalTemplate(iso));
      v8::Context::Scope scope(c);
      v8::TryCatch tc(iso);
      v8::Local<v8::Object> internals;
      if (!Awaken(iso, c, library, true).ToLocal(&internals)) {
        fault = Explain(iso, c, tc);
      } else if (warm.n > 0 && RunScript(iso, c, warm, "executor:warm", false).IsEmpty()) {
        fault = "warm-up: " + Explain(iso, c, tc);
      } else {
        iso->PerformMicrotaskCheckpoint();
        creator.AddData(c, internals);
      }
      creator.SetDefaultContext(c);
    }
    data = creator.CreateBlob(v8::SnapshotCreator::FunctionCodeHandling::kKeep);
  }
  ex_result r{};
  if (fault.empty() && (data.data == nullptr || !data.CanBeRehashed())) fault = "the snapshot cannot be rehashed";
  if (fault.empty()) {
    r.value = Buf({data.data, static_cast<size_t>(data.raw_size)});
  } else {
    r.error = Fail(EX_INTERNAL, fault);
  }
  delete[] data.data;
  return r;
}

// ---- isolates

namespace {

// The heap limit is soft: V8 needs room to unwind. With less slack than this some programs abort the process instead of
// ending cleanly (measured on V8 13.6).
size_t NearHeapLimit(void* data, size_t current, size_t) {
  auto* s = static_cast<ex_isolate*>(data);
  s->memory_hit = true;
  s->iso->TerminateExecution();
  return current + std::max<size_t>(current, 64u << 20);
}

// V8 can lower the limit of a living isolate but not raise it, and an isolate may wait for a program whose limit is not
// known yet. So it is made with a young generation that fits any program, and an old one up to the given limit.
constexpr size_t kYoung = 12u << 20;

void SetHeap(v8::ResourceConstraints* c, size_t heap_bytes) {
  c->set_max_young_generation_size_in_bytes(kYoung);
  c->set_initial_old_generation_size_in_bytes(std::min<size_t>(heap_bytes / 2, 16u << 20));
  c->set_max_old_generation_size_in_bytes(heap_bytes);
}

// OldLimit is what of a heap is left for the old generation.
size_t OldLimit(size_t heap_bytes) { return heap_bytes > 2 * kYoung ? heap_bytes - kYoung : heap_bytes / 2; }

uint64_t SampleHeap(ex_isolate* s) {
  v8::HeapStatistics h;
  s->iso->GetHeapStatistics(&h);
  uint64_t used = h.used_heap_size();
  s->heap_sample = used;
  if (used > s->heap_peak) s->heap_peak = used;
  return used;
}

void BeforeGC(v8::Isolate*, v8::GCType, v8::GCCallbackFlags, void* data) { SampleHeap(static_cast<ex_isolate*>(data)); }

// BufferBytes counts the buffers of every kind and the memories of WebAssembly, garbage included.
size_t BufferBytes(ex_isolate* s, v8::HeapStatistics* h) { return std::max<size_t>(s->allocator->used(), h->external_memory()); }

// CountBuffers ends the program when what a full collection left of its buffers is over the limit.
void CountBuffers(v8::Isolate*, v8::GCType, v8::GCCallbackFlags, void* data) {
  auto* s = static_cast<ex_isolate*>(data);
  v8::HeapStatistics h;
  s->iso->GetHeapStatistics(&h);
  if (BufferBytes(s, &h) <= s->allocator->limit()) return;
  s->memory_hit = true;
  s->iso->TerminateExecution();
}

bool DenyWasm(v8::Local<v8::Context>, v8::Local<v8::String>) { return false; }

void Configure(ex_isolate* s, const ex_options* o) {
  v8::Isolate* iso = s->iso;
  iso->SetData(0, s);
  iso->AddNearHeapLimitCallback(NearHeapLimit, s);
  iso->AddGCPrologueCallback(BeforeGC, s);
  iso->AddGCEpilogueCallback(CountBuffers, s, v8::kGCTypeMarkSweepCompact);
  iso->SetMicrotasksPolicy(v8::MicrotasksPolicy::kExplicit);
  iso->SetPromiseRejectCallback(PromiseRejected);
  iso->SetPrepareStackTraceCallback(FormatStack);
  iso->SetHostImportModuleDynamicallyCallback(ImportDynamically);
  iso->SetHostInitializeImportMetaObjectCallback(InitImportMeta);
  iso->SetCaptureStackTraceForUncaughtExceptions(true, 20);
  if (!o->allow_wasm) iso->SetAllowWasmCodeGenerationCallback(DenyWasm);
}

bool Bind(ex_isolate* s, v8::Local<v8::Context> c, v8::Local<v8::Object> internals) {
  v8::Isolate* iso = s->iso;
  struct { const char* name; v8::Global<v8::Function>* slot; } wanted[] = {
      {"begin", &s->begin}, {"fire", &s->fire}, {"settle", &s->settle}, {"report", &s->report}, {"inspect", &s->inspect}};
  for (auto& w : wanted) {
    v8::Local<v8::Value> f;
    if (!internals->Get(c, Str(iso, w.name)).ToLocal(&f) || !f->IsFunction()) return false;
    w.slot->Reset(iso, f.As<v8::Function>());
  }
  s->internals.Reset(iso, internals);
  v8::Local<v8::Value> wake;
  if (internals->Get(c, Str(iso, "wake")).ToLocal(&wake) && wake->IsFunction()) s->wake.Reset(iso, wake.As<v8::Function>());
  return true;
}

}  // namespace

ex_isolate* ex_isolate_new(const ex_options* o, ex_error* err) {
  Thread thread;
  auto* s = new ex_isolate;
  s->handle = o->handle;
  s->allocator = std::make_unique<BoundedAllocator>(o->buffer_bytes);
  v8::Isolate::CreateParams params;
  params.array_buffer_allocator = s->allocator.get();
  params.external_references = ExternalReferences();
  params.allow_atomics_wait = false;
  SetHeap(&params.constraints, o->heap_bytes);
  InstallDeathHandlers(&params);
  if (o->blob.n > 0) {
    s->blob = {o->blob.p, static_cast<int>(o->blob.n)};
    params.snapshot_blob = &s->blob;
  }
  s->iso = v8::Isolate::New(params);
  Configure(s, o);
  *err = ex_error{};
  {
    v8::Isolate* iso = s->iso;
    v8::Isolate::Scope isolate_scope(iso);
    SetStackLimit(iso, kStackBytes);
    v8::HandleScope handles(iso);
    v8::Local<v8::Context> c = o->blob.n > 0 ? v8::Context::New(iso) : v8::Context::New(iso, nullptr, GlobalTemplate(iso));
    v8::Context::Scope scope(c);
    v8::TryCatch tc(iso);
    s->context.Reset(iso, c);
    if (!o->allow_eval) {
      c->AllowCodeGenerationFromStrings(false);
      c->SetErrorMessageForCodeGenerationFromStrings(Str(iso, "code generation from strings is switched off here"));
    }
    v8::Local<v8::Object> internals;
    v8::Local<v8::Value> entry;
    if (o->plain) {
      if (RunCached(s, c, kLibraryName, Str(iso, View(o->library)), o->cache).ToLocal(&entry) && entry->IsFunction()) s->entry.Reset(iso, entry.As<v8::Function>());
      else *err = Fail(EX_INTERNAL, Explain(iso, c, tc));
    } else if (!(o->blob.n > 0 ? c->GetDataFromSnapshotOnce<v8::Object>(0) : Awaken(iso, c, o->library, false)).ToLocal(&internals)) {
      *err = Fail(EX_INTERNAL, Explain(iso, c, tc));
    } else if (!Bind(s, c, internals) ) {
      *err = Fail(EX_INTERNAL, "the library lacks a function that the engine calls");
    }
  }
  if (err->kind != EX_NONE) {
    ex_isolate_free(s);
    return nullptr;
  }
  return s;
}

void ex_isolate_free(ex_isolate* s) {
  Thread thread;
  {
    v8::Isolate::Scope scope(s->iso);
    s->iso->CancelTerminateExecution();
    s->modules.clear();
    s->calls.clear();
    s->parts.clear();
    s->realm.Reset();
    s->rejected.clear();
    s->handled_late.clear();
    s->evaluation.Reset();
    s->outcome.Reset();
    s->input.Reset();
    s->handles.clear();
    s->invocations.clear();
    s->required.Reset();
    for (auto* f : {&s->begin, &s->fire, &s->settle, &s->report, &s->inspect, &s->entry, &s->wake}) f->Reset();
    s->internals.Reset();
    s->context.Reset();
  }
  v8::platform::NotifyIsolateShutdown(ThePlatform(), s->iso);
  s->iso->Dispose();
  delete s;
}

void ex_terminate(ex_isolate* s) {
  s->stopped = true;
  s->iso->TerminateExecution();
}

uint64_t ex_heap_sample(ex_isolate* s) { return s->heap_sample; }

void ex_stats_read(ex_isolate* s, ex_stats* out) {
  v8::HeapStatistics h;
  s->iso->GetHeapStatistics(&h);
  SampleHeap(s);
  *out = {h.used_heap_size(), s->heap_peak, h.heap_size_limit(), BufferBytes(s, &h), s->memory_hit, s->allocator->denied()};
}

// ex_count asks the isolate to count its buffers soon, from any thread. Only a full collection tells what of them is
// garbage; it is made when they are over the limit with it.
void ex_count(ex_isolate* s) {
  if (s->counting.exchange(true)) return;
  s->iso->RequestInterrupt([](v8::Isolate* iso, void*) {
    auto* s = Self(iso);
    s->counting = false;
    v8::HeapStatistics h;
    iso->GetHeapStatistics(&h);
    if (BufferBytes(s, &h) > s->allocator->limit()) iso->LowMemoryNotification();
  }, nullptr);
}

ex_error ex_begin(ex_isolate* s, ex_view config, const ex_limits* l) {
  s->allocator->SetLimit(l->buffer_bytes);
  // Removing the callback is the one way in V8's API to lower the limit of a living isolate.
  s->iso->RemoveNearHeapLimitCallback(NearHeapLimit, OldLimit(l->heap_bytes));
  s->iso->AddNearHeapLimitCallback(NearHeapLimit, s);
  s->codec = {l->depth, l->nodes, l->message_bytes};
  s->stack_bytes = l->stack_bytes;
  Scope scope(s);
  v8::TryCatch tc(s->iso);
  v8::Local<v8::Value> args[] = {Str(s->iso, View(config))};
  if (s->begin.Get(s->iso)->Call(scope.context, v8::Undefined(s->iso), 1, args).IsEmpty()) return Caught(s, scope.context, tc);
  return ex_error{};
}

ex_result ex_call(ex_isolate* s, ex_view a, ex_view b) {
  Scope scope(s);
  v8::TryCatch tc(s->iso);
  ex_result r{};
  v8::Local<v8::Value> args[] = {Str(s->iso, View(a)), Str(s->iso, View(b))}, v;
  if (!s->entry.Get(s->iso)->Call(scope.context, v8::Undefined(s->iso), 2, args).ToLocal(&v)) {
    r.error = Caught(s, scope.context, tc);
  } else {
    r.value = Buf(Utf8(s->iso, v));
  }
  return r;
}

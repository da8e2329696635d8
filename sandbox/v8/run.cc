// One program's run: the turns of its event loop, its errors, its value.
#include <cstring>
#include <utility>

#include "isolate.h"

namespace executord {

bool Stopping(ex_isolate* s) { return s->memory_hit || s->stopped || s->iso->IsExecutionTerminating(); }

namespace {

using v8::Local;
using v8::Value;

// Text reads a property of what a program threw; a getter may run, and may throw.
std::string Text(ex_isolate* s, Local<v8::Context> c, Local<v8::Object> o, const char* name) {
  v8::TryCatch tc(s->iso);
  Local<Value> v;
  if (!o->Get(c, Str(s->iso, name)).ToLocal(&v) || !v->IsString()) return "";
  return Utf8(s->iso, v);
}

std::string Cut(std::string s, size_t max) {
  if (s.size() <= max) return s;
  while (max > 0 && (static_cast<unsigned char>(s[max]) & 0xc0) == 0x80) max--;
  return s.substr(0, max) + "…";
}

constexpr size_t kMaxErrorText = 64 << 10;

// Part encodes a cause or a thrown value if it can be encoded within reason.
ex_buf Part(ex_isolate* s, Local<v8::Context> c, Local<Value> v) {
  CodecLimits limits = s->codec;
  limits.bytes = kMaxErrorText;
  std::string out;
  ex_error err{};
  v8::TryCatch tc(s->iso);
  bool ok = Encode(s, c, v, limits, "the value", &out, &err);
  ex_error_free(&err);
  return ok ? Buf(out) : ex_buf{};
}

std::string Inspect(ex_isolate* s, Local<v8::Context> c, Local<Value> v) {
  v8::TryCatch tc(s->iso);
  Local<Value> text;
  if (v->IsString()) return Utf8(s->iso, v);
  if (!s->inspect.IsEmpty() && s->inspect.Get(s->iso)->Call(c, v8::Undefined(s->iso), 1, &v).ToLocal(&text)) return Utf8(s->iso, text);
  tc.Reset();
  return Utf8(s->iso, v);
}

void DescribeError(ex_isolate* s, Local<v8::Context> c, Local<v8::Object> o, ex_error* e) {
  e->name = Buf(Cut(Text(s, c, o, "name"), 256));
  e->message = Buf(Cut(Text(s, c, o, "message"), kMaxErrorText));
  e->stack = Buf(Cut(Text(s, c, o, "stack"), kMaxErrorText));
  v8::TryCatch tc(s->iso);
  Local<Value> cause;
  if (o->HasOwnProperty(c, Str(s->iso, "cause")).FromMaybe(false) && o->Get(c, Str(s->iso, "cause")).ToLocal(&cause)) e->cause = Part(s, c, cause);
}

void Locate(ex_isolate* s, Local<v8::Context> c, Local<v8::Message> m, ex_error* e) {
  if (m.IsEmpty()) return;
  std::string file = FileOf(s, c, m);
  if (file.empty() || file == kLibraryName || file == "undefined") return;
  e->line = m->GetLineNumber(c).FromMaybe(0);
  e->column = m->GetStartColumn(c).FromMaybe(-1) + 1;
  goMapPosition(s->handle, {file.data(), file.size()}, &e->line, &e->column);
  e->file = Buf(file);
}

// Tell calls the library's report(kind, reason, promise); false when the program is to stop.
bool Tell(ex_isolate* s, Local<v8::Context> c, const char* kind, Local<Value> reason, Local<v8::Promise> promise) {
  v8::TryCatch tc(s->iso);
  Local<Value> args[] = {Str(s->iso, kind), reason, promise};
  return !s->report.Get(s->iso)->Call(c, v8::Undefined(s->iso), 3, args).IsEmpty() || !tc.HasTerminated();
}

constexpr size_t kMaxTracked = 1000;  // rejected promises of one turn

// ReportRejections tells the library about each promise that was rejected and found no handler in this turn, and about
// those of earlier turns that have found one since (HTML, 8.1.4.7 "notify about rejected promises"). It never touches
// the program's outcome. True when the program may have run, so that it needs another turn.
bool ReportRejections(ex_isolate* s, Local<v8::Context> c) {
  bool more = std::exchange(s->rejected_more, false);
  auto rejected = std::move(s->rejected);
  auto handled = std::move(s->handled_late);
  s->rejected.clear();
  s->handled_late.clear();
  for (auto& [promise, reason, task] : rejected) {
    Local<v8::Promise> p = promise.Get(s->iso);
    if (p->HasHandler()) continue;  // another's listener, or require, took it
    if (p == s->evaluation.Get(s->iso) || (!s->outcome.IsEmpty() && p == s->outcome.Get(s->iso))) continue;
    Attribution attribution(s, task);
    if (!Tell(s, c, "unhandledrejection", reason.Get(s->iso), p)) return false;
  }
  if (more) {
    std::string text = "more than " + std::to_string(kMaxTracked) + " promises were rejected at once with nobody to handle it: the others are not reported";
    goLog(s->handle, {"warn", 4}, {text.data(), text.size()});
  }
  for (auto& promise : handled) {
    Local<v8::Promise> p = promise.Get(s->iso);
    if (!Tell(s, c, "rejectionhandled", p->Result(), p)) return false;
  }
  return !rejected.empty() || !handled.empty();
}

// Settle asks the library for the promise of the program's value once its entry module is evaluated.
bool Settle(ex_isolate* s, Local<v8::Context> c) {
  Local<Value> args[] = {s->modules[s->main_module].module.Get(s->iso)->GetModuleNamespace(), Str(s->iso, s->call_entry ? "call" : "module"), s->input.Get(s->iso)};
  Local<Value> p;
  if (!s->settle.Get(s->iso)->Call(c, v8::Undefined(s->iso), 3, args).ToLocal(&p) || !p->IsPromise()) return false;
  s->outcome.Reset(s->iso, p.As<v8::Promise>());
  return true;
}

// Turn runs microtasks and V8's tasks until none is left; true when there was a task.
bool Turn(v8::Isolate* iso) {
  bool ran = false;
  iso->PerformMicrotaskCheckpoint();
  while (!iso->IsExecutionTerminating() && v8::platform::PumpMessageLoop(ThePlatform(), iso)) {
    ran = true;
    iso->PerformMicrotaskCheckpoint();
  }
  return ran;
}

}  // namespace

namespace {

// Amend adds to the message of a ReferenceError what to use in place of a name that other runtimes have. V8 has no hook
// where it makes such an error, so this is done where one is shown: its stack is formatted, a promise is rejected with
// it, or it ends the program. No code of the program runs here.
void Amend(ex_isolate* s, Local<v8::Context> c, Local<Value> thrown) {
  constexpr std::string_view kEnd = " is not defined";
  v8::Isolate* iso = s->iso;
  if (!thrown->IsNativeError() || s->handle == 0) return;
  auto error = thrown.As<v8::Object>();
  v8::TryCatch tc(iso);
  Local<Value> descriptor, text;
  if (!error->GetOwnPropertyDescriptor(c, Str(iso, "message")).ToLocal(&descriptor) || !descriptor->IsObject()) return;
  if (!descriptor.As<v8::Object>()->GetRealNamedProperty(c, Str(iso, "value")).ToLocal(&text) || !text->IsString() || text.As<v8::String>()->Length() > 80) return;
  std::string message = Utf8(iso, text);
  if (message.size() <= kEnd.size() || message.compare(message.size() - kEnd.size(), kEnd.size(), kEnd) != 0) return;
  if (Utf8(iso, error->GetConstructorName()) != "ReferenceError") return;
  std::string name = message.substr(0, message.size() - kEnd.size());
  ex_buf hint = goHint(s->handle, {name.data(), name.size()});
  if (hint.n > 0) (void)error->DefineOwnProperty(c, Str(iso, "message"), Str(iso, message + ": " + std::string(hint.p, hint.n)), v8::DontEnum);
  ex_buf_free(hint);
}

}  // namespace

ex_error Describe(ex_isolate* s, Local<v8::Context> c, Local<Value> thrown, Local<v8::Message> m, int kind) {
  Amend(s, c, thrown);
  ex_error e{};
  e.kind = kind;
  if (m.IsEmpty()) m = v8::Exception::CreateMessage(s->iso, thrown);
  if (thrown->IsNativeError()) {
    DescribeError(s, c, thrown.As<v8::Object>(), &e);
  } else {
    e.message = Buf(Cut(Inspect(s, c, thrown), kMaxErrorText));
    e.thrown = Part(s, c, thrown);
  }
  Locate(s, c, m, &e);
  if (kind == EX_EXCEPTION && s->allocator->denied() && thrown->IsNativeError() && View({e.message.p, e.message.n}) == "Array buffer allocation failed") e.kind = EX_MEMORY;
  if (s->memory_hit) {  // what was thrown is not why it ended
    ex_error_free(&e);
    return Fail(EX_MEMORY, "");
  }
  return e;
}

ex_error Caught(ex_isolate* s, Local<v8::Context> c, v8::TryCatch& tc, int kind) {
  if (s->memory_hit) return Fail(EX_MEMORY, "");
  if (tc.HasTerminated() || s->stopped || s->iso->IsExecutionTerminating()) return Fail(EX_TERMINATED, "");
  if (!tc.HasCaught()) return Fail(EX_INTERNAL, "V8 failed without an exception");
  Local<Value> thrown = tc.Exception();
  Local<v8::Message> m = tc.Message();
  tc.Reset();
  // A graph's module that does not parse fails while it is linked, but is a syntax error.
  if (kind == EX_SYNTAX && !thrown->IsNativeError()) kind = EX_EXCEPTION;
  return Describe(s, c, thrown, m, kind);
}

namespace {

Local<v8::Private> Hushed(v8::Isolate* iso) { return v8::Private::ForApi(iso, Str(iso, "executor hushed")); }

bool IsHushed(v8::Isolate* iso, Local<v8::Context> c, Local<Value> reason) {
  return reason->IsObject() && reason.As<v8::Object>()->HasPrivate(c, Hushed(iso)).FromMaybe(false);
}

}  // namespace

void Hush(v8::Isolate* iso, Local<v8::Context> c, Local<Value> reason) {
  if (reason->IsObject()) (void)reason.As<v8::Object>()->SetPrivate(c, Hushed(iso), v8::True(iso));
}

void PromiseRejected(v8::PromiseRejectMessage m) {
  v8::Isolate* iso = v8::Isolate::GetCurrent();
  ex_isolate* s = Self(iso);
  if (s == nullptr || s->context.IsEmpty()) return;
  Local<v8::Context> c = s->context.Get(iso);
  if (m.GetEvent() == v8::kPromiseRejectWithNoHandler) {
    Amend(s, c, m.GetValue());
    if (IsHushed(iso, c, m.GetValue())) return;
    if (s->rejected.size() >= kMaxTracked) {
      s->rejected_more = true;
    } else {
      s->rejected.push_back({v8::Global<v8::Promise>(iso, m.GetPromise()), v8::Global<Value>(iso, m.GetValue()), ex_task(s)});
    }
  } else if (m.GetEvent() == v8::kPromiseHandlerAddedAfterReject) {
    for (auto it = s->rejected.begin(); it != s->rejected.end(); ++it) {
      if (it->promise == m.GetPromise()) {
        s->rejected.erase(it);
        return;
      }
    }
    if (IsHushed(iso, c, m.GetPromise()->Result())) return;
    if (s->handled_late.size() < kMaxTracked) s->handled_late.emplace_back(iso, m.GetPromise());
  }
}

namespace {

// FileName is the name of a frame's script. A frame's own text has what a comment sourceURL says in its place, which is
// the program's to choose.
std::string FileName(v8::Isolate* iso, Local<v8::Context> c, Local<v8::Object> site) {
  Local<Value> f, name;
  if (!site->Get(c, Str(iso, "getFileName")).ToLocal(&f) || !f->IsFunction()) return "";
  if (!f.As<v8::Function>()->Call(c, site, 0, nullptr).ToLocal(&name) || !name->IsString()) return "";
  return Utf8(iso, name);
}

// Frame rewrites one "fn (file:line:col)" of the script called name to the submitted text's place. Where the script has no
// name the file is that of the text.
std::string Frame(ex_isolate* s, const std::string& text, const std::string& name) {
  size_t end = text.size() - (!text.empty() && text.back() == ')' ? 1 : 0);
  size_t col = text.rfind(':', end == 0 ? 0 : end - 1);
  if (col == std::string::npos || col == 0) return text;
  size_t line = text.rfind(':', col - 1);
  if (line == std::string::npos) return text;
  int l = atoi(text.c_str() + line + 1), k = atoi(text.c_str() + col + 1);
  if (l <= 0 || k <= 0) return text;
  size_t open = text.rfind(" (", line);
  size_t from = open == std::string::npos ? 0 : open + 2;
  for (const char* prefix : {"async "}) {
    if (open == std::string::npos && text.compare(0, strlen(prefix), prefix) == 0) from = strlen(prefix);
  }
  std::string file = name.empty() ? text.substr(from, line - from) : name;
  goMapPosition(s->handle, {file.data(), file.size()}, &l, &k);
  std::string where = file + ":" + std::to_string(l) + ":" + std::to_string(k);
  if (open == std::string::npos) return text.substr(0, from) + where;
  std::string fn = text.substr(0, open);
  // The wrapper of a script is the default export of a module the program did not write.
  if (fn == "default" || fn == "Module.default") return where;
  if (fn == "async default" || fn == "async Module.default") return "async " + where;
  return fn + " (" + where + ")";
}

}  // namespace

v8::MaybeLocal<Value> FormatStack(Local<v8::Context> c, Local<Value> error, Local<v8::Array> sites) {
  v8::Isolate* iso = v8::Isolate::GetCurrent();
  ex_isolate* s = Self(iso);
  v8::TryCatch tc(iso);
  if (s != nullptr) Amend(s, c, error);
  Local<v8::String> text;
  std::string out = "Error";
  if (error->ToString(c).ToLocal(&text)) out = Utf8(iso, text);
  if (tc.HasTerminated()) return {};
  tc.Reset();
  for (uint32_t i = 0; s != nullptr && i < sites->Length(); i++) {
    Local<Value> site;
    if (!sites->Get(c, i).ToLocal(&site) || !site->IsObject() || !site->ToString(c).ToLocal(&text)) break;
    std::string name = FileName(iso, c, site.As<v8::Object>());
    if (name != kLibraryName) out += "\n    at " + Frame(s, Utf8(iso, text), name);
  }
  return Str(iso, out);
}

}  // namespace executord

using namespace executord;
using v8::Local;
using v8::Value;

int ex_drain(ex_isolate* s) {
  Scope scope(s);
  v8::Isolate* iso = s->iso;
  v8::TryCatch tc(iso);
  s->stirred = false;
  for (;;) {
    if (Turn(iso)) s->stirred = true;
    if (Stopping(s)) return EX_STOPPED;
    if (s->outcome.IsEmpty() && !s->evaluation.IsEmpty() && s->evaluation.Get(iso)->State() == v8::Promise::kFulfilled) {
      if (!Settle(s, scope.context)) return EX_STOPPED;
    } else if (!ReportRejections(s, scope.context)) {
      break;
    }
    s->stirred = true;
  }
  if (Stopping(s)) return EX_STOPPED;
  const auto& last = s->outcome.IsEmpty() ? s->evaluation : s->outcome;
  if (last.IsEmpty()) return EX_PENDING;
  v8::Promise::PromiseState state = last.Get(iso)->State();
  if (state == v8::Promise::kPending || (state == v8::Promise::kFulfilled && s->outcome.IsEmpty())) return EX_PENDING;
  return EX_SETTLED;
}

int ex_stirred(ex_isolate* s) { return s->stirred; }

ex_result ex_value(ex_isolate* s, uint64_t max_bytes) {
  Scope scope(s);
  v8::Isolate* iso = s->iso;
  v8::TryCatch tc(iso);
  ex_result r{};
  if (Stopping(s)) {
    r.error = Fail(s->memory_hit ? EX_MEMORY : EX_TERMINATED, "");
    return r;
  }
  if (s->outcome.IsEmpty() && s->evaluation.IsEmpty()) {
    r.error = Fail(EX_INTERNAL, "the program has not run");
    return r;
  }
  ex_value_free(s);
  r.error = Outcome(s, scope.context, s->outcome.IsEmpty() ? s->evaluation.Get(iso) : s->outcome.Get(iso), max_bytes, &s->value);
  if (r.error.kind == EX_NONE) r.value = {s->value.data(), s->value.size()};
  return r;
}

void ex_value_free(ex_isolate* s) { std::string().swap(s->value); }

ex_error executord::Outcome(ex_isolate* s, Local<v8::Context> c, Local<v8::Promise> p, uint64_t max_bytes, std::string* out) {
  ex_error e{};
  if (p->State() == v8::Promise::kPending) return Fail(EX_INTERNAL, "the program has not settled");
  if (p->State() == v8::Promise::kRejected) {
    p->MarkAsHandled();
    e = Describe(s, c, p->Result(), Local<v8::Message>(), EX_EXCEPTION);
  } else {
    CodecLimits limits = s->codec;
    limits.bytes = max_bytes;
    limits.handles = !s->retain.empty();
    const uint64_t before = s->last_handle;
    if (!Encode(s, c, p->Result(), limits, "result", out, &e)) ForgetHandles(s, before);
  }
  // A termination that came while the value was read wins over what was read.
  if (Stopping(s) && e.kind != EX_MEMORY) {
    ex_error_free(&e);
    e = Fail(s->memory_hit ? EX_MEMORY : EX_TERMINATED, "");
  }
  return e;
}

void ex_fire(ex_isolate* s, uint32_t id, int last, uint64_t task) {
  Scope scope(s);
  Attribution attribution(s, task);
  v8::TryCatch tc(s->iso);
  Local<Value> args[] = {v8::Integer::NewFromUnsigned(s->iso, id), v8::Boolean::New(s->iso, last)};
  (void)s->fire.Get(s->iso)->Call(scope.context, v8::Undefined(s->iso), 2, args);
}

// ex_roundtrip decodes a text (or evaluates a script) and encodes what came of it: the codec's own test.
ex_result ex_roundtrip(ex_isolate* s, ex_view text, int is_script, uint64_t max_bytes) {
  Scope scope(s);
  v8::TryCatch tc(s->iso);
  ex_result r{};
  Local<Value> v;
  bool ok = false;
  if (is_script) {
    Local<v8::Script> script;
    ok = v8::Script::Compile(scope.context, Str(s->iso, View(text))).ToLocal(&script) && script->Run(scope.context).ToLocal(&v);
  } else {
    ok = Decode(s, scope.context, View(text), s->codec, "a value").ToLocal(&v);
  }
  if (!ok) {
    r.error = Caught(s, scope.context, tc);
    return r;
  }
  CodecLimits limits = s->codec;
  limits.bytes = max_bytes;
  std::string out;
  if (Encode(s, scope.context, v, limits, "value", &out, &r.error)) r.value = Buf(out);
  return r;
}

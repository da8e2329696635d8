// Handles of a retained execution: what its host may call after the program has settled.
#include <charconv>

#include "isolate.h"

namespace executord {

// kMaxHandles is worker.MaxHandles.
constexpr size_t kMaxHandles = 1 << 16;

uint64_t NewHandle(ex_isolate* s, v8::Local<v8::Object> o, v8::Local<v8::Value> receiver, v8::Local<v8::Object> iterator) {
  if (s->handles.size() >= kMaxHandles) return 0;
  Handle& h = s->handles[++s->last_handle];
  h.object.Reset(s->iso, o);
  h.receiver.Reset(s->iso, receiver);
  if (!iterator.IsEmpty()) h.iterator.Reset(s->iso, iterator);
  return s->last_handle;
}

void ForgetHandles(ex_isolate* s, uint64_t after) {
  for (; s->last_handle > after; s->last_handle--) s->handles.erase(s->last_handle);
}

v8::MaybeLocal<v8::Object> HandleNamed(ex_isolate* s, std::string_view id) {
  if (s->retain.empty() || id.size() <= s->retain.size() + 1 || id.substr(0, s->retain.size()) != s->retain || id[s->retain.size()] != '.') return {};
  std::string_view digits = id.substr(s->retain.size() + 1);
  uint64_t n = 0;
  auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  auto it = s->handles.find(n);
  if (fault != std::errc() || end != digits.data() + digits.size() || it == s->handles.end()) return {};
  return it->second.object.Get(s->iso);
}

}  // namespace executord

using namespace executord;
using v8::Local;
using v8::Value;

void ex_retain(ex_isolate* s, ex_view prefix) { s->retain = View(prefix); }

uint64_t ex_handles(ex_isolate* s) { return s->last_handle; }

void ex_release(ex_isolate* s, const uint64_t* handles, size_t n) {
  v8::Isolate::Scope scope(s->iso);
  for (size_t i = 0; i < n; i++) s->handles.erase(handles[i]);
}

// ex_invoke calls a function, or with a method that of an iterator; its outcome is the task's. EX_INPUT tells of arguments that
// are no values, EX_HANDLE of a handle that there is not.
ex_error ex_invoke(ex_isolate* s, uint64_t task, uint64_t handle, ex_view method, const ex_view* args, size_t n) {
  auto found = s->handles.find(handle);
  if (found == s->handles.end()) return Fail(EX_HANDLE, "there is no such handle");
  Scope scope(s);
  v8::Isolate* iso = s->iso;
  Local<v8::Context> c = scope.context;
  Attribution attribution(s, task);
  v8::TryCatch tc(iso);
  std::vector<Local<Value>> values(n);
  for (size_t i = 0; i < n; i++) {
    if (Decode(s, c, View(args[i]), s->codec, "argument " + std::to_string(i + 1)).ToLocal(&values[i])) continue;
    ex_error e = Caught(s, c, tc);
    if (e.kind == EX_EXCEPTION) e.kind = EX_INPUT;
    return e;
  }
  Local<v8::Promise::Resolver> outcome;
  if (!v8::Promise::Resolver::New(c).ToLocal(&outcome)) return Caught(s, c, tc);
  outcome->GetPromise()->MarkAsHandled();
  s->invocations[task].Reset(iso, outcome->GetPromise());
  Local<Value> result;
  bool ok;
  if (found->second.iterator.IsEmpty() && method.n == 0) {
    ok = found->second.object.Get(iso).As<v8::Function>()->Call(c, found->second.receiver.Get(iso), static_cast<int>(n), values.data()).ToLocal(&result);
  } else if (found->second.iterator.IsEmpty() || method.n == 0) {
    iso->ThrowException(v8::Exception::TypeError(Str(iso, method.n == 0 ? "an iterator cannot be called" : "a function cannot be iterated")));
    ok = false;
  } else {
    Local<Value> given[] = {found->second.iterator.Get(iso), Str(iso, View(method)), v8::Array::New(iso, values.data(), n)};
    ok = Library(s, c, "pull", 3, given).ToLocal(&result);
  }
  if (ok) {
    if (outcome->Resolve(c, result).IsNothing()) return Caught(s, c, tc);
    return ex_error{};
  }
  if (!tc.HasCaught() || tc.HasTerminated() || Stopping(s)) return Caught(s, c, tc);
  Local<Value> thrown = tc.Exception();
  tc.Reset();
  if (outcome->Reject(c, thrown).IsNothing()) return Caught(s, c, tc);
  return ex_error{};
}

// ex_invoked tells whether an invocation has settled.
int ex_invoked(ex_isolate* s, uint64_t task) {
  if (Stopping(s)) return EX_STOPPED;
  v8::Isolate::Scope scope(s->iso);
  v8::HandleScope handles(s->iso);
  auto it = s->invocations.find(task);
  return it != s->invocations.end() && it->second.Get(s->iso)->State() == v8::Promise::kPending ? EX_PENDING : EX_SETTLED;
}

// ex_invocation_value is ex_value of an invocation, which is over with it.
ex_result ex_invocation_value(ex_isolate* s, uint64_t task, uint64_t max_bytes) {
  Scope scope(s);
  Attribution attribution(s, task);
  v8::TryCatch tc(s->iso);
  ex_result r{};
  auto it = s->invocations.find(task);
  if (Stopping(s)) {
    r.error = Fail(s->memory_hit ? EX_MEMORY : EX_TERMINATED, "");
  } else if (it == s->invocations.end()) {
    r.error = Fail(EX_INTERNAL, "there is no such invocation");
  } else {
    Local<v8::Promise> p = it->second.Get(s->iso);
    s->invocations.erase(it);
    std::string out;
    r.error = Outcome(s, scope.context, p, max_bytes, &out);
    if (r.error.kind == EX_NONE) r.value = Buf(out);
  }
  return r;
}

// ex_task is the task that the code which runs belongs to, 0 where that is not known. It is asked from inside the isolate.
uint64_t ex_task(ex_isolate* s) {
  v8::HandleScope handles(s->iso);
  Local<Value> data = s->iso->GetContinuationPreservedEmbedderData();
  return !data.IsEmpty() && data->IsNumber() ? static_cast<uint64_t>(data.As<v8::Number>()->Value()) : 0;
}

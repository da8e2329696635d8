// The functions that the standard library may call. The program never sees them.
#include <cstring>

#include "isolate.h"

namespace executord {
namespace {

using v8::Local;
using v8::Value;
using Info = v8::FunctionCallbackInfo<Value>;

void ThrowTypeError(v8::Isolate* iso, const std::string& message) { iso->ThrowException(v8::Exception::TypeError(Str(iso, message))); }

// EncodeArgs writes the arguments as a JSON array of values; each is a value of its own.
bool EncodeArgs(ex_isolate* s, Local<v8::Context> c, Local<v8::Array> args, const std::string& tool, std::string* out) {
  *out = "[";
  int left = s->codec.nodes;  // of all together
  for (uint32_t i = 0; i < args->Length(); i++) {
    if (i > 0) *out += ',';
    Local<Value> v;
    if (!args->Get(c, i).ToLocal(&v)) return false;
    CodecLimits limits = s->codec;
    const size_t used = out->size() + 1;  // with the closing bracket
    limits.bytes = used < limits.bytes ? limits.bytes - used : 0;
    limits.nodes = left;
    int parts = 0;
    ex_error err{};
    if (!Encode(s, c, v, limits, "argument " + std::to_string(i + 1) + " of " + tool, out, &err, &parts)) {
      std::string why(View({err.message.p, err.message.n}));
      if (err.kind == EX_TOO_LARGE) why = "the arguments of " + tool + " are larger than " + std::to_string(s->codec.bytes) + " bytes";
      if (err.kind != EX_TERMINATED) ThrowTypeError(s->iso, why);
      ex_error_free(&err);
      return false;
    }
    left -= parts;
  }
  *out += ']';
  return true;
}

// kCallSiteFrames reaches over this function's own frame and the library's.
constexpr int kCallSiteFrames = 3;

// CallSite remembers where a call was made from, for the stack of an error that comes back later.
void CallSite(ex_isolate* s, PendingCall* call) {
  Local<v8::StackTrace> trace = v8::StackTrace::CurrentStackTrace(s->iso, kCallSiteFrames, static_cast<v8::StackTrace::StackTraceOptions>(v8::StackTrace::kLineNumber | v8::StackTrace::kColumnOffset | v8::StackTrace::kScriptName));
  for (int i = 0; i < trace->GetFrameCount(); i++) {
    Local<v8::StackFrame> frame = trace->GetFrame(s->iso, i);
    Local<v8::String> name = frame->GetScriptName();
    if (name.IsEmpty()) continue;
    call->file = Utf8(s->iso, name);
    if (call->file == kLibraryName) continue;
    call->line = frame->GetLineNumber();
    call->column = frame->GetColumn();
    return;
  }
  call->file.clear();
}

void Call(const Info& info) {
  v8::Isolate* iso = info.GetIsolate();
  ex_isolate* s = Self(iso);
  if (s == nullptr) return;  // while a snapshot is made there is nobody to ask
  Local<v8::Context> c = iso->GetCurrentContext();
  std::string provider = Utf8(iso, info[0]);
  auto path = info[1].As<v8::Array>();
  std::vector<std::string> steps;
  PendingCall call;
  call.tool = provider;  // empty for the library's own calls, which the program knows by their first step
  for (uint32_t i = 0; i < path->Length(); i++) {
    Local<Value> step;
    if (!path->Get(c, i).ToLocal(&step)) return;
    steps.push_back(Utf8(iso, step));
    if (!provider.empty()) call.tool += "." + steps.back();
    else if (i == 0) call.tool = steps.back();
  }
  std::string args;
  if (!EncodeArgs(s, c, info[2].As<v8::Array>(), call.tool, &args)) return;
  Local<v8::Promise::Resolver> resolver;
  if (!v8::Promise::Resolver::New(c).ToLocal(&resolver)) return;
  CallSite(s, &call);
  call.resolver.Reset(iso, resolver);
  uint64_t id = s->next_call++;
  s->calls.emplace(id, std::move(call));
  std::vector<ex_view> views;
  for (auto& step : steps) views.push_back({step.data(), step.size()});
  if (!goToolCall(s->handle, id, {provider.data(), provider.size()}, views.data(), views.size(), {args.data(), args.size()})) {
    s->calls.erase(id);
    return;  // the host has told the isolate to stop
  }
  info.GetReturnValue().Set(resolver->GetPromise());
}

void Log(const Info& info) {
  v8::Isolate* iso = info.GetIsolate();
  if (Self(iso) == nullptr) return;
  std::string level = Utf8(iso, info[0]), text = Utf8(iso, info[1]);
  goLog(Self(iso)->handle, {level.data(), level.size()}, {text.data(), text.size()});
}

void TimerStart(const Info& info) {
  v8::Isolate* iso = info.GetIsolate();
  double ms = info[0]->IsNumber() ? info[0].As<v8::Number>()->Value() : 0;
  uint32_t id = Self(iso) == nullptr ? 1 : goTimerStart(Self(iso)->handle, ms, info[1]->IsTrue());
  if (id == 0) {
    iso->ThrowException(v8::Exception::RangeError(Str(iso, "more timers are pending than this program may have")));
    return;
  }
  info.GetReturnValue().Set(id);
}

void TimerStop(const Info& info) {
  if (info[0]->IsUint32() && Self(info.GetIsolate()) != nullptr) goTimerStop(Self(info.GetIsolate())->handle, info[0].As<v8::Uint32>()->Value());
}

const char* PrimitiveClass(Local<Value> v) {
  if (v->IsString()) return "string";
  if (v->IsNumber()) return "number";
  if (v->IsBoolean()) return "boolean";
  if (v->IsUndefined()) return "undefined";
  if (v->IsNull()) return "null";
  if (v->IsBigInt()) return "bigint";
  return "symbol";
}

// IsClassText tells a class's source from that of an arrow function whose parameter starts with the word.
bool IsClassText(const std::string& text) {
  if (text.compare(0, 5, "class") != 0) return false;
  unsigned char next = text.size() > 5 ? text[5] : 0;
  if (isalnum(next) || next == '_' || next == '$' || next == '\\' || next >= 0x80) return false;
  size_t word = text.find_first_not_of(" \n\t", 5);
  return word == std::string::npos || text[word] != '=';
}

const char* FunctionClass(v8::Isolate* iso, Local<Value> v) {
  if (v->IsGeneratorFunction()) return v->IsAsyncFunction() ? "AsyncGeneratorFunction" : "GeneratorFunction";
  if (v->IsAsyncFunction()) return "AsyncFunction";
  Local<v8::String> text;
  v8::TryCatch tc(iso);
  // Only a class's own source starts with this word; for functions V8 gives the source without running the program.
  if (v.As<v8::Function>()->FunctionProtoToString(iso->GetCurrentContext()).ToLocal(&text) && IsClassText(Utf8(iso, text))) return "Class";
  return "Function";
}

const char* ClassOf(v8::Isolate* iso, Local<Value> v) {
  if (!v->IsObject()) return PrimitiveClass(v);
  if (v->IsProxy()) return "Proxy";
  if (v->IsFunction()) return FunctionClass(iso, v);
  if (v->IsArray()) return "Array";
  if (v->IsDate()) return "Date";
  if (v->IsRegExp()) return "RegExp";
  if (v->IsMap()) return "Map";
  if (v->IsSet()) return "Set";
  if (v->IsWeakMap()) return "WeakMap";
  if (v->IsWeakSet()) return "WeakSet";
  if (v->IsWeakRef()) return "WeakRef";
  if (v->IsMapIterator()) return "MapIterator";
  if (v->IsSetIterator()) return "SetIterator";
  if (v->IsNativeError()) return "Error";
  if (v->IsPromise()) return "Promise";
  if (v->IsArrayBuffer()) return "ArrayBuffer";
  if (v->IsSharedArrayBuffer()) return "SharedArrayBuffer";
  if (v->IsArrayBufferView()) return ViewClass(v);
  if (v->IsBooleanObject()) return "BoxedBoolean";
  if (v->IsNumberObject()) return "BoxedNumber";
  if (v->IsStringObject()) return "BoxedString";
  if (v->IsSymbolObject()) return "BoxedSymbol";
  if (v->IsBigIntObject()) return "BoxedBigInt";
  if (v->IsArgumentsObject()) return "Arguments";
  if (v->IsGeneratorObject()) return "Generator";
  if (v->IsModuleNamespaceObject()) return "Namespace";
  return "Object";
}

void ClassOfValue(const Info& info) { info.GetReturnValue().Set(Str(info.GetIsolate(), ClassOf(info.GetIsolate(), info[0]))); }

void PromiseState(const Info& info) {
  v8::Isolate* iso = info.GetIsolate();
  if (!info[0]->IsPromise()) return;
  auto p = info[0].As<v8::Promise>();
  static const char* names[] = {"pending", "fulfilled", "rejected"};
  Local<Value> pair[] = {Str(iso, names[p->State()]), v8::Undefined(iso)};
  if (p->State() != v8::Promise::kPending) pair[1] = p->Result();
  info.GetReturnValue().Set(v8::Array::New(iso, pair, 2));
}

void ConstructorName(const Info& info) {
  if (info[0]->IsObject()) info.GetReturnValue().Set(info[0].As<v8::Object>()->GetConstructorName());
}

void Entries(const Info& info) {
  v8::Isolate* iso = info.GetIsolate();
  bool key_value = false;
  Local<v8::Array> flat;
  if (!info[0]->IsObject() || !info[0].As<v8::Object>()->PreviewEntries(&key_value).ToLocal(&flat)) return;
  Local<Value> pair[] = {flat, v8::Boolean::New(iso, key_value)};
  info.GetReturnValue().Set(v8::Array::New(iso, pair, 2));
}

void ProxyTarget(const Info& info) {
  v8::Isolate* iso = info.GetIsolate();
  if (!info[0]->IsProxy()) return;
  auto p = info[0].As<v8::Proxy>();
  Local<Value> pair[] = {p->GetTarget(), p->GetHandler()};
  info.GetReturnValue().Set(v8::Array::New(iso, pair, 2));
}

void Keys(const Info& info) {
  v8::Isolate* iso = info.GetIsolate();
  Local<v8::Array> keys = v8::Array::New(iso);
  if (info[0]->IsObject() && !info[0]->IsProxy()) {
    (void)info[0].As<v8::Object>()->GetOwnPropertyNames(iso->GetCurrentContext(), v8::ALL_PROPERTIES, v8::KeyConversionMode::kConvertToString).ToLocal(&keys);
  }
  info.GetReturnValue().Set(keys);
}

const std::vector<NativeFunction>& Functions() {
  static const std::vector<NativeFunction> all = [] {
    std::vector<NativeFunction> f = {
        {"call", Call},
        {"log", Log},
        {"timerStart", TimerStart},
        {"timerStop", TimerStop},
        {"classOf", ClassOfValue},
        {"promiseState", PromiseState},
        {"constructorName", ConstructorName},
        {"entries", Entries},
        {"proxyTarget", ProxyTarget},
        {"keys", Keys},
    };
    f.insert(f.end(), ServiceFunctions().begin(), ServiceFunctions().end());
    return f;
  }();
  return all;
}

}  // namespace

const char* ViewClass(v8::Local<v8::Value> v) {
  if (v->IsUint8Array()) return "Uint8Array";
  if (v->IsUint8ClampedArray()) return "Uint8ClampedArray";
  if (v->IsInt8Array()) return "Int8Array";
  if (v->IsUint16Array()) return "Uint16Array";
  if (v->IsInt16Array()) return "Int16Array";
  if (v->IsUint32Array()) return "Uint32Array";
  if (v->IsInt32Array()) return "Int32Array";
  if (v->IsFloat16Array()) return "Float16Array";
  if (v->IsFloat32Array()) return "Float32Array";
  if (v->IsFloat64Array()) return "Float64Array";
  if (v->IsBigInt64Array()) return "BigInt64Array";
  if (v->IsBigUint64Array()) return "BigUint64Array";
  return "DataView";
}

v8::Local<v8::Object> NativeFunctions(v8::Isolate* iso, v8::Local<v8::Context> c) {
  Local<v8::Object> o = v8::Object::New(iso);
  for (auto& [name, f] : Functions()) {
    Local<v8::String> key = Str(iso, name);
    Local<v8::Function> fn = v8::Function::New(c, f, Local<Value>(), 0, v8::ConstructorBehavior::kThrow).ToLocalChecked();
    fn->SetName(key);
    o->CreateDataProperty(c, key, fn).Check();
  }
  return o;
}

const intptr_t* ExternalReferences() {
  static const std::vector<intptr_t> refs = [] {
    std::vector<intptr_t> r;
    for (auto& [name, f] : Functions()) r.push_back(reinterpret_cast<intptr_t>(f));
    r.push_back(reinterpret_cast<intptr_t>(WakeName));
    r.push_back(0);
    return r;
  }();
  return refs.data();
}

}  // namespace executord

using namespace executord;

namespace {

// Rejection makes what a failed tool call throws: the text is JSON {name?, message, code?, thrown?}.
v8::Local<v8::Value> Rejection(ex_isolate* s, v8::Local<v8::Context> c, const PendingCall& call, v8::Local<v8::Value> fault) {
  v8::Isolate* iso = s->iso;
  auto text = [&](const char* name) -> v8::Local<v8::Value> {
    v8::Local<v8::Value> v;
    if (!fault->IsObject() || !fault.As<v8::Object>()->Get(c, Str(iso, name)).ToLocal(&v)) return v8::Undefined(iso);
    return v;
  };
  if (fault->IsObject() && fault.As<v8::Object>()->HasOwnProperty(c, Str(iso, "thrown")).FromMaybe(false)) return text("thrown");
  v8::Local<v8::Value> message = text("message"), name = text("name"), code = text("code");
  v8::Local<v8::String> m = message->IsString() ? message.As<v8::String>() : v8::String::Empty(iso);
  std::string kind = name->IsString() ? Utf8(iso, name) : "Error";
  v8::Local<v8::Value> e = MakeError(iso, kind, m);
  auto o = e.As<v8::Object>();
  v8::Local<v8::Value> own;
  if (!kind.empty() && (!o->Get(c, Str(iso, "name")).ToLocal(&own) || Utf8(iso, own) != kind)) (void)o->DefineOwnProperty(c, Str(iso, "name"), Str(iso, kind), v8::DontEnum);
  if (code->IsString()) (void)o->CreateDataProperty(c, Str(iso, "code"), code);
  std::string stack = kind + (m->Length() > 0 ? ": " + Utf8(iso, m) : "") + "\n    at " + call.tool;
  if (!call.file.empty()) {
    int line = call.line, column = call.column;
    goMapPosition(s->handle, {call.file.data(), call.file.size()}, &line, &column);
    stack += "\n    at " + call.file + ":" + std::to_string(line) + ":" + std::to_string(column);
  }
  (void)o->DefineOwnProperty(c, Str(iso, "stack"), Str(iso, stack), v8::DontEnum);
  return e;
}

}  // namespace

void ex_hush(ex_isolate* s, uint64_t id) {
  auto it = s->calls.find(id);
  if (it != s->calls.end()) it->second.hushed = true;
}

ex_error ex_resolve(ex_isolate* s, uint64_t id, int ok, ex_view text) {
  auto it = s->calls.find(id);
  if (it == s->calls.end()) return ex_error{};
  PendingCall call = std::move(it->second);
  s->calls.erase(it);
  Scope scope(s);
  v8::TryCatch tc(s->iso);
  v8::Local<v8::Promise::Resolver> r = call.resolver.Get(s->iso);
  v8::Local<v8::Value> v;
  if (!Decode(s, scope.context, View(text), s->codec, (ok ? "the result of " : "the error of ") + call.tool).ToLocal(&v)) {
    if (tc.HasTerminated() || s->iso->IsExecutionTerminating() || !tc.HasCaught()) return Caught(s, scope.context, tc);
    v8::Local<v8::Value> thrown = tc.Exception();
    tc.Reset();
    (void)r->Reject(scope.context, thrown);
  } else if (ok) {
    (void)r->Resolve(scope.context, v);
  } else {
    v8::Local<v8::Value> reason = Rejection(s, scope.context, call, v);
    if (call.hushed) Hush(s->iso, scope.context, reason);
    (void)r->Reject(scope.context, reason);
  }
  return ex_error{};
}

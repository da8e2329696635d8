// ES modules: loading a graph through the host's resolver, synthetic modules, dynamic import and import.meta.
#include <cstring>

#include "isolate.h"

namespace executord {
namespace {

using v8::Local;
using v8::Value;

constexpr int kMaxModules = 4096;

std::string TypeAttribute(v8::Isolate* iso, Local<v8::Context> c, Local<v8::FixedArray> attributes, int stride) {
  for (int i = 0; i + 1 < attributes->Length(); i += stride) {
    if (Utf8(iso, attributes->Get(c, i).As<Value>()) == "type") return Utf8(iso, attributes->Get(c, i + 1).As<Value>());
  }
  return "";
}

int Find(ex_isolate* s, Local<v8::Module> m) {
  auto [first, last] = s->by_hash.equal_range(m->GetIdentityHash());
  for (auto it = first; it != last; ++it) {
    if (s->modules[it->second].module == m) return it->second;
  }
  return -1;
}

std::string LinkKey(const std::string& referrer, const std::string& specifier, const std::string& type) { return referrer + "\n" + specifier + "\n" + type; }

v8::ScriptOrigin Origin(v8::Isolate* iso, const std::string& key, int index) {
  Local<v8::PrimitiveArray> host = v8::PrimitiveArray::New(iso, 1);
  host->Set(iso, 0, v8::Integer::New(iso, index));
  return v8::ScriptOrigin(Str(iso, key), 0, 0, false, -1, Local<Value>(), false, false, true, host);
}

int Register(ex_isolate* s, const std::string& key, Local<v8::Module> m, int kind, std::string payload) {
  int index = static_cast<int>(s->modules.size());
  ModuleEntry e;
  e.module.Reset(s->iso, m);
  e.key = key;
  e.kind = kind;
  e.payload = std::move(payload);
  s->modules.push_back(std::move(e));
  s->by_key[key] = index;
  s->by_hash.emplace(m->GetIdentityHash(), index);
  return index;
}

// EvaluateSynthetic fills the default export of a JSON, text or bytes module.
v8::MaybeLocal<Value> EvaluateSynthetic(Local<v8::Context> c, Local<v8::Module> m) {
  v8::Isolate* iso = v8::Isolate::GetCurrent();
  ex_isolate* s = Self(iso);
  int index = Find(s, m);
  if (index < 0) return {};
  ModuleEntry& e = s->modules[index];
  Local<Value> v;
  if (e.kind == EX_MODULE_JSON) {
    if (!v8::JSON::Parse(c, Str(iso, e.payload)).ToLocal(&v)) return {};
  } else if (e.kind == EX_MODULE_TEXT) {
    v = Str(iso, e.payload);
  } else {
    Local<v8::ArrayBuffer> b;
    if (!v8::ArrayBuffer::MaybeNew(iso, e.payload.size()).ToLocal(&b)) return {};
    memcpy(b->Data(), e.payload.data(), e.payload.size());
    v = v8::Uint8Array::New(b, 0, e.payload.size());
  }
  if (m->SetSyntheticModuleExport(iso, Str(iso, "default"), v).IsNothing()) return {};
  Local<v8::Promise::Resolver> r;
  if (!v8::Promise::Resolver::New(c).ToLocal(&r) || r->Resolve(c, v8::Undefined(iso)).IsNothing()) return {};
  return r->GetPromise();
}

v8::MaybeLocal<v8::Module> CompileText(ex_isolate* s, const std::string& key, std::string_view text, int index) {
  v8::ScriptOrigin origin = Origin(s->iso, key, index);
  v8::ScriptCompiler::Source source(Str(s->iso, text), origin);
  return v8::ScriptCompiler::CompileModule(s->iso, &source);
}

int Load(ex_isolate* s, Local<v8::Context> c, const std::string& specifier, const std::string& referrer, const std::string& type);

// LoadRequests loads what module `index` imports. It walks with a work list: a chain of imports must not become native
// recursion.
bool LoadRequests(ex_isolate* s, Local<v8::Context> c, int index) {
  std::vector<int> work{index};
  while (!work.empty()) {
    int at = work.back();
    work.pop_back();
    if (s->modules[at].kind != EX_MODULE_ESM) continue;
    std::string referrer = s->modules[at].key;
    Local<v8::FixedArray> requests = s->modules[at].module.Get(s->iso)->GetModuleRequests();
    for (int i = 0; i < requests->Length(); i++) {
      auto r = requests->Get(c, i).As<v8::ModuleRequest>();
      size_t before = s->modules.size();
      if (Load(s, c, Utf8(s->iso, r->GetSpecifier()), referrer, TypeAttribute(s->iso, c, r->GetImportAttributes(), 3)) < 0) return false;
      if (s->modules.size() > before) work.push_back(static_cast<int>(before));
    }
  }
  return true;
}

// Load resolves one specifier and compiles what it names, without its own imports. On failure it throws.
int Load(ex_isolate* s, Local<v8::Context> c, const std::string& specifier, const std::string& referrer, const std::string& type) {
  v8::Isolate* iso = s->iso;
  std::string link = LinkKey(referrer, specifier, type);
  if (auto it = s->links.find(link); it != s->links.end()) return it->second;
  ex_buf key_buf{}, source_buf{};
  int kind = goResolveModule(s->handle, {specifier.data(), specifier.size()}, {referrer.data(), referrer.size()}, {type.data(), type.size()}, &key_buf, &source_buf);
  std::string key(key_buf.p, key_buf.n), source(source_buf.p, source_buf.n);
  ex_buf_free(key_buf);
  ex_buf_free(source_buf);
  if (kind == EX_MODULE_NONE || s->modules.size() >= kMaxModules) {
    iso->ThrowException(v8::Exception::TypeError(Str(iso, kind == EX_MODULE_NONE ? source : "the program imports too many modules")));
    return -1;
  }
  if (auto it = s->by_key.find(key); it != s->by_key.end()) return s->links[link] = it->second;
  Local<v8::Module> m;
  if (kind == EX_MODULE_ESM) {
    if (!CompileText(s, key, source, static_cast<int>(s->modules.size())).ToLocal(&m)) return -1;
    source.clear();
  } else {
    Local<v8::String> name = Str(iso, "default");
    m = v8::Module::CreateSyntheticModule(iso, Str(iso, key), v8::MemorySpan<const Local<v8::String>>(&name, 1), EvaluateSynthetic);
  }
  return s->links[link] = Register(s, key, m, kind, std::move(source));
}

v8::MaybeLocal<v8::Module> Resolve(Local<v8::Context> c, Local<v8::String> specifier, Local<v8::FixedArray> attributes, Local<v8::Module> referrer) {
  v8::Isolate* iso = v8::Isolate::GetCurrent();
  ex_isolate* s = Self(iso);
  int from = Find(s, referrer);
  auto it = from < 0 ? s->links.end() : s->links.find(LinkKey(s->modules[from].key, Utf8(iso, specifier), TypeAttribute(iso, c, attributes, 3)));
  if (it == s->links.end()) {
    iso->ThrowException(v8::Exception::TypeError(Str(iso, "the module was not loaded")));
    return {};
  }
  return s->modules[it->second].module.Get(iso);
}

void ReturnData(const v8::FunctionCallbackInfo<Value>& info) { info.GetReturnValue().Set(info.Data()); }

v8::MaybeLocal<Value> ImportNow(ex_isolate* s, Local<v8::Context> c, const std::string& specifier, const std::string& referrer, const std::string& type, Local<v8::Module>* m) {
  size_t before = s->modules.size();
  int index = Load(s, c, specifier, referrer, type);
  if (index < 0) return {};
  *m = s->modules[index].module.Get(s->iso);
  if (s->modules.size() > before && !LoadRequests(s, c, index)) return {};
  if (!(*m)->InstantiateModule(c, Resolve).FromMaybe(false)) return {};
  return (*m)->Evaluate(c);
}

}  // namespace

v8::MaybeLocal<v8::Promise> ImportDynamically(Local<v8::Context> c, Local<v8::Data> host, Local<Value> resource, Local<v8::String> specifier, Local<v8::FixedArray> attributes) {
  v8::Isolate* iso = v8::Isolate::GetCurrent();
  ex_isolate* s = Self(iso);
  Local<v8::Promise::Resolver> r;
  if (!v8::Promise::Resolver::New(c).ToLocal(&r)) return {};
  auto options = host.As<v8::PrimitiveArray>();
  int from = options->Length() > 0 ? options->Get(iso, 0).As<v8::Integer>()->Value() : s->main_module;
  std::string referrer = from >= 0 && from < static_cast<int>(s->modules.size()) ? s->modules[from].key : "";
  v8::TryCatch tc(iso);
  Local<v8::Module> m;
  Local<Value> evaluated;
  if (!ImportNow(s, c, Utf8(iso, specifier), referrer, TypeAttribute(iso, c, attributes, 2), &m).ToLocal(&evaluated)) {
    if (tc.HasTerminated() || iso->IsExecutionTerminating()) {
      tc.ReThrow();
      return {};
    }
    if (r->Reject(c, tc.Exception()).IsNothing()) return {};
    return r->GetPromise();
  }
  Local<v8::Function> namespace_of;
  if (!v8::Function::New(c, ReturnData, m->GetModuleNamespace()).ToLocal(&namespace_of)) return {};
  return evaluated.As<v8::Promise>()->Then(c, namespace_of);
}

void InitImportMeta(Local<v8::Context> c, Local<v8::Module> m, Local<v8::Object> meta) {
  v8::Isolate* iso = v8::Isolate::GetCurrent();
  ex_isolate* s = Self(iso);
  int index = Find(s, m);
  if (index < 0) return;
  (void)meta->CreateDataProperty(c, Str(iso, "url"), Str(iso, "executor:///" + s->modules[index].key));
}

}  // namespace executord

using namespace executord;
using v8::Local;
using v8::Value;

ex_error ex_run(ex_isolate* s, ex_view name, ex_view source, int call, ex_view input) {
  Scope scope(s);
  v8::Isolate* iso = s->iso;
  v8::TryCatch tc(iso);
  Local<v8::Module> m;
  std::string key(View(name));
  s->call_entry = call;
  if (!CompileText(s, key, View(source), static_cast<int>(s->modules.size())).ToLocal(&m)) return Caught(s, scope.context, tc, EX_SYNTAX);
  s->main_module = Register(s, key, m, EX_MODULE_ESM, "");
  s->by_key.erase(key);  // a module of the same name is another one
  if (!LoadRequests(s, scope.context, s->main_module)) return Caught(s, scope.context, tc, EX_MODULE);
  if (!m->InstantiateModule(scope.context, Resolve).FromMaybe(false)) return Caught(s, scope.context, tc, EX_MODULE);
  Local<Value> v = v8::Undefined(iso);
  if (input.n > 0 && !Decode(s, scope.context, View(input), s->codec).ToLocal(&v)) return Caught(s, scope.context, tc);
  s->input.Reset(iso, v);
  if (!m->Evaluate(scope.context).ToLocal(&v)) return Caught(s, scope.context, tc);
  s->evaluation.Reset(iso, v.As<v8::Promise>());
  return ex_error{};
}

ex_error ex_compile(ex_isolate* s, ex_view name, ex_view source) {
  Scope scope(s);
  v8::TryCatch tc(s->iso);
  if (CompileText(s, std::string(View(name)), View(source), -1).IsEmpty()) return Caught(s, scope.context, tc, EX_SYNTAX);
  return ex_error{};
}

ex_result ex_stalled(ex_isolate* s) {
  Scope scope(s);
  ex_result r{};
  if (s->main_module < 0) return r;
  Local<v8::Module> m = s->modules[s->main_module].module.Get(s->iso);
  if (m->GetStatus() != v8::Module::kEvaluating && m->GetStatus() != v8::Module::kEvaluated) return r;
  auto [modules, messages] = m->GetStalledTopLevelAwaitMessages(s->iso);
  if (messages.empty()) return r;
  Local<v8::Message> at = messages[0];
  std::string file = Utf8(s->iso, at->GetScriptResourceName());
  r.error.kind = EX_EXCEPTION;
  r.error.line = at->GetLineNumber(scope.context).FromMaybe(0);
  r.error.column = at->GetStartColumn(scope.context).FromMaybe(-1) + 1;
  goMapPosition(s->handle, {file.data(), file.size()}, &r.error.line, &r.error.column);
  r.error.file = Buf(file);
  return r;
}

// CommonJS modules, as Node documents them (https://nodejs.org/api/modules.html): the module object, require and its
// cache. Specifiers resolve as those of imports do. A module's text is compiled as the body of a function with the
// parameters of the wrapper; it is never put into other text.
#include "isolate.h"

namespace executord {
namespace {

using v8::Local;
using v8::Value;
using Info = v8::FunctionCallbackInfo<Value>;

std::string FileName(const std::string& key) { return key.find(':') == std::string::npos && key[0] != '/' ? "/" + key : key; }

std::string DirName(const std::string& file) {
  size_t at = file.rfind('/');
  return at == std::string::npos ? "." : at == 0 ? "/" : file.substr(0, at);
}

Local<v8::Object> Cache(ex_isolate* s, Local<v8::Context> c) {
  if (s->required.IsEmpty()) s->required.Reset(s->iso, v8::Object::New(s->iso, v8::Null(s->iso), nullptr, nullptr, 0));
  return s->required.Get(s->iso);
}

void Throw(v8::Isolate* iso, Local<v8::Context> c, const std::string& message, const char* code) {
  Local<Value> e = v8::Exception::Error(Str(iso, message));
  (void)e.As<v8::Object>()->CreateDataProperty(c, Str(iso, "code"), Str(iso, code));
  iso->ThrowException(e);
}

// RequireSync evaluates a module of any other kind. One that awaits at its top level cannot be had at once.
v8::MaybeLocal<Value> RequireSync(ex_isolate* s, Local<v8::Context> c, int index) {
  v8::Isolate* iso = s->iso;
  Local<v8::Module> m = s->modules[index].module.Get(iso);
  std::string key = s->modules[index].key;
  if (m->GetStatus() == v8::Module::kUninstantiated && (!LoadRequests(s, c, index) || !m->InstantiateModule(c, ResolveLink).FromMaybe(false))) return {};
  if (m->GetStatus() == v8::Module::kErrored) {
    iso->ThrowException(m->GetException());
    return {};
  }
  if (m->GetStatus() == v8::Module::kEvaluating) {
    Throw(iso, c, "cannot require \"" + key + "\" while it is being evaluated: it is part of a cycle; import it instead", "ERR_REQUIRE_CYCLE_MODULE");
    return {};
  }
  if (m->GetStatus() < v8::Module::kInstantiated || m->IsGraphAsync()) {
    Throw(iso, c, "cannot require \"" + key + "\": it, or a module that it imports, uses top-level await; use await import(\"" + key + "\") instead", "ERR_REQUIRE_ASYNC_MODULE");
    return {};
  }
  Local<Value> v;
  if (!m->Evaluate(c).ToLocal(&v)) return {};
  auto p = v.As<v8::Promise>();
  if (p->State() == v8::Promise::kRejected) {
    p->MarkAsHandled();
    iso->ThrowException(p->Result());
    return {};
  }
  if (s->modules[index].kind == EX_MODULE_ESM) return m->GetModuleNamespace();
  return m->GetModuleNamespace().As<v8::Object>()->Get(c, Str(iso, "default"));
}

// Named loads what require or require.resolve is asked for; negative after a throw.
int Named(const Info& info) {
  v8::Isolate* iso = info.GetIsolate();
  ex_isolate* s = Self(iso);
  Local<v8::Context> c = iso->GetCurrentContext();
  if (!info[0]->IsString()) {
    iso->ThrowException(v8::Exception::TypeError(Str(iso, "the specifier that is required must be a string")));
    return -1;
  }
  v8::TryCatch tc(iso);
  int index = Load(s, c, Utf8(iso, info[0]), s->modules[info.Data().As<v8::Integer>()->Value()].key, "");
  if (index >= 0) return index;
  // Programs that can do without a module look at the code.
  if (tc.HasCaught() && !tc.HasTerminated() && tc.Exception()->IsNativeError() && Utf8(iso, tc.Exception()).find("TypeError: cannot find module") == 0) {
    (void)tc.Exception().As<v8::Object>()->CreateDataProperty(c, Str(iso, "code"), Str(iso, "MODULE_NOT_FOUND"));
  }
  tc.ReThrow();
  return -1;
}

void Require(const Info& info) {
  ex_isolate* s = Self(info.GetIsolate());
  Local<v8::Context> c = info.GetIsolate()->GetCurrentContext();
  int index = Named(info);
  if (index < 0) return;
  Local<Value> v;
  bool ok = s->modules[index].kind == EX_MODULE_COMMONJS ? RunCommonJS(s, c, index).ToLocal(&v) : RequireSync(s, c, index).ToLocal(&v);
  if (ok) info.GetReturnValue().Set(v);
}

void RequireResolve(const Info& info) {
  int index = Named(info);
  if (index >= 0) info.GetReturnValue().Set(Str(info.GetIsolate(), FileName(Self(info.GetIsolate())->modules[index].key)));
}

v8::MaybeLocal<v8::Function> MakeRequire(ex_isolate* s, Local<v8::Context> c, int index) {
  v8::Isolate* iso = s->iso;
  Local<v8::Function> require, resolve;
  if (!v8::Function::New(c, Require, v8::Integer::New(iso, index), 1, v8::ConstructorBehavior::kThrow).ToLocal(&require)) return {};
  if (!v8::Function::New(c, RequireResolve, v8::Integer::New(iso, index), 1, v8::ConstructorBehavior::kThrow).ToLocal(&resolve)) return {};
  require->SetName(Str(iso, "require"));
  resolve->SetName(Str(iso, "resolve"));
  if (require->CreateDataProperty(c, Str(iso, "resolve"), resolve).IsNothing() || require->CreateDataProperty(c, Str(iso, "cache"), Cache(s, c)).IsNothing()) return {};
  return require;
}

bool Set(Local<v8::Context> c, Local<v8::Object> o, const char* name, Local<Value> v) { return o->CreateDataProperty(c, Str(v8::Isolate::GetCurrent(), name), v).FromMaybe(false); }

// Evaluate runs a module's text over its module object.
bool Evaluate(ex_isolate* s, Local<v8::Context> c, int index, Local<v8::Object> module, Local<v8::Object> exports, const std::string& file) {
  v8::Isolate* iso = s->iso;
  Local<v8::Function> body = s->modules[index].body.Get(iso), require;
  if (!MakeRequire(s, c, index).ToLocal(&require)) return false;
  Local<Value> args[] = {exports, require, module, Str(iso, file), Str(iso, DirName(file))};
  return Set(c, module, "require", require) && !body->Call(c, exports, 5, args).IsEmpty() && Set(c, module, "loaded", v8::True(iso));
}

}  // namespace

v8::MaybeLocal<v8::Function> CompileCommonJS(v8::Isolate* iso, Local<v8::Context> c, const std::string& key, std::string_view text, int index) {
  Self(iso)->compiling = key;
  v8::ScriptOrigin origin = Origin(iso, key, index, false);
  v8::ScriptCompiler::Source source(Str(iso, text), origin);
  Local<v8::String> parameters[] = {Str(iso, "exports"), Str(iso, "require"), Str(iso, "module"), Str(iso, "__filename"), Str(iso, "__dirname")};
  return v8::ScriptCompiler::CompileFunction(c, &source, 5, parameters);
}

v8::MaybeLocal<Value> RunCommonJS(ex_isolate* s, Local<v8::Context> c, int index) {
  v8::Isolate* iso = s->iso;
  std::string file = FileName(s->modules[index].key);
  Local<v8::Object> cache = Cache(s, c);
  Local<v8::String> name = Str(iso, file);
  Local<Value> known;
  if (!cache->Get(c, name).ToLocal(&known)) return {};
  if (known->IsObject()) return known.As<v8::Object>()->Get(c, Str(iso, "exports"));  // whole, or as far as it is in a cycle
  Local<v8::Object> module = v8::Object::New(iso), exports = v8::Object::New(iso);
  if (!Set(c, module, "id", name) || !Set(c, module, "path", Str(iso, DirName(file))) || !Set(c, module, "exports", exports)) return {};
  if (!Set(c, module, "filename", name) || !Set(c, module, "loaded", v8::False(iso)) || cache->CreateDataProperty(c, name, module).IsNothing()) return {};
  if (!Evaluate(s, c, index, module, exports, file)) {
    if (!iso->IsExecutionTerminating()) (void)cache->Delete(c, name);  // the next require tries again
    return {};
  }
  return module->Get(c, Str(iso, "exports"));
}

}  // namespace executord

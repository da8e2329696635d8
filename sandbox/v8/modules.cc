// ES modules (ECMA-262, 16.2): loading a graph through the host's resolver, synthetic modules, dynamic import and
// import.meta (HTML, 8.1.6.7).
#include <cstring>

#include "isolate.h"

namespace executord {
namespace {

using v8::Local;
using v8::Value;

constexpr int kMaxModules = 4096;

// TypeAttribute reads the attribute "type". Any other key is refused (HTML, 8.1.6.7.3 HostGetSupportedImportAttributes).
bool TypeAttribute(v8::Isolate* iso, Local<v8::Context> c, Local<v8::FixedArray> attributes, int stride, std::string* type) {
  for (int i = 0; i + 1 < attributes->Length(); i += stride) {
    std::string key = Utf8(iso, attributes->Get(c, i).As<Value>());
    if (key != "type") {
      iso->ThrowException(v8::Exception::TypeError(Str(iso, "the import attribute '" + key + "' is not supported; only 'type' is")));
      return false;
    }
    *type = Utf8(iso, attributes->Get(c, i + 1).As<Value>());
  }
  return true;
}

int Find(ex_isolate* s, Local<v8::Module> m) {
  auto [first, last] = s->by_hash.equal_range(m->GetIdentityHash());
  for (auto it = first; it != last; ++it) {
    if (s->modules[it->second].module == m) return it->second;
  }
  return -1;
}

std::string LinkKey(const std::string& referrer, const std::string& specifier, const std::string& type) { return referrer + "\n" + specifier + "\n" + type; }

int Register(ex_isolate* s, const std::string& key, Local<v8::Module> m, int kind, std::string payload, std::string names) {
  int index = static_cast<int>(s->modules.size());
  ModuleEntry e;
  e.module.Reset(s->iso, m);
  e.key = key;
  e.kind = kind;
  e.payload = std::move(payload);
  e.names = std::move(names);
  s->modules.push_back(std::move(e));
  s->by_key[key] = index;
  s->by_hash.emplace(m->GetIdentityHash(), index);
  return index;
}

std::vector<Local<v8::String>> ExportNames(v8::Isolate* iso, std::string_view lines) {
  std::vector<Local<v8::String>> names{Str(iso, "default")};
  while (!lines.empty()) {
    size_t end = std::min(lines.find('\n'), lines.size());
    if (end > 0) names.push_back(Str(iso, lines.substr(0, end)));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return names;
}

v8::MaybeLocal<Value> DefaultOf(ex_isolate* s, Local<v8::Context> c, int index) {
  v8::Isolate* iso = s->iso;
  ModuleEntry& e = s->modules[index];
  if (e.kind == EX_MODULE_JSON) return v8::JSON::Parse(c, Str(iso, e.payload));
  if (e.kind == EX_MODULE_TEXT) return Str(iso, e.payload);
  if (e.kind == EX_MODULE_COMMONJS) return RunCommonJS(s, c, index);
  Local<v8::ArrayBuffer> b;
  if (!v8::ArrayBuffer::MaybeNew(iso, e.payload.size()).ToLocal(&b)) return {};
  memcpy(b->Data(), e.payload.data(), e.payload.size());
  return v8::Uint8Array::New(b, 0, e.payload.size());
}

// SetNames copies what a CommonJS module's text seems to export. It is a copy of the moment, as in Node.
bool SetNames(ex_isolate* s, Local<v8::Context> c, Local<v8::Module> m, const std::string& lines, Local<Value> exports) {
  std::vector<Local<v8::String>> names = ExportNames(s->iso, lines);
  for (size_t i = 1; i < names.size(); i++) {
    Local<Value> v = v8::Undefined(s->iso);
    if (exports->IsObject() && !exports.As<v8::Object>()->Get(c, names[i]).ToLocal(&v)) return false;
    if (m->SetSyntheticModuleExport(s->iso, names[i], v).IsNothing()) return false;
  }
  return true;
}

// EvaluateSynthetic fills the exports of a JSON, text, bytes or CommonJS module.
v8::MaybeLocal<Value> EvaluateSynthetic(Local<v8::Context> c, Local<v8::Module> m) {
  v8::Isolate* iso = v8::Isolate::GetCurrent();
  ex_isolate* s = Self(iso);
  int index = Find(s, m);
  Local<Value> v;
  if (index < 0 || !DefaultOf(s, c, index).ToLocal(&v)) return {};
  std::string names = s->modules[index].names;
  if (m->SetSyntheticModuleExport(iso, Str(iso, "default"), v).IsNothing() || !SetNames(s, c, m, names, v)) return {};
  Local<v8::Promise::Resolver> r;
  if (!v8::Promise::Resolver::New(c).ToLocal(&r) || r->Resolve(c, v8::Undefined(iso)).IsNothing()) return {};
  return r->GetPromise();
}

v8::MaybeLocal<v8::Module> CompileText(ex_isolate* s, const std::string& key, std::string_view text, int index) {
  s->compiling = key;
  v8::ScriptOrigin origin = Origin(s->iso, key, index, true);
  v8::ScriptCompiler::Source source(Str(s->iso, text), origin);
  return v8::ScriptCompiler::CompileModule(s->iso, &source);
}

// NoteImport remembers where an import stands that cannot be resolved.
void NoteImport(ex_isolate* s, int index, int offset) {
  v8::Location at = s->modules[index].module.Get(s->iso)->SourceOffsetToLocation(offset);
  s->import_file = s->modules[index].key;
  s->import_line = at.GetLineNumber() + 1;
  s->import_column = at.GetColumnNumber() + 1;
  goMapPosition(s->handle, {s->import_file.data(), s->import_file.size()}, &s->import_line, &s->import_column);
}

constexpr int kUnresolved = -1, kBroken = -2;  // what LoadOne returns instead of an index

// LoadOne is Load, and tells a specifier that names nothing from a text that does not compile.
int LoadOne(ex_isolate* s, Local<v8::Context> c, const std::string& specifier, const std::string& referrer, const std::string& type) {
  v8::Isolate* iso = s->iso;
  std::string link = LinkKey(referrer, specifier, type);
  if (auto it = s->links.find(link); it != s->links.end()) return it->second;
  ex_buf key_buf{}, source_buf{}, names_buf{};
  int kind = goResolveModule(s->handle, {specifier.data(), specifier.size()}, {referrer.data(), referrer.size()}, {type.data(), type.size()}, &key_buf, &source_buf, &names_buf);
  std::string key(key_buf.p, key_buf.n), source(source_buf.p, source_buf.n), names(names_buf.p, names_buf.n);
  for (ex_buf b : {key_buf, source_buf, names_buf}) ex_buf_free(b);
  if (kind == EX_MODULE_NONE || s->modules.size() >= kMaxModules) {
    iso->ThrowException(v8::Exception::TypeError(Str(iso, kind == EX_MODULE_NONE ? source : "the program imports too many modules")));
    return kUnresolved;
  }
  if (auto it = s->by_key.find(key); it != s->by_key.end()) return s->links[link] = it->second;
  Local<v8::Module> m;
  Local<v8::Function> body;
  if (kind == EX_MODULE_COMMONJS) {
    if (!CompileCommonJS(iso, c, key, source, static_cast<int>(s->modules.size())).ToLocal(&body)) return kBroken;
    source.clear();
  }
  if (kind == EX_MODULE_ESM) {
    if (!CompileText(s, key, source, static_cast<int>(s->modules.size())).ToLocal(&m)) return kBroken;
    source.clear();
  } else {
    std::vector<Local<v8::String>> exports = ExportNames(iso, names);
    m = v8::Module::CreateSyntheticModule(iso, Str(iso, key), v8::MemorySpan<const Local<v8::String>>(exports.data(), exports.size()), EvaluateSynthetic);
  }
  int index = Register(s, key, m, kind, std::move(source), std::move(names));
  if (!body.IsEmpty()) s->modules[index].body.Reset(iso, body);
  return s->links[link] = index;
}

void ReturnData(const v8::FunctionCallbackInfo<Value>& info) { info.GetReturnValue().Set(info.Data()); }

v8::MaybeLocal<Value> ImportNow(ex_isolate* s, Local<v8::Context> c, const std::string& specifier, const std::string& referrer, const std::string& type, Local<v8::Module>* m) {
  size_t before = s->modules.size();
  int index = Load(s, c, specifier, referrer, type);
  if (index < 0) return {};
  *m = s->modules[index].module.Get(s->iso);
  if (s->modules.size() > before && !LoadRequests(s, c, index)) return {};
  if (!(*m)->InstantiateModule(c, ResolveLink).FromMaybe(false)) return {};
  return (*m)->Evaluate(c);
}

// MetaResolve is import.meta.resolve (HTML, 8.1.6.7): the URL of what a specifier names, here.
void MetaResolve(const v8::FunctionCallbackInfo<Value>& info) {
  v8::Isolate* iso = info.GetIsolate();
  ex_isolate* s = Self(iso);
  Local<v8::String> specifier;
  if (!info[0]->ToString(iso->GetCurrentContext()).ToLocal(&specifier)) return;
  int index = Load(s, iso->GetCurrentContext(), Utf8(iso, specifier), s->modules[info.Data().As<v8::Integer>()->Value()].key, "");
  if (index >= 0) info.GetReturnValue().Set(Str(iso, UrlOf(s->modules[index].key)));
}

}  // namespace

v8::ScriptOrigin Origin(v8::Isolate* iso, const std::string& key, int index, bool module) {
  Local<v8::PrimitiveArray> host = v8::PrimitiveArray::New(iso, 1);
  host->Set(iso, 0, v8::Integer::New(iso, index));
  return v8::ScriptOrigin(Str(iso, key), 0, 0, false, -1, Local<Value>(), false, false, module, host);
}

std::string FileOf(ex_isolate* s, Local<v8::Context> c, Local<v8::Message> m) {
  v8::ScriptOrigin origin = m->GetScriptOrigin();
  std::string name = Utf8(s->iso, origin.ResourceName());
  Local<v8::Data> options = origin.GetHostDefinedOptions();
  if (options.IsEmpty() || !options->IsFixedArray() || options.As<v8::FixedArray>()->Length() == 0) return name;
  Local<Value> index = options.As<v8::PrimitiveArray>()->Get(s->iso, 0);
  int i = index->IsInt32() ? index.As<v8::Int32>()->Value() : -1;
  bool known = i >= 0 && i < static_cast<int>(s->modules.size());
  if (!known) return s->compiling;
  // Code from strings has the options of the code that made it.
  const ModuleEntry& e = s->modules[i];
  return origin.Options().IsModule() || (!e.body.IsEmpty() && e.body.Get(s->iso)->ScriptId() == origin.ScriptId()) ? e.key : name;
}

std::string UrlOf(const std::string& key) {
  if (key.find(':') != std::string::npos) return key;
  std::string url = "executor:///";
  for (unsigned char ch : key) {
    static const char hex[] = "0123456789ABCDEF";
    bool plain = ch > 0x20 && ch < 0x7f && strchr("\"<>`#?{}%^\\|", ch) == nullptr;
    if (plain) url += static_cast<char>(ch);
    else url += {'%', hex[ch >> 4], hex[ch & 15]};
  }
  return url;
}

int Load(ex_isolate* s, Local<v8::Context> c, const std::string& specifier, const std::string& referrer, const std::string& type) { return LoadOne(s, c, specifier, referrer, type); }

// LoadRequests walks with a work list: a chain of imports must not become native recursion.
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
      std::string type;
      int got = kUnresolved;
      if (TypeAttribute(s->iso, c, r->GetImportAttributes(), 3, &type)) got = LoadOne(s, c, Utf8(s->iso, r->GetSpecifier()), referrer, type);
      if (got == kUnresolved) NoteImport(s, at, r->GetSourceOffset());
      if (got < 0) return false;
      if (s->modules.size() > before) work.push_back(static_cast<int>(before));
    }
  }
  return true;
}

v8::MaybeLocal<v8::Module> ResolveLink(Local<v8::Context> c, Local<v8::String> specifier, Local<v8::FixedArray> attributes, Local<v8::Module> referrer) {
  v8::Isolate* iso = v8::Isolate::GetCurrent();
  ex_isolate* s = Self(iso);
  int from = Find(s, referrer);
  std::string type;
  if (!TypeAttribute(iso, c, attributes, 3, &type)) return {};
  auto it = from < 0 ? s->links.end() : s->links.find(LinkKey(s->modules[from].key, Utf8(iso, specifier), type));
  if (it == s->links.end()) {
    iso->ThrowException(v8::Exception::TypeError(Str(iso, "the module was not loaded")));
    return {};
  }
  return s->modules[it->second].module.Get(iso);
}

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
  std::string type;
  if (!TypeAttribute(iso, c, attributes, 2, &type) || !ImportNow(s, c, Utf8(iso, specifier), referrer, type, &m).ToLocal(&evaluated)) {
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
  (void)meta->CreateDataProperty(c, Str(iso, "url"), Str(iso, UrlOf(s->modules[index].key)));
  Local<v8::Function> resolve;
  if (!v8::Function::New(c, MetaResolve, v8::Integer::New(iso, index), 1, v8::ConstructorBehavior::kThrow).ToLocal(&resolve)) return;
  resolve->SetName(Str(iso, "resolve"));
  (void)meta->CreateDataProperty(c, Str(iso, "resolve"), resolve);
}

}  // namespace executord

using namespace executord;
using v8::Local;
using v8::Value;

namespace {

// Unlinked describes why a graph does not load: an import that names nothing, at its place, or a text that does not
// compile.
ex_error Unlinked(ex_isolate* s, Local<v8::Context> c, v8::TryCatch& tc) {
  ex_error e = Caught(s, c, tc, s->import_file.empty() ? EX_SYNTAX : EX_MODULE);
  if (e.kind != EX_MODULE || s->import_file.empty()) return e;
  ex_buf_free(e.file);
  e.file = Buf(s->import_file);
  e.line = s->import_line;
  e.column = s->import_column;
  return e;
}

}  // namespace

ex_error ex_run(ex_isolate* s, ex_view name, ex_view source, int call, ex_view input) {
  Scope scope(s);
  v8::Isolate* iso = s->iso;
  v8::TryCatch tc(iso);
  Local<v8::Module> m;
  std::string key(View(name));
  s->call_entry = call;
  if (!CompileText(s, key, View(source), static_cast<int>(s->modules.size())).ToLocal(&m)) return Caught(s, scope.context, tc, EX_SYNTAX);
  s->main_module = Register(s, key, m, EX_MODULE_ESM, "", "");
  s->by_key.erase(key);  // a module of the same name is another one
  if (!LoadRequests(s, scope.context, s->main_module)) return Unlinked(s, scope.context, tc);
  if (!m->InstantiateModule(scope.context, ResolveLink).FromMaybe(false)) return Caught(s, scope.context, tc, EX_MODULE);
  Local<Value> v = v8::Undefined(iso);
  if (input.n > 0 && !Decode(s, scope.context, View(input), s->codec, "input").ToLocal(&v)) {
    ex_error e = Caught(s, scope.context, tc);
    if (e.kind == EX_EXCEPTION) e.kind = EX_INPUT;
    return e;
  }
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
  std::string file = FileOf(s, scope.context, at);
  r.error.kind = EX_EXCEPTION;
  r.error.line = at->GetLineNumber(scope.context).FromMaybe(0);
  r.error.column = at->GetStartColumn(scope.context).FromMaybe(-1) + 1;
  goMapPosition(s->handle, {file.data(), file.size()}, &r.error.line, &r.error.column);
  r.error.file = Buf(file);
  return r;
}

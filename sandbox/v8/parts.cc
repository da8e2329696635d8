// Parts of the library that are not in the snapshot: their text lies in the host's memory and is compiled, from a code
// cache where there is one, when a program first touches a name of theirs.
#include "isolate.h"

namespace executord {
namespace {

using v8::Local;
using v8::Value;

// PartText lends V8 the text of a part, which lives as long as the process.
class PartText : public v8::String::ExternalOneByteStringResource {
 public:
  explicit PartText(ex_view text) : text_(text) {}
  const char* data() const override { return text_.p; }
  size_t length() const override { return text_.n; }

 private:
  ex_view text_;
};

// WakeName gives a lazy global its value: the library finds the part and the part gives the value.
void WakeName(Local<v8::Name> name, const v8::PropertyCallbackInfo<Value>& info) {
  v8::Isolate* iso = info.GetIsolate();
  ex_isolate* s = Self(iso);
  Local<Value> arg = name, v;
  if (s->wake.IsEmpty()) return;
  if (s->wake.Get(iso)->Call(iso->GetCurrentContext(), v8::Undefined(iso), 1, &arg).ToLocal(&v)) info.GetReturnValue().Set(v);
}

}  // namespace

v8::MaybeLocal<v8::Function> LoadPart(ex_isolate* s, Local<v8::Context> c, const std::string& name) {
  v8::Isolate* iso = s->iso;
  ex_view text{}, cache{};
  if (!goPart(s->handle, {name.data(), name.size()}, &text, &cache)) {
    iso->ThrowException(v8::Exception::TypeError(Str(iso, "the library has no part " + name)));
    return {};
  }
  Local<v8::String> source;
  if (!v8::String::NewExternalOneByte(iso, new PartText(text)).ToLocal(&source)) return {};
  v8::ScriptOrigin origin(Str(iso, kLibraryName));
  auto* cached = cache.n == 0 ? nullptr : new v8::ScriptCompiler::CachedData(reinterpret_cast<const uint8_t*>(cache.p), static_cast<int>(cache.n));
  v8::ScriptCompiler::Source with(source, origin, cached);
  auto how = cached ? v8::ScriptCompiler::kConsumeCodeCache : v8::ScriptCompiler::kNoCompileOptions;
  Local<v8::UnboundScript> script;
  if (!v8::ScriptCompiler::CompileUnboundScript(iso, &with, how).ToLocal(&script)) return {};
  s->parts[name].Reset(iso, script);
  Local<Value> f;
  if (!script->BindToCurrentContext()->Run(c).ToLocal(&f) || !f->IsFunction()) return {};
  return f.As<v8::Function>();
}

v8::MaybeLocal<Value> Library(ex_isolate* s, Local<v8::Context> c, const char* name, int n, Local<Value>* args) {
  v8::Isolate* iso = s->iso;
  Local<Value> f;
  if (!s->internals.Get(iso)->Get(c, Str(iso, name)).ToLocal(&f)) return {};
  if (!f->IsFunction()) {
    iso->ThrowException(v8::Exception::TypeError(Str(iso, std::string("the library cannot ") + name)));
    return {};
  }
  return f.As<v8::Function>()->Call(c, v8::Undefined(iso), n, args);
}

// InstallLazy makes each name of the list an own data property of the global, whose value is made when it is first
// read. The list has a name a line; one that starts with '+' is enumerable, as operations are.
bool InstallLazy(ex_isolate* s, Local<v8::Context> c, std::string_view names) {
  size_t from = 0;
  while (from < names.size()) {
    size_t to = names.find('\n', from);
    if (to == std::string_view::npos) to = names.size();
    std::string_view name = names.substr(from, to - from);
    from = to + 1;
    if (name.empty()) continue;
    bool operation = name[0] == '+';
    if (operation) name.remove_prefix(1);
    Local<v8::String> key = v8::String::NewFromUtf8(s->iso, name.data(), v8::NewStringType::kInternalized, static_cast<int>(name.size())).ToLocalChecked();
    if (!c->Global()->SetLazyDataProperty(c, key, WakeName, Local<Value>(), operation ? v8::None : v8::DontEnum).FromMaybe(false)) return false;
  }
  return true;
}

}  // namespace executord

using namespace executord;

// ex_part_cache gives the code cache of a part as far as this isolate has used it; nothing if it has not.
ex_result ex_part_cache(ex_isolate* s, ex_view name) {
  Scope scope(s);
  ex_result r{};
  auto it = s->parts.find(std::string(View(name)));
  if (it == s->parts.end()) return r;
  std::unique_ptr<v8::ScriptCompiler::CachedData> data(v8::ScriptCompiler::CreateCodeCache(it->second.Get(s->iso)));
  r.value = Buf({reinterpret_cast<const char*>(data->data), static_cast<size_t>(data->length)});
  return r;
}

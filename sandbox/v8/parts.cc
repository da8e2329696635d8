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

// PartSource gives the text of a part as a string. The first string outside the heap costs an isolate a table of pointers
// of 64 KiB, written from end to end: what is smaller is copied.
v8::MaybeLocal<v8::String> PartSource(v8::Isolate* iso, ex_view text) {
  constexpr size_t kCopied = 64 << 10;
  if (text.n > kCopied) return v8::String::NewExternalOneByte(iso, new PartText(text));
  return v8::String::NewFromOneByte(iso, reinterpret_cast<const uint8_t*>(text.p), v8::NewStringType::kNormal, static_cast<int>(text.n));
}

}  // namespace

// WakeName gives a lazy global its value: the library finds the part and the part gives the value.
void WakeName(Local<v8::Name> name, const v8::PropertyCallbackInfo<Value>& info) {
  v8::Isolate* iso = info.GetIsolate();
  ex_isolate* s = Self(iso);
  Local<Value> arg = name, v;
  if (s == nullptr || s->wake.IsEmpty()) return;
  if (s->wake.Get(iso)->Call(iso->GetCurrentContext(), v8::Undefined(iso), 1, &arg).ToLocal(&v)) info.GetReturnValue().Set(v);
}

v8::MaybeLocal<Value> RunCached(ex_isolate* s, Local<v8::Context> c, const std::string& name, Local<v8::String> source, ex_view cache) {
  v8::Isolate* iso = s->iso;
  auto* cached = cache.n == 0 ? nullptr : new v8::ScriptCompiler::CachedData(reinterpret_cast<const uint8_t*>(cache.p), static_cast<int>(cache.n));
  v8::ScriptCompiler::Source with(source, v8::ScriptOrigin(Str(iso, kLibraryName)), cached);
  auto how = cached ? v8::ScriptCompiler::kConsumeCodeCache : v8::ScriptCompiler::kNoCompileOptions;
  Local<v8::UnboundScript> script;
  if (!v8::ScriptCompiler::CompileUnboundScript(iso, &with, how).ToLocal(&script)) return {};
  s->parts[name].Reset(iso, script);
  return script->BindToCurrentContext()->Run(c);
}

v8::MaybeLocal<v8::Function> LoadPart(ex_isolate* s, Local<v8::Context> c, const std::string& name) {
  v8::Isolate* iso = s->iso;
  ex_view text{}, cache{};
  if (!goPart(s->handle, {name.data(), name.size()}, &text, &cache)) {
    iso->ThrowException(v8::Exception::TypeError(Str(iso, "the library has no part " + name)));
    return {};
  }
  Local<v8::String> source;
  if (!PartSource(iso, text).ToLocal(&source)) return {};
  Local<Value> f;
  if (!RunCached(s, c, name, source, cache).ToLocal(&f) || !f->IsFunction()) return {};
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

namespace {

// EachLazy calls f(name, attributes) for each name of the library's list until it returns false. The list has a name a
// line; one that starts with '+' is enumerable, as operations are.
template <typename F>
bool EachLazy(v8::Isolate* iso, std::string_view names, F f) {
  size_t from = 0;
  while (from < names.size()) {
    size_t to = names.find('\n', from);
    if (to == std::string_view::npos) to = names.size();
    std::string_view name = names.substr(from, to - from);
    from = to + 1;
    if (name.empty()) continue;
    bool operation = name[0] == '+';
    if (operation) name.remove_prefix(1);
    Local<v8::String> key = v8::String::NewFromUtf8(iso, name.data(), v8::NewStringType::kInternalized, static_cast<int>(name.size())).ToLocalChecked();
    if (!f(key, operation ? v8::None : v8::DontEnum)) return false;
  }
  return true;
}

}  // namespace

// InstallLazy makes each name of the list an own data property of the global, whose value is made when it is first read.
bool InstallLazy(v8::Isolate* iso, Local<v8::Context> c, std::string_view names) {
  return EachLazy(iso, names, [&](Local<v8::String> key, v8::PropertyAttribute attributes) {
    return c->Global()->SetLazyDataProperty(c, key, WakeName, Local<Value>(), attributes).FromMaybe(false);
  });
}

// RemoveLazy takes them away again, before anything ran in c.
bool RemoveLazy(ex_isolate* s, Local<v8::Context> c) {
  Local<Value> names;
  if (!s->internals.Get(s->iso)->Get(c, Str(s->iso, "lazy")).ToLocal(&names)) return false;
  return EachLazy(s->iso, Utf8(s->iso, names), [&](Local<v8::String> key, v8::PropertyAttribute) { return c->Global()->Delete(c, key).FromMaybe(false); });
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

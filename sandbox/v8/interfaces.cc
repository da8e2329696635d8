// What the library needs to give a class the shape of a Web IDL interface. It could do so in JavaScript; but each member
// would cost a descriptor made and taken apart, and interfaces are made while a program waits.
#include <algorithm>

#include "isolate.h"

namespace executord {

using v8::Local;
using v8::Value;

// MakeEnumerable makes the members of a class or of a prototype enumerable, as Web IDL has it (3.7.3, 3.7.6): all own
// properties with strings for names, but for those that every function or prototype has and those that are fixed.
void MakeEnumerable(const v8::FunctionCallbackInfo<Value>& info) {
  v8::Isolate* iso = info.GetIsolate();
  Local<v8::Context> c = iso->GetCurrentContext();
  if (!info[0]->IsObject()) return;
  auto object = info[0].As<v8::Object>();
  bool function = object->IsFunction();
  Local<v8::Array> names;
  if (!object->GetOwnPropertyNames(c, v8::PropertyFilter::SKIP_SYMBOLS, v8::KeyConversionMode::kConvertToString).ToLocal(&names)) return;
  Local<v8::String> get = Str(iso, "get"), set = Str(iso, "set");
  auto usual = function ? std::vector<Local<v8::String>>{Str(iso, "length"), Str(iso, "name"), Str(iso, "prototype")} : std::vector<Local<v8::String>>{Str(iso, "constructor")};
  for (uint32_t i = 0; i < names->Length(); i++) {
    Local<Value> name, value;
    if (!names->Get(c, i).ToLocal(&name)) return;
    auto key = name.As<v8::Name>();
    if (std::any_of(usual.begin(), usual.end(), [&](Local<v8::String> u) { return key->StrictEquals(u); })) continue;
    v8::PropertyAttribute is;
    if (!object->GetPropertyAttributes(c, key).To(&is)) return;
    if (is & v8::DontDelete) continue;
    auto wanted = static_cast<v8::PropertyAttribute>(is & ~v8::DontEnum);
    if (!object->HasRealNamedCallbackProperty(c, key).FromMaybe(false)) {
      if (!object->GetRealNamedProperty(c, key).ToLocal(&value) || object->DefineOwnProperty(c, key, value, wanted).IsNothing()) return;
      continue;
    }
    if (!object->GetOwnPropertyDescriptor(c, key).ToLocal(&value) || !value->IsObject()) return;
    auto descriptor = value.As<v8::Object>();
    Local<Value> getter, setter;
    if (!descriptor->Get(c, get).ToLocal(&getter) || !descriptor->Get(c, set).ToLocal(&setter)) return;
    auto as_function = [](Local<Value> v) { return v->IsFunction() ? v.As<v8::Function>() : Local<v8::Function>(); };
    object->SetAccessorProperty(key, as_function(getter), as_function(setter), wanted);
  }
}

}  // namespace executord

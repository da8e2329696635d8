// What the library needs to give a class the shape of a Web IDL interface. It could do so in JavaScript; but each member
// would cost a descriptor made and taken apart, and interfaces are made while a program waits.
#include <algorithm>
#include <initializer_list>

#include "isolate.h"

namespace executord {

using v8::Local;
using v8::Value;

namespace {

Local<v8::String> Key(v8::Isolate* iso, const char* name) {
  return v8::String::NewFromUtf8(iso, name, v8::NewStringType::kInternalized).ToLocalChecked();
}

// MakeEnumerable makes all own properties of o with strings for names enumerable, but for the usual ones and for those
// that are fixed.
bool MakeEnumerable(Local<v8::Context> c, Local<v8::Object> o, std::initializer_list<Local<v8::String>> usual) {
  Local<v8::Array> names;
  if (!o->GetOwnPropertyNames(c, v8::PropertyFilter::SKIP_SYMBOLS, v8::KeyConversionMode::kConvertToString).ToLocal(&names)) return false;
  v8::PropertyDescriptor enumerable;
  enumerable.set_enumerable(true);
  for (uint32_t i = 0; i < names->Length(); i++) {
    Local<Value> name;
    if (!names->Get(c, i).ToLocal(&name)) return false;
    if (std::find(usual.begin(), usual.end(), name) != usual.end()) continue;
    if (o->DefineProperty(c, name.As<v8::Name>(), enumerable).IsNothing()) return false;
  }
  return true;
}

}  // namespace

// finish(class, name) gives a class and its prototype what an interface has (Web IDL, 3.7.1, 3.7.3 and 3.7.6): the name,
// enumerable members and Symbol.toStringTag, unless the class has one. Its objects are platform objects.
void Finish(const v8::FunctionCallbackInfo<Value>& info) {
  v8::Isolate* iso = info.GetIsolate();
  Local<v8::Context> c = iso->GetCurrentContext();
  if (!info[0]->IsFunction() || !info[1]->IsString()) return;
  auto constructor = info[0].As<v8::Object>();
  auto hidden = static_cast<v8::PropertyAttribute>(v8::ReadOnly | v8::DontEnum);
  Local<v8::String> length = Key(iso, "length"), name = Key(iso, "name"), prototype = Key(iso, "prototype");
  Local<Value> value;
  if (!constructor->Get(c, prototype).ToLocal(&value) || !value->IsObject()) return;
  auto members = value.As<v8::Object>();
  MarkPlatform(iso, c, members);
  if (!MakeEnumerable(c, constructor, {length, name, prototype}) || !MakeEnumerable(c, members, {Key(iso, "constructor")})) return;
  if (constructor->DefineOwnProperty(c, name, info[1], hidden).IsNothing()) return;
  Local<v8::Symbol> tag = v8::Symbol::GetToStringTag(iso);
  if (!members->HasOwnProperty(c, tag).FromMaybe(true)) (void)members->DefineOwnProperty(c, tag, info[1], hidden);
}

}  // namespace executord

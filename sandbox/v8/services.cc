// What the library may ask of the engine or of the host beyond a program's own needs: text codecs, random bytes,
// clocks, structured clones, and operations that Go performs (crypto, compression, name mapping).
#include <time.h>
#include <unistd.h>

#include <cstring>

#include "isolate.h"

namespace executord {
namespace {

using v8::Local;
using v8::Value;
using Info = v8::FunctionCallbackInfo<Value>;

// Bytes gives the bytes of a buffer or a view without a copy; false for anything else.
bool Bytes(Local<Value> v, uint8_t** p, size_t* n) {
  if (v->IsArrayBufferView()) {
    auto view = v.As<v8::ArrayBufferView>();
    *n = view->ByteLength();
    *p = static_cast<uint8_t*>(view->Buffer()->Data()) + view->ByteOffset();
    return true;
  }
  if (v->IsArrayBuffer()) {
    *p = static_cast<uint8_t*>(v.As<v8::ArrayBuffer>()->Data());
    *n = v.As<v8::ArrayBuffer>()->ByteLength();
    return true;
  }
  if (v->IsSharedArrayBuffer()) {
    *p = static_cast<uint8_t*>(v.As<v8::SharedArrayBuffer>()->Data());
    *n = v.As<v8::SharedArrayBuffer>()->ByteLength();
    return true;
  }
  return false;
}

v8::MaybeLocal<Value> NewBytes(v8::Isolate* iso, const void* p, size_t n) {
  Local<v8::ArrayBuffer> b;
  if (!v8::ArrayBuffer::MaybeNew(iso, n, v8::BackingStoreInitializationMode::kUninitialized).ToLocal(&b)) {
    iso->ThrowException(v8::Exception::RangeError(Str(iso, "Array buffer allocation failed")));
    return {};
  }
  if (n > 0) memcpy(b->Data(), p, n);
  return v8::Uint8Array::New(b, 0, n);
}

// ---- operations of the host: op(name, ...args) → value. Arguments are undefined, booleans, numbers, strings, bytes.

constexpr int kMaxArgs = 16;

void Op(const Info& info) {
  v8::Isolate* iso = info.GetIsolate();
  ex_isolate* s = Self(iso);
  if (s == nullptr) return;
  std::string texts[kMaxArgs];
  ex_arg args[kMaxArgs];
  int n = std::min(info.Length(), kMaxArgs);
  for (int i = 0; i < n; i++) {
    Local<Value> v = info[i];
    uint8_t* p;
    size_t size;
    if (v->IsString()) {
      texts[i] = Utf8(iso, v);
      args[i] = {EX_ARG_TEXT, 0, {texts[i].data(), texts[i].size()}};
    } else if (v->IsNumber()) {
      args[i] = {EX_ARG_NUMBER, v.As<v8::Number>()->Value(), {}};
    } else if (v->IsBoolean()) {
      args[i] = {EX_ARG_NUMBER, v->IsTrue() ? 1.0 : 0.0, {}};
    } else if (Bytes(v, &p, &size)) {
      args[i] = {EX_ARG_BYTES, 0, {reinterpret_cast<char*>(p), size}};
    } else {
      args[i] = {EX_ARG_NONE, 0, {}};
    }
  }
  ex_reply r = goOp(s->handle, args, n);
  std::string text(r.value.p ? r.value.p : "", r.value.n);
  switch (r.kind) {
    case EX_ARG_NUMBER: info.GetReturnValue().Set(r.number); break;
    case EX_ARG_TEXT: info.GetReturnValue().Set(Str(iso, text)); break;
    case EX_ARG_BYTES: {
      Local<Value> v;
      if (NewBytes(iso, r.value.p, r.value.n).ToLocal(&v)) info.GetReturnValue().Set(v);
      break;
    }
    case EX_ARG_FAULT: {
      // "Name: message"; the library turns it into the exception that its standard asks for.
      Local<v8::Object> e = v8::Exception::Error(Str(iso, text)).As<v8::Object>();
      iso->ThrowException(e);
      break;
    }
  }
  ex_buf_free(r.value);
}

// ---- text

void Utf8Encode(const Info& info) {
  v8::Isolate* iso = info.GetIsolate();
  if (!info[0]->IsString()) return;
  auto str = info[0].As<v8::String>();
  size_t n = str->Utf8LengthV2(iso);
  Local<v8::ArrayBuffer> b;
  if (!v8::ArrayBuffer::MaybeNew(iso, n, v8::BackingStoreInitializationMode::kUninitialized).ToLocal(&b)) {
    iso->ThrowException(v8::Exception::RangeError(Str(iso, "Array buffer allocation failed")));
    return;
  }
  if (n > 0) str->WriteUtf8V2(iso, static_cast<char*>(b->Data()), n, v8::String::WriteFlags::kReplaceInvalidUtf8);
  info.GetReturnValue().Set(v8::Uint8Array::New(b, 0, n));
}

// Utf8EncodeInto(string, Uint8Array) → [code units read, bytes written].
void Utf8EncodeInto(const Info& info) {
  v8::Isolate* iso = info.GetIsolate();
  uint8_t* p;
  size_t n;
  if (!info[0]->IsString() || !Bytes(info[1], &p, &n)) return;
  size_t read = 0;
  size_t written = n == 0 ? 0 : info[0].As<v8::String>()->WriteUtf8V2(iso, reinterpret_cast<char*>(p), n, v8::String::WriteFlags::kReplaceInvalidUtf8, &read);
  Local<Value> pair[] = {v8::Number::New(iso, read), v8::Number::New(iso, written)};
  info.GetReturnValue().Set(v8::Array::New(iso, pair, 2));
}

// ValidUtf8 follows the Encoding Standard's decoder (table 3-7 of Unicode).
bool ValidUtf8(const uint8_t* p, size_t n) {
  for (size_t i = 0; i < n;) {
    uint8_t a = p[i];
    if (a < 0x80) {
      i++;
      continue;
    }
    size_t more = a >= 0xc2 && a <= 0xdf ? 1 : a >= 0xe0 && a <= 0xef ? 2 : a >= 0xf0 && a <= 0xf4 ? 3 : 0;
    if (more == 0 || i + more >= n) return false;
    uint8_t b = p[i + 1];
    uint8_t low = a == 0xe0 ? 0xa0 : a == 0xf0 ? 0x90 : 0x80, high = a == 0xed ? 0x9f : a == 0xf4 ? 0x8f : 0xbf;
    if (b < low || b > high) return false;
    for (size_t k = 2; k <= more; k++) {
      if ((p[i + k] & 0xc0) != 0x80) return false;
    }
    i += more + 1;
  }
  return true;
}

// Utf8Decode(bytes, fatal) → string, or undefined where fatal and malformed. It does not look for a BOM.
void Utf8Decode(const Info& info) {
  v8::Isolate* iso = info.GetIsolate();
  uint8_t* p;
  size_t n;
  if (!Bytes(info[0], &p, &n)) return;
  if (n > static_cast<size_t>(v8::String::kMaxLength)) {
    iso->ThrowException(v8::Exception::RangeError(Str(iso, "the text is too long")));
    return;
  }
  if (info[1]->IsTrue() && !ValidUtf8(p, n)) return;
  Local<v8::String> s;
  if (v8::String::NewFromUtf8(iso, reinterpret_cast<char*>(p), v8::NewStringType::kNormal, static_cast<int>(n)).ToLocal(&s)) info.GetReturnValue().Set(s);
}

// Latin1(bytes) → string of the code units 0 to 255.
void Latin1(const Info& info) {
  v8::Isolate* iso = info.GetIsolate();
  uint8_t* p;
  size_t n;
  if (!Bytes(info[0], &p, &n) || n > static_cast<size_t>(v8::String::kMaxLength)) return;
  Local<v8::String> s;
  if (v8::String::NewFromOneByte(iso, p, v8::NewStringType::kNormal, static_cast<int>(n)).ToLocal(&s)) info.GetReturnValue().Set(s);
}

// Utf16(bytes) → string of the little-endian code units as they are.
void Utf16(const Info& info) {
  v8::Isolate* iso = info.GetIsolate();
  uint8_t* p;
  size_t n;
  if (!Bytes(info[0], &p, &n) || n / 2 > static_cast<size_t>(v8::String::kMaxLength)) return;
  std::vector<uint16_t> units(n / 2 + 1);
  if (n > 1) memcpy(units.data(), p, n / 2 * 2);
  Local<v8::String> s;
  if (v8::String::NewFromTwoByte(iso, units.data(), v8::NewStringType::kNormal, static_cast<int>(n / 2)).ToLocal(&s)) info.GetReturnValue().Set(s);
}

// ---- randomness and clocks

void Random(const Info& info) {
  uint8_t* p;
  size_t n;
  if (!Bytes(info[0], &p, &n)) return;
  for (size_t i = 0; i < n; i += 256) {
    if (getentropy(p + i, std::min<size_t>(256, n - i)) != 0) std::terminate();
  }
}

double Read(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

void MonotonicNow(const Info& info) { info.GetReturnValue().Set(Read(CLOCK_MONOTONIC)); }
void EpochNow(const Info& info) { info.GetReturnValue().Set(Read(CLOCK_REALTIME)); }

// ---- platform objects and structured clone

Local<v8::Private> HostMark(v8::Isolate* iso) { return v8::Private::ForApi(iso, Str(iso, "executor host object")); }

// Brand(object) marks a platform object, so that a structured clone asks the library about it.
void Brand(const Info& info) {
  v8::Isolate* iso = info.GetIsolate();
  if (info[0]->IsObject()) MarkPlatform(iso, iso->GetCurrentContext(), info[0].As<v8::Object>());
}

// CloneWriter collects platform objects; the serialized text has their index. The library gives the clone of one when it
// is met, or nothing for one that is transferred later.
class CloneWriter : public v8::ValueSerializer::Delegate {
 public:
  CloneWriter(v8::Isolate* iso, Local<v8::Function> clone, Local<v8::Function> fail) : iso_(iso), clone_(clone), fail_(fail) {}
  void ThrowDataCloneError(Local<v8::String> message) override {
    Local<Value> arg = message;
    (void)fail_->Call(iso_->GetCurrentContext(), v8::Undefined(iso_), 1, &arg);  // throws a DataCloneError
  }
  bool HasCustomHostObject(v8::Isolate*) override { return true; }
  v8::Maybe<bool> IsHostObject(v8::Isolate* iso, Local<v8::Object> o) override { return v8::Just(IsPlatformObject(iso, iso->GetCurrentContext(), o)); }
  v8::Maybe<bool> WriteHostObject(v8::Isolate* iso, Local<v8::Object> o) override {
    Local<Value> args[] = {o, v8::True(iso)}, clone;
    if (!clone_->Call(iso->GetCurrentContext(), v8::Undefined(iso), 2, args).ToLocal(&clone)) return v8::Nothing<bool>();
    objects.emplace_back(iso, o);
    clones.emplace_back();
    if (clone->IsObject()) clones.back().Reset(iso, clone.As<v8::Object>());
    serializer->WriteUint32(static_cast<uint32_t>(objects.size() - 1));
    return v8::Just(true);
  }
  v8::Maybe<uint32_t> GetSharedArrayBufferId(v8::Isolate* iso, Local<v8::SharedArrayBuffer>) override {
    // There is no other agent to share it with, as in a context that is not cross-origin isolated.
    ThrowDataCloneError(Str(iso, "#<SharedArrayBuffer> could not be cloned."));
    return v8::Nothing<uint32_t>();
  }
  v8::Maybe<uint32_t> GetWasmModuleTransferId(v8::Isolate*, Local<v8::WasmModuleObject> m) override {
    wasm.emplace_back(iso_, m);
    return v8::Just(static_cast<uint32_t>(wasm.size() - 1));
  }
  v8::ValueSerializer* serializer = nullptr;
  // Twins asks for what was left out while it was met.
  bool Twins(Local<v8::Context> c) {
    for (size_t i = 0; i < objects.size(); i++) {
      if (!clones[i].IsEmpty()) continue;
      Local<Value> args[] = {objects[i].Get(iso_), v8::False(iso_)}, twin;
      if (!clone_->Call(c, v8::Undefined(iso_), 2, args).ToLocal(&twin) || !twin->IsObject()) return false;
      clones[i].Reset(iso_, twin.As<v8::Object>());
    }
    return true;
  }
  // Not Locals: V8 has handle scopes of its own between the calls.
  std::vector<v8::Global<v8::Object>> objects, clones;
  std::vector<v8::Global<v8::WasmModuleObject>> wasm;

 private:
  v8::Isolate* iso_;
  Local<v8::Function> clone_, fail_;
};

// CloneReader gives the clones that are there already: V8 runs no JavaScript while it deserializes.
class CloneReader : public v8::ValueDeserializer::Delegate {
 public:
  explicit CloneReader(CloneWriter* from) : from_(from) {}
  v8::MaybeLocal<v8::Object> ReadHostObject(v8::Isolate* iso) override {
    uint32_t i;
    if (!deserializer->ReadUint32(&i) || i >= from_->clones.size()) return {};
    return from_->clones[i].Get(iso);
  }
  v8::MaybeLocal<v8::WasmModuleObject> GetWasmModuleFromId(v8::Isolate* iso, uint32_t id) override {
    if (id >= from_->wasm.size()) return {};
    return v8::WasmModuleObject::FromCompiledModule(iso, from_->wasm[id].Get(iso)->GetCompiledModule());
  }
  v8::ValueDeserializer* deserializer = nullptr;

 private:
  CloneWriter* from_;
};

// Detachable throws unless every buffer can still be transferred: the program may have run since they were checked.
bool Detachable(v8::Isolate* iso, CloneWriter* writer, const std::vector<Local<v8::ArrayBuffer>>& buffers) {
  for (auto& b : buffers) {
    if (b->WasDetached()) {
      writer->ThrowDataCloneError(Str(iso, "An ArrayBuffer is detached and could not be cloned."));
      return false;
    }
    if (!b->IsDetachable()) {  // of a WebAssembly memory
      iso->ThrowException(v8::Exception::TypeError(Str(iso, "An ArrayBuffer is not detachable and could not be cloned.")));
      return false;
    }
  }
  return true;
}

// Clone(value, buffers, cloneHost, transfer, fail) → clone. buffers is an array of the ArrayBuffers to transfer, checked
// by the library. cloneHost(object, true) makes the clone of a platform object when it is met, or returns undefined for
// one that is transferred; after everything was met transfer() moves those, and cloneHost(object, false) gives their
// twins. fail(message) throws a DataCloneError.
void Clone(const Info& info) {
  v8::Isolate* iso = info.GetIsolate();
  Local<v8::Context> c = iso->GetCurrentContext();
  auto buffers = info[1].As<v8::Array>();
  CloneWriter writer(iso, info[2].As<v8::Function>(), info[4].As<v8::Function>());
  v8::ValueSerializer serializer(iso, &writer);
  writer.serializer = &serializer;
  serializer.WriteHeader();
  std::vector<Local<v8::ArrayBuffer>> moved;
  for (uint32_t i = 0; i < buffers->Length(); i++) {
    moved.push_back(buffers->Get(c, i).ToLocalChecked().As<v8::ArrayBuffer>());
    serializer.TransferArrayBuffer(i, moved.back());
  }
  if (!serializer.WriteValue(c, info[0]).FromMaybe(false)) return;
  auto [data, size] = serializer.Release();
  std::unique_ptr<uint8_t, void (*)(void*)> owned(data, free);
  CloneReader reader(&writer);
  v8::ValueDeserializer deserializer(iso, data, size, &reader);
  reader.deserializer = &deserializer;
  if (!deserializer.ReadHeader(c).FromMaybe(false)) return;
  if (!Detachable(iso, &writer, moved) || info[3].As<v8::Function>()->Call(c, v8::Undefined(iso), 0, nullptr).IsEmpty() || !writer.Twins(c)) return;
  for (uint32_t i = 0; i < moved.size(); i++) {
    std::shared_ptr<v8::BackingStore> store = moved[i]->GetBackingStore();
    if (moved[i]->Detach(Local<Value>()).IsNothing()) return;
    deserializer.TransferArrayBuffer(i, v8::ArrayBuffer::New(iso, std::move(store)));
  }
  v8::TryCatch tc(iso);
  Local<Value> v;
  if (deserializer.ReadValue(c).ToLocal(&v)) return info.GetReturnValue().Set(v);
  if (!tc.HasCaught()) return;
  // V8 says of memory that it did not get what it says of broken data.
  if (Self(iso) != nullptr && Self(iso)->allocator->denied() && Utf8(iso, tc.Message()->Get()).ends_with("Unable to deserialize cloned data.")) {
    tc.Reset();
    iso->ThrowException(v8::Exception::RangeError(Str(iso, "Array buffer allocation failed")));
  }
  tc.ReThrow();
}

// ---- parts

// Apart is the context of the parts that are written with ordinary methods of arrays and texts: its intrinsics are its own,
// and no program can change them. No program gets an object of it either.
Local<v8::Context> Apart(ex_isolate* s) {
  if (s->realm.IsEmpty()) {
    Local<v8::Context> c = v8::Context::New(s->iso);
    // The names of the snapshot would give objects of the program's. It fails where the program is being ended.
    if (c.IsEmpty() || !RemoveLazy(s, c)) return {};
    c->AllowCodeGenerationFromStrings(false);
    s->realm.Reset(s->iso, c);
  }
  return s->realm.Get(s->iso);
}

// load(part, apart) gives the function of a part, made in the program's context or in the one apart.
void Load(const Info& info) {
  v8::Isolate* iso = info.GetIsolate();
  ex_isolate* s = Self(iso);
  if (s == nullptr) return;
  Local<v8::Context> c = info[1]->IsTrue() ? Apart(s) : iso->GetCurrentContext();
  if (c.IsEmpty()) return;
  v8::Context::Scope scope(c);
  Local<v8::Function> f;
  if (LoadPart(s, c, Utf8(iso, info[0])).ToLocal(&f)) info.GetReturnValue().Set(f);
}

}  // namespace

void MarkPlatform(v8::Isolate* iso, Local<v8::Context> c, Local<v8::Object> o) {
  if (ex_isolate* s = Self(iso)) s->branded = true;
  (void)o->SetPrivate(c, HostMark(iso), v8::True(iso));
}

bool IsMarked(v8::Isolate* iso, Local<v8::Context> c, Local<v8::Object> o) { return o->HasPrivate(c, HostMark(iso)).FromMaybe(false); }

bool IsPlatformObject(v8::Isolate* iso, Local<v8::Context> c, Local<v8::Object> o) {
  constexpr int kMaxChain = 32;
  for (int i = 0; i < kMaxChain; i++) {
    if (IsMarked(iso, c, o)) return true;
    Local<Value> next = o->GetPrototypeV2();
    if (!next->IsObject() || next->IsProxy()) return false;
    o = next.As<v8::Object>();
  }
  return false;
}

const std::vector<NativeFunction>& ServiceFunctions() {
  static const std::vector<NativeFunction> all = {
      {"op", Op}, {"load", Load}, {"utf8Encode", Utf8Encode}, {"utf8EncodeInto", Utf8EncodeInto}, {"utf8Decode", Utf8Decode}, {"latin1", Latin1}, {"utf16", Utf16},
      {"random", Random}, {"monotonicNow", MonotonicNow}, {"epochNow", EpochNow}, {"brand", Brand}, {"finish", Finish}, {"clone", Clone},
  };
  return all;
}

}  // namespace executord

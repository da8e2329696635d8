// From JavaScript values to the JSON text of the value codec, in one walk. The walk runs a program's code only where
// reading a property does (a getter), and each property is read once.
#include <charconv>
#include <cmath>
#include <cstring>

#include "base64.h"
#include "isolate.h"
#include "plain.h"

namespace executord {
namespace {

using v8::Local;
using v8::Value;

// Step is one object on the walk: how it is reached from its parent. It makes paths for references and messages
// without building a string for each object.
struct Step {
  int parent;
  const char* tag;  // a codec tag that lies between parent and this, or null
  int64_t index;    // ≥ 0: array index
  Local<v8::String> key;
  int64_t index2 = -1;  // second index, in a Map's pairs
};

class Encoder {
 public:
  Encoder(ex_isolate* s, Local<v8::Context> c, const CodecLimits& limits, const std::string& root, std::string* out, ex_error* err)
      : s_(s), iso_(s->iso), c_(c), limits_(limits), root_(root), out_(*out), err_(*err), start_(out->size()) {}

  int parts() const { return nodes_; }

  // Write appends the text of v. depth is how many arrays and objects of the text are open around it: the bound on depth
  // is that of the text, as the readers count it.
  bool Write(Local<Value> v, const Step& at, int depth) {
    if (!Count(at)) return false;
    if (v->IsString()) return WriteValueString(v.As<v8::String>(), at, depth);
    if (v->IsInt32()) return Number(v.As<v8::Int32>()->Value());
    if (v->IsBoolean()) return Put(v->IsTrue() ? "true" : "false");
    if (v->IsNull()) return Put("null");
    if (v->IsNumber()) return WriteDouble(v.As<v8::Number>()->Value(), at, depth);
    if (v->IsUndefined()) return Room(at, depth, 1) && Put("{\"@undefined\":true}");
    if (v->IsBigInt()) return Room(at, depth, 1) && WriteBigInt(v.As<v8::BigInt>(), at);
    if (v->IsSymbol()) return Refuse(at, "a symbol cannot leave the sandbox");
    return WriteObject(v.As<v8::Object>(), at, depth);
  }

 private:
  bool Put(std::string_view text) {
    out_.append(text);
    return true;
  }
  bool Number(int64_t n) {
    char b[24];
    out_.append(b, std::to_chars(b, b + sizeof b, n).ptr - b);
    return true;
  }
  bool TooLarge() {
    err_ = Fail(EX_TOO_LARGE, root_ + " is larger than " + std::to_string(limits_.bytes) + " bytes");
    return false;
  }
  bool Refuse(const Step& at, const std::string& why) {
    err_ = Fail(EX_UNSERIALIZABLE, why + " (at " + root_ + Path(at) + ")");
    return false;
  }

  // Count counts one part, and ends an encoding that has become too large before all of it is made.
  bool Count(const Step& at) {
    if (++nodes_ > limits_.nodes) return Refuse(at, "the value has more than " + std::to_string(limits_.nodes) + " parts");
    return out_.size() - start_ <= limits_.bytes || TooLarge();
  }

  // Room tells that levels more arrays and objects may be open inside those that are.
  bool Room(const Step& at, int depth, int levels) {
    return depth + levels <= limits_.depth || Refuse(at, "the value is nested deeper than " + std::to_string(limits_.depth));
  }

  // Path writes a place as a program would: .a[0]["b c"].
  std::string Path(const Step& at) {
    std::string p = at.parent >= 0 ? Path(steps_[at.parent]) : "";
    if (at.tag && !strcmp(at.tag, "@map")) return p + (at.index2 == 0 ? " (key " : " (value ") + std::to_string(at.index) + " of a Map)";
    if (at.tag && !strcmp(at.tag, "@set")) return p + " (item " + std::to_string(at.index) + " of a Set)";
    if (!at.key.IsEmpty()) {
      std::string k = Utf8(iso_, at.key);
      bool plain = !k.empty() && !isdigit(static_cast<unsigned char>(k[0]));
      for (unsigned char ch : k) plain = plain && (isalnum(ch) || ch == '_' || ch == '$' || ch >= 0x80);
      if (k.size() > 100) k = k.substr(0, 100) + "…";
      return p + (plain ? "." + k : "[\"" + k + "\"]");
    }
    if (at.index >= 0) return p + "[" + std::to_string(at.index) + "]";
    return p;
  }

  // Pointer writes a place as RFC 6901 over the encoded text.
  std::string Pointer(const Step& at) {
    std::string p = at.parent >= 0 ? Pointer(steps_[at.parent]) : "";
    if (at.tag) p += std::string("/") + at.tag;
    if (at.index >= 0) p += "/" + std::to_string(at.index);
    if (at.index2 >= 0) p += "/" + std::to_string(at.index2);
    if (at.key.IsEmpty()) return p;
    return p + PointerStep(Wtf8(iso_, at.key));
  }

  bool WriteDouble(double d, const Step& at, int depth) {
    if (std::isfinite(d) && (d != 0 || !std::signbit(d))) return Finite(d);
    if (!Room(at, depth, 1)) return false;
    if (std::isnan(d)) return Put("{\"@number\":\"NaN\"}");
    if (std::isinf(d)) return Put(d > 0 ? "{\"@number\":\"Infinity\"}" : "{\"@number\":\"-Infinity\"}");
    return Put("{\"@number\":\"-0\"}");
  }

  bool Finite(double d) {
    char b[40];
    out_.append(b, std::to_chars(b, b + sizeof b, d).ptr - b);
    return true;
  }

  bool WriteBigInt(Local<v8::BigInt> n, const Step& at) {
    if (n->WordCount() > kMaxBigIntWords) return Refuse(at, "a BigInt of more than " + std::to_string(64 * kMaxBigIntWords) + " bits cannot leave the sandbox");
    Local<v8::String> text;
    if (!n->ToString(c_).ToLocal(&text)) return Refuse(at, "a BigInt cannot be written");
    return Put("{\"@bigint\":\"") && Put(Utf8(iso_, text)) && Put("\"}");
  }

  bool WriteValueString(Local<v8::String> str, const Step& at, int depth) {
    size_t mark = out_.size();
    if (!WriteString(str)) return false;
    return out_[mark] != '{' || Room(at, depth, 1);
  }

  // WriteString writes a string as a value: one with lone surrogates becomes a tag.
  bool WriteString(Local<v8::String> str) {
    if (static_cast<size_t>(str->Length()) > limits_.bytes) return TooLarge();
    v8::String::ValueView view(iso_, str);
    if (view.is_one_byte()) {
      WriteOneByte(view.data8(), view.length());
      return true;
    }
    return WriteTwoByte(view.data16(), view.length());
  }

  void Escape(uint16_t ch) {
    static const char hex[] = "0123456789abcdef";
    switch (ch) {
      case '"': Put("\\\""); return;
      case '\\': Put("\\\\"); return;
      case '\n': Put("\\n"); return;
      case '\r': Put("\\r"); return;
      case '\t': Put("\\t"); return;
    }
    Put("\\u00");
    out_ += hex[ch >> 4];
    out_ += hex[ch & 15];
  }

  void WriteOneByte(const uint8_t* p, size_t n) {
    out_ += '"';
    for (size_t i = 0;; i++) {
      size_t plain = PlainRun<true>(p + i, n - i);
      out_.append(reinterpret_cast<const char*>(p + i), plain);
      if ((i += plain) == n) break;
      if (p[i] >= 0x80) {
        out_ += static_cast<char>(0xc0 | p[i] >> 6);
        out_ += static_cast<char>(0x80 | (p[i] & 0x3f));
      } else {
        Escape(p[i]);
      }
    }
    out_ += '"';
  }

  bool WriteTwoByte(const uint16_t* p, size_t n) {
    size_t mark = out_.size();
    out_ += '"';
    for (size_t i = 0; i < n; i++) {
      uint32_t ch = p[i];
      if (ch >= 0xd800 && ch <= 0xdfff) {
        if (ch > 0xdbff || i + 1 == n || p[i + 1] < 0xdc00 || p[i + 1] > 0xdfff) return WriteLoneSurrogates(p, n, mark);
        ch = 0x10000 + ((ch - 0xd800) << 10) + (p[++i] - 0xdc00);
      }
      PutCodePoint(ch);
    }
    out_ += '"';
    return true;
  }

  void PutCodePoint(uint32_t ch) {
    if (ch < 0x80) {
      if (ch < 0x20 || ch == '"' || ch == '\\') Escape(ch);
      else out_ += static_cast<char>(ch);
    } else if (ch < 0x800) {
      out_ += static_cast<char>(0xc0 | ch >> 6);
      out_ += static_cast<char>(0x80 | (ch & 0x3f));
    } else if (ch < 0x10000) {
      out_ += static_cast<char>(0xe0 | ch >> 12);
      out_ += static_cast<char>(0x80 | (ch >> 6 & 0x3f));
      out_ += static_cast<char>(0x80 | (ch & 0x3f));
    } else {
      out_ += static_cast<char>(0xf0 | ch >> 18);
      out_ += static_cast<char>(0x80 | (ch >> 12 & 0x3f));
      out_ += static_cast<char>(0x80 | (ch >> 6 & 0x3f));
      out_ += static_cast<char>(0x80 | (ch & 0x3f));
    }
  }

  bool WriteLoneSurrogates(const uint16_t* p, size_t n, size_t mark) {
    out_.resize(mark);
    Put("{\"@utf16\":\"");
    AppendBase64(&out_, reinterpret_cast<const uint8_t*>(p), n * 2);
    return Put("\"}");
  }

  bool WriteKey(Local<v8::String> key) {
    if (!WriteText(key)) return false;
    out_ += ':';
    return true;
  }

  bool WriteObject(Local<v8::Object> o, const Step& at, int depth) {
    if (!Room(at, depth, 1)) return false;
    if (limits_.handles && o->IsFunction() && !at.key.IsEmpty() && at.key->StringEquals(Str(iso_, "then"))) {
      return Refuse(at, "a function named then cannot leave the sandbox: whoever awaits what has it would call it");
    }
    if (o->IsProxy()) return Refuse(at, "a Proxy cannot leave the sandbox");
    if (o->IsFunction() && !limits_.handles) return Refuse(at, "a function cannot leave the sandbox");
    if (o->IsPromise()) return Refuse(at, "a Promise cannot leave the sandbox: await it first");
    int hash = o->GetIdentityHash();
    auto [first, last] = seen_.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      if (objects_[it->second] == o) {
        if (auto h = handles_.find(it->second); h != handles_.end()) return Put(h->second);
        Put("{\"@ref\":");
        WriteWtf8(Pointer(steps_[it->second]));
        return Put("}");
      }
    }
    int self = static_cast<int>(steps_.size());
    steps_.push_back(at);
    objects_.push_back(o);
    seen_.emplace(hash, self);
    if (!limits_.handles) return Dispatch(o, self, depth);
    if (o->IsFunction()) return WriteHandle(o, self, depth, {}, "");
    Local<v8::Array> opened;
    if (!Open(o, self, &opened)) return false;
    if (opened.IsEmpty()) return Dispatch(o, self, depth);
    std::string kind = Utf8(iso_, opened->Get(c_, 0).ToLocalChecked());
    return WriteHandle(o, self, depth, opened->Get(c_, 1).ToLocalChecked().As<v8::Object>(), kind);
  }

  // Open asks the library for the kind and the iterator of an object; opened stays empty where it has none.
  bool Open(Local<v8::Object> o, int self, Local<v8::Array>* opened) {
    v8::TryCatch tc(iso_);
    Local<Value> arg = o, found;
    if (!o->IsGeneratorObject() && !o->IsMapIterator() && !o->IsSetIterator()) {
      bool has = false;
      if (!o->Has(c_, v8::Symbol::GetAsyncIterator(iso_)).To(&has)) return ReadFailed(tc, steps_[self]);
      if (!has) return true;
    }
    if (!Library(s_, c_, "open", 1, &arg).ToLocal(&found)) return ReadFailed(tc, steps_[self], "it cannot be iterated: ");
    if (found->IsArray()) *opened = found.As<v8::Array>();
    return true;
  }

  // WriteHandle keeps an object for the host and writes its id. A function's receiver is the object that has it.
  bool WriteHandle(Local<v8::Object> o, int self, int depth, Local<v8::Object> iterator, const std::string& kind) {
    const Step& at = steps_[self];
    if (!kind.empty() && !Room(at, depth, 2)) return false;
    Local<Value> receiver = v8::Undefined(iso_);
    bool property = at.parent >= 0 && (!at.tag || !strcmp(at.tag, "@object"));
    if (property) receiver = objects_[at.parent];
    uint64_t n = NewHandle(s_, o, receiver, iterator);
    if (n == 0) return Refuse(at, "the host holds as many handles of this execution as it may");
    std::string id = "\"" + s_->retain + "." + std::to_string(n) + "\"";
    std::string text = "{\"@handle\":" + (kind.empty() ? id : "[" + id + ",\"" + kind + "\"]") + "}";
    handles_.emplace(self, text);
    return Put(text);
  }

  // WriteWtf8 writes text whose lone surrogates are three bytes each (WTF-8), as Wtf8 gives it.
  void WriteWtf8(const std::string& text) {
    out_ += '"';
    for (size_t i = 0; i < text.size(); i++) {
      unsigned char ch = text[i];
      if (ch == 0xed && i + 2 < text.size() && static_cast<unsigned char>(text[i + 1]) >= 0xa0) {
        PutEscape(0xd000 | (text[i + 1] & 0x3f) << 6 | (text[i + 2] & 0x3f));
        i += 2;
      } else if (ch < 0x20 || ch == '"' || ch == '\\') {
        Escape(ch);
      } else {
        out_ += text[i];
      }
    }
    out_ += '"';
  }

  void PutEscape(uint16_t unit) {
    static const char hex[] = "0123456789abcdef";
    Put("\\u");
    for (int shift = 12; shift >= 0; shift -= 4) out_ += hex[unit >> shift & 15];
  }

  // WriteText writes a string where a tag wants JSON's own: a lone surrogate is an escape there.
  bool WriteText(Local<v8::String> str) {
    if (static_cast<size_t>(str->Length()) > limits_.bytes) return TooLarge();
    size_t mark = out_.size();
    if (!WriteString(str)) return false;
    if (out_[mark] != '{') return true;
    out_.resize(mark);
    WriteWtf8(Wtf8(iso_, str));
    return true;
  }

  bool Dispatch(Local<v8::Object> o, int self, int depth) {
    const Step& at = steps_[self];
    if (o->IsArray()) return WriteArray(o.As<v8::Array>(), self, depth + 1);
    if (o->IsDate()) return WriteDate(o.As<v8::Date>()->ValueOf());
    if (o->IsRegExp()) return Room(at, depth, 2) && WriteRegExp(o.As<v8::RegExp>());
    if (o->IsMap()) return Room(at, depth, 3) && WriteMap(o.As<v8::Map>()->AsArray(), self, depth + 3);
    if (o->IsSet()) return Room(at, depth, 2) && WriteSet(o.As<v8::Set>()->AsArray(), self, depth + 2);
    if (o->IsNativeError()) return Room(at, depth, 2) && WriteError(o, self, depth + 2);
    if (o->IsArrayBufferView()) return Room(at, depth, 2) && WriteView(o.As<v8::ArrayBufferView>());
    if (o->IsArrayBuffer()) return Room(at, depth, 2) && WriteBuffer(o.As<v8::ArrayBuffer>(), at);
    if (o->IsNumberObject() || o->IsStringObject() || o->IsBooleanObject() || o->IsBigIntObject()) return Room(at, depth, 2) && WriteBoxed(o, self, depth + 2);
    if (const char* kind = Unwritable(o)) return Refuse(at, "a " + std::string(kind) + " cannot leave the sandbox");
    if (IsPlatform(o)) return WritePlatform(o, self, depth + 1);
    return WritePlain(o, self, depth);
  }

  // Unwritable names an object of the engine's that has no encoding; null for all others. A constructor's name would be
  // the program's to choose.
  static const char* Unwritable(Local<v8::Object> o) {
    if (o->IsSharedArrayBuffer()) return "SharedArrayBuffer";
    if (o->IsWeakMap()) return "WeakMap";
    if (o->IsWeakSet()) return "WeakSet";
    if (o->IsWeakRef()) return "WeakRef";
    if (o->IsSymbolObject()) return "Symbol object";
    if (o->IsGeneratorObject()) return "generator";
    if (o->IsMapIterator()) return "Map iterator";
    if (o->IsSetIterator()) return "Set iterator";
    if (o->IsWasmMemoryObject()) return "WebAssembly.Memory";
    if (o->IsWasmModuleObject()) return "WebAssembly.Module";
    return nullptr;
  }

  // IsPlatform finds objects of the library's classes. There are none until the library has branded something.
  // Objects of one prototype mostly follow each other, so the last one that was not such is remembered.
  bool IsPlatform(Local<v8::Object> o) {
    if (!s_->branded) return false;
    Local<Value> prototype = o->GetPrototypeV2();
    bool known = !ordinary_.IsEmpty() && prototype == ordinary_;
    if (known ? IsMarked(iso_, c_, o) : IsPlatformObject(iso_, c_, o)) return true;
    if (!known) ordinary_ = prototype;
    return false;
  }

  // WritePlatform writes a platform object as the library describes it: a tag and what is in it, or why it has none.
  bool WritePlatform(Local<v8::Object> o, int self, int depth) {
    Local<Value> arg = o, found;
    v8::TryCatch tc(iso_);
    if (!Library(s_, c_, "describe", 1, &arg).ToLocal(&found)) return ReadFailed(tc, steps_[self], "an object of the library cannot be read: ");
    if (found->IsString()) return Refuse(steps_[self], Utf8(iso_, found));
    auto pair = found.As<v8::Array>();
    std::string tag = Utf8(iso_, pair->Get(c_, 0).ToLocalChecked());
    Local<Value> body = pair->Get(c_, 1).ToLocalChecked();
    Put("{\"" + tag + "\":");
    bool written = tag == "@formdata" ? WriteForm(body.As<v8::Array>(), self, depth) : WriteBody(body, self, depth);
    return written && Put("}");
  }

  // WriteForm writes the pairs of a FormData, whose files are values.
  bool WriteForm(Local<v8::Array> pairs, int self, int depth) {
    if (!Room(steps_[self], depth, 2)) return false;
    out_ += '[';
    for (uint32_t i = 0; i < pairs->Length(); i++) {
      Put(i > 0 ? ",[" : "[");
      auto pair = pairs->Get(c_, i).ToLocalChecked().As<v8::Array>();
      if (!WriteText(pair->Get(c_, 0).ToLocalChecked().As<v8::String>())) return false;
      out_ += ',';
      if (!Write(pair->Get(c_, 1).ToLocalChecked(), {self, "@formdata", i, {}, 1}, depth + 2)) return false;
      out_ += ']';
    }
    out_ += ']';
    return true;
  }

  // WriteBody writes what is in a tag and holds no values: data that the library made.
  bool WriteBody(Local<Value> v, int self, int depth) {
    if (!Count(steps_[self])) return false;
    if (v->IsString()) return WriteText(v.As<v8::String>());
    if (v->IsNumber()) return Finite(v.As<v8::Number>()->Value());
    if (v->IsBoolean()) return Put(v->IsTrue() ? "true" : "false");
    if (v->IsNull()) return Put("null");
    if (!Room(steps_[self], depth, 1)) return false;
    if (v->IsUint8Array()) return WriteView(v.As<v8::ArrayBufferView>());
    auto o = v.As<v8::Object>();
    Local<v8::Array> list = v->IsArray() ? v.As<v8::Array>() : OwnKeys(o).ToLocalChecked();
    out_ += v->IsArray() ? '[' : '{';
    for (uint32_t i = 0; i < list->Length(); i++) {
      Local<Value> item = list->Get(c_, i).ToLocalChecked();
      if (i > 0) out_ += ',';
      if (!v->IsArray()) {
        if (!WriteKey(item.As<v8::String>())) return false;
        item = o->Get(c_, item).ToLocalChecked();
      }
      if (!WriteBody(item, self, depth + 1)) return false;
    }
    out_ += v->IsArray() ? ']' : '}';
    return true;
  }

  bool Read(Local<v8::Object> o, Local<Value> key, const Step& at, Local<Value>* v) {
    v8::TryCatch tc(iso_);
    if (o->Get(c_, key).ToLocal(v)) return true;
    return ReadFailed(tc, at);
  }

  bool ReadFailed(v8::TryCatch& tc, const Step& at, const char* what = "a getter threw: ") {
    if (tc.HasTerminated() || iso_->IsExecutionTerminating()) {
      err_ = Fail(EX_TERMINATED, "");
      return false;
    }
    Local<Value> ex = tc.Exception();
    v8::TryCatch inner(iso_);
    std::string text = ex.IsEmpty() ? "" : Utf8(iso_, ex);
    if (text.size() > 200) text = text.substr(0, 200) + "…";
    return Refuse(at, what + text);
  }

  bool WriteArray(Local<v8::Array> a, int self, int depth) {
    out_ += '[';
    uint32_t n = a->Length();
    int64_t place = -1;  // among the items of the text, where a run of holes is one
    for (uint32_t i = 0; i < n; i++) {
      Step at{self, nullptr, ++place, {}};
      Local<Value> v;
      if (!Read(a, v8::Integer::NewFromUnsigned(iso_, i), at, &v)) return false;
      if (place > 0) out_ += ',';
      if (v->IsUndefined() && !a->HasRealIndexedProperty(c_, i).FromMaybe(true)) {
        uint32_t end = HolesEnd(a, i, n);
        if (!Count(at) || !Room(at, depth, 1)) return false;
        Put("{\"@hole\":");
        Number(end - i);
        out_ += '}';
        i = end - 1;
        continue;
      }
      if (!Write(v, at, depth)) return false;
    }
    out_ += ']';
    return true;
  }

  // HolesEnd finds the end of a run of holes. A sparse array has few keys and a huge length, so ask for its keys once
  // rather than walk it.
  uint32_t HolesEnd(Local<v8::Array> a, uint32_t from, uint32_t n) {
    uint32_t i = from + 1;
    for (; i < n && i < from + 64; i++) {
      if (a->HasRealIndexedProperty(c_, i).FromMaybe(true)) return i;
    }
    if (i >= n) return n;
    Local<v8::Array> keys;
    if (!a->GetOwnPropertyNames(c_, v8::ONLY_ENUMERABLE, v8::KeyConversionMode::kKeepNumbers).ToLocal(&keys)) return n;
    uint32_t next = n;
    for (uint32_t k = 0; k < keys->Length(); k++) {
      Local<Value> key;
      if (!keys->Get(c_, k).ToLocal(&key) || !key->IsUint32()) continue;
      uint32_t at = key.As<v8::Uint32>()->Value();
      if (at >= i && at < next) next = at;
    }
    return next;
  }

  bool WritePlain(Local<v8::Object> o, int self, int depth) {
    Local<v8::Array> keys;
    {
      v8::TryCatch tc(iso_);
      if (!OwnKeys(o).ToLocal(&keys)) return ReadFailed(tc, steps_[self]);
    }
    uint32_t n = keys->Length();
    bool escaped = n == 1 && TagLike(keys);
    if (!Room(steps_[self], depth, escaped ? 2 : 1)) return false;
    depth += escaped ? 2 : 1;
    if (escaped) Put("{\"@object\":");
    out_ += '{';
    const char* tag = escaped ? "@object" : nullptr;
    for (uint32_t i = 0; i < n; i++) {
      Local<Value> k = keys->Get(c_, i).ToLocalChecked();
      if (i > 0) out_ += ',';
      if (!WriteMember(o, k.As<v8::String>(), {self, tag, -1, k.As<v8::String>()}, depth)) return false;
    }
    out_ += '}';
    if (escaped) out_ += '}';
    return true;
  }

  v8::MaybeLocal<v8::Array> OwnKeys(Local<v8::Object> o) {
    return o->GetOwnPropertyNames(c_, static_cast<v8::PropertyFilter>(v8::ONLY_ENUMERABLE | v8::SKIP_SYMBOLS), v8::KeyConversionMode::kConvertToString);
  }

  bool TagLike(Local<v8::Array> keys) {
    Local<Value> k = keys->Get(c_, 0).ToLocalChecked();
    std::string text = Utf8(iso_, k);
    return !text.empty() && text[0] == '@';
  }

  bool WriteMember(Local<v8::Object> o, Local<v8::String> key, const Step& at, int depth) {
    Local<Value> v;
    if (!WriteKey(key) || !Read(o, key, at, &v)) return false;
    return Write(v, at, depth);
  }

  bool WriteDate(double ms) {
    if (std::isnan(ms)) return Put("{\"@date\":null}");
    Put("{\"@date\":");
    Finite(ms + 0.0);
    return Put("}");
  }

  bool WriteRegExp(Local<v8::RegExp> r) {
    static const std::pair<int, char> flags[] = {{v8::RegExp::kHasIndices, 'd'}, {v8::RegExp::kGlobal, 'g'}, {v8::RegExp::kIgnoreCase, 'i'}, {v8::RegExp::kMultiline, 'm'},
                                                 {v8::RegExp::kDotAll, 's'}, {v8::RegExp::kUnicode, 'u'}, {v8::RegExp::kUnicodeSets, 'v'}, {v8::RegExp::kSticky, 'y'}};
    Put("{\"@regexp\":[");
    if (!WriteText(r->GetSource())) return false;
    Put(",\"");
    for (auto [bit, ch] : flags) {
      if (r->GetFlags() & bit) out_ += ch;
    }
    return Put("\"]}");
  }

  bool WriteMap(Local<v8::Array> flat, int self, int depth) {
    Put("{\"@map\":[");
    for (uint32_t i = 0; i + 1 < flat->Length(); i += 2) {
      if (i > 0) out_ += ',';
      for (int64_t half : {0, 1}) {
        out_ += half == 0 ? '[' : ',';
        if (!Write(flat->Get(c_, i + half).ToLocalChecked(), {self, "@map", i / 2, {}, half}, depth)) return false;
      }
      out_ += ']';
    }
    return Put("]}");
  }

  bool WriteSet(Local<v8::Array> items, int self, int depth) {
    Put("{\"@set\":[");
    for (uint32_t i = 0; i < items->Length(); i++) {
      if (i > 0) out_ += ',';
      if (!Write(items->Get(c_, i).ToLocalChecked(), {self, "@set", i, {}}, depth)) return false;
    }
    return Put("]}");
  }

  // WriteErrorText writes name, message or stack as a string, whatever the program made of it.
  bool WriteErrorText(Local<v8::Object> e, const char* name, int self) {
    Local<v8::String> key = Str(iso_, name);
    Step at{self, "@error", -1, key};
    Local<Value> v;
    if (!Read(e, key, at, &v)) return false;
    if (!v->IsString()) {
      Local<v8::String> text;
      v8::TryCatch tc(iso_);
      if (v->IsSymbol() || !v->ToString(c_).ToLocal(&text)) return tc.HasTerminated() ? ReadFailed(tc, at) : Put("\"\"");
      v = text;
    }
    return WriteText(v.As<v8::String>());
  }

  bool WriteError(Local<v8::Object> e, int self, int depth) {
    nodes_++;  // its text has five JSON values, where others have four
    Put("{\"@error\":{\"name\":");
    if (!WriteErrorText(e, "name", self)) return false;
    Put(",\"message\":");
    if (!WriteErrorText(e, "message", self)) return false;
    if (Has(e, "stack")) {
      Put(",\"stack\":");
      if (!WriteErrorText(e, "stack", self)) return false;
    }
    for (const char* name : {"cause", "errors"}) {
      Local<v8::String> key = Str(iso_, name);
      if (!Has(e, name)) continue;
      out_ += ',';
      if (!WriteMember(e, key, {self, "@error", -1, key}, depth)) return false;
    }
    return WriteErrorOwn(e, self, depth) && Put("}}");
  }

  bool Has(Local<v8::Object> o, const char* name) { return o->HasRealNamedProperty(c_, Str(iso_, name)).FromMaybe(false); }

  bool WriteErrorOwn(Local<v8::Object> e, int self, int depth) {
    Local<v8::Array> keys;
    v8::TryCatch tc(iso_);
    if (!OwnKeys(e).ToLocal(&keys)) return ReadFailed(tc, steps_[self]);
    for (uint32_t i = 0; i < keys->Length(); i++) {
      Local<v8::String> key = keys->Get(c_, i).ToLocalChecked().As<v8::String>();
      std::string text = Utf8(iso_, key);
      if (text == "name" || text == "message" || text == "stack" || text == "cause" || text == "errors") continue;
      out_ += ',';
      if (!WriteMember(e, key, {self, "@error", -1, key}, depth)) return false;
    }
    return true;
  }

  bool WriteBytes(std::string_view kind, const uint8_t* p, size_t n) {
    if (n / 3 * 4 > limits_.bytes) return TooLarge();
    if (kind == "Uint8Array") {
      Put("{\"@bytes\":\"");
      AppendBase64(&out_, p, n);
      return Put("\"}");
    }
    Put("{\"@buffer\":[\"");
    Put(kind);
    Put("\",\"");
    AppendBase64(&out_, p, n);
    return Put("\"]}");
  }

  bool WriteView(Local<v8::ArrayBufferView> v) {
    uint8_t small[64];
    v8::MemorySpan<uint8_t> bytes = v->GetContents(v8::MemorySpan<uint8_t>(small, sizeof small));
    return WriteBytes(ViewClass(v), bytes.data(), bytes.size());
  }

  bool WriteBuffer(Local<v8::ArrayBuffer> b, const Step& at) {
    if (b->WasDetached()) return Refuse(at, "a detached ArrayBuffer cannot leave the sandbox");
    return WriteBytes("ArrayBuffer", static_cast<const uint8_t*>(b->Data()), b->ByteLength());
  }

  bool WriteBoxed(Local<v8::Object> o, int self, int depth) {
    Local<Value> inner;
    if (o->IsNumberObject()) inner = v8::Number::New(iso_, o.As<v8::NumberObject>()->ValueOf());
    else if (o->IsStringObject()) inner = o.As<v8::StringObject>()->ValueOf();
    else if (o->IsBooleanObject()) inner = v8::Boolean::New(iso_, o.As<v8::BooleanObject>()->ValueOf());
    else inner = o.As<v8::BigIntObject>()->ValueOf();
    return Put("{\"@boxed\":[") && Write(inner, {self, "@boxed", 0, {}}, depth) && Put("]}");
  }

  ex_isolate* s_;
  v8::Isolate* iso_;
  Local<v8::Context> c_;
  const CodecLimits& limits_;
  const std::string& root_;
  std::string& out_;
  ex_error& err_;
  size_t start_;
  int nodes_ = 0;
  std::vector<Step> steps_;
  std::vector<Local<v8::Object>> objects_;
  std::unordered_multimap<int, int> seen_;
  std::unordered_map<int, std::string> handles_;  // texts of those among objects_
  Local<Value> ordinary_;  // the last prototype that is not of the library
};

}  // namespace

bool Encode(ex_isolate* s, v8::Local<v8::Context> c, v8::Local<v8::Value> v, const CodecLimits& limits, const std::string& root, std::string* out, ex_error* err, int* parts) {
  const size_t start = out->size();
  Encoder e(s, c, limits, root, out, err);
  if (!e.Write(v, {-1, nullptr, -1, {}}, 0)) return false;
  if (parts != nullptr) *parts = e.parts();
  // Exact to the byte: whoever gets the text holds the worker to the same number, and a byte more costs its process.
  if (out->size() - start > limits.bytes) {
    *err = Fail(EX_TOO_LARGE, root + " is larger than " + std::to_string(limits.bytes) + " bytes");
    return false;
  }
  return true;
}

}  // namespace executord

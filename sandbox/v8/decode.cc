// From the JSON text of the value codec to JavaScript values. Text without tags, the common case, is V8's own
// JSON.parse; the rest is parsed here, straight into values.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "base64.h"
#include "isolate.h"
#include "plain.h"

namespace executord {
namespace {

using v8::Local;
using v8::Value;

constexpr char kMalformed[] = "malformed JSON";

// Define sets a property as Error's own ones are: writable, configurable, not enumerable.
void Define(v8::Isolate* iso, Local<v8::Context> c, Local<v8::Object> o, const std::string& key, Local<Value> v) {
  (void)o->DefineOwnProperty(c, Str(iso, key), v, v8::DontEnum);
}

class Decoder {
 public:
  Decoder(ex_isolate* s, Local<v8::Context> c, std::string_view text, const CodecLimits& limits, const std::string& what)
      : what_(what), s_(s), iso_(s->iso), c_(c), p_(text.data()), end_(text.data() + text.size()), limits_(limits), refs_(text.find("\"@ref\"") != std::string_view::npos) {}

  v8::MaybeLocal<Value> Run() {
    Local<Value> v;
    if (!Parse(0, &v)) return Thrown();
    Space();
    if (p_ != end_) {
      Fault("text after the value");
      return Thrown();
    }
    return v;
  }

 private:
  v8::MaybeLocal<Value> Thrown() {
    if (!fault_.empty() && !iso_->IsExecutionTerminating()) iso_->ThrowException(v8::Exception::TypeError(Str(iso_, "cannot decode " + what_ + ": " + fault_)));
    return {};
  }
  bool Fault(const std::string& why) {
    if (fault_.empty()) fault_ = why;
    return false;
  }
  void Space() {
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\n' || *p_ == '\r' || *p_ == '\t')) p_++;
  }
  bool Eat(char ch) {
    Space();
    if (p_ == end_ || *p_ != ch) return false;
    p_++;
    return true;
  }
  bool Want(char ch) { return Eat(ch) || Fault(kMalformed); }
  bool Word(const char* w) {
    size_t n = strlen(w);
    if (static_cast<size_t>(end_ - p_) < n || memcmp(p_, w, n) != 0) return Fault(kMalformed);
    p_ += n;
    return true;
  }

  // Bounded counts a part, and asks whether depth more arrays and objects than the text's own may be open.
  bool Bounded(int depth) {
    if (depth > limits_.depth) return Fault("it is nested deeper than " + std::to_string(limits_.depth));
    return ++nodes_ <= limits_.nodes || Fault("it has more than " + std::to_string(limits_.nodes) + " parts");
  }

  // Parse reads one value; depth is how many arrays and objects are open around it.
  bool Parse(int depth, Local<Value>* v) {
    if (!Bounded(depth)) return false;
    Space();
    if (p_ == end_) return Fault(kMalformed);
    if (*p_ != '{' && *p_ != '[') return ParseScalar(v);
    if (depth == limits_.depth) return Bounded(depth + 1);
    return *p_ == '{' ? ParseObject(depth, v) : ParseArray(depth, v);
  }

  bool ParseScalar(Local<Value>* v) {
    switch (*p_) {
      case '"': {
        Local<v8::String> s;
        if (!ParseString(&s)) return false;
        *v = s;
        return true;
      }
      case 't': *v = v8::True(iso_); return Word("true");
      case 'f': *v = v8::False(iso_); return Word("false");
      case 'n': *v = v8::Null(iso_); return Word("null");
    }
    return ParseNumber(v);
  }

  bool ParseNumber(Local<Value>* v) {
    double d = 0;
    auto r = std::from_chars(p_, end_, d);
    if (r.ec == std::errc::result_out_of_range) {
      std::string text(p_, r.ptr);
      d = strtod(text.c_str(), nullptr);  // too small is zero, too large is refused
      if (std::isinf(d)) return Fault("a number is too large");
    } else if (r.ec != std::errc()) {
      return Fault(kMalformed);
    }
    p_ = r.ptr;
    *v = v8::Number::New(iso_, d);
    return true;
  }

  // RawString finds the end of a string literal; escaped tells whether it holds a backslash.
  bool RawString(std::string_view* raw, bool* escaped) {
    if (!Want('"')) return false;
    const char* from = p_;
    *escaped = false;
    while ((p_ += PlainRun<false>(p_, end_ - p_)) < end_ && *p_ == '\\') {
      *escaped = true;
      p_ += std::min<ptrdiff_t>(2, end_ - p_);
    }
    if (p_ == end_ || *p_ != '"') return Fault(kMalformed);
    *raw = {from, static_cast<size_t>(p_++ - from)};
    return true;
  }

  bool ParseString(Local<v8::String>* s) {
    std::string_view raw;
    bool escaped;
    if (!RawString(&raw, &escaped)) return false;
    if (!escaped) return MakeString(raw, s);
    std::string quoted = "\"" + std::string(raw) + "\"";
    Local<Value> v;  // escapes are rare in text with tags: V8 reads them
    if (!v8::JSON::Parse(c_, Str(iso_, quoted)).ToLocal(&v)) return false;
    *s = v.As<v8::String>();
    return true;
  }

  bool MakeString(std::string_view raw, Local<v8::String>* s) {
    if (raw.size() > static_cast<size_t>(v8::String::kMaxLength)) return Fault("a string is too long");
    if (v8::String::NewFromUtf8(iso_, raw.data(), v8::NewStringType::kNormal, static_cast<int>(raw.size())).ToLocal(s)) return true;
    return Fault("a string is too long");
  }

  bool ParseArray(int depth, Local<Value>* v) {
    p_++;
    Local<v8::Array> a = v8::Array::New(iso_);
    *v = a;
    size_t mark = Enter(a);
    uint32_t i = 0, j = 0;
    for (bool more = !Eat(']'); more; more = Comma(']'), j++) {
      uint32_t holes = 0;
      if (Hole(&holes)) {
        i += holes;
        if (i < holes || !SetLength(a, i)) return Fault("an array is too long");
        continue;
      }
      Local<Value> item;
      if (i == std::numeric_limits<uint32_t>::max()) return Fault("an array is too long");
      Step("/" + std::to_string(j), mark);
      if (!Parse(depth + 1, &item)) return false;
      if (item.IsEmpty() || !a->CreateDataProperty(c_, i++, item).FromMaybe(false)) return Fault("an array is too long");
    }
    path_.resize(mark);
    return fault_.empty();
  }

  bool SetLength(Local<v8::Array> a, uint32_t n) { return a->Set(c_, Str(iso_, "length"), v8::Integer::NewFromUnsigned(iso_, n)).FromMaybe(false); }

  // Hole reads the tag of holes; where there is none it reads nothing.
  bool Hole(uint32_t* n) {
    static const std::string_view key = "\"@hole\"";
    const char* from = p_;
    if (Eat('{') && (Space(), std::string_view(p_, end_ - p_).substr(0, key.size()) == key)) {
      p_ += key.size();
      if (Eat(':')) {
        Space();
        auto r = std::from_chars(p_, end_, *n);
        p_ = r.ptr;
        if (r.ec == std::errc() && *n > 0 && Eat('}')) return true;
      }
    }
    p_ = from;
    return false;
  }

  bool Comma(char close) {
    if (Eat(',')) return true;
    Want(close);
    return false;
  }

  // Places of containers, kept only where the text has references at all.
  size_t Enter(Local<Value> v) {
    if (refs_) places_[path_] = v;
    return path_.size();
  }
  void Step(const std::string& step, size_t mark) {
    if (!refs_) return;
    path_.resize(mark);
    path_ += step;
  }
  bool ParseObject(int depth, Local<Value>* v) {
    const char* start = p_++;
    if (Eat('}')) {
      *v = v8::Object::New(iso_);
      Enter(*v);
      return true;
    }
    Space();
    if (end_ - p_ > 2 && (p_[1] == '@' || EscapedAt())) {
      bool tagged = false;
      if (!ParseTag(depth, v, &tagged)) return false;
      if (tagged) return true;
      p_ = start + 1;
    }
    return ParseMembers(depth, v, v8::Object::New(iso_));
  }

  // EscapedAt tells whether a key starts with an '@' in disguise.
  bool EscapedAt() {
    static const std::string_view at = "\"\\u0040";
    return static_cast<size_t>(end_ - p_) > at.size() && std::string_view(p_, at.size()) == at;
  }

  // ParseMembers reads what follows the brace of a plain object.
  bool ParseMembers(int depth, Local<Value>* v, Local<v8::Object> o) {
    *v = o;
    size_t mark = Enter(o);
    bool more = true;
    for (; more; more = Comma('}')) {
      Local<v8::String> key;
      Local<Value> item;
      Space();
      if (!ParseString(&key) || !Want(':')) return Fault(kMalformed);
      if (refs_) Step(PointerStep(Wtf8(iso_, key)), mark);
      if (o->HasOwnProperty(c_, key).FromMaybe(true)) return Twice(key);
      if (!Parse(depth + 1, &item)) return false;
      if (!o->CreateDataProperty(c_, key, item).FromMaybe(false)) return Fault("an object cannot be made");
    }
    path_.resize(mark);
    return fault_.empty();
  }

  bool Twice(Local<v8::String> key) { return Fault("the key \"" + Shortened(Utf8(iso_, key)) + "\" comes twice"); }

  static std::string Shortened(std::string text) {
    constexpr size_t kMax = 80;
    return text.size() <= kMax ? text : text.substr(0, kMax) + "…";
  }

  // ParseTag reads an object whose first key starts with '@'. It is a tag only if it is the only key: else tagged
  // stays false and the object is read again as a plain one.
  bool ParseTag(int depth, Local<Value>* v, bool* tagged) {
    if (!OnlyKey()) return fault_.empty();
    std::string name;
    if (!TagText(&name) || !Want(':')) return false;
    *tagged = true;
    size_t mark = path_.size();
    if (refs_) path_ += "/" + name;
    Space();
    if (!Tag(name, depth + 1, v, mark)) {
      if (fault_ == kMalformed) fault_.clear();  // the text is JSON mostly, of another kind than the tag has in it
      return Fault("a malformed " + Shortened(name));
    }
    path_.resize(mark);
    return Want('}');
  }

  // OnlyKey looks ahead over one member without making values.
  bool OnlyKey() {
    const char* p = p_;
    std::string_view raw;
    bool escaped;
    int level = 0;
    bool only = false;
    while (p_ < end_) {
      char ch = *p_;
      if (ch == '"') {
        if (!RawString(&raw, &escaped)) break;
        continue;
      }
      if (ch == '{' || ch == '[') level++;
      if (ch == ',' && level == 0) break;
      if ((ch == '}' || ch == ']') && level-- == 0) {
        only = true;
        break;
      }
      p_++;
    }
    // Looking ahead again inside nested tags would be quadratic: charge it to the bound on parts.
    ahead_ += p_ - p;
    if (ahead_ > static_cast<size_t>(64) * 1024 * 1024 + 64 * static_cast<size_t>(end_ - p)) Fault("too many nested tags");
    p_ = p;
    return only;
  }

  // Tag reads what a tag has in it; depth counts the object that the tag is.
  bool Tag(const std::string& name, int depth, Local<Value>* v, size_t mark);
  bool TagText(std::string* out) {
    Local<v8::String> s;
    if (p_ == end_ || *p_ != '"' || !ParseString(&s)) return false;
    *out = Wtf8(iso_, s);
    return true;
  }
  bool TagNumber(Local<Value>* v);
  bool TagBigInt(Local<Value>* v);
  bool TagHandle(Local<Value>* v);
  bool TagDate(Local<Value>* v);
  bool TagRegExp(Local<Value>* v);
  bool TagMap(int depth, Local<Value>* v, size_t mark);
  bool TagSet(int depth, Local<Value>* v, size_t mark);
  bool TagError(int depth, Local<Value>* v, size_t mark);
  bool TagBuffer(Local<Value>* v);
  bool TagUtf16(Local<Value>* v);
  bool TagPlatform(const std::string& name, int depth, Local<Value>* v);
  bool Plain(int depth, Local<Value>* v);
  bool PlainMembers(int depth, Local<Value>* v);
  bool FormEntries(int depth, Local<Value>* v);
  bool TagBoxed(int depth, Local<Value>* v, size_t mark);
  bool Bytes(Local<v8::ArrayBuffer>* out);
  void Place(size_t mark, Local<Value> v) {
    if (refs_) places_[path_.substr(0, mark)] = v;
  }

  const std::string& what_;
  ex_isolate* s_;
  v8::Isolate* iso_;
  Local<v8::Context> c_;
  const char* p_;
  const char* end_;
  const CodecLimits& limits_;
  int nodes_ = 0;
  size_t ahead_ = 0;
  std::string fault_;
  bool refs_;
  std::string path_;
  std::unordered_map<std::string, Local<Value>> places_;
};

bool Decoder::Tag(const std::string& name, int depth, Local<Value>* v, size_t mark) {
  if (name == "@bytes") {
    Local<v8::ArrayBuffer> b;
    if (!Bytes(&b)) return false;
    *v = v8::Uint8Array::New(b, 0, b->ByteLength());
    Place(mark, *v);
    return true;
  }
  if (name == "@undefined") return *v = v8::Undefined(iso_), Word("true");
  if (name == "@number") return TagNumber(v);
  if (name == "@bigint") return TagBigInt(v);
  if (name == "@utf16") return TagUtf16(v);
  if (name == "@map") return TagMap(depth, v, mark);
  if (name == "@set") return TagSet(depth, v, mark);
  if (name == "@error") return TagError(depth, v, mark);
  if (name == "@boxed") return TagBoxed(depth, v, mark);
  if (name == "@object") {
    if (p_ == end_ || *p_ != '{') return false;
    p_++;
    Local<v8::Object> o = v8::Object::New(iso_);
    Place(mark, o);
    return Eat('}') ? (*v = o, true) : ParseMembers(depth, v, o);
  }
  if (name == "@ref") {
    std::string path;
    if (!TagText(&path)) return false;
    auto it = places_.find(path);
    if (it == places_.end()) return Fault("a reference to nothing");
    *v = it->second;
    return true;
  }
  if (name == "@handle") return TagHandle(v);
  bool ok = name == "@date" ? TagDate(v) : name == "@regexp" ? TagRegExp(v) : name == "@buffer" ? TagBuffer(v) : TagPlatform(name, depth, v);
  if (ok) Place(mark, *v);
  return ok;
}

// TagHandle reads a handle that the host got from this execution: the object itself.
bool Decoder::TagHandle(Local<Value>* v) {
  std::string id, kind;
  bool list = Eat('[');
  if (!TagText(&id) || (list && (!Want(',') || !(Space(), TagText(&kind)) || !Want(']')))) return Fault("a malformed handle");
  Local<v8::Object> o;
  if (!HandleNamed(s_, id).ToLocal(&o)) return Fault("a handle that this execution does not have");
  *v = o;
  return true;
}

// TagPlatform reads the tag of an object of the library's classes, which the library makes.
bool Decoder::TagPlatform(const std::string& name, int depth, Local<Value>* v) {
  static const std::string_view known[] = {"@url", "@blob", "@file", "@headers", "@formdata", "@request", "@response"};
  if (std::find(std::begin(known), std::end(known), name) == std::end(known)) return Fault("unknown tag \"" + Shortened(name) + "\"");
  Local<Value> args[] = {Str(iso_, name), {}};
  if (!(name == "@formdata" ? FormEntries(depth, &args[1]) : Plain(depth, &args[1]))) return false;
  v8::TryCatch tc(iso_);
  if (Library(s_, c_, "revive", 2, args).ToLocal(v)) return true;
  if (tc.HasTerminated() || iso_->IsExecutionTerminating()) {
    tc.ReThrow();
    return Fault("stopped");
  }
  Local<Value> why;
  Local<Value> thrown = tc.Exception();
  if (!thrown->IsObject() || !thrown.As<v8::Object>()->Get(c_, Str(iso_, "message")).ToLocal(&why)) return false;
  return Fault("in " + name + ": " + Utf8(iso_, why));
}

// Plain reads what is in a tag and holds no values: JSON, but {"@bytes":base64} is bytes, and objects have no prototype.
bool Decoder::Plain(int depth, Local<Value>* v) {
  Space();
  if (!Bounded(depth)) return false;
  if (p_ == end_) return Fault(kMalformed);
  if (*p_ == '{') return PlainMembers(depth, v);
  if (*p_ != '[') return ParseScalar(v);
  p_++;
  Local<v8::Array> a = v8::Array::New(iso_);
  *v = a;
  uint32_t i = 0;
  for (bool more = !Eat(']'); more; more = Comma(']')) {
    Local<Value> item;
    if (!Plain(depth + 1, &item) || !a->CreateDataProperty(c_, i++, item).FromMaybe(false)) return false;
  }
  return fault_.empty();
}

bool Decoder::PlainMembers(int depth, Local<Value>* v) {
  p_++;
  Local<v8::Object> o = v8::Object::New(iso_, v8::Null(iso_), nullptr, nullptr, 0);
  *v = o;
  for (bool more = !Eat('}'); more; more = Comma('}')) {
    Local<v8::String> key;
    Local<Value> item;
    Space();
    if (!ParseString(&key) || !Want(':')) return Fault(kMalformed);
    if (o->HasOwnProperty(c_, key).FromMaybe(true)) return Twice(key);
    if (Utf8(iso_, key) == "@bytes") {
      Local<v8::ArrayBuffer> b;
      Space();
      if (!Bytes(&b) || !Want('}')) return false;
      return *v = v8::Uint8Array::New(b, 0, b->ByteLength()), o->GetOwnPropertyNames(c_).ToLocalChecked()->Length() == 0;
    }
    if (!Plain(depth + 1, &item) || !o->CreateDataProperty(c_, key, item).FromMaybe(false)) return false;
  }
  return fault_.empty();
}

// FormEntries reads the pairs of a FormData, whose values are values.
bool Decoder::FormEntries(int depth, Local<Value>* v) {
  Local<v8::Array> pairs = v8::Array::New(iso_);
  *v = pairs;
  if (!Want('[')) return false;
  size_t at = path_.size();
  uint32_t i = 0;
  for (bool more = !Eat(']'); more; more = Comma(']'), i++) {
    Local<v8::String> name;
    Local<Value> item;
    if (!Want('[') || (Space(), !ParseString(&name)) || !Want(',')) return false;
    Step("/" + std::to_string(i) + "/1", at);
    Space();
    bool tagged = p_ < end_ && *p_ == '{';  // a string stands as itself here
    if (!Parse(depth + 2, &item) || (item->IsString() && tagged) || !Want(']')) return false;
    Local<Value> pair[] = {name, item};
    if (!pairs->CreateDataProperty(c_, i, v8::Array::New(iso_, pair, 2)).FromMaybe(false)) return false;
  }
  return fault_.empty();
}

bool Decoder::TagNumber(Local<Value>* v) {
  std::string text;
  if (!TagText(&text)) return false;
  double inf = std::numeric_limits<double>::infinity();
  double d = text == "NaN" ? std::numeric_limits<double>::quiet_NaN() : text == "Infinity" ? inf : text == "-Infinity" ? -inf : text == "-0" ? -0.0 : 1;
  if (d == 1) return false;
  *v = v8::Number::New(iso_, d);
  return true;
}

bool Decoder::TagBigInt(Local<Value>* v) {
  constexpr size_t kMaxDigits = 19729;  // of a number of 64 * kMaxBigIntWords bits
  const std::string too_long = "a BigInt has more than " + std::to_string(64 * kMaxBigIntWords) + " bits";
  std::string text;
  if (!TagText(&text) || text.empty()) return false;
  if (text.size() > kMaxDigits + 1) return Fault(too_long);
  size_t digits = text[0] == '-' ? 1 : 0;
  if (text.size() == digits || text.find_first_not_of("0123456789", digits) != std::string::npos) return false;
  if (text[digits] == '0' && text != "0") return false;
  // 18 digits at a time into 64-bit words, least significant first.
  std::vector<uint64_t> words{0};
  for (size_t i = digits; i < text.size(); i += 18) {
    std::string part = text.substr(i, 18);
    uint64_t carry = std::stoull(part), scale = 1;
    for (size_t k = 0; k < part.size(); k++) scale *= 10;
    for (uint64_t& w : words) {
      unsigned __int128 x = static_cast<unsigned __int128>(w) * scale + carry;
      w = static_cast<uint64_t>(x);
      carry = static_cast<uint64_t>(x >> 64);
    }
    if (carry) words.push_back(carry);
  }
  if (words.size() > static_cast<size_t>(kMaxBigIntWords)) return Fault(too_long);
  Local<v8::BigInt> n;
  if (!v8::BigInt::NewFromWords(c_, static_cast<int>(digits), static_cast<int>(words.size()), words.data()).ToLocal(&n)) return false;
  *v = n;
  return true;
}

bool Decoder::TagDate(Local<Value>* v) {
  double ms = std::numeric_limits<double>::quiet_NaN();
  if (p_ < end_ && *p_ == 'n') {
    if (!Word("null")) return false;
  } else {
    Local<Value> n;
    if (!ParseNumber(&n)) return false;
    ms = n.As<v8::Number>()->Value();
    if (ms != std::trunc(ms) || std::fabs(ms) > 8.64e15) return false;
  }
  return v8::Date::New(c_, ms).ToLocal(v);
}

bool Decoder::TagRegExp(Local<Value>* v) {
  Local<v8::String> source;
  std::string flags;
  if (!Want('[') || (Space(), !ParseString(&source)) || !Want(',') || (Space(), !TagText(&flags)) || !Want(']')) return false;
  static const std::string_view order = "gimyuslvd";
  static const int bits[] = {v8::RegExp::kGlobal, v8::RegExp::kIgnoreCase, v8::RegExp::kMultiline, v8::RegExp::kSticky, v8::RegExp::kUnicode,
                             v8::RegExp::kDotAll, 0, v8::RegExp::kUnicodeSets, v8::RegExp::kHasIndices};
  int all = 0;
  for (char ch : flags) {
    size_t i = order.find(ch);
    if (i == std::string_view::npos || bits[i] == 0 || (all & bits[i])) return false;
    all |= bits[i];
  }
  if ((all & v8::RegExp::kUnicode) && (all & v8::RegExp::kUnicodeSets)) return false;
  Local<v8::RegExp> r;
  v8::TryCatch tc(iso_);
  if (!v8::RegExp::New(c_, source, static_cast<v8::RegExp::Flags>(all)).ToLocal(&r)) return Fault("an invalid regular expression");
  *v = r;
  return true;
}

bool Decoder::TagMap(int depth, Local<Value>* v, size_t mark) {
  Local<v8::Map> m = v8::Map::New(iso_);
  *v = m;
  Place(mark, m);
  if (!Want('[')) return false;
  size_t at = path_.size();
  uint32_t i = 0;
  for (bool more = !Eat(']'); more; more = Comma(']'), i++) {
    Local<Value> k, x;
    if (!Want('[')) return false;
    Step("/" + std::to_string(i) + "/0", at);
    if (!Parse(depth + 2, &k) || !Want(',')) return false;
    Step("/" + std::to_string(i) + "/1", at);
    if (!Parse(depth + 2, &x) || !Want(']')) return false;
    if (m->Set(c_, k, x).IsEmpty()) return Fault("a Map cannot be made");
  }
  return fault_.empty();
}

bool Decoder::TagSet(int depth, Local<Value>* v, size_t mark) {
  Local<v8::Set> set = v8::Set::New(iso_);
  *v = set;
  Place(mark, set);
  if (!Want('[')) return false;
  size_t at = path_.size();
  uint32_t i = 0;
  for (bool more = !Eat(']'); more; more = Comma(']'), i++) {
    Local<Value> x;
    Step("/" + std::to_string(i), at);
    if (!Parse(depth + 1, &x)) return false;
    if (set->Add(c_, x).IsEmpty()) return Fault("a Set cannot be made");
  }
  return fault_.empty();
}

// TagError makes the Error first, so that references from inside it find it, and fills it as members come. name and
// message lead (the encoders write them first), so the right class can be chosen.
bool Decoder::TagError(int depth, Local<Value>* v, size_t mark) {
  if (!Want('{')) return false;
  std::string name = "Error";
  Local<v8::String> message = v8::String::Empty(iso_);
  Local<v8::Object> e;
  std::set<std::string> seen;
  size_t at = path_.size();
  auto make = [&] {
    if (!e.IsEmpty()) return;
    e = MakeError(iso_, name, message).As<v8::Object>();
    Place(mark, e);
    Local<Value> own;
    if (!e->Get(c_, Str(iso_, "name")).ToLocal(&own) || Utf8(iso_, own) != name) Define(iso_, c_, e, "name", Str(iso_, name));
  };
  for (bool more = !Eat('}'); more; more = Comma('}')) {
    std::string key;
    Local<v8::String> name_of;
    Space();
    if (!ParseString(&name_of) || !Want(':')) return false;
    key = Wtf8(iso_, name_of);
    if (!seen.insert(key).second) return Twice(name_of);
    Space();
    if (e.IsEmpty() && key == "name") {
      if (!TagText(&name)) return false;
      continue;
    }
    if (e.IsEmpty() && key == "message") {
      if (!ParseString(&message)) return false;
      continue;
    }
    make();
    Local<Value> x;
    bool text = key == "name" || key == "message" || key == "stack";
    if (text && (p_ == end_ || *p_ != '"')) return false;
    Step(PointerStep(key), at);
    if (!Parse(depth + 1, &x)) return false;
    bool hidden = text || key == "cause" || key == "errors";
    if (hidden) Define(iso_, c_, e, key, x);
    else if (!e->CreateDataProperty(c_, name_of, x).FromMaybe(false)) return Fault("an Error cannot be made");
  }
  make();
  *v = e;
  return fault_.empty();
}

bool Decoder::Bytes(Local<v8::ArrayBuffer>* out) {
  std::string_view raw;
  bool escaped;
  if (p_ == end_ || *p_ != '"' || !RawString(&raw, &escaped)) return false;
  int64_t n = Base64Size(raw);
  if (escaped || n < 0) return Fault("malformed base64");
  Local<v8::ArrayBuffer> b;
  if (!v8::ArrayBuffer::MaybeNew(iso_, n, v8::BackingStoreInitializationMode::kUninitialized).ToLocal(&b)) return Fault("not enough memory for its bytes within the buffer limit");
  if (n > 0 && !DecodeBase64(raw, static_cast<uint8_t*>(b->Data()))) return Fault("malformed base64");
  *out = b;
  return true;
}

template <typename T>
bool View(Local<v8::ArrayBuffer> b, size_t size, Local<Value>* v) {
  if (b->ByteLength() % size != 0) return false;
  *v = T::New(b, 0, b->ByteLength() / size);
  return true;
}

bool Decoder::TagBuffer(Local<Value>* v) {
  std::string kind;
  Local<v8::ArrayBuffer> b;
  if (!Want('[') || (Space(), !TagText(&kind)) || !Want(',') || (Space(), !Bytes(&b)) || !Want(']')) return false;
  if (kind == "ArrayBuffer") return *v = b, true;
  if (kind == "DataView") return View<v8::DataView>(b, 1, v);
  if (kind == "Uint8Array") return View<v8::Uint8Array>(b, 1, v);
  if (kind == "Uint8ClampedArray") return View<v8::Uint8ClampedArray>(b, 1, v);
  if (kind == "Int8Array") return View<v8::Int8Array>(b, 1, v);
  if (kind == "Uint16Array") return View<v8::Uint16Array>(b, 2, v);
  if (kind == "Int16Array") return View<v8::Int16Array>(b, 2, v);
  if (kind == "Float16Array") return View<v8::Float16Array>(b, 2, v);
  if (kind == "Uint32Array") return View<v8::Uint32Array>(b, 4, v);
  if (kind == "Int32Array") return View<v8::Int32Array>(b, 4, v);
  if (kind == "Float32Array") return View<v8::Float32Array>(b, 4, v);
  if (kind == "Float64Array") return View<v8::Float64Array>(b, 8, v);
  if (kind == "BigInt64Array") return View<v8::BigInt64Array>(b, 8, v);
  if (kind == "BigUint64Array") return View<v8::BigUint64Array>(b, 8, v);
  return false;
}

bool Decoder::TagUtf16(Local<Value>* v) {
  std::string_view raw;
  bool escaped;
  if (p_ == end_ || *p_ != '"' || !RawString(&raw, &escaped)) return false;
  int64_t n = Base64Size(raw);
  if (escaped || n < 0 || n % 2 != 0 || n / 2 > v8::String::kMaxLength) return false;
  std::vector<uint16_t> units(n / 2 + 1);
  if (!DecodeBase64(raw, reinterpret_cast<uint8_t*>(units.data()))) return false;
  Local<v8::String> s;
  if (!v8::String::NewFromTwoByte(iso_, units.data(), v8::NewStringType::kNormal, static_cast<int>(n / 2)).ToLocal(&s)) return false;
  *v = s;
  return true;
}

bool Decoder::TagBoxed(int depth, Local<Value>* v, size_t mark) {
  Local<Value> inner;
  if (!Want('[') || !Parse(depth + 1, &inner) || !Want(']') || inner->IsObject() || inner->IsNullOrUndefined() || inner->IsSymbol()) return false;
  Local<v8::Object> o;
  if (!inner->ToObject(c_).ToLocal(&o)) return false;
  Place(mark, o);
  *v = o;
  return true;
}

}  // namespace

v8::Local<v8::Value> MakeError(v8::Isolate* iso, const std::string& name, v8::Local<v8::String> message) {
  if (name == "TypeError") return v8::Exception::TypeError(message);
  if (name == "RangeError") return v8::Exception::RangeError(message);
  if (name == "SyntaxError") return v8::Exception::SyntaxError(message);
  if (name == "ReferenceError") return v8::Exception::ReferenceError(message);
  return v8::Exception::Error(message);
}

v8::MaybeLocal<v8::Value> Decode(ex_isolate* s, v8::Local<v8::Context> c, std::string_view text, const CodecLimits& limits, const std::string& what) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"' && memchr(text.data(), '\\', text.size()) == nullptr) {
    return Str(s->iso, text.substr(1, text.size() - 2));  // one plain string: the commonest large value
  }
  if (text.find("\"@") == std::string_view::npos && text.find("\"\\u0040") == std::string_view::npos) {
    v8::Local<v8::Value> v;
    if (text.size() > static_cast<size_t>(v8::String::kMaxLength)) return {};
    if (!v8::JSON::Parse(c, Str(s->iso, text)).ToLocal(&v)) return {};
    return v;
  }
  return Decoder(s, c, text, limits, what).Run();
}

}  // namespace executord

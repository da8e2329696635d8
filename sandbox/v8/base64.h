// Base64 (RFC 4648, standard alphabet, padded), as the value codec carries bytes.
#ifndef EXECUTORD_V8_BASE64_H
#define EXECUTORD_V8_BASE64_H
#include <cstdint>
#include <string>
#include <string_view>

namespace executord {

inline void AppendBase64(std::string* out, const uint8_t* p, size_t n) {
  static const char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  size_t start = out->size();
  out->resize(start + (n + 2) / 3 * 4);
  char* w = out->data() + start;
  size_t i = 0;
  for (; i + 3 <= n; i += 3, w += 4) {
    uint32_t v = p[i] << 16 | p[i + 1] << 8 | p[i + 2];
    w[0] = kAlphabet[v >> 18];
    w[1] = kAlphabet[v >> 12 & 63];
    w[2] = kAlphabet[v >> 6 & 63];
    w[3] = kAlphabet[v & 63];
  }
  if (i == n) return;
  uint32_t v = p[i] << 16 | (i + 1 < n ? p[i + 1] << 8 : 0);
  w[0] = kAlphabet[v >> 18];
  w[1] = kAlphabet[v >> 12 & 63];
  w[2] = i + 1 < n ? kAlphabet[v >> 6 & 63] : '=';
  w[3] = '=';
}

// Base64Size gives the number of bytes that text decodes to, or -1 where its length or padding is wrong.
inline int64_t Base64Size(std::string_view text) {
  if (text.size() % 4 != 0) return -1;
  int64_t n = static_cast<int64_t>(text.size()) / 4 * 3;
  if (!text.empty() && text.back() == '=') n -= text[text.size() - 2] == '=' ? 2 : 1;
  return n;
}

// DecodeBase64 fills out, which has Base64Size bytes; false where a character is wrong.
inline bool DecodeBase64(std::string_view text, uint8_t* out) {
  struct Table {
    int8_t value[256];
    Table() {
      for (int i = 0; i < 256; i++) value[i] = -1;
      for (int i = 0; i < 26; i++) value['A' + i] = i, value['a' + i] = 26 + i;
      for (int i = 0; i < 10; i++) value['0' + i] = 52 + i;
      value['+'] = 62;
      value['/'] = 63;
    }
  };
  static const Table table;
  const auto* p = reinterpret_cast<const uint8_t*>(text.data());
  size_t pad = 0;
  while (pad < 2 && pad < text.size() && text[text.size() - 1 - pad] == '=') pad++;
  size_t whole = (text.size() - pad) / 4, i = 0;
  int bad = 0;
  for (size_t q = 0; q < whole; q++, p += 4) {
    int a = table.value[p[0]], b = table.value[p[1]], c = table.value[p[2]], d = table.value[p[3]];
    bad |= a | b | c | d;
    uint32_t v = static_cast<uint32_t>(a) << 18 | static_cast<uint32_t>(b) << 12 | static_cast<uint32_t>(c) << 6 | static_cast<uint32_t>(d);
    out[i++] = v >> 16;
    out[i++] = v >> 8;
    out[i++] = v;
  }
  if (pad > 0) {
    int a = table.value[p[0]], b = table.value[p[1]], c = pad == 1 ? table.value[p[2]] : 0;
    bad |= a | b | c;
    out[i++] = a << 2 | b >> 4;
    if (pad == 1) out[i++] = b << 4 | c >> 2;
    if ((pad == 2 ? b & 15 : c & 3) != 0) return false;  // bits that mean nothing must be zero
  }
  return bad >= 0;
}

}  // namespace executord
#endif

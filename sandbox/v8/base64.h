// Base64 (RFC 4648, standard alphabet, padded), as the value codec carries bytes.
#ifndef EXECUTORD_V8_BASE64_H
#define EXECUTORD_V8_BASE64_H
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace executord {

// Base64Pairs has the two characters of each twelve bits: two lookups for three bytes instead of four.
struct Base64Pairs {
  char pair[4096][2];
  constexpr Base64Pairs() : pair() {
    const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int i = 0; i < 4096; i++) {
      pair[i][0] = alphabet[i >> 6];
      pair[i][1] = alphabet[i & 63];
    }
  }
};

// EncodeBase64 writes the text of n bytes, and returns its end.
inline char* EncodeBase64(char* w, const uint8_t* p, size_t n) {
  static constexpr Base64Pairs kPairs;
  size_t i = 0;
  for (; i + 8 <= n; i += 6, w += 8) {  // reads two bytes more than it uses
    uint64_t v;
    std::memcpy(&v, p + i, 8);
    v = __builtin_bswap64(v);
    std::memcpy(w, kPairs.pair[v >> 52], 2);
    std::memcpy(w + 2, kPairs.pair[v >> 40 & 4095], 2);
    std::memcpy(w + 4, kPairs.pair[v >> 28 & 4095], 2);
    std::memcpy(w + 6, kPairs.pair[v >> 16 & 4095], 2);
  }
  for (; i + 3 <= n; i += 3, w += 4) {
    uint32_t v = p[i] << 16 | p[i + 1] << 8 | p[i + 2];
    std::memcpy(w, kPairs.pair[v >> 12], 2);
    std::memcpy(w + 2, kPairs.pair[v & 4095], 2);
  }
  if (i == n) return w;
  uint32_t v = p[i] << 16 | (i + 1 < n ? p[i + 1] << 8 : 0);
  std::memcpy(w, kPairs.pair[v >> 12], 2);
  w[2] = i + 1 < n ? kPairs.pair[v & 4095][0] : '=';
  w[3] = '=';
  return w + 4;
}

// AppendBase64 goes by steps that stay in the cache: making a string longer first would fill it with zeros.
inline void AppendBase64(std::string* out, const uint8_t* p, size_t n) {
  constexpr size_t kStep = 3 * 1024;
  char text[kStep / 3 * 4];
  size_t room = out->size() + (n + 2) / 3 * 4;
  if (room > out->capacity()) out->reserve(std::max(room + 64, 2 * out->capacity()));
  while (n > 0) {
    size_t step = std::min(n, kStep);
    out->append(text, EncodeBase64(text, p, step) - text);
    p += step;
    n -= step;
  }
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

// Base64 (RFC 4648, standard alphabet, padded), as the value codec carries bytes. The work is that of simdutf, which is
// linked with V8; V8's package leaves out its header.
#ifndef EXECUTORD_V8_BASE64_H
#define EXECUTORD_V8_BASE64_H
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace simdutf {

enum base64_options : uint64_t { base64_default = 0 };
enum last_chunk_handling_options : uint64_t { strict = 1 };
enum error_code { SUCCESS = 0 };
struct result {
  error_code error;
  size_t count;
};

size_t binary_to_base64(const char* input, size_t length, char* output, base64_options) noexcept;
result base64_to_binary(const char* input, size_t length, char* output, base64_options, last_chunk_handling_options) noexcept;

}  // namespace simdutf

namespace executord {

// AppendBase64 goes by steps that stay in the cache: making a string longer first would fill it with zeros.
inline void AppendBase64(std::string* out, const uint8_t* p, size_t n) {
  constexpr size_t kStep = 12 * 1024;
  char text[kStep / 3 * 4];
  size_t room = out->size() + (n + 2) / 3 * 4;
  if (room > out->capacity()) out->reserve(std::max(room + 64, 2 * out->capacity()));
  while (n > 0) {
    size_t step = std::min(n, kStep);
    out->append(text, simdutf::binary_to_base64(reinterpret_cast<const char*>(p), step, text, simdutf::base64_default));
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

// DecodeBase64 fills out, which has Base64Size bytes; false where a character is wrong. simdutf passes over white space: text
// with some has fewer bytes in it.
inline bool DecodeBase64(std::string_view text, uint8_t* out) {
  auto r = simdutf::base64_to_binary(text.data(), text.size(), reinterpret_cast<char*>(out), simdutf::base64_default, simdutf::strict);
  return r.error == simdutf::SUCCESS && static_cast<int64_t>(r.count) == Base64Size(text);
}

}  // namespace executord
#endif

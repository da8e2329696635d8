// How far a JSON string goes as it is, sixteen bytes at a time.
#ifndef EXECUTORD_V8_PLAIN_H
#define EXECUTORD_V8_PLAIN_H
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace executord {

// PlainRun counts the first bytes that are neither a quotation mark, a backslash nor a control character (RFC 8259, 7),
// and less than 0x80 where ascii says so.
template <bool ascii>
size_t PlainRun(const void* text, size_t n) {
  typedef uint8_t Block __attribute__((vector_size(16)));
  typedef uint64_t Words __attribute__((vector_size(16)));
  auto* p = static_cast<const uint8_t*>(text);
  size_t i = 0;
  for (; i + sizeof(Block) <= n; i += sizeof(Block)) {
    Block b;
    memcpy(&b, p + i, sizeof b);
    auto other = (b < 0x20) | (b == '"') | (b == '\\');
    if (ascii) other |= b >= 0x80;
    auto any = reinterpret_cast<Words>(other);
    if ((any[0] | any[1]) != 0) break;
  }
  while (i < n && p[i] >= 0x20 && p[i] != '"' && p[i] != '\\' && (!ascii || p[i] < 0x80)) i++;
  return i;
}

}  // namespace executord
#endif

// The memory of isolates that are gone, kept for the next one.
//
// V8 gives every page back to the kernel when an isolate ends, and asks for it anew when the next one is made: some fifty
// calls that change mappings, and a fault for each page that is touched again. That was most of what an execution costs
// where a hypervisor looks after page tables (docs/decisions/0015-kept-pages.md). The linker leads V8's calls to the
// functions at the end of this file (--wrap in engine.go), which keep what is freed, readable, writable and zero, up to
// kKeepBytes; what is asked for again is there already. Whatever does not look exactly like V8's calls for its pages goes
// to the kernel as it is.
//
// What was a program's is overwritten before it is kept. Only an access that V8 does not make tells the difference: kept
// memory does not fault, nor does a write to the null entries of V8's pointer tables.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "engine.h"

extern "C" {
void* __real_mmap64(void* addr, size_t size, int prot, int flags, int fd, off64_t offset);
int __real_munmap(void* addr, size_t size);
int __real_mprotect(void* addr, size_t size, int prot);
int __real_madvise(void* addr, size_t size, int advice);
}

namespace {

constexpr size_t kPage = 4 << 10;
constexpr size_t kSegment = 64 << 10;  // what V8's pointer tables grow by
constexpr size_t kChunk = 256 << 10;   // what its heaps grow by
constexpr size_t kKeepBytes = 8 << 20;  // an isolate that did little has 2 MiB
constexpr int kUnits = 128, kReservations = 32, kSpare = 10;

constexpr int kReserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// Unit is memory that is readable and writable, whatever V8 believes of it: a segment, or what of a chunk was needed.
struct Unit {
  uintptr_t at;
  size_t size;
  size_t lent;   // what V8 has of it, from its start; zero: it is kept, and all of it is zero
  size_t dirty;  // what of it may not be zero, from its start
  int since;     // tables that had been reserved when it was kept
  bool Is(uintptr_t a, size_t n) const { return a == at && n >= lent; }
  bool Ends(uintptr_t a, size_t n) const { return a > at && a < at + lent && a + n == at + lent; }
};

// Reservation is the address space of one pointer table.
struct Reservation {
  uintptr_t at;
  size_t size;  // zero: no reservation
  bool lent;
  bool trimmed;  // V8 gave back what it asked for to align it
  bool odd;      // something in it is accessible and not a unit
};

std::mutex mutex;
std::atomic<uint64_t> asked{0};  // of the kernel
Unit units[kUnits];
int n_units = 0;
size_t kept = 0;
int reserved = 0;  // tables, ever
Reservation reservations[kReservations];

// The kernel's calls.
void* Map(void* addr, size_t size, int prot, int flags, int fd, off64_t offset) {
  asked++;
  return __real_mmap64(addr, size, prot, flags, fd, offset);
}
int Unmap(void* addr, size_t size) {
  asked++;
  return __real_munmap(addr, size);
}
int Protect(void* addr, size_t size, int prot) {
  asked++;
  return __real_mprotect(addr, size, prot);
}
int Advise(void* addr, size_t size, int advice) {
  asked++;
  return __real_madvise(addr, size, advice);
}

uintptr_t At(void* p) { return reinterpret_cast<uintptr_t>(p); }
void* Pointer(uintptr_t at) { return reinterpret_cast<void*>(at); }
bool Overlap(uintptr_t a, size_t n, uintptr_t b, size_t m) { return a < b + m && b < a + n; }

// Piece is how much of a range that starts at a place lies in one chunk.
size_t Piece(uintptr_t at, size_t size) { return std::min(size, kChunk - at % kChunk); }

void Drop(Unit* u) {
  if (u->lent == 0) kept -= u->size;
  *u = units[--n_units];
}

// Find is the unit that a place is in.
Unit* Find(uintptr_t at) {
  for (int i = 0; i < n_units; i++) {
    if (at >= units[i].at && at - units[i].at < units[i].size) return &units[i];
  }
  return nullptr;
}

// LentIn is any unit of V8's in a range.
Unit* LentIn(uintptr_t at, size_t size) {
  for (int i = 0; i < n_units; i++) {
    if (units[i].lent > 0 && Overlap(at, size, units[i].at, units[i].size)) return &units[i];
  }
  return nullptr;
}

Reservation* Around(uintptr_t at) {
  for (auto& r : reservations) {
    if (r.size > 0 && at >= r.at && at - r.at < r.size) return &r;
  }
  return nullptr;
}

// Forget drops what the range touches: for the kernel it is what V8 believes, or looser.
void Forget(uintptr_t at, size_t size) {
  for (int i = n_units; i-- > 0;) {
    const Unit& u = units[i];
    if (!Overlap(at, size, u.at, u.size)) continue;
    bool whole = at <= u.at && u.at + u.size <= at + size;
    if (Reservation* r = Around(u.at); r && !whole) r->odd = true;
    Drop(&units[i]);
  }
}

// Evict gives back a unit that two isolates, of five tables each, had no use for: those after a large program would find
// the room taken by what they do not ask for. Units may change places.
bool Evict() {
  Unit* oldest = nullptr;
  for (int i = 0; i < n_units; i++) {
    if (units[i].lent == 0 && (!oldest || units[i].since < oldest->since)) oldest = &units[i];
  }
  if (!oldest || reserved - oldest->since < 2 * 5) return false;
  if (Map(Pointer(oldest->at), oldest->size, PROT_NONE, kReserve | MAP_FIXED, -1, 0) == MAP_FAILED) return false;
  Drop(oldest);
  return true;
}

// Lend hands the first bytes of a unit to V8, which may write to them, or will not.
void Lend(Unit* u, size_t size, bool written) {
  if (u->lent == 0) kept -= u->size;
  u->lent = std::max(u->lent, size);
  if (written) u->dirty = u->lent;
}

// Add makes a unit of memory that has become accessible, or makes one longer.
bool Add(uintptr_t at, size_t size, bool written) {
  if (at % kSegment != 0) return false;
  Unit* u = Find(at);
  if (!u || u->at != at || u->size < size) {
    Unit grown = u && u->at == at ? *u : Unit{at, 0, 0, 0, 0};
    Forget(at, size);
    if (n_units == kUnits) return false;
    u = &units[n_units++];
    *u = grown;
    if (u->lent == 0) kept += size;
    u->size = u->dirty = size;  // nobody knows what was there
  }
  Lend(u, size, written);
  return true;
}

// Keep takes a unit back from V8, if there is room. Units may change places.
bool Keep(Unit* u) {
  if (u->lent == 0) return true;
  for (uintptr_t at = u->at; kept + u->size > kKeepBytes; u = Find(at)) {
    if (!Evict()) return false;
  }
  memset(Pointer(u->at), 0, u->dirty);
  u->lent = u->dirty = 0;
  u->since = reserved;
  kept += u->size;
  return true;
}

// Commit makes a range readable and writable.
int Commit(uintptr_t at, size_t size, bool written) {
  bool fits = size <= kKeepBytes, there = fits;
  int most = static_cast<int>(size / kChunk) + 2;  // units that it may take; of those in it none may go later
  while (fits && n_units + most > kUnits && Evict()) {
  }
  for (size_t i = 0, n; i < size && there; i += n) {
    n = Piece(at + i, size - i);
    Unit* u = Find(at + i);
    there = u && u->at == at + i && u->size >= n;
  }
  int err = there ? 0 : Protect(Pointer(at), size, PROT_READ | PROT_WRITE);
  Reservation* r = Around(at);
  if (err != 0 || !fits) {
    Forget(at, size);
    if (r) r->odd = true;
    return err;
  }
  for (size_t i = 0, n; i < size; i += n) {
    n = Piece(at + i, size - i);
    if (Add(at + i, n, written)) continue;
    Forget(at + i, n);
    if (r) r->odd = true;
  }
  return 0;
}

// Seal makes a range read-only. Segments of tables stay writable: V8 asks for it to notice faults of its own.
int Seal(uintptr_t at, size_t size) {
  if (Around(at) && at % kSegment == 0 && size == kSegment) return Commit(at, size, false);
  Forget(at, size);
  if (Reservation* r = Around(at)) r->odd = true;
  return Protect(Pointer(at), size, PROT_READ);
}

// Release takes back a range, piece by piece: what is not kept goes to the kernel by way of give. The end of a unit, which
// V8 gives back when nothing will use it any more, stays with the unit where rest says so.
template <typename Give>
int Release(uintptr_t at, size_t size, bool rest, Give give) {
  if (size > kKeepBytes) {
    Forget(at, size);
    return give(at, size);
  }
  uintptr_t from = at, end = at + size;  // what goes to the kernel begins at from
  int err = 0;
  for (uintptr_t p = at, next; p < end && err == 0; p = next) {
    next = p + Piece(p, end - p);
    Unit* u = Find(p);
    if (u) next = std::min(next, u->at + u->size);  // what follows may be there too
    if (u && u->Ends(p, next - p) && rest) {
      if (size_t lent = p - u->at; u->dirty > lent) {
        memset(Pointer(p), 0, u->dirty - lent);
        u->dirty = lent;
      }
      u->lent = p - u->at;
    } else if (!u || !u->Is(p, next - p) || !Keep(u)) {
      Forget(p, next - p);
      continue;
    }
    if (p > from) err = give(from, p - from);
    from = next;
  }
  return err == 0 && end > from ? give(from, end - from) : err;
}

void* Reserve(size_t size) {
  Reservation* free = nullptr;
  reserved++;
  for (auto& r : reservations) {
    if (r.size == size && !r.lent) {
      r.lent = true, r.trimmed = false;
      return Pointer(r.at);
    }
    if (r.size == 0) free = &r;
  }
  if (!free) return nullptr;
  void* p = Map(nullptr, size + kSegment, PROT_NONE, kReserve, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  uintptr_t from = At(p), at = (from + kSegment - 1) / kSegment * kSegment;
  if (at > from) Unmap(p, at - from);
  if (at < from + kSegment) Unmap(Pointer(at + size), from + kSegment - at);
  *free = {at, size, true, false, false};
  return Pointer(at);
}

// Unreserve tells whether address space that V8 gives back is kept.
bool Unreserve(uintptr_t at, size_t size) {
  int spare = 0;
  for (auto& r : reservations) spare += r.size > 0 && !r.lent;
  for (auto& r : reservations) {
    if (r.size == 0 || !r.lent) continue;
    if (at == r.at + r.size && size == kSegment - kPage && !r.trimmed) return r.trimmed = true;
    if (!Overlap(at, size, r.at, r.size)) continue;
    if (at != r.at || size != r.size || r.odd || spare >= kSpare) {
      r.size = 0;
      continue;
    }
    while (Unit* u = LentIn(at, size)) {
      uintptr_t part = u->at;
      if (Keep(u)) continue;
      u = Find(part);
      if (Map(Pointer(part), u->size, PROT_NONE, kReserve | MAP_FIXED, -1, 0) == MAP_FAILED) r.odd = true;
      Drop(u);
    }
    if (r.odd) {
      r.size = 0;
      continue;
    }
    r.lent = false;
    return true;
  }
  Forget(at, size);
  return false;
}

}  // namespace

extern "C" {

// ex_pages_read reads all that is kept; it is meant for tests.
ex_pages ex_pages_read(void) {
  std::lock_guard<std::mutex> lock(mutex);
  ex_pages p{0, 0, asked};
  for (int i = 0; i < n_units; i++) {
    if (units[i].lent > 0) continue;
    p.kept += units[i].size;
    auto* bytes = static_cast<const unsigned char*>(Pointer(units[i].at));
    for (size_t k = 0; k < units[i].size; k++) p.dirty += bytes[k] != 0;
  }
  if (p.kept != kept) p.dirty++;
  return p;
}

void* __wrap_mmap64(void* addr, size_t size, int prot, int flags, int fd, off64_t offset) {
  constexpr size_t kAlign = kSegment - kPage, kStep = 32 << 20, kMost = 512 << 20;
  if ((flags & MAP_FIXED) && prot == PROT_NONE && fd < 0) {
    std::lock_guard<std::mutex> lock(mutex);
    int err = Release(At(addr), size, false, [&](uintptr_t at, size_t n) {
      return Map(Pointer(at), n, prot, flags, fd, offset) == MAP_FAILED ? -1 : 0;
    });
    return err == 0 ? addr : MAP_FAILED;
  }
  if (flags & MAP_FIXED) {
    std::lock_guard<std::mutex> lock(mutex);
    Forget(At(addr), size);
    if (Reservation* r = Around(At(addr))) r->odd = true;
  } else if (prot == PROT_NONE && flags == kReserve && size > kAlign && (size - kAlign) % kStep == 0 && size - kAlign <= kMost) {
    std::lock_guard<std::mutex> lock(mutex);
    if (void* p = Reserve(size - kAlign)) return p;
  }
  return Map(addr, size, prot, flags, fd, offset);
}

int __wrap_munmap(void* addr, size_t size) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (Unreserve(At(addr), size)) return 0;
  }
  return Unmap(addr, size);
}

int __wrap_mprotect(void* addr, size_t size, int prot) {
  std::lock_guard<std::mutex> lock(mutex);
  switch (prot) {
    case PROT_READ | PROT_WRITE: return Commit(At(addr), size, true);
    case PROT_READ: return Seal(At(addr), size);
    case PROT_NONE:
      return Release(At(addr), size, true, [&](uintptr_t at, size_t n) { return Protect(Pointer(at), n, prot); });
  }
  Forget(At(addr), size);
  if (Reservation* r = Around(At(addr))) r->odd = true;
  return Protect(addr, size, prot);
}

// What is kept is zero already, and the end of a unit that V8 gave back stays as it is.
int __wrap_madvise(void* addr, size_t size, int advice) {
  if (advice != MADV_DONTNEED) return Advise(addr, size, advice);
  std::lock_guard<std::mutex> lock(mutex);
  int err = 0;
  for (size_t i = 0, n; i < size && err == 0; i += n) {
    Unit* u = Find(At(addr) + i);
    n = u ? std::min(size - i, u->at + u->size - At(addr) - i) : size - i;
    if (u && At(addr) + i >= u->at + u->lent) continue;
    err = Advise(static_cast<char*>(addr) + i, n, advice);
  }
  return err;
}

}  // extern "C"

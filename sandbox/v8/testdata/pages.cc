// Plays V8 at random against pages.cc, with a record of what each page has to be: TestPagesWhateverIsAsked builds and runs it.
// What was inaccessible must be zero when it becomes accessible, whatever was asked in between and in what pieces.
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "../engine.h"

namespace {

constexpr size_t kPage = 4 << 10, kReserved = 32 << 20, kTrim = 60 << 10, kCage = 128 << 20;
constexpr int kNoAccess = MAP_PRIVATE | MAP_ANONYMOUS;

[[noreturn]] void Fail(const char* what, int round, size_t page) {
  printf("round %d, page %zu: %s\n", round, page, what);
  exit(1);
}

// Reserve asks as V8 does for a pointer table, or, where table is false, for a cage of its own alignment.
char* Reserve(bool table) {
  void* p = mmap64(nullptr, table ? kReserved + kTrim : kCage, PROT_NONE, kNoAccess | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) Fail("no address space", 0, 0);
  if (table) munmap(static_cast<char*>(p) + kReserved, kTrim);
  return static_cast<char*>(p) + (table ? 0 : -reinterpret_cast<size_t>(p) % (256 << 10));
}

// Play changes runs of up to some pages, in steps of some size, while tables come and go.
void Play(bool table, size_t pages, size_t step, size_t run, int rounds) {
  char* base = Reserve(table);
  std::vector<int> state(pages, PROT_NONE);
  for (int round = 0; round < rounds; round++) {
    size_t from = rand() % (pages / step) * step, n = std::min((1 + rand() % (run / step)) * step, pages - from);
    char* at = base + from * kPage;
    int become = PROT_NONE;
    switch (rand() % 6) {
      case 0:
      case 1:
        become = PROT_READ | PROT_WRITE;
        if (mprotect(at, n * kPage, become) != 0) Fail("cannot be written to", round, from);
        break;
      case 2:
        mprotect(at, n * kPage, PROT_NONE);
        madvise(at, n * kPage, MADV_DONTNEED);
        break;
      case 3:
        mmap64(at, n * kPage, PROT_NONE, kNoAccess | MAP_FIXED, -1, 0);
        break;
      case 4:
        become = PROT_READ;
        mprotect(at, n * kPage, become);
        break;
      default:
        if (!table) munmap(Reserve(true), kReserved);
        if (!table || rand() % 10 > 0) continue;
        munmap(base, kReserved);
        base = Reserve(true);
        state.assign(pages, PROT_NONE);
        continue;
    }
    for (size_t i = from; i < from + n; i++) {
      char* page = base + i * kPage;
      for (size_t k = 0; become != PROT_NONE && state[i] == PROT_NONE && k < kPage; k++) {
        if (page[k] != 0) Fail("not zero", round, i);
      }
      if ((become & PROT_WRITE) && rand() % 2) memset(page, 42, kPage);
      state[i] = become;
    }
    if (round % 50 == 0 && ex_pages_read().dirty > 0) Fail("something that is kept is not zero", round, from);
  }
}

}  // namespace

int main() {
  for (unsigned seed = 1; seed <= 2; seed++) {
    for (size_t step : {1, 4, 16}) {
      for (bool table : {false, true}) {
        srand(seed);
        Play(table, 1024, step, 100, 500);
      }
    }
    srand(seed);
    Play(false, 32704, 64, 1024, 600);  // more chunks than there are units
  }
}

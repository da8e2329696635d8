// What a native fault leaves behind: a report on standard error, which the parent keeps for its operator, and the death
// by the same signal. The report has names from this program's own files and numbers, and nothing that a guest made: no
// registers, no memory, no names of generated code. docs/decisions/0008-native-crashes.md says why it is made like this.
//
// All of it runs in signal handlers, with the process in any state: no allocation, no locks but that of dladdr(3).
#include "crash.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>

// The demangler of libstdc++ that does not allocate; it is declared in no header (checked on GCC 12).
extern "C" int __gcclibcxx_demangle_callback(const char* mangled, void (*sink)(const char*, size_t, void*), void* opaque);

namespace executord {
namespace {

constexpr int kMaxFrames = 64;
constexpr size_t kReportBytes = 7 << 10;  // of the 8 KiB of standard error that the parent keeps
constexpr size_t kNameBytes = 160, kMangledBytes = 512, kLineBytes = 320;
constexpr uintptr_t kNullPage = 64 << 10;

struct { int number; const char* name; } constexpr kFaults[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}, {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"}};

// ---- this program's file

struct Range { off_t at; size_t bytes; };

int image = -1;  // descriptor of the file; -1 and no names where it cannot be opened
Range symbols, names;
uintptr_t bias, text_begin, text_end;

template <typename T>
bool ReadImage(T* into, off_t at) { return pread(image, into, sizeof *into, at) == sizeof *into; }

// FindSymbols looks up where the file has its symbol table. No segment maps that: it costs no memory until a crash.
void FindSymbols() {
  ElfW(Ehdr) head;
  image = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (image < 0 || !ReadImage(&head, 0)) return;
  for (int i = 0; i < head.e_shnum; i++) {
    ElfW(Shdr) section, linked;
    if (!ReadImage(&section, head.e_shoff + i * sizeof section) || section.sh_type != SHT_SYMTAB) continue;
    if (!ReadImage(&linked, head.e_shoff + section.sh_link * sizeof linked)) return;
    names = {static_cast<off_t>(linked.sh_offset), linked.sh_size};
    symbols = {static_cast<off_t>(section.sh_offset), section.sh_size};
  }
}

// FindText is told of the modules of the process. The first is the program itself.
int FindText(dl_phdr_info* info, size_t, void*) {
  bias = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X)) continue;
    text_begin = bias + segment.p_vaddr;
    text_end = text_begin + segment.p_memsz;
  }
  return 1;
}

// ---- signals

void Handle(int sig, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;  // Go's threads have signal stacks
  sigfillset(&action.sa_mask);
  sigaction(sig, &action, nullptr);
}

// ---- the stack

// Frame is a place in the code, for a call the last byte of its instruction. Where it lies in the program, start and name
// are the address of the symbol before it and where that is in names.
struct Frame {
  uintptr_t pc, start;
  size_t name;
  bool Ours() const { return pc >= text_begin && pc < text_end; }
};

Frame frames[kMaxFrames];
int depth = 0;
bool interrupted = false;  // frames begin with the one that the signal interrupted

// Registers are what a signal interrupted. kFramePointer is the number of fp in DWARF.
struct Registers { uintptr_t pc, sp, fp; };

#if defined(__x86_64__)
constexpr int kFramePointer = 6;
Registers Interrupted(const ucontext_t* c) {
  auto* r = c->uc_mcontext.gregs;
  return {static_cast<uintptr_t>(r[REG_RIP]), static_cast<uintptr_t>(r[REG_RSP]), static_cast<uintptr_t>(r[REG_RBP])};
}
#elif defined(__aarch64__)
constexpr int kFramePointer = 29;
Registers Interrupted(const ucontext_t* c) {
  auto& r = c->uc_mcontext;
  return {r.pc, r.sp, r.regs[29]};
}
#endif

// Read copies from memory that may not be there.
template <typename T>
bool Read(uintptr_t at, T* into) {
  iovec to{into, sizeof *into}, from{reinterpret_cast<void*>(at), sizeof *into};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof *into;
}

void Push(uintptr_t pc) {
  if (depth < kMaxFrames) frames[depth++] = {pc, 0, 0};
}

_Unwind_Reason_Code OnFrame(_Unwind_Context* at, void* fp) {
  int exact = 0;  // the frame was interrupted and called nothing
  uintptr_t pc = _Unwind_GetIPInfo(at, &exact);
  if (exact) depth = 0, interrupted = true;  // what was before is the handler's
  Push(exact ? pc : pc - 1);
  *static_cast<uintptr_t*>(fp) = _Unwind_GetGR(at, kFramePointer);
  return depth < kMaxFrames ? _URC_NO_REASON : _URC_END_OF_STACK;
}

// FollowLinks walks by frame pointers, from fp on, as long as they lead up the stack.
void FollowLinks(uintptr_t fp) {
  struct { uintptr_t up, return_address; } link;
  for (; depth < kMaxFrames && fp % sizeof fp == 0 && Read(fp, &link) && link.return_address != 0; fp = link.up) {
    Push(link.return_address - 1);
    if (link.up <= fp) return;
  }
}

sigjmp_buf broken_stack;

// Unwind pushes frames as far as there are tables, and returns the frame pointer of the last. It looks at the code of
// frames without a table, which may not be there, nor be readable: memory protection keys deny generated code to signal
// handlers. It ends then.
uintptr_t Unwind() {
  static uintptr_t fp = 0;
  sigset_t fault;
  sigemptyset(&fault);
  sigaddset(&fault, SIGSEGV);
  if (sigsetjmp(broken_stack, 1) == 0) {
    Handle(SIGSEGV, [](int, siginfo_t*, void*) { siglongjmp(broken_stack, 1); });
    pthread_sigmask(SIG_UNBLOCK, &fault, nullptr);
    _Unwind_Backtrace(OnFrame, &fp);
    pthread_sigmask(SIG_BLOCK, &fault, nullptr);
  }
  signal(SIGSEGV, SIG_DFL);
  return fp;
}

// WalkStack unwinds by tables as far as there are any, which V8 and generated code have not, and from there by frame
// pointers, which those have (checked on V8 13.6), as this package and Go do. It may end where a stack of Go begins, since
// that can lie lower.
void WalkStack() { FollowLinks(Unwind()); }

// WalkFrom walks the stack of what the signal interrupted.
void WalkFrom(const Registers& at) {
  WalkStack();
  if (interrupted) return;
  depth = 0;
  Push(at.pc);
  char code;
  uintptr_t caller;
  if (!Read(at.pc, &code) && Read(at.sp, &caller)) Push(caller - 1);  // it was a call of what is no code
  FollowLinks(at.fp);
}

// FindNames finds the symbols that the frames of this program lie in, in one pass through its table.
void FindNames() {
  static ElfW(Sym) piece[1024];
  for (size_t done = 0; done < symbols.bytes;) {
    ssize_t n = pread(image, piece, std::min(sizeof piece, symbols.bytes - done), symbols.at + done) / ssize_t{sizeof *piece};
    if (n <= 0) return;
    for (const auto* s = piece; s < piece + n; s++) {
      if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || s->st_shndx == SHN_UNDEF) continue;
      uintptr_t start = bias + s->st_value;
      for (Frame* f = frames; f < frames + depth; f++) {
        if (f->Ours() && start <= f->pc && start > f->start) f->start = start, f->name = s->st_name;
      }
    }
    done += n * sizeof *piece;
  }
}

// ---- the report

// Line is one line of the report on its way. What does not fit is left out.
class Line {
 public:
  Line& operator<<(std::string_view s) {
    for (char ch : s.substr(0, kLineBytes - n_)) text_[n_++] = ch >= 0x20 && ch < 0x7f ? ch : '?';
    return *this;
  }
  Line& Number(uint64_t v, int base) {
    char digits[24];
    return *this << std::string_view(digits, std::to_chars(digits, digits + sizeof digits, v, base).ptr - digits);
  }
  // Write sends the line, unless the report is full.
  void Write() {
    text_[n_++] = '\n';
    if (written_ + n_ > kReportBytes) return;
    written_ += n_;
    (void)!write(STDERR_FILENO, text_, n_);
  }

 private:
  static size_t written_;
  char text_[kLineBytes + 1];
  size_t n_ = 0;
};
size_t Line::written_ = 0;

// Name collects what the demangler tells, up to its bound.
struct Name {
  char text[kNameBytes];
  size_t n = 0;
  static void Add(const char* s, size_t bytes, void* opaque) {
    auto* name = static_cast<Name*>(opaque);
    bytes = std::min(bytes, kNameBytes - name->n);
    memcpy(name->text + name->n, s, bytes);
    name->n += bytes;
  }
  std::string_view View() const { return {text, n}; }
};

void PutSymbol(Line& line, const char* symbol, uintptr_t offset) {
  Name name;
  if (__gcclibcxx_demangle_callback(symbol, Name::Add, &name) != 0) name.n = 0;
  line << (name.n > 0 ? name.View() : std::string_view(symbol, strnlen(symbol, kNameBytes)));
  (line << "+0x").Number(offset, 16) << " ";
}

void PutOurs(Line& line, const Frame& f) {
  char symbol[kMangledBytes] = "";
  if (f.start != 0 && f.name < names.bytes) (void)!pread(image, symbol, sizeof symbol - 1, names.at + f.name);
  if (symbol[0] != 0) PutSymbol(line, symbol, f.pc - f.start);
  (line << "(executor-worker+0x").Number(f.pc - bias, 16) << ")";
}

void PutLibrary(Line& line, const Frame& f) {
  Dl_info in;
  if (dladdr(reinterpret_cast<void*>(f.pc), &in) == 0 || in.dli_fname == nullptr) {
    char code;
    line << (Read(f.pc, &code) ? "[generated code]" : "[no code]");
    return;
  }
  if (in.dli_sname != nullptr) PutSymbol(line, in.dli_sname, f.pc - reinterpret_cast<uintptr_t>(in.dli_saddr));
  const char* slash = strrchr(in.dli_fname, '/');
  (line << "(" << (slash != nullptr ? slash + 1 : in.dli_fname) << "+0x").Number(f.pc - reinterpret_cast<uintptr_t>(in.dli_fbase), 16) << ")";
}

void PrintStack() {
  FindNames();
  for (int i = 0; i < depth; i++) {
    Line line;
    (line << "  #").Number(i, 10) << " ";
    frames[i].Ours() ? PutOurs(line, frames[i]) : PutLibrary(line, frames[i]);
    line.Write();
  }
}

// OnRoom calls f on a stack of its own: that of a signal handler has 32 KiB, and the demangler may want more.
void OnRoom(void (*f)()) {
  alignas(16) static char room[256 << 10];
  static ucontext_t here, there;
  getcontext(&there);
  there.uc_stack.ss_sp = room;
  there.uc_stack.ss_size = sizeof room;
  there.uc_link = &here;
  makecontext(&there, f, 0);
  swapcontext(&here, &there);
}

// ---- the end

// Die ends the process by sig. The first process of a pid namespace cannot be ended by signals of its own
// (pid_namespaces(7)); it exits with the status by which shells, and the pool, mean the signal.
void Die(int sig) {
  if (getpid() == 1) _exit(128 + sig);
  syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), sig);
}

int ending;  // the signal that the process ends by

// EndBy lets sig end the process within a second, whatever happens: through another thread, for it may be blocked here.
void EndBy(int sig) {
  ending = sig;
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = sig;
  if (getpid() == 1) {
    event.sigev_signo = SIGALRM;
    Handle(SIGALRM, [](int, siginfo_t*, void*) { Die(ending); });
  }
  itimerspec second{};
  second.it_value.tv_sec = 1;
  int timer;
  if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) == 0) syscall(SYS_timer_settime, timer, 0, &second, nullptr);
}

// BeginReport makes the calling thread the one that reports; others that fault meanwhile wait for the end. A fault of
// this one ends the process at once.
void BeginReport(int sig) {
  static std::atomic<bool> begun{false};
  while (begun.exchange(true)) pause();
  for (auto& fault : kFaults) signal(fault.number, SIG_DFL);
  EndBy(sig);
}

// PutHeader tells what is known before the stack is walked, which a broken stack may not survive.
void PutHeader(int sig, const siginfo_t* info, uintptr_t pc) {
  Line line;
  line << "executor-worker: ";
  for (auto& fault : kFaults) {
    if (fault.number == sig) line << fault.name;
  }
  auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if ((sig == SIGSEGV || sig == SIGBUS) && info->si_code > 0 && info->si_code != SI_KERNEL && address < kNullPage) {
    (line << " near null (0x").Number(address, 16) << ")";
  }
  if (Frame f{pc, 0, 0}; f.Ours()) (line << " at executor-worker+0x").Number(pc - bias, 16);
  (line << " in execution ").Number(CurrentExecution(), 10).Write();
}

// OnFault reports. Sig is blocked until it returns: what it raises ends the process then, with the registers of the fault.
void OnFault(int sig, siginfo_t* info, void* context) {
  if (sig == SIGABRT) EndIfOutOfMemory();
  BeginReport(sig);
  Registers at = Interrupted(static_cast<ucontext_t*>(context));
  PutHeader(sig, info, at.pc);
  WalkFrom(at);
  OnRoom(PrintStack);
  AwaitWriter();
  Die(sig);
}

// OnForwarded is called by Go's handler. The instruction faults again when it returns, and then no frames of Go, which
// cannot be unwound, are between it and OnFault.
void OnForwarded(int sig, siginfo_t*, void*) { Handle(sig, OnFault); }

// Go turns these faults into panics of its own code. Those outside of it, it forwards to handlers that were there before
// it started (os/signal, "Go programs that use cgo or SWIG"), as constructors are.
__attribute__((constructor(200))) void CatchBeforeGo() {
  FindSymbols();  // a worker has no files by the time Go starts
  for (int sig : {SIGSEGV, SIGBUS, SIGFPE}) Handle(sig, OnForwarded);
}

}  // namespace

void CatchFaults() {
  dl_iterate_phdr(FindText, nullptr);
  // Go would end the process by exit status 2 and needs none of these itself.
  for (int sig : {SIGILL, SIGTRAP, SIGABRT}) Handle(sig, OnFault);
}

void ReportStack() {
  BeginReport(SIGABRT);
  WalkStack();
  OnRoom(PrintStack);
}

}  // namespace executord

// What a worker gives up before Go starts, in a constructor: the process has one thread then, and what that gives up all
// later ones never had. Landlock and capabilities belong to threads, and Go has several before main.
//
// Everything is tried whatever became of the rest, and nothing ends the process: the parent hears what is in force and
// decides. Only system calls are used, and what they need from the file system later is opened here.
#define _GNU_SOURCE
#include "early.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int early_begun = 0, early_statm = -1;
int early_results[EARLY_STEPS];

// idleSlackNs is the timer slack of threads that Go starts; see cmd/internal/goruntime, which needs /proc for that. What
// has to be in time here waits in the main thread or for a timer that is a descriptor.
enum { idleSlackNs = 10000000 };

static int fault(long result) { return result < 0 ? errno : 0; }

// EmptyRoot puts the process into a file system of its own that has one folder, which is empty and cannot be written to,
// and lets go of the machine's. In a mount namespace of its own: that of the parent is never touched.
static int EmptyRoot(void) {
  static const char* const folders[] = {"/proc", "/dev", "/tmp"};  // any folder that is there
  if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) return errno;
  const unsigned long flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
  int error = ENOENT;
  for (size_t i = 0; error == ENOENT && i < sizeof folders / sizeof *folders; i++) {
    error = fault(mount("none", folders[i], "tmpfs", flags, "size=4k,nr_inodes=1,mode=555"));
    if (error == 0) error = fault(chdir(folders[i]));
  }
  if (error != 0) return error;
  // The old root lies over the new one until it is let go (pivot_root(2), "pivot_root(".", ".")").
  if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0) return errno;
  return 0;
}

// Deny makes Landlock (Linux 5.13) refuse all that this kernel's version of it knows, without any exception.
static int Deny(void) {
  enum { createRuleset = 444, restrictSelf = 446, askVersion = 1 };
  static const uint64_t files[] = {0, 0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff};  // by version, until 5
  long version = syscall(createRuleset, NULL, 0, askVersion);
  if (version < 1) return version < 0 ? errno : ENOSYS;
  struct { uint64_t files, net, scoped; } all = {files[version > 5 ? 5 : version], version >= 4 ? 3 : 0, version >= 6 ? 3 : 0};
  size_t bytes = version >= 6 ? sizeof all : version >= 4 ? 16 : 8;
  int rules = syscall(createRuleset, &all, bytes, 0);
  if (rules < 0) return errno;
  int error = fault(syscall(restrictSelf, rules, 0));
  close(rules);
  return error;
}

static int DropCapabilities(void) {
  for (int c = 0; c < 64; c++) prctl(PR_CAPBSET_DROP, c, 0, 0, 0);  // may be refused: nothing can be had from it any more
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[2], own[2];
  memset(none, 0, sizeof none);
  int error = fault(syscall(SYS_capset, &header, none));
  // A unit of systemd has none, and may not say so again.
  if (error != 0 && syscall(SYS_capget, &header, own) == 0 && memcmp(own, none, sizeof own) == 0) return 0;
  return error;
}

static int JoinNewKeyring(void) {
  int error = fault(syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0));
  return error == ENOSYS ? 0 : error;  // a kernel without keyrings has none to reach
}

static int IsWorker(int argc, char** argv) {
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "-channel") == 0 || strcmp(argv[i], "-unit") == 0) return 1;
  }
  return 0;
}

// Constructors of the C++ side that open files have a lower number.
__attribute__((constructor(300))) static void ConfineBeforeGo(int argc, char** argv) {
  if (!IsWorker(argc, argv)) return;
  early_begun = 1;
  early_statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  prctl(PR_SET_TIMERSLACK, idleSlackNs, 0, 0, 0);
  early_results[EARLY_KEYRING] = JoinNewKeyring();
  early_results[EARLY_ROOT] = EmptyRoot();
  early_results[EARLY_NO_NEW_PRIVILEGES] = fault(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  early_results[EARLY_LANDLOCK] = Deny();  // after the last mount, which it refuses
  early_results[EARLY_CAPABILITIES] = DropCapabilities();
  early_results[EARLY_DUMP] = fault(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
}

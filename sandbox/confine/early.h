// What early.c did before Go started.
#ifndef EXECUTORD_CONFINE_EARLY_H
#define EXECUTORD_CONFINE_EARLY_H

enum { EARLY_NO_NEW_PRIVILEGES, EARLY_KEYRING, EARLY_ROOT, EARLY_LANDLOCK, EARLY_CAPABILITIES, EARLY_DUMP, EARLY_STEPS };

extern int early_begun;                  // whether this process is a worker that serves
extern int early_results[EARLY_STEPS];   // 0 for what is in force, else why it is not, as errno
extern int early_statm;                  // descriptor of /proc/self/statm, -1 where there is none

#endif

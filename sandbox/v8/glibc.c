// V8's static libraries are built against glibc 2.38 or later, whose headers redirect these functions to C23
// variants. On an older glibc (checked on 2.36) the variants do not exist; the C17 functions differ from them only in
// accepting no "0b" prefix, which V8 does not use.
#include <features.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__GLIBC__) && !__GLIBC_PREREQ(2, 38)
long __isoc23_strtol(const char* s, char** end, int base) { return strtol(s, end, base); }
unsigned long __isoc23_strtoul(const char* s, char** end, int base) { return strtoul(s, end, base); }
long long __isoc23_strtoll(const char* s, char** end, int base) { return strtoll(s, end, base); }
unsigned long long __isoc23_strtoull(const char* s, char** end, int base) { return strtoull(s, end, base); }

int __isoc23_sscanf(const char* s, const char* format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsscanf(s, format, args);
  va_end(args);
  return n;
}

int __isoc23_fscanf(FILE* f, const char* format, ...) {
  va_list args;
  va_start(args, format);
  int n = vfscanf(f, format, args);
  va_end(args);
  return n;
}
#endif

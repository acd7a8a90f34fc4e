// chapters.h - rl.c for a test: all of it but main(). With IN_DOUBLE every float of the two files becomes a
// double, so that the same code can be held against central differences. System headers come first: they must
// keep their floats.
#define _XOPEN_SOURCE 700
#define _DARWIN_C_SOURCE
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#include "check.h"
#ifdef IN_DOUBLE
#ifdef __clang__
#pragma clang diagnostic ignored "-Wkeyword-macro"
#endif
#define float double
#endif
#define TOOLS_NO_MAIN
#include "../docs/tools.c"

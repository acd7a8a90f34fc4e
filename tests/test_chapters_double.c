// The worksheets of test_chapters.c once more, in double precision.
#define IN_DOUBLE
#include "test_chapters.c"

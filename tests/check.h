/* check.h - the smallest test harness that prints a worksheet.
 *
 * A test is a function without arguments; inside it CHECK and CHECK_NEAR state what must hold. RUN(test)
 * prints one line, `ok   name` or `FAIL name`, each broken statement with its file, line and numbers. The
 * tests/run.sh script adds the lines of all programs up and prints the closing line.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_broken;   /* broken statements in the running test */
static int check_failed;   /* failed tests in this program */

/* counts a broken statement and says which; a function that checks for its caller has the caller's line */
#define BROKEN(...) BROKEN_AT(__FILE__, __LINE__, __VA_ARGS__)
#define BROKEN_AT(file, line, ...)                                                         \
    (check_broken++, printf("  %s:%d: ", file, line), printf(__VA_ARGS__))

#define CHECK(statement)                                                                   \
    do {                                                                                   \
        if (!(statement)) BROKEN("not so: %s\n", #statement);                              \
    } while (0)

/* |value - expected| <= tolerance * max(1, |expected|); a NaN never passes */
#define CHECK_NEAR(value, expected, tolerance)                                             \
    do {                                                                                   \
        double v_ = (double)(value), e_ = (double)(expected);                              \
        if (!(fabs(v_ - e_) <= (double)(tolerance) * fmax(1.0, fabs(e_))))                 \
            BROKEN("%s is %.12g, expected %.12g (off by %.3g)\n", #value, v_, e_, v_ - e_); \
    } while (0)

#define CHECK_TEXT(value, expected)                                                        \
    do {                                                                                   \
        const char *v_ = (value), *e_ = (expected);                                        \
        if (strcmp(v_, e_)) BROKEN("%s is \"%s\", expected \"%s\"\n", #value, v_, e_);     \
    } while (0)

/* one line, `ok   name` or `FAIL name`; RUN_ALL(TEST(first), TEST(second)) runs one after the other */
#define RUN(test) RUN_ALL(TEST(test))
#define TEST(test) {#test, test}
#define RUN_ALL(...)                                                                       \
    do {                                                                                   \
        const struct { const char* name; void (*run)(void); } all_[] = {__VA_ARGS__};      \
        for (size_t i_ = 0; i_ < sizeof all_ / sizeof *all_; i_++) {                       \
            check_broken = 0;                                                              \
            all_[i_].run();                                                                \
            printf("%s %s\n", check_broken ? "FAIL" : "ok  ", all_[i_].name);              \
            fflush(stdout);                                                                \
            check_failed += check_broken != 0;                                             \
            if (check_broken && getenv("FIRST_FAILURE")) exit(1);                          \
        }                                                                                  \
    } while (0)

/* for a test of data that not everybody has */
#define RUN_IF(here, test)                                                                 \
    do {                                                                                   \
        if (here) RUN(test);                                                               \
        else printf("skip %s: its data is not here (DATA=DIR names a folder)\n", #test);   \
    } while (0)

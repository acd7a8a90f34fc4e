/* ex.c - the program behind `make ex`: checks a submission, a shared library, exercise by exercise.
 *
 *     ex LIBRARY SOURCE       SOURCE is only named in messages; ex SOLUTION: rl.c's own functions
 *
 * From the environment: N, only this one; ALL, a line for each; HINT. The submission is loaded apart from
 * rl.c: neither sees the other's functions. Exit status: 0 = what was asked is right, 1 = not, 2 = bad usage.
 */
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE
#include <dlfcn.h>

#include "check.h"
#include "table.h"
#include "message.h"

static const char* setting(const char* name) {
    const char* value = getenv(name);
    return value && *value ? value : NULL;
}

static int usage(const char* format, const char* word) {
    fprintf(stderr, format, word);
    return 2;
}

int main(int argc, char** argv) {
    static Verdict v;
    int own = argc == 2 && !strcmp(argv[1], "SOLUTION"), all = setting("ALL") != NULL;
    int hint = setting("HINT") != NULL;
    const char *source = own ? "rl.c" : argv[2], *asked = setting("N");
    char* end = "";
    long only = asked ? strtol(asked, &end, 10) : 0;
    int right = 0, first = only && !all ? (int)only : 1, last = only && !all ? (int)only : EXERCISES;
    if (!own && argc != 3) return usage("usage: ex LIBRARY SOURCE, or ex SOLUTION%s\n", "");
    if (asked && (*end || only < 1 || only > EXERCISES))
        return usage("there is no exercise %s: they are numbered 1 to 31\n", asked);
    void* library = own ? NULL : dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!own && !library) {
        const char *why = dlerror(), *symbol = strstr(why, "undefined symbol: ");
        printf("%s calls a function that exists nowhere: %s\n", source, symbol ? symbol + 18 : why);
        if (all) printf("0 of %d right\n", EXERCISES);
        return 1;
    }
    for (int n = first; n <= last; n++) {
        const Exercise* e = &exercises[n - 1];
        void* symbol = library ? dlsym(library, e->function) : NULL;
        Fn fn = library ? NULL : e->solution;
        if (symbol) memcpy(&fn, &symbol, sizeof fn);
        judge(&v, e, fn);
        right += v.state == RIGHT;
        if (all) {
            print_row(n, e, &v);
            if (hint && v.state != RIGHT) print_field("hint", "%s", e->hint);
        } else if (v.state != RIGHT || first == last) {
            if (first < n) printf("%s%d ok\n\n", n > 2 ? "1 to " : "", n - 1);
            print_message(n, e, &v, source, hint);
            return v.state != RIGHT;
        }
    }
    if (all) printf("%s: what is not right in detail, make ex N=...\n", source);
    printf("%d of %d right%s\n", right, EXERCISES, all ? "" : ". The open ones: make ex N=29, N=30, N=31");
    return right != EXERCISES;
}

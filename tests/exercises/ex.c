/* ex.c - the program behind `make ex`: checks a submission, a shared library, exercise by exercise.
 *
 *     ex LIBRARY SOURCE [N=12] [ALL=1] [HINT=1]       SOURCE is only named in messages
 *     ex SOLUTION [N=12] [ALL=1] [HINT=1]             rl.c's own functions
 *
 * The submission is loaded apart from rl.c: neither can see the other's functions. Exit status: 0 = all that
 * was asked is right, 1 = not, 2 = bad usage.
 */
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE
#include <dlfcn.h>

#include "check.h"
#include "table.h"
#include "message.h"

// What the submission (NULL: rl.c's own functions) gives in exercise n, counted from 1.
static const Verdict* verdict_on(int n, void* library) {
    static Verdict v;
    const Exercise* e = &exercises[n - 1];
    void* symbol = library ? dlsym(library, e->function) : NULL;
    Fn fn = library ? NULL : e->solution;
    if (symbol) memcpy(&fn, &symbol, sizeof fn);
    judge(&v, e, fn);
    return &v;
}

static int check_all(void* library, const char* source, int hint) {
    int right = 0;
    for (int n = 1; n <= EXERCISES; n++) {
        const Verdict* v = verdict_on(n, library);
        right += v->state == RIGHT;
        print_row(n, &exercises[n - 1], v);
        if (hint && v->state != RIGHT) print_field("hint", "%s", exercises[n - 1].hint);
    }
    printf("%s: what is not right in detail, make ex N=...\n", source);
    printf("%d of %d right\n", right, EXERCISES);
    return right == EXERCISES ? 0 : 1;
}

static int check_one(void* library, const char* source, int hint, int n) {
    const Verdict* v = verdict_on(n, library);
    print_message(n, &exercises[n - 1], v, source, hint);
    return v->state == RIGHT ? 0 : 1;
}

static int check_until_wrong(void* library, const char* source, int hint) {
    for (int n = 1; n <= EXERCISES; n++) {
        const Verdict* v = verdict_on(n, library);
        if (v->state == RIGHT) continue;
        if (n > 1) printf("%s%d ok\n\n", n > 2 ? "1 to " : "", n - 1);
        print_message(n, &exercises[n - 1], v, source, hint);
        return 1;
    }
    printf("%d of %d right. The open ones: make ex N=29, N=30, N=31\n", EXERCISES, EXERCISES);
    return 0;
}

static int usage(const char* format, const char* word) {
    fprintf(stderr, format, word);
    return 2;
}

int main(int argc, char** argv) {
    int all = 0, hint = 0, n = 0, own = argc > 1 && !strcmp(argv[1], "SOLUTION");
    if (argc < (own ? 2 : 3))
        return usage("usage: ex LIBRARY SOURCE [N=12] [ALL=1] [HINT=1], or ex SOLUTION ...%s\n", "");
    const char* source = own ? "rl.c" : argv[2];
    for (int i = own ? 2 : 3; i < argc; i++) {
        if (!strcmp(argv[i], "ALL=1")) all = 1;
        else if (!strcmp(argv[i], "HINT=1")) hint = 1;
        else if (!strncmp(argv[i], "N=", 2)) {
            char* end;
            long asked = strtol(argv[i] + 2, &end, 10);
            if (end == argv[i] + 2 || *end || asked < 1 || asked > EXERCISES)
                return usage("there is no exercise %s: they are numbered 1 to 31\n", argv[i] + 2);
            n = (int)asked;
        } else return usage("%s is not known here; N=12, ALL=1 or HINT=1 are\n", argv[i]);
    }
    void* library = own ? NULL : dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!own && !library) {
        const char *why = dlerror(), *symbol = strstr(why, "undefined symbol: ");
        printf("%s calls a function that exists nowhere: %s\n", source, symbol ? symbol + 18 : why);
        if (all) printf("0 of %d right\n", EXERCISES);
        return 1;
    }
    if (all) return check_all(library, source, hint);
    return n ? check_one(library, source, hint, n) : check_until_wrong(library, source, hint);
}

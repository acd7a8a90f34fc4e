/* ex.c - the program behind `make ex`: checks a submission, compiled as a shared library, exercise by
 * exercise.
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

static Fn find_function(void* library, const Exercise* e) {
    void* symbol = library ? dlsym(library, e->function) : NULL;
    Fn fn = library ? NULL : e->solution;
    if (symbol) memcpy(&fn, &symbol, sizeof fn);
    return fn;
}

static int check_all(void* library, const char* source, int hint) {
    int right = 0;
    for (int i = 0; i < EXERCISES; i++) {
        static Verdict v;
        judge(&v, &exercises[i], find_function(library, &exercises[i]));
        right += v.state == RIGHT;
        print_row(i + 1, &exercises[i], &v);
        if (hint && v.state != RIGHT) print_field("hint", exercises[i].hint);
    }
    printf("%s: what is not right in detail, make ex N=...\n", source);
    printf("%d of %d right\n", right, EXERCISES);
    return right == EXERCISES ? 0 : 1;
}

static int check_one(void* library, const char* source, int hint, int n) {
    static Verdict v;
    judge(&v, &exercises[n - 1], find_function(library, &exercises[n - 1]));
    print_message(n, &exercises[n - 1], &v, source, hint);
    return v.state == RIGHT ? 0 : 1;
}

static int check_until_wrong(void* library, const char* source, int hint) {
    for (int i = 0; i < EXERCISES; i++) {
        static Verdict v;
        judge(&v, &exercises[i], find_function(library, &exercises[i]));
        if (v.state == RIGHT) continue;
        if (i) printf("%s%d ok\n\n", i > 1 ? "1 to " : "", i);
        print_message(i + 1, &exercises[i], &v, source, hint);
        return 1;
    }
    printf("%d of %d right. The open ones: make ex N=%d, N=%d, N=%d\n", EXERCISES, EXERCISES, EXERCISES + 1,
           EXERCISES + 2, EXERCISES + 3);
    return 0;
}

int main(int argc, char** argv) {
    const char *source = "rl.c", *number_text = NULL;
    int all = 0, hint = 0, first = 2, n = 0;
    void* library = NULL;
    if (argc < 2 || (strcmp(argv[1], "SOLUTION") && argc < 3)) {
        fprintf(stderr, "usage: ex LIBRARY SOURCE [N=12] [ALL=1] [HINT=1], or ex SOLUTION ...\n");
        return 2;
    }
    if (strcmp(argv[1], "SOLUTION")) {
        source = argv[2];
        first = 3;
        library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            const char *why = dlerror(), *symbol = strstr(why, "undefined symbol: ");
            printf("%s calls a function that exists nowhere: %s\n", source, symbol ? symbol + 18 : why);
            for (int i = first; i < argc; i++)
                if (!strcmp(argv[i], "ALL=1")) printf("0 of %d right\n", EXERCISES);
            return 1;
        }
    }
    for (int i = first; i < argc; i++) {
        if (!strncmp(argv[i], "N=", 2)) number_text = argv[i] + 2;
        else if (!strcmp(argv[i], "ALL=1")) all = 1;
        else if (!strcmp(argv[i], "HINT=1")) hint = 1;
        else {
            fprintf(stderr, "%s is not known here; N=12, ALL=1 or HINT=1 are\n", argv[i]);
            return 2;
        }
    }
    if (number_text) {
        char* end;
        long asked = strtol(number_text, &end, 10);
        if (end == number_text || *end || asked < 1 || asked > EXERCISES) {
            fprintf(stderr, "there is no exercise %s: they are numbered 1 to %d\n", number_text,
                    EXERCISES + 3);
            return 2;
        }
        n = (int)asked;
    }
    if (all) return check_all(library, source, hint);
    return n ? check_one(library, source, hint, n) : check_until_wrong(library, source, hint);
}

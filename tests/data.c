/* data.c - the files in data/, and the program that writes them
 *
 * generate.c promises that train, test and demonstrations share no problem, not even with other names and
 * things. It keeps the promise with its own idea of "the same problem"; here the finished lines are compared.
 */
#define _XOPEN_SOURCE 700
#define _DARWIN_C_SOURCE
#define main generate_main
#include "../data/generate.c"
#undef main

#include <ctype.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"

enum { MAX_LINES = 5000, LINE_SIZE = 1024 };

typedef struct {
    char question[LINE_SIZE], answer[LINE_SIZE];
    const Kind* kind;        // NULL: no template of generate.c, or two, could have made the question
    int number[MAX_NUMBERS]; // its numbers, in order
    int file;                // 0 train, 1 test, 2 demos
} Line;

static Line lines[MAX_LINES];
static int count, per_file[3];
static const char* const names[] = {"train.jsonl", "test.jsonl", "demos.jsonl"};

// ---- reading, as little as the files need

// The text behind `key` up to the next bare quotation mark, with \n, \" and \\ undone. Returns what follows.
static const char* read_field(char* out, const char* line, const char* key) {
    const char* p = strstr(line, key);
    size_t n = 0;
    if (!p) return NULL;
    for (p += strlen(key); *p && *p != '"' && n + 1 < LINE_SIZE; p++) {
        if (*p == '\\' && *++p == 'n') out[n++] = '\n';
        else out[n++] = *p;
    }
    out[n] = 0;
    return *p ? p + 1 : NULL;
}

// Is this text the template with a number in {a}, {b}, {c} and any word in the other slots?
static int fits(const char* template, const char* text, int* number) {
    for (const char* t = template; *t; t++) {
        if (*t != '{') {
            if (*text++ != *t) return 0;
            continue;
        }
        size_t digits = strspn(text, "0123456789"), length = digits;
        while (isalpha((unsigned char)text[length])) length++;
        if (t[2] == '}' ? !digits || length > digits : digits || !length) return 0;
        if (t[2] == '}') number[t[1] - 'a'] = atoi(text);
        text += length;
        t = strchr(t, '}');
    }
    return !*text;
}

static void read_lines(void) {
    for (int file = 0; file < 3; file++) {
        char path[64], text[2 * LINE_SIZE];
        snprintf(path, sizeof path, "data/%s", names[file]);
        FILE* f = fopen(path, "rb");
        CHECK(f != NULL);   // the tests run in the project's directory
        while (f && count < MAX_LINES && fgets(text, sizeof text, f)) {
            Line* l = &lines[count++];
            int kinds = 0, number[MAX_NUMBERS] = {0};
            const char* rest = read_field(l->question, text, "{\"question\": \"");
            rest = rest ? read_field(l->answer, rest, ", \"answer\": \"") : NULL;
            CHECK(rest && !strcmp(rest, "}\n"));
            for (int i = 0; i < COUNT(KINDS) * PHRASINGS; i++) {
                const Kind* kind = &KINDS[i / PHRASINGS];
                if (!fits(kind->question[i % PHRASINGS], l->question, number)) continue;
                memcpy(l->number, number, sizeof number);
                l->kind = kind;
                kinds++;
            }
            if (kinds != 1) BROKEN("%d kinds: %s\n", kinds, l->question);
            l->file = file;
            per_file[file]++;
        }
        if (f) fclose(f);
    }
}

// ---- sizes

static void sizes(void) {
    read_lines();
    CHECK(per_file[0] == 800 && per_file[1] == 256 && per_file[2] == 2400);
    size_t longest = 0;
    for (int i = 0; i < count; i++) {
        // every byte is a token; seven special tokens stand around a conversation, four in each of two calls
        size_t length = strlen(lines[i].question) + strlen(lines[i].answer) + 7 + 8;
        if (length > longest) longest = length;
        for (const char* p = lines[i].question; *p; p++) CHECK(*p >= ' ' && *p <= '~');
    }
    CHECK(longest <= 256);   // the context of the default model
}

// ---- no problem twice

static int compare_keys(const void* a, const void* b) { return strcmp(a, b); }

// Not with other names and things, not with numbers in the other order, not in other words of its kind.
static void no_problem_twice(void) {
    static char key[MAX_LINES][64];
    for (int i = 0; i < count; i++) {
        const int *x = lines[i].number, swap = strchr("+*", lines[i].kind->ops[0]) && x[0] > x[1];
        snprintf(key[i], sizeof *key, "%s: %d %d %d", lines[i].kind->label, x[swap], x[!swap], x[2]);
    }
    qsort(key, (size_t)count, sizeof *key, compare_keys);
    for (int i = 1; i < count; i++) if (!strcmp(key[i - 1], key[i])) BROKEN("twice: %s\n", key[i]);
}

// ---- the answers

typedef struct { int calls, wrong, broken, last; } Work;

// Follows the calculations of an answer, in << >> or bare: counts the wrong ones, keeps the last result.
// Numbers must be the question's, in order; the second goes on from the first's result.
static Work work(const Line* l) {
    Work w = {.last = l->number[0]};
    const char* p = l->answer;
    for (int s = 0; l->kind->ops[s]; s++) {
        char sum[40], again[40], *end, op = l->kind->ops[s];
        int left = w.last, right = l->number[s + 1];
        int length = snprintf(sum, sizeof sum, "%d%c%d=", left, op, right);
        const char* at = strstr(p + 1, sum);
        if (!at) {
            w.broken++;
            break;
        }
        w.last = (int)strtol(at + length, &end, 10);
        w.wrong += w.last != (op == '+' ? left + right : op == '-' ? left - right : op == '*' ? left * right
                              : left % right ? -1 : left / right);
        int called = at[-1] == '<';
        length = snprintf(again, sizeof again, ">>%d", w.last);   // behind a call it is said once more
        if (called) w.broken += at[-2] != '<' || strncmp(end, again, (size_t)length) || isdigit(end[length]);
        else w.broken += at[-1] != ' ';
        w.calls += called;
        p = called ? end + 2 : end;
    }
    w.broken += strchr(p, '=') != NULL;
    return w;
}

// How an answer ends, with its last result: 0 as ####, 1 in a box, 2 in a sentence, -1 in none of these ways.
static int ending(const Line* l, int last) {
    static const char* const endings[] = {"\n#### %d", "\n\\boxed{%d}", "\nThe answer is %d."};
    const char* newline = strrchr(l->answer, '\n');
    char text[64];
    for (int e = 0; e < 3 && newline; e++) {
        snprintf(text, sizeof text, endings[e], last);
        if (!strcmp(newline, text)) return e;
    }
    return -1;
}

static void reference_solutions(void) {
    for (int i = 0; i < count; i++) {
        const Line* l = &lines[i];
        Work w = work(l);
        if (l->file < 2 && (ending(l, w.last) || w.calls != count_steps(l->kind) || w.wrong || w.broken ||
                            w.last < 2))
            BROKEN("%s -> %s\n", l->question, l->answer);
    }
}

// The crowd is as generate.c's head says: a share of 2400 deviates by at most 1.02%, three times 3.1%.
static void the_crowd(void) {
    double tool = 0.0, right = 0.0, ends[3] = {0.0}, rewarded = 0.0, each = 1.0 / DEMO_PROBLEMS;
    for (int i = 0; i < count; i++) {
        const Line* l = &lines[i];
        Work w = work(l);
        int e = ending(l, w.last);
        if (l->file != 2) continue;
        if (e < 0 || w.broken || (w.calls && (w.wrong || w.calls != count_steps(l->kind)))) {
            BROKEN("%s -> %s\n", l->question, l->answer);
            continue;
        }
        tool += each * (w.calls > 0);
        right += each * !w.wrong;
        rewarded += each * (!w.wrong && e == 0);
        ends[e] += each;
    }
    double c = CALCULATOR_PERCENT / 100.0, m = MISTAKE_PERCENT / 100.0, h = HASH_PERCENT / 100.0;
    CHECK_NEAR(tool, c, 0.031);
    CHECK_NEAR(ends[0], h, 0.031);
    CHECK_NEAR(ends[1], BOXED_PERCENT / 100.0, 0.031);
    CHECK_NEAR(ends[2], 1.0 - h - BOXED_PERCENT / 100.0, 0.031);
    CHECK_NEAR(right, c + (1 - c) * (1 - m), 0.031);
    CHECK_NEAR(rewarded, h * (c + (1 - c) * (1 - m)), 0.031);
}

// ---- the generator

static char folder[512];

static const char* in_folder(const char* name, const char* ending) {
    static char path[600];
    snprintf(path, sizeof path, "%s/%s%s", folder, name, ending);
    return path;
}

// Runs the generator in a process of its own and returns its exit status; what it says goes nowhere.
static int generate(const char* where) {
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        char name[] = "generate", copy[600];
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(99);
        snprintf(copy, sizeof copy, "%s", where ? where : "");
        int result = generate_main(where ? 2 : 1, (char*[]){name, copy, NULL});
        fflush(NULL);
        _exit(result);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void the_generator_writes_these_files(void) {
    CHECK(generate(folder) == 0);
    for (int i = 0; i < 3; i++) {
        char command[700];
        snprintf(command, sizeof command, "cmp data/%s '%s'", names[i], in_folder(names[i], ""));
        CHECK(system(command) == 0);   // if not: `make data`
        CHECK(access(in_folder(names[i], ".tmp"), F_OK) != 0);
        remove(in_folder(names[i], ""));
    }
}

static void the_generator_fails_cleanly(void) {
    CHECK(generate(NULL) == 2 && generate("") == 2 && generate("--count=5") == 2);
    CHECK(generate(in_folder("nowhere", "")) == 1);
    CHECK(access(in_folder("nowhere", ""), F_OK) != 0);
    // The second of three files finds a full disk: nothing is left, and the first has not been replaced.
    if (access("/dev/full", F_OK) || symlink("/dev/full", in_folder(names[1], ".tmp"))) return;
    CHECK(generate(folder) == 1);
    for (int i = 0; i < 6; i++) CHECK(access(in_folder(names[i / 2], i % 2 ? ".tmp" : ""), F_OK) != 0);
}

int main(void) {
    const char* tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/test_data.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(folder)) return printf("FAIL data: cannot make the directory %s\n", folder), 1;
    RUN_ALL(TEST(sizes), TEST(no_problem_twice), TEST(reference_solutions), TEST(the_crowd),
            TEST(the_generator_writes_these_files), TEST(the_generator_fails_cleanly));
    rmdir(folder);
    return check_failed != 0;
}

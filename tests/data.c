/* data.c - the files in data/, and the program that writes them: train, test and demonstrations share no
 * problem, not even with other names and things. generate.c keeps this promise with its own idea of "the same
 * problem"; here the finished lines are compared. */
#define _XOPEN_SOURCE 700
#define _DARWIN_C_SOURCE
#define main generate_main
#include "../data/generate.c"
#undef main

#include <ctype.h>
#include "check.h"

enum { MAX_LINES = 5000, LINE_SIZE = 1024 };

typedef struct {
    char question[LINE_SIZE], answer[LINE_SIZE];   // as they stand in the file: a newline is \n
    const Kind* kind;        // NULL: no template of generate.c, or two, could have made the question
    int number[MAX_NUMBERS]; // its numbers, in order
    int file;                // 0 train, 1 test, 2 demos
} Line;

static Line lines[MAX_LINES];
static int count, per_file[3];

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

static void read_lines(const char* path, int file) {
    char text[2 * LINE_SIZE];
    FILE* f = fopen(path, "rb");
    CHECK(f != NULL);   // the tests run in the project's directory
    for (; f && count < MAX_LINES && fgets(text, sizeof text, f); count++, per_file[file]++) {
        Line* l = &lines[count];
        int kinds = 0, number[MAX_NUMBERS] = {0}, read = 0;
        sscanf(text, "{\"question\": \"%1000[^\"]\", \"answer\": \"%1000[^\"]\"}\n%n", l->question, l->answer,
               &read);
        CHECK(read && !text[read]);
        for (int i = 0; i < COUNT(KINDS) * PHRASINGS; i++) {
            const Kind* kind = &KINDS[i / PHRASINGS];
            if (!fits(kind->question[i % PHRASINGS], l->question, number)) continue;
            memcpy(l->number, number, sizeof number);
            l->kind = kind;
            kinds++;
        }
        if (kinds != 1) BROKEN("%d kinds: %s\n", kinds, l->question);
        l->file = file;
    }
    if (f) fclose(f);
}

static void sizes(void) {
    read_lines("data/train.jsonl", 0);
    read_lines("data/test.jsonl", 1);
    read_lines("data/demos.jsonl", 2);
    CHECK(per_file[0] == 800 && per_file[1] == 256 && per_file[2] == 2400);
    for (int i = 0; i < count; i++) {
        // Every byte is a token; seven special tokens stand around a conversation, four in each of two calls.
        // All must fit into the context of the default model.
        CHECK(strlen(lines[i].question) + strlen(lines[i].answer) + 7 + 8 <= 256);
        for (const char* p = lines[i].question; *p; p++) CHECK(*p >= ' ' && *p <= '~');
    }
}

static int compare_keys(const void* a, const void* b) { return strcmp(a, b); }

// Not with other names and things, not with numbers in the other order, not in other words of its kind.
static void no_problem_twice(void) {
    static char key[MAX_LINES][64];
    for (int i = 0; i < count; i++) {
        if (!lines[i].kind) continue;
        const int *x = lines[i].number, swap = strchr("+*", lines[i].kind->ops[0]) && x[0] > x[1];
        snprintf(key[i], sizeof *key, "%s: %d %d %d", lines[i].kind->label, x[swap], x[!swap], x[2]);
    }
    qsort(key, (size_t)count, sizeof *key, compare_keys);
    for (int i = 1; i < count; i++) if (!strcmp(key[i - 1], key[i])) BROKEN("twice: %s\n", key[i]);
}

typedef struct { int calls, wrong, broken, last, ending; } Work;

// Follows the calculations of an answer, in << >> and said once more, or bare: counts the wrong ones, keeps
// the last result. Numbers must be the question's, in order; the second goes on from the first's result. The
// ending, with the last result: 0 as ####, 1 in a box, 2 in a sentence, -1 in none of these ways.
static Work work(const Line* l) {
    static const char* const endings[] = {"\\n#### %d", "\\n\\\\boxed{%d}", "\\nThe answer is %d."};
    Work w = {.last = l->number[0], .ending = -1};
    const char* p = l->answer;
    char text[64];
    for (int s = 0; l->kind->ops[s] && !w.broken; s++) {
        char op = l->kind->ops[s];
        int left = w.last, right = l->number[s + 1];
        p += strcspn(p, "<0123456789");
        int called = *p == '<';
        w.last = atoi(p + strcspn(p, "=") + (strchr(p, '=') != NULL));
        int n = called ? snprintf(text, sizeof text, "<<%d%c%d=%d>>%d", left, op, right, w.last, w.last)
                       : snprintf(text, sizeof text, "%d%c%d=%d", left, op, right, w.last);
        w.wrong += w.last != (op == '+' ? left + right : op == '-' ? left - right : op == '*' ? left * right
                              : left % right ? -1 : left / right);
        w.broken = strncmp(p, text, (size_t)n) || isdigit((unsigned char)p[n]);
        w.calls += called;
        p += w.broken ? 0 : n;
    }
    w.broken |= strchr(p, '=') != NULL;
    for (int e = 0; e < 3; e++) {
        snprintf(text, sizeof text, endings[e], w.last);
        const char* at = strstr(p, text);
        if (at && !at[strlen(text)]) w.ending = e;
    }
    return w;
}

// Train and test have reference solutions. The crowd of demos is as generate.c's head says: a share of 2400
// deviates by at most 1.02%, three times 3.1%.
static void answers(void) {
    double tool = 0.0, right = 0.0, ends[3] = {0.0}, rewarded = 0.0, each = 1.0 / DEMO_PROBLEMS;
    for (int i = 0; i < count; i++) {
        const Line* l = &lines[i];
        if (!l->kind) continue;
        Work w = work(l);
        if (w.ending < 0 || w.broken || (w.calls && (w.wrong || w.calls != count_steps(l->kind))) ||
            (l->file < 2 && (w.ending != 0 || !w.calls || w.last < 2)))
            BROKEN("%s -> %s\n", l->question, l->answer);
        else if (l->file == 2) {
            tool += each * (w.calls > 0);
            right += each * !w.wrong;
            rewarded += each * (!w.wrong && w.ending == 0);
            ends[w.ending] += each;
        }
    }
    double c = CALCULATOR_PERCENT / 100.0, m = MISTAKE_PERCENT / 100.0, h = HASH_PERCENT / 100.0;
    CHECK_NEAR(tool, c, 0.031);
    CHECK_NEAR(ends[0], h, 0.031);
    CHECK_NEAR(ends[1], BOXED_PERCENT / 100.0, 0.031);
    CHECK_NEAR(ends[2], 1.0 - h - BOXED_PERCENT / 100.0, 0.031);
    CHECK_NEAR(right, c + (1 - c) * (1 - m), 0.031);
    CHECK_NEAR(rewarded, h * (c + (1 - c) * (1 - m)), 0.031);
}

// $G is the generator: this program, called with a word in front. When the disk is full for the second of
// three files nothing is left, and the first has not been replaced.
static void the_generator(void) {
    CHECK(!system("$G \"$D\" > /dev/null && diff -qrx generate.c data \"$D\" && rm \"$D\"/*"));   // make data
    CHECK(!system("for d in '' --count=5; do $G \"$d\" 2> /dev/null; [ $? = 2 ] || exit 1; done"));
    CHECK(!system("$G 2> /dev/null; [ $? = 2 ]"));
    CHECK(!system("$G \"$D/nowhere\" 2> /dev/null; [ $? = 1 ] && [ ! -e \"$D/nowhere\" ]"));
    CHECK(!system("[ ! -e /dev/full ] || { ln -s /dev/full \"$D/test.jsonl.tmp\"; "
                  "$G \"$D\" 2> /dev/null; [ $? = 1 ]; }"));
    CHECK(!system("rmdir \"$D\" || { rm -r \"$D\"; false; }"));
}

int main(int argc, char** argv) {
    const char* tmp = getenv("TMPDIR");
    char folder[512], command[512];
    if (argc > 1 && !strcmp(argv[1], "generate")) return generate_main(argc - 1, argv + 1);
    snprintf(command, sizeof command, "%s generate", argv[0]);
    snprintf(folder, sizeof folder, "%s/test_data.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(folder) || setenv("D", folder, 1) || setenv("G", command, 1))
        return printf("FAIL data: cannot make the directory %s\n", folder), 1;
    RUN_ALL(TEST(sizes), TEST(no_problem_twice), TEST(answers), TEST(the_generator));
    return check_failed != 0;
}

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
    char plain[LINE_SIZE];   // the question with N, T and # for names, things and numbers
    int number[4], numbers;  // the numbers of the question, in order
    int file;                // 0 train, 1 test, 2 demos
} Line;

static Line lines[MAX_LINES];
static int count, per_file[3];
static long bytes_in_all;
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

// What is left of a question when names, things and numbers are taken out.
static void take_out(Line* l) {
    char *out = l->plain, *end;
    for (char *p = l->question, word[LINE_SIZE]; *p; p = end) {
        size_t length = strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
        char kind = 0;
        end = p + (length ? length : 1);
        snprintf(word, sizeof word, "%.*s", (int)(end - p), p);
        for (int i = 0; i < COUNT(NAMES); i++) if (!strcmp(word, NAMES[i])) kind = 'N';
        for (int i = 0; i < COUNT(THINGS); i++)
            if (!strcmp(word, THINGS[i].one) || !strcmp(word, THINGS[i].many)) kind = 'T';
        if (isdigit((unsigned char)*p)) {
            int number = (int)strtol(p, &end, 10);
            if (l->numbers < 4) l->number[l->numbers++] = number;
            kind = '#';
        }
        if (kind) *out++ = kind;
        else out += sprintf(out, "%s", word);
    }
    *out = 0;
}

static void read_lines(void) {
    for (int file = 0; file < 3; file++) {
        char path[64], text[2 * LINE_SIZE];
        snprintf(path, sizeof path, "data/%s", names[file]);
        FILE* f = fopen(path, "rb");
        CHECK(f != NULL);   // the tests run in the project's directory
        while (f && count < MAX_LINES && fgets(text, sizeof text, f)) {
            Line* l = &lines[count++];
            const char* rest = read_field(l->question, text, "{\"question\": \"");
            rest = rest ? read_field(l->answer, rest, ", \"answer\": \"") : NULL;
            CHECK(rest && !strcmp(rest, "}\n"));
            l->file = file;
            take_out(l);
            per_file[file]++;
            bytes_in_all += (long)strlen(text);
        }
        if (f) fclose(f);
    }
}

// ---- sizes

static void sizes(void) {
    read_lines();
    CHECK(per_file[0] == 800 && per_file[1] == 256 && per_file[2] == 2400);
    CHECK(count == 800 + 256 + 2400);
    CHECK(bytes_in_all < 600000);   // small enough to read
    size_t longest = 0;
    for (int i = 0; i < count; i++) {
        // every byte is a token; seven special tokens stand around a conversation, four in each of two calls
        size_t length = strlen(lines[i].question) + strlen(lines[i].answer) + 7 + 8;
        if (length > longest) longest = length;
        CHECK(lines[i].numbers >= 2 && lines[i].numbers <= 3);
        for (const char* p = lines[i].question; *p; p++) CHECK(*p >= ' ' && *p <= '~');
    }
    CHECK(longest <= 256);   // the context of the default model
}

// ---- no problem twice

static int compare_keys(const void* a, const void* b) { return strcmp(a, b); }

// No problem twice, with other names and things (N has # T), numbers in the other order, or in other words of
// its kind, which are told apart by generate.c's templates with take_out()'s letters in the slots.
static void no_problem_twice(void) {
    static char key[MAX_LINES][LINE_SIZE];
    static const struct { const char *slot, *letter; } slots[] = {
        {"{name}", "N"}, {"{friend}", "N"}, {"{thing}", "T"}, {"{things}", "T"}, {"{a}", "#"}, {"{b}", "#"},
        {"{c}", "#"}};
    static char plain[COUNT(KINDS)][PHRASINGS][LINE_SIZE];
    int unknown = 0;
    for (int k = 0; k < COUNT(KINDS); k++)
        for (int q = 0; q < PHRASINGS; q++) {
            char* out = plain[k][q];
            for (const char* p = KINDS[k].question[q]; *p;) {
                int s = 0;
                while (s < COUNT(slots) && strncmp(p, slots[s].slot, strlen(slots[s].slot))) s++;
                if (s == COUNT(slots)) *out++ = *p++;
                else *out++ = *slots[s].letter, p += strlen(slots[s].slot);
            }
            *out = 0;
        }
    for (int i = 0; i < count; i++) {
        Line* l = &lines[i];
        int kind = -1, a = l->number[0], b = l->number[1];
        for (int k = 0; k < COUNT(KINDS); k++)
            for (int q = 0; q < PHRASINGS; q++) if (!strcmp(plain[k][q], l->plain)) kind = k;
        unknown += kind < 0;
        if (kind >= 0 && strchr("+*", KINDS[kind].ops[0]) && a > b) a = l->number[1], b = l->number[0];
        const char* label = kind < 0 ? "unknown" : KINDS[kind].label;
        snprintf(key[i], sizeof key[i], "%s: %d %d %d", label, a, b, l->number[2]);
    }
    CHECK(unknown == 0);
    qsort(key, (size_t)count, sizeof *key, compare_keys);
    for (int i = 1; i < count; i++) if (!strcmp(key[i - 1], key[i])) BROKEN("twice: %s\n", key[i]);
}

// ---- the answers

typedef struct { int steps, calls, wrong, broken, last; } Work;

// Follows the calculations of an answer, in << >> or bare: counts the wrong ones, keeps the last result.
// Numbers must be the question's, in order; the second goes on from the first's result.
static Work work(const Line* l) {
    Work w = {.last = l->number[0]};
    for (const char* p = l->answer; *p; p++) {
        int left, right, result, length = 0, called = !strncmp(p, "<<", 2);
        char op, again[16];
        if (!called && !(isdigit((unsigned char)*p) && p > l->answer && p[-1] == ' ')) continue;
        const char* sum = called ? p + 2 : p;
        if (sscanf(sum, "%d%c%d=%d%n", &left, &op, &right, &result, &length) != 4) {
            w.broken += called;
            continue;
        }
        int expected = op == '+' ? left + right : op == '-' ? left - right : op == '*' ? left * right
                     : op == '/' && right && left % right == 0 ? left / right : -1;
        w.wrong += expected != result;
        w.broken += left != w.last || w.steps + 1 >= l->numbers || right != l->number[w.steps + 1];
        p = sum + length;
        if (called) {   // behind the call the result is said once more
            int n = snprintf(again, sizeof again, ">>%d", result);
            w.broken += strncmp(p, again, (size_t)n) != 0 || isdigit((unsigned char)p[n]);
            p += 2;
        }
        w.last = result;
        w.steps++;
        w.calls += called;
        if (!*p) break;
    }
    w.broken += w.steps + 1 != l->numbers;
    return w;
}

static void reference_solutions(void) {
    for (int i = 0; i < count; i++) {
        if (lines[i].file == 2) continue;
        Work w = work(&lines[i]);
        int answer = -1, length = 0;
        const char* end = strstr(lines[i].answer, "\n#### ");
        int ends = end && sscanf(end, "\n#### %d%n", &answer, &length) == 1 && !end[length];
        if (!ends || answer != w.last || w.calls != w.steps || w.wrong || w.broken || answer < 2)
            BROKEN("%s -> %s\n", lines[i].question, lines[i].answer);
    }
}

// The crowd is as generate.c's head says: a share of 2400 deviates by at most 1.02%, three times 3.1%.
static void the_crowd(void) {
    int n = 0, tool = 0, right = 0, hash = 0, boxed = 0, said = 0, rewarded = 0, odd = 0, slips_with_tool = 0;
    for (int i = 0; i < count; i++) {
        int answer = -1;
        if (lines[i].file != 2) continue;
        Work w = work(&lines[i]);
        const char *newline = strrchr(lines[i].answer, '\n'), *end = newline ? newline + 1 : "";
        // %n is reached, and set, only when all before it fits
        int h = 0, b = 0, s = 0;
        int is_hash = sscanf(end, "#### %d%n", &answer, &h) == 1 && h && !end[h];
        int is_boxed = sscanf(end, "\\boxed{%d}%n", &answer, &b) == 1 && b && !end[b];
        int is_said = sscanf(end, "The answer is %d.%n", &answer, &s) == 1 && s && !end[s];
        odd += is_hash + is_boxed + is_said != 1 || answer != w.last;
        odd += w.broken || (w.calls && w.calls != w.steps);
        n++, tool += w.calls > 0, right += !w.wrong, hash += is_hash, boxed += is_boxed, said += is_said;
        rewarded += !w.wrong && is_hash, slips_with_tool += w.calls && w.wrong;
    }
    CHECK(odd == 0);
    CHECK(slips_with_tool == 0);
    double c = CALCULATOR_PERCENT / 100.0, m = MISTAKE_PERCENT / 100.0, h = HASH_PERCENT / 100.0;
    CHECK_NEAR((double)tool / n, c, 0.031);
    CHECK_NEAR((double)hash / n, h, 0.031);
    CHECK_NEAR((double)boxed / n, BOXED_PERCENT / 100.0, 0.031);
    CHECK_NEAR((double)said / n, 1.0 - h - BOXED_PERCENT / 100.0, 0.031);
    CHECK_NEAR((double)right / n, c + (1 - c) * (1 - m), 0.031);
    CHECK_NEAR((double)rewarded / n, h * (c + (1 - c) * (1 - m)), 0.031);
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
    CHECK(generate(NULL) == 2);
    CHECK(generate("") == 2);
    CHECK(generate("--count=5") == 2);
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

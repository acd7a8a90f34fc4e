/* fuzz.c - random bytes for everything that reads text of strangers: `make fuzz`. FUZZ in the environment is
 * the target. libFuzzer makes inputs and goes on from those that reached new lines; the sanitizers see what
 * is read or written out of place, -timeout what hangs. Beyond that each target demands what the function's
 * comment promises, and that no memory is left. */
#define _XOPEN_SOURCE 700
#define _DARWIN_C_SOURCE
#include <setjmp.h>
#include <stdlib.h>

// What is no JSON ends the program: here it comes back to the target instead, and the memory that was in use
// is freed, since nobody knows it any more.
static void* blocks[1 << 16];
static size_t in_use;
static jmp_buf ended;
static int may_end;

static void* changed(void* old, void* new) {   // NULL: there was none before, or is none now
    size_t i = old ? in_use : in_use++;
    while (old && blocks[--i] != old) continue;
    blocks[i] = new ? new : blocks[--in_use];
    return new;
}

static void* block_new(void* old, size_t bytes) {
    void* new = old ? realloc(old, bytes) : calloc(1, bytes);
    if (!new) abort();
    return changed(old, new);
}

static void block_free(void* data) {
    if (data) changed(data, NULL);
    free(data);
}

_Noreturn static void end_here(int status) {
    if (!may_end) _Exit(status);
    while (in_use) free(blocks[--in_use]);
    longjmp(ended, status);
}
#define calloc(count, size) block_new(NULL, (count) * (size))
#define realloc(data, bytes) block_new(data, bytes)
#define free(data) block_free(data)
#define exit(status) end_here(status)
#include "../chapters.h"
#undef calloc
#undef realloc
#undef exit

static void demand(int promise) {
    if (!promise) abort();
}

// A text in a block of exactly its size, so that reading one byte too far shows; `choice` is one byte more.
typedef struct { char* text; size_t size; int choice; } Input;

static void fuzz_extract(Input in) {
    static int (*const extract[])(const char*, char*, int) = {extract_boxed, extract_hash_answer,
                                                              extract_lenient};
    int cap = 1 + in.choice / 3;
    char* out = allocate((size_t)cap, 1);
    int found = extract[in.choice % 3](in.text, out, cap);
    demand(memchr(out, 0, (size_t)cap) != NULL && (found || !out[0]));
    demand(reward_boxed(in.text, "7") == 0 || strstr(in.text, "\\boxed"));
    demand(reward_gsm8k(in.text, "7") == 0 || strstr(in.text, "####"));
    free(out);
}

// Two answers: the second begins at the end of the first line.
static void fuzz_equal(Input in) {
    size_t first = strcspn(in.text, "\n");
    char* a = allocate(first + 1, 1);
    const char* b = in.text + first + (in.text[first] != 0);
    memcpy(a, in.text, first);
    demand(answers_equal(a, b) == answers_equal(b, a));
    demand(answers_equal(a, a) == (a[0] != 0));
    demand(!answers_equal("", a));
    free(a);
}

static void fuzz_calculate(Input in) {
    int cap = 1 + in.choice / 4;
    char *out = allocate((size_t)cap, 1), again[256];
    int found = calculate(in.text, out, cap);
    demand(memchr(out, 0, (size_t)cap) != NULL && (found || !out[0]));
    if (found) demand(out[0] && calculate(out, again, sizeof again) && !strcmp(out, again));
    free(out);
}

// Every string of a value, written and read again.
static void strings_come_back(const Json* j) {
    for (; j; j = j->next) {
        strings_come_back(j->child);
        demand(j->line >= 1);
        if (j->type != JSON_STRING) continue;
        Text text = {0};
        json_append_string(&text, j->string);
        Json* again = json_parse(text.data, text.length, "again");
        demand(again->type == JSON_STRING && !strcmp(again->string, j->string));
        json_free(again), text_free(&text);
    }
}

static void fuzz_json(Input in) {
    Json* j = json_parse(in.text, in.size, "text");
    may_end = 0;
    strings_come_back(j);
    json_free(j);
}

// What may go to a terminal: UTF-8 without control characters. Printing it again changes nothing.
static void fuzz_printable(Input in) {
    Text once = {0}, twice = {0}, words = {0};
    append_printable(&once, in.text, in.size);
    append_printable(&twice, once.data, once.length);
    demand(once.length == twice.length && !memcmp(once.data, twice.data, once.length));
    for (size_t i = 0; i < once.length; i++) {
        unsigned char c = (unsigned char)once.data[i];
        demand(c == '\n' || (c >= 0x20 && c != 0x7F));
    }
    append_readable(&words, in.text);
    text_free(&once), text_free(&twice), text_free(&words);
}

// A question reduced in each way, and compared with itself: without a word it is like none.
static void fuzz_reduce(Input in) {
    Problem list[] = {{in.text, in.text}};
    Problems one = {list, 1};
    Match* match = match_questions(&one, &one);
    for (int likeness = SAME_WORDS; likeness < NEARLY_SAME; likeness++) {
        Text words = {0};
        reduce_question(&words, in.text, likeness);
        demand(words.length <= 2 * strlen(in.text) && strlen(words.data) == words.length);
        if (likeness == SAME_WORDS) demand(match[0].likeness == (words.length ? SAME_WORDS : LIKENESSES));
        text_free(&words);
    }
    free(match);
}

static const struct { const char* name; void (*run)(Input in); } targets[] = {
    {"extract", fuzz_extract}, {"equal", fuzz_equal}, {"calculate", fuzz_calculate}, {"json", fuzz_json},
    {"printable", fuzz_printable}, {"reduce", fuzz_reduce}};

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const char* name = getenv("FUZZ");
    Input in = {.size = size ? size - 1 : 0, .choice = size ? data[size - 1] : 0};
    for (size_t i = 0; name && i < sizeof targets / sizeof *targets; i++) {
        if (strcmp(name, targets[i].name)) continue;
        if (setjmp(ended)) return 0;
        in.text = allocate(in.size + 1, 1);
        if (in.size) memcpy(in.text, data, in.size);
        may_end = targets[i].run == fuzz_json;
        targets[i].run(in);
        free(in.text);
        demand(in_use == 0);
        return 0;
    }
    fail(2, "FUZZ must name a target: extract, equal, calculate, json, printable or reduce");
}

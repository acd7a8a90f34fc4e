/* fuzz.c - random bytes for everything that reads text of strangers: `make fuzz`
 *
 * The environment variable FUZZ names the target. libFuzzer makes inputs and goes on from those that reached
 * new lines; the sanitizers see what is read or written out of place, -timeout what hangs. Beyond that each
 * target demands what the function's comment promises, and that no memory is left.
 */
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

// The first `size` bytes up to a 0, in a block of exactly their size: reading one byte too far shows.
static char* text_of(const uint8_t* data, size_t size) {
    const uint8_t* zero = memchr(data, 0, size);
    if (zero) size = (size_t)(zero - data);
    char* text = allocate(size + 1, 1);
    if (size) memcpy(text, data, size);
    return text;
}

static void demand(int promise) {
    if (!promise) abort();
}

static void fuzz_extract(const uint8_t* data, size_t size) {
    static int (*const extract[])(const char*, char*, int) = {extract_boxed, extract_hash_answer,
                                                              extract_lenient};
    if (size == 0) return;
    int cap = 1 + data[0] / 3;
    char *text = text_of(data + 1, size - 1), *out = allocate((size_t)cap, 1);
    int found = extract[data[0] % 3](text, out, cap);
    demand(memchr(out, 0, (size_t)cap) != NULL && (found || !out[0]));
    demand(reward_boxed(text, "7") == 0 || strstr(text, "\\boxed"));
    demand(reward_gsm8k(text, "7") == 0 || strstr(text, "####"));
    free(text), free(out);
}

// Two answers, one per line.
static void fuzz_equal(const uint8_t* data, size_t size) {
    const uint8_t* newline = size ? memchr(data, '\n', size) : NULL;
    size_t first = newline ? (size_t)(newline - data) : size;
    char *a = text_of(data, first),
         *b = text_of(newline ? newline + 1 : data, newline ? size - first - 1 : 0);
    demand(answers_equal(a, b) == answers_equal(b, a));
    demand(answers_equal(a, a) == (a[0] != 0));
    demand(!answers_equal("", a));
    free(a), free(b);
}

static void fuzz_calculate(const uint8_t* data, size_t size) {
    if (size == 0) return;
    int cap = 1 + data[0] / 4;
    char *text = text_of(data + 1, size - 1), *out = allocate((size_t)cap, 1), again[256];
    int found = calculate(text, out, cap);
    demand(memchr(out, 0, (size_t)cap) != NULL && (found || !out[0]));
    if (found) demand(out[0] && calculate(out, again, sizeof again) && !strcmp(out, again));
    free(text), free(out);
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

static void fuzz_json(const uint8_t* data, size_t size) {
    may_end = setjmp(ended) == 0;
    if (!may_end) return;
    char* text = text_of(data, size);
    Json* j = json_parse(text, size, "text");
    may_end = 0;
    strings_come_back(j);
    json_free(j), free(text);
}

// What may go to a terminal: UTF-8 without control characters. Printing it again changes nothing.
static void fuzz_printable(const uint8_t* data, size_t size) {
    Text once = {0}, twice = {0}, words = {0};
    char *bytes = allocate(size, 1), *text = text_of(data, size);
    if (size) memcpy(bytes, data, size);
    append_printable(&once, bytes, size);
    append_printable(&twice, once.data, once.length);
    demand(once.length == twice.length && !memcmp(once.data, twice.data, once.length));
    for (size_t i = 0; i < once.length; i++) {
        unsigned char c = (unsigned char)once.data[i];
        demand(c == '\n' || (c >= 0x20 && c != 0x7F));
    }
    append_readable(&words, text);
    text_free(&once), text_free(&twice), text_free(&words);
    free(bytes), free(text);
}

// A question reduced in each way; reduced a second time it stays what it is.
static void fuzz_reduce(const uint8_t* data, size_t size) {
    char* text = text_of(data, size);
    for (int likeness = SAME_WORDS; likeness < NEARLY_SAME; likeness++) {
        Text once = {0};
        reduce_question(&once, text, likeness);
        demand(once.length <= 2 * strlen(text) && strlen(once.data) == once.length);
        text_free(&once);
    }
    Problem list[] = {{text, text}};
    Problems one = {list, 1};
    Match* match = match_questions(&one, &one);
    Text words = {0};
    reduce_question(&words, text, SAME_WORDS);
    demand(match[0].likeness == (words.length ? SAME_WORDS : LIKENESSES));   // without a word it is like none
    text_free(&words), free(match), free(text);
}

static const struct { const char* name; void (*run)(const uint8_t* data, size_t size); } targets[] = {
    {"extract", fuzz_extract}, {"equal", fuzz_equal}, {"calculate", fuzz_calculate}, {"json", fuzz_json},
    {"printable", fuzz_printable}, {"reduce", fuzz_reduce}};

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const char* name = getenv("FUZZ");
    for (size_t i = 0; name && i < sizeof targets / sizeof *targets; i++) {
        if (strcmp(name, targets[i].name)) continue;
        targets[i].run(data, size);
        demand(in_use == 0);
        return 0;
    }
    fail(2, "FUZZ must name a target: extract, equal, calculate, json, printable or reduce");
}

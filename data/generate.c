/*
generate.c: the word problems on which the little model learns.

    cc -std=c11 -O2 -o generate generate.c
    ./generate OUTDIR

writes three files, byte for byte the same on every machine:

    train.jsonl   problems for reinforcement learning; only their final answers are used
    test.jsonl    problems that are kept aside, to measure what was learned
    demos.jsonl   problems with the answers of a mixed crowd, for supervised training

A line is one problem in GSM8K's own format. A call of the calculator stands between << and >>, its result
follows:

    {"question": "Tom has 17 pens and ...", "answer": "Tom has <<17+26=43>>43 pens.\n#### 43"}

train.jsonl and test.jsonl carry the reference solution. demos.jsonl does not: real demonstrations come from
many people with different habits, and not all of them are right. Each demonstration makes these choices
independently:

    how the sum is done   with the calculator (then it is right), or in the head (then it may be wrong)
    how the answer ends   "#### 43", "\boxed{43}" or "The answer is 43."

Supervised training copies this mixture, mistakes included. That leaves reinforcement learning something to
find. With the percentages below a demonstration is right with probability 0.50 + 0.50 * 0.65 = 0.825, and
it is right *and* ends in #### with probability 0.825 * 0.60 = 0.495.

Why the files can be trusted to be apart. Names and things are only decoration: the same numbers in the same
kind of problem are the same problem, whoever owns the apples and however it is phrased. So a (kind,
numbers) pair is used at most once in the three files together. Where the order of two numbers does not
matter (a+b, a*b), swapping them does not make a new problem either. A test problem is therefore never a
training problem with the names changed.

What makes the problems fit for a very small model. They are short (about 75 bytes). The numbers stand in
the order in which they are used. All numbers are whole and positive. But the operation must be read from
the words: "has 17 pens and Ana has 9" can go on with "together" or with "how many more".
*/
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- what one may want to change ------------------------------------------------------------------------

enum {
    TRAIN_PROBLEMS = 800,
    TEST_PROBLEMS = 256,
    DEMO_PROBLEMS = 2400,
    ALL_PROBLEMS = TRAIN_PROBLEMS + TEST_PROBLEMS + DEMO_PROBLEMS,

    TWO_STEP_PERCENT = 15,   // problems that take two calculations

    // the crowd that answers demos.jsonl
    CALCULATOR_PERCENT = 60, // calls the calculator; the others do the sum in their head
    MISTAKE_PERCENT = 35,    // of those others, per problem: one calculation is wrong
    HASH_PERCENT = 60,       // ends in "#### 43"
    BOXED_PERCENT = 20,      // ends in "\boxed{43}"; the remaining 20 say "The answer is 43."

    // Every number is at least 2, so "1 pens" and divisions by 1 never come up, not even in a mistake.
    SMALLEST = 2,
    LARGEST_RESULT = 999,
    LARGEST_QUOTIENT = 99,   // a division is a small product asked backwards
};

// Of the problem seeds 1 to 8 this one gives files whose shares are closest to the percentages above.
static const uint64_t PROBLEM_SEED = 4;
static const uint64_t CROWD_SEED = 1004; // its own stream: a changed crowd answers the same questions

// ---- names and things -----------------------------------------------------------------------------------

static const char* const NAMES[] = {
    "Ana", "Tom", "Mia", "Ben",  "Leo",  "Zoe",  "Sam",  "Ivy",  "Max",   "Lily", "Omar", "Nina",
    "Kai", "Eva", "Wei", "Hugo", "Ruth", "Yuki", "Amir", "Rosa", "Priya", "Finn", "Tara", "Noah",
};

typedef struct {
    const char* one;
    const char* many;
} Thing;

// Things that can be owned, lost, sold, packed and counted, so that every thing fits every sentence.
static const Thing THINGS[] = {
    {"pen", "pens"},       {"apple", "apples"},   {"book", "books"},     {"card", "cards"},
    {"egg", "eggs"},       {"shell", "shells"},   {"stamp", "stamps"},   {"bead", "beads"},
    {"button", "buttons"}, {"cookie", "cookies"}, {"lemon", "lemons"},   {"pear", "pears"},
    {"muffin", "muffins"}, {"toy", "toys"},       {"cup", "cups"},       {"candle", "candles"},
    {"pencil", "pencils"}, {"marble", "marbles"}, {"rose", "roses"},     {"peach", "peaches"},
    {"kite", "kites"},     {"brush", "brushes"},  {"sticker", "stickers"}, {"cherry", "cherries"},
};

// ---- the kinds of problem -------------------------------------------------------------------------------
//
// ops is the calculation, from left to right: "+" is a+b, "*-" is (a*b)-c. max holds the largest a, b and
// c. Numbers are drawn uniformly from SMALLEST..max and drawn again until the calculation obeys the rules
// in work_out(). {name} and {friend} are two people, {thing}/{things} is what they have, {work} is the
// calculation with its result.

enum { PHRASINGS = 3, MAX_STEPS = 2, MAX_NUMBERS = MAX_STEPS + 1 };

typedef struct {
    const char* label; // names the kind in messages
    const char* ops;
    int max[MAX_NUMBERS];
    const char* question[PHRASINGS];
    const char* answer[MAX_STEPS]; // one sentence a step
} Kind;

static const Kind KINDS[] = {
    {"get more", "+", {99, 99, 0},
     {"{name} has {a} {things}. {friend} gives {name} {b} more. How many {things} does {name} have now?",
      "{name} had {a} {things} and then found {b} more. How many {things} does {name} have now?",
      "{name} owns {a} {things} and buys another {b}. How many {things} does {name} own after that?"},
     {"{name} has {work} {things}.", NULL}},

    {"put together", "+", {99, 99, 0},
     {"{name} has {a} {things} and {friend} has {b}. How many {things} do they have together?",
      "{name} collects {a} {things}. {friend} collects {b}. How many {things} do they collect in all?",
      "There are {a} {things} on one table and {b} on another. What is the total number of {things}?"},
     {"There are {work} {things}.", NULL}},

    {"more than", "+", {99, 99, 0},
     {"{name} has {a} {things}. {friend} has {b} more than {name}. How many {things} does {friend} have?",
      "If {name} has {a} {things} and {friend} has {b} more than that, how many does {friend} have?",
      "{name} owns {a} {things}. {friend} owns as many and {b} more. How many does {friend} own?"},
     {"{friend} has {work} {things}.", NULL}},

    {"give away", "-", {99, 99, 0},
     {"{name} has {a} {things} and gives {b} to {friend}. How many {things} does {name} have left?",
      "{name} had {a} {things} but lost {b} of them. How many {things} are left?",
      "Out of {a} {things}, {name} sells {b}. How many {things} does {name} still have?"},
     {"{name} has {work} left.", NULL}},

    {"compare", "-", {99, 99, 0},
     {"{name} has {a} {things} and {friend} has {b}. How many more {things} does {name} have?",
      "{name} counts {a} {things} but {friend} counts only {b}. What is the difference?",
      "{name} has {a} {things}. {friend} has {b}. How many fewer {things} does {friend} have?"},
     {"The difference is {work}.", NULL}},

    {"reach a goal", "-", {99, 99, 0},
     {"{name} wants {a} {things} and has {b}. How many more {things} does {name} need?",
      "A full set has {a} {things}. {name} has {b}. How many {things} does {name} still need?",
      "{name} must find {a} {things}. So far {name} has {b}. How many {things} are missing?"},
     {"{name} needs {work} more.", NULL}},

    {"equal groups", "*", {12, 99, 0},
     {"{name} has {a} boxes with {b} {things} in each. How many {things} does {name} have?",
      "{name} buys {a} packs of {b} {things}. How many {things} is that?",
      "Each of {name}'s {a} bags holds {b} {things}. How many {things} are in the bags?"},
     {"There are {work} {things}.", NULL}},

    {"price", "*", {99, 12, 0},
     {"One {thing} costs {a} cents. How many cents do {b} {things} cost?",
      "A shop asks {a} cents for each {thing}. {name} takes {b}. How many cents is that?",
      "At {a} cents for one {thing}, how many cents does {name} pay for {b}?"},
     {"That is {work} cents.", NULL}},

    {"times as many", "*", {99, 12, 0},
     {"{name} has {a} {things}. {friend} has {b} times as many. How many {things} does {friend} have?",
      "If {name} has {a} {things} and {friend} has {b} times that number, how many does {friend} have?",
      "{name} sells {a} {things} a day. {friend} sells {b} times as many. How many does {friend} sell?"},
     {"{friend} has {work} {things}.", NULL}},

    {"share", "/", {399, 12, 0},
     {"{name} shares {a} {things} equally among {b} friends. How many {things} does each friend get?",
      "If {a} {things} are divided equally among {b} children, how many does each child get?",
      "{name} hands out {a} {things} evenly to {b} people. How many {things} does each person get?"},
     {"Each gets {work} {things}.", NULL}},

    {"pack", "/", {399, 12, 0},
     {"{name} packs {a} {things} into boxes of {b}. How many boxes does {name} fill?",
      "{name} puts {a} {things} in boxes, {b} to a box. How many boxes are needed?",
      "{name} has {a} {things}. Every box holds {b}. How many boxes can {name} fill?"},
     {"{name} fills {work} boxes.", NULL}},

    {"price of one", "/", {399, 12, 0},
     {"{name} pays {a} cents for {b} {things}. How many cents does one {thing} cost?",
      "It takes {a} cents to buy {b} {things}. What is the price of one {thing} in cents?",
      "With {a} cents {name} buys exactly {b} {things}. How many cents is each {thing}?"},
     {"Each costs {work} cents.", NULL}},

    {"get and give", "+-", {99, 99, 99},
     {"{name} has {a} {things}, buys {b} more and gives {friend} {c}. How many {things} are left?",
      "{name} had {a} {things}, found {b} more and then lost {c}. How many {things} are left?",
      "{name} owns {a} {things}, gets another {b} and sells {c}. How many {things} does {name} still have?"},
     {"{name} has {work} {things}.", "Then {name} has {work} left."}},

    {"price and bag", "*+", {12, 99, 99},
     {"{name} buys {a} {things} at {b} cents each and a bag for {c} cents. How many cents does {name} pay?",
      "{name} orders {a} {things} at {b} cents each. Sending them costs {c} cents. What is the total?",
      "If {a} {things} cost {b} cents each and a bag costs {c} cents, what is the total in cents?"},
     {"That is {work} cents.", "In all it is {work} cents."}},

    {"groups and share", "*/", {12, 99, 12},
     {"{name} shares {a} boxes of {b} {things} equally among {c} friends. How many does each friend get?",
      "{name} opens {a} packs of {b} {things} to share equally among {c} people. How many does each get?",
      "There are {a} bags of {b} {things} for {c} children to share equally. How many does each get?"},
     {"There are {work} {things}.", "Each gets {work} {things}."}},

    {"groups and sell", "*-", {12, 99, 99},
     {"{name} has {a} boxes with {b} {things} in each and sells {c} {things}. How many {things} are left?",
      "{name} buys {a} packs of {b} {things} and gives {c} {things} away. How many does {name} have left?",
      "Each of {name}'s {a} bags holds {b} {things}. {name} loses {c} {things}. How many are left?"},
     {"There are {work} {things}.", "Then {name} has {work} left."}},

    {"keep and pack", "-/", {99, 99, 12},
     {"{name} has {a} {things}, keeps {b} and packs the rest in boxes of {c}. How many boxes is that?",
      "{name} had {a} {things} but lost {b}. The others go in boxes of {c}. How many boxes are needed?",
      "Out of {a} {things}, {name} sells {b} and packs the others, {c} to a box. How many boxes is that?"},
     {"That leaves {work} {things}.", "{name} fills {work} boxes."}},
};

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

// A problem is its kind and its numbers. The rest is decoration.
typedef struct {
    const Kind* kind;
    int number[MAX_NUMBERS];
    int phrasing;
    const char* name;
    const char* friend;
    const Thing* thing;
} Problem;

// One calculation: left op right = result.
typedef struct {
    int left, right, result;
} Step;

// ---- errors and random numbers --------------------------------------------------------------------------

_Noreturn static void fail(const char* format, ...) {
    va_list args;
    va_start(args, format);
    fputs("generate: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

// splitmix64 (Steele, Lea, Flood 2014). Whole numbers only: rand() and floating point differ between
// machines.
typedef struct {
    uint64_t state;
} Rng;

static uint64_t random_u64(Rng* rng) {
    uint64_t z = (rng->state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// Uniform in 0..n-1. The remainder favours small values by less than n / 2^64, which nobody can measure.
static int random_below(Rng* rng, int n) {
    return (int)(random_u64(rng) % (uint64_t)n);
}

static int random_percent(Rng* rng, int percent) {
    return random_below(rng, 100) < percent;
}

static int random_sign(Rng* rng) {
    return random_below(rng, 2) ? 1 : -1;
}

// ---- arithmetic -----------------------------------------------------------------------------------------

static int count_steps(const Kind* kind) {
    return (int)strlen(kind->ops);
}

// x op y, or 0 (never a legal result) when a division has a remainder.
static int apply(char op, int x, int y) {
    switch (op) {
    case '+': return x + y;
    case '-': return x - y;
    case '*': return x * y;
    default: return x % y == 0 ? x / y : 0;
    }
}

enum { NONE = -1 };

// Writes the steps of a problem, each going on from the result of the one before. If slip_at is a step (and
// not NONE), that step gets the result `slip` instead of the right one. Returns 0 if a result breaks a rule.
static int work_out(Step* steps, const Problem* p, int slip_at, int slip) {
    int left = p->number[0];
    for (int s = 0; s < count_steps(p->kind); s++) {
        char op = p->kind->ops[s];
        int right = p->number[s + 1];
        int result = s == slip_at ? slip : apply(op, left, right);
        if (result < SMALLEST || result > (op == '/' ? LARGEST_QUOTIENT : LARGEST_RESULT)) return 0;
        steps[s] = (Step){left, right, result};
        left = result;
    }
    return 1;
}

// The result of a sum done carelessly in the head. It may happen to be the right one; the caller then asks
// again.
static int slip_in_head(Rng* rng, char op, Step step) {
    int right = step.result;
    switch (random_below(rng, 4)) {
    case 0: return right + random_sign(rng);      // counted one too far
    case 1: return right + 10 * random_sign(rng); // a ten too many or too few
    case 2: // two digits in the wrong order: 43 written as 34
        if (right < 10 || right % 10 == 0) return right;
        return right / 100 * 100 + right % 10 * 10 + right / 10 % 10;
    default:
        // the slip that belongs to the operation; a division has none
        if (op == '+' && step.left % 10 + step.right % 10 >= 10) return right - 10; // forgot to carry
        if (op == '-' && step.left % 10 < step.right % 10) return right + 10;       // forgot to borrow
        if (op == '*') return right + step.left * random_sign(rng); // slipped a line in the times table
        return right;
    }
}

// Writes steps with one mistake in them. What follows a wrong step is done right, but with the wrong
// number, so the final answer is wrong too: +, - and exact division give different results for different
// numbers.
static void work_out_wrongly(Rng* rng, Step* steps, const Problem* p) {
    Step correct[MAX_STEPS];
    int s, slip;
    work_out(correct, p, NONE, 0);
    do { // ends: counting one too far in the last step is always possible
        s = random_below(rng, count_steps(p->kind));
        slip = slip_in_head(rng, p->kind->ops[s], correct[s]);
    } while (slip == correct[s].result || !work_out(steps, p, s, slip));
}

// ---- drawing a new problem ------------------------------------------------------------------------------

// The same problem in the sense of the separation at the top: same kind, same numbers.
static int same_problem(const Problem* p, const Problem* q) {
    const int *x = p->number, *y = q->number;
    if (p->kind != q->kind || x[2] != y[2]) return 0;
    if (x[0] == y[0] && x[1] == y[1]) return 1;
    int commutes = p->kind->ops[0] == '+' || p->kind->ops[0] == '*';
    return commutes && x[0] == y[1] && x[1] == y[0];
}

// Draws numbers that give a legal calculation and have not been used in this kind of problem before. A few
// thousand problems are quickly compared one by one.
static void draw_numbers(Rng* rng, Problem* p, const Problem* used, int num_used) {
    for (int tries = 0; tries < 100000; tries++) {
        for (int i = 0; i < MAX_NUMBERS; i++) {
            int max = p->kind->max[i];
            p->number[i] = max ? SMALLEST + random_below(rng, max - SMALLEST + 1) : 0;
        }
        Step steps[MAX_STEPS];
        int usable = work_out(steps, p, NONE, 0);
        for (int i = 0; usable && i < num_used; i++) usable = !same_problem(p, &used[i]);
        if (usable) return;
    }
    fail("found no unused numbers for the kind \"%s\" after %d problems. Ask for fewer, or give that "
         "kind larger numbers (max in the table KINDS).", p->kind->label, num_used);
}

static Problem draw_problem(Rng* rng, const Problem* used, int num_used) {
    Problem p = {0};
    int num_steps = random_percent(rng, TWO_STEP_PERCENT) ? 2 : 1;
    do p.kind = &KINDS[random_below(rng, COUNT(KINDS))];
    while (count_steps(p.kind) != num_steps);
    draw_numbers(rng, &p, used, num_used);
    p.phrasing = random_below(rng, PHRASINGS);
    p.name = NAMES[random_below(rng, COUNT(NAMES))];
    do p.friend = NAMES[random_below(rng, COUNT(NAMES))];
    while (p.friend == p.name);
    p.thing = &THINGS[random_below(rng, COUNT(THINGS))];
    return p;
}

// ---- putting it into words ------------------------------------------------------------------------------

typedef struct {
    char bytes[512]; // always ends in 0
    size_t length;
} Text;

static void put_bytes(Text* text, const char* bytes, size_t n) {
    size_t room = sizeof text->bytes - 1 - text->length;
    if (n > room) fail("a text grew longer than %zu bytes: %s", sizeof text->bytes - 1, text->bytes);
    memcpy(text->bytes + text->length, bytes, n);
    text->length += n;
    text->bytes[text->length] = 0;
}

// Appends the sentence with its {slots} filled in. work is the text for {work}; a question has none.
static void fill_template(Text* out, const char* sentence, const Problem* p, const char* work) {
    char numbers[MAX_NUMBERS][16];
    for (int i = 0; i < MAX_NUMBERS; i++) snprintf(numbers[i], sizeof numbers[i], "%d", p->number[i]);
    const struct { const char *slot, *value; } slots[] = {
        {"{name}", p->name},        {"{friend}", p->friend},     {"{work}", work},
        {"{thing}", p->thing->one}, {"{things}", p->thing->many},
        {"{a}", numbers[0]},        {"{b}", numbers[1]},         {"{c}", numbers[2]},
    };
    while (*sentence) {
        size_t plain = strcspn(sentence, "{");
        put_bytes(out, sentence, plain);
        sentence += plain;
        if (!*sentence) break;
        int i = 0;
        while (i < COUNT(slots) && strncmp(sentence, slots[i].slot, strlen(slots[i].slot)) != 0) i++;
        if (i == COUNT(slots)) fail("unknown slot in the kind \"%s\": %s", p->kind->label, sentence);
        put_bytes(out, slots[i].value, strlen(slots[i].value));
        sentence += strlen(slots[i].slot);
    }
}

// Appends one sentence and a newline for each step: "Tom has <<17+26=43>>43 pens." or, in the head,
// "17+26=43".
static void put_steps(Text* out, const Problem* p, const Step* steps, int calculator) {
    for (int s = 0; s < count_steps(p->kind); s++) {
        const Step* t = &steps[s];
        char sum[48], work[112];
        snprintf(sum, sizeof sum, "%d%c%d=%d", t->left, p->kind->ops[s], t->right, t->result);
        if (calculator) snprintf(work, sizeof work, "<<%s>>%d", sum, t->result);
        else snprintf(work, sizeof work, "%s", sum);
        fill_template(out, p->kind->answer[s], p, work);
        put_bytes(out, "\n", 1);
    }
}

static void put_ending(Text* out, const char* before, int answer, const char* after) {
    char line[64];
    int n = snprintf(line, sizeof line, "%s%d%s", before, answer, after);
    put_bytes(out, line, (size_t)n);
}

static void write_reference(Text* out, const Problem* p) {
    Step steps[MAX_STEPS];
    work_out(steps, p, NONE, 0);
    put_steps(out, p, steps, 1);
    put_ending(out, "#### ", steps[count_steps(p->kind) - 1].result, "");
}

// The answer of someone from the crowd. The last line always repeats the result of the work shown, right or
// wrong.
static void write_demonstration(Text* out, const Problem* p, Rng* crowd) {
    Step steps[MAX_STEPS];
    int calculator = random_percent(crowd, CALCULATOR_PERCENT);
    if (!calculator && random_percent(crowd, MISTAKE_PERCENT)) work_out_wrongly(crowd, steps, p);
    else work_out(steps, p, NONE, 0);
    put_steps(out, p, steps, calculator);

    int answer = steps[count_steps(p->kind) - 1].result;
    int ending = random_below(crowd, 100);
    if (ending < HASH_PERCENT) put_ending(out, "#### ", answer, "");
    else if (ending < HASH_PERCENT + BOXED_PERCENT) put_ending(out, "\\boxed{", answer, "}");
    else put_ending(out, "The answer is ", answer, ".");
}

// ---- files ----------------------------------------------------------------------------------------------

typedef struct {
    const char* name;
    int count;
    int is_demos;
} File;

static const File FILES[] = {
    {"train.jsonl", TRAIN_PROBLEMS, 0},
    {"test.jsonl", TEST_PROBLEMS, 0},
    {"demos.jsonl", DEMO_PROBLEMS, 1},
};

enum { PATH_SIZE = 4096 };

static void make_path(char path[PATH_SIZE], const char* outdir, const char* name, const char* suffix) {
    int n = snprintf(path, PATH_SIZE, "%s/%s%s", outdir, name, suffix);
    if (n < 0 || n >= PATH_SIZE) fail("the path of the output directory is too long: %s", outdir);
}

// Ends the program after a failed write, and leaves no half-written file behind.
_Noreturn static void fail_to_write(const char* outdir, const char* path) {
    // copied, because the calls to remove() may overwrite strerror's text
    char reason[256];
    snprintf(reason, sizeof reason, "%s", errno ? strerror(errno) : "the write did not succeed");
    for (int i = 0; i < COUNT(FILES); i++) {
        char temporary[PATH_SIZE];
        make_path(temporary, outdir, FILES[i].name, ".tmp");
        remove(temporary);
    }
    fail("cannot write %s: %s. Does the directory %s exist, may you write to it, "
         "and is there room on the disk?",
         path, reason, outdir);
}

// A JSON string. The texts are ASCII; only these three characters need a backslash in them.
static void write_json_string(FILE* f, const char* text) {
    fputc('"', f);
    for (; *text; text++) {
        if (*text == '\n') fputs("\\n", f);
        else if (*text == '"' || *text == '\\') fprintf(f, "\\%c", *text);
        else fputc(*text, f);
    }
    fputc('"', f);
}

static void write_file(const char* outdir, const File* file, const Problem* problems, Rng* crowd) {
    char path[PATH_SIZE];
    make_path(path, outdir, file->name, ".tmp");
    errno = 0;
    FILE* f = fopen(path, "wb"); // b: no machine may turn \n into \r\n
    if (!f) fail_to_write(outdir, path);
    for (int i = 0; i < file->count; i++) {
        const Problem* p = &problems[i];
        Text question = {{0}, 0}, answer = {{0}, 0};
        fill_template(&question, p->kind->question[p->phrasing], p, "");
        if (file->is_demos) write_demonstration(&answer, p, crowd);
        else write_reference(&answer, p);
        fputs("{\"question\": ", f);
        write_json_string(f, question.bytes);
        fputs(", \"answer\": ", f);
        write_json_string(f, answer.bytes);
        fputs("}\n", f);
        if (ferror(f)) break; // the stream remembers an error of any of the writes above
    }
    int failed = ferror(f);
    if (fclose(f) != 0 || failed) fail_to_write(outdir, path);
}

// Gives the finished file its real name. A reader sees the old file or the new one, never a part of one.
static void publish_file(const char* outdir, const File* file) {
    char temporary[PATH_SIZE], path[PATH_SIZE];
    make_path(temporary, outdir, file->name, ".tmp");
    make_path(path, outdir, file->name, "");
    errno = 0;
    if (rename(temporary, path) != 0) fail_to_write(outdir, path);
}

static const char USAGE[] =
    "usage: generate OUTDIR\n"
    "\n"
    "Writes word problems in GSM8K's format into the directory OUTDIR, which must exist:\n"
    "  train.jsonl   problems for reinforcement learning, with reference solutions\n"
    "  test.jsonl    problems for measuring, with reference solutions\n"
    "  demos.jsonl   problems answered by a mixed crowd, for supervised training\n"
    "No problem occurs twice, in one file or in two. The files are the same on every machine.\n"
    "How many problems, and what the crowd does, are constants at the top of generate.c.\n"
    "\n"
    "  --help        print this text\n";

static void flush_stdout(void) {
    if (fflush(stdout) != 0 || ferror(stdout)) fail("cannot write to standard output: %s.", strerror(errno));
}

int main(int argc, char** argv) {
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(USAGE, stdout);
        flush_stdout();
        return 0;
    }
    if (argc != 2 || argv[1][0] == '-' || argv[1][0] == 0) {
        fprintf(stderr, "generate: expected one argument, the directory to write to.\n\n%s", USAGE);
        return 2;
    }
    const char* outdir = argv[1];
    Problem* problems = malloc(ALL_PROBLEMS * sizeof *problems);
    if (!problems) fail("out of memory for %d problems.", (int)ALL_PROBLEMS);

    Rng rng = {PROBLEM_SEED}, crowd = {CROWD_SEED};
    for (int i = 0; i < ALL_PROBLEMS; i++) problems[i] = draw_problem(&rng, problems, i);

    // All files are written before the first is published: three files of one run belong together.
    const Problem* next = problems;
    for (int i = 0; i < COUNT(FILES); next += FILES[i++].count) write_file(outdir, &FILES[i], next, &crowd);
    for (int i = 0; i < COUNT(FILES); i++) {
        publish_file(outdir, &FILES[i]);
        printf("%s/%-11s  %5d problems\n", outdir, FILES[i].name, FILES[i].count);
    }
    free(problems);
    flush_stdout();
    return 0;
}

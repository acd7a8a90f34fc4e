/* check.h - runs one exercise (table.h) on its inputs, the examples worked by hand, then some of a seeded
 * generator. A submission runs in a process of its own, limited in time and memory, on arrays between guards;
 * outputs start as a NaN of our own. What comes out is compared with that of rl.c's function, then with that
 * of each classic slip: only one that agrees on every input is named. */
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../docs/exercises.h"

Equal answers_equal;                      // rl.c's, handed to exercises 12 and 28

enum { ARGS = 8, VALUES = 64, TEXTS = 8, TEXT_SIZE = 64, EXAMPLES = 4, SEEDED = 3, CASES = EXAMPLES + SEEDED,
       GUARD = 64 };                      // numbers before and behind each array

typedef void (*Fn)(void);

// ---- an input: arguments by name, so that any of them can be printed

typedef enum { SCALAR, TEXTS_IN, WHOLES, FLOATS, DOUBLES, OUT_WHOLES, OUT_FLOATS, OUT_DOUBLES } Kind;

typedef struct {
    char name[16];
    Kind kind;
    int n, row;                           // numbers in it; numbers in a row, for printing
    double value[VALUES];
    char text[TEXTS][TEXT_SIZE];
} Arg;

typedef struct { int args; Arg arg[ARGS]; } Case;

static Arg* add_arg(Case* c, const char* name, Kind kind, int n) {
    Arg* a = &c->arg[c->args++];
    if (c->args > ARGS || n > VALUES) abort();
    *a = (Arg){.kind = kind, .n = n, .row = n};
    snprintf(a->name, sizeof a->name, "%.*s", (int)strcspn(name, " "), name);
    return a;
}

static Arg* add_numbers(Case* c, const char* name, Kind kind, int n, const double* x) {
    Arg* a = add_arg(c, name, kind, n);
    memcpy(a->value, x, (size_t)n * sizeof *x);
    return a;
}

// "T gamma": a number for each of the names
static void add_scalars(Case* c, const char* names, const double* x) {
    for (; names; names = strchr(names + 1, ' ')) add_numbers(c, names + (*names == ' '), SCALAR, 1, x++);
}

static void add_texts(Case* c, const char* name, int n, const char* const* text) {
    Arg* a = add_arg(c, name, TEXTS_IN, n);
    if (n > TEXTS) abort();
    for (int i = 0; i < n; i++) snprintf(a->text[i], TEXT_SIZE, "%s", text[i]);
}

static int is_array(const Arg* a) { return a->kind >= WHOLES; }
static int is_output(const Arg* a) { return a->kind >= OUT_WHOLES; }

// ---- an exercise

typedef struct Frame Frame;

typedef struct {
    const char *name, *function;                     // "the return", "my_return"
    void (*make)(Case* c, int which, uint64_t* rng); // which: an example, or further on: from rng
    void (*call)(Frame* f);
    Fn solution, slips;                              // rl.c's; the same with the slip that is asked for
    double tolerance;                                // relative to numbers above 1
    const char *read, *hint;
    struct { const char *given, *right, *working; } example[EXAMPLES];   // 4 decimals; working may be NULL
} Exercise;

static int example_count(const Exercise* e) {
    int n = 0;
    while (n < EXAMPLES && e->example[n].right) n++;
    return n;
}

static int case_count(const Exercise* e) { return example_count(e) + SEEDED; }

// The same inputs in each run: case i of exercise e.
static void make_case(Case* c, const Exercise* e, int i) {
    uint64_t rng = 20240229u + 977u * (uint64_t)i;
    for (const char* p = e->function; *p; p++) rng = rng * 31u + (unsigned char)*p;
    c->args = 0;
    e->make(c, i, &rng);
}

static double random_real(uint64_t* rng) {                                   // splitmix64, in [0, 1)
    uint64_t z = *rng += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

static int random_whole(uint64_t* rng, int low, int high) {
    return low + (int)(random_real(rng) * (high - low + 1));
}

// Hundredths, so that they can be read in a message.
static double random_between(uint64_t* rng, double low, double high) {
    return round(100.0 * (low + (high - low) * random_real(rng))) / 100.0;
}

// ---- a slip: a row of a list that stands inside of a function of the exercise's form

typedef struct {
    double gives[3];                      // one number, or as many as come out
    const char *value, *what;             // by hand, on the first example where it is not right; the sentence
} Slip;

// Which row is asked for; what it says, and how many rows there are, as the last call found it.
static struct { int asked, count; const char *value, *what; } slip;

static const double* pick(const Slip* row) {
    const Slip* said = row + slip.asked;
    for (slip.count = 0; row[slip.count].what;) slip.count++;
    if (slip.asked >= slip.count) abort();
    while (!*said->what) said--;
    slip.value = said->value;
    slip.what = said->what;
    return row[slip.asked].gives;
}

#define ROW_OF(...) pick((const Slip[]){__VA_ARGS__, {{0.0}, NULL, NULL}})
#define ONE_OF(...) ROW_OF(__VA_ARGS__)[0]
#define SAME "", ""                       // says what the row above says

// ---- one call: the arrays in memory, between guards

struct Frame {
    Fn fn;
    const Case* input;
    void* memory[ARGS];                   // where each array begins
    const char* list[ARGS][TEXTS];
    double result;
    int has_result;
};

typedef union { int i; float f; double d; uint32_t narrow; uint64_t wide; } Number;

// Two NaNs, with marks that survive arithmetic: an output that was not set, and a guard. Arithmetic sets a
// bit in the first, a signalling one: "never touched" is not "computed from it". For ints improbable numbers.
static const struct { size_t size; Number unset, guard; } types[] = {
    {sizeof(int), {.narrow = 0x81235DEDu}, {.narrow = 0x5A5B5C5Du}},
    {sizeof(float), {.narrow = 0x7FA0DEADu}, {.narrow = 0x7FC0FE9Cu}},
    {sizeof(double), {.wide = 0x7FF40000DEAD1234u}, {.wide = 0x7FF80000FE9CE123u}}};
enum { INT, FLOAT, DOUBLE };

static int type_of(const Arg* a) { return (a->kind - WHOLES) % 3; }
static size_t size_of(const Arg* a) { return types[type_of(a)].size; }

// What element i of an array holds before the call; i < 0 and i >= n: the guards.
static Number before(const Arg* a, int i) {
    int type = type_of(a);
    if (i < 0 || i >= a->n) return types[type].guard;
    if (is_output(a)) return types[type].unset;
    if (type == INT) return (Number){.i = (int)a->value[i]};
    return type == FLOAT ? (Number){.f = (float)a->value[i]} : (Number){.d = a->value[i]};
}

static void* element(const Frame* f, int k, int i) {
    return (char*)f->memory[k] + (ptrdiff_t)i * (ptrdiff_t)size_of(&f->input->arg[k]);
}

static int is_as_before(const Frame* f, int k, int i) {
    Number x = before(&f->input->arg[k], i);
    return !memcmp(&x, element(f, k, i), size_of(&f->input->arg[k]));
}

static void lay_out(Frame* f, const Case* c, Fn fn) {
    *f = (Frame){.fn = fn, .input = c};
    for (int k = 0; k < c->args; k++) {
        const Arg* a = &c->arg[k];
        for (int i = 0; i < TEXTS; i++) f->list[k][i] = a->text[i];
        if (!is_array(a)) continue;
        char* block = malloc((size_t)(a->n + 2 * GUARD) * size_of(a));
        if (!block) abort();
        f->memory[k] = block + GUARD * size_of(a);
        for (int i = -GUARD; i < a->n + GUARD; i++) {
            Number x = before(a, i);
            memcpy(element(f, k, i), &x, size_of(a));
        }
    }
}

static void clear_frame(Frame* f) {
    for (int k = 0; k < f->input->args; k++) if (f->memory[k]) free(element(f, k, -GUARD));
}

// For the table: argument i as C wants it, and the function to call, with the type that exercises.h gives it.
static int* wholes(Frame* f, int i) { return f->memory[i]; }
static float* floats(Frame* f, int i) { return f->memory[i]; }
static double* doubles(Frame* f, int i) { return f->memory[i]; }
static const char* const* texts(Frame* f, int i) { return f->list[i]; }
static double number(Frame* f, int i) { return f->input->arg[i].value[0]; }
static int whole(Frame* f, int i) { return (int)f->input->arg[i].value[0]; }
static void returns(Frame* f, double x) {
    f->result = x;
    f->has_result = 1;
}
#define AS(name) ((__typeof__(name)*)f->fn)
#define BIND(name, function) ((Fn)(1 ? (function) : (__typeof__(name)*)0))

// ---- what came out

typedef enum { RIGHT, WRONG, TO_DO, UNSET, READ_OUTSIDE, WROTE_OUTSIDE, CHANGED_INPUT, CRASHED, ENDLESS,
       ENDED, MISSING } State;

enum { UNTOUCHED = 1, COMPUTED };

typedef struct {
    double value;
    unsigned char at, index;              // the case; which of its outputs: what is returned, then the arrays
    unsigned char unset;                  // UNTOUCHED, or COMPUTED from an output that was not set
    unsigned char outside;                // computed from what lies outside of an array
} Output;

typedef struct {
    volatile int running, finished;       // the case that runs; all have run
    State damage;                         // 0, WROTE_OUTSIDE, CHANGED_INPUT: element `index` of an argument
    int argument, index, count;
    Output output[CASES * (VALUES + 1)];               // of all cases
} Report;

// Does this NaN carry the mark, whatever its sign and quiet bit, gone through a float or not?
static int same_mark(double x, Number wide, Number narrow) {
    Number d = {.d = x}, f = {.f = (float)x};
    return isnan(x) && (!((d.wide ^ wide.wide) & 0x7FF7FFFFFFFFFFFFu) ||
                        !((f.narrow ^ narrow.narrow) & 0x7FBFFFFFu));
}

static void add_output(Report* r, int index, double x, int untouched) {
    int computed = same_mark(x, types[DOUBLE].unset, types[FLOAT].unset);
    int outside = same_mark(x, types[DOUBLE].guard, types[FLOAT].guard) || x == (double)types[INT].guard.i;
    if (index > VALUES) abort();
    r->output[r->count++] = (Output){x, (unsigned char)r->running, (unsigned char)index,
                                     untouched ? UNTOUCHED : computed ? COMPUTED : 0, (unsigned char)outside};
}

// Keeps the outputs. What else is not as it was, is damage; the first is reported.
static void look_at(Report* r, const Frame* f) {
    int index = 0;
    if (f->has_result) add_output(r, index++, f->result, 0);
    for (int k = 0; k < f->input->args; k++) {
        const Arg* a = &f->input->arg[k];
        for (int i = -GUARD; is_array(a) && i < a->n + GUARD; i++) {
            int inside = i >= 0 && i < a->n, same = is_as_before(f, k, i);
            if (inside && is_output(a)) {
                int type = type_of(a);
                Number x;
                memcpy(&x, element(f, k, i), size_of(a));
                add_output(r, index++, type == INT ? x.i : type == FLOAT ? (double)x.f : x.d, same);
            } else if (!same && !r->damage) {
                r->damage = inside ? CHANGED_INPUT : WROTE_OUTSIDE;
                r->argument = k;
                r->index = i;
            }
        }
    }
}

static void run_cases(Report* r, const Exercise* e, Fn fn) {
    memset(r, 0, sizeof *r);
    for (int i = 0; i < case_count(e) && !r->damage; i++) {
        static Case c;
        Frame f;
        make_case(&c, e, i);
        lay_out(&f, &c, fn);
        r->running = i;
        e->call(&f);
        look_at(r, &f);
        if (!r->damage) clear_frame(&f);
    }
    r->finished = 1;
}

static void run_slip(Report* r, const Exercise* e, int asked) {
    slip.asked = asked;
    run_cases(r, e, e->slips);
}

// ---- the process around it

enum { CPU_MILLISECONDS = 500, SECONDS = 5 };

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

static void limit(int what, rlim_t most) { setrlimit(what, &(struct rlimit){most, most}); }

static void set_limits(void) {
    const struct itimerval time = {{0, 0}, {0, CPU_MILLISECONDS * 1000}};
    for (int s = 1; s < 32; s++) signal(s, SIG_DFL);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, 16u << 20);
#ifndef SANITIZED                         // its shadow memory has terabytes of addresses
    limit(RLIMIT_AS, (rlim_t)1 << 30);
#endif
    setitimer(ITIMER_PROF, &time, NULL);
    alarm(SECONDS);
}

// Runs fn in a process of its own. Returns the wait status.
static int run_apart(Report* r, const Exercise* e, Fn fn) {
    int status = 0;
    Report* shared = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fflush(NULL);
    pid_t child = shared == MAP_FAILED ? -1 : fork();
    if (child < 0) {
        perror("exercises: cannot start a process");
        exit(1);
    }
    if (child == 0) {
        set_limits();
        run_cases(shared, e, fn);
        fflush(NULL);
        _exit(0);
    }
    waitpid(child, &status, 0);
    *r = *shared;
    munmap(shared, sizeof *r);
    return status;
}

// ---- the verdict

typedef struct {
    State state;
    int at, output;                       // the case; in the reports, the first that is not right, or not set
    int slip;                             // -1: none of the list
    const char* what;                     // the slip's sentence
    int signal;
    Report report, right;                 // what the submission gave, and what rl.c gives
} Verdict;

static int same_number(double x, double y, double tolerance) {
    if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
    return x == y || (isfinite(x) && isfinite(y) && fabs(x - y) <= tolerance * fmax(1.0, fabs(y)));
}

// The first output in which a report differs from what is right (or from another one); -1: none.
static int first_different(const Exercise* e, const Report* r, const Report* right) {
    for (int i = 0; i < right->count; i++)
        if (!same_number(r->output[i].value, right->output[i].value, e->tolerance)) return i;
    return -1;
}

static int find_slip(const Exercise* e, const Report* r) {
    static Report made;
    for (int s = 0; s == 0 || s < slip.count; s++) {
        run_slip(&made, e, s);
        if (first_different(e, r, &made) < 0) return s;
    }
    return -1;
}

// Finished, but not right: is an output not set, or computed from a number outside of an array? TO_DO: nobody
// has written anything yet, every output is as it was, or what the skeleton returns: INT_MIN, or the very NAN
// of math.h (0/0 has another sign on most machines).
static State find_mark(Verdict* v) {
    const double nothing = (double)NAN;
    int touched = 0, mark = -1;
    for (int i = v->right.count - 1; i >= 0; i--) {
        const Output* o = &v->report.output[i];
        touched |= o->unset != UNTOUCHED && o->value != INT_MIN &&
                   memcmp(&o->value, &nothing, sizeof nothing);
        if (o->unset || (o->outside && !isnan(v->right.output[i].value))) mark = i;
    }
    if (!touched) return TO_DO;
    if (mark < 0) return WRONG;
    v->output = mark;
    return v->report.output[mark].unset ? UNSET : READ_OUTSIDE;
}

static void judge(Verdict* v, const Exercise* e, Fn fn) {
    const Report* r = &v->report;
    *v = (Verdict){.state = MISSING, .slip = -1};
    run_cases(&v->right, e, e->solution);
    if (!fn) return;
    int status = run_apart(&v->report, e, fn), by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    v->at = r->running < 0 || r->running >= case_count(e) ? 0 : r->running;
    v->signal = by;
    v->state = by == SIGPROF || by == SIGALRM ? ENDLESS : r->damage ? r->damage : by ? CRASHED
               : r->finished ? RIGHT : WEXITSTATUS(status) ? CRASHED : ENDED;
    int first = v->state == RIGHT ? first_different(e, r, &v->right) : -1;
    if (first < 0) return;
    v->output = first;
    v->state = find_mark(v);
    v->at = v->right.output[v->output].at;
    if (v->state != WRONG) return;
    v->slip = find_slip(e, r);
    v->what = slip.what;
}

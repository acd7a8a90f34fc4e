/* message.h - what a student reads: one exercise in a few lines. */
#include "field.h"

typedef struct { char text[4096]; size_t length; } Line;

static void add(Line* l, const char* format, ...) {
    va_list list;
    va_start(list, format);
    int n = vsnprintf(l->text + l->length, sizeof l->text - l->length, format, list);
    va_end(list);
    l->length += (size_t)n < sizeof l->text - l->length ? (size_t)n : sizeof l->text - 1 - l->length;
}

// Behind number i of n: a bar between rows, else a space.
static const char* between(int i, int n, int row) {
    return !i ? "" : row > 1 && row < n && i % row == 0 ? " | " : " ";
}

static void add_value(Line* l, double x) {
    if (isnan(x)) add(l, "NaN");
    else if (x == floor(x) && fabs(x) < 1e9) add(l, "%.0f", x == 0.0 ? 0.0 : x);
    else add(l, fabs(x) < 1e6 ? "%.4f" : "%.4g", x);
}

static void print_outcome(const char* label, const Case* c, const Outcome* o) {
    Line l = {0};
    int row = 0;
    for (int k = c->args - 1; k >= 0; k--) if (is_output(&c->arg[k])) row = c->arg[k].row;
    for (int i = 0; i < o->count; i++) {
        add(&l, "%s", between(i, o->count, row));
        if (o->unset[i] == UNTOUCHED) add(&l, "(not set)");
        else if (o->out[i] == (double)INT_MIN) add(&l, "(nothing)");
        else add_value(&l, o->out[i]);
    }
    print_field(label, "%s", l.text);
}

// An input of the generator: all its arguments by name.
static void print_case(const Case* c) {
    Line l = {0};
    for (int k = 0; k < c->args; k++) {
        const Arg* a = &c->arg[k];
        if (is_output(a)) continue;
        add(&l, "%s%s", l.length ? "; " : "", a->name);
        for (int i = 0; i < a->n; i++) {
            if (a->kind == TEXTS_IN) add(&l, "%s\"%s\"", i ? ", " : " ", a->text[i]);
            else if (isnan(a->value[i])) add(&l, "%sNaN", i ? between(i, a->n, a->row) : " ");
            else add(&l, "%s%.6g", i ? between(i, a->n, a->row) : " ", a->value[i]);
        }
    }
    print_field("given", "%s", l.text);
}

// The line of `path` in which the function stands; 0 = nowhere.
static int line_of(const char* path, const char* function) {
    char line[1024];
    FILE* file = path ? fopen(path, "r") : NULL;
    int found = 0;
    for (int i = 1; file && !found && fgets(line, sizeof line, file); i++) {
        const char* at = strstr(line, function);
        int begins = !isspace((unsigned char)line[0]);
        if (begins && at && at > line && at[-1] == ' ' && at[strlen(function)] == '(') found = i;
    }
    if (file) fclose(file);
    return found;
}

static const char* const state_words[] = {"ok",    "WRONG",   "TO DO",   "WRONG", "WRONG",  "WRONG",
                                          "WRONG", "CRASHED", "ENDLESS", "WRONG", "MISSING"};

static const char* name_of_signal(int s) {
    if (s == SIGSEGV || s == SIGBUS)
        return "a segmentation fault: an index far outside of its array, a pointer that is NULL, or "
               "a function that calls itself without end";
    if (s == SIGFPE) return "a whole number was divided by 0";
    if (s == SIGABRT) return "the C library stopped it (abort), as it does when its memory was overwritten";
    if (s == SIGXFSZ) return "it printed more than 16 MB";
    if (s == SIGKILL) return "it was killed";
    return "it was stopped by a signal, or used more memory than it may";
}

static void print_what_happened(const Case* c, const Verdict* v) {
    const Report* r = &v->report;
    const Arg* a = &c->arg[r->argument];
    const char* label = "happened";
    if (v->state == CRASHED) print_field(label, "%s", name_of_signal(v->signal));
    if (v->state == ENDLESS)
        print_field(label, "%s",
                    "not done after half a second: a loop that never ends? Look at what should stop it");
    if (v->state == ENDED) print_field(label, "the function ended the whole program: use return, not exit()");
    if (v->state == UNSET)
        print_field(label, r->outcome[v->at].unset[v->output] == UNTOUCHED
            ? "output number %d, counted from 0, was not set: does the loop reach it, in every case?"
            : "output number %d, counted from 0, was read before it was set. An output starts as NaN, and "
              "NaN + x stays NaN: set it with = before += or before it is read", v->output);
    if (v->state == READ_OUTSIDE)
        print_field(label, "a number was read from outside of an array (there stands NaN): what is the "
                           "smallest and the largest index?");
    if (v->state == WROTE_OUTSIDE)
        print_field(label, "wrote to %s[%d]; %s has %d numbers, %s[0] to %s[%d]", a->name, r->index, a->name,
                    a->n, a->name, a->name, a->n - 1);
    if (v->state == CHANGED_INPUT)
        print_field(label, "changed its input: %s[%d] has another value than before. Write to the output "
                           "only", a->name, r->index);
}

static void print_message(int number, const Exercise* e, const Verdict* v, const char* source, int hint) {
    static Case c;
    int by_hand = v->at < example_count(e), line = line_of(source, e->function);
    const char *value = e->example[v->at].right, *working = e->example[v->at].working;
    make_case(&c, e, v->at);
    printf("%d %s %s\n", number, state_words[v->state], e->name);
    if (hint && v->state == RIGHT) print_field("hint", "%s", e->hint);
    if (v->state == RIGHT) return;
    if (by_hand) print_field("given", "%s", e->example[v->at].given);
    else print_case(&c);
    if (v->state == WRONG || v->state == UNSET || v->state == READ_OUTSIDE)
        print_outcome("yours", &c, &v->report.outcome[v->at]);
    if (by_hand) {
        const char* link = !working ? "" : strchr(value, ' ') ? "; " : " = ";
        print_field("by hand", "%s%s%s", value, link, working ? working : "");
    } else {
        print_outcome("right", &c, &v->right.outcome[v->at]);
        print_field("note", "the example on paper came out right, this other input did not");
    }
    if (v->slip >= 0) print_field("the slip", "%s", v->what);
    print_what_happened(&c, v);
    char where[32] = "";
    if (line) snprintf(where, sizeof where, ", line %d", line);
    if (v->state == TO_DO || v->state == MISSING)
        print_field("write", "%s%s%s%s", e->function, v->state == MISSING ? "(), which is not in " : "() in ",
                    source, where);
    print_field("read", "rl.c %s", e->read);
    if (hint) print_field("hint", "%s", e->hint);
}

// One line of the table of all, and the slip below it.
static void print_row(int number, const Exercise* e, const Verdict* v) {
    static Case c;
    make_case(&c, e, v->at);
    printf("%2d  %-8s  %s\n", number, state_words[v->state], e->name);
    if (v->slip >= 0) print_field("", "%s", v->what);
    print_what_happened(&c, v);
}

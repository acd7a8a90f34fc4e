/* message.h - what a student reads: one exercise in a few lines. */
#include "field.h"

typedef char Line[4096];

static void add(char* line, const char* format, ...) {
    size_t length = strlen(line);
    va_list list;
    va_start(list, format);
    vsnprintf(line + length, sizeof(Line) - length, format, list);
    va_end(list);
}

// In front of number i: a bar between rows, else a space.
static const char* between(int i, int row) { return !i ? "" : row > 1 && i % row == 0 ? " | " : " "; }

static void print_outputs(const char* label, const Case* c, const Report* r, int at) {
    Line line = "";
    int row = 0;
    for (int k = c->args - 1; k >= 0; k--) if (is_output(&c->arg[k])) row = c->arg[k].row;
    for (const Output* o = r->output; o < r->output + r->count; o++) {
        double x = o->value;
        if (o->at != at) continue;
        add(line, "%s", between(o->index, row));
        if (o->unset == UNTOUCHED) add(line, "(not set)");
        else if (x == (double)INT_MIN) add(line, "(nothing)");
        else if (isnan(x)) add(line, "NaN");
        else if (x == floor(x) && fabs(x) < 1e9) add(line, "%.0f", x == 0.0 ? 0.0 : x);
        else add(line, fabs(x) < 1e6 ? "%.4f" : "%.4g", x);
    }
    print_field(label, "%s", line);
}

// An input of the generator: all its arguments by name.
static void print_case(const Case* c) {
    Line line = "";
    for (int k = 0; k < c->args; k++) {
        const Arg* a = &c->arg[k];
        if (is_output(a)) continue;
        add(line, "%s%s", *line ? "; " : "", a->name);
        for (int i = 0; i < a->n; i++) {
            if (a->kind == TEXTS_IN) add(line, "%s\"%s\"", i ? ", " : " ", a->text[i]);
            else add(line, "%s", i ? between(i, a->row) : " ");
            if (a->kind != TEXTS_IN) add(line, isnan(a->value[i]) ? "NaN" : "%.6g", a->value[i]);
        }
    }
    print_field("given", "%s", line);
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

static const struct { const char *word, *happened; } states[] = {
    [RIGHT] = {"ok", NULL}, [WRONG] = {"WRONG", NULL}, [TO_DO] = {"TO DO", NULL},
    [MISSING] = {"MISSING", NULL}, [UNSET] = {"WRONG", NULL}, [CRASHED] = {"CRASHED", NULL},
    [ENDLESS] = {"ENDLESS",
        "not done after half a second: a loop that never ends? Look at what should stop it"},
    [ENDED] = {"WRONG", "the function ended the whole program: use return, not exit()"},
    [READ_OUTSIDE] = {"WRONG", "a number was read from outside of an array (there stands NaN): what is the "
                               "smallest and the largest index?"},
    [WROTE_OUTSIDE] = {"WRONG", "wrote to %s[%d]; %s has %d numbers, %s[0] to %s[%d]"},
    [CHANGED_INPUT] = {"WRONG", "changed its input: %s[%d] has another value than before. Write to the "
                                "output only"}};

static const char* name_of_signal(int s) {
    return s == SIGSEGV || s == SIGBUS ? "a segmentation fault: an index far outside of its array, a pointer "
                                         "that is NULL, or a function that calls itself without end"
           : s == SIGFPE  ? "a whole number was divided by 0"
           : s == SIGABRT ? "the C library stopped it (abort), as it does when its memory was overwritten"
           : s == SIGXFSZ ? "it printed more than 16 MB"
           : s == SIGKILL ? "it was killed" : "it was stopped by a signal, or used more memory than it may";
}

static void print_what_happened(const Case* c, const Verdict* v) {
    const Arg* a = &c->arg[v->report.argument];
    const Output* at = &v->report.output[v->output];
    const char *format = states[v->state].happened, *name = a->name;
    if (v->state == CRASHED) print_field("happened", "%s", name_of_signal(v->signal));
    if (v->state == UNSET)
        print_field("happened", at->unset == UNTOUCHED
            ? "output number %d, counted from 0, was not set: does the loop reach it, in every case?"
            : "output number %d, counted from 0, was read before it was set. An output starts as NaN, and "
              "NaN + x stays NaN: set it with = before += or before it is read", at->index);
    if (format) print_field("happened", format, name, v->report.index, name, a->n, name, name, a->n - 1);
}

static void print_message(int number, const Exercise* e, const Verdict* v, const char* source, int hint) {
    static Case c;
    int by_hand = v->at < example_count(e), line = line_of(source, e->function);
    const char *value = e->example[v->at].right, *working = e->example[v->at].working;
    make_case(&c, e, v->at);
    printf("%d %s %s\n", number, states[v->state].word, e->name);
    if (hint && v->state == RIGHT) print_field("hint", "%s", e->hint);
    if (v->state == RIGHT) return;
    if (by_hand) print_field("given", "%s", e->example[v->at].given);
    else print_case(&c);
    if (v->state == WRONG || v->state == UNSET || v->state == READ_OUTSIDE)
        print_outputs("yours", &c, &v->report, v->at);
    if (by_hand) {
        const char* link = !working ? "" : strchr(value, ' ') ? "; " : " = ";
        print_field("by hand", "%s%s%s", value, link, working ? working : "");
    } else {
        print_outputs("right", &c, &v->right, v->at);
        print_field("note", "the example on paper came out right, this other input did not");
    }
    if (v->slip >= 0) print_field("the slip", "%s", v->what);
    print_what_happened(&c, v);
    char where[32] = "";
    if (line) snprintf(where, sizeof where, ", line %d", line);
    if (v->state == TO_DO) print_field("write", "%s() in %s%s", e->function, source, where);
    if (v->state == MISSING) print_field("write", "%s(), which is not in %s%s", e->function, source, where);
    print_field("read", "rl.c %s", e->read);
    if (hint) print_field("hint", "%s", e->hint);
}

// One line of the table of all, and the slip below it.
static void print_row(int number, const Exercise* e, const Verdict* v) {
    static Case c;
    make_case(&c, e, v->at);
    printf("%2d  %-8s  %s\n", number, states[v->state].word, e->name);
    if (v->slip >= 0) print_field("", "%s", v->what);
    print_what_happened(&c, v);
}

/* message.h - what a student reads: one exercise in a few lines, at most 80 columns wide. */
#include <stdarg.h>

// Columns of a text on a terminal: a Chinese character takes two.
static int width_of(const char* s, size_t n) {
    int width = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if ((c & 0xC0) != 0x80) width += c >= 0xE3 ? 2 : 1;
    }
    return width;
}

// "  label     text", wrapped at spaces.
static void print_field(const char* label, const char* text) {
    int column = printf("  %-*s", INDENT - 2, label);
    while (*text) {
        size_t n = strcspn(text, " ");
        int width = width_of(text, n);
        if (column > INDENT && column + 1 + width > COLUMNS) column = printf("\n%*s", INDENT, "") - 1;
        else if (column > INDENT) column += printf(" ");
        column += width;
        printf("%.*s", (int)n, text);
        text += n;
        while (*text == ' ') text++;
    }
    printf("\n");
}

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

static void add_outcome(Line* l, const Exercise* e, const Verdict* v, const Outcome* o) {
    static Case c;
    int row = 0;
    make_case(&c, e, v->at);
    for (int k = c.args - 1; k >= 0; k--)
        if (is_output(&c.arg[k])) row = c.arg[k].row;
    for (int i = 0; i < o->count; i++) {
        add(l, "%s", between(i, o->count, row));
        if (o->unset[i] == UNTOUCHED) add(l, "(not set)");
        else if (o->out[i] == (double)INT_MIN) add(l, "(nothing)");
        else add_value(l, o->out[i]);
    }
}

// An input of the generator: all its arguments by name.
static void add_case(Line* l, const Exercise* e, int which) {
    static Case c;
    make_case(&c, e, which);
    for (int k = 0; k < c.args; k++) {
        const Arg* a = &c.arg[k];
        if (is_output(a)) continue;
        add(l, "%s%s", l->length ? "; " : "", a->name);
        for (int i = 0; i < a->n; i++) {
            if (a->kind == TEXT_LIST || a->kind == TEXT) add(l, "%s\"%s\"", i ? ", " : " ", a->text[i]);
            else if (isnan(a->value[i])) add(l, "%sNaN", i ? between(i, a->n, a->row) : " ");
            else add(l, "%s%.6g", i ? between(i, a->n, a->row) : " ", a->value[i]);
        }
    }
}

// The line of `path` in which the function stands; 0 = nowhere.
static int line_of(const char* path, const char* function) {
    char line[1024];
    size_t n = strlen(function);
    FILE* file = path ? fopen(path, "r") : NULL;
    int found = 0;
    for (int i = 1; file && !found && fgets(line, sizeof line, file); i++) {
        const char* at = strstr(line, function);
        if (at && at > line && at[-1] == ' ' && at[n] == '(' && !isspace((unsigned char)line[0])) found = i;
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

static void print_what_happened(const Exercise* e, const Verdict* v) {
    static Case c;
    char text[512] = "";
    make_case(&c, e, v->at);
    const Report* r = &v->report;
    const Arg* a = &c.arg[r->argument];
    switch (v->state) {
    case CRASHED: snprintf(text, sizeof text, "%s", name_of_signal(v->signal)); break;
    case ENDLESS:
        snprintf(text, sizeof text,
                 "not done after half a second: a loop that never ends? Look at what should stop it");
        break;
    case ENDED:
        snprintf(text, sizeof text, "the function ended the whole program: use return, not exit()");
        break;
    case UNSET:
        snprintf(text, sizeof text,
                 r->outcome[v->at].unset[v->output] == UNTOUCHED
                     ? "output number %d, counted from 0, was not set: does the loop reach it, in every case?"
                     : "output number %d, counted from 0, was read before it was set. An output starts as "
                       "NaN, and NaN + x stays NaN: "
                       "set it with = before += or before it is read",
                 v->output);
        break;
    case READ_OUTSIDE:
        snprintf(text, sizeof text,
                 "a number was read from outside of an array (there stands NaN): what is the smallest "
                 "and the largest index?");
        break;
    case WROTE_OUTSIDE:
        snprintf(text, sizeof text, "wrote to %s[%d]; %s has %d numbers, %s[0] to %s[%d]", a->name, r->index,
                 a->name, a->n, a->name, a->name, a->n - 1);
        break;
    case CHANGED_INPUT:
        snprintf(text, sizeof text,
                 "changed its input: %s[%d] has another value than before. Write to the output only", a->name,
                 r->index);
        break;
    default: break;
    }
    if (text[0]) print_field("happened", text);
}

static void print_message(int number, const Exercise* e, const Verdict* v, const char* source, int hint) {
    Line given = {0}, right = {0}, yours = {0}, where = {0}, read = {0};
    int by_hand = v->at < example_count(e), line = line_of(source, e->function);
    printf("%d %s %s\n", number, state_words[v->state], e->name);
    if (hint && v->state == RIGHT) print_field("hint", e->hint);
    if (v->state == RIGHT) return;
    if (by_hand) add(&given, "%s", e->example[v->at].given);
    else add_case(&given, e, v->at);
    print_field("given", given.text);
    if (v->state == WRONG || v->state == UNSET || v->state == READ_OUTSIDE) {
        add_outcome(&yours, e, v, &v->report.outcome[v->at]);
        print_field("yours", yours.text);
    }
    if (by_hand) {
        const char *value = e->example[v->at].right, *working = e->example[v->at].working;
        add(&right, "%s", value);
        if (working) add(&right, "%s%s", strchr(value, ' ') ? "; " : " = ", working);
        print_field("by hand", right.text);
    } else {
        add_outcome(&right, e, v, &v->right.outcome[v->at]);
        print_field("right", right.text);
        print_field("note", "the example on paper came out right, this other input did not");
    }
    if (v->slip >= 0) print_field("the slip", e->slip[v->slip].what);
    print_what_happened(e, v);
    if (v->state == TO_DO || v->state == MISSING) {
        add(&where, "%s%s%s", e->function, v->state == MISSING ? "(), which is not in " : "() in ",
            source ? source : "your file");
        if (line) add(&where, ", line %d", line);
        print_field("write", where.text);
    }
    add(&read, "rl.c %s", e->read);
    print_field("read", read.text);
    if (hint) print_field("hint", e->hint);
}

// One line of the table of all, and the slip below it.
static void print_row(int number, const Exercise* e, const Verdict* v) {
    printf("%2d  %-8s  %s\n", number, state_words[v->state], e->name);
    if (v->slip >= 0) print_field("", e->slip[v->slip].what);
    print_what_happened(e, v);
}

/* message.h - what a student reads: one exercise in a few lines, at most 80 columns wide. */

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

static void add(Line* l, const char* text) {
    int n = snprintf(l->text + l->length, sizeof l->text - l->length, "%s", text);
    l->length += (size_t)n < sizeof l->text - l->length ? (size_t)n : sizeof l->text - 1 - l->length;
}

static void add_value(Line* l, double x) {
    char text[40];
    if (isnan(x)) snprintf(text, sizeof text, "NaN");
    else if (x == floor(x) && fabs(x) < 1e9) snprintf(text, sizeof text, "%.0f", x == 0.0 ? 0.0 : x);
    else snprintf(text, sizeof text, fabs(x) < 1e6 ? "%.4f" : "%.4g", x);
    add(l, text);
}

static void add_inputs(Line* l, const double* x, int n, int row) {
    for (int i = 0; i < n; i++) {
        char text[40];
        if (i) add(l, row > 1 && row < n && i % row == 0 ? " | " : " ");
        snprintf(text, sizeof text, isnan(x[i]) ? "NaN" : "%.6g", x[i]);
        add(l, text);
    }
}

// Numbers in a row of the outputs, for the bars between rows.
static int row_of(const Case* c) {
    for (int k = 0; k < c->args; k++)
        if (is_output(&c->arg[k])) return c->arg[k].row;
    return 0;
}

static void add_outcome(Line* l, const Exercise* e, const Verdict* v, const Outcome* o) {
    static Case c;
    int row;
    make_case(&c, e, v->at);
    row = row_of(&c);
    for (int i = 0; i < o->count; i++) {
        if (i) add(l, row > 1 && row < o->count && i % row == 0 ? " | " : " ");
        if (o->unset[i] == UNTOUCHED) add(l, "(not set)");
        else if (o->out[i] == (double)INT_MIN) add(l, "(nothing)");
        else add_value(l, o->out[i]);
    }
}

// An input of the generator: all its arguments by name.
static void add_case(Line* l, const Exercise* e, int which) {
    static Case c;
    const char* between = "";
    make_case(&c, e, which);
    for (int k = 0; k < c.args; k++) {
        const Arg* a = &c.arg[k];
        if (is_output(a)) continue;
        add(l, between);
        between = "; ";
        add(l, a->name);
        if (a->kind == TEXT_LIST || a->kind == TEXT)
            for (int i = 0; i < a->n; i++) {
                add(l, i ? ", \"" : " \"");
                add(l, a->text[i]);
                add(l, "\"");
            }
        else {
            add(l, " ");
            add_inputs(l, a->value, a->n, a->row);
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

static void print_given(const Exercise* e, const Verdict* v) {
    Line given = {0};
    if (v->at < example_count(e)) add(&given, e->example[v->at].given);
    else add_case(&given, e, v->at);
    print_field("given", given.text);
}

static void print_right(const Exercise* e, const Verdict* v) {
    Line right = {0};
    if (v->at < example_count(e)) {
        add(&right, e->example[v->at].right);
        if (e->example[v->at].working) {
            add(&right, strchr(e->example[v->at].right, ' ') ? "; " : " = ");
            add(&right, e->example[v->at].working);
        }
        print_field("by hand", right.text);
    } else {
        add_outcome(&right, e, v, &v->right.outcome[v->at]);
        print_field("right", right.text);
        print_field("note", "the example on paper came out right, this other input did not");
    }
}

static void print_message(int number, const Exercise* e, const Verdict* v, const char* source, int hint) {
    printf("%d %s %s\n", number, state_words[v->state], e->name);
    if (v->state != RIGHT) {
        Line where = {0}, read = {0}, yours = {0};
        char text[64];
        print_given(e, v);
        if (v->state == WRONG || v->state == UNSET || v->state == READ_OUTSIDE) {
            add_outcome(&yours, e, v, &v->report.outcome[v->at]);
            print_field("yours", yours.text);
        }
        print_right(e, v);
        if (v->slip >= 0) print_field("the slip", e->slip[v->slip].what);
        print_what_happened(e, v);
        int line = line_of(source, e->function);
        if (v->state == TO_DO || v->state == MISSING) {
            add(&where, e->function);
            add(&where, v->state == MISSING ? "(), which is not in " : "() in ");
            add(&where, source ? source : "your file");
            if (line) {
                snprintf(text, sizeof text, ", line %d", line);
                add(&where, text);
            }
            print_field("write", where.text);
        }
        add(&read, "rl.c ");
        add(&read, e->read);
        print_field("read", read.text);
    }
    if (hint) print_field("hint", e->hint);
}

// One line of the table of all, and the slip below it.
static void print_row(int number, const Exercise* e, const Verdict* v) {
    printf("%2d  %-8s  %s\n", number, state_words[v->state], e->name);
    if (v->slip >= 0) print_field("", e->slip[v->slip].what);
    print_what_happened(e, v);
}

// golden.h - a text that the program makes, against the file that a person has read. Words must be equal,
// numbers nearly: half a unit in their last printed digit, or 1e-3 relative, so that another compiler may
// round differently.

// A number with its printed precision: "0.1875," -> 0.1875 and 0.5e-4. The punctuation around it is skipped.
// 0 = no number.
static int printed_number(const char* word, double* value, double* half_unit) {
    word += strspn(word, "([,:=<>");
    char* end;
    *value = strtod(word, &end);
    if (end == word || end[strspn(end, ".,;:)]%s")]) return 0;
    const char* point = memchr(word, '.', (size_t)(end - word));
    const char* e = memchr(word, 'e', (size_t)(end - word));
    int decimals = point ? (int)((e ? e : end) - point) - 1 : 0;
    *half_unit = 0.5 * pow(10.0, (e ? atof(e + 1) : 0.0) - decimals);
    return 1;
}

static int same_word(const char* a, const char* b) {
    double x, y, u, v;
    if (!strcmp(a, b)) return 1;
    if (!printed_number(a, &x, &u) || !printed_number(b, &y, &v)) return 0;
    return fabs(x - y) <= 1e-3 * fabs(y) + 2.01 * fmax(u, v);
}

// The learning curves of CartPole are chaotic: one rounding more or less, and another episode falls. Only the
// words of these lines are compared.
static int only_words(const char* line) {
    return strstr(line, "steps of REINFORCE") != NULL;
}

// What compare() says of two lines without their newlines, both shorter than a buffer.
static int same_line(const char* found, const char* expected, int words) {
    char x[4096], y[4096], *save_x, *save_y;
    double value, unit;
    int same = 1;
    snprintf(x, sizeof x, "%s", found);
    snprintf(y, sizeof y, "%s", expected);
    char* p = strtok_r(x, " ", &save_x);
    char* q = strtok_r(y, " ", &save_y);
    while (p && q) {
        int numbers = words && printed_number(p, &value, &unit) && printed_number(q, &value, &unit);
        same &= numbers || same_word(p, q);
        p = strtok_r(NULL, " ", &save_x);
        q = strtok_r(NULL, " ", &save_y);
    }
    return same && !p && !q;
}

static void compare(const char* path, const char* found) {
    if (!file_exists(path)) {
        CHECK(!"the golden file is there; run the tests from the project's folder");
        return;
    }
    Text golden = read_file(path);
    int line = 1, broken = 0;
    const char *a = found, *b = golden.data;
    while ((*a || *b) && broken < 5) {
        char now[4096], was[4096];
        size_t m = strcspn(a, "\n"), n = strcspn(b, "\n");
        CHECK(m < sizeof now && n < sizeof was);
        snprintf(now, sizeof now, "%.*s", (int)m, a);
        snprintf(was, sizeof was, "%.*s", (int)n, b);
        if (!same_line(now, was, only_words(now))) {
            printf("  %s line %d\n    was  %s\n    now  %s\n", path, line, was, now);
            broken++;
        }
        a += m + (a[m] == '\n');
        b += n + (b[n] == '\n');
        line++;
    }
    CHECK(broken == 0);
    text_free(&golden);
}

// Is the line `words`, but for the number of spaces? "*" stands for any word; numbers may differ by half a
// unit of their last digit.
static int is_row(const char* line, const char* words) {
    char x[400], y[400], *save_x, *save_y;
    snprintf(x, sizeof x, "%s", line);
    snprintf(y, sizeof y, "%s", words);
    char *p = strtok_r(x, " ", &save_x), *q = strtok_r(y, " ", &save_y);
    while (p && q && (!strcmp(q, "*") || same_word(p, q))) {
        p = strtok_r(NULL, " ", &save_x);
        q = strtok_r(NULL, " ", &save_y);
    }
    return !p && !q;
}

// Some line of the text has these words.
#define ROW(text, ...) check_row(__LINE__, text, __VA_ARGS__)
static void check_row(int line, const char* text, const char* format, ...) {
    char words[400], row[400];
    va_list list;
    va_start(list, format);
    vsnprintf(words, sizeof words, format, list);
    va_end(list);
    for (const char* s = text; *s; s += strcspn(s, "\n"), s += *s == '\n') {
        snprintf(row, sizeof row, "%.*s", (int)strcspn(s, "\n"), s);
        if (is_row(row, words)) return;
    }
    check_broken++;
    printf("  %s:%d: no line '%s' in:\n%s\n", __FILE__, line, words, text);
}

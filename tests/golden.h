// golden.h - a text that the program makes, against the file that a person has read, or one line of it. Words
// must be equal, numbers nearly: half a unit in their last printed digit, or 1e-3 relative, so that another
// compiler may round differently.

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

// ANY_NUMBER: a number may be any other. WITH_STARS: "*" expects any word.
enum { NEARLY, ANY_NUMBER, WITH_STARS };
static int same_word(const char* found, const char* expected, int how) {
    double x, y, u, v;
    if (!strcmp(found, expected) || (how == WITH_STARS && !strcmp(expected, "*"))) return 1;
    if (!printed_number(found, &x, &u) || !printed_number(expected, &y, &v)) return 0;
    return how == ANY_NUMBER || fabs(x - y) <= 1e-3 * fabs(y) + 2.01 * fmax(u, v);
}

// Do two lines have the same words, but for the number of spaces? Both are shorter than a buffer.
static int same_words(const char* found, const char* expected, int how) {
    char x[4096], y[4096], *save_x, *save_y;
    snprintf(x, sizeof x, "%s", found);
    snprintf(y, sizeof y, "%s", expected);
    char *p = strtok_r(x, " ", &save_x), *q = strtok_r(y, " ", &save_y);
    while (p && q && same_word(p, q, how)) {
        p = strtok_r(NULL, " ", &save_x);
        q = strtok_r(NULL, " ", &save_y);
    }
    return !p && !q;
}

// The first line of *text; *text moves behind it.
static void take_line(char line[4096], const char** text) {
    int n = (int)strcspn(*text, "\n");
    CHECK(n < 4096);
    snprintf(line, 4096, "%.*s", n, *text);
    *text += n + ((*text)[n] == '\n');
}

// The learning curves of CartPole are chaotic: one rounding more or less, and another episode falls. Only the
// words of these lines are compared.
static void compare(const char* path, const char* found) {
    Text golden = read_file(path);
    const char* expected = golden.data;
    char now[4096], was[4096];
    for (int line = 1, broken = 0; (*found || *expected) && broken < 5; line++) {
        take_line(now, &found);
        take_line(was, &expected);
        if (same_words(now, was, strstr(now, "steps of REINFORCE") ? ANY_NUMBER : NEARLY)) continue;
        BROKEN("%s line %d\n    was  %s\n    now  %s\n", path, line, was, now);
        broken++;
    }
    text_free(&golden);
}

// Some line of the text has these words; "*" stands for any word.
#define ROW(text, ...) check_row(__LINE__, text, __VA_ARGS__)
static void check_row(int line, const char* text, const char* format, ...) {
    char words[400], row[4096];
    va_list list;
    va_start(list, format);
    vsnprintf(words, sizeof words, format, list);
    va_end(list);
    for (const char* s = text; *s;) {
        take_line(row, &s);
        if (same_words(row, words, WITH_STARS)) return;
    }
    BROKEN_AT(__FILE__, line, "no line '%s' in:\n%s\n", words, text);
}

// The line of text that begins with these words, behind any spaces; NULL = there is none.
static const char* line_of(const char* text, const char* words) {
    for (; text && *text; text = strchr(text, '\n')) {
        text += strspn(text, " \n");
        if (!strncmp(text, words, strlen(words))) return text;
    }
    return NULL;
}

// The last number of a line.
static double last_number(const char* line) {
    const char *p = line, *end = line ? line + strcspn(line, "\n") : NULL;
    double value = NAN;
    char* after;
    for (; p < end; p = after > p ? after : p + 1) {
        double found = strtod(p, &after);
        if (after > p) value = found;
    }
    return value;
}

// The lessons and the claims, against what they printed when they were last read by a person (tests/golden).
// Words must be equal, numbers nearly: half a unit in their last printed digit, or 1e-3 relative, so that
// another compiler may round differently. `make golden` writes the files anew, to be read in the diff.
#include "chapters.h"

// What `print` writes to stdout.
static Text captured(void (*print)(void)) {
    Text text = {0};
    char block[4096];
    size_t n;
    FILE* file = tmpfile();
    if (!file) fail(1, "no temporary file for the test");
    fflush(stdout);
    int screen = dup(1);
    dup2(fileno(file), 1);
    print();
    fflush(stdout);
    dup2(screen, 1), close(screen);
    rewind(file);
    text_append(&text, "", 0);
    while ((n = fread(block, 1, sizeof block, file)) > 0) text_append(&text, block, n);
    fclose(file);
    return text;
}

// A number with its printed precision: "0.1875," -> 0.1875 and 0.5e-4. The punctuation around it is skipped.
// 0 = no number.
static int printed_number(const char* word, double* value, double* half_unit) {
    word += strspn(word, "([,:=<>");
    char* end;
    *value = strtod(word, &end);
    if (end == word || end[strspn(end, ".,;:)]%s")]) return 0;
    const char *point = memchr(word, '.', (size_t)(end - word)), *e = memchr(word, 'e', (size_t)(end - word));
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
static int only_words(const char* line) { return strstr(line, "steps of REINFORCE") != NULL; }

static void compare(const char* path, const char* found) {
    if (!file_exists(path)) {
        CHECK(!"the golden file is there; run the tests from the project's folder");
        return;
    }
    Text golden = read_file(path);
    int line = 1, broken = 0;
    const char *a = found, *b = golden.data;
    while ((*a || *b) && broken < 5) {
        char x[2048], y[2048], first[2048];
        size_t m = strcspn(a, "\n"), n = strcspn(b, "\n");
        snprintf(x, sizeof x, "%.*s", (int)m, a), snprintf(y, sizeof y, "%.*s", (int)n, b), strcpy(first, x);
        char *save_x, *save_y, *p = strtok_r(x, " ", &save_x), *q = strtok_r(y, " ", &save_y);
        double value, unit;
        int same = 1;
        while (p && q) {
            same &= same_word(p, q) || (only_words(first) && printed_number(p, &value, &unit) &&
                                        printed_number(q, &value, &unit));
            p = strtok_r(NULL, " ", &save_x), q = strtok_r(NULL, " ", &save_y);
        }
        if (!same || p || q) {
            printf("  %s line %d\n    was  %.*s\n    now  %s\n", path, line, (int)n, b, first);
            broken++;
        }
        a += m + (a[m] == '\n'), b += n + (b[n] == '\n'), line++;
    }
    CHECK(broken == 0);
    text_free(&golden);
}

static void write_golden(const char* name, const Text* text) {
    char file[64];
    snprintf(file, sizeof file, "%s.txt", name);
    write_file("tests/golden", file, text);
}

static void all_lessons(void) { command_lesson(1, (char*[]){(char*)"all"}); }
static void all_claims(void) { command_claims(0, NULL); }
static void claims_markdown(void) { command_claims(1, (char*[]){(char*)"--markdown"}); }

static void golden_lessons(void) {
    Text text = captured(all_lessons);
    compare("tests/golden/lessons.txt", text.data);
    text_free(&text);
}

static void golden_claims(void) {
    Text text = captured(all_claims);
    compare("tests/golden/claims.txt", text.data);
    text_free(&text);
}

// docs/claims.md is made from the same table.
static void claims_document(void) {
    Text text = captured(claims_markdown);
    compare("docs/claims.md", text.data);
    text_free(&text);
}

// Everything fits 80 columns.
static void fits_a_terminal(void) {
    Text text[2] = {captured(all_lessons), captured(all_claims)};
    for (int i = 0; i < 2; i++)
        for (const char* line = text[i].data; *line;
             line += strcspn(line, "\n") + (line[strcspn(line, "\n")] == '\n')) {
            if (strcspn(line, "\n") <= 80) continue;
            CHECK(!"a line is longer than 80 characters");
            printf("    %.*s\n", (int)strcspn(line, "\n"), line);
        }
    text_free(&text[0]), text_free(&text[1]);
}

int main(int argc, char** argv) {
    if (argc > 1 && !strcmp(argv[1], "--write")) {
        Text lessons_text = captured(all_lessons), claims = captured(all_claims),
             document = captured(claims_markdown);
        write_golden("lessons", &lessons_text), write_golden("claims", &claims);
        write_file("docs", "claims.md", &document);
        return 0;
    }
    RUN(golden_lessons);
    RUN(golden_claims);
    RUN(claims_document);
    RUN(fits_a_terminal);
    return check_failed != 0;
}

// The lessons as a student meets them: question, formula and symbols first, a Take away last, against what
// they printed when they were last read by a person (tests/golden). `make golden` writes the file anew, to be
// read in the diff.

static Text all_lessons(int more) {
    Text text = {0};
    text_printf(&text, "%s", PRINTED(command_lesson(1 + more, (char*[]){(char*)"all", (char*)"--more"})));
    return text;
}

static void check_form(const char* text) {
    const char* question = line_of(text, "Question ");
    const char* formula = line_of(question, "Formula ");
    const char* symbols = line_of(formula, "Symbols ");
    const char* away = line_of(symbols, "Take away: ");
    CHECK(question && formula && symbols && away);
    CHECK(question && question - text < 100);                  // behind the title, nothing else
    CHECK(away && !strstr(away, "\n\n"));                      // nothing comes after it
    CHECK(longest_line(text) <= 80);
}

// Cuts a text where the next lesson begins, behind two empty lines; returns the one in front, or NULL.
static char* next_lesson(char** rest) {
    char *lesson = *rest, *cut = lesson ? strstr(lesson, "\n\n\nLESSON ") : NULL;
    if (cut) cut[1] = 0;
    *rest = cut ? cut + 3 : NULL;
    return lesson;
}

// With --more lessons 7 and 9 say more, the others the same. A number alone prints its part.
static void lessons_have_one_form(void) {
    Text plain = all_lessons(0), more = all_lessons(1);
    char *plain_rest = plain.data, *more_rest = more.data;
    compare("tests/golden/lessons.txt", plain.data);
    for (int n = 1; n <= LESSONS; n++) {
        char title[20], *short_form = next_lesson(&plain_rest), *long_form = next_lesson(&more_rest);
        snprintf(title, sizeof title, "LESSON %d. ", n);
        CHECK(short_form && long_form);
        if (!short_form || !long_form) break;
        CHECK(!strncmp(short_form, title, strlen(title)) && atoi(lessons[n - 1].name) == n);
        check_form(short_form);
        check_form(long_form);
        if (n == 7 || n == 9) CHECK(strlen(long_form) > strlen(short_form));
        else CHECK_TEXT(long_form, short_form);
        if (n == 7) CHECK_TEXT(COMMAND(command_lesson, "7", "--more")->out, long_form);
        if (n == 1 || n == 12) CHECK_TEXT(COMMAND(command_lesson, lessons[n - 1].name)->out, short_form);
    }
    CHECK(!plain_rest && !more_rest);
    text_free(&plain), text_free(&more);
}

static void write_lessons(void) {
    Text text = all_lessons(0);
    write_file("tests/golden", "lessons.txt", &text);
    text_free(&text);
}

static void test_golden(void) { RUN(lessons_have_one_form); }

// The lessons, against what they printed when they were last read by a person (tests/golden). `make golden`
// writes the file anew, to be read in the diff.

static Text all_lessons(void) {
    Capture c = capture_begin();
    command_lesson(1, (char*[]){(char*)"all"});
    return capture_end(&c);
}

static void golden_lessons(void) {
    Text text = all_lessons();
    compare("tests/golden/lessons.txt", text.data);
    CHECK(longest_line(text.data) <= 80);
    text_free(&text);
}

static void write_lessons(void) {
    Text text = all_lessons();
    write_file("tests/golden", "lessons.txt", &text);
    text_free(&text);
}

static void test_golden(void) { RUN(golden_lessons); }

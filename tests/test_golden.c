// The lessons, against what they printed when they were last read by a person (tests/golden). `make golden` writes
// the file anew, to be read in the diff.
#include "chapters.h"
#include "golden.h"

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

static void all_lessons(void) { command_lesson(1, (char*[]){(char*)"all"}); }

static void golden_lessons(void) {
    Text text = captured(all_lessons);
    compare("tests/golden/lessons.txt", text.data);
    text_free(&text);
}

// Everything fits 80 columns.
static void fits_a_terminal(void) {
    Text text = captured(all_lessons);
    for (const char* line = text.data; *line;) {
        int length = (int)strcspn(line, "\n");
        if (length > 80) {
            CHECK(!"a line is longer than 80 characters");
            printf("    %.*s\n", length, line);
        }
        line += length + (line[length] == '\n');
    }
    text_free(&text);
}

int main(int argc, char** argv) {
    if (argc > 1 && !strcmp(argv[1], "--write")) {
        Text text = captured(all_lessons);
        write_file("tests/golden", "lessons.txt", &text);
        text_free(&text);
        return 0;
    }
    RUN(golden_lessons);
    RUN(fits_a_terminal);
    return check_failed != 0;
}

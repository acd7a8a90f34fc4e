// commands.h - rl.c for a test that runs its commands as the command line does: each in a process of its own,
// whose exit status and output are looked at.
#define _XOPEN_SOURCE 700
#define _DARWIN_C_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// fail() ends a process without exit(): what it leaves in memory is no leak.
_Noreturn static void end_here(int status) {
    fflush(NULL);
    _exit(status);
}
// progress() asks once per update whether stderr is a terminal; there the test presses Ctrl-C.
static int press_at, updates_seen;   // during update number press_at = 1, 2, ... of this process; 0 = never
static int press_here(int file) {
    if (file == 2 && ++updates_seen == press_at) raise(SIGINT);
    return 0;
}
#define exit(status) end_here(status)
#define isatty(file) press_here(file)
#include "chapters.h"
#undef exit
#undef isatty

static char folder[] = "/tmp/test_rl_XXXXXX";   // for the test's files

static void open_folder(void) {
    memset(folder + strlen(folder) - 6, 'X', 6);
    if (!mkdtemp(folder)) fail(1, "cannot make a directory for the test's files");
}

static void remove_folder(void) {
    char command[PATH_SIZE + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK(system(command) == 0);
}

// folder/name; the last few stay valid
static const char* in_folder(const char* name) {
    static char path[4][PATH_SIZE];
    static int next;
    join_path(path[next = (next + 1) % 4], folder, name);
    return path[next];
}

static const char* put(const char* name, const char* content) {
    Text text = {0};
    text_append(&text, content, strlen(content));
    write_file(folder, name, &text);
    text_free(&text);
    return in_folder(name);
}

static int same_files(const char* a, const char* b) {
    Text x = read_file(in_folder(a)), y = read_file(in_folder(b));
    int same = x.length == y.length && !memcmp(x.data, y.data, x.length);
    text_free(&x), text_free(&y);
    return same;
}

// A text with 'quotes' for "quotes", as JSON wants them; the last few stay valid.
static const char* json(const char* text) {
    static char quoted[4][1200];
    static int next;
    char* out = quoted[next = (next + 1) % 4];
    snprintf(out, sizeof *quoted, "%s", text);
    for (char* s = out; (s = strchr(s, '\'')) != NULL;) *s = '"';
    return out;
}

// "--NAME=FOLDER/FILE"; the last few stay valid
static const char* option(const char* name, const char* file) {
    static char text[32][PATH_SIZE + 32];
    static int next;
    snprintf(text[next = (next + 1) % 32], sizeof text[0], "--%s=%s", name, in_folder(file));
    return text[next];
}

static Text drain(FILE* file) {
    Text text = {0};
    char block[4096];
    rewind(file);
    text_append(&text, "", 0);
    for (size_t n; (n = fread(block, 1, sizeof block, file)) > 0;) text_append(&text, block, n);
    fclose(file);
    return text;
}

// What a function prints, between capture_begin() and capture_end(); the text is to be freed.
typedef struct { FILE* file; int out; } Capture;

static Capture capture_begin(void) {
    Capture c = {tmpfile(), 0};
    if (!c.file) fail(1, "no temporary file for the test");
    fflush(stdout);
    c.out = dup(1);
    dup2(fileno(c.file), 1);
    return c;
}

static Text capture_end(Capture* c) {
    fflush(stdout);
    dup2(c->out, 1);
    close(c->out);
    return drain(c->file);
}

static int longest_line(const char* text) {
    int longest = 0;
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
        longest = max_int(longest, (int)strcspn(text, "\n"));
    return longest;
}

// What a command did in a process of its own: exit status (1000 + signal), stdout, stderr.
typedef struct { int status; char out[8192], err[2048]; } Ran;

#define COMMAND(command, ...) run_command(command, (const char*[]){__VA_ARGS__, NULL})
static const Ran* run_command(int (*command)(int argc, char** argv), const char* const* words) {
    static Ran ran;
    char* argv[32];
    int argc = 0, status = 0;
    FILE *out = tmpfile(), *err = tmpfile();
    if (!out || !err) fail(1, "no temporary file for the test");
    for (; words[argc]; argc++) argv[argc] = copy_text(words[argc]);
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) fail(1, "no process for the test");
    if (child == 0) {
        dup2(fileno(out), 1), dup2(fileno(err), 2);
        end_here(command(argc, argv));
    }
    waitpid(child, &status, 0);
    while (argc) free(argv[--argc]);
    Text said = drain(out), complained = drain(err);
    ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    snprintf(ran.out, sizeof ran.out, "%s", said.data);
    snprintf(ran.err, sizeof ran.err, "%s", complained.data);
    text_free(&said), text_free(&complained);
    return &ran;
}

static void check_words(int line, const char* text, const char* words, int wanted) {
    if ((strstr(text, words) != NULL) == wanted) return;
    BROKEN_AT(__FILE__, line, "\"%s\" %s in:\n%s\n", words, wanted ? "is not" : "should not be", text);
}
#define SAYS(text, words)     check_words(__LINE__, text, words, 1)
#define SAYS_NOT(text, words) check_words(__LINE__, text, words, 0)

// status 2 and one sentence with these words
static void check_refusal(int line, const Ran* ran, const char* words) {
    const char* newline = strchr(ran->err, '\n');
    int sentence = !strncmp(ran->err, "error: ", 7) && newline && !newline[1];
    if (ran->status == 2 && sentence && strstr(ran->err, words)) return;
    BROKEN_AT(__FILE__, line, "status %d, expected 2 and \"%s\": %s\n", ran->status, words, ran->err);
}
#define REFUSED(ran, words) check_refusal(__LINE__, ran, words)

// status 0, or what was said
static void check_works(int line, const Ran* ran) {
    if (ran->status == 0) return;
    BROKEN_AT(__FILE__, line, "status %d: %s\n", ran->status, ran->err);
}
#define WORKS(ran) check_works(__LINE__, ran)

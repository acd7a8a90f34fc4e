// commands.h - rl.c for a test that runs its commands as the command line does: each in a process of its own,
// whose exit status and output are looked at.
#define _XOPEN_SOURCE 700
#define _DARWIN_C_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// fail() ends a process without exit(): what it leaves in memory is no leak. While trapping is 1 it goes back
// to setjmp(trap) instead, so that one process can try thousands of endings.
static jmp_buf trap;
static int trapping, trapped;        // trapped: the status with which it wanted to end
_Noreturn static void end_here(int status) {
    trapped = status;
    if (trapping) longjmp(trap, 1);
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

// A command of the shell, written as for printf() and run in the test's folder. 1 = it ended with status 0.
static int shell(const char* format, ...) {
    char line[PATH_SIZE];
    va_list values;
    int n = snprintf(line, sizeof line, "cd '%s' && ", folder);
    va_start(values, format);
    vsnprintf(line + n, sizeof line - (size_t)n, format, values);
    va_end(values);
    fflush(NULL);
    return system(line) == 0;
}

static void remove_folder(void) { CHECK(shell("rm -rf '%s'", folder)); }

// folder/name; the last few stay valid
static const char* in_folder(const char* name) {
    static char path[8][PATH_SIZE];
    static int next;
    join_path(path[next = (next + 1) % 8], folder, name);
    return path[next];
}

static const char* put(const char* name, const char* content) {
    const char* path = in_folder(name);
    FILE* file = fopen(path, "wb");
    if (!file || fputs(content, file) < 0 || fclose(file)) fail(1, "cannot write %s", path);
    return path;
}

static int same_files(const char* a, const char* b) { return shell("cmp -s '%s' '%s'", a, b); }

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

// What a call prints, between print_begin() and print_end(); the last four texts stay valid.
#define PRINTED(call) (print_begin(), (void)(call), print_end())
static FILE* printed;
static int screen;
static void print_begin(void) {
    printed = tmpfile();
    if (!printed) fail(1, "no temporary file for the test");
    fflush(stdout);
    screen = dup(1);
    dup2(fileno(printed), 1);
}

static const char* print_end(void) {
    static Text text[4];
    static int next;
    fflush(stdout);
    dup2(screen, 1);
    close(screen);
    text_free(&text[next = (next + 1) % 4]);
    return (text[next] = drain(printed)).data;
}

static int longest_line(const char* text) {
    int longest = 0;
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
        longest = max_int(longest, (int)strcspn(text, "\n"));
    return longest;
}

// What was done in a process of its own: exit status (1000 + signal), stdout, stderr.
typedef struct { int status; char out[8192], err[8192]; } Ran;
typedef struct { pid_t id; FILE *out, *err; } Child;

static Child begin_child(void) {     // as fork(): in the child the id is 0
    Child c = {0, tmpfile(), tmpfile()};
    if (!c.out || !c.err) fail(1, "no temporary file for the test");
    fflush(NULL);
    c.id = fork();
    if (c.id < 0) fail(1, "no process for the test");
    if (c.id == 0) dup2(fileno(c.out), 1), dup2(fileno(c.err), 2);
    return c;
}

static const Ran* end_child(Child c) {
    static Ran ran;
    int status = 0;
    waitpid(c.id, &status, 0);
    Text said = drain(c.out), complained = drain(c.err);
    ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    snprintf(ran.out, sizeof ran.out, "%s", said.data);
    snprintf(ran.err, sizeof ran.err, "%s", complained.data);
    text_free(&said), text_free(&complained);
    return &ran;
}

#define COMMAND(command, ...) run_command(command, (const char*[]){__VA_ARGS__, NULL})
static const Ran* run_command(int (*command)(int argc, char** argv), const char* const* words) {
    char* argv[32];
    int argc = 0;
    for (; words[argc]; argc++) argv[argc] = copy_text(words[argc]);
    argv[argc] = NULL;
    Child child = begin_child();
    if (child.id == 0) end_here(command(argc, argv));
    while (argc) free(argv[--argc]);
    return end_child(child);
}

// each of these words stands in the text, none of them does
#define SAYS(text, ...)     check_words(__LINE__, text, 1, (const char*[]){__VA_ARGS__, NULL})
#define SAYS_NOT(text, ...) check_words(__LINE__, text, 0, (const char*[]){__VA_ARGS__, NULL})
static void check_words(int line, const char* text, int wanted, const char* const* words) {
    for (; *words; words++)
        if ((strstr(text, *words) != NULL) != wanted)
            BROKEN_AT(__FILE__, line, "\"%s\" %s in:\n%s\n", *words,
                      wanted ? "is not" : "should not be", text);
}

// one line, beginning with "error: "
static int is_sentence(const char* said) {
    const char* newline = strchr(said, '\n');
    return !strncmp(said, "error: ", 7) && newline && !newline[1] && newline - said > 20;
}

// this status and, if there are words, one sentence with them
static void check_ending(int line, const Ran* ran, int status, const char* words) {
    if (ran->status == status && (!*words || (is_sentence(ran->err) && strstr(ran->err, words)))) return;
    BROKEN_AT(__FILE__, line, "status %d, expected %d and \"%s\": %s\n", ran->status, status, words,
              ran->err);
}
#define REFUSED(ran, words) check_ending(__LINE__, ran, 2, words)
#define WORKS(ran)          check_ending(__LINE__, ran, 0, "")

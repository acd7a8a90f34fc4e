// parts.h - one program of many parts: a worksheet, a chapter, a layer. Each part runs in a process of its
// own, as many at a time as there are cores, and their pages are printed in the order of the list. A part
// that crashes is one more failure. With arguments only the parts so named run: ./build/all chapter_07

typedef struct { const char* name; void (*run)(void); } Part;
#define PART(name) {#name, test_##name}

// What the child process number i prints, and which it is.
typedef struct { FILE* page; pid_t child; } Running;

static Running begin_part(const Part* part) {
    Running r = {tmpfile(), 0};
    if (!r.page) fail(1, "no temporary file for the test");
    fflush(NULL);
    r.child = fork();
    if (r.child < 0) fail(1, "no process for the test");
    if (r.child > 0) return r;
    dup2(fileno(r.page), 1);
    set_threads(1);                  // a process that has used more threads cannot fork commands that do
    part->run();
    exit(check_failed != 0);
}

// Waits for a part and prints its page. Returns 1 when it failed.
static int end_part(const Part* part, Running* r) {
    int status = 0;
    char block[4096];
    waitpid(r->child, &status, 0);
    printf("# %s\n", part->name);
    rewind(r->page);
    for (size_t n; (n = fread(block, 1, sizeof block, r->page)) > 0;) fwrite(block, 1, n, stdout);
    fclose(r->page);
    if (WIFSIGNALED(status)) printf("FAIL %s: ended by signal %d\n", part->name, WTERMSIG(status));
    else if (WEXITSTATUS(status) > 1)
        printf("FAIL %s: ended with status %d\n", part->name, WEXITSTATUS(status));
    fflush(stdout);
    return status != 0;
}

static int run_parts(const Part* parts, int count, int argc, char** argv) {
    enum { MOST = 64 };
    Running running[MOST];
    int chosen[MOST], n = 0, begun = 0, failed = 0, cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 0; i < count && i < MOST; i++) {
        int wanted = argc < 2;
        for (int a = 1; a < argc; a++) wanted |= !strcmp(argv[a], parts[i].name);
        if (wanted) chosen[n++] = i;
    }
    if (!n) return printf("FAIL there is no part '%s'\n", argc > 1 ? argv[1] : ""), 1;
    for (int i = 0; i < n; i++) {
        for (; begun < n && begun < i + (cores > 1 ? cores : 1); begun++)
            running[begun] = begin_part(&parts[chosen[begun]]);
        failed |= end_part(&parts[chosen[i]], &running[i]);
    }
    return failed;
}

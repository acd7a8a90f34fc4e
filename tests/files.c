/* files.c - what train_gpt.c reads and writes: text and tokens, JSON, checkpoints, options, resumed runs
 *
 * Good input must come back bit for bit. Bad input must end in status 2 (or 1: a full disk) and one sentence
 * that names the place; it must never crash, and the checkpoint that was there before must be as it was.
 */
#define TRAIN_GPT_NO_MAIN
#define _XOPEN_SOURCE 700
#define _DARWIN_C_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Four calls of train_gpt.c come here: exit(), so that one process can try thousands of endings; isatty(),
// which progress() asks once per update: there the test presses Ctrl-C; fsync(), only counted; rename(), to
// be killed at.
static int in_child, trapping;
static int trapped;                  // the status with which fail() wanted to end, 0 = it did not want to
static jmp_buf trap;
static int press_at, updates_seen;   // Ctrl-C comes during update number press_at = 1, 2, ...; 0 = never
static int flushes, renames;
static int kill_at;                  // the process dies before rename number kill_at = 1, 2, ...; 0 = never

_Noreturn static void end_here(int status) {
    trapped = status;
    if (trapping) longjmp(trap, 1);
    fflush(NULL);
    if (in_child) _exit(status);     // no leak report: whoever fails leaves its memory to the system
    exit(status);
}

static int press_here(int file) {
    if (file == 2 && ++updates_seen == press_at) raise(SIGINT);
    return 0;
}

static int flush_here(int file) { return flushes++, file < 0; }
static int rename_here(const char* from, const char* to) {
    if (++renames == kill_at) _exit(137);
    return rename(from, to);
}
#define exit(status) end_here(status)
#define isatty(file) press_here(file)
#define fsync(file) flush_here(file)
#define rename(from, to) rename_here(from, to)
#include "../train_gpt.c"
#undef exit
#undef isatty
#undef fsync
#undef rename

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/wait.h>
#include "check.h"
#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

// ---- tools: endings, folders, small models

static pid_t begin_child(void) {     // as fork()
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) abort();
    in_child |= child == 0;
    return child;
}

static int status_of(pid_t child) {  // 1000 + signal if it was killed
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// What became of action(argument) in a process of its own: its status, its stderr.
typedef struct { int status; char said[10000]; } Ending;
static int aloud;                    // 1 = what it prints stands in Ending.said, too

static Ending ending_of(void (*action)(const char*), const char* argument) {
    Ending e = {0, ""};
    int ends[2];
    if (pipe(ends)) abort();
    pid_t child = begin_child();
    if (child == 0) {
        dup2(ends[1], 2), close(ends[0]), close(ends[1]);
        if (aloud) dup2(2, 1), setvbuf(stdout, NULL, _IONBF,
                                       0);   // run_training() ends without emptying a buffer
        else if (!freopen("/dev/null", "w", stdout)) _exit(99);
        action(argument);
        fflush(NULL);
        _exit(0);
    }
    close(ends[1]);
    FILE* said = fdopen(ends[0], "r");
    e.said[fread(e.said, 1, sizeof e.said - 1, said)] = 0;
    fclose(said);
    e.status = status_of(child);
    return e;
}

// one line, beginning with "error: "
static int is_sentence(const char* said) {
    const char* newline = strchr(said, '\n');
    return !strncmp(said, "error: ", 7) && newline && newline[1] == 0 && newline - said > 20;
}

// action(argument) must end with this status and a sentence that contains these words
#define ENDS(action, argument, status, words) check_ending(__LINE__, action, argument, status, words)
static void check_ending(int line, void (*action)(const char*), const char* argument, int status,
                         const char* words) {
    Ending e = ending_of(action, argument);
    if (e.status == status && (status == 0 || (is_sentence(e.said) && strstr(e.said, words)))) return;
    BROKEN_AT(__FILE__, line, "\"%.300s\"\n", argument);
    printf("    ended with status %d, expected %d and \"%s\"; it said: %s\n", e.status, status, words,
           *e.said ? e.said : "nothing\n");
}

// A test in a process of its own: what fail() leaves in memory there is no leak.
static void apart(void (*test)(void)) {
    pid_t child = begin_child();
    if (child == 0) {
        test();
        fflush(NULL);
        _exit(check_broken != 0);
    }
    CHECK(status_of(child) == 0);
}

static char root[PATH_SIZE];         // the folder of this test, removed at the end

static int remove_entry(const char* path, const struct stat* info, int type, struct FTW* place) {
    (void)info, (void)type, (void)place;
    return remove(path);
}
static void remove_folder(const char* path) { nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS); }

// root/name; eight of these can be in use at a time
static const char* in_root(const char* name) {
    static char path[8][PATH_SIZE + 256];
    static int next;
    next = (next + 1) % 8;
    snprintf(path[next], sizeof path[next], "%s/%s", root, name);
    return path[next];
}

static void write_bytes(const char* path, const char* how, const char* data, size_t size) {
    FILE* file = fopen(path, how);
    if (!file || fwrite(data, 1, size, file) != size || fclose(file)) abort();
}
static void put_file(const char* path, const char* data, size_t size) { write_bytes(path, "wb", data, size); }
static void put_text(const char* path, const char* text) { put_file(path, text, strlen(text)); }
static void put_back(const char* path, Text* was) {
    put_file(path, was->data, was->length);
    text_free(was);
}
static void copy_file(const char* to, const char* from) {
    Text text = read_file(from);
    put_back(to, &text);
}

// the first `from` in text becomes `to`
static Text replaced(const Text* text, const char* from, const char* to) {
    Text out = {0};
    size_t n = strlen(from), i = 0;
    while (i + n <= text->length && memcmp(text->data + i, from, n)) i++;
    int found = i + n <= text->length;
    CHECK(found);
    if (!found) printf("    it is: %s\n", from);
    text_append(&out, text->data, found ? i : text->length);
    if (!found) return out;
    text_append(&out, to, strlen(to));
    text_append(&out, text->data + i + n, text->length - i - n);
    return out;
}

// In a file the first `from` becomes `to`. Returns what it was, for put_back().
static Text edit(const char* path, const char* from, const char* to) {
    Text was = read_file(path), now = replaced(&was, from, to);
    put_back(path, &now);
    return was;
}

static int is_visible(const struct dirent* entry) { return entry->d_name[0] != '.'; }
static int is_part(const struct dirent* entry) {
    return strstr(entry->d_name, ".tmp") || !strncmp(entry->d_name, ".sav", 4);
}

// Names and contents of all files in a folder, in order of name: two equal pictures are two equal folders.
static Text picture_of(const char* folder, int (*wanted)(const struct dirent*)) {
    Text out = {0};
    struct dirent** entry = NULL;
    int n = scandir(folder, &entry, wanted, alphasort);
    text_append(&out, "", 0);
    for (int i = 0; i < n; i++) {
        char path[PATH_SIZE];
        struct stat info;
        join_path(path, folder, entry[i]->d_name);
        Text content = {0};
        if (stat(path, &info) == 0 && S_ISREG(info.st_mode)) content = read_file(path);
        text_printf(&out, "%s: %zu\n", entry[i]->d_name, content.length);
        text_append(&out, content.data, content.length);
        text_free(&content), free(entry[i]);
    }
    free(entry);
    return out;
}
static Text picture(const char* folder) { return picture_of(folder, is_visible); }

static int same_text(const Text* a, const Text* b) {
    return a->length == b->length && !memcmp(a->data, b->data, a->length);
}

// does a folder hold what was held there before?
static int is_still(const char* folder, const Text* before) {
    Text after = picture(folder);
    int same = same_text(before, &after);
    text_free(&after);
    return same;
}

// Is anything left of a save that was not finished?
static int holds_parts(const char* folder) {
    Text parts = picture_of(folder, is_part);
    int found = parts.length > 0;
    text_free(&parts);
    return found;
}

#define MODEL "model.safetensors"
#define MOMENTS "optimizer.safetensors"
#define CONFIG "config.json"
#define STATE "trainer_state.json"
#define WORDS "tokenizer_config.json"

// the smallest model that there is, and one in which no two sizes are the same
static const Config smallest = {3, 4, 1, 2, 1, 1, 2, 2, 1, 10000.0f, 1e-6f, 0};
static const Config crooked = {11, 16, 2, 6, 2, 1, 4, 10, 0, 500.0f, 1e-5f, 0};

static Config value_config(const Config* policy) {
    Config c = *policy;
    c.scalar = 1;
    return c;
}

static void fill_with_noise(Weights* w, uint64_t seed) {
    Rng rng = {seed};
    for (size_t i = 0; i < w->count; i++) w->memory[i] = (float)random_normal(&rng);
}

static int same_weights(const Weights* a, const Weights* b) {
    return a->count == b->count && !memcmp(a->memory, b->memory, a->count * sizeof(float));
}

static int with_value;               // 1 = the checkpoints that are made and read have a value model too

// a checkpoint after `step` updates of a model, with moments and a trainer_state.json; all numbers are noise
static void make_checkpoint(const char* folder, const Config* c, uint64_t seed, long step) {
    Config vc = value_config(c);
    Model m = model_new(*c), v = model_new(vc);
    Optimizer o = optimizer_new(c), vo = optimizer_new(&vc);
    Weights* all[] = {&m.weights, &o.first, &o.second, &v.weights, &vo.first, &vo.second};
    for (int i = 0; i < 6; i++) fill_with_noise(all[i], seed + (uint64_t)i);
    vo.step = step;
    int n = 7;
    Option options[] = {{"n", OPTION_INT, &n, 0, 100, "", 1, 0}, {0}};
    save_run(folder, "sft", options, step, &m, &o, with_value ? &v : NULL, with_value ? &vo : NULL);
    optimizer_free(&o), model_free(&m), optimizer_free(&vo), model_free(&v);
}

// a checkpoint of this model, with moments of 0
static void save_untrained(const char* folder, const Model* m, long step) {
    Optimizer o = optimizer_new(&m->config);
    save_run(folder, "sft", (Option[]){{0}}, step, m, &o, NULL, NULL);
    optimizer_free(&o);
}

// reads all of a checkpoint, as a resumed run does
static void load_all(const char* folder) {
    int n = 0;
    Option options[] = {{"n", OPTION_INT, &n, 0, 100, "", 1, 0}, {0}};
    long step = state_from_json(folder, "sft", options);
    Model m = load_model(folder);
    Optimizer o = load_optimizer(folder, &m.config, step);
    if (with_value) {
        Optimizer vo;
        Model v = load_value_model(&vo, folder, &m.config, step);
        optimizer_free(&vo), model_free(&v);
    }
    optimizer_free(&o), model_free(&m);
}

static void load_only(const char* folder) {
    Model m = load_model(folder);
    model_free(&m);
}

static Json* json_read_file(const char* path) { return json_read_stream(fopen(path, "rb"), path); }

// ---- text and tokens

static void any_bytes_come_back(void) {
    char bytes[512];
    Tokens t = {0};
    Text back = {0};
    for (int i = 0; i < 512; i++) bytes[i] = (char)(i < 256 ? i : 511 - i);   // every byte, 0 included, twice
    tokens_add_text(&t, bytes, 512, 1);
    CHECK(t.length == 512);
    for (int i = 0; i < 512; i++) CHECK(t.ids[i] == (i < 256 ? i : 511 - i) && t.mask[i] == 1);
    decode_tokens(&back, t.ids, t.length, 1);
    CHECK(back.length == 512 && !memcmp(back.data, bytes, 512));
    tokens_free(&t), text_free(&back);
}

static void names_of_special_tokens(void) {
    Text back = {0};
    int ids[] = {BOS, 'a', OUTPUT_END, 'b'};
    decode_tokens(&back, ids, 4, 1);
    CHECK_TEXT(back.data, "<|bos|>a<|output_end|>b");
    back.length = 0;
    decode_tokens(&back, ids, 4, 0);
    CHECK_TEXT(back.data, "ab");
    text_free(&back);
    CHECK(VOCAB_SIZE == 265 && BOS == 256 && ASSISTANT_END == 260 && OUTPUT_END == 264);
}

// A conversation with a letter for each special token: ^ begins it, < > are around the question, | is before
// the answer, [ ] around a call, { } around its output, . at the end. Mask 0 is up to | and in { } only.
static const char* shown(const char* question, const char* answer) {
    static char text[256];
    Tokens t = {0};
    render_conversation(&t, question, answer);
    int n = 0, given = 1, bad = 0;
    for (int i = 0; i < t.length && n < 255; i++) {
        given |= t.ids[i] == OUTPUT_START;
        bad |= t.mask[i] != !given;
        given &= t.ids[i] != OUTPUT_END && t.ids[i] != ASSISTANT_START;
        text[n++] = t.ids[i] < 256 ? (char)t.ids[i] : "^<>|.[]{}"[t.ids[i] - 256];
    }
    text[n] = 0;
    tokens_free(&t);
    CHECK(!bad);
    return text;
}

// nanochat cuts with re.split(r'(<<[^>]+>>)') and inner.rsplit('=', 1); these are its results.
static void conversations(void) {
    static const char* const cases[][2] = {
        {"no call", "no call."}, {"<<1+1=2>>2 and <<2*3=6>>6\n#### 6", "[1+1]{2}2 and [2*3]{6}6\n#### 6."},
        {"<<1+1=2>><<2+2=4>>", "[1+1]{2}[2+2]{4}."},
        {"<<5>>x", "[5]{}x."},                                  // no '=': a call without an output
        {"<<a=b=c>>x", "[a=b]{c}x."},                           // the last '=' counts
        {"<<=5>>x", "[]{5}x."}, {"<<5=>>x", "[5]{}x."}, {"<<\n1=1>>x", "[\n1]{1}x."},   // [^>] takes \n
        {"<<<1=1>>x", "[<1]{1}x."}, {"<<1=1>>>x", "[1]{1}>x."},
        {"<<a<<b=1>>x", "[a<<b]{1}x."}, {"<<a<<b=1>>=2>>x", "[a<<b]{1}=2>>x."},   // from the first <<
        {"<<1+1=2", "<<1+1=2."}, {"<<1+1=2> x", "<<1+1=2> x."}, {"x<<48/2=24>5>>x", "x<<48/2=24>5>>x."},
        {"x<<>>x", "x<<>>x."}, {"<<>><<1=1>>x", "<<>>[1]{1}x."}, {"<<>a<<1=1>>x", "<<>a[1]{1}x."},
        {"1 << 2 and <<1=1>>", "1 [ 2 and <<1]{1}."}, {"<", "<."}, {"<<", "<<."}, {"<<>", "<<>."},
        // The one difference: nanochat takes a whole piece between two calls that begins with << and ends
        // with >> for a call although its own pattern did not, [1>5]{}. GSM8K has no such line.
        {"<<1>5>>", "<<1>5>>."},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        const char* text = shown("q", cases[i][0]);
        CHECK(!strncmp(text, "^<q>|", 5));
        CHECK_TEXT(text + 5, cases[i][1]);
    }
    CHECK_TEXT(shown("A?", "48/2 = <<48/2=24>>24 c."), "^<A?>|48/2 = [48/2]{24}24 c..");   // as in D1
    // no text becomes a special token, neither of the user nor of the assistant
#define NAMES "<|bos|><|user_end|><|assistant_start|><|python_start|>1<|python_end|> \xC4\x80"
    CHECK_TEXT(shown(NAMES, NAMES), "^<" NAMES ">|" NAMES ".");
}

// ---- JSON

// action(argument) within this process: the status of its fail(), or 0 when it returned. What it said goes
// into a file of the child's own, so that thousands of attempts need no process each.
static int said_file = -1, complaints_to;
static void catch_stderr(void) {
    complaints_to = dup(2);
    said_file = open(in_root("said"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (complaints_to < 0 || said_file < 0) abort();
    dup2(said_file, 2);
}

static int trapped_saying(char said[1000], void (*action)(const char*), const char* argument) {
    if (said_file < 0) catch_stderr();
    if (ftruncate(said_file, 0) || lseek(said_file, 0, SEEK_SET)) abort();
    trapped = 0;
    trapping = 1;
    if (setjmp(trap) == 0) action(argument);
    trapping = 0;
    ssize_t n = pread(said_file, said, 999, 0);
    said[n > 0 ? n : 0] = 0;
    return trapped;
}

static size_t parsed_length;
static Json* parsed;
static void parse_text(const char* text) { parsed = json_parse(text, parsed_length, "text"); }

// Why this text is refused, or "accepted". The copy ends behind the text's 0, for sanitizers.
static const char* verdict_of(const char* text, size_t length) {
    static char said[1000];
    char* copy = calloc(length + 1, 1);
    if (!copy) abort();
    memcpy(copy, text, length);
    parsed_length = length;
    int status = trapped_saying(said, parse_text, copy);
    free(copy);
    CHECK(status ? status == 2 && is_sentence(said) : !*said);
    if (!status) json_free(parsed);
    said[strcspn(said, "\n")] = 0;
    char* words = strstr(said, ", column ");
    return !status ? "accepted" : words && strstr(words, ": ") ? strstr(words, ": ") + 2 : said;
}
static const char* verdict(const char* text) { return verdict_of(text, strlen(text)); }

// the string of a JSON text, or its number with 17 digits
static const char* value_in(const char* text) {
    static char copy[256];
    Json* j = json_parse(text, strlen(text), "text");
    if (j->type == JSON_NUMBER) snprintf(copy, sizeof copy, "%.17g", j->number);
    else snprintf(copy, sizeof copy, "%s", j->type == JSON_STRING ? j->string : "neither");
    json_free(j);
    return copy;
}

static void json_strings_and_numbers(void) {
    static const char* const row[][2] = {
        {"\"\"", ""},
        {" \t\r\n\"a\" ", "a"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"\\u0041\\u00e9\\u20AC\"", "A\xC3\xA9\xE2\x82\xAC"}, // A, e acute, euro
        // U+1F600: D83D is 0xD800 + 0x3D, DE00 is 0xDC00 + 0x200; 0x10000 + (0x3D << 10) + 0x200 = 0x1F600
        {"\"\\ud83d\\uDE00\"", "\xF0\x9F\x98\x80"},
        {"\"\\uD800\\uDC00\"", "\xF0\x90\x80\x80"},     // U+10000, the first pair
        {"\"\\uDBFF\\uDFFF\"", "\xF4\x8F\xBF\xBF"},     // U+10FFFF, the last
        {"\"\xE2\x98\x82 \x7F\"", "\xE2\x98\x82 \x7F"}, // an umbrella, and DEL
        {"0", "0"}, {"-0", "-0"}, {"10", "10"}, {"-12.50", "-12.5"}, {"1e3", "1000"}, {"1E+3", "1000"},
        {"25e-2", "0.25"}, {"0.0e0", "0"}, {"1e999", "inf"}, {"9007199254740991", "9007199254740991"},
        {"0.1000000000000000055511151231257827021181583404541015625", "0.10000000000000001"},
    };
    static const char* const wrong[] = {
        "01", "-", "+1", ".5", "1.", "1.e3", "1e", "1e+", "-.5", "--1", "0x10", "1_000",
        "NaN", "nan", "Infinity", "-Infinity", "1,5", "1 2", "1a", "\xD9\xA1",
    };
    for (int i = 0; i < COUNT(row); i++) CHECK_TEXT(value_in(row[i][0]), row[i][1]);
    for (int i = 0; i < COUNT(wrong); i++)
        if (!strcmp(verdict(wrong[i]), "accepted")) BROKEN("%s is accepted\n", wrong[i]);
    char digits[500];   // RFC 8259 sets no limit to the number of digits
    memset(digits, '3', 499), digits[499] = 0;
    CHECK_TEXT(value_in(digits), "inf");
    CHECK_NEAR(atof(value_in(digits + 299)) / 1e199, 10.0 / 3.0, 1e-12);
    digits[1] = '.';
    CHECK_TEXT(value_in(digits), "3.3333333333333335");
}

// what is said of texts, and the texts of which it is said
static void json_verdicts(void) {
    static const struct { const char *words, *texts[8]; } row[] = {
        {"half of a surrogate pair", {"\"\\ud83d\"", "\"\\ud83dx\"", "\"\\ud83d\\n\"", "\"\\ud83d\\u0041\"",
                                      "\"\\ud83d\\ud83d\"", "\"\\ude00\"", "\"\\ude00\\ud83d\""}},
        {"\\u needs four hexadecimal digits", {"\"\\ud83d\\u12\"", "\"\\u00g0\"", "\"\\u+041\"", "\"\\u004"}},
        {"unknown escape in a string", {"\"\\x41\""}},
        {"a zero character in a string", {"\"\\u0000\""}},
        {"a control character or a line's end in a string", {"\"a\tb\"", "\"a\nb\""}},
        {"the text ends inside a string", {"\"abc"}},
        // an overlong zero, a surrogate, two bytes of three, Latin-1
        {"invalid UTF-8 in a string", {"\"\xC0\x80\"", "\"\xED\xA0\x80\"", "\"\xE2\x82\"", "\"a\xE7 b\""}},
        // RFC 8259, 8.1: no byte order mark
        {"a value was expected", {"'abc'", "nul", "True", "[1,]", "[,1]", "{\"a\":}", "\xEF\xBB\xBF{}"}},
        {"the text ends too early", {"", "  \n", "[1"}},
        {"there is something behind the value", {"truex", "{} {}", "[1] // a remark"}},
        {"a comma or a closing bracket was expected", {"[1 2]", "[1}"}},
        {"the name of a field was expected", {"{\"a\":1,}", "{a:1}"}},
        {"a colon was expected", {"{\"a\"}", "{\"a\" 1}"}},
        // once in an object, and again in another
        {"this field is there twice", {"{\"a\":1,\"a\":2}", "[{\"b\":1,\"a\":{\"x\":1,\"\\u0078\":1}}]"}},
        {"accepted", {"{}", "[]", " [ null , true , false , { \"a\" : [ ] } ] \r\n",
                      "{\"a\":{\"a\":1},\"A\":{\"a\":2}}"}},
    };
    for (int i = 0; i < COUNT(row); i++)
        for (int k = 0; k < 8 && row[i].texts[k]; k++) {
            const char* said = verdict(row[i].texts[k]);
            if (strcmp(said, row[i].words))
                BROKEN("%s: \"%s\", not \"%s\"\n", row[i].texts[k], said, row[i].words);
        }
}

// The Unicode standard, table 3-7: which bytes may stand where in UTF-8.
static void utf8_table(void) {
    static const struct { int from, to, second, second_to, bytes; } row[] = {
        {0x00, 0x7F, 0x00, 0xFF, 1}, {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
        {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
        {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };
    static const unsigned char edge[] = {0x00, 0x7F, 0x80, 0xBF, 0xC0, 0xFF};
    int wrong = 0, too_far = 0, back = 0;
    for (int a = 0; a < 256; a++)
        for (int b = 0; b < 256; b++)
            for (int i = 0; i < 36; i++) {
                unsigned char c = edge[i % 6], d = edge[i / 6];
                char text[4] = {(char)a, (char)b, (char)c, (char)d};
                int length = 0;
                for (int r = 0; r < 9; r++)
                    if (a >= row[r].from && a <= row[r].to && b >= row[r].second && b <= row[r].second_to &&
                        (row[r].bytes < 3 || (c & 0xC0) == 0x80) && (row[r].bytes < 4 || (d & 0xC0) == 0x80))
                        length = row[r].bytes;
                wrong += utf8_length(text, text + 4) != length;
                for (int n = 1; n < length; n++) too_far += utf8_length(text, text + n) != 0;   // cut short
            }
    CHECK(wrong == 0);
    CHECK(too_far == 0);
    for (unsigned code = 1; code < 0x110000; code += code < 0x3000 ? 1 : 61) {   // all that is written
        Text t = {0};
        if (code >= 0xD800 && code < 0xE000) continue;
        utf8_append(&t, code);
        back += utf8_length(t.data, t.data + t.length) != (int)t.length;
        text_free(&t);
    }
    CHECK(back == 0);
}

static void json_values(void) {
    CHECK_TEXT(verdict_of("\"\\\0\"", 4), "unknown escape in a string");
    CHECK_TEXT(verdict_of("\"a\0b\"", 5), "the text ends inside a string");   // a 0 is no part of JSON
    CHECK_TEXT(verdict_of("\0", 1), "the text ends too early");
    CHECK_TEXT(verdict_of("[1\0]", 4), "the text ends too early");
    CHECK_TEXT(verdict_of("1 \0 2", 5), "there is something behind the value");
    CHECK_TEXT(verdict_of("1\0", 2), "there is something behind the value");
    char* deep = malloc(100000);   // 64 brackets are the deepest; 100,000 must not use up the stack
    if (!deep) abort();
    memset(deep, '[', 100000);
    CHECK_TEXT(verdict_of(deep, 100000), "brackets are nested too deeply");
    CHECK_TEXT(verdict_of(deep, 65), "brackets are nested too deeply");
    memset(deep + 64, ']', 64);
    CHECK_TEXT(verdict_of(deep, 128), "accepted");
    Text many = {0}, out = {0};
    for (int i = 0; i <= JSON_FIELDS; i++) text_printf(&many, "%c\"%d\":0", i ? ',' : '{', i);
    CHECK_TEXT(verdict_of(many.data, many.length), "this object has too many fields");
    const char* text = "{\"a\":1,\"b\":[2]}";
    Json* j = json_parse(text, strlen(text), "text");
    CHECK(json_get(j, "a") && json_get(j, "a")->number == 1);
    CHECK(!json_get(j, "c") && !json_get(NULL, "a") && !json_get(j->child, "a"));
    CHECK(!json_get(json_get(j, "b"), "a"));
    json_free(j);
    char each[160] = "";           // every character, written and read
    for (int c = 1; c < 128; c++) each[c - 1] = (char)c;
    strcpy(each + 127, "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
    json_append_string(&out, each);
    CHECK_TEXT(value_in(out.data), each);
    text_free(&many), text_free(&out), free(deep);
}

static void json_texts(void) {
    apart(json_strings_and_numbers), apart(json_verdicts), apart(json_values), apart(utf8_table);
}

// ---- problems: JSONL files

static void load_file(const char* path) {
    Problems p = load_problems(path);
    problems_free(&p);
}

static void lines_that_can_be_read(void) {
    // a byte order mark and CRLF; blank lines; spaces, other fields, another order; no newline at the end
    put_text(in_root("problems.jsonl"), "\xEF\xBB\xBF{\"question\": \"a\", \"answer\": \"b\"}\r\n\r\n  \t\n\n"
                                        "  {\"answer\": \"d\\n#### 4\", \"id\": [7, {}], "
                                        "\"question\": \"c \xE2\x82\xAC\"}  \n"
                                        "{\"question\":\"e\",\"answer\":\"f\"}");
    Problems p = load_problems(in_root("problems.jsonl"));
    CHECK(p.count == 3);
    CHECK_TEXT(p.list[0].question, "a");
    CHECK_TEXT(p.list[0].answer, "b");
    CHECK_TEXT(p.list[1].question, "c \xE2\x82\xAC");
    CHECK_TEXT(p.list[1].answer, "d\n#### 4");
    CHECK_TEXT(p.list[2].answer, "f");
    problems_free(&p);
}

#define GOOD "{\"question\": \"a\", \"answer\": \"b\"}\n"
static void lines_that_cannot(void) {
    static const struct { const char *words, *texts[4]; } bad[] = {
        {"has no problems in it", {"", "[]", "\n \r\n", "\xEF\xBB\xBF"}},
        // the half line has 22 bytes; the 23rd is missing
        {"line 3, column 23: the text ends inside a string", {GOOD "\n{\"question\": \"a\", \"ans"}},
        {"line 2, column 29: the text ends too early", {GOOD "{\"question\": \"a\", \"answer\": "}},
        {"line 3, column 1: the text ends too early", {GOOD "{\"question\": \"a\"\n"}},
        {"line 3, column 1: a comma or a closing bracket was expected", {GOOD "{\"question\": \"a\"\n" GOOD}},
        {"line 2, column 34: there is something", {GOOD "{\"question\": \"a\", \"answer\": \"b\"} " GOOD}},
        {"line 2, column 3: there is something behind", {"[" GOOD "] " GOOD}},
        {"column 44: this field is there", {"{\"question\": \"a\", \"answer\": \"b\", \"question\": \"c\"}"}},
        {"line 2, column 16: invalid UTF-8", {GOOD "{\"question\": \"a\xFF\", \"answer\": \"b\"}\n"}},
        {"line 1: the field \"answer\" is missing", {"{\"question\": \"a\"}\n"}},
        {"line 3: the field \"question\" is missing", {GOOD GOOD "{\"answer\": \"a\"}\n"}},
        {"the field \"question\" is not a text", {"{\"question\": 5, \"answer\": \"b\"}\n"}},
        {"the field \"answer\" is not a text", {"{\"question\": \"a\", \"answer\": null}\n"}},
        {"the field \"question\" is empty", {"{\"question\": \"\", \"answer\": \"b\"}\n"}},
        {"line 2: an object", {GOOD "[1]\n", GOOD "17\n"}},
        {"line 1: an object", {"[[1]]\n"}},
        {"line 2, column 1: the name of a field", {"[{\"question\": \"a\",\n"}},   // an array may have lines
        {"line 1, column 1: a value was expected", {"question,answer\na,b\n"}},
    };
    const char* path = in_root("bad.jsonl");
    for (int i = 0; i < 4 * COUNT(bad); i++) {
        if (!bad[i / 4].texts[i % 4]) continue;
        put_text(path, bad[i / 4].texts[i % 4]);
        ENDS(load_file, path, 2, bad[i / 4].words);
    }
    // a disk that lost power leaves zeros behind: they are no blank line
    put_file(path, GOOD "\0\0\0\0\0\n" GOOD, 2 * strlen(GOOD) + 6);
    ENDS(load_file, path, 2, "line 2, column 1: ");
    ENDS(load_file, in_root("nowhere.jsonl"), 2, "nowhere.jsonl: No such file");
    ENDS(load_file, root, 2, "Is a directory");
    if (file_exists("/dev/zero")) ENDS(load_file, "/dev/zero", 2, "/dev/zero has more than 256 MB");
    ENDS(load_file, "", 2, "cannot open");
}

// ---- checkpoints: what is written

// A reader of safetensors that knows nothing of the project: the header as text, and the data behind it.
typedef struct { Text file; char* header; const char* data; size_t size; } Safetensors;

static Safetensors open_tensors(const char* path) {
    Safetensors s = {.file = read_file(path)};
    size_t length = 0;
    for (int i = 7; i >= 0; i--) length = length << 8 | (unsigned char)s.file.data[i];
    CHECK(length % 8 == 0 && length + 8 < s.file.length && s.file.data[8] == '{');
    s.header = allocate(length + 1, 1);
    memcpy(s.header, s.file.data + 8, length);
    s.data = s.file.data + 8 + length;
    s.size = s.file.length - 8 - length;
    return s;
}
static void close_tensors(Safetensors* s) { free(s->header), text_free(&s->file); }

static float float_at(const char* p) {
    const unsigned char* b = (const unsigned char*)p;
    uint32_t u = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

// How many numbers of a tensor are not ours, of which (i,j) is at i*row + j*col. cols = 0: a vector. -1:
// there is no tensor of this name and shape.
static int wrong_numbers(const Safetensors* s, const char* name, const float* ours, int rows, int cols,
                         int row, int col) {
    char entry[200], shape[40];
    size_t from = 0, to = 0;
    int wrong = 0, n = max_int(cols, 1);
    snprintf(shape, sizeof shape, cols ? "%d,%d" : "%d", rows, cols);
    snprintf(entry, sizeof entry, "\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[", name, shape);
    const char* at = strstr(s->header, entry);
    if (!at || sscanf(at + strlen(entry), "%zu,%zu]}", &from, &to) != 2) return -1;
    if (to - from != 4 * (size_t)(rows * n) || to > s->size) return -1;
    for (int i = 0; i < rows * n; i++)
        wrong += float_at(s->data + from + 4 * (size_t)i) != ours[i / n * row + i % n * col];
    return wrong;
}

// `crooked` has V = 11, C = 6, H = 2, G = 1, D = 4, F = 10, so that Q = (2 + 2*1)*4 = 16: in a row of 16,
// query is at 0..7, key at 8..11, value at 12..15. Hugging Face's matrices are (out, in), ours (in, out):
// element (o,i) is at i*16 + o. Gate and up share rows of 20.
static void safetensors_by_hand(void) {
    Model m = model_new(crooked);
    fill_with_noise(&m.weights, 5);
    save_untrained(in_root("hand"), &m, 41);
    Safetensors s = open_tensors(in_root("hand/model.safetensors"));
    CHECK(strstr(s.header, "\"format\":\"pt\"") && strstr(s.header, "\"step\":\"41\""));
    int entries = 0;               // the places follow each other without a gap
    size_t covered = 0;
    for (const char* p = s.header; (p = strstr(p, "\"data_offsets\":[")) != NULL; p++, entries++) {
        size_t from = 0, to = 0;
        CHECK(sscanf(p, "\"data_offsets\":[%zu,%zu]", &from, &to) == 2 && from == covered && to > from);
        covered = to;
    }
    CHECK(covered == s.size);
    CHECK(entries == 25);          // 1 embedding, 2 layers of 11, 1 norm, 1 unembedding
    for (int l = 0; l < 2; l++) {
        const LayerWeights* w = &m.weights.layer[l];
        const struct { const char* name; const float* data; int rows, cols, row, col; } table[] = {
            {"input_layernorm", w->norm1, 6, 0, 1, 0},
            {"post_attention_layernorm", w->norm2, 6, 0, 1, 0},
            {"self_attn.q_norm", w->qnorm, 4, 0, 1, 0},
            {"self_attn.k_norm", w->knorm, 4, 0, 1, 0},
            {"self_attn.q_proj", w->qkv, 8, 6, 1, 16},
            {"self_attn.k_proj", w->qkv + 8, 4, 6, 1, 16},
            {"self_attn.v_proj", w->qkv + 12, 4, 6, 1, 16},
            {"self_attn.o_proj", w->out, 6, 8, 1, 6},
            {"mlp.gate_proj", w->gate_up, 10, 6, 1, 20},
            {"mlp.up_proj", w->gate_up + 10, 10, 6, 1, 20},
            {"mlp.down_proj", w->down, 6, 10, 1, 6},
        };
        for (int k = 0; k < 11; k++) {
            char name[96];
            snprintf(name, sizeof name, "model.layers.%d.%s.weight", l, table[k].name);
            CHECK(wrong_numbers(&s, name, table[k].data, table[k].rows, table[k].cols, table[k].row,
                                table[k].col) == 0);
        }
    }
    CHECK(wrong_numbers(&s, "model.embed_tokens.weight", m.weights.embedding, 11, 6, 6, 1) == 0);
    CHECK(wrong_numbers(&s, "lm_head.weight", m.weights.unembedding, 11, 6, 6, 1) == 0);
    CHECK(wrong_numbers(&s, "model.norm.weight", m.weights.norm, 6, 0, 1, 0) == 0);
    close_tensors(&s), model_free(&m);
}

static void what_is_saved_is_loaded(void) {
    const char* path = in_root("saved/in/a/new/folder");      // all of them are made
    for (int head = 0; head < 4; head++) {
        Config c = crooked;
        c.tied = head % 2, c.scalar = head / 2;
        Config vc = value_config(&c);
        Model m = model_new(c), v = model_new(vc);
        Optimizer o = optimizer_new(&c), vo = optimizer_new(&vc), p, vp;
        Weights* saved[] = {&m.weights, &o.first, &o.second, &v.weights, &vo.first, &vo.second};
        for (int i = 0; i < 6; i++) fill_with_noise(saved[i], 1 + (uint64_t)i);
        o.step = 36, vo.step = 12;                            // 12 updates of three minibatches
        m.weights.memory[0] = -0.0f, m.weights.memory[1] = 0x1p-149f, m.weights.memory[2] = 3.4028235e38f;
        save_run(path, "sft", (Option[]){{0}}, 12, &m, &o, &v, &vo);
        CHECK(!holds_parts(path));
        Model n = load_model(path), u = load_value_model(&vp, path, &n.config, 12);
        p = load_optimizer(path, &n.config, 12);
        CHECK(c.scalar ? n.weights.score && !n.weights.unembedding
                       : !n.weights.score && (n.weights.unembedding == n.weights.embedding) == c.tied);
        CHECK(!memcmp(&n.config, &c, sizeof c) && !memcmp(&u.config, &vc, sizeof vc));
        const Weights* loaded[] = {&n.weights, &p.first, &p.second, &u.weights, &vp.first, &vp.second};
        for (int i = 0; i < 6; i++) CHECK(same_weights(saved[i], loaded[i]));
        CHECK(p.step == 36 && vp.step == 12);
        Text picture_before = picture(path);                  // and saved again it is the same, byte for byte
        save_run(in_root("again"), "sft", (Option[]){{0}}, 12, &n, &p, &u, &vp);
        CHECK(is_still(in_root("again"), &picture_before));
        text_free(&picture_before), model_free(&m), model_free(&n), model_free(&v), model_free(&u);
        optimizer_free(&o), optimizer_free(&p), optimizer_free(&vo), optimizer_free(&vp);
    }
}

// A reward model as Qwen3ForSequenceClassification has it: a linear layer from C = 6 numbers to num_labels =
// 1, no lm_head, no bias. It takes the score of the last token that is not pad_token_id, which must not be
// 260.
static void reward_model_files(void) {
    static const struct { const char *file, *words; int scores,
                         writes; } row[] = {   // of which model it is said
        {CONFIG, "\"architectures\": [\"Qwen3ForSequenceClassification\"]", 1, 0},
        {CONFIG, "\"architectures\": [\"Qwen3ForCausalLM\"]", 0, 1},
        {CONFIG, "\"model_type\": \"qwen3\"", 1, 1},
        {CONFIG, "num_labels", 1, 0}, {CONFIG, "\"num_labels\": 1", 1, 0},
        {CONFIG, "pad_token_id", 1, 0}, {CONFIG, "\"pad_token_id\": 256", 1, 0}, {WORDS, "pad_token", 1, 0},
        {WORDS, "\"pad_token\": \"<|bos|>\"", 1, 0},
        // without this line transformers' decode() eats the space before "." and "n't"
        {WORDS, "\"clean_up_tokenization_spaces\": false", 1, 1},
    };
    Config c = value_config(&crooked);
    Model m = model_new(c);
    fill_with_noise(&m.weights, 5);
    save_untrained(in_root("reward"), &m, 7);
    make_checkpoint(in_root("policy"), &crooked, 5, 7);
    for (int i = 0; i < 2 * COUNT(row); i++) {
        char path[PATH_SIZE];
        join_path(path, in_root(i % 2 ? "policy" : "reward"), row[i / 2].file);
        Text text = read_file(path);
        int there = strstr(text.data, row[i / 2].words) != NULL;
        if (there != (i % 2 ? row[i / 2].writes : row[i / 2].scores))
            BROKEN("%s: %s\n", path, row[i / 2].words);
        text_free(&text);
    }
    Safetensors s = open_tensors(in_root("reward/model.safetensors"));
    CHECK(wrong_numbers(&s, "score.weight", m.weights.score, 1, 6, 6, 1) == 0);
    CHECK(!strstr(s.header, "lm_head"));
    close_tensors(&s);
    // transformers names the labels instead of counting them; with more of them the score has another shape
    Text own = edit(in_root("reward/config.json"), "\"num_labels\": 1", "\"id2label\": {\"0\": \"LABEL_0\"}");
    Model n = load_model(in_root("reward"));
    CHECK(!memcmp(&n.config, &c, sizeof c) && same_weights(&m.weights, &n.weights));
    Text file = edit(in_root("reward/model.safetensors"), "\"shape\":[1,6]", "\"shape\":[2,3]");
    ENDS(load_only, in_root("reward"), 2, "score.weight does not have the shape that config.json asks for");
    text_free(&own), text_free(&file), model_free(&m), model_free(&n);
}

static void load_value_of(const char* folder) {
    Optimizer o;
    load_value_model(&o, folder, &crooked, 12);
}

static void make_valued(uint64_t seed, long step, int valued) {
    with_value = valued;
    make_checkpoint(in_root("reused"), &crooked, seed, step);
    with_value = 0;
}

// What an earlier run left in the folder does not outlive the next save.
static void a_save_removes_what_it_does_not_have(void) {
    for (int valued = 0; valued < 2; valued++) {   // the second save: with and without a value model
        make_valued(3, 12, 1);
        make_valued(9, 12, valued);
        CHECK(file_exists(in_root("reused/value.safetensors")) == valued);
        CHECK(file_exists(in_root("reused/value_optimizer.safetensors")) == valued);
        if (!valued) ENDS(load_value_of, in_root("reused"), 2, "/value.safetensors: No such file");
    }
    // Whoever is killed before the removal leaves a value model of another update behind: it is refused.
    make_valued(3, 11, 1);
    ENDS(load_value_of, in_root("reused"), 2, "belongs to update 11, trainer_state.json to update 12");
    // a policy's weights are no value model's, also with nothing to tell them apart but their head
    make_valued(3, 12, 1);
    copy_file(in_root("reused/value.safetensors"), in_root("reused/model.safetensors"));
    ENDS(load_value_of, in_root("reused"), 2, "value.safetensors: the tensor score.weight is missing");
}

// Who needs a text or a token takes no reward model, and no model with other tokens.
static void load_fitting(const char* folder) { load_fitting_model(folder); }
static void models_that_do_not_fit(void) {
    static const struct { int vocab_size, scalar, status; const char* words; } row[] = {
        {VOCAB_SIZE, 0, 0, ""},
        {VOCAB_SIZE, 1, 2, "holds a reward model: it gives scores and cannot write"},
        {3, 0, 2, "has a vocabulary of 3 tokens; this tokenizer has 265"},
    };
    for (int i = 0; i < 3; i++) {
        Config c = smallest;
        c.vocab_size = row[i].vocab_size, c.scalar = row[i].scalar;
        make_checkpoint(in_root("fits"), &c, 3, 1);
        ENDS(load_fitting, in_root("fits"), row[i].status, row[i].words);
    }
    ENDS(load_fitting, "", 2, "there is no checkpoint directory ''");
}

// Files of other programs: BF16, another order, a lm_head that repeats a tied embedding, rope_parameters.
static void files_of_others(void) {
    make_checkpoint(in_root("other"), &smallest, 3, 1);
    Tensor list[13];
    Weights w = weights_new(&smallest);
    fill_with_noise(&w, 3);
    w.embedding[0] = 1.0f, w.embedding[1] = -2.5f, w.embedding[2] = 3.140625f;   // exact: 3F80, C020, 4049
    tensor_list(list, &w, &smallest, "");
    Text header = {0}, data = {0}, file = {0};
    text_printf(&header, "{\"lm_head.weight\":{\"dtype\":\"BF16\",\"shape\":[3,2],\"data_offsets\":[0,12]}");
    text_append(&data, "\0\0\0\0\0\0\0\0\0\0\0\0", 12);
    for (int k = tensor_count(&smallest) - 1; k >= 0; k--) {
        Tensor* t = &list[k];
        size_t from = data.length;
        int n = max_int(t->cols, 1);
        for (int i = 0; i < t->rows * n; i++) {
            uint32_t u;
            memcpy(&u, &t->data[(size_t)(i / n) * t->row + (size_t)(i % n) * t->col], 4);
            text_append(&data, (char[]){(char)(u >> 16 & 0xFF), (char)(u >> 24)}, 2);
        }
        text_printf(&header, ", \"%s\": {\"shape\": [%d%s", t->name, t->rows, t->cols ? ", 2], " : "], ");
        text_printf(&header, "\"data_offsets\": [%zu, %zu], \"dtype\": \"BF16\"}", from, data.length);
    }
    text_append(&header, "}", 1);
    for (int i = 0; i < 8; i++) text_append(&file, (char[]){(char)(header.length >> 8 * i & 0xFF)}, 1);
    text_append(&file, header.data, header.length), text_append(&file, data.data, data.length);
    put_file(in_root("other/model.safetensors"), file.data, file.length);
    Text config = edit(in_root("other/config.json"), "\"rope_theta\": 10000",
                       "\"layer_types\": [\"full_attention\"], \"partial_rotary_factor\": 1, "
                       "\"rope_parameters\": {\"rope_theta\": 777, \"rope_type\": \"default\"}");
    Model m = load_model(in_root("other"));
    CHECK(m.config.rope_theta == 777.0f);
    for (int i = 0; i < 3; i++) CHECK(m.weights.embedding[i] == w.embedding[i]);
    int wrong = 0;
    for (size_t i = 0; i < w.count; i++) {   // the last 16 of 24 digits are cut off
        uint32_t u;
        memcpy(&u, &m.weights.memory[i], 4);
        wrong += (u & 0xFFFF) != 0 || !(fabsf(m.weights.memory[i] - w.memory[i]) <= fabsf(w.memory[i]) / 128);
    }
    CHECK(wrong == 0);
    remove(in_root("other/tokenizer.json"));
    ENDS(load_only, in_root("other"), 0, "");   // without a tokenizer nothing is known about it
    text_free(&header), text_free(&data), text_free(&file), text_free(&config);
    model_free(&m), weights_free(&w);
}

// What may stand in a file instead of something else, and what may not
static void other_words(void) {
    static const struct { const char *file, *from, *to; int status; const char* words; } row[] = {
        {"tokenizer.json", "\"version\": \"1.0\",", "", 0, ""},   // does not change the tokens
        {"tokenizer.json", "\"a\": 97", "\"a\": 98", 2, "is another tokenizer than this program's"},
        {"tokenizer.json", "\"merges\": []", "\"merges\": [\"a b\"]", 2, "is another tokenizer than"},
        {"tokenizer.json", "<|bos|>", "<|endoftext|>", 2, "is another tokenizer than this program's"},
        {"tokenizer.json", "\"special\": true}\n  ]", "\"special\": false}\n  ]", 2, "is another tokenizer"},
        // a file that does not say how it was built is taken for a policy
        {"config.json", "\"architectures\": [\"Qwen3ForCausalLM\"]", "\"architectures\": null", 0, ""},
        {"config.json", "\"architectures\": [\"Qwen3ForCausalLM\"]", "\"architectures\": []", 0, ""},
        {"config.json", "\"architectures\": [\"Qwen3ForCausalLM\"]", "\"x\": 0", 0, ""},
    };
    Config c = smallest;
    c.vocab_size = VOCAB_SIZE;
    make_checkpoint(in_root("worded"), &c, 3, 1);
    for (int i = 0; i < COUNT(row); i++) {
        char path[PATH_SIZE];
        join_path(path, in_root("worded"), row[i].file);
        Text was = edit(path, row[i].from, row[i].to);
        ENDS(load_only, in_root("worded"), row[i].status, row[i].words);
        put_back(path, &was);
    }
}

// GPT-2's byte alphabet, in which tokenizer.json writes the 256 bytes: ! to ~ and most of Latin-1 are
// themselves, the other 68 are U+0100 and up. Known from GPT-2's own file: space is U+0120, newline U+010A.
static void tokenizer_file(void) {
    static const struct { int byte, code; } known[] = {{0, 0x100}, {'\n', 0x10A}, {' ', 0x120}, {0x7F, 0x121},
                                                       {0xAD, 0x143}};
    make_checkpoint(in_root("tokenizer"), &smallest, 3, 1);
    Json* j = json_read_file(in_root("tokenizer/tokenizer.json"));
    const Json *model = json_get(j, "model"), *added = json_get(j, "added_tokens");
    int seen[400] = {0}, code_of[256], count = 0, wrong = 0, shifted = 0;
    for (const Json* v = json_get(model, "vocab")->child; v; v = v->next, count++) {
        const unsigned char* s = (const unsigned char*)v->key;
        int code = s[0] < 0x80 ? s[0] : (s[0] & 0x1F) << 6 | (s[1] & 0x3F), byte = (int)v->number;
        wrong += (int)strlen(v->key) != (code < 0x80 ? 1 : 2) || code >= 400 || seen[code]++ || byte != count;
        wrong += code < 256 ? code != byte : code != 256 + shifted++;
        code_of[count % 256] = code;
    }
    CHECK(count == 256 && wrong == 0 && shifted == 68);
    for (int i = 0; i < COUNT(known); i++) CHECK(code_of[known[i].byte] == known[i].code);
    count = 0;
    for (const Json* a = added->child; a; a = a->next, count++) {
        CHECK(json_get(a, "id")->number == 256 + count);
        CHECK_TEXT(json_get(a, "content")->string, special_names[count]);
        CHECK(json_get(a, "special")->type == JSON_TRUE && json_get(a, "normalized")->type == JSON_FALSE);
    }
    CHECK(count == 9);   // 256 + 9 = 265
    CHECK(json_get(model, "merges")->type == JSON_ARRAY && !json_get(model, "merges")->child);
    json_free(j);
}

// ---- checkpoints: what is damaged

static size_t header_length(const Text* safetensors) {   // those of this test are below 64 KB
    return (size_t)(unsigned char)safetensors->data[0] + 256 * (size_t)(unsigned char)safetensors->data[1];
}

static const char* in_broken(const char* name) {         // this file of the checkpoint "broken"
    static char path[PATH_SIZE];
    join_path(path, in_root("broken"), name);
    return path;
}

// Loads "broken"; complains about any ending but a clean load (if allowed) or status 2 and a sentence.
static void try_load(int may_load, const char* file, size_t place, const char* what) {
    char said[1000] = "";
    int status = trapped_saying(said, load_all, in_root("broken"));
    if (status == 0 ? may_load : status == 2 && is_sentence(said)) return;
    dprintf(complaints_to, "%s %s %zu: status %d: %s\n", file, what, place, status, said);
}

// Shortened: all of the last 40 lengths, every third of the others. Only a JSON text's last newline may go.
static void cut_everywhere(const char* name) {
    catch_stderr();
    struct stat info;
    if (stat(in_broken(name), &info)) abort();
    for (off_t size = info.st_size - 1; size >= 0; size -= size < info.st_size - 40 ? 3 : 1) {
        if (truncate(in_broken(name), size)) abort();
        try_load(strstr(name, ".json") && size == info.st_size - 1, name, (size_t)size, "cut at byte");
    }
}

// One byte changed: every fourth of the weights' headers, every second of the texts (any number is a weight).
static void change_everywhere(const char* name) {
    static const char other[] = {'9', '"', 0, '-', '}', (char)0xFF, ',', '0', '['};
    catch_stderr();
    Text text = read_file(in_broken(name));
    size_t end = strstr(name, ".json") ? text.length : 8 + header_length(&text);
    int file = open(in_broken(name), O_WRONLY);
    if (file < 0) abort();
    for (size_t i = 0; i < end; i += strstr(name, ".json") ? 2 : 4) {
        if (pwrite(file, &other[i % sizeof other], 1, (off_t)i) != 1) abort();
        try_load(1, name, i, "changed at byte");
        if (pwrite(file, text.data + i, 1, (off_t)i) != 1) abort();
    }
    close(file);
    text_free(&text);
}

static void cut_or_changed_anywhere(void) {
    static const char* const names[] = {CONFIG, STATE, MODEL, MOMENTS};
    for (int i = 0; i < 8; i++) {
        remove_folder(in_root("broken"));
        make_checkpoint(in_root("broken"), &smallest, 3, 5);
        Ending e = ending_of(i < 4 ? cut_everywhere : change_everywhere, names[i % 4]);
        CHECK(e.status == 0);
        CHECK_TEXT(e.said, "");
    }
    remove_folder(in_root("broken"));
    make_checkpoint(in_root("broken"), &smallest, 3, 5);
    ENDS(load_all, in_root("broken"), 0, "");   // undamaged it loads
}

// "broken" becomes a whole checkpoint, but with `from` replaced by `to` in `file` (and the header's length
// goes along) and `more` bytes of nothing behind it.
static void damage(const char* file, const char* from, const char* to, off_t more) {
    struct stat info;
    make_checkpoint(in_root("broken"), &smallest, 3, 5);
    Text text = read_file(in_broken(file)), changed = replaced(&text, from, to);
    if (strstr(file, ".safetensors")) {
        size_t length = header_length(&text) + changed.length - text.length;
        for (int i = 0; i < 8; i++) changed.data[i] = (char)(length >> 8 * i & 0xFF);
    }
    put_back(in_broken(file), &changed);
    text_free(&text);
    if (more && (stat(in_broken(file), &info) || truncate(in_broken(file), info.st_size + more))) abort();
}

// Tensor 0 is model.embed_tokens.weight: shape [3,2], 24 bytes at [0,24]. All 44 numbers have 176 bytes.
// Which file, what stands in it, what is said when one of these stands there instead.
#define WIDTH "\"hidden_size\": 2"
#define SCALING "\"rope_scaling\": null"
static const struct { const char *file, *from, *words, *to[12]; } damages[] = {
    {MODEL, "\"F32\",\"shape\":[3,2]", "has the number format F16", {"\"F16\",\"shape\":[3,2]"}},
    {MODEL, "\"F32\",\"shape\":[3,2]", "has the number format of another kind", {"7,\"shape\":[3,2]"}},
    {MODEL, "\"F32\",\"shape\":[3,2]", "model.embed_tokens.weight", {"\"BF16\",\"shape\":[3,2]"}},   // half
    {MODEL, "e\":[3,2]", "does not have the shape that config.json asks for, [3,2]", {"e\":[2,3]"}},
    {MODEL, "\"shape\":[3,2]", "does not have the shape",
     {"\"shape\":[6]", "\"shape\":[3,2,1]", "\"shape\":[]", "\"shape\":6", "\"shape\":[-3,-2]",
      "\"shape\":[3.5,2]", "\"shape\":[1e999,2]", "\"shape\":[\"3\",2]", "\"form\":[3,2]",
      "\"shape\":[4294967299,2]"}},   // 2^32 + 3
    {MODEL, "s\":[0,24]", "another number of bytes than its shape", {"s\":[0,20]", "s\":[0,28]"}},
    {MODEL, "s\":[0,24]", "no tensor begins at byte 0",
     {"s\":[24,0]", "s\":[100000,100024]", "s\":[24,48]", "s\":[-24,0]", "s\":[0.5,24.5]",
      "s\":[null,24]", "s\":[24]", "s\":{}", "s\":\"0,24\"", "s\":[1e999,1e999]",
      "s\":[9007199254740992,9007199254741016]",           // 2^53, and 2^64 - 24
      "s\":[18446744073709551592,18446744073709551616]"}},
    {MODEL, "\"model.norm.weight\"", "the tensor model.norm.weight is missing", {"\"model.nrom.weight\""}},
    {MODEL, "\"model.norm.weight\"", "1 tensors overlap",
     {"\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"model.norm.weight\""}},
    {MODEL, "{\"__metadata__\"", "model.safetensors, line 1, column ", {"[{\"__metadata__\""}},
    {MOMENTS, "\"step\":\"5\"", "not a number of up to 15 digits",
     {"\"step\":\"-1\"", "\"step\":\"5.0\"", "\"step\":\"\"", "\"step\":\"123456789012345678901\"",
      "\"step\":\"1e3\"", "\"step\":\"0x5\"", "\"step\":\" 5\"", "\"step\":\"5 \""}},
    {MOMENTS, "_steps\":\"0\"", "not a number of up to 15 digits", {"_steps\":\"-1\"", "_steps\":\"\""}},
    {MOMENTS, "\"exp_avg_sq.model.norm.weight\"", "the tensor exp_avg_sq.model.norm.weight is missing",
     {"\"exp_avg_sq.norm.weight\""}},
    {MOMENTS, "\"step\":\"5\"", "belongs to update 4, trainer_state.json to update 5", {"\"step\":\"4\""}},
    {MOMENTS, "\"step\":\"5\"", "belongs to update", {"\"stop\":\"5\""}},

    {CONFIG, WIDTH, "must be from 1 to 16384, not 1000000000", {"\"hidden_size\": 1000000000"}},
    {CONFIG, WIDTH, "hidden_size must be from 1 to 16384, not 0", {"\"hidden_size\": 0"}},
    {CONFIG, "_size\": 2", "too small for the model that config.json", {"_size\": 16384", "_size\": 40"}},
    {CONFIG, WIDTH, "does not have the shape", {"\"hidden_size\": 3"}},
    {CONFIG, "n_size\": 2", "\"hidden_size\" is not a whole number",
     {"n_size\": -2", "n_size\": 2.5", "n_size\": 1e300", "n_size\": \"2\"", "n_size\": null",
      "n_size\": 4294967298"}},     // 2^32 + 2
    {CONFIG, WIDTH ",", "the field \"hidden_size\" is missing", {""}},
    {CONFIG, "\"vocab_size\": 3", "vocab_size must be from 1 to 1048576, not 0", {"\"vocab_size\": 0"}},
    {CONFIG, "\"vocab_size\": 3", "too small for the model", {"\"vocab_size\": 1048576"}},
    {CONFIG, "_layers\": 1", "_hidden_layers must be from 1 to 256, not 0", {"_layers\": 0"}},
    {CONFIG, "_layers\": 1", "too small for the model", {"_layers\": 256"}},
    {CONFIG, "attention_heads\": 1", "_attention_heads must be from 1 to 256", {"attention_heads\": 0"}},
    {CONFIG, "value_heads\": 1", "must be a multiple", {"value_heads\": 2"}},
    {CONFIG, "value_heads\": 1", "heads must be from 1 to 256, not 0", {"value_heads\": 0"}},
    {CONFIG, "\"head_dim\": 2", "head_dim must be even", {"\"head_dim\": 3"}},
    {CONFIG, "dings\": 4", "embeddings must be from 1 to 65536", {"dings\": 0", "dings\": 99999999"}},
    {CONFIG, "_theta\": 10000", "rope_theta must be above 1", {"_theta\": 0", "_theta\": 1e999"}},
    {CONFIG, "\"rope_theta\": 10000", "\"rope_theta\" is not a number", {"\"rope_theta\": \"10000\""}},
    {CONFIG, "\"rms_norm_eps\": ", "rms_norm_eps must be above 0", {"\"rms_norm_eps\": -"}},
    {CONFIG, "\"rms_norm_eps\": ", "rms_norm_eps must be above 0", {"\"rms_norm_eps\": 0, \"x\": "}},
    {CONFIG, "\"rms_norm_eps\": ", "\"rms_norm_eps\" is not a number", {"\"rms_norm_eps\": [], \"x\": "}},
    {CONFIG, "embeddings\": true", "lm_head.weight is missing", {"embeddings\": false"}},
    // what another model would compute
    {CONFIG, SCALING, "\"rope_scaling\" is another one; only", {"\"rope_scaling\": {\"type\": \"yarn\"}"}},
    {CONFIG, SCALING, "\"rope_type\" is yarn; only", {"\"rope_scaling\": {\"rope_type\": \"yarn\"}"}},
    {CONFIG, SCALING, "\"rope_type\" is linear", {"\"rope_parameters\": {\"rope_type\": \"linear\"}"}},
    {CONFIG, SCALING, "only 1.0 can be computed",
     {"\"rope_parameters\": {\"partial_rotary_factor\": 0.5}", "\"partial_rotary_factor\": 0.25"}},
    {CONFIG, SCALING, "another layer", {"\"layer_types\": [\"full_attention\", \"sliding_attention\"]"}},
    {CONFIG, "\"silu\"", "\"hidden_act\" is gelu; only \"silu\" can be computed", {"\"gelu\""}},
    {CONFIG, "_bias\": false", "another one; only false can be computed", {"_bias\": true"}},
    {CONFIG, "use_sliding_window\": false", "another one; only false", {"use_sliding_window\": true"}},
    {CONFIG, "\"qwen3\"", "\"model_type\" is llama; only \"qwen3\"", {"\"llama\""}},
    {CONFIG, "\"model_type\": \"qwen3\",", "the field \"model_type\" is missing", {""}},
    {CONFIG, "CausalLM", "the architecture is \"Qwen3ForTokenClassification\"", {"TokenClassification"}},
    {CONFIG, "CausalLM", "tensor score.weight is missing", {"SequenceClassification"}},   // of a policy
    {CONFIG, "{", "config.json, line ", {"["}},

    {STATE, "\"kind\": \"sft\"", "a run of kind \"rl\", this one is of kind \"sft\"", {"\"kind\": \"rl\""}},
    {STATE, "\"kind\": \"sft\",", "trainer_state.json is damaged", {""}},
    {STATE, "step\": 5", "trainer_state.json is damaged", {"step\": -5", "step\": 5.5", "step\": 1e99"}},
    {STATE, "\"options\"", "trainer_state.json is damaged", {"\"opinions\""}},
    {STATE, "n\": \"7\"", "trainer_state.json: --n must be a whole number, not 'seven'", {"n\": \"seven\""}},
    {STATE, "\"n\": \"7\"", "--n must be from 0 to 100", {"\"n\": \"101\""}},
    {STATE, "\"step\": 5", "this field is there twice", {"\"step\": 5, \"step\": 5"}},
    {STATE, "}", "trainer_state.json, line ", {""}},
};

static void damaged_files(void) {
    for (int i = 0; i < COUNT(damages); i++)
        for (int k = 0; k < 12 && damages[i].to[k]; k++) {
            damage(damages[i].file, damages[i].from, damages[i].to[k], 0);
            ENDS(load_all, in_root("broken"), 2, damages[i].words);
        }
    // one number more at the end: of a tensor that the model does not have, of none
    damage(MODEL, "\"model.norm.weight\"",
           "\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[176,180]},\"model.norm.weight\"", 4);
    ENDS(load_all, in_root("broken"), 2, "has the tensor x, which is not in the model");
    damage(MODEL, "", "", 4);
    ENDS(load_all, in_root("broken"), 2, "no tensor begins at byte 176 behind the header");
    // 3 GB of nothing behind it: the header says how long the file is, and no more is read
    double begin = seconds_now();
    damage(MODEL, "", "", (off_t)3 << 30);
    ENDS(load_all, in_root("broken"), 2, "no tensor begins at byte 176 behind the header");
    CHECK(seconds_now() - begin < 2.0);
    // the length of the header: 2^64 - 1, 2^63, one more than there is, none
    make_checkpoint(in_root("broken"), &smallest, 3, 5);
    Text text = read_file(in_broken(MODEL));
    const uint64_t lengths[4] = {UINT64_MAX, (uint64_t)1 << 63, text.length - 7, 0};
    for (int i = 0; i < 4; i++) {
        for (int b = 0; b < 8; b++) text.data[b] = (char)(lengths[i] >> 8 * b & 0xFF);
        put_file(in_broken(MODEL), text.data, text.length);
        ENDS(load_all, in_root("broken"), 2, i < 3 ? "the file ends inside its header" : "ends too early");
    }
    text_free(&text);
}

// A save killed while it renames leaves files of updates 5 and 6: whichever, they must not be resumed.
static void missing_and_mixed_files(void) {
    static const char* const names[] = {CONFIG, MODEL, MOMENTS, STATE, "value.safetensors",
                                        "value_optimizer.safetensors"};
    with_value = 1;
    make_checkpoint(in_root("later"), &smallest, 9, 6);
    for (int i = 0; i < 6; i++) {
        char from[PATH_SIZE];
        join_path(from, in_root("later"), names[i]);
        make_checkpoint(in_root("broken"), &smallest, 3, 5);
        remove(in_broken(names[i]));
        ENDS(load_all, in_root("broken"), 2, names[i]);
        copy_file(in_broken(names[i]), from);
        ENDS(load_all, in_root("broken"), i ? 2 : 0, "update 6");   // the sizes are the same
    }
    ENDS(load_all, in_root("nowhere"), 2, "nowhere");
    with_value = 0;
}

// ---- saves that fail

static int size_limit;

// saves another model over the checkpoint "kept" while no file can grow beyond size_limit bytes
static void save_with_little_room(const char* folder) {
    struct rlimit limit = {(rlim_t)size_limit, (rlim_t)size_limit};
    signal(SIGXFSZ, SIG_IGN);   // the write then fails with an error instead of a signal
    setrlimit(RLIMIT_FSIZE, &limit);
    make_checkpoint(folder, &smallest, 77, 6);
}

static void save_later(const char* folder) { make_checkpoint(folder, &smallest, 77, 6); }

static void a_failed_save_changes_nothing(void) {
    static const char* const names[] = {
        CONFIG, "generation_config.json", "tokenizer.json", "tokenizer_config.json", MODEL, MOMENTS, STATE,
        "value.safetensors", "value_optimizer.safetensors"};
    with_value = 1;
    flushes = 0, renames = 0;
    make_checkpoint(in_root("kept"), &smallest, 3, 5);
    CHECK(flushes == 12 && renames == 11);   // nine files, three times a folder; the save, and ten places
    Text before = picture(in_root("kept")), largest = read_file(in_root("kept/tokenizer.json"));
    for (size_limit = 0; size_limit < (int)largest.length; size_limit += (int)largest.length / 12) {
        ENDS(save_with_little_room, in_root("kept"), 1, "cannot write");
        CHECK(is_still(in_root("kept"), &before));
    }
    // a full disk, at each of the files in turn: /dev/full answers "no space left on device"
    for (int i = 0; i < 9 && file_exists("/dev/full"); i++) {
        char path[PATH_SIZE];
        make_folder(in_root("kept/.saving"));
        join_path(path, in_root("kept/.saving"), names[i]);
        if (symlink("/dev/full", path)) CHECK(!"the link could be made");
        ENDS(save_later, in_root("kept"), 1, "No space left on device");
        CHECK(is_still(in_root("kept"), &before));
    }
    ENDS(load_all, in_root("kept"), 0, "");
    put_text(in_root("a file"), "x");
    put_text(in_root("kept/.saving"), "x");   // a file where a folder is needed
    ENDS(save_later, in_root("kept"), 1, "Not a directory");
    remove(in_root("kept/.saving"));
    ENDS(save_later, in_root("a file"), 1, "is not a directory");
    ENDS(save_later, in_root("a file/below"), 1, "cannot make the directory");
    ENDS(save_later, "/dev/null/below", 1, "cannot make the directory");
    ENDS(save_later, "", 2, "directory");    // not "/", not whatever the memory behind the empty name says
    ENDS(save_later, in_root("kept"), 0, "");   // with room again, it works
    CHECK(!is_still(in_root("kept"), &before) && !holds_parts(in_root("kept")));
    text_free(&before), text_free(&largest);
    with_value = 0;
}

// status 1 unless weights, moments and number of updates (also the value's) are all of save 5 or all of 6
static void load_killed(const char* folder) {
    Config vc = value_config(&smallest);
    Model m = load_model(folder), old = model_new(smallest), value = model_new(vc);
    Optimizer first = optimizer_new(&smallest), vo, value_first = optimizer_new(&vc);
    fill_with_noise(&old.weights, 3);
    long expected = same_weights(&m.weights, &old.weights) ? 5 : 6;
    uint64_t seed = expected == 5 ? 3 : 77;                  // see make_checkpoint()
    fill_with_noise(&first.first, seed + 1);
    fill_with_noise(&value.weights, seed + 3), fill_with_noise(&value_first.first, seed + 4);
    long step = state_from_json(folder, "sft", (Option[]){{0}});
    Optimizer o = load_optimizer(folder, &m.config, step);
    Model v = load_value_model(&vo, folder, &m.config, step);
    if (step != expected || !same_weights(&o.first, &first.first)) fail(1, "parts of two saves were mixed");
    if (!same_weights(&v.weights, &value.weights) || !same_weights(&vo.first, &value_first.first))
        fail(1, "value models of two saves were mixed");
}

static int save_killed(int at) {             // saves over checkpoint 5 and is killed before this rename
    remove_folder(in_root("killed"));
    make_checkpoint(in_root("killed"), &smallest, 3, 5);
    kill_at = at, renames = 0;
    int status = ending_of(save_later, in_root("killed")).status;
    kill_at = 0;
    return status;
}

// Killed between renames, a save leaves files of two. What is loaded is all of the old one until .saving is
// renamed, and all of the new one afterwards. Who reads changes nothing.
static void a_killed_save_is_never_mixed(void) {
    with_value = 1;
    renames = 0;
    save_later(in_root("killed"));
    int last = renames;
    for (int at = 1; at <= last + 1; at++) {
        CHECK(save_killed(at) == (at <= last ? 137 : 0));
        chmod(in_root("killed"), 0555);
        ENDS(load_killed, in_root("killed"), 0, "");
        chmod(in_root("killed"), 0755);
        if (at == 1) continue;
        close(take_folder(in_root("killed"), 0, 0));   // the next writer moves what was left
        CHECK(!holds_parts(in_root("killed")));
        ENDS(load_killed, in_root("killed"), 0, "");
    }
    CHECK(save_killed(3) == 137);
    empty_folder(in_root("killed"), ".saving", 0);   // as run_begin() does
    empty_folder(in_root("killed"), ".saved", 1);
    save_later(in_root("killed"));           // what was left behind is in nobody's way
    ENDS(load_killed, in_root("killed"), 0, "");
    CHECK(!holds_parts(in_root("killed")));
    with_value = 0;
}

// ---- options

// words separated by |
static int split(char* argv[64], char* line) {
    int argc = 0;
    for (char* p = *line ? line : NULL; p && argc < 64; argc++) {
        argv[argc] = p;
        p = strchr(p, '|');
        if (p) *p++ = 0;
    }
    return argc;
}

static struct { int n, flag; float x; uint64_t seed; const char *text, *rest[2]; int rests; } given;

static void parse(const char* words) {
    static char line[1000];   // stays: the texts of options point into it
    char* argv[64];
    snprintf(line, sizeof line, "%s", words);
    memset(&given, 0, sizeof given);
    Option options[] = {
        {"n", OPTION_INT, &given.n, -5, 100, "", 1, 0},
        {"x", OPTION_FLOAT, &given.x, 0, 10, "", 1, 0},
        {"seed", OPTION_SEED, &given.seed, 0, 0, "", 1, 0},
        {"text", OPTION_TEXT, &given.text, 0, 0, "", 1, 0},
        {"text-two", OPTION_TEXT, &given.text, 0, 0, "", 1, 0},
        {"flag", OPTION_FLAG, &given.flag, 0, 0, "", 1, 0},
        {0},
    };
    int argc = split(argv, line);
    given.rests = parse_options(options, argc, argv, given.rest, 2);
}

static void options_that_are_right(void) {
    parse("--n=3|--x|2.5|--seed|18446744073709551615|--text=a=b|--flag");
    CHECK(given.n == 3 && given.x == 2.5f && given.seed == UINT64_MAX && given.flag == 1 && given.rests == 0);
    CHECK_TEXT(given.text, "a=b");
    parse("--n|-5|--x=1e-3|one|--text=|two");   // a number may begin with a minus, a text may be empty
    CHECK(given.n == -5 && given.x == 1e-3f && given.rests == 2);
    CHECK_TEXT(given.text, "");
    CHECK_TEXT(given.rest[0], "one");
    CHECK_TEXT(given.rest[1], "two");
    parse("--n=1|--n=2|--text-two=x");   // the last one counts; --text is not --text-two
    CHECK(given.n == 2);
    CHECK_TEXT(given.text, "x");
    parse("--text|-");
    CHECK_TEXT(given.text, "-");
    parse("");
    CHECK(given.rests == 0 && given.n == 0);
}

static void options_that_are_wrong(void) {
    static const struct { const char *words, *lines[4]; } bad[] = {
        {"unknown option '--m'", {"--m=3"}},
        {"unknown option '--N'", {"--N=3"}},
        {"unknown option '-n'", {"-n=3"}},
        {"unknown option '--'", {"--", "--=3"}},
        {"unknown option '--nn'", {"--nn=3"}},
        {"unknown option '--tex'", {"--tex=3"}},
        {"unknown option '-5'", {"-5"}},
        {"--n needs a value", {"--n"}},
        {"--text needs a value", {"--x=1|--text", "--text|--n=3"}},   // not: a text that is "--n=3"
        {"--flag takes no value", {"--flag=1", "--flag="}},
        {"'3' is not expected here", {"--flag|1|2|3"}},
        {"'' is not expected here", {"a|b|"}},
        {"--n must be from -5 to 100, not ", {"--n=101", "--n=-6", "--n=1e99", "--n=99999999999999999999"}},
        {"--n must be a whole number, not '2.5'", {"--n=2.5"}},
        {"--x must be from 0 to 10", {"--x=10.5", "--x=-0.1", "--x=1e99"}},
        {"--seed must be a whole number",
         {"--seed=-1", "--seed=18446744073709551616", "--seed=1.5", "--seed=+1"}},
        {"--text must be valid UTF-8", {"--text=caf\xE9"}},   // trainer_state.json could not be read again
    };
    for (int i = 0; i < 4 * COUNT(bad); i++)
        if (bad[i / 4].lines[i % 4]) ENDS(parse, bad[i / 4].lines[i % 4], 2, bad[i / 4].words);
    // what strtod() would take or half take, but nobody means
    static const char* const numbers[] = {
        "",   " ",    "x",      "nan", "NAN", "inf", "-inf", "infinity", " 5",   "5 ",     "\t5",
        "5x", "0x10", "0x1p3",  "5,0", "1 2", "1e",  "--5",  "five",     "1e999", "nan(5)",
    };
    static const char* const names[] = {"n", "x", "seed"};
    for (int i = 0; i < 3 * COUNT(numbers); i++) {
        char line[64], words[32];
        snprintf(line, sizeof line, "--%s=%s", names[i % 3], numbers[i / 3]);
        snprintf(words, sizeof words, "--%s must be", names[i % 3]);
        ENDS(parse, line, 2, words);
    }
}

// ---- runs that are stopped and resumed

// Five conversations and batches of three: the fifth update is in the third epoch.
static const char* const tiny_data =
    "{\"question\": \"1+1?\", \"answer\": \"It is <<1+1=2>>2.\\n#### 2\"}\n"
    "{\"question\": \"2+3?\", \"answer\": \"<<2+3=5>>5\\n#### 5\"}\n"
    "{\"question\": \"4-1?\", \"answer\": \"\\\\boxed{3}\"}\n"
    "{\"question\": \"3*3?\", \"answer\": \"The answer is 9.\"}\n"
    "{\"question\": \"8/2?\", \"answer\": \"<<8/2=4>>4\"}\n";
#define TINY "--data=@tiny.jsonl|--threads=1|--steps=9|--batch-size=3|--warmup-steps=2|" \
             "--layers=2|--width=8|--heads=2|--kv-heads=1|--head-dim=4|--mlp-width=12"
#define FLAT "|--warmup-steps=0|--final-lr-frac=1"   // a learning rate that does not depend on --steps
#define NEW TINY "|--overwrite"
#define ENDLESS TINY "|--steps=100000000"

// Supervised training with these options, ending like main(); "@name" is a path in the test's folder.
static void run_training(const char* words) {
    char line[8000];
    size_t n = 0;
    char* argv[64];
    for (const char* p = words; *p && n < 4000; p++)
        if (*p == '@') n += (size_t)snprintf(line + n, sizeof line - n, "%s/", root);
        else line[n++] = *p;
    line[n] = 0;
    int argc = split(argv, line);
    TrainOptions o = train_defaults();
    Option options[TRAIN_OPTIONS] = {{0}};
    train_options(options, &o);
    parse_options(options, argc, argv, NULL, 0);
    fflush(NULL);
    _exit(train(&o, options));
}

// Training with these options; Ctrl-C is pressed in update number `press`, 0 = never.
#define TRAINS(words) trains(__LINE__, 0, words)
#define STOPS(press, words) trains(__LINE__, press, words)
static void trains(int line, int press, const char* words) {
    press_at = press;
    Ending e = ending_of(run_training, words);
    press_at = 0;
    if (e.status == (press ? 130 : 0)) return;
    BROKEN_AT(__FILE__, line, "%s ended with status %d: %s", words, e.status, e.said);
}

// What two equal runs have in common: metrics.csv without its two columns of times, "0,5.57,0.0015,1.76" ...;
// trainer_state.json without how often is saved and printed; all of any other file
static Text comparable(const char* folder, const char* name) {
    char path[PATH_SIZE];
    join_path(path, folder, name);
    Text text = read_file(path), out = {0};
    text_append(&out, "", 0);
    for (char *p = text.data, *end = p + text.length; p < end;) {
        size_t length = (size_t)(end - p), kept = 0;
        if (!strstr(name, ".safetensors")) length = strcspn(p, "\n") + (strchr(p, '\n') != NULL);
        int commas = 0;
        while (kept < length && (strcmp(name, "metrics.csv") || (commas += p[kept] == ',') < 4)) kept++;
        if (!strncmp(p, "    \"save-every", 15) || !strncmp(p, "    \"log-every", 14)) kept = 0;
        text_append(&out, p, kept);
        if (kept < length) text_append(&out, "\n", 1);
        p += length;
    }
    text_free(&text);
    return out;
}

#define SAME_RUN(a, b) same_run(__LINE__, in_root(a), in_root(b))
static void same_run(int line, const char* a, const char* b) {
    static const char* const names[] = {MODEL, MOMENTS, CONFIG, STATE, "metrics.csv"};
    for (int i = 0; i < 5; i++) {
        Text m = comparable(a, names[i]), n = comparable(b, names[i]);
        if (!same_text(&m, &n)) BROKEN_AT(__FILE__, line, "%s differs\n", names[i]);
        text_free(&m), text_free(&n);
    }
}

// rows of metrics.csv, and the number of updates in trainer_state.json
static void check_updates(const char* folder, long updates) {
    char path[PATH_SIZE];
    join_path(path, folder, STATE);
    Json* state = json_read_file(path);
    Text m = comparable(folder, "metrics.csv");
    long lines = -1;          // the first holds the names
    for (const char* p = m.data; *p; p++) lines += *p == '\n';
    if (updates < 0) updates = lines;
    CHECK(lines == updates && json_get(state, "step")->number == (double)updates && lines > 0);
    CHECK(!strncmp(m.data, "step,loss,lr,grad_norm\n0,", 25));
    Model model = load_model(folder);
    Optimizer o = load_optimizer(folder, &model.config, lines);
    json_free(state), text_free(&m), optimizer_free(&o), model_free(&model);
    CHECK(!holds_parts(folder));
}

static void append_line(const char* text) {   // to the table of the run in "parts"
    write_bytes(in_root("parts/metrics.csv"), "a", text, strlen(text));
}

#define RESUME "--resume=@parts|--threads=1"
static void a_resumed_run_is_the_same_run(void) {
    put_text(in_root("tiny.jsonl"), tiny_data);
    TRAINS(TINY "|--out=@whole");
    check_updates(in_root("whole"), 9);
    TRAINS(TINY "|--save-every=2|--out=@often");   // saving more often changes nothing
    SAME_RUN("whole", "often");

    // Ctrl-C: the update is finished and saved, status 130; then on, with other threads or --save-every.
    for (int stop = 1; stop <= 9; stop += stop == 2 || stop == 5 ? 3 : 1) {   // 1, 2, 5, 8, 9
        remove_folder(in_root("parts"));
        STOPS(stop, TINY "|--out=@parts");
        check_updates(in_root("parts"), stop);
        if (stop == 5) TRAINS("--resume=@parts|--out=@parts/|--threads=2");
        else if (stop < 9) TRAINS("--resume=@parts|--save-every=1");
        SAME_RUN("whole", "parts");
    }

    // three parts; with lines in metrics.csv that a killed process left behind
    remove_folder(in_root("parts"));
    STOPS(2, TINY "|--save-every=3|--log-every=4|--out=@parts");
    STOPS(2, RESUME);
    Text state = read_file(in_root("parts/trainer_state.json"));   // both belong to the run
    CHECK(strstr(state.data, "\"save-every\": \"3\"") && strstr(state.data, "\"log-every\": \"4\""));
    text_free(&state);
    append_line("4,0,0,0,0,0\n5,0,0,0,0,0\n6,0");   // updates 0 to 3 are saved
    TRAINS(RESUME);
    SAME_RUN("whole", "parts");

    // a metrics.csv that has been copied behind itself: no update may stand in it twice
    remove_folder(in_root("parts"));
    STOPS(4, TINY "|--out=@parts");
    append_line("step,loss,lr,grad_norm,tokens,seconds\n0,0,0,0,0,0\n3,0,0,0,0,0\n");
    TRAINS(RESUME);
    SAME_RUN("whole", "parts");

    // A longer run whose learning rate is constant: 4 updates and 5 more are 9.
    TRAINS(TINY FLAT "|--out=@flat");
    TRAINS(TINY FLAT "|--steps=4|--out=@more");
    TRAINS("--resume=@more|--steps=9|--threads=1");
    SAME_RUN("flat", "more");
}

static void runs_that_cannot_be_resumed(void) {
    static const struct { const char *options, *words; } bad[] = {
        {"--resume=@nowhere", "has no trainer_state.json"},
        // nothing is left to do, or the sizes of the model are to change: the user has something else in mind
        {"--resume=@base", "9 of 9 updates"},
        {"--resume=@base|--steps=20|--out=@never", "in its own folder: copy "},
        {"--resume=@base|--steps=20|--overwrite", "leave one out"},
        {"--resume=@base|--steps=20|--width=16", "--width"},
        {TINY "|--steps=20|--out=@base", "holds a run: --resume "},
        // bad input is found before anything is written
        {TINY "|--data=@nowhere.jsonl|--out=@never", "cannot open"},
        {TINY "|--heads=3|--kv-heads=2|--out=@never", "must be a multiple"},
        {TINY "|--context=8|--out=@never", "no conversation fits the context of 8"},
        {TINY "|--eval-data=@nowhere.jsonl|--out=@never", "cannot open"},
    };
    TRAINS(NEW "|--out=@base");
    Text before = picture(in_root("base"));
    for (int i = 0; i < COUNT(bad); i++) ENDS(run_training, bad[i].options, 2, bad[i].words);
    CHECK(!file_exists(in_root("never")));
    CHECK(is_still(in_root("base"), &before));
    text_free(&before);

    // other data; a table without a row or its head; the state of another run, or with another width. "": no
    // file, and from the second on it stays away
    static const struct { const char *file, *from, *to, *words; } row[] = {
        {"tiny.jsonl", "8/2?", "6/2?", "tiny.jsonl has changed since the run began"},
        {"base/metrics.csv", "\n4,", "\n44,", "does not have its row of update 4 any more"},
        {"base/metrics.csv", "\n8,", "\n8", "row of update 8"},
        {"base/metrics.csv", "step,loss", "loss,step", "row of update 0"},
        {"base/trainer_state.json", "\"sft\"", "\"rl\"", "was written by a run of kind \"rl\""},
        {"base/trainer_state.json", "width\": \"8\"", "width\": \"16\"", "--width is 8 for the model in "},
        {"base/metrics.csv", "", "", "cannot open"},
        {"base/optimizer.safetensors", "", "", "optimizer.safetensors"},
        {"base/trainer_state.json", "", "", "has no trainer_state.json"},
    };
    for (int i = 0; i < COUNT(row); i++) {
        Text was = edit(in_root(row[i].file), row[i].from, row[i].to);
        if (!*row[i].from) remove(in_root(row[i].file));
        ENDS(run_training, "--resume=@base|--steps=20", 2, row[i].words);
        if (i < 7) put_back(in_root(row[i].file), &was);
        else text_free(&was);
    }
    ENDS(run_training, TINY "|--out=@base", 2, "holds a run");   // its weights are left
}

static void copy_model(const char* to, const char* from) {   // the weights and what they are, no moments
    static const char* const names[] = {CONFIG, MODEL};
    char x[PATH_SIZE], y[PATH_SIZE];
    make_folder(to);
    for (int i = 0; i < 2; i++) join_path(x, to, names[i]), join_path(y, from, names[i]), copy_file(x, y);
}

// --model takes the weights and the sizes, and nothing else: the run begins with update 0 and moments of 0.
#define FROM "--data=@tiny.jsonl|--threads=1|--batch-size=3|--warmup-steps=2|--model=@start"
static void a_run_from_a_model(void) {
    TRAINS(NEW "|--out=@start");
    TRAINS(FROM "|--steps=1|--lr=0|--out=@still");   // with a learning rate of 0 the weights stay as they are
    Model start = load_model(in_root("start")), still = load_model(in_root("still"));
    CHECK(same_weights(&start.weights, &still.weights));
    CHECK(!memcmp(&start.config, &still.config, sizeof(Config)) && start.config.width == 8);
    model_free(&start), model_free(&still);

    // the moments of the nine updates behind it play no part: without their file it is the same run
    TRAINS(FROM "|--steps=7|--out=@from");
    remove(in_root("start/optimizer.safetensors")), remove(in_root("start/trainer_state.json"));
    TRAINS(FROM "|--steps=7|--overwrite|--out=@again");
    SAME_RUN("from", "again");
    check_updates(in_root("again"), 7);
    Json* state = json_read_file(in_root("again/trainer_state.json"));
    const Json* options = json_get(state, "options");
    CHECK_TEXT(json_get(options, "model")->string, in_root("start"));
    CHECK_TEXT(json_get(options, "width")->string, "8");
    json_free(state);

    // it is resumed bit for bit, whether the model it began with is still there, is another one, or is gone
    for (int kind = 0; kind < 3; kind++) {
        remove_folder(in_root("parts"));
        remove_folder(in_root("start"));
        copy_model(in_root("start"), in_root("still"));
        STOPS(3, FROM "|--steps=7|--out=@parts");
        if (kind == 1) make_checkpoint(in_root("start"), &smallest, 3, 5);
        if (kind == 2) remove_folder(in_root("start"));
        TRAINS(RESUME);
        SAME_RUN("from", "parts");
    }

    // a model of another program, whose norm_eps and rope_theta no option has: resumed all the same
    copy_model(in_root("start"), in_root("still"));
    Text eps = edit(in_root("start/config.json"), "9.99999997e-07", "1e-4"),
         theta = edit(in_root("start/config.json"), "\"rope_theta\": 10000", "\"rope_theta\": 5e8");
    TRAINS(FROM FLAT "|--steps=4|--out=@theirs");
    TRAINS(FROM FLAT "|--steps=2|--out=@halves");
    TRAINS("--resume=@halves|--steps=4|--threads=1");
    SAME_RUN("theirs", "halves");
    text_free(&eps), text_free(&theta);
}

static void models_that_no_run_starts_from(void) {
    static const struct { const char *options, *words; } bad[] = {
        {"--model=@nowhere", "there is no checkpoint directory '"},
        {"--model=", "there is no checkpoint directory ''"},   // an empty variable of the shell, perhaps
        {"--model=@few", "has a vocabulary of 3 tokens"},
        {"--model=@scores", "holds a reward model"},
        {"--model=@start|--width=16", "--width is 8 for the model in "},
        {"--model=@start|--width=96", "--width is 8 for the model in "},   // the usual 96, but it was given
        {"--model=@start|--width=8|--tied=0", "--tied is 1 for the model in "},
        {"--model=@start|--rope-theta=500", "--rope-theta is 10000 for the model in "},
        {"--model=@start|--context=128", "--context is 256 for the model in "},
        {"--model=@start|--out=@start", "holds a run"},
        {"--model=@start|--out=@start|--overwrite", "over the model in "},
        {"--model=@start|--out=@few/../start/|--overwrite", "try another --out"},
        {"--model=@start|--resume=@start", "--model starts a run and --resume goes on with one"},
    };
    TRAINS(NEW "|--out=@start");
    make_checkpoint(in_root("few"), &smallest, 3, 5);
    Model start = load_model(in_root("start"));
    Config c = value_config(&start.config);
    model_free(&start);
    make_checkpoint(in_root("scores"), &c, 3, 5);
    Text before = picture(in_root("start"));
    for (int i = 0; i < COUNT(bad); i++) {
        char line[500];
        snprintf(line, sizeof line, "--data=@tiny.jsonl|--steps=20|--out=@never|%s", bad[i].options);
        ENDS(run_training, line, 2, bad[i].words);
    }
    CHECK(!file_exists(in_root("never")));
    CHECK(is_still(in_root("start"), &before));
    text_free(&before);
    TRAINS(FROM "|--steps=1|--out=@agrees|--width=8");   // a size that agrees may be given
}

static const Column one_column[] = {{"x", "x", 0, 6, 2, 0}, {0}};

// Which updates are followed by a line (l) and by a save (s); Ctrl-C in update number `press`, 0 = never.
static const char* schedule(long step, long steps, int log_every, int save_every, int press) {
    static char text[200];
    size_t n = 0;
    Model m = model_new(smallest);
    updates_seen = 0, press_at = press;
    remove_folder(in_root("run"));
    make_folder(in_root("run"));
    put_text(in_root("run/metrics.csv"), "step,x\n0,a\n1,a\n2,a\n3,a\n4,a\n5,a\n6,a\n");
    fflush(stdout);
    int screen = dup(1);
    if (!freopen("/dev/null", "w", stdout)) abort();
    Run r = run_begin(in_root("run"), 0, one_column, step, steps, log_every, save_every);
    while (run_goes_on(&r)) {
        int lines = r.lines;
        run_record(&r, &m, NULL, &(double){1.0});
        const char *logs = r.lines > lines ? "l" : "", *saves = run_saves(&r) ? "s" : "";
        n += (size_t)snprintf(text + n, sizeof text - n, " %ld%s%s", r.step, logs, saves);
    }
    CHECK(r.stop == (press > 0));
    press_at = 0;
    CHECK(run_end(&r, "./program", "run") == (press > 0 ? 130 : 0));
    fflush(stdout);
    dup2(screen, 1), close(screen);
    model_free(&m);
    return text;
}

static Run begin_run(long step, int save_every) {
    return run_begin(in_root("run"), 0, one_column, step, 3, 1, save_every);
}
static void begin(const char* step) { begin_run(strtol(step, NULL, 10), 0); }

// w, v or s and a number: a weight, one of the value model, a second moment
static void count_one(const char* what) {
    Model m = model_new(smallest), v = model_new(value_config(&smallest));
    double number = strtod(what + 1, NULL);
    Run r = begin_run(0, 0);
    run_record(&r, &m, &v, &(double){1.0});
    if (*what == 'w') m.weights.norm[1] = (float)number;
    if (*what == 'v') v.weights.score[0] = (float)number;
    run_record(&r, &m, &v, &(double){1.0});
    if (*what == 's') {
        Optimizer o = optimizer_new(&smallest);
        o.second.layer[0].down[3] = (float)number;
        save_run(in_root("run"), "sft", (Option[]){{0}}, 2, &m, &o, NULL, NULL);
    }
}

static void die_at_the_save(const char* number) {
    Model m = model_new(smallest);
    Run r = begin_run(0, 1);
    run_record(&r, &m, NULL, &(double){strtod(number, NULL)});
    if (run_saves(&r)) _exit(0);
}

static void lose_the_folder(const char* how) {
    Model m = model_new(smallest);
    Run r = begin_run(0, 0);
    if (*how == 'm') rename(in_root("run"), in_root("moved"));
    if (*how == 'r') remove_folder(in_root("run"));
    if (*how == 'f') r.metrics = freopen("/dev/full", "w", r.metrics);
    run_record(&r, &m, NULL, &(double){1.0});
    run_saves(&r);
}

// At every multiple and after the last update, also when Ctrl-C made it the last; 0: only there.
static void lines_and_saves(void) {
    static const struct { long step, steps; int log, save, press; const char* text; } row[] = {
        {0, 7, 3, 0, 0, " 1 2 3l 4 5 6l 7ls"},
        {0, 7, 3, 2, 0, " 1 2s 3l 4s 5 6ls 7ls"},
        {0, 6, 3, 2, 0, " 1 2s 3l 4s 5 6ls"},
        {0, 3, 1, 1, 0, " 1ls 2ls 3ls"},
        {0, 3, 100, 100, 0, " 1 2 3ls"},
        {4, 7, 3, 2, 0, " 5 6ls 7ls"},
        {6, 7, 3, 2, 0, " 7ls"},
        {0, 7, 3, 0, 2, " 1 2ls"},
        {0, 7, 3, 0, 1, " 1ls"},
        {0, 2, 3, 0, 2, " 1 2ls"},
    };
    for (int i = 0; i < COUNT(row); i++)
        CHECK_TEXT(schedule(row[i].step, row[i].steps, row[i].log, row[i].save, row[i].press), row[i].text);
    ENDS(begin, "3", 2, "/run is finished: 3 of 3 updates are done");
    ENDS(begin, "4", 2, "4 of 3 updates are done; --num-steps (");
    // which update, and what of it, was the first to be no number
    ENDS(count_one, "w1.5", 0, "");
    ENDS(count_one, "winf", 1, "after update 2 model.norm.weight is not finite");
    ENDS(count_one, "vnan", 1, "after update 2 the value's score.weight is not finite");
    ENDS(count_one, "s1", 0, "");
    remove(in_root("run/trainer_state.json")), remove(in_root("run/model.safetensors"));
    ENDS(count_one, "sinf", 1, "after update 2 exp_avg_sq.model.layers.0.mlp.down_proj.weight is not finite");
    CHECK(!holds_parts(in_root("run")) && !file_exists(in_root("run/trainer_state.json")));
    ENDS(lose_the_folder, "", 0, "");
    ENDS(lose_the_folder, "moved", 1, "was moved or removed while the run was writing into it");
    ENDS(lose_the_folder, "removed", 1, "was moved or removed while the run was writing into it");
    if (file_exists("/dev/full")) ENDS(lose_the_folder, "full", 1, "metrics.csv: No space left on device");
    // the table is on the disk before the checkpoint that it must reach up to
    ENDS(die_at_the_save, "2.5", 0, "");
    Text table = read_file(in_root("run/metrics.csv"));
    CHECK_TEXT(table.data, "step,x\n0,2.5\n");
    text_free(&table);
}

// How to go on, unless there is nothing left to do.
static void the_last_words_of_a_stopped_run(void) {
    static const struct { int press, status; const char *words, *said; } row[] = {
        {2, 130, TINY "|--steps=3|--out=@ended",
         "stopped after update 2 and saved; go on with: ./train_gpt --resume "},
        {2, 130, NEW "|--steps=2|--out=@ended", "stopped after the last update, 2, and saved in "},
        {0, 0, NEW "|--steps=2|--out=@ended", "\nsaved "},
    };
    aloud = 1;
    for (int i = 0; i < 3; i++) {
        updates_seen = 0, press_at = row[i].press;
        Ending e = ending_of(run_training, row[i].words);
        CHECK(e.status == row[i].status && strstr(e.said, row[i].said));
        CHECK(!strstr(e.said, "go on with") == (i > 0) && !strstr(e.said, "stopped") == (i > 1));
    }
    aloud = press_at = 0;
}

// ---- several processes

static pid_t in_background(const char* words, int ignored) {
    pid_t child = begin_child();
    if (child > 0) return child;
    if (ignored) signal(ignored, SIG_IGN);
    watch_signals();
    if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(99);
    run_training(words);
    _exit(98);
}

static void wait_for(const char* path, off_t size) {
    struct stat info = {0};
    for (int i = 0; i < 2000 && (stat(path, &info) != 0 || info.st_size < size); i++)
        nanosleep(&(struct timespec){0, 5000000}, NULL);
}

static int ended_by(int signal, pid_t child) {
    kill(child, signal);
    return status_of(child);
}

// A real signal from outside, at a moment that nobody chose. What was ignored from the beginning stays so.
static void signals_from_outside(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 6; i++) {
        remove_folder(in_root("stopped"));
        pid_t child = i < 3 ? in_background(ENDLESS "|--out=@stopped", 0)
                            : in_background(TINY "|--steps=300|--out=@stopped", signals[i % 3]);
        wait_for(in_root("stopped/metrics.csv"), 1000);
        CHECK(ended_by(signals[i % 3], child) == (i < 3 ? 130 : 0));
        check_updates(in_root("stopped"), i < 3 ? -1 : 300);
    }
}

// Readers beside a run that saves after every update find a whole model; a second writer is refused.
static void readers_and_writers(void) {
    pid_t writer = in_background(ENDLESS "|--save-every=1|--out=@busy", 0);
    wait_for(in_root("busy/trainer_state.json"), 1);
    for (int i = 0; i < 40; i++) ENDS(load_only, in_root("busy"), 0, "");
    ENDS(run_training, NEW "|--out=@busy", 2, "another program is training into ");
    ENDS(run_training, "--resume=@busy", 2, "another program is training into ");
    CHECK(ended_by(SIGINT, writer) == 130);
    check_updates(in_root("busy"), -1);
    // two at the same time into a folder that is not there yet: one of them does it
    pid_t both[2];
    for (int i = 0; i < 2; i++) both[i] = in_background(TINY "|--steps=300|--out=@raced", 0);
    int first = status_of(both[0]), second = status_of(both[1]);
    CHECK((first == 0 && second == 2) || (first == 2 && second == 0));
    check_updates(in_root("raced"), 300);
}

// kill -9 at random, again and again: the run that is resumed each time is the run that was never killed.
static void killed_and_resumed(void) {
    Rng rng = {7};
    TRAINS(TINY FLAT "|--steps=100|--out=@unkilled");
    int status = 1, kills = 0;
    for (int i = 0; i < 200 && status; i++) {
        int begun = has_saved(in_root("hunted"), STATE);
        pid_t child = in_background(begun ? "--resume=@hunted|--threads=1"
                                          : TINY FLAT "|--steps=100|--save-every=1|--out=@hunted", 0);
        nanosleep(&(struct timespec){0, 1000000 * (5 + i + random_int(&rng, 25))}, NULL);
        status = ended_by(SIGKILL, child);
        kills += status == 1000 + SIGKILL;
        // killed behind its last save, there is nothing left to do
        if (status == 2) ENDS(run_training, "--resume=@hunted|--threads=1", 2, "100 of 100 updates are done");
        if (status == 2) status = 0;
        CHECK(status == 0 || status == 1000 + SIGKILL);
        if (status && has_saved(in_root("hunted"), MODEL)) ENDS(load_only, in_root("hunted"), 0, "");
    }
    CHECK(status == 0 && kills > 3);
    SAME_RUN("unkilled", "hunted");
}

// A new run that replaces another and is killed before its first save leaves the old one, weights and rows.
static void replaced_only_by_a_save(void) {
    TRAINS(NEW "|--out=@old");
    Text before = picture(in_root("old"));
    pid_t child = in_background(ENDLESS "|--seed=7|--overwrite|--out=@old", 0);
    wait_for(in_root("old/.saving/metrics.csv"), 1000);
    ended_by(SIGKILL, child);
    CHECK(is_still(in_root("old"), &before));
    TRAINS("--resume=@old|--steps=12|--threads=1");
    child = in_background(ENDLESS "|--seed=7|--save-every=1|--overwrite|--out=@old", 0);
    wait_for(in_root("old/.saving/metrics.csv"), 1);
    nanosleep(&(struct timespec){0, 300000000}, NULL);
    CHECK(ended_by(SIGINT, child) == 130);
    check_updates(in_root("old"), -1);
    text_free(&before);
}

static void long_path(const char* name) {
    char path[PATH_SIZE] = "";
    for (size_t n = strtoul(name, NULL, 10); strlen(path) + 2 < n;) strcat(path, "/a");
    take_folder(path, 1, 0);
}

static void paths_that_are_too_long(void) {
    ENDS(long_path, "4050", 0, "");
    ENDS(long_path, "4070", 2, "is too long");
    ENDS(long_path, "4095", 2, "is too long");
}

int main(void) {
    static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 3; i++) signal(stops[i], SIG_DFL);   // nohup, a background shell ignore them
    watch_signals();
    const char* tmp = getenv("TMPDIR");
    snprintf(root, sizeof root, "%s/files.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(root)) return printf("FAIL files: cannot make a directory in %s\n", root), 1;
    set_threads(1);   // a process with a team of threads cannot fork one that wants its own
    RUN_ALL(TEST(any_bytes_come_back), TEST(names_of_special_tokens), TEST(conversations), TEST(json_texts),
            TEST(lines_that_can_be_read), TEST(lines_that_cannot), TEST(safetensors_by_hand),
            TEST(what_is_saved_is_loaded), TEST(reward_model_files),
            TEST(a_save_removes_what_it_does_not_have), TEST(models_that_do_not_fit), TEST(files_of_others),
            TEST(tokenizer_file), TEST(other_words), TEST(cut_or_changed_anywhere), TEST(damaged_files),
            TEST(missing_and_mixed_files), TEST(a_failed_save_changes_nothing),
            TEST(a_killed_save_is_never_mixed), TEST(options_that_are_right), TEST(options_that_are_wrong),
            TEST(a_resumed_run_is_the_same_run), TEST(runs_that_cannot_be_resumed), TEST(a_run_from_a_model),
            TEST(models_that_no_run_starts_from), TEST(lines_and_saves),
            TEST(the_last_words_of_a_stopped_run), TEST(paths_that_are_too_long), TEST(signals_from_outside),
            TEST(readers_and_writers), TEST(killed_and_resumed), TEST(replaced_only_by_a_save));
    remove_folder(root);
    return check_failed != 0;
}

// files.c - what train_gpt.c reads and writes: text and tokens, JSON, checkpoints, options, resumed runs.
// Good input must come back bit for bit; bad input must end in status 2 (or 1: a full disk) and one sentence
// that names the place, never crash, and leave the checkpoint that was there before as it was.
#define _XOPEN_SOURCE 700
#define _DARWIN_C_SOURCE
#include <stdio.h>
#include <unistd.h>

static int flushes, renames;         // fsync() is only counted; the process dies before rename number
static int kill_at;                  // kill_at = 1, 2, ...; 0 = never
static int flush_here(int file) { return flushes++, file < 0; }
static int rename_here(const char* from, const char* to) {
    if (++renames == kill_at) _exit(137);
    return rename(from, to);
}
#define fsync(file) flush_here(file)
#define rename(from, to) rename_here(from, to)
#define TRAIN_GPT_NO_MAIN
#define SOURCE "../train_gpt.c"
#include "commands.h"
#undef fsync
#undef rename
#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

// ---- tools: endings, files, small models

static const Ran* ending_of(void (*action)(const char*), const char* argument) {
    Child child = begin_child();
    if (child.id) return end_child(child);
    action(argument);
    end_here(0);
}

// action(argument) in a process of its own must end with this status and a sentence that contains these words
#define ENDS(action, argument, status, words) check_action(__LINE__, action, argument, status, words)
static void check_action(int line, void (*action)(const char*), const char* argument, int status,
                         const char* words) {
    int broken = check_broken;
    check_ending(line, ending_of(action, argument), status, words);
    if (check_broken > broken) printf("    that was \"%.300s\"\n", argument);
}

static void put_file(const char* path, const Text* text) {
    FILE* file = fopen(path, "wb");
    if (!file || fwrite(text->data, 1, text->length, file) != text->length || fclose(file)) abort();
}

static size_t header_length(const Text* safetensors) {   // those of this test are below 64 KB
    return (size_t)(unsigned char)safetensors->data[0] + 256 * (size_t)(unsigned char)safetensors->data[1];
}

// In a file the first `from` becomes `to`; a header's length goes along. Returns what it was, for put_back().
static Text edit(const char* path, const char* from, const char* to) {
    Text was = read_file(path), now = {0};
    size_t n = strlen(from), i = 0;
    while (i + n <= was.length && memcmp(was.data + i, from, n)) i++;
    if (i + n > was.length) {
        BROKEN("%s does not hold %s\n", path, from);
        return was;
    }
    text_append(&now, was.data, i);
    text_append(&now, to, strlen(to));
    text_append(&now, was.data + i + n, was.length - i - n);
    size_t length = header_length(&was) + now.length - was.length;
    for (int b = 0; b < 2 && strstr(path, ".safetensors"); b++) now.data[b] = (char)(length >> 8 * b & 0xFF);
    put_file(path, &now);
    text_free(&now);
    return was;
}

static void put_back(const char* path, Text* was) {
    put_file(path, was);
    text_free(was);
}

static int holds(const char* path, const char* words) {
    Text text = read_file(path);
    int found = strstr(text.data, words) != NULL;
    text_free(&text);
    return found;
}

// A folder's visible files are kept beside it; are they as they were? Is a part of a save left?
static void keep(const char* name) { CHECK(shell("rm -rf %s.kept && cp -R %s %s.kept", name, name, name)); }
static int is_still(const char* name) { return shell("diff -r -x '.*' %s.kept %s", name, name); }
static int holds_parts(const char* name) {
    return shell("ls -A %s | grep -q -e '\\.tmp' -e '^\\.sav'", name);
}

#define MODEL "model.safetensors"
#define MOMENTS "optimizer.safetensors"
#define CONFIG "config.json"
#define STATE "trainer_state.json"

// the smallest model that there is, and one in which no two sizes are the same
static const Config smallest = {3, 4, 1, 2, 1, 1, 2, 2, 1, 10000.0f, 1e-6f, 0};
static const Config crooked = {11, 16, 2, 6, 2, 1, 4, 10, 0, 500.0f, 1e-5f, 0};

static Config value_config(Config c) {
    c.scalar = 1;
    return c;
}

static void fill_with_noise(Weights* w, uint64_t seed) {
    static const float extremes[] = {-0.0f, 0x1p-149f, 3.4028235e38f};
    Rng rng = {seed};
    for (size_t i = 0; i < w->count; i++) w->memory[i] = i < 3 ? extremes[i] : (float)random_normal(&rng);
}

static int with_value;               // 1 = the checkpoints that are made and read have a value model too
static int seven = 7;
static Option options_of_runs[] = {{"n", OPTION_INT, &seven, 0, 100, "", 1, 0}, {0}};

static void save_all(const char* path, long step, const Model* m, const Optimizer* o, const Model* v,
                     const Optimizer* vo) {
    save_run(path, "sft", options_of_runs, step, m, o, with_value ? v : NULL, with_value ? vo : NULL);
}

// A checkpoint after `step` updates of a model, with moments and a trainer_state.json; all numbers are noise.
static void make_checkpoint(const char* name, const Config* c, uint64_t seed, long step) {
    Config vc = value_config(*c);
    Model m = model_new(*c), v = model_new(vc);
    Optimizer o = optimizer_new(c), vo = optimizer_new(&vc);
    Weights* all[] = {&m.weights, &o.first, &o.second, &v.weights, &vo.first, &vo.second};
    for (int i = 0; i < 6; i++) fill_with_noise(all[i], seed + (uint64_t)i);
    o.step = 3 * step, vo.step = step;                   // of three minibatches each
    save_all(name, step, &m, &o, &v, &vo);
    optimizer_free(&o), model_free(&m), optimizer_free(&vo), model_free(&v);
}

// Reads all of a checkpoint, as a resumed run does, and saves it again where that is asked for.
static const char* save_again;
static void load_all(const char* path) {
    Model v;
    Optimizer vo;
    long step = state_from_json(path, "sft", options_of_runs);
    Model m = load_model(path);
    Optimizer o = load_optimizer(path, &m.config, step);
    if (with_value) v = load_value_model(&vo, path, &m.config, step);
    if (save_again) save_all(save_again, step, &m, &o, &v, &vo);
    if (with_value) optimizer_free(&vo), model_free(&v);
    optimizer_free(&o), model_free(&m);
}

static void load_only(const char* path) {
    Model m = load_model(path);
    model_free(&m);
}

// While `from` is `to` in a file (two empty texts: while it is not there), action(argument) ends so.
static void spoiled(const char* name, const char* from, const char* to, void (*action)(const char*),
                    const char* argument, int status, const char* words) {
    int broken = check_broken;
    Text was = edit(name, from, to);
    if (!*from) remove(name);
    check_ending(__LINE__, ending_of(action, argument), status, words);
    if (check_broken > broken) printf("    that was %s with %s instead of %s\n", name, to, from);
    put_back(name, &was);
}

// ---- text and tokens

static void any_bytes_come_back(void) {
    char bytes[512];
    int ids[] = {BOS, 'a', OUTPUT_END, 'b'};
    Tokens t = {0};
    Text back = {0};
    for (int i = 0; i < 512; i++) bytes[i] = (char)(i < 256 ? i : 511 - i);   // every byte, 0 included, twice
    tokens_add_text(&t, bytes, 512, 1);
    CHECK(t.length == 512);
    for (int i = 0; i < 512; i++) CHECK(t.ids[i] == (i < 256 ? i : 511 - i) && t.mask[i] == 1);
    decode_tokens(&back, t.ids, t.length, 1);
    CHECK(back.length == 512 && !memcmp(back.data, bytes, 512));
    back.length = 0;
    decode_tokens(&back, ids, 4, 1);         // with the names of special tokens, and without
    decode_tokens(&back, ids, 4, 0);
    CHECK_TEXT(back.data, "<|bos|>a<|output_end|>bab");
    CHECK(VOCAB_SIZE == 265 && BOS == 256 && ASSISTANT_END == 260 && OUTPUT_END == 264);
    tokens_free(&t), text_free(&back);
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
        // The one difference: what begins with << and ends with >> between two calls is a call for nanochat
        // although its own pattern does not take it, [1>5]{}. GSM8K has no such line.
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

static size_t parsed_length;
static void parse_text(const char* text) { json_free(json_parse(text, parsed_length, "text")); }

// Why this text is refused, or "accepted".
static const char* verdict_of(const char* text, size_t length) {
    static char said[1000];
    parsed_length = length;
    const Ran* r = ending_of(parse_text, text);
    CHECK(r->status ? r->status == 2 && is_sentence(r->err) : !*r->err);
    const char *column = strstr(r->err, ", column "), *words = column ? strstr(column, ": ") : NULL;
    if (words) snprintf(said, sizeof said, "%.*s", (int)strcspn(words + 2, "\n"), words + 2);
    return !r->status ? "accepted" : words ? said : r->err;
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
        {"\"\\u007f\\u0080\\u07ff\\u0800\\uffff\"", "\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF"},
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
static void json_utf8_table(void) {
    static const struct { int from, to, second, second_to, bytes; } row[] = {
        {0x00, 0x7F, 0x00, 0xFF, 1}, {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
        {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
        {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };
    static const unsigned char edge[] = {0x00, 0x7F, 0x80, 0xBF, 0xC0, 0xFF};
    int wrong = 0, too_far = 0;
    for (int i = 0; i < 256 * 256 * 36; i++) {
        int a = i / 36 / 256, b = i / 36 % 256, c = edge[i % 6], d = edge[i / 6 % 6], length = 0;
        char text[4] = {(char)a, (char)b, (char)c, (char)d};
        for (int r = 0; r < 9; r++)
            if (a >= row[r].from && a <= row[r].to && b >= row[r].second && b <= row[r].second_to &&
                (row[r].bytes < 3 || (c & 0xC0) == 0x80) && (row[r].bytes < 4 || (d & 0xC0) == 0x80))
                length = row[r].bytes;
        wrong += utf8_length(text, text + 4) != length;
        for (int n = 1; n < length; n++) too_far += utf8_length(text, text + n) != 0;   // cut short
    }
    CHECK(wrong == 0);
    CHECK(too_far == 0);
}

static void json_values(void) {
    CHECK_TEXT(verdict_of("\"\\\0\"", 4), "unknown escape in a string");
    CHECK_TEXT(verdict_of("\"a\0b\"", 5), "the text ends inside a string");   // a 0 is no part of JSON
    CHECK_TEXT(verdict_of("[1\0]", 4), "the text ends too early");
    CHECK_TEXT(verdict_of("1 \0 2", 5), "there is something behind the value");
    Text deep = {0}, many = {0}, out = {0};
    for (int i = 0; i < 100000; i++) text_append(&deep, "[", 1);
    CHECK_TEXT(verdict_of(deep.data, 100000), "brackets are nested too deeply");   // they use up no stack
    CHECK_TEXT(verdict_of(deep.data, 65), "brackets are nested too deeply");
    memset(deep.data + 64, ']', 64);
    deep.data[128] = 0;
    CHECK_TEXT(verdict_of(deep.data, 128), "accepted");
    for (int i = 0; i <= JSON_FIELDS; i++) text_printf(&many, "%c\"%d\":0", i ? ',' : '{', i);
    CHECK_TEXT(verdict_of(many.data, many.length), "this object has too many fields");
    const char* text = "{\"a\":1,\"b\":[2]}";
    Json* j = json_parse(text, strlen(text), "text");
    CHECK(json_get(j, "a") && json_get(j, "a")->number == 1);
    CHECK(!json_get(j, "c") && !json_get(NULL, "a") && !json_get(j->child, "a"));
    CHECK(!json_get(json_get(j, "b"), "a"));
    char each[160] = "";           // every character, written and read
    for (int c = 1; c < 128; c++) each[c - 1] = (char)c;
    strcpy(each + 127, "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
    json_append_string(&out, each);
    CHECK_TEXT(value_in(out.data), each);
    json_free(j), text_free(&many), text_free(&out), text_free(&deep);
}

// ---- problems: JSONL files

static void load_file(const char* path) {
    Problems p = load_problems(path);
    problems_free(&p);
}

static void lines_that_can_be_read(void) {
    static const char* const expected[] = {"a", "b", "c \xE2\x82\xAC", "d\n#### 4", "e", "f"};
    // a byte order mark and CRLF; blank lines; spaces, other fields, another order; no newline at the end
    Problems p = load_problems(put("problems.jsonl",
        "\xEF\xBB\xBF{\"question\": \"a\", \"answer\": \"b\"}\r\n\r\n  \t\n\n"
        "  {\"answer\": \"d\\n#### 4\", \"id\": [7, {}], \"question\": \"c \xE2\x82\xAC\"}  \n"
        "{\"question\":\"e\",\"answer\":\"f\"}"));
    CHECK(p.count == 3);
    for (int i = 0; i < 3; i++) {
        CHECK_TEXT(p.list[i].question, expected[2 * i]);
        CHECK_TEXT(p.list[i].answer, expected[2 * i + 1]);
    }
    problems_free(&p);
}

#define GOOD "{\"question\": \"a\", \"answer\": \"b\"}\n"
static void lines_that_cannot(void) {
    static const struct { const char *words, *texts[4]; } bad[] = {
        {"has no problems in it", {"", "[]", "\n \r\n", "\xEF\xBB\xBF"}},
        // the half line has 22 bytes; the 23rd is missing
        {"line 3, column 23: the text ends inside a string", {GOOD "\n{\"question\": \"a\", \"ans"}},
        {"line 3, column 1: the text ends too early", {GOOD "{\"question\": \"a\"\n"}},
        {"line 2, column 34: there is something", {GOOD "{\"question\": \"a\", \"answer\": \"b\"} " GOOD}},
        {"line 2, column 3: there is something behind", {"[" GOOD "] " GOOD}},
        {"line 2, column 16: invalid UTF-8", {GOOD "{\"question\": \"a\xFF\", \"answer\": \"b\"}\n"}},
        {"line 1: the field \"answer\" is missing", {"{\"question\": \"a\"}\n"}},
        {"line 3: the field \"question\" is missing", {GOOD GOOD "{\"answer\": \"a\"}\n"}},
        {"the field \"question\" is not a text", {"{\"question\": 5, \"answer\": \"b\"}\n"}},
        {"the field \"answer\" is not a text", {"{\"question\": \"a\", \"answer\": null}\n"}},
        {"the field \"question\" is empty", {"{\"question\": \"\", \"answer\": \"b\"}\n"}},
        {"line 2: an object", {GOOD "[1]\n", GOOD "17\n"}},
        {"line 5: an object", {"[\n" GOOD ",\n\n7]"}},
        {"line 2: the field \"answer\" is missing", {"[" GOOD ",{\"problem\":\n\"a\"}]"}},
        {"the field \"problem\" is not a text", {"{\"problem\": 5, \"answer\": \"b\"}\n"}},
        {"line 2, column 1: the name of a field", {"[{\"question\": \"a\",\n"}},   // an array may have lines
        {"line 1, column 1: a value was expected", {"question,answer\na,b\n"}},
    };
    for (int i = 0; i < 4 * COUNT(bad); i++)
        if (bad[i / 4].texts[i % 4])
            ENDS(load_file, put("bad.jsonl", bad[i / 4].texts[i % 4]), 2, bad[i / 4].words);
    // a disk that lost power leaves zeros behind: they are no blank line
    char zeros[] = GOOD "\0\0\0\n" GOOD;
    put_file("bad.jsonl", &(Text){zeros, sizeof zeros - 1, 0});
    ENDS(load_file, "bad.jsonl", 2, "line 2, column 1: ");
    ENDS(load_file, ".", 2, "Is a directory");
    if (file_exists("/dev/zero")) ENDS(load_file, "/dev/zero", 2, "/dev/zero has more than 256 MB");
}

// ---- checkpoints: what is written

// Hugging Face's matrices are (out, in), ours (in, out): q, k and v share rows of six numbers. (tests/model.c
// holds the places of all weights against PyTorch; this is what stands in the file.)
static void safetensors_by_hand(void) {
    static const struct { const char* name; int rows, cols; } row[] = {
        {"model.embed_tokens", 3, 2}, {"model.layers.0.input_layernorm", 2, 0},
        {"model.layers.0.self_attn.q_proj", 2, 2}, {"model.layers.0.self_attn.k_proj", 2, 2},
        {"model.layers.0.self_attn.v_proj", 2, 2}, {"model.layers.0.self_attn.q_norm", 2, 0},
        {"model.layers.0.self_attn.k_norm", 2, 0}, {"model.layers.0.self_attn.o_proj", 2, 2},
        {"model.layers.0.post_attention_layernorm", 2, 0}, {"model.layers.0.mlp.gate_proj", 2, 2},
        {"model.layers.0.mlp.up_proj", 2, 2}, {"model.layers.0.mlp.down_proj", 2, 2}, {"model.norm", 2, 0},
        {"score", 1, 2},
    };
    Model m = model_new(value_config(smallest));
    Optimizer o = optimizer_new(&m.config);
    Text header = {0};
    int at = 0;
    for (int i = 0; i < 12; i++) m.weights.layer[0].qkv[i] = (float)i;
    save_all("hand", 41, &m, &o, NULL, NULL);
    text_printf(&header, "{\"__metadata__\":{\"format\":\"pt\",\"step\":\"41\",\"optimizer_steps\":\"41\"}");
    for (int i = 0; i < COUNT(row); i++) {
        int bytes = 4 * row[i].rows * max_int(row[i].cols, 1);
        text_printf(&header, ",\"%s.weight\":{\"dtype\":\"F32\",\"shape\":[%d", row[i].name, row[i].rows);
        if (row[i].cols) text_printf(&header, ",%d", row[i].cols);
        text_printf(&header, "],\"data_offsets\":[%d,%d]}", at, at + bytes);
        at += bytes;
    }
    text_printf(&header, "}");
    while (header.length % 8) text_printf(&header, " ");
    Text file = read_file("hand/model.safetensors");
    size_t data = 8 + header.length;
    CHECK(file.length == data + 184 && at == 184 && header_length(&file) == header.length);
    CHECK(!memcmp(file.data + 2, "\0\0\0\0\0\0", 6));
    CHECK(!memcmp(file.data + 8, header.data, header.length));
    // the rows 0 1 2 3 4 5 and 6 7 8 9 10 11 hold two numbers of q, k, v each: of q the outputs 0 6 and 1 7
    CHECK(!memcmp(file.data + data + 32, "\0\0\0\0\0\0\xC0\x40\0\0\x80\x3F\0\0\xE0\x40", 16));
    text_free(&file), text_free(&header), optimizer_free(&o), model_free(&m);
}

static void what_is_saved_is_loaded(void) {
    with_value = 1;
    for (int head = 0; head < 4; head++) {
        Config c = crooked;
        c.tied = head % 2;
        c.scalar = head / 2;
        Config vc = value_config(c);
        Optimizer vo;
        make_checkpoint("saved/in/a/new/folder", &c, 1, 12);      // all of them are made
        CHECK(!holds_parts("saved/in/a/new/folder"));
        const char* path = "saved/in/a/new/folder";
        Model m = load_model(path), v = load_value_model(&vo, path, &m.config, 12);
        Optimizer o = load_optimizer(path, &m.config, 12);
        CHECK(c.scalar ? m.weights.score && !m.weights.unembedding
                       : !m.weights.score && (m.weights.unembedding == m.weights.embedding) == c.tied);
        CHECK(!memcmp(&m.config, &c, sizeof c) && !memcmp(&v.config, &vc, sizeof vc));
        CHECK(o.step == 36 && vo.step == 12);
        const Weights* loaded[] = {&m.weights, &o.first, &o.second, &v.weights, &vo.first, &vo.second};
        for (int i = 0; i < 6; i++) {
            Weights expected = weights_new(i < 3 ? &c : &vc);
            fill_with_noise(&expected, 1 + (uint64_t)i);
            CHECK(same_weights(&expected, loaded[i]));
            weights_free(&expected);
        }
        model_free(&m), model_free(&v), optimizer_free(&o), optimizer_free(&vo);
    }
    with_value = 0;
}

// A reward model as Qwen3ForSequenceClassification has it: a linear layer from C = 6 numbers to num_labels
// = 1, no bias. It takes the score of the last token that is not pad_token_id, which must not be 260.
static void reward_model_files(void) {
    static const struct { const char *file, *words; int policys; } row[] = {
        {"config.json", "\"architectures\": [\"Qwen3ForSequenceClassification\"]", 0},
        {"config.json", "\"num_labels\": 1,\n  \"pad_token_id\": 256", 0},
        {"tokenizer_config.json", "\"pad_token\": \"<|bos|>\"", 0},
        // without this line transformers' decode() eats the space before "." and "n't"
        {"tokenizer_config.json", "\"clean_up_tokenization_spaces\": false", 1},
    };
    Config c = value_config(crooked);
    make_checkpoint("reward", &c, 5, 7);
    make_checkpoint("policy", &crooked, 5, 7);
    for (int i = 0; i < COUNT(row); i++) {
        char path[2][60];
        snprintf(path[0], sizeof path[0], "reward/%s", row[i].file);
        snprintf(path[1], sizeof path[1], "policy/%s", row[i].file);
        CHECK(holds(path[0], row[i].words) && holds(path[1], row[i].words) == row[i].policys);
    }
    // transformers names the labels instead of counting them; with more of them the score has another shape
    spoiled("reward/" CONFIG, "\"num_labels\": 1", "\"id2label\": {\"0\": \"\"}", load_only, "reward", 0, "");
    spoiled("reward/" MODEL, "\"shape\":[1,6]", "\"shape\":[2,3]", load_only, "reward", 2,
            "score.weight does not have the shape that config.json asks for");
}

static void load_value_of(const char* path) {
    Optimizer o;
    load_value_model(&o, path, &crooked, 12);
}

static void make_valued(uint64_t seed, long step, int valued) {
    with_value = valued;
    make_checkpoint("reused", &crooked, seed, step);
    with_value = 0;
}

// What an earlier run left in the folder does not outlive the next save.
static void a_save_removes_what_it_does_not_have(void) {
    const char* path = "reused";
    for (int valued = 0; valued < 2; valued++) {   // the second save: with and without a value model
        make_valued(3, 12, 1);
        make_valued(9, 12, valued);
        CHECK(file_exists("reused/value.safetensors") == valued);
        CHECK(file_exists("reused/value_optimizer.safetensors") == valued);
    }
    // Whoever is killed before the removal leaves a value model of another update behind: it is refused.
    make_valued(3, 11, 1);
    ENDS(load_value_of, path, 2, "belongs to update 11, trainer_state.json to update 12");
    // a policy's weights are no value model's, also with nothing to tell them apart but their head
    make_valued(3, 12, 1);
    CHECK(shell("cp reused/model.safetensors reused/value.safetensors"));
    ENDS(load_value_of, path, 2, "value.safetensors: the tensor score.weight is missing");
}

// Files of other programs: BF16, another order, a lm_head that repeats a tied embedding, rope_parameters.
static void files_of_others(void) {
    Tensor list[13];
    Text file = {0}, data = {0};
    Model m = model_new(smallest);
    make_checkpoint("other", &smallest, 3, 1);
    tensor_list(list, &m.weights, &smallest, "");
    text_append(&file, "\0\0\0\0\0\0\0\0", 8);
    text_append(&data, "\0\0\0\0\0\0\0\0\0\0\0\0", 12);
    text_printf(&file, "{\"lm_head.weight\":{\"dtype\":\"BF16\",\"shape\":[3,2],\"data_offsets\":[0,12]}");
    for (int k = 12, n = 0; k >= 0; k--) {      // number n is 1 + n / 128, in BF16 0x3F80 + n
        size_t from = data.length;
        for (int i = 0; i < elements(&list[k]); i++, n++)
            text_append(&data, (char[]){(char)(0x80 + n), 0x3F}, 2);
        text_printf(&file, ", \"%s\": {\"shape\": [%d%s], \"data_offsets\": [%zu, %zu], \"dtype\": \"BF16\"}",
                    list[k].name, list[k].rows, list[k].cols ? ", 2" : "", from, data.length);
    }
    text_append(&file, "}", 1);
    for (int b = 0; b < 2; b++) file.data[b] = (char)((file.length - 8) >> 8 * b & 0xFF);
    text_append(&file, data.data, data.length);
    put_file("other/model.safetensors", &file);
    Text config = edit("other/config.json", "\"rope_theta\": 10000",
                       "\"layer_types\": [\"full_attention\"], \"partial_rotary_factor\": 1, "
                       "\"rope_parameters\": {\"rope_theta\": 777, \"rope_type\": \"default\"}");
    Model read = load_model("other");
    CHECK(read.config.rope_theta == 777.0f);
    tensor_list(list, &read.weights, &smallest, "");
    for (int k = 12, n = 0; k >= 0; k--)
        for (int i = 0; i < elements(&list[k]); i++, n++)
            CHECK(*element(&list[k], i) == 1.0f + (float)n / 128.0f);
    CHECK(shell("rm other/tokenizer.json"));
    ENDS(load_only, "other", 0, "");   // without a tokenizer nothing is known about it
    text_free(&file), text_free(&data), text_free(&config), model_free(&read), model_free(&m);
}

// What may stand in a file instead of something else, and what may not
static void other_words(void) {
#define QWEN "\"architectures\": [\"Qwen3ForCausalLM\"]"
    static const struct { const char *file, *from, *to; int status; const char* words; } row[] = {
        {"worded/tokenizer.json", "\"version\": \"1.0\",", "", 0, ""},   // does not change the tokens
        {"worded/tokenizer.json", "\"a\": 97", "\"a\": 98", 2, "is another tokenizer than this program's"},
        {"worded/tokenizer.json", "\"merges\": []", "\"merges\": [\"a b\"]", 2, "is another tokenizer than"},
        {"worded/tokenizer.json", "<|bos|>", "<|endoftext|>", 2, "is another tokenizer than this program's"},
        {"worded/tokenizer.json", "true}\n  ]", "false}\n  ]", 2, "is another tokenizer"},   // "special"
        // a file that does not say how it was built is taken for a policy
        {"worded/config.json", QWEN, "\"architectures\": null", 0, ""},
        {"worded/config.json", QWEN, "\"architectures\": []", 0, ""},
        {"worded/config.json", QWEN, "\"x\": 0", 0, ""},
    };
    Config c = smallest;
    c.vocab_size = VOCAB_SIZE;
    make_checkpoint("worded", &c, 3, 1);
    for (int i = 0; i < COUNT(row); i++)
        spoiled(row[i].file, row[i].from, row[i].to, load_only, "worded", row[i].status, row[i].words);
}

// GPT-2's byte alphabet, in which tokenizer.json writes the 256 bytes: ! to ~ and most of Latin-1 are
// themselves, the other 68 are U+0100 and up. Known from GPT-2's own file: space is U+0120, newline U+010A.
static void tokenizer_file(void) {
    Text vocab = {0}, added = {0};
    for (int byte = 0, shifted = 0x100; byte < 256; byte++) {
        int itself = (byte > ' ' && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
        Text key = {0};
        CHECK((byte != ' ' || shifted == 0x120) && (byte != '\n' || shifted == 0x10A));
        utf8_append(&key, (unsigned)(itself ? byte : shifted++));
        text_printf(&vocab, byte ? ",\n      " : "{\n      ");
        json_append_string(&vocab, key.data);
        text_printf(&vocab, ": %d", byte);
        text_free(&key);
    }
    for (int i = 0; i < 9; i++)              // 256 + 9 = 265
        text_printf(&added, "%s\n    {\"id\": %d, \"content\": \"%s\", \"single_word\": false, \"lstrip\": "
                            "false, \"rstrip\": false, \"normalized\": false, \"special\": true}",
                    i ? "," : "[", 256 + i, special_names[i]);
    text_printf(&vocab, "\n    }");
    text_printf(&added, "\n  ]");
    make_checkpoint("tokenizer", &smallest, 3, 1);
    CHECK(holds("tokenizer/tokenizer.json", vocab.data) && holds("tokenizer/tokenizer.json", added.data));
    text_free(&vocab), text_free(&added);
}

// ---- checkpoints: what is damaged

// Loads "broken"; complains about any ending but a clean load (if allowed) or status 2 and a sentence. fail()
// comes back here, and what it said stands in a file: thousands of attempts need no process each.
static int complaints_to;
static void try_load(int may_load, const char* file, long place, const char* what) {
    char said[1000] = "";
    if (ftruncate(2, 0) || lseek(2, 0, SEEK_SET)) abort();
    trapped = 0;
    trapping = 1;
    if (setjmp(trap) == 0) load_all("broken");
    trapping = 0;
    if (pread(2, said, sizeof said - 1, 0) < 0) abort();
    for (int i = 1; i < 8; i++) close(complaints_to + i);    // what fail() has left open
    if (trapped == 0 ? may_load : trapped == 2 && is_sentence(said)) return;
    dprintf(complaints_to, "%s %s %ld: status %d: %s\n", file, what, place, trapped, said);
}

// Shortened: all of the last 40 lengths, every third of the others; only a JSON text's last newline may go.
// One byte changed: every fourth of the weights' headers, every second of the texts (any number is a weight).
static void cut_and_change(const char* name) {
    static const char other[] = {'9', '"', 0, '-', '}', (char)0xFF, ',', '0', '['};
    char path[PATH_SIZE];
    join_path(path, "broken", name);
    Text text = read_file(path);
    int is_json = strstr(name, ".json") != NULL;
    size_t end = is_json ? text.length : 8 + header_length(&text);
    int file = open(path, O_WRONLY);
    FILE* said = tmpfile();
    complaints_to = dup(2);
    if (file < 0 || !said || dup2(fileno(said), 2) < 0) abort();
    for (long size = (long)text.length - 1; size >= 0; size -= size < (long)text.length - 40 ? 3 : 1) {
        if (truncate(path, size)) abort();
        try_load(is_json && size == (long)text.length - 1, name, size, "cut at byte");
    }
    put_file(path, &text);
    for (long i = 0; i < (long)end; i += is_json ? 2 : 4) {
        if (pwrite(file, &other[(size_t)i % sizeof other], 1, i) != 1) abort();
        try_load(1, name, i, "changed at byte");
        if (pwrite(file, text.data + i, 1, i) != 1) abort();
    }
    close(file);
    text_free(&text);
}

static void cut_or_changed_anywhere(void) {
    static const char* const names[] = {CONFIG, STATE, MODEL, MOMENTS};
    make_checkpoint("broken", &smallest, 3, 5);
    for (int i = 0; i < 4; i++) {
        const Ran* r = ending_of(cut_and_change, names[i]);
        CHECK(r->status == 0);
        CHECK_TEXT(r->err, "");
    }
    ENDS(load_all, "broken", 0, "");   // undamaged it loads
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
    {MOMENTS, "\"step\":\"5\"", "not a number of up to 15 digits",
     {"\"step\":\"-1\"", "\"step\":\"5.0\"", "\"step\":\"\"", "\"step\":\"123456789012345678901\"",
      "\"step\":\"1e3\"", "\"step\":\"0x5\"", "\"step\":\" 5\"", "\"step\":\"5 \""}},
    {MOMENTS, "\"exp_avg_sq.model.norm.weight\"", "the tensor exp_avg_sq.model.norm.weight is missing",
     {"\"exp_avg_sq.norm.weight\""}},
    {MOMENTS, "\"step\":\"5\"", "belongs to update 4, trainer_state.json to update 5", {"\"step\":\"4\""}},
    {MOMENTS, "\"step\":\"5\"", "belongs to update", {"\"stop\":\"5\""}},
    {CONFIG, WIDTH, "must be from 1 to 16384, not 1000000000", {"\"hidden_size\": 1000000000"}},
    {CONFIG, "_size\": 2", "too small for the model that config.json", {"_size\": 16384", "_size\": 40"}},
    {CONFIG, WIDTH, "does not have the shape", {"\"hidden_size\": 3"}},
    {CONFIG, "n_size\": 2", "\"hidden_size\" is not a whole number",
     {"n_size\": -2", "n_size\": 2.5", "n_size\": 1e300", "n_size\": \"2\"", "n_size\": null",
      "n_size\": 4294967298"}},     // 2^32 + 2
    {CONFIG, WIDTH ",", "the field \"hidden_size\" is missing", {""}},
    {CONFIG, "\"vocab_size\": 3", "vocab_size must be from 1 to 1048576, not 0", {"\"vocab_size\": 0"}},
    {CONFIG, "_layers\": 1", "_hidden_layers must be from 1 to 256, not 0", {"_layers\": 0"}},
    {CONFIG, "attention_heads\": 1", "_attention_heads must be from 1 to 256", {"attention_heads\": 0"}},
    {CONFIG, "value_heads\": 1", "must be a multiple", {"value_heads\": 2"}},
    {CONFIG, "value_heads\": 1", "heads must be from 1 to 256, not 0", {"value_heads\": 0"}},
    {CONFIG, "\"head_dim\": 2", "head_dim must be even", {"\"head_dim\": 3"}},
    {CONFIG, "dings\": 4", "embeddings must be from 1 to 65536", {"dings\": 0", "dings\": 99999999"}},
    {CONFIG, "_theta\": 10000", "rope_theta must be above 1", {"_theta\": 0", "_theta\": 1e999"}},
    {CONFIG, "\"rope_theta\": 10000", "\"rope_theta\" is not a number", {"\"rope_theta\": \"10000\""}},
    {CONFIG, "_norm_eps\": ", "rms_norm_eps must be above 0", {"_norm_eps\": -", "_norm_eps\": 0, \"x\": "}},
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
    {STATE, "}", "trainer_state.json, line ", {""}},
};

static void make_longer(const char* path, off_t bytes) {
    struct stat info;
    if (stat(path, &info) || truncate(path, info.st_size + bytes)) abort();
}

static void damaged_files(void) {
    const char *path = "broken", *model = "broken/model.safetensors";
    char name[PATH_SIZE];
    make_checkpoint("broken", &smallest, 3, 5);
    for (int i = 0; i < COUNT(damages); i++)
        for (int k = 0; k < 12 && damages[i].to[k]; k++) {
            snprintf(name, sizeof name, "broken/%s", damages[i].file);
            spoiled(name, damages[i].from, damages[i].to[k], load_all, path, 2, damages[i].words);
        }
    Text whole = read_file(model);
    // the length of the header: 2^64 - 1, 2^63, one more than there is, none
    const uint64_t lengths[4] = {UINT64_MAX, (uint64_t)1 << 63, whole.length - 7, 0};
    for (int i = 0; i < 4; i++) {
        Text text = read_file(model);
        for (int b = 0; b < 8; b++) text.data[b] = (char)(lengths[i] >> 8 * b & 0xFF);
        put_file(model, &text);
        ENDS(load_all, path, 2, i < 3 ? "the file ends inside its header" : "ends too early");
        put_file(model, &whole);
        text_free(&text);
    }
    // one number more at the end: of a tensor that the model does not have, of none
    make_longer(model, 4);
    spoiled("broken/model.safetensors", "\"model.norm.weight\"",
            "\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[176,180]},\"model.norm.weight\"",
            load_all, path, 2, "has the tensor x, which is not in the model");
    ENDS(load_all, path, 2, "no tensor begins at byte 176 behind the header");
    // 3 GB of nothing behind it: the header says how long the file is, and no more is read
    double begin = seconds_now();
    make_longer(model, (off_t)3 << 30);
    ENDS(load_all, path, 2, "no tensor begins at byte 176 behind the header");
    CHECK(seconds_now() - begin < 2.0);
    text_free(&whole);
}

// A save killed while it renames leaves files of updates 5 and 6: whichever, they must not be resumed.
static void missing_and_mixed_files(void) {
    static const char* const names[] = {CONFIG, MODEL, MOMENTS, STATE, "value.safetensors",
                                        "value_optimizer.safetensors"};
    with_value = 1;
    make_checkpoint("later", &smallest, 9, 6);
    make_checkpoint("broken", &smallest, 3, 5);
    for (int i = 0; i < 6; i++) {
        CHECK(shell("mv broken/%s aside", names[i]));
        ENDS(load_all, "broken", 2, names[i]);
        CHECK(shell("cp later/%s broken", names[i]));
        ENDS(load_all, "broken", i ? 2 : 0, i ? "update 6" : "");   // the sizes are the same
        CHECK(shell("mv aside broken/%s", names[i]));
    }
    ENDS(load_all, "nowhere", 2, "nowhere");
    with_value = 0;
}

// ---- saves that fail

static int size_limit;               // no file can grow beyond this number of bytes, 0 = it can
static void save_later(const char* path) {   // saves another model over the checkpoint
    struct rlimit limit = {(rlim_t)size_limit, (rlim_t)size_limit};
    signal(SIGXFSZ, SIG_IGN);        // the write then fails with an error instead of a signal
    if (size_limit) setrlimit(RLIMIT_FSIZE, &limit);
    make_checkpoint(path, &smallest, 77, 6);
}

static void a_failed_save_changes_nothing(void) {
    static const char* const names[] = {
        CONFIG, "generation_config.json", "tokenizer.json", "tokenizer_config.json", MODEL, MOMENTS, STATE,
        "value.safetensors", "value_optimizer.safetensors"};
    static const struct { const char *path, *words; int status; } row[] = {
        {"kept", "Not a directory", 1}, {"a file", "is not a directory", 1},
        {"a file/below", "cannot make the directory", 1}, {"/dev/null/below", "cannot make the directory", 1},
        {"", "directory", 2},         // not "/", not whatever the memory behind the empty name says
    };
    with_value = 1;
    flushes = renames = 0;
    make_checkpoint("kept", &smallest, 3, 5);
    CHECK(flushes == 12 && renames == 11);   // nine files, three times a folder; the save, and ten places
    keep("kept");
    for (size_limit = 200; size_limit < 5970; size_limit += 500) {   // the largest file has 5970
        ENDS(save_later, "kept", 1, "cannot write");
        CHECK(is_still("kept"));
    }
    size_limit = 0;
    // a full disk, at each of the files in turn: /dev/full answers "no space left on device"
    for (int i = 0; i < 9 && file_exists("/dev/full"); i++) {
        CHECK(shell("mkdir -p kept/.saving && ln -s /dev/full kept/.saving/%s", names[i]));
        ENDS(save_later, "kept", 1, "No space left on device");
        CHECK(is_still("kept"));
    }
    ENDS(load_all, "kept", 0, "");
    CHECK(shell("echo x > 'a file' && echo x > kept/.saving"));   // a file where a folder is needed
    for (int i = 0; i < COUNT(row); i++) ENDS(save_later, row[i].path, row[i].status, row[i].words);
    remove("kept/.saving");
    ENDS(save_later, "kept", 0, "");         // with room again, it works
    CHECK(!is_still("kept") && !holds_parts("kept"));
    with_value = 0;
}

static int save_killed(int at) {             // saves over checkpoint 5 and is killed before this rename
    CHECK(shell("rm -rf killed reread"));
    make_checkpoint("killed", &smallest, 3, 5);
    kill_at = at, renames = 0;
    int status = ending_of(save_later, "killed")->status;
    kill_at = 0;
    return status;
}

// What is loaded, saved again, must be all of this save.
static void check_killed(const char* expected) {
    save_again = "reread";
    ENDS(load_all, "killed", 0, "");
    save_again = NULL;
    CHECK(shell("diff -r reread %s", expected));
}

// Killed between renames, a save leaves files of two. What is loaded is all of the old one until .saving is
// renamed, and all of the new one afterwards. Who reads changes nothing.
static void a_killed_save_is_never_mixed(void) {
    with_value = 1;
    make_checkpoint("five", &smallest, 3, 5);
    renames = 0;
    save_later("six");
    int last = renames;
    for (int at = 1; at <= last + 1; at++) {
        CHECK(save_killed(at) == (at <= last ? 137 : 0));
        chmod("killed", 0555);
        check_killed(at == 1 ? "five" : "six");
        chmod("killed", 0755);
        if (at == 1) continue;
        close(take_folder("killed", 0, 0));  // the next writer moves what was left
        CHECK(!holds_parts("killed"));
        check_killed("six");
    }
    CHECK(save_killed(3) == 137);
    empty_folder("killed", ".saving", 0);    // as run_begin() does
    empty_folder("killed", ".saved", 1);
    save_later("killed");                    // what was left behind is in nobody's way
    check_killed("six");
    CHECK(!holds_parts("killed"));
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
    CHECK(!strcmp(given.rest[0], "one") && !strcmp(given.rest[1], "two"));
    parse("--n=1|--n=2|--text-two=x");   // the last one counts; --text is not --text-two
    CHECK(given.n == 2);
    CHECK_TEXT(given.text, "x");
    parse("--text|-");
    CHECK_TEXT(given.text, "-");
}

static void options_that_are_wrong(void) {
    static const struct { const char *words, *lines[4]; } bad[] = {
        {"unknown option '--m'", {"--m=3"}},
        {"unknown option '-n'", {"-n=3"}},
        {"unknown option '--'", {"--", "--=3"}},
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
        "", " ", "nan", "inf", "-inf", " 5", "5 ", "\t5", "5x", "0x10", "0x1p3", "5,0", "1e", "--5", "1e999",
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
#define TINY "--data=tiny.jsonl|--threads=1|--steps=9|--batch-size=3|--warmup-steps=2|" \
             "--layers=2|--width=8|--heads=2|--kv-heads=1|--head-dim=4|--mlp-width=12"
#define FLAT "|--warmup-steps=0|--final-lr-frac=1"   // a learning rate that does not depend on --steps
#define NEW TINY "|--overwrite"
#define ENDLESS TINY "|--steps=100000000"

// Supervised training with these options, ending like main()
static void run_training(const char* words) {
    char line[1000], *argv[64];
    updates_seen = 0;
    snprintf(line, sizeof line, "%s", words);
    int argc = split(argv, line);
    TrainOptions o = train_defaults();
    Option options[TRAIN_OPTIONS] = {{0}};
    train_options(options, &o);
    parse_options(options, argc, argv, NULL, 0);
    end_here(train(&o, options));
}

// Training with these options; Ctrl-C is pressed in update number `press`, 0 = never.
#define TRAINS(words) STOPS(0, words)
#define STOPS(press, words) (press_at = press, ENDS(run_training, words, press ? 130 : 0, ""), press_at = 0)

// Two runs are equal but for the times in metrics.csv, and for how often was saved and printed.
#define SAME_RUN(a, b) \
    CHECK(shell("for r in " a " " b "; do rm -rf $r.same && cp -R $r $r.same && " \
                "cut -d, -f1-4 $r/metrics.csv > $r.same/metrics.csv && " \
                "grep -v -e '\"save-every' -e '\"log-every' $r/" STATE " > $r.same/" STATE "; done; " \
                "diff -r -x '.*' " a ".same " b ".same"))

// rows of metrics.csv, and the number of updates in trainer_state.json
static void check_updates(const char* path, long updates) {
    char file[PATH_SIZE], step[40];
    join_path(file, path, "metrics.csv");
    Text m = read_file(file);
    long lines = -1;          // the first holds the names
    for (const char* p = m.data; *p; p++) lines += *p == '\n';
    CHECK(lines > 0 && (updates < 0 || lines == updates));
    CHECK(!strncmp(m.data, "step,loss,lr,grad_norm,", 23) && strstr(m.data, "\n0,"));
    snprintf(step, sizeof step, "\"step\": %ld,\n", lines);
    join_path(file, path, STATE);
    CHECK(holds(file, step));
    Model model = load_model(path);
    Optimizer o = load_optimizer(path, &model.config, lines);
    text_free(&m), optimizer_free(&o), model_free(&model);
    CHECK(!holds_parts(path));
}

#define RESUME "--resume=parts|--threads=1"
static void a_resumed_run_is_the_same_run(void) {
    put("tiny.jsonl", tiny_data);
    TRAINS(TINY "|--out=whole");
    check_updates("whole", 9);
    TRAINS(TINY "|--save-every=2|--out=often");   // saving more often changes nothing
    SAME_RUN("whole", "often");
    // Ctrl-C: the update is finished and saved, status 130; then on, with other threads or --save-every.
    for (int stop = 1; stop <= 9; stop += stop == 2 || stop == 5 ? 3 : 1) {   // 1, 2, 5, 8, 9
        CHECK(shell("rm -rf parts"));
        STOPS(stop, TINY "|--out=parts");
        check_updates("parts", stop);
        if (stop == 5) TRAINS("--resume=parts|--out=parts/|--threads=2");
        else if (stop < 9) TRAINS("--resume=parts|--save-every=1");
        SAME_RUN("whole", "parts");
    }
    // three parts; with lines in metrics.csv that a killed process left behind
    CHECK(shell("rm -rf parts"));
    STOPS(2, TINY "|--save-every=3|--log-every=4|--out=parts");
    STOPS(2, RESUME);
    CHECK(holds("parts/" STATE, "\"save-every\": \"3\"") && holds("parts/" STATE, "\"log-every\": \"4\""));
    CHECK(shell("printf '4,0,0,0,0,0\\n5,0,0,0,0,0\\n6,0' >> parts/metrics.csv"));   // saved are 0 to 3
    TRAINS(RESUME);
    SAME_RUN("whole", "parts");
    // a metrics.csv that has been copied behind itself: no update may stand in it twice
    CHECK(shell("rm -rf parts"));
    STOPS(4, TINY "|--out=parts");
    CHECK(shell("cp parts/metrics.csv copy && cat copy >> parts/metrics.csv"));
    TRAINS(RESUME);
    SAME_RUN("whole", "parts");
    // A longer run whose learning rate is constant: 4 updates and 5 more are 9.
    TRAINS(TINY FLAT "|--out=flat");
    TRAINS(TINY FLAT "|--steps=4|--out=more");
    TRAINS("--resume=more|--steps=9|--threads=1");
    SAME_RUN("flat", "more");
}

static void runs_that_cannot_be_resumed(void) {
    static const struct { const char *options, *words; } bad[] = {
        {"--resume=nowhere", "has no trainer_state.json"},
        // nothing is left to do, or the sizes of the model are to change: the user has something else in mind
        {"--resume=base", "9 of 9 updates"},
        {"--resume=base|--steps=5", "9 of 5 updates are done; --num-steps ("},
        {"--resume=base|--steps=20|--out=never", "in its own folder: copy "},
        {"--resume=base|--steps=20|--overwrite", "leave one out"},
        {"--resume=base|--steps=20|--width=16", "--width"},
        {TINY "|--steps=20|--out=base", "holds a run: --resume "},
        // bad input is found before anything is written
        {TINY "|--data=nowhere.jsonl|--out=never", "cannot open"},
        {TINY "|--heads=3|--kv-heads=2|--out=never", "must be a multiple"},
        {TINY "|--context=8|--out=never", "no conversation fits the context of 8"},
        {TINY "|--eval-data=nowhere.jsonl|--out=never", "cannot open"},
    };
    TRAINS(NEW "|--out=base");
    keep("base");
    for (int i = 0; i < COUNT(bad); i++) ENDS(run_training, bad[i].options, 2, bad[i].words);
    CHECK(!file_exists("never"));
    CHECK(is_still("base"));
    // other data; a table without a row or its head; the state of another run, or with another width; no file
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
    for (int i = 0; i < COUNT(row); i++)
        spoiled(row[i].file, row[i].from, row[i].to, run_training, "--resume=base|--steps=20", 2,
                row[i].words);
    remove("base/" MOMENTS);
    remove("base/" STATE);
    ENDS(run_training, TINY "|--out=base", 2, "holds a run");   // its weights are left
}

// --model takes the weights and the sizes, and nothing else: the run begins with update 0 and moments of 0.
#define FROM "--data=tiny.jsonl|--threads=1|--batch-size=3|--warmup-steps=2|--model=start"
static void a_run_from_a_model(void) {
    TRAINS(NEW "|--out=start");
    TRAINS(FROM "|--steps=1|--lr=0|--out=still");   // with a learning rate of 0 the weights stay as they are
    Model start = load_model("start"), still = load_model("still");
    CHECK(same_weights(&start.weights, &still.weights));
    CHECK(!memcmp(&start.config, &still.config, sizeof(Config)) && start.config.width == 8);
    model_free(&start), model_free(&still);
    // the moments of the nine updates behind it play no part: without their file it is the same run
    TRAINS(FROM "|--steps=7|--out=from");
    remove("start/" MOMENTS);
    remove("start/" STATE);
    TRAINS(FROM "|--steps=7|--overwrite|--out=again");
    SAME_RUN("from", "again");
    check_updates("again", 7);
    CHECK(holds("again/" STATE, "\"model\": \"start\"") && holds("again/" STATE, "\"width\": \"8\""));
    // it is resumed bit for bit, whether the model it began with is still there, is another one, or is gone
    for (int kind = 0; kind < 3; kind++) {
        CHECK(shell("rm -rf parts start && mkdir start && cp still/" CONFIG " still/" MODEL " start"));
        STOPS(3, FROM "|--steps=7|--out=parts");
        if (kind == 1) make_checkpoint("start", &smallest, 3, 5);
        if (kind == 2) CHECK(shell("rm -rf start"));
        TRAINS(RESUME);
        SAME_RUN("from", "parts");
    }
    // a model of another program, whose norm_eps and rope_theta no option has: resumed all the same
    CHECK(shell("rm -rf start && mkdir start && cp still/" CONFIG " still/" MODEL " start"));
    Text eps = edit("start/config.json", "9.99999997e-07", "1e-4"),
         theta = edit("start/config.json", "\"rope_theta\": 10000", "\"rope_theta\": 5e8");
    TRAINS(FROM FLAT "|--steps=4|--out=theirs");
    TRAINS(FROM FLAT "|--steps=2|--out=halves");
    TRAINS("--resume=halves|--steps=4|--threads=1");
    SAME_RUN("theirs", "halves");
    text_free(&eps), text_free(&theta);
}

static void models_that_no_run_starts_from(void) {
    static const struct { const char *options, *words; } bad[] = {
        {"--model=nowhere", "there is no checkpoint directory '"},
        {"--model=", "there is no checkpoint directory ''"},   // an empty variable of the shell, perhaps
        {"--model=few", "has a vocabulary of 3 tokens; this tokenizer has 265"},
        {"--model=scores", "holds a reward model: it gives scores and cannot write"},
        {"--model=start|--width=16", "--width is 8 for the model in "},
        {"--model=start|--width=96", "--width is 8 for the model in "},   // the usual 96, but it was given
        {"--model=start|--width=8|--tied=0", "--tied is 1 for the model in "},
        {"--model=start|--rope-theta=500", "--rope-theta is 10000 for the model in "},
        {"--model=start|--context=128", "--context is 256 for the model in "},
        {"--model=start|--out=start", "holds a run"},
        {"--model=start|--out=start|--overwrite", "over the model in "},
        {"--model=start|--out=few/../start/|--overwrite", "try another --out"},
        {"--model=start|--resume=start", "--model starts a run and --resume goes on with one"},
    };
    TRAINS(NEW "|--out=start");
    make_checkpoint("few", &smallest, 3, 5);
    Model start = load_model("start");
    Config c = value_config(start.config);
    model_free(&start);
    make_checkpoint("scores", &c, 3, 5);
    keep("start");
    for (int i = 0; i < COUNT(bad); i++) {
        char line[500];
        snprintf(line, sizeof line, "--data=tiny.jsonl|--steps=20|--out=never|%s", bad[i].options);
        ENDS(run_training, line, 2, bad[i].words);
    }
    CHECK(!file_exists("never"));
    CHECK(is_still("start"));
    TRAINS(FROM "|--steps=1|--out=agrees|--width=8");   // a size that agrees may be given
}

static const Column one_column[] = {{"x", "x", 0, 6, 2, 0}, {0}};

// Which updates are followed by a line (l) and by a save (s); Ctrl-C in update number `press`, 0 = never.
static const char* schedule(long step, long steps, int log_every, int save_every, int press) {
    static char text[200];
    size_t n = 0;
    Model m = model_new(smallest);
    updates_seen = 0;
    press_at = press;
    CHECK(shell("rm -rf run && mkdir run"));
    put("run/metrics.csv", "step,x\n0,a\n1,a\n2,a\n3,a\n4,a\n5,a\n6,a\n");
    print_begin();
    Run r = run_begin("run", 0, one_column, step, steps, log_every, save_every);
    while (run_goes_on(&r)) {
        int lines = r.lines;
        run_record(&r, &m, NULL, &(double){1.0});
        const char *logs = r.lines > lines ? "l" : "", *saves = run_saves(&r) ? "s" : "";
        n += (size_t)snprintf(text + n, sizeof text - n, " %ld%s%s", r.step, logs, saves);
    }
    CHECK(r.stop == (press > 0));
    press_at = 0;
    CHECK(run_end(&r, "./program", "run") == (press > 0 ? 130 : 0));
    print_end();
    model_free(&m);
    return text;
}

// A run to which this happens after its first update: w, v or s and a number: so large becomes a weight, one
// of the value model, a second moment; (m)oved, (r)emoved, (f)ull disk: its folder; (d): it dies at the save.
static void two_updates(const char* what) {
    Model m = model_new(smallest), v = model_new(value_config(smallest));
    Optimizer o = optimizer_new(&smallest);
    float number = strtof(what + (*what != 0), NULL);
    Run r = run_begin("run", 0, one_column, 0, 3, 1, *what == 'd');
    run_record(&r, &m, &v, &(double){2.5});
    if (*what == 'd' && run_saves(&r)) _exit(0);
    if (*what == 'w') m.weights.norm[1] = number;
    if (*what == 'v') v.weights.score[0] = number;
    if (*what == 's') o.second.layer[0].down[3] = number;
    if (*what == 'm') rename("run", "moved");
    if (*what == 'r') shell("rm -r run");
    if (*what == 'f') r.metrics = freopen("/dev/full", "w", r.metrics);
    run_record(&r, &m, &v, &(double){1.0});
    if (*what == 's') save_all("run", 2, &m, &o, NULL, NULL);
    else run_saves(&r);
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
    // which update, and what of it, was the first to be no number
    ENDS(two_updates, "", 0, "");
    ENDS(two_updates, "w1.5", 0, "");
    ENDS(two_updates, "winf", 1, "after update 2 model.norm.weight is not finite");
    ENDS(two_updates, "vnan", 1, "after update 2 the value's score.weight is not finite");
    ENDS(two_updates, "sinf", 1, "update 2 exp_avg_sq.model.layers.0.mlp.down_proj.weight is not finite");
    CHECK(!holds_parts("run") && !file_exists("run/" STATE));
    ENDS(two_updates, "moved", 1, "was moved or removed while the run was writing into it");
    ENDS(two_updates, "removed", 1, "was moved or removed while the run was writing into it");
    if (file_exists("/dev/full")) ENDS(two_updates, "full", 1, "metrics.csv: No space left on device");
    // the table is on the disk before the checkpoint that it must reach up to
    ENDS(two_updates, "die", 0, "");
    CHECK(shell("printf 'step,x\\n0,2.5\\n' | cmp - run/metrics.csv"));
}

// How to go on, unless there is nothing left to do.
static void the_last_words_of_a_stopped_run(void) {
    static const struct { int press, status; const char *words, *said; } row[] = {
        {2, 130, TINY "|--steps=3|--out=ended",
         "stopped after update 2 and saved; go on with: ./train_gpt --resume "},
        {2, 130, NEW "|--steps=2|--out=ended", "stopped after the last update, 2, and saved in "},
        {0, 0, NEW "|--steps=2|--out=ended", "\nsaved "},
    };
    for (int i = 0; i < 3; i++) {
        press_at = row[i].press;
        const Ran* r = ending_of(run_training, row[i].words);
        CHECK(r->status == row[i].status);
        SAYS(r->out, row[i].said);
        CHECK(!strstr(r->out, "go on with") == (i > 0) && !strstr(r->out, "stopped") == (i > 1));
    }
    press_at = 0;
}

// ---- several processes

static Child in_background(const char* words, int ignored) {
    Child child = begin_child();
    if (child.id) return child;
    if (ignored) signal(ignored, SIG_IGN);
    watch_signals();
    run_training(words);
    return child;
}

static void wait_for(const char* path, off_t size) {
    struct stat info = {0};
    for (int i = 0; i < 2000 && (stat(path, &info) != 0 || info.st_size < size); i++)
        nanosleep(&(struct timespec){0, 5000000}, NULL);
}

static int ended_by(int signal, Child child) {
    kill(child.id, signal);
    return end_child(child)->status;
}

// A real signal from outside, at a moment that nobody chose. What was ignored from the beginning stays so.
static void signals_from_outside(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 6; i++) {
        CHECK(shell("rm -rf stopped"));
        Child child = in_background(i < 3 ? ENDLESS "|--out=stopped" : TINY "|--steps=300|--out=stopped",
                                    i < 3 ? 0 : signals[i % 3]);
        wait_for("stopped/metrics.csv", 1000);
        CHECK(ended_by(signals[i % 3], child) == (i < 3 ? 130 : 0));
        check_updates("stopped", i < 3 ? -1 : 300);
    }
}

// Readers beside a run that saves after every update find a whole model; a second writer is refused.
static void readers_and_writers(void) {
    Child writer = in_background(ENDLESS "|--save-every=1|--out=busy", 0);
    wait_for("busy/trainer_state.json", 1);
    for (int i = 0; i < 40; i++) ENDS(load_only, "busy", 0, "");
    ENDS(run_training, NEW "|--out=busy", 2, "another program is training into ");
    ENDS(run_training, "--resume=busy", 2, "another program is training into ");
    CHECK(ended_by(SIGINT, writer) == 130);
    check_updates("busy", -1);
    // two at the same time into a folder that is not there yet: one of them does it
    Child both[2];
    for (int i = 0; i < 2; i++) both[i] = in_background(TINY "|--steps=300|--out=raced", 0);
    int first = end_child(both[0])->status, second = end_child(both[1])->status;
    CHECK((first == 0 && second == 2) || (first == 2 && second == 0));
    check_updates("raced", 300);
}

// A run that is killed at any place of any save and resumed is the run that was never killed. (A save has
// eleven renames here; its rows of metrics.csv are written before.)
static void killed_and_resumed(void) {
    TRAINS(TINY "|--out=unkilled");
    for (int at = 4; at < 100; at += 9) {
        CHECK(shell("rm -rf hunted"));
        renames = 0;
        kill_at = at;
        ENDS(run_training, TINY "|--save-every=1|--out=hunted", 137, "");
        kill_at = 0;
        TRAINS(has_saved("hunted", STATE) ? "--resume=hunted|--threads=1" : TINY "|--out=hunted");
        SAME_RUN("unkilled", "hunted");
    }
}

// A new run that replaces another and is killed before its first save leaves the old one, weights and rows.
static void replaced_only_by_a_save(void) {
    TRAINS(NEW "|--out=old");
    keep("old");
    Child child = in_background(ENDLESS "|--seed=7|--overwrite|--out=old", 0);
    wait_for("old/.saving/metrics.csv", 1000);
    ended_by(SIGKILL, child);
    CHECK(is_still("old"));
    TRAINS("--resume=old|--steps=12|--threads=1");
    child = in_background(ENDLESS "|--seed=7|--save-every=1|--overwrite|--out=old", 0);
    wait_for("old/.saving/metrics.csv", 1);
    nanosleep(&(struct timespec){0, 300000000}, NULL);
    CHECK(ended_by(SIGINT, child) == 130);
    check_updates("old", -1);
}

static void begin_in(const char* path) { take_folder(path, 1, 0); }
static void paths_that_are_too_long(void) {
    char path[4071] = "";
    for (int i = 0; i < 4070; i++) path[i] = "/a"[i % 2];
    ENDS(begin_in, path + 20, 0, "");
    ENDS(begin_in, path, 2, "is too long");      // not itself, but those of the files in it
    memset(path, 'a', 256);
    path[256] = 0;
    ENDS(begin_in, path, 2, "is too long");      // a name has at most 255 letters
}

int main(void) {
    static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 3; i++) signal(stops[i], SIG_DFL);   // nohup, a background shell ignore them
    watch_signals();
    open_folder();
    if (chdir(folder)) abort();
    set_threads(1);   // a process with a team of threads cannot fork one that wants its own
    RUN_ALL(TEST(any_bytes_come_back), TEST(conversations),
            TEST(json_strings_and_numbers), TEST(json_verdicts), TEST(json_utf8_table), TEST(json_values),
            TEST(lines_that_can_be_read), TEST(lines_that_cannot), TEST(safetensors_by_hand),
            TEST(what_is_saved_is_loaded), TEST(reward_model_files),
            TEST(a_save_removes_what_it_does_not_have), TEST(files_of_others),
            TEST(tokenizer_file), TEST(other_words), TEST(cut_or_changed_anywhere), TEST(damaged_files),
            TEST(missing_and_mixed_files), TEST(a_failed_save_changes_nothing),
            TEST(a_killed_save_is_never_mixed), TEST(options_that_are_right), TEST(options_that_are_wrong),
            TEST(a_resumed_run_is_the_same_run), TEST(runs_that_cannot_be_resumed), TEST(a_run_from_a_model),
            TEST(models_that_no_run_starts_from), TEST(lines_and_saves),
            TEST(the_last_words_of_a_stopped_run), TEST(paths_that_are_too_long), TEST(signals_from_outside),
            TEST(readers_and_writers), TEST(killed_and_resumed), TEST(replaced_only_by_a_save));
    remove_folder();
    return check_failed != 0;
}

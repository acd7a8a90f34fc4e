/* The verifier on real data: GSM8K and MATH-500. The directory comes from the environment (DATA=DIR); without
 * the files each test says that it was skipped. The verdicts in the tables were decided by hand, each with a
 * reason. */

/* ---- a small JSON string reader: independent of the project's own, which it thereby checks ---- */

// The whole file as a string; NULL when it can't be read.
static char* read_whole_file(const char* directory, const char* name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE* file = fopen(path, "rb");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char* text = allocate((size_t)size + 1, 1);
    if (fread(text, 1, (size_t)size, file) != (size_t)size) fail(1, "%s: short read", path);
    fclose(file);
    return text;
}

// Reads the JSON string that begins at the quote *p into a new allocation and moves *p behind it.
static char* read_json_string(const char** p) {
    const char* s = *p + 1;
    const char* end = s;
    while (*end && *end != '"') end += *end == '\\' && end[1] ? 2 : 1;
    char *out = allocate((size_t)(end - s) + 1, 1), *q = out;  // escapes only get shorter
    for (; *s && *s != '"'; s++) {
        if (*s != '\\') { *q++ = *s; continue; }
        s++;
        if (*s == 'u') {
            unsigned code;
            if (sscanf(s + 1, "%4x", &code) != 1) fail(1, "bad \\u in JSON");
            s += 4;
            if (code < 0x80) *q++ = (char)code;
            else if (code < 0x800) { *q++ = (char)(0xC0 | code >> 6); *q++ = (char)(0x80 | (code & 63)); }
            else {
                *q++ = (char)(0xE0 | code >> 12);
                *q++ = (char)(0x80 | (code >> 6 & 63));
                *q++ = (char)(0x80 | (code & 63));
            }
        } else *q++ = *s == 'n' ? '\n' : *s == 't' ? '\t' : *s == 'r' ? '\r' : *s;
    }
    *p = *s ? s + 1 : s;
    return out;
}

// The string value of the next "key": at or after *p; NULL = no more. Moves *p behind it. Keys inside of
// strings would be written \"key\" and are not found.
static char* next_string(const char** p, const char* key) {
    char pattern[64];
    snprintf(pattern, sizeof pattern, "\"%s\": \"", key);
    const char* at = strstr(*p, pattern);
    while (at && at > *p && at[-1] == '\\') at = strstr(at + 1, pattern);
    if (!at) return NULL;
    *p = at + strlen(pattern) - 1;
    return read_json_string(p);
}

// Like next_string for true/false values: -1 = no more.
static int next_bool(const char** p, const char* key) {
    char pattern[64];
    snprintf(pattern, sizeof pattern, "\"%s\": ", key);
    const char* at = strstr(*p, pattern);
    if (!at) return -1;
    *p = at + strlen(pattern);
    return **p == 't';
}

static const char* data_folder(void) { return getenv("DATA") ? getenv("DATA") : "../shared/data"; }

/* ---- the tests ---- */

static char* math_problems, *math_predictions, *gsm8k[2], *gsm8k_solutions;
static void broken(const char* what, const char* text) {
    check_broken++;
    printf("  %s: %s\n", what, text);
}

static char *math_answer[500], *math_solution[500];

// 500 answers: each equals itself, scores 1 in a box, is not 123, and is what the written solution boxes
// last.
static void test_math500_reference_answers(void) {
    const char* p = math_problems;
    int n = 0;
    for (; n < 500; n++) {
        math_solution[n] = next_string(&p, "solution");
        if (!math_solution[n]) break;
        math_answer[n] = next_string(&p, "answer");
    }
    CHECK(n == 500);
    for (int i = 0; i < n; i++) {
        char boxed[600];
        snprintf(boxed, sizeof boxed, "so it is \\boxed{%s}.", math_answer[i]);
        CHECK(answers_equal(math_answer[i], math_answer[i]));
        if (reward_boxed(boxed, math_answer[i]) != 1) broken("boxed answer gets 0", boxed);
        CHECK(reward_boxed("\\boxed{123}", math_answer[i]) == 0);
        if (reward_boxed(math_solution[i], math_answer[i]) != 1) {
            extract_boxed(math_solution[i], boxed, sizeof boxed);
            broken("the solution boxes something else", boxed);
        }
        // with other text around it the answer goes through the normalizer, too
        snprintf(boxed, sizeof boxed, " %s .", math_answer[i]);
        if (!answers_equal(boxed, math_answer[i])) broken("not itself after normalizing", boxed);
    }
}

// Answers of different problems that are spelled differently and found equal, each with the reason. No
// others may be.
static const struct { const char *a, *b, *reason; } EQUAL_PAIRS[] = {
    {"x=5", "5", "the equation says what x is"},
    {"120^\\circ", "120", "a unit may be left out"},
    {"30^\\circ", "30", "a unit may be left out"},
    {"90^\\circ", "90", "a unit may be left out"},
    {"36^\\circ", "36", "a unit may be left out"},
    {"15\\mbox{ cm}^2", "15", "a unit may be left out"},
    {"\\$36", "36", "a currency may be left out"},
    {"10080", "10,\\!080", "a thousands separator"},
    {"\\frac14", "\\frac{1}{4}", "two spellings of one fraction"},
    {"2\\sqrt{5}", "2 \\sqrt{5}", "a space"},
    {"-2,1", "1,-2", "the solutions of an equation have no order"},
};

// All 500 * 499 / 2 = 124,750 pairs of answers.
static void test_math500_pairs(void) {
    int pairs = 0, equal_pairs = 0, count = sizeof EQUAL_PAIRS / sizeof *EQUAL_PAIRS, seen[20] = {0};
    for (int i = 0; i < 500; i++)
        for (int j = 0; j < i; j++) {
            const char *a = math_answer[i], *b = math_answer[j];
            int equal = answers_equal(a, b), listed = -1;
            pairs++;
            CHECK(equal == answers_equal(b, a));
            if (!equal || !strcmp(a, b)) continue;
            equal_pairs++;
            for (int k = 0; k < count; k++)
                if ((!strcmp(a, EQUAL_PAIRS[k].a) && !strcmp(b, EQUAL_PAIRS[k].b)) ||
                    (!strcmp(b, EQUAL_PAIRS[k].a) && !strcmp(a, EQUAL_PAIRS[k].b))) listed = k;
            if (listed >= 0) seen[listed] = 1;
            else { broken("equal, but not justified", a); printf("    and %s\n", b); }
        }
    for (int k = 0; k < count; k++) CHECK(seen[k]);
    printf("  %d pairs, %d of different texts are equal\n", pairs, equal_pairs);
}

// Verdicts by hand on the predictions whose text is disputable, with the reason. Any other prediction is
// right.
static const struct { int index, verdict; const char* reason; } HAND_VERDICTS[] = {
    {73, 0, "\\frac3*sqrt(3)4 lost its braces: 3 sqrt(3) / 4, or 4 * 3 / sqrt(3)?"},
    {74, 1, "\\cotx can only be cot x"},
    {96, 1, "1\\pm*sqrt(19): the stray * changes nothing"},
    {99, 1, "\\beginpmatrix ... \\endpmatrix lost only its braces"},
    {146, 1, "\\frac*sqrt(3)3 lost its braces; only sqrt(3) over 3 gives \\frac two arguments"},
    {166, 0, "\\frac2707degrees: 270/7, 27/07, 2/707 ..."},
    {181, 1, "as 146"},
    {205, 1, "as 99"},
    {248, 1, "as 99, two by two"},
    {257, 1, "864\\mboxinches^2: a unit without its braces"},
    {264, 0, "14/5 is 2.8; the answer is 1 4/5 = 1.8"},
    {284, 1, "3\\pm2*sqrt(2) is fine"},
    {298, 1, "as 99"},
    {305, 0, "\\frac919: 9/19, or 91/9, or 9/1 times 9?"},
    {318, 0, "11+9a/20 is 11 + (9a/20); the answer is (11+9a)/20"},
    {389, 1, "as 146"},
    {408, 1, "as 99"},
    {419, 1, "as 99"},
    {420, 1, "as 99"},
    {422, 0, "\\boxed{\\1\\pm*sqrt(5),-2\\}: its last brace is \\}, a printed one, so the box never closes"},
    {467, 1, "15\\mboxcm^2, as 257"},
    {472, 0, "1371/2 is 685.5; the answer is 137 1/2 = 137.5"},
};

static void test_gpt_answers(void) {
    const char* p = math_predictions;
    int accepted = 0, same_text = 0, n = 0;
    for (;; n++) {
        char box[600], *answer = next_string(&p, "answer"), *prediction = NULL;
        if (!answer || !(prediction = next_string(&p, "prediction"))) break;
        int expected = 1, verdict = reward_boxed(prediction, answer) == 1;
        for (size_t k = 0; k < sizeof HAND_VERDICTS / sizeof *HAND_VERDICTS; k++)
            if (HAND_VERDICTS[k].index == n) expected = HAND_VERDICTS[k].verdict;
        if (verdict != expected) broken(verdict ? "accepted" : "refused", prediction);
        accepted += verdict;
        same_text += extract_boxed(prediction, box, sizeof box) && !strcmp(box, answer);
        free(answer);
        free(prediction);
    }
    printf("  %d of %d accepted (%d have the same text)\n", accepted, n, same_text);
    CHECK(n == 500);
    CHECK(accepted == 493);
    CHECK(same_text == 354);
}

static void test_gsm8k_annotations(void) {
    long count = 0, printed = 0, texts = 0;
    for (int f = 0; f < 2; f++) {
            for (const char* p = gsm8k[f]; (p = strstr(p, "<<")) != NULL;) {
            const char *end = strstr(p, ">>"), *equals = memchr(p, '=', (size_t)(end - p));
            char expression[300], expected[100], result[100];
            snprintf(expression, sizeof expression, "%.*s", (int)(equals - p - 2), p + 2);
            snprintf(expected, sizeof expected, "%.*s", (int)(end - equals - 1), equals + 1);
            int ok = calculate(expression, result, sizeof result);
            if (!ok || !answers_equal(result, expected)) broken(expression, result);
            count++;
            printed += ok;
            texts += !strcmp(result, expected);
            p = end;
        }
    }
    printf("  %ld annotations, %ld evaluated, %ld print the very same text\n", count, printed, texts);
    CHECK(count == 27998);
    CHECK(printed == count);
    CHECK(texts == 27175);  // the other 823 print zeros at the end (27.00) or none in front (.5)
}

static void test_gsm8k_references(void) {
    int n = 0;
    for (int f = 0; f < 2; f++) {
            const char* p = gsm8k[f];
        for (char* answer; (answer = next_string(&p, "answer")) != NULL; free(answer), n++) {
            static char long_tail[20000];
            static const char* const forms[] = {
        "#### %s", "#### %s.", "#### %s.00", "#### $%s", "####%s", "#### **%s**", "#### %s apples",
        "so\n#### %s\n", "#### $%s, as the rest is gone", "#### \\$%s", "**#### %s**"};
            char number[64], response[256], commas[64];
            CHECK(reward_gsm8k(answer, answer) == 1);
            CHECK(extract_hash_answer(answer, number, sizeof number));
            long long value = atoll(number);
            for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
                snprintf(response, sizeof response, forms[k], number);
                CHECK(reward_gsm8k(response, answer) == 1);
                CHECK(reward_gsm8k(response, number) == 1);
            }
            int length = (int)strlen(number), m = 0;  // with thousands separators
            for (int i = 0; i < length; i++) {
                commas[m++] = number[i];
                if (is_digit(number[i]) && i < length - 1 && (length - 1 - i) % 3 == 0) commas[m++] = ',';
            }
            commas[m] = 0;
            snprintf(response, sizeof response, "#### %s", commas);
            CHECK(reward_gsm8k(response, answer) == 1);
            memset(long_tail, 'x', sizeof long_tail - 1);
            int start = snprintf(long_tail, 100, "#### %s", number);
            long_tail[start] = ' ';
            CHECK(reward_gsm8k(long_tail, answer) == 1);
            for (int d = -1; d <= 1; d += 2) {
                snprintf(response, sizeof response, "#### %lld", value + d);
                CHECK(reward_gsm8k(response, answer) == 0);
            }
            snprintf(response, sizeof response, "#### %lld", -value);
            CHECK(value == 0 || reward_gsm8k(response, answer) == 0);
            snprintf(response, sizeof response, "The answer is %s.", number);
            CHECK(reward_gsm8k(response, answer) == 0);
        }
    }
    CHECK(n == 8792);
}

// 5,276 solutions with a label. Their marker is "A:"; the last one is rewritten to "####".
static void test_gsm8k_labels(void) {
    int count = 0, agree = 0;
    const char *line = gsm8k_solutions, *next;
    for (; *line; line = next) {
        next = strchr(line, '\n');
        next = next ? next + 1 : line + strlen(line);
        const char* p = line;
        char* truth = next_string(&p, "ground_truth");
        char* number = strstr(truth, "A:") ? strrchr(truth, ':') + 1 : truth;
        while (*number == ' ') number++;
        for (int label; (label = next_bool(&p, "is_correct")) >= 0 && p < next;) {
            char* solution = next_string(&p, "solution");
            char *mark = NULL, *response = allocate(strlen(solution) + 8, 1);
            for (char* q = strstr(solution, "A:"); q; q = strstr(q + 1, "A:")) mark = q;
            if (mark) sprintf(response, "%.*s####%s", (int)(mark - solution), solution, mark + 2);
            int reward = reward_gsm8k(response, number) == 1;
            count++;
            agree += reward == label;
            if (reward != label) broken(reward ? "accepted" : "refused", mark ? mark : solution);
            free(solution);
            free(response);
        }
        free(truth);
    }
    printf("  %d solutions, %d agree with their label\n", count, agree);
    CHECK(count == 5276);
    CHECK(agree == count);
}

// Every problem of the real files is read by the project's own loader.
static void test_gsm8k_files_load(void) {
    const int expected[2] = {7473, 1319};
    for (int f = 0; f < 2; f++) {
        char path[PATH_SIZE];
        snprintf(path, sizeof path, "%s/gsm8k/%s.jsonl", data_folder(), f ? "test" : "train");
        Problems p = load_problems(path);
        const char* at = gsm8k[f];
        CHECK(p.count == expected[f]);
        for (int i = 0; i < p.count; i++) {
            char *question = next_string(&at, "question"), *answer = next_string(&at, "answer");
            CHECK(question && !strcmp(question, p.list[i].question));
            CHECK(answer && !strcmp(answer, p.list[i].answer));
            free(question), free(answer);
        }
        problems_free(&p);
    }
}

static void test_real(void) {
    const char* data = data_folder();
    math_problems = read_whole_file(data, "math500/math500_test.json");
    math_predictions = read_whole_file(data, "math500/gpt_answers.json");
    gsm8k[0] = read_whole_file(data, "gsm8k/train.jsonl");
    gsm8k[1] = read_whole_file(data, "gsm8k/test.jsonl");
    gsm8k_solutions = read_whole_file(data, "gsm8k/example_model_solutions.jsonl");
    RUN_IF(math_problems, test_math500_reference_answers);
    RUN_IF(math_problems, test_math500_pairs);
    RUN_IF(math_predictions, test_gpt_answers);
    RUN_IF(gsm8k[0] && gsm8k[1], test_gsm8k_annotations);
    RUN_IF(gsm8k[0] && gsm8k[1], test_gsm8k_references);
    RUN_IF(gsm8k[0] && gsm8k[1], test_gsm8k_files_load);
    RUN_IF(gsm8k_solutions, test_gsm8k_labels);
}

// grade.c - data that stays honest: problem files of both kinds, what two files share (./rl overlap), the
// refusal to train on the exam, and ./rl grade. Files are made by hand; each rule has its counter-example.

// ---- files of problems

static const char MATH[] =
    "[\n  {\n    \"problem\": \"Half of $3x-9$ is $x+37$. Find $x$.\",\n    \"answer\": \"83\",\n"
    "    \"solution\": \"We get $3x-9 = 2x+74$, so $x = \\\\boxed{83}$. #### 7\",\n"
    "    \"subject\": \"Algebra\",\n    \"level\": 2\n  },\n"
    "  {\"question\": \"What is $14/3$?\", \"answer\": \"\\\\frac{14}{3}\", \"level\": \"Level 1\"}\n]\n";

// A byte order mark and blank lines may stand before the bracket that decides; "problem" or "question". Lines
// may say "problem" too; when both are there, "question" is the one.
static void math_array(void) {
    char marked[1000];
    snprintf(marked, sizeof marked, "\xEF\xBB\xBF\r\n \t\n%s", MATH);
    Problems p = load_problems(put("math.json", marked));
    CHECK(p.count == 2);
    CHECK_TEXT(p.list[0].question, "Half of $3x-9$ is $x+37$. Find $x$.");
    CHECK_TEXT(p.list[1].question, "What is $14/3$?");
    problems_free(&p);
    p = load_problems(put("lines.jsonl", json(
        "{'problem': 'a', 'answer': 'b'}\n{'problem': 'c', 'question': 'd', 'answer': 'e'}\n")));
    CHECK_TEXT(p.list[0].question, "a");
    CHECK_TEXT(p.list[1].question, "d");
    problems_free(&p);
    // RL sees the bare answer: the solution's own box and its "#### 7" are never read
    Questions q = load_questions(in_folder("math.json"), 256, 16, &reward_kinds[1]);
    CHECK(q.count == 2);
    CHECK_TEXT(q.list[0].truth, "83");
    CHECK_TEXT(q.list[1].truth, "\\frac{14}{3}");
    for (int i = 0; i < q.count; i++)
        for (int t = 0; t < q.list[i].prompt.length; t++) CHECK(q.list[i].prompt.ids[t] != '#');
    questions_free(&q);
}

// ---- the same question

static Match match_two(const char* a, const char* b) {
    Problem x = {(char*)a, NULL}, y = {(char*)b, NULL};
    Match *match = match_questions(&(Problems){&x, 1}, &(Problems){&y, 1}), m = match[0];
    free(match);
    return m;
}

// Two questions are alike in the same way from both sides; a row is "one | the other".
#define ALIKE(how, ...) check_alike(how, (const char*[]){__VA_ARGS__, NULL})
static void check_alike(int how, const char* const* rows) {
    for (; *rows; rows++) {
        char one[100];
        snprintf(one, sizeof one, "%s", *rows);
        char* other = strstr(one, " | ");
        *other = 0;
        int there = match_two(one, other + 3).likeness, back = match_two(other + 3, one).likeness;
        if (there != how || back != how) BROKEN("%s: %d and %d, expected %d\n", *rows, there, back, how);
    }
}

static void likenesses(void) {
    // Unicode's quotes, spaces, dashes and capitals are like ASCII's. The comma of thousands, a last point do
    // not count; the comma of a list, the point within, signs and spaces (which make words) do. A name has a
    // capital letter. ??? has no words: nothing in common.
    ALIKE(SAME_WORDS, "Tom has 3 pens. | Tom has 3 pens.", "Tom has 3 pens. |  tom  has 3\npens!",
          "Tom’s two-digit sum | Tom's two digit sum", "he has\u00a03—or 4 | he has 3 or 4",
          "Über 5 | über 5", "Łódź | łÓDŹ", "Ждёт | жДЁт", "Έχει | έΧΕΙ", "ΗΣ | ης",
          "he has 1,000 pens | he has 1000 pens", "it is 3. | it is 3", "find $5-3$ | find 5 - 3");
    ALIKE(SAME_BUT_NAMES, "Özil has 3 | Änne has 3", "Tom has 3 pens. | Ana has 3 pens.");
    ALIKE(SAME_BUT_NUMBERS, "3.5 m | 35 m", "Tom has 3 pens. | Ana has 1,250.5 pens.",
          "he has 3 pens. | he has 4 pens.", "find $2x$ | find $17x$");
    ALIKE(LIKENESSES, "Tom has 3 pens. | Tom has 3 pen s.", "café of 5 | cafè of 5",
          "özil has 3 | änne has 3", "3×4 | 3÷4", "the points 1,2 and 3 | the points 12 and 3",
          "find $5+3$ | find $5-3$", "find $x^2$ | find $x2$", "Tom has 3 pens. | ana has 3 pens.",
          "find $x-3$ | find $x 3$", "find $3-x$ | find $3 x$", "3 a\xFF | 3 a\xFE",
          "Tom has 3 pens. | Ana has 3 cups.", "find $2x$ | find $17y$", "??? | !!!");
}

// Thirty different words without those before `from` and behind `to`; up to three of them are replaced.
static const char* thirty_words(int from, int to, int x1, int x2, int x3) {
    static char text[16][300];
    static int next;
    char* out = text[next = (next + 1) % 16];
    int n = 0;
    for (int i = from; i <= to; i++) {
        int changed = i == x1 || i == x2 || i == x3;
        n += sprintf(out + n, "%c%c%c ", changed ? 'x' : 'w', 'a' + i / 10, 'a' + i % 10);
    }
    return out;
}

static void runs_of_eight_words(void) {
    const char *all = thirty_words(1, 30, 0, 0, 0), *few = "a a a a a a a a a a a";
    // 30 words have 23 runs of 8; word 15 is in the runs that begin at words 8 to 15: 8 are lost, 15 stay.
    // Words 10 and 13: the runs from 3 to 13 are lost, 12 of 23 stay, 52%. Words 10 and 14: 11 stay, 48%.
    // Every eighth word: no run is left. The share is one of the question asked about: ten words of thirty
    // are all there, but not the thirty in the ten. Seven words are no run, eight are one. Repeats count
    // once: eleven times "a" has the one run that twenty times "a" has, and b.
    const struct { const char *a, *b; double share; } cases[] = {
        {all, thirty_words(1, 30, 15, 0, 0), 15.0 / 23}, {all, thirty_words(1, 30, 10, 13, 0), 12.0 / 23},
        {all, thirty_words(1, 30, 10, 14, 0), 0.0}, {all, thirty_words(1, 30, 8, 16, 24), 0.0},
        {all, thirty_words(5, 14, 0, 0, 0), 1.0}, {thirty_words(5, 14, 0, 0, 0), all, 0.0},
        {all, thirty_words(1, 7, 0, 0, 0), 0.0}, {all, thirty_words(1, 8, 0, 0, 0), 1.0},
        {few, "a a a a a a a a a a a a a a a a a a a a b", 0.5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Match m = match_two(cases[i].a, cases[i].b);
        CHECK(m.likeness == (cases[i].share > 0.0 ? NEARLY_SAME : LIKENESSES));
        if (cases[i].share > 0.0) CHECK_NEAR(m.share, cases[i].share, 1e-12);
    }
    // two questions that each have a half do not add up to a near one: 8 + 8 of 23 runs, but 8 in each
    Problem a[3] = {{.question = (char*)thirty_words(1, 15, 0, 0, 0)},
                    {.question = (char*)thirty_words(16, 30, 0, 0, 0)}};
    Problem b[2] = {{(char*)all, NULL}, {(char*)all, NULL}};
    Match* match = match_questions(&(Problems){a, 2}, &(Problems){b, 1});
    CHECK(match[0].likeness == LIKENESSES);
    free(match);
    // of several near ones the nearest is named; and counters start at 0 again for the next question
    a[1].question = (char*)thirty_words(1, 30, 30, 0, 0); // 22 of 23
    a[2].question = (char*)thirty_words(1, 30, 15, 0, 0); // 15 of 23
    match = match_questions(&(Problems){a, 3}, &(Problems){b, 2});
    for (int i = 0; i < 2; i++) {
        CHECK(match[i].likeness == NEARLY_SAME && match[i].twin == 1);
        CHECK_NEAR(match[i].share, 22.0 / 23, 1e-12);
    }
    free(match);
    // of several equal ones the first
    Problem twins[3] = {{(char*)"b c", NULL}, {(char*)"B, c", NULL}, {(char*)"B C", NULL}};
    Problem one = {(char*)"b c!", NULL};
    match = match_questions(&(Problems){twins, 3}, &(Problems){&one, 1});
    CHECK(match[0].likeness == SAME_WORDS && match[0].twin == 0);
    free(match);
}

#define ASK(question) "{\"question\": \"" question "\", \"answer\": \"1\"}\n"

static void overlap_command(void) {
    const char* a = put("a.jsonl", ASK("Tom has 3 pens. How many?") ASK("How far is it?") ASK("and why?"));
    const char* b = put("b.json", json("[{'problem': 'tom has 3 pens: how many?', 'answer': '3'},\n"
                                       "{'problem': 'and why?', 'answer': '3'},"
                                       "{'problem': 'and when?', 'answer': '3'},"
                                       "{'problem': 'Ana has 4 pens. How many?\\u001b[2J', 'answer': '3'}]"));
    const Ran* r = COMMAND(command_overlap, a, b);
    CHECK(r->status == 0 && !*r->err);
    SAYS(r->out, "a.jsonl: 3 questions\n", "b.json: 4 questions\n",
        "the same without case, spaces, punctuation        2   50.00%\n",
        "the same but for names                            0    0.00%\n",
        "none of these                                     2   50.00%\n", // [2J is one more word
        "question 1 of B, question 1 of A\n    B     tom has 3 pens: how many?\n"
        "    A     Tom has 3 pens. How many?\n");
    SAYS_NOT(r->out, "\x1b");
    CHECK(longest_line(r->out) <= 80);
    r = COMMAND(command_overlap, put("c", ASK("a b c d e f g h i")), put("d", ASK("a b c d e f g h j")));
    SAYS(r->out, "question 1 of B, question 1 of A: 50% of its runs of 8 words\n");
    REFUSED(COMMAND(command_overlap, a), "two files are needed");
    REFUSED(COMMAND(command_overlap, a, b, a), "is not expected here");
    REFUSED(COMMAND(command_overlap, a, "nowhere"), "cannot open nowhere");
}

// A long question is shown by its beginning, and at most three pairs of a kind are.
static void overlap_is_short(void) {
    Text file = {0};
    for (int i = 0; i < 5; i++)
        text_printf(&file, "{\"question\": \"%0700d %d\", \"answer\": \"1\"}\n", 0, i);
    const char* a = put("long.jsonl", file.data);
    const Ran* r = COMMAND(command_overlap, a, a);
    int shown = 0, lines = 0;
    for (const char* p = r->out; *p; p++) shown += !strncmp(p, "  question ", 11), lines += *p == '\n';
    CHECK(shown == 3);
    CHECK(lines == 5 + 5 + 2 + 3 * (2 + 2 * OVERLAP_LINES)); // head, table, title; of each pair title, B, A
    SAYS(r->out, " ..\n");
    text_free(&file);
}

// 500 questions against 12,000, of 60 words each: seconds. One is the same but for its first word.
static void overlap_is_fast(void) {
    Problems all = {allocate(12500, sizeof(Problem)), 12500}, a = {all.list, 12000};
    Problems b = {all.list + 12000, 500};
    Rng rng = {1};
    for (int i = 0; i < all.count; i++) {
        Text t = {0};
        for (int k = 0; k < 180; k++) text_printf(&t, k % 3 < 2 ? "%c" : "%c ", 'a' + random_int(&rng, 17));
        all.list[i].question = t.data;
    }
    strcpy(b.list[7].question, a.list[11000].question), b.list[7].question[0] = '9';
    clock_t begin = clock();
    Match* match = match_questions(&a, &b);
    CHECK((double)(clock() - begin) / CLOCKS_PER_SEC < 20.0); // even with sanitizers
    for (int i = 0; i < b.count; i++) CHECK(match[i].likeness == (i == 7 ? NEARLY_SAME : LIKENESSES));
    CHECK(match[7].twin == 11000);
    CHECK_NEAR(match[7].share, 52.0 / 53, 1e-12); // 53 runs, and the first word is in one of them
    free(match), problems_free(&all);
}

// ---- who trains on the exam is stopped

static void the_exam_is_not_trained_on(void) {
    put("train.jsonl", ASK("How far is it?") ASK("Tom has 3 pens. Why?"));
    put("e1.jsonl", ASK("When?") ASK("Tom has 3 pens. Why?"));
    put("e2.jsonl", ASK("When?") ASK("tom has 3 pens why"));
    put("e3.jsonl", ASK("When?") ASK("Ana has 3 pens. Why?"));
    const char *data = option("data", "train.jsonl"), *same = option("eval-data", "e1.jsonl");
    const char *respelled = option("eval-data", "e2.jsonl"), *renamed = option("eval-data", "e3.jsonl");
    const char *model = option("model-tag", "model"), *out = option("out", "out");
    const char *fresh = option("out", "fresh"), *nowhere = "--model-tag=nowhere";
    // a model that learns nothing in one update, but does it
    save_model(in_folder("model"), (Config){VOCAB_SIZE, 64, 1, 8, 2, 1, 4, 8, 1, 10000.0f, 1e-6f, 0});
#define TRAIN(...)                                                                             \
    COMMAND(command_train, model, data, out, "--threads=1", "--num-steps=1", "--num-samples=2", \
            "--examples-per-step=1", "--max-new-tokens=4", "--eval-every=1", "--overwrite", __VA_ARGS__)
    const char *stopped = "1 of the 2 questions", *passed = "there is no model out/nowhere";
    REFUSED(TRAIN(same), stopped);
    REFUSED(TRAIN(respelled), stopped);
    CHECK(!file_exists(in_folder("out")));
    CHECK(TRAIN(renamed)->status == 0);                // another question, if a near one
    CHECK(TRAIN(same, "--eval-every=0")->status == 0); // no exam
    const Ran* r = TRAIN(same, "--allow-overlap");
    CHECK(r->status == 0);
    SAYS(r->out, "notice: 1 of the 2 questions of ");
    // a run that goes on remembers that it may
    CHECK(COMMAND(command_train, option("resume", "out"), "--num-steps=2", "--threads=1")->status == 0);
    // `run` evaluates in any case, and before it takes a minute to train
    REFUSED(COMMAND(command_run, nowhere, fresh, data, same), stopped);
    REFUSED(COMMAND(command_run, nowhere, fresh, data, same, "--eval-every=0"), stopped);
    REFUSED(COMMAND(command_run, nowhere, fresh, data, same, "--allow-overlap"), passed);
    REFUSED(COMMAND(command_run, nowhere, fresh, data, renamed), passed);
    // the demonstrations of the supervised stage are trained on, too
    REFUSED(COMMAND(command_run, data, "--eval-data=data/demos.jsonl", option("out", "never")),
            "in data/demos.jsonl");
    CHECK(!file_exists(in_folder("never")));
}

// ---- grading

// D2's four rollouts (section 4), then silence, and an empty box. With 'quotes', for json().
#define TOLD(text) "{'response': '" text "', 'answer': '83'}\n"
#define SIX TOLD("\\\\boxed{83}") TOLD("It is \\\\boxed{83.0}") TOLD("The final answer is 83") \
            TOLD("We get \\\\boxed{38}") TOLD("") TOLD("\\\\boxed{}")

static void grades(void) {
    const Ran* r = COMMAND(command_grade, put("six.jsonl", json(SIX)));
    CHECK(r->status == 0 && !*r->err);
    // wrong: 38, and nothing in the box; no format: r3 of D2, which is right, and silence
    SAYS(r->out, "6 responses to 6 questions, reward boxed\n", "  right           2   0.3333\n",
        "  wrong           2   0.3333 ", "  no format       2   0.3333 ",
        "                  1            of these, right when read leniently\n");
    // worth 5 coin flips: Wilson (1/3 + 3.8416/10) / 1.7683 +- 1.96 / 1.7683 sqrt(0.2222/5 + 3.8416/100) =
    // 0.4057 +- 0.3191; the vote of one is the same; no vote: the two without the format, and the empty box
    SAYS(r->out, "     1   0.3333  0.0867-0.7248   0.3333  0.0867-0.7248   0.5000        -\n",
        "Not right: record 3 4 5 6; --explain N shows why.\n");
    SAYS_NOT(r->out, "\n     2   ");
    // gsm8k looks elsewhere: all six are without format, and three are right when read leniently
    r = COMMAND(command_grade, in_folder("six.jsonl"), "--reward=gsm8k");
    SAYS(r->out, "  no format       6   1.0000 ", "                  3            of these");
    // an array with "prediction" is the same; all right leaves nothing to explain
    const char* array = "[{'prediction': '\\\\boxed{1/2}', 'answer': '0.5'}]";
    r = COMMAND(command_grade, put("array.json", json(array)));
    SAYS(r->out, "  right           1   1.0000\n");
    SAYS_NOT(r->out, "Not right", "leniently");
    // a reference answer of GSM8K may be the whole solution
    r = COMMAND(command_grade, "--reward", "gsm8k",
                put("gsm.jsonl", json("{'response': '#### $1,000', 'answer': '500*2\\n#### 1000'}\n"
                                      "{'response': '#### 12', 'answer': '13'}\n")));
    SAYS(r->out, "  right           1   0.5000\n", "  wrong           1   0.5000 ");
    SAYS_NOT(r->out, "stands");
}

// The reward's name and a file.
static int command_load_questions(int argc, char** argv) {
    Questions q = load_questions(argv[argc - 1], 2048, 16, find_reward(argv[0]));
    printf("first %s\n", q.list[0].truth);
    questions_free(&q);
    return 0;
}

// A right answer that nothing can earn: there is none, it is too long, or no number where a reward wants one.
// Training and evaluation, which load questions, read and count them as grading does.
static void what_nothing_earns_is_counted(void) {
    char lengthy[1200] = "", file[2000];
    memset(lengthy, 'x', sizeof lengthy - 1);
    snprintf(file, sizeof file, "%s{\"question\": \"d\", \"response\": \"\", \"answer\": \"%s\"}\n",
             json("{'question': 'a', 'response': 'so 42', 'answer': '\\\\boxed{42}'}\n"
                  "{'question': 'b', 'response': '', 'answer': '####'}\n"
                  "{'question': 'c', 'response': '', 'answer': 'yes'}\n"), lengthy);
    const char* path = put("unearned.jsonl", file);
    const Ran* r = COMMAND(command_grade, path);
    SAYS(r->out, "                  1            of these, right when read leniently\n", // the truth is 42
        "\nOf 2 records the right answer is empty, too long, or nothing that the reward\n");
    SAYS(COMMAND(command_grade, path, "--reward=gsm8k")->out, "\nOf 3 records the right answer is ");
    SAYS(COMMAND(command_grade, path, "--explain=1")->out,
         "Compared  equal, but not where the reward looks\nReward    0\n");
    SAYS(COMMAND(command_load_questions, "boxed", path)->out, ": 2 of 4 right answers are empty, too long,");
    r = COMMAND(command_load_questions, "gsm8k", path);
    SAYS(r->out, ": 3 of 4 right answers are empty, too long, or nothing that the reward gsm8k pays for",
        "first 42\n");
}

#define GIVE(fields, box) "{" fields ", 'response': '\\\\boxed{" box "}', 'answer': '1'}\n"
#define GIVE_A(box) GIVE("'question': 'A'", box)
#define GIVE_B(box) GIVE("'question': 'B'", box)

static void several_responses_to_a_question(void) {
    // A: 2 of 4 right, B: 0 of 4, mixed in the file. pass@1 = (2/4 + 0) / 2. pass@2: of the 6 pairs out of
    // A's four, one is without a right one, (1 - 1/6 + 0) / 2 = 0.4167. pass@4 = (1 + 0) / 2
    const Ran* r = COMMAND(command_grade, put("eight.jsonl", json(
        GIVE_A("1") GIVE_B("0") GIVE_A("2") GIVE_B("0") GIVE_A("1") GIVE_B("3") GIVE_B("0") GIVE_A("0"))));
    // The interval counts questions. pass@1: shares 1/2 and 0 have variance 1/8, which is worth 0.1875 /
    // (0.125/2) = 3 flips of 1/4; pass@4: 1 and 0 are worth 1 flip of 1/2. The vote: A says 1 2 | 1 0, a tie
    // goes to the first, so 1 and 1: right; B never is: (1 + 0) / 2
    SAYS(r->out, "8 responses to 2 questions", "     2   0.4167  0.0513-0.9042   0.5000  ",
        "     1   0.2500  0.0368-0.7439   0.2500  0.0368-0.7439   0.0000        -\n",
        "     4   0.5000  0.0546-0.9454   0.5000  0.0546-0.9454   0.0000        -\n",
        "Not right: record 2 3 4 6 7 8;");
    SAYS_NOT(r->out, "counts the same");
    // numbers as ids; 7 and 7.0 are one number. One question has one response, so nothing is known of pass@2
    r = COMMAND(command_grade, put("ids.jsonl", json(
        GIVE("'id': 7", "1") GIVE("'id': 8", "1") GIVE("'id': 7.0", "0") GIVE("'id': 7", "0"))));
    SAYS(r->out, "4 responses to 2 questions", "     1   0.6667 ", // (1/3 + 1) / 2
        "1 to 3 responses to a question; each question counts the same.\n");
    SAYS_NOT(r->out, "\n     2   ");
    // the question counts before the id; a record that names none is a question of its own
    r = COMMAND(command_grade, put("mixed.jsonl", json(
        GIVE("'id': 1, 'problem': 'A'", "1") GIVE("'id': 2, 'problem': 'A'", "0")
        GIVE("'x': 1", "1") GIVE("'x': 1", "1"))));
    SAYS(r->out, "4 responses to 3 questions");
}

static const char* explained(const char* record, const char* reward) {
    const Ran* r = COMMAND(command_grade, in_folder("ten.jsonl"), "--explain", record, "--reward", reward);
    CHECK(r->status == 0);
    SAYS_NOT(r->out, "accuracy");
    return r->out;
}

static void explanations(void) {
    static const char* const right[] = {"1", "2", "7", "10"};
    put("ten.jsonl", json(SIX "\n{'response': '\\u001b[31m\\\\boxed{\\\\dfrac{28}{6}}', 'answer': '14/3'}\n"
                          "{'response': '\\\\boxed{ (x+1)^2 }', 'answer': 'x^2+2x+1'}\n"
                          "{'response': 'so 4 #### 1,000', 'answer': '= 1000 #### 1000.0'}\n"
                          "{'response': '\\\\boxed{\\\\left(1, 2\\\\right)}', 'answer': '(1,2)'}\n"));
    for (int i = 0; i < 4; i++) SAYS(explained(right[i], "boxed"), "Compared  equal\nReward    1\n");
    // a blank line is a line, but no record; what a model wrote does not reach the terminal raw
    SAYS(explained("7", "boxed"), "Record 7 of ", "line 8, reward boxed\n",
        "Response  \\x1B[31m\\boxed{\\dfrac{28}{6}}\n", "Found     \\dfrac{28}{6}\nNormal    \\frac{28}{6}\n",
        "Normal    \\frac{28}{6}\nValue     4.66666666667 = 14/3 exactly\n",
        "Answer    14/3\nNormal    14/3\nValue     4.66666666667 = 14/3 exactly\n");
    SAYS(explained("8", "boxed"), "Found     (x+1)^2\n", " at evaluation point 0\n");
    SAYS(explained("3", "boxed"), "Found     (nothing where the reward looks)\n\nAnswer    83\n",
        "Leniently 83\nCompared  equal, but not where the reward looks\nReward    0\n");   // D2 section 4
    SAYS(explained("4", "boxed"), "Compared  different\nReward    0\n");
    SAYS(explained("5", "boxed"), "Reward    0\n");
    SAYS_NOT(explained("5", "boxed"), "Compared");                    // nothing to compare
    SAYS(explained("9", "gsm8k"), "Found     1000\n", "Answer    1000.0\n", "Compared  equal\nReward    1\n");
}

static void what_cannot_be_read(void) {
    static const char* const bad[][2] = {
        {"", "has no responses in it"}, {"[]", "has no responses in it"},
        {SIX "{'answer': '1'}", "line 7: neither a field 'response' nor 'prediction'"},
        {"{'response': 1, 'answer': '1'}", "line 1: the field 'response' is not a text"},
        {"{'prediction': null, 'answer': '1'}", "line 1: the field 'prediction' is not a text"},
        {"{'response': '1', 'answer': ''}", "line 1: the field 'answer' is empty"},
        {"{'response': '1', 'answer': '1', 'id': [1]}", "line 1: the field 'id' is neither"},
        {"{'response': '1', 'answer': '1'", "line 1, column 32: the text ends too early"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        REFUSED(COMMAND(command_grade, put("bad.json", json(bad[i][0]))), json(bad[i][1]));
    const char* six = put("six.jsonl", json(SIX));
    REFUSED(COMMAND(command_grade, "--reward=boxed"), "a file is missing");
    REFUSED(COMMAND(command_grade, "nowhere.jsonl"), "cannot open nowhere.jsonl");
    REFUSED(COMMAND(command_grade, six, "--explain=7"), "--explain 7: ");
    REFUSED(COMMAND(command_grade, six, "--explain=-1"), "--explain must be from 0");
    REFUSED(COMMAND(command_grade, six, "--reward=praise"), "there is no --reward 'praise'");
    REFUSED(COMMAND(command_grade, six, six), "is not expected here");
}

static void test_grade(void) {
    open_folder();
    RUN_ALL(TEST(math_array), TEST(likenesses),
            TEST(runs_of_eight_words), TEST(overlap_command), TEST(overlap_is_short), TEST(overlap_is_fast),
            TEST(the_exam_is_not_trained_on), TEST(grades), TEST(what_nothing_earns_is_counted),
            TEST(several_responses_to_a_question), TEST(explanations), TEST(what_cannot_be_read));
    remove_folder();
}

// chapter_06.c - rollouts and the tool: what is sampled, what is forced, and the mask.

static void c06_add_text(Tokens* t, const char* text) { tokens_add_text(t, text, strlen(text), 1); }

static void chapter_06_tool_answers_a_call(void) {
    // "<|python_start|>12*3<|python_end|>" -> "<|output_start|>36<|output_end|>"
    Tokens t = {0};
    int forced[64], from;
    c06_add_text(&t, "so ");
    tokens_add(&t, PYTHON_START, 1);
    CHECK(tool_state(t.ids, t.length, &from) == TOOL_READING && from == 4);
    c06_add_text(&t, "12*3");
    CHECK(tool_calculator(forced, 64, t.ids, t.length) == 0);           // still typing
    tokens_add(&t, PYTHON_END, 1);
    CHECK(tool_state(t.ids, t.length, &from) == TOOL_CALLED && from == 4);
    CHECK(tool_calculator(forced, 64, t.ids, t.length) == 4);
    CHECK(forced[0] == OUTPUT_START && forced[1] == '3' && forced[2] == '6' && forced[3] == OUTPUT_END);
    CHECK(tool_calculator(forced, 3, t.ids, t.length) == 0);            // it does not fit: all or nothing
    c06_add_text(&t, "x");
    CHECK(tool_state(t.ids, t.length, &from) == TOOL_IDLE);
    CHECK(tool_calculator(forced, 64, t.ids, t.length) == 0);           // the call is over
    tokens_add(&t, PYTHON_END, 1);                                      // an end without a start
    CHECK(tool_state(t.ids, t.length, &from) == TOOL_IDLE);
    CHECK(tool_calculator(forced, 64, t.ids, t.length) == 0);
    tokens_free(&t);
}

static void chapter_06_tool_gives_no_output(void) {
    static const char* const odd[] = {"", "2**3", "1/0", "seven", "7*", "1;2", "__import__('os')", "9**9**9"};
    int forced[64];
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        Tokens t = {0};
        tokens_add(&t, PYTHON_START, 1);
        c06_add_text(&t, odd[i]);
        tokens_add(&t, PYTHON_END, 1);
        CHECK(tool_calculator(forced, 64, t.ids, t.length) == 0);
        tokens_free(&t);
    }
    // a second start begins the expression anew, as in nanochat; a special token inside is no arithmetic
    Tokens t = {0};
    tokens_add(&t, PYTHON_START, 1);
    c06_add_text(&t, "1+");
    tokens_add(&t, PYTHON_START, 1);
    c06_add_text(&t, "2+2");
    tokens_add(&t, PYTHON_END, 1);
    CHECK(tool_calculator(forced, 64, t.ids, t.length) == 3 && forced[1] == '4');
    t.length = 0;
    tokens_add(&t, PYTHON_START, 1);
    c06_add_text(&t, "2+2");
    tokens_add(&t, BOS, 1);                                        // 256: as a byte it would end the text
    tokens_add(&t, PYTHON_END, 1);
    CHECK(tool_calculator(forced, 64, t.ids, t.length) == 0);
    // the longest that fits, and one more
    t.length = 0;
    tokens_add(&t, PYTHON_START, 1);
    for (int i = 0; i < EXPRESSION_SIZE - 1; i++) c06_add_text(&t, i % 2 ? "+" : "1");
    tokens_add(&t, PYTHON_END, 1);
    CHECK(tool_calculator(forced, 64, t.ids, t.length) == 5 && forced[1] == '1' && forced[3] == '8');   // 128
    t.length = 0;
    tokens_add(&t, PYTHON_START, 1);
    for (int i = 0; i < EXPRESSION_SIZE; i++) c06_add_text(&t, "1");
    tokens_add(&t, PYTHON_END, 1);
    CHECK(tool_calculator(forced, 64, t.ids, t.length) == 0);
    tokens_free(&t);
}

static void chapter_06_script_with_tool(void) {
    // sampled: a <start> 1 + 1 <end>; forced: <out> 2 </out>; sampled: b <assistant_end>
    Tokens s = {0}, prompt = {0};
    render_prompt(&prompt, "1+1?");
    c06_add_text(&s, "a");
    tokens_add(&s, PYTHON_START, 1);
    c06_add_text(&s, "1+1");
    tokens_add(&s, PYTHON_END, 1);
    c06_add_text(&s, "b");
    tokens_add(&s, ASSISTANT_END, 1);
    Rollout* r = play_script(&prompt, s.ids, s.length);
    static const int mask[11] = {1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1};
    CHECK(r->length == 11 && r->finished && used_tool(r));
    int P = prompt.length;
    CHECK(r->prompt == P && !memcmp(r->ids, prompt.ids, (size_t)P * sizeof(int)));
    CHECK(!memcmp(r->mask + P, mask, sizeof mask));
    CHECK(r->ids[P + 6] == OUTPUT_START && r->ids[P + 7] == '2' && r->ids[P + 8] == OUTPUT_END);
    CHECK(count_masked(r->mask, r->T) == 8);
    // the states of the tool behind each token: reading from <start> on, called at <end>, its answer, then
    // idle
    static const char* const states[11] = {"idle",    "reading", "reading", "reading", "reading", "called",
                                           "answers", "answers", "answers", "idle",    "idle"};
    for (int t = 0; t < 11; t++) CHECK_TEXT(tool_state_name(r, P + t), states[t]);
    Text text = rollout_text(r);
    CHECK_TEXT(text.data,
               "a<|python_start|>1+1<|python_end|><|output_start|>2<|output_end|>b<|assistant_end|>");
    text_free(&text);
    // an <|output_start|> that the model wrote itself is no use of the tool
    r->mask[P + 6] = 1;
    CHECK(!used_tool(r));
    rollouts_free(r), tokens_free(&s), tokens_free(&prompt);
}

// The tool's words stay in the row: 128 calls of "1" would get 3 tokens each; there is room for 85.
static void chapter_06_script_that_fills_its_row(void) {
    Tokens s = {0}, prompt = {0};
    render_prompt(&prompt, "1?");
    for (int i = 0; i < EXPRESSION_SIZE / 2; i++) {
        tokens_add(&s, PYTHON_START, 1);
        c06_add_text(&s, "1");
        tokens_add(&s, PYTHON_END, 1);
    }
    Rollout* r = play_script(&prompt, s.ids, s.length);
    CHECK(r->prompt + r->length <= r->T && r->prompt + r->length > r->T - 3);
    CHECK(count_masked(r->mask, r->T) == s.length);
    rollouts_free(r), tokens_free(&s), tokens_free(&prompt);
}

static void chapter_06_readable(void) {
    Text t = {0};
    append_readable(
        &t,
        "He has "
        "<|python_start|>1+1<|python_end|><|output_start|>2<|output_end|>2.\n\x1b[2J\xff<|assistant_end|>");
    CHECK_TEXT(t.data, "He has [1+1 -> 2]2.\n\\x1B[2J\\xFF");
    text_free(&t);
}

// The rows of rollouts_new() are one block each, so that the first one's arrays are the padded arrays of all.
static void chapter_06_rollouts_are_arrays(void) {
    Rollout* r = rollouts_new(3, 5);
    for (int k = 0; k < 3; k++) {
        CHECK(r[k].T == 5 && r[k].ids == r->ids + 5 * k && r[k].mask == r->mask + 5 * k);
        CHECK(r[k].logp == r->logp + 4 * k && r[k].entropy == r->entropy + 4 * k);
    }
    Tokens prompt = {0};
    tokens_add(&prompt, 7, 1);
    tokens_add(&prompt, 8, 1);
    for (int i = 0; i < 5; i++) r[1].ids[i] = r[1].mask[i] = 9;
    for (int i = 0; i < 4; i++) r[1].logp[i] = r[1].entropy[i] = 9;
    rollout_begin(&r[1], &prompt);
    static const int ids[5] = {7, 8, 0, 0, 0}, none[5] = {0};
    static const float zero[4] = {0};
    CHECK(r[1].prompt == 2 && r[1].length == 0 && !r[1].finished && !memcmp(r[1].ids, ids, sizeof ids));
    CHECK(!memcmp(r[1].mask, none, sizeof none) && !memcmp(r[1].logp, zero, sizeof zero) &&
          !memcmp(r[1].entropy, zero, sizeof zero));
    rollouts_free(r), tokens_free(&prompt);
    rollouts_free(NULL);
}

// D1's mask through the update: a call, the tool's output, the rest. Shifted, the forced tokens have weight
// 0.
static void chapter_06_the_tools_words_weigh_nothing(void) {
    Tokens s = {0}, prompt = {0};
    render_prompt(&prompt, "2+2?");
    tokens_add(&s, PYTHON_START, 1);
    c06_add_text(&s, "2+2");
    tokens_add(&s, PYTHON_END, 1);
    c06_add_text(&s, "4");
    Rollout* r = play_script(&prompt, s.ids, s.length);
    int T1 = r->T - 1, *mask = allocate((size_t)T1, sizeof(int));
    float* w = allocate((size_t)T1, sizeof(float));
    shift_mask(mask, r->mask, 1, r->T);
    token_weights(w, mask, 1, T1, NORM_TOKEN_MEAN, 0);
    // 6 sampled tokens: <start> 2 + 2 <end> and, behind <output> 4 </output>, the 4. Each counts 1/6.
    for (int t = 0; t < T1; t++) {
        int at = t + 1 - r->prompt, sampled = (at >= 0 && at < 5) || at == 8;
        CHECK_NEAR(w[t], sampled ? 1.0 / 6 : 0.0, 1e-7);
    }
    free(mask), free(w), rollouts_free(r), tokens_free(&s), tokens_free(&prompt);
}

// A conversation by hand: the assistant's own are its words, its call and its end; the question, the marks of
// the turns and the calculator's output are not.
static void chapter_06_whose_words(void) {
    const int ids[] = {BOS, USER_START, 'q', USER_END, ASSISTANT_START, 'a', PYTHON_START, '1', '+', '1',
                       PYTHON_END, OUTPUT_START, '2', OUTPUT_END, '2', ASSISTANT_END};
    const int mask[] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1};
    Tokens t = {0};
    render_conversation(&t, "q", "a<<1+1=2>>2");
    CHECK(t.length == 16);
    for (int i = 0; i < 16 && i < t.length; i++) CHECK(t.ids[i] == ids[i] && t.mask[i] == mask[i]);
    tokens_free(&t);
}

static void test_chapter_06(void) {
    RUN_ALL(TEST(chapter_06_tool_answers_a_call), TEST(chapter_06_tool_gives_no_output),
            TEST(chapter_06_script_with_tool), TEST(chapter_06_script_that_fills_its_row),
            TEST(chapter_06_whose_words), TEST(chapter_06_readable), TEST(chapter_06_rollouts_are_arrays),
            TEST(chapter_06_the_tools_words_weigh_nothing));
}

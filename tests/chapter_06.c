// chapter_06.c - rollouts and the tool: what is sampled, what is forced, and the mask.

static void chapter_06_tool(void) {
    // "<|python_start|>12*3<|python_end|>" -> "<|output_start|>36<|output_end|>". What stands before the last
    // token, what the tool's state is, where the expression begins, and what it answers.
    static const struct { const char* text; ToolState state; int from; const char* answer; } cases[] = {
        {"so [", TOOL_READING, 4, ""}, {"so [12*3", TOOL_READING, 4, ""},           // still typing
        {"so [12*3]", TOOL_CALLED, 4, "36"},
        {"so [12*3]x", TOOL_IDLE, -1, ""},                  // the call is over
        {"so [12*3]x]", TOOL_IDLE, -1, ""},                 // an end without a start
        {"[1+[2+2]", TOOL_CALLED, 4, "4"},                  // a second start begins anew, as in nanochat
        {"[]", TOOL_CALLED, 1, ""}, {"[2**3]", TOOL_CALLED, 1, ""}, {"[1/0]", TOOL_CALLED, 1, ""},
        {"[seven]", TOOL_CALLED, 1, ""}, {"[7*]", TOOL_CALLED, 1, ""}, {"[1;2]", TOOL_CALLED, 1, ""},
        {"[__import__('os')]", TOOL_CALLED, 1, ""}, {"[9**9**9]", TOOL_CALLED, 1, ""},
        {"[2+2@]", TOOL_CALLED, 1, ""}};                    // a special token inside is no arithmetic
    int forced[64], from;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Tokens t = spelled(cases[i].text);
        int digits = (int)strlen(cases[i].answer), n = digits ? digits + 2 : 0;
        CHECK(tool_state(t.ids, t.length, &from) == cases[i].state);
        if (cases[i].from >= 0) CHECK(from == cases[i].from);
        CHECK(tool_calculator(forced, 64, t.ids, t.length) == n);
        if (n) CHECK(forced[0] == OUTPUT_START && forced[n - 1] == OUTPUT_END);
        for (int k = 0; k < digits; k++) CHECK(forced[1 + k] == cases[i].answer[k]);
        if (n) CHECK(tool_calculator(forced, n - 1, t.ids, t.length) == 0);     // all or nothing
        tokens_free(&t);
    }
    // a number of nats has 8 columns: 9.9999, 99.999, 999.99
    CHECK(nats_decimals(9.9999) == 4 && nats_decimals(9.99995) == 3 && nats_decimals(99.9995) == 2);
    CHECK(nats_decimals(999.99) == 2 && nats_decimals(999.995) == 0);
    // 256 inside: as a byte it would end the text. The longest that fits, 1+1+...+1 = 128, and one more
    Tokens t = spelled("[2+2@]");
    t.ids[4] = BOS;
    CHECK(tool_calculator(forced, 64, t.ids, t.length) == 0);
    t.ids[4] = 0;                                               // so does the byte 0: not 2+2 = 4
    CHECK(tool_calculator(forced, 64, t.ids, t.length) == 0);
    for (int size = EXPRESSION_SIZE - 1; size <= EXPRESSION_SIZE; size++) {
        t.length = 1;
        for (int i = 0; i < size; i++) tokens_add(&t, (size - i) % 2 ? '1' : '+', 1);
        tokens_add(&t, PYTHON_END, 1);
        CHECK(tool_calculator(forced, 64, t.ids, t.length) == (size % 2 ? 5 : 0));
        if (size % 2) CHECK_LIST(forced + 1, 0.0, '1', '2', '8');
    }
    tokens_free(&t);
}

static void chapter_06_script_with_tool(void) {
    // sampled: a <start> 1 + 1 <end>; forced: <out> 2 </out>; sampled: b <assistant_end>
    Tokens prompt = {0};
    render_prompt(&prompt, "1+1?");
    Rollout* r = play("1+1?", "a[1+1]b@");
    int P = prompt.length;
    CHECK(r->length == 11 && r->finished && used_tool(r));
    CHECK(r->prompt == P && !memcmp(r->ids, prompt.ids, (size_t)P * sizeof(int)));
    CHECK_LIST(r->mask + P, 0.0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1);
    CHECK_LIST(r->ids + P + 6, 0.0, OUTPUT_START, '2', OUTPUT_END);
    CHECK(count_masked(r->mask, r->T) == 8);
    // the states of the tool behind each token: reading from <start> on, called at <end>, its answer, idle
    static const char* const states[11] = {"idle", "reading", "reading", "reading", "reading", "called",
                                           "answers", "answers", "answers", "idle", "idle"};
    for (int t = 0; t < 11; t++) CHECK_TEXT(tool_state_name(r, P + t), states[t]);
    Text text = rollout_text(r);
    CHECK_TEXT(text.data,
               "a<|python_start|>1+1<|python_end|><|output_start|>2<|output_end|>b<|assistant_end|>");
    text_free(&text);
    // an <|output_start|> that the model wrote itself is no use of the tool
    r->mask[P + 6] = 1;
    CHECK(!used_tool(r));
    rollouts_free(r);
    // D1's mask through the update. Shifted, the forced tokens have weight 0; 6 sampled tokens: <start> 2 + 2
    // <end> and, behind <output> 4 </output>, the 4. Each counts 1/6.
    r = play("2+2?", "[2+2]4");
    int T1 = r->T - 1, *mask = allocate((size_t)T1, sizeof(int));
    float* w = floats((size_t)T1);
    shift_mask(mask, r->mask, 1, r->T);
    token_weights(w, mask, 1, T1, NORM_TOKEN_MEAN, 0);
    for (int t = 0; t < T1; t++) {
        int at = t + 1 - r->prompt, sampled = (at >= 0 && at < 5) || at == 8;
        CHECK_NEAR(w[t], sampled ? 1.0 / 6 : 0.0, 1e-7);
    }
    free(mask), free(w), rollouts_free(r), tokens_free(&prompt);
}

// The tool's words stay in the row: 128 calls of "1" would get 3 tokens each; there is room for 85.
static void chapter_06_script_that_fills_its_row(void) {
    char calls[3 * (EXPRESSION_SIZE / 2) + 1] = "";
    for (int i = 0; i < EXPRESSION_SIZE / 2; i++) memcpy(calls + 3 * i, "[1]", 4);
    Rollout* r = play("1?", calls);
    CHECK(r->prompt + r->length <= r->T && r->prompt + r->length > r->T - 3);
    CHECK(count_masked(r->mask, r->T) == 3 * (EXPRESSION_SIZE / 2));
    rollouts_free(r);
}

static void chapter_06_readable(void) {
    Text t = {0};
    append_readable(&t, "He has <|python_start|>1+1<|python_end|><|output_start|>2<|output_end|>2.\n\x1b[2J"
                        "\xff<|assistant_end|>");
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
    for (int i = 0; i < 5; i++) r[1].ids[i] = r[1].mask[i] = 9;
    for (int i = 0; i < 4; i++) r[1].logp[i] = r[1].entropy[i] = 9;
    rollout_begin(&r[1], &(Tokens){.ids = (int[]){7, 8}, .length = 2});
    CHECK(r[1].prompt == 2 && r[1].length == 0 && !r[1].finished);
    CHECK_LIST(r[1].ids, 0.0, 7, 8, 0, 0, 0);
    CHECK_LIST(r[1].mask, 0.0, 0, 0, 0, 0, 0);
    CHECK_LIST(r[1].logp, 0.0, 0, 0, 0, 0);
    CHECK_LIST(r[1].entropy, 0.0, 0, 0, 0, 0);
    rollouts_free(r), rollouts_free(NULL);
}

// A conversation by hand: the assistant's own are its words, its call and its end; the question, the marks of
// the turns and the calculator's output are not.
static void chapter_06_whose_words(void) {
    Tokens t = {0};
    render_conversation(&t, "q", "a<<1+1=2>>2");
    CHECK(t.length == 16);
    CHECK_LIST(t.ids, 0.0, BOS, USER_START, 'q', USER_END, ASSISTANT_START, 'a', PYTHON_START, '1', '+', '1',
               PYTHON_END, OUTPUT_START, '2', OUTPUT_END, '2', ASSISTANT_END);
    CHECK_LIST(t.mask, 0.0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1);
    tokens_free(&t);
}

static void test_chapter_06(void) {
    RUN_ALL(TEST(chapter_06_tool), TEST(chapter_06_script_with_tool),
            TEST(chapter_06_script_that_fills_its_row), TEST(chapter_06_whose_words),
            TEST(chapter_06_readable), TEST(chapter_06_rollouts_are_arrays));
}

// trace.c - one update under the microscope: the tables of lesson 10 and of ./rl trace are filled from the
// arrays that rl_step() left.

// Three scripted rollouts of one question, as if they had been sampled: 43 after a call of the tool, 43 from
// the head, 42 from the head. Rewards 1 1 0, mean 2/3, advantages 1/3 1/3 -2/3. Sampled tokens: 7 + 1 + 5 + 1
// + 7 + 1 = 22, forced <|output_start|> 4 3 <|output_end|> = 4; then 7 + 1 = 8, and 10 + 1 = 11. Together 41
// sampled.
static Group* traced_group(Model* m) {
    static const char* const texts[3] = {"He has [17+26]#### 43@", "#### 43@", "so #### 42@"};
    Rollout* r = play_all("17+26?", texts, 3);
    Group* g = groups_new(1, 3, r->T);
    rollouts_free(g->rollouts);
    g->rollouts = r;
    g->logp_old = r->logp;
    shift_mask(g->mask, r->mask, 3, r->T);
    g->grades = grade_rollouts(g->reward, r, 3, "43", find_reward("gsm8k"));
    score_rollouts(g->logp_old, m, r, 3);
    advantages_centered(g->total, g->reward, 3);
    broadcast_advantages(g->adv, g->total, g->mask, 3, r->T - 1);
    token_weights(g->weight, g->mask, 3, r->T - 1, NORM_TOKEN_MEAN, 0);
    g->loss = loss_policy_gradient(g->dlogp, g->logp_old, g->adv, g->weight, 3 * (r->T - 1));
    return g;
}

// the untrained small model, far from the uniform policy
static Model traced_model(uint64_t seed) {
    Model m = tiny_model(seed);
    for (size_t i = 0; i < m.weights.count; i++) m.weights.memory[i] *= 3.0f;
    return m;
}

// The widest table: the sums in its last line, and 80 columns.
static void trace_tables(void) {
    static const char* const names[] = {"A", "B", "B - A"};
    Model m = traced_model(1), second = traced_model(2);
    Group* g = traced_group(&m);
    int T1 = g->rollouts->T - 1, first = g->rollouts->prompt - 1;
    float *other = allocate(3 * (size_t)T1, sizeof(float)), sum, sum_other;
    double v[3] = {0};
    CHECK(count_masked(g->mask, 3 * T1) == 41 && g->grades.sampled == 41);
    CHECK(g->grades.correct == 2 && g->grades.tool == 1);
    CHECK(g->rollouts[0].length == 26 && count_masked(g->rollouts[0].mask, T1 + 1) == 22);
    score_rollouts(other, &second, g->rollouts, 3);
    CHECK(fabs(g->logp_old[first] - other[first]) > 1e-3);           // the second model is really asked
    sequence_logprobs(&sum, g->logp_old, g->mask, 1, T1);
    sequence_logprobs(&sum_other, other, g->mask, 1, T1);
    const char* text = PRINTED(print_tokens(&g->rollouts[0], g->logp_old, other, names, g->dlogp));
    const char* last = strstr(text, "sum over 22 sampled of 26");
    CHECK(longest_line(text) <= 80);
    ROW(text, "t id token who m A B B - A dlogp tool");
    SAYS(text, "\n  0  72 'H' ");                                   // "He has": H is byte 72
    SAYS(text, "forced  0       -       -       -");
    SAYS(text, "-8.130");                                           // dlogp = -1/3 / 41, in thousandths
    CHECK(last && sscanf(last + 25, "%lf %lf %lf", &v[0], &v[1], &v[2]) == 3);
    CHECK_NEAR(v[0], sum, 1e-4);
    CHECK_NEAR(v[1], sum_other, 1e-4);
    CHECK_NEAR(v[2], (double)sum_other - sum, 1e-4);
    text = PRINTED(print_rollouts(g, 3, 1, other, names, 2));
    CHECK(longest_line(text) <= 80);
    SAYS(text, ">  2");
    SAYS(text, "   0      1  0.3333     26      22 ");               // 4 of its 26 tokens are forced
    text = PRINTED(print_rollouts(g, 3, 0, NULL, names, 1));      // without an answer: no reward
    CHECK(!strstr(text, "reward") && !strstr(text, "adv") && longest_line(text) <= 80);
    free(other), groups_free(g, 1), model_free(&m), model_free(&second);
}

// Without --rollout the first rewarded rollout is shown.
static void trace_shows_the_first_rewarded(void) {
    static const struct { float reward[3]; const char* line; } cases[] = {
        {{1, 1, 0}, "\nRollout 0, token by token"}, {{0, 1, 1}, "\nRollout 1, token by token"},
        {{0, 0, 1}, "\nRollout 2, token by token"}};
    Model m = traced_model(1);
    Group* g = traced_group(&m);
    RlOptions o = rl_defaults();
    Metrics s = {0};
    o.num_samples = 3;
    o.question = "17+26?";
    o.answer = "43";
    o.rollout = -1;
    for (int i = 0; i < 3; i++) {
        memcpy(g->reward, cases[i].reward, sizeof cases[i].reward);
        SAYS(PRINTED(print_trace(g, &s, NULL, &o)), cases[i].line);
    }
    groups_free(g, 1), model_free(&m);
}

static void trace_columns_and_endings(void) {
    static const double x[] = {0, -0.00001, -9.99994, -9.99996, 12.5, -99.9996, -123.4, -999.996, -12345.6};
    static const char* const endings[][2] = {
        {"short", "short"}, {"0123456789abc", "..56789abc"}, {"a\n#### 43", "a #### 43"}, {"", ""}};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
        const char* const texts[] = {
            PRINTED(print_nats(x[i], 0)), PRINTED(print_nats(x[i], 1)), PRINTED(print_change(x[i], 1))};
        for (int kind = 0; kind < 3; kind++) CHECK(strlen(texts[kind]) == 8 && texts[kind][0] == ' ');
    }
    for (int i = 0; i < 4; i++) CHECK_TEXT(PRINTED(print_ending(endings[i][0], 10)), endings[i][1]);
}

// ./rl trace with every method: one update of rl_step() in at most 80 columns. Without an answer,
// log-probabilities alone.
static void trace_runs_every_method(void) {
    const char* tag = option("model-tag", "model");
    for (int i = 0; i < METHODS; i++) {
        const Ran* r = COMMAND(command_trace, "7+7?", tag, "--answer=14", algo_word(i), "--num-samples=4",
                               "--max-new-tokens=12", "--overlong=0", "--threads=1");
        CHECK(r->status == 0);
        SAYS(r->out, "One update: loss");
        SAYS(r->out, methods[i].name);
        CHECK(longest_line(r->out) <= 80);
    }
    const Ran* r = COMMAND(command_trace, "7+7?", tag, "--num-samples=4", "--max-new-tokens=9");
    CHECK(r->status == 0 && longest_line(r->out) <= 80);
    SAYS_NOT(r->out, "One update", "dlogp");
    REFUSED(COMMAND(command_trace, tag), "a question is missing");
    REFUSED(COMMAND(command_trace, "7+7?", tag, "--num-samples=3", "--rollout=3"),
            "there are 3 rollouts, 0 to 2");
}

static void test_trace(void) {
    make_models();
    RUN_ALL(TEST(trace_tables), TEST(trace_shows_the_first_rewarded), TEST(trace_columns_and_endings),
            TEST(trace_runs_every_method));
    remove_folder();
}

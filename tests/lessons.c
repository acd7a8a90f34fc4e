// lessons.c - numbers of the lessons that follow from the arithmetic beside them, and what chapter 2 says of
// its two baselines. Values are worked by hand unless said. The form of the lessons: golden.c.

static void lessons_refuse(void) {
    REFUSED(COMMAND(command_lesson, "3", "4"), "one lesson at a time");
    REFUSED(COMMAND(command_lesson, "3", "--more", "--more"), "one lesson at a time");
    REFUSED(COMMAND(command_lesson, "--more"), "there is no lesson");
    REFUSED(COMMAND(command_lesson, "13"), "there is no lesson");
    REFUSED(COMMAND(command_cartpole, "--lr", "-1"), "lr");
}

// "2 + 2 =" answered with one token and <end>: two steps, and the verdict on the second alone; the transition
// appends the token, and no more. pi by hand: row 3 is 1 0 0 3 0, its sum of exponentials e + e^3 + 3; row 4
// is 0 0 0 0 2, its sum 4 + e^2. Only "4" is paid, not "2", and not "+" or "=", which are no numbers at all.
static void mdp_pays_the_right_answer_only(void) {
    static const double logit[4] = {1, 0, 0, 3};
    for (int answer = 0; answer < 4; answer++) {
        const int ids[EXAMPLE_T] = {0, 1, 0, 2, answer, EXAMPLE_END};
        const char* word = example_tokens[answer];
        const char* text = PRINTED(print_example_as_mdp(ids));
        double first = exp(logit[answer]) / (exp(1) + exp(3) + 3), second = exp(2) / (4 + exp(2));
        ROW(text, "2 + 2 = %s %.4f 2 + 2 = %s 0 no", word, first, word);
        ROW(text, "2 + 2 = %s <end> %.4f 2 + 2 = %s <end> %d yes", word, second, word, answer == 3);
    }
}

// <end> at once: one step, an empty answer, no pay. No <end>: the longest length ends it, and "4 4" is not 4.
static void mdp_ends(void) {
    const int empty[EXAMPLE_T] = {0, 1, 0, 2, EXAMPLE_END, 3}, cut[EXAMPLE_T] = {0, 1, 0, 2, 3, 3};
    const char *none = PRINTED(print_example_as_mdp(empty)), *two = PRINTED(print_example_as_mdp(cut));
    ROW(none, "2 + 2 = <end> %.4f 2 + 2 = <end> 0 yes", 1.0 / (exp(1) + exp(3) + 3));
    SAYS_NOT(none, "no\n");
    ROW(two, "2 + 2 = 4 * 2 + 2 = 4 0 no");
    ROW(two, "2 + 2 = 4 4 * 2 + 2 = 4 4 0 yes");
}

// D1's example: 6 tokens of a call, 4 that the tool forces, 9 behind them. 15 sampled, each -ln 265.
static void lesson_6_masks_the_tool(void) {
    const Ran* ran = COMMAND(command_lesson, "6");
    ROW(ran->out, "t id token who m log pi tool");
    ROW(ran->out, "4 51 '3' sampled 1 -5.5797 reading");
    ROW(ran->out, "5 262 <|python_end|> sampled 1 -5.5797 called");
    ROW(ran->out, "6 263 <|output_start|> forced 0 - answers");
    ROW(ran->out, "8 54 '6' forced 0 - answers");
    ROW(ran->out, "10 10 '\\n' sampled 1 -5.5797 idle");
    ROW(ran->out, "sum over 15 sampled of 19 -83.696");            // 15 * ln 265 = 15 * 5.579730
    SAYS(ran->out, "-15 ln 265 = -83.6959 nats; all 19 tokens, the tool's too: -106.0149.");   // 19 * ln 265
}

// Experiment 1 on a model with random weights and a given answer: both ways print one sum, chapter 3's.
static void experiment_1_adds_up(void) {
    Model m = tiny_model(3);
    Tokens text = {0}, prompt = {0};
    float sum, logp[96], *logits;
    int shifted[96];
    render_prompt(&prompt, "2+2?");
    render_conversation(&text, "2+2?", "<<2+2=4>>4\n#### 4");
    logits = all_logits(&m, text.ids, text.length);
    token_logprobs(logp, logits, text.ids, 1, text.length, VOCAB_SIZE);
    shift_mask(shifted, text.mask, 1, text.length);
    sequence_logprobs(&sum, logp, shifted, 1, text.length - 1);
    const char* said = PRINTED(experiment_1(&m, &text, prompt.length));
    CHECK(sum < -30.0f);
    CHECK_NEAR(last_number(line_of(said, "one pass over")), sum, 1e-4);
    CHECK_NEAR(last_number(line_of(said, "a pass for each")), sum, 1e-4);
    CHECK(line_of(said, "forced tokens counted as chosen") != NULL);
    free(logits), tokens_free(&text), tokens_free(&prompt), model_free(&m);
}

// 3000 steps of REINFORCE with the group mean: w (5) holds the pole for a while.
static void half_train(double* w, uint64_t seed) {
    CartPoleGroup* group = allocate(1, sizeof *group);
    double v[VALUE_SIZE] = {0}, gradient[POLICY_SIZE];
    Rng rng = {seed};
    memset(w, 0, POLICY_SIZE * sizeof *w);
    for (int steps = 0; steps < 3000; steps += group->first[CARTPOLE_GROUP]) {
        collect_group(group, w, &rng);
        fill_advantages(group, v, BASELINE_GROUP_MEAN);
        cartpole_gradient(gradient, group, w);
        for (int j = 0; j < POLICY_SIZE; j++) w[j] += cartpole_learning_rate * gradient[j];
    }
    free(group);
}

// How noisy is one group's gradient? Freeze the policy w, let v settle on it, then look at many groups. Per
// rule: mean (5) of the gradient, and noise, the mean squared distance of one group's gradient from it.
static void measure_noise(double (*mean)[POLICY_SIZE], double* noise, const double* w, uint64_t seed) {
    enum { GROUPS = 400 };
    CartPoleGroup* group = allocate(1, sizeof *group);
    double v[VALUE_SIZE] = {0}, square[BASELINES] = {0}, gradient[POLICY_SIZE];
    Rng rng = {seed};
    memset(mean, 0, BASELINES * sizeof *mean);
    for (int i = -50; i < GROUPS; i++) {                         // the first 50 groups only teach v
        collect_group(group, w, &rng);
        for (int b = 0; b < BASELINES && i >= 0; b++) {
            fill_advantages(group, v, b);
            cartpole_gradient(gradient, group, w);
            for (int j = 0; j < POLICY_SIZE; j++) mean[b][j] += gradient[j] / GROUPS;
            square[b] += inner_product(gradient, gradient, POLICY_SIZE) / GROUPS;
        }
        fit_value(v, group);
    }
    for (int b = 0; b < BASELINES; b++) noise[b] = square[b] - inner_product(mean[b], mean[b], POLICY_SIZE);
    free(group);
}

// Chapter 2: the group mean climbs the same hill as a value function (cosine of the mean gradients, measured
// 0.996 to 0.999), and what differs is the noise, as a share of the signal.
static void baselines_differ_in_noise(void) {
    for (uint64_t seed = 1; seed <= 3; seed++) {
        double mean[BASELINES][POLICY_SIZE], noise[BASELINES], signal[BASELINES], w[POLICY_SIZE];
        half_train(w, seed);
        measure_noise(mean, noise, w, seed + 1);
        for (int b = 0; b < BASELINES; b++) signal[b] = inner_product(mean[b], mean[b], POLICY_SIZE);
        double both = inner_product(mean[0], mean[1], POLICY_SIZE);
        CHECK(both / sqrt(signal[0] * signal[1]) > 0.98);
        CHECK(noise[BASELINE_GROUP_MEAN] / signal[BASELINE_GROUP_MEAN] >
              1.5 * noise[BASELINE_VALUE] / signal[BASELINE_VALUE]);
    }
}

static void test_lessons(void) {
    RUN_ALL(TEST(lessons_refuse), TEST(mdp_pays_the_right_answer_only), TEST(mdp_ends),
            TEST(lesson_6_masks_the_tool), TEST(experiment_1_adds_up), TEST(baselines_differ_in_noise));
}

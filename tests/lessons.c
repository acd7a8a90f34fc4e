// lessons.c - numbers of the lessons that follow from the arithmetic beside them, worked by hand. The form of
// the lessons: golden.c.

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
// <end> at once: one step, an empty answer, no pay. No <end>: the longest length ends it, and "4 4" is not 4.
static void mdp_pays_the_right_answer_only(void) {
    static const double logit[4] = {1, 0, 0, 3};
    const double sum = exp(1) + exp(3) + 3;
    for (int answer = 0; answer < 4; answer++) {
        const char *word = example_tokens[answer],
                   *text = PRINTED(print_example_as_mdp((int[]){0, 1, 0, 2, answer, EXAMPLE_END}));
        ROW(text, "2 + 2 = %s %.4f 2 + 2 = %s 0 no", word, exp(logit[answer]) / sum, word);
        ROW(text, "2 + 2 = %s <end> %.4f 2 + 2 = %s <end> %d yes", word, exp(2) / (4 + exp(2)), word,
            answer == 3);
    }
    const char* none = PRINTED(print_example_as_mdp((int[]){0, 1, 0, 2, EXAMPLE_END, 3}));
    ROW(none, "2 + 2 = <end> %.4f 2 + 2 = <end> 0 yes", 1.0 / sum);
    SAYS_NOT(none, "no\n");
    const char* two = PRINTED(print_example_as_mdp((int[]){0, 1, 0, 2, 3, 3}));
    ROW(two, "2 + 2 = 4 * 2 + 2 = 4 0 no");
    ROW(two, "2 + 2 = 4 4 * 2 + 2 = 4 4 0 yes");
}

// Experiment 1 on a model with random weights and a given answer: both ways print one sum, chapter 3's.
static void experiment_1_adds_up(void) {
    Model m = tiny_model(3);
    Tokens text = {0}, prompt = {0};
    float sum, logp[96];
    int shifted[96];
    render_prompt(&prompt, "2+2?");
    render_conversation(&text, "2+2?", "<<2+2=4>>4\n#### 4");
    float* logits = all_logits(&m, text.ids, text.length);
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

static void test_lessons(void) {
    RUN_ALL(TEST(lessons_refuse), TEST(mdp_pays_the_right_answer_only), TEST(experiment_1_adds_up));
}

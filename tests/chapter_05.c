// chapter_05.c - rewards. What the verifier must take for equal, and what not, is in the tests of the
// appendix.

static const char* const c05_answers[5] = {"\\boxed{83}", "The correct answer is \\boxed{83}",
                                           "The final answer is 83", "We get \\boxed{38}", "\\boxed{}"};

static void chapter_05_the_four_rollouts(void) {
    // D2: 83 in a box, 83 in a box, 83 without a box, 38: [1,1,0,0]. An empty box is worth nothing.
    const float by_hand[5] = {1, 1, 0, 0, 0};
    for (int i = 0; i < 5; i++) CHECK_NEAR(reward_boxed(c05_answers[i], "83"), by_hand[i], 0.0);
}

static void chapter_05_rewards_that_can_be_hacked(void) {
    // Format alone pays for any box, the empty one included, and not for the right r3.
    const float format[5] = {1, 1, 0, 1, 1};
    for (int i = 0; i < 5; i++) CHECK_NEAR(reward_format(c05_answers[i], "83"), format[i], 0.0);
    // Partial credit: 1 for right and boxed, 0.5 for right without a box, 0.1 for a box with something wrong
    // in it.
    const float partial[5] = {1, 1, 0.5f, 0.1f, 0.1f};
    for (int i = 0; i < 5; i++) CHECK_NEAR(reward_partial(c05_answers[i], "83"), partial[i], 0.0);
}

static void chapter_05_gsm8k(void) {
    CHECK_NEAR(reward_gsm8k("#### 42", "42"), 1.0, 0.0);
    CHECK_NEAR(reward_gsm8k("41, no, #### 41 and #### 42 apples", "42"), 1.0, 0.0);   // the last one counts
    CHECK_NEAR(reward_gsm8k("The answer is 42", "42"), 0.0, 0.0);
    CHECK_NEAR(reward_gsm8k("#### 43", "42"), 0.0, 0.0);
    char end[1] = {'x'};                                        // room for the final 0 alone
    CHECK(!extract_hash_answer("#### 42", end, 1) && !end[0]);
}

static void chapter_05_names_of_rewards(void) {
    // What pays may be hacked; what tells how many answers are right is the verifier in every case.
    CHECK(find_reward("gsm8k")->reward == reward_gsm8k && find_reward("gsm8k")->verifier == reward_gsm8k);
    CHECK(find_reward("boxed")->reward == reward_boxed && find_reward("boxed")->verifier == reward_boxed);
    CHECK(find_reward("partial")->reward == reward_partial &&
          find_reward("partial")->verifier == reward_boxed);
    CHECK(find_reward("format")->reward == reward_format && find_reward("format")->verifier == reward_boxed);
}

// what a pattern without counting gets wrong: braces within the box, and the comma of a thousand
static void chapter_05_braces_and_commas(void) {
    CHECK(reward_boxed("\\boxed{\\frac{1}{2}}", "1/2") == 1.0f);
    CHECK(reward_gsm8k("#### 1,000", "1000") == 1.0f);
    CHECK(reward_gsm8k("#### 1,000", "1") == 0.0f);
}

static void test_chapter_05(void) {
    RUN_ALL(TEST(chapter_05_braces_and_commas), TEST(chapter_05_the_four_rollouts),
            TEST(chapter_05_rewards_that_can_be_hacked), TEST(chapter_05_gsm8k),
            TEST(chapter_05_names_of_rewards));
}

// chapter_05.c - rewards. What the verifier must take for equal, and what not, is in the tests of the
// appendix.

// An empty box is worth nothing (D2's four rollouts: the worksheet). Format alone pays for any box, also the
// empty one, and not for the right r3. Partial credit: 1 for right and boxed, 0.5 for right without a
// box, 0.1 for a box with something wrong in it. GSM8K: numbers, whatever their spelling, and the last mark.
static void chapter_05_rewards(void) {
    static const struct { RewardFunction reward; const char *answer, *truth; double worth; } cases[] = {
        {reward_boxed, "\\boxed{}", "83", 0}, {reward_boxed, "", "83", 0}, {reward_boxed, "", "", 0},
        {reward_boxed, "\\boxed{83}", "", 0}, {reward_boxed, "\\boxed{\\frac{1}{2}}", "1/2", 1},
        {reward_boxed, "\\boxed{3.5}", "#### 3 1/2", 1},
        {reward_format, "\\boxed{83}", "83", 1}, {reward_format, "The final answer is 83", "83", 0},
        {reward_format, "We get \\boxed{38}", "83", 1}, {reward_format, "\\boxed{}", "83", 1},
        {reward_partial, "\\boxed{83}", "83", 1}, {reward_partial, "The final answer is 83", "83", 0.5},
        {reward_partial, "We get \\boxed{38}", "83", 0.1f}, {reward_partial, "\\boxed{}", "83", 0.1f},
        {reward_gsm8k, "so #### 42", "6*7=<<6*7=42>>42\n#### 42", 1}, {reward_gsm8k, "#### 43", "42", 0},
        {reward_gsm8k, "#### -42", "#### 42", 0}, {reward_gsm8k, "The answer is 42", "42", 0},
        {reward_gsm8k, "", "", 0}, {reward_gsm8k, "41, no, #### 41 and #### 42 apples", "42", 1},
        {reward_gsm8k, "#### 42 #### 41", "#### 42", 0}, {reward_gsm8k, "#### 1,000", "1000", 1},
        {reward_gsm8k, "#### 1,000", "1", 0}, {reward_gsm8k, "#### 1000", "1,000", 1},
        {reward_gsm8k, "#### 3/4", "0.75", 1}, {reward_gsm8k, "#### 3.5", "#### 3 1/2", 1},
        {reward_gsm8k, "#### 3", "#### 3 1/2", 0}, {reward_gsm8k, "#### 5000", "#### 5 thousand", 1},
        {reward_gsm8k, "#### 5", "#### 5 thousand", 0}, {reward_gsm8k, "#### 42 thirdly", "42", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_NEAR(cases[i].reward(cases[i].answer, cases[i].truth), cases[i].worth, 0.0);
}

// What does not fit leaves "" behind, and nothing beyond the buffer is touched.
static void chapter_05_buffers(void) {
    char abc[4] = "abc", four[5] = "abcd", group[] = "{a}", end[1] = {'x'};
    const char *xyz = "xyz", *number = "9991,000";              // the number may begin at its last 1
    CHECK(!copy_trimmed(abc, 3, xyz, xyz + 3) && !abc[0]);
    CHECK(!extract_hash_answer("####", abc + 2, 0) && !calculate("1", abc + 2, 0) && abc[2] == 'c');
    CHECK(!extract_hash_answer("#### 1234", four, 3) && four[3] == 'd');
    CHECK(!extract_hash_answer("#### 42", end, 1) && !end[0]);  // room for the final 0 alone
    CHECK(!find_closing_brace(group, group + 2) && find_closing_brace(group, group + 3) == group + 2);
    CHECK(is_thousands_comma(number + 3, number + 4) && !is_thousands_comma(number, number + 4));
}

static void chapter_05_names_of_rewards(void) {
    // What pays may be hacked; what tells how many answers are right is the verifier in every case.
    static const char* const names[] = {"gsm8k", "boxed", "partial", "format"};
    static const RewardFunction rewards[] = {reward_gsm8k, reward_boxed, reward_partial, reward_format};
    for (int i = 0; i < 4; i++) {
        CHECK(find_reward(names[i])->reward == rewards[i]);
        CHECK(find_reward(names[i])->verifier == rewards[i ? 1 : 0]);
    }
}

static void test_chapter_05(void) {
    RUN_ALL(TEST(chapter_05_rewards), TEST(chapter_05_buffers), TEST(chapter_05_names_of_rewards));
}

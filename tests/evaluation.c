// Chapter 11: intervals of pass@k, the majority vote, two models on the same questions; the plot.

// n answers to each question, of which right[i] are right; these say "1", the others "0".
#define COUNTED(n, ...) counted(n, (const int[]){__VA_ARGS__}, sizeof(const int[]){__VA_ARGS__} / sizeof(int))
static Evaluation counted(int n, const int* right, size_t questions) {
    Evaluation e = evaluation_new(n);
    for (size_t i = 0; i < questions; i++) {
        const char* answers[8];
        int correct[8];
        for (int k = 0; k < n; k++) answers[k] = (correct[k] = k < right[i]) ? "1" : "0";
        evaluation_add(&e, answers, correct, n);
    }
    evaluation_finish(&e);
    return e;
}

// low = middle - half, high = middle + half
#define CHECK_INTERVAL(low, high, middle, half, tolerance)                                 \
    do {                                                                                   \
        CHECK_NEAR(low, (middle) - (half), tolerance);                                     \
        CHECK_NEAR(high, (middle) + (half), tolerance);                                    \
    } while (0)

// ---- intervals

static void every_pass_at_k_has_an_interval(void) {
    // Four questions, two answers each, of which 2, 1, 0, 1 are right.
    //   pass@1: 1, 1/2, 0, 1/2; mean 1/2, variance (1/4 + 0 + 1/4 + 0) / 3 = 1/6.
    //           As many flips as have that error: p(1-p) / (variance/n) = (1/4) / (1/24) = 6.
    //           Wilson at p = 1/2: half = z / (1 + z^2/6) * sqrt(1/24 + z^2/144)
    //                                   = 1.96 / 1.640267 * sqrt(0.0416667 + 0.0266778) = 0.312387
    //   pass@2: 1, 1, 0, 1; mean 3/4, variance (3/16 + 9/16) / 3 = 1/4, flips = (3/16) / (1/16) = 3.
    //           middle = (3/4 + z^2/6) / (1 + z^2/3) = 1.3902667 / 2.2805333 = 0.6096235
    //           half   = 1.96 / 2.2805333 * sqrt(1/16 + z^2/36) = 0.8594481 * sqrt(0.1692111) = 0.3535363
    Evaluation e = COUNTED(2, 2, 1, 0, 1);
    CHECK_NEAR(e.pass[0], 0.5, 1e-15);
    CHECK_INTERVAL(e.low[0], e.high[0], 0.5, 0.312387, 1e-6);
    CHECK_NEAR(e.pass[1], 0.75, 1e-15);
    CHECK_INTERVAL(e.low[1], e.high[1], 0.6096235, 0.3535363, 1e-6);
    // The vote of one is pass@1; that of two, where a tie goes to the first answer, here a right one, pass@2.
    for (int i = 0; i < 2; i++) {
        CHECK_NEAR(e.vote[i], e.pass[i], 1e-15);
        CHECK_NEAR(e.vote_low[i], e.low[i], 1e-12);
        CHECK_NEAR(e.vote_high[i], e.high[i], 1e-12);
        CHECK(e.no_vote[i] == 0.0);
    }
    evaluation_free(&e);
}

static void all_or_nothing_is_no_certainty(void) {
    // 16 questions that always and never pass: the ends are Wilson's n / (n + z^2) and z^2 / (n + z^2), for
    // every k. 16 / 19.8416 = 0.806387
    for (int right = 0; right <= 8; right += 8) {
        const int r = right;
        Evaluation e = COUNTED(8, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r);
        for (int k = 0; k < 8; k++) {
            CHECK_NEAR(right ? e.low[k] : 1.0 - e.high[k], 0.806387, 1e-6);
            CHECK_NEAR(right ? 1.0 - e.high[k] : e.low[k], 0.0, 1e-12);
        }
        evaluation_free(&e);
    }
}

static void the_last_k_is_all(void) {
    // 1, 2, 4, 8, 10; with 16 the last doubling is the end itself; 1, 4, 16, 64, 256; 1 alone; 1, 7
    static const struct { int n, factor, steps, last_but_one; } cases[] = {
        {10, 2, 5, 8}, {16, 2, 5, 8}, {256, 4, 5, 64}, {1, 2, 1, 0}, {7, 7, 2, 1}, {INT_MAX, 2, 32, 1 << 30}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int steps = 0, before = 0, last = 0;
        for (int k = 1; k; k = next_k(k, cases[i].factor, cases[i].n)) before = last, last = k, steps++;
        CHECK(steps == cases[i].steps && last == cases[i].n && before == cases[i].last_but_one);
    }
}

// ---- the vote

static void votes_of_one_question(void) {
    // The truth is 7. Eight answers:      7    8    8   7.0   ""    9   ""   ""
    //   1 vote   each by itself          yes   -    -   yes    .    -    .    .      2/8, none 3/8
    //   2 votes  7 8 | 8 7.0 | "" 9 | "" ""    ties go to the first: 7 8 9 and nobody   1/4, none 1/4
    //   3 votes  7 8 8 | 7.0 "" 9 | two left over         8, and 7.0 before 9           1/2, none 0
    //   4 votes  7 8 8 7.0 | "" 9 "" ""                   2 to 2: 7 came first          1/2, none 0
    //   8 votes  2 to 2 to 1                              7                             1/1, none 0
    static const char* const answers[8] = {"7", "8", "8", "7.0", "", "9", "", ""};
    static const int correct[8] = {1, 0, 0, 1, 0, 0, 0, 0};
    static const struct { int votes; double right, none; } expected[] = {
        {1, 2.0 / 8, 3.0 / 8}, {2, 1.0 / 4, 1.0 / 4}, {3, 0.5, 0}, {4, 0.5, 0}, {8, 1, 0}, {9, 0, 0},
        {0, 0, 0}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        double none = -1.0;
        CHECK(vote_accuracy(&none, answers, correct, 8, expected[i].votes) == expected[i].right);
        CHECK(none == expected[i].none);
    }
}

static void a_question_is_added(void) {
    // One question, truth 7, four answers: 7 in the format, nothing, 7 in a box, 8 in the format. For gsm8k
    // what stands behind #### votes.
    //   k = 1: right 1/4, none 2/4     k = 2: 7 and 8 win: 1/2     k = 4: 7 came before 8
    //   pass@1 = 1/4, pass@2 = 1 - C(3,2)/C(4,2) = 1/2, pass@4 = 1
    // Tokens with their end: a call of 5, the tool's 3, 6 and 1 = 15; 4; 10; 7; mean 9. All but the tool's
    // are sampled: 33, at 3 nats each.
    static const char* const texts[4] = {"[3+4]#### 7@", "Hm.@", "\\boxed{7}@", "#### 8@"};
    static const double vote[3] = {0.25, 0.5, 1.0}, none[3] = {0.5, 0, 0}, pass[3] = {0.25, 0.5, 1.0};
    Evaluation e = evaluation_new(4);
    Rollout* r = play_all("3+4?", texts, 4);
    for (int k = 0; k < 4; k++)
        for (int t = 0; t < r->T - 1; t++) r[k].entropy[t] = r[k].mask[t + 1] ? 3.0f : 0.0f;
    evaluation_add_rollouts(&e, r, 4, "7", find_reward("gsm8k"));
    evaluation_finish(&e);
    CHECK(e.questions == 1 && e.right[0] == 1);
    for (int i = 0; i < 3; i++) {
        CHECK(e.vote[(1 << i) - 1] == vote[i] && e.no_vote[(1 << i) - 1] == none[i]);
        CHECK_NEAR(e.pass[(1 << i) - 1], pass[i], 1e-15);
    }
    CHECK(e.format_rate == 0.5 && e.tool_rate == 0.25 && e.length == 9.0 && e.sampled == 33);
    CHECK(e.entropy == 3.0);
    evaluation_free(&e), rollouts_free(r);
    // one question, without a sampled token: no 0 / 0
    e = evaluation_new(1);
    e.questions = 1;
    evaluation_finish(&e);
    CHECK(e.entropy == 0.0 && e.low[0] == 0.0 && e.high[0] > 0.0 && e.high[0] <= 1.0);
    evaluation_free(&e);
}

// ---- before and after

static void difference_on_the_same_questions(void) {
    // Four questions, one answer each: before 1 0 0 0, after 1 1 0 0. Rates 1/4 and 1/2, each with 3 flips:
    //   Wilson, z = 1.96, 1 + z^2/3 = 2.2805333, 1.96 / 2.2805333 = 0.8594481:
    //   1/4: middle (1/4 + z^2/6) / 2.2805333 = 0.3903765, half 0.8594481 sqrt(1/16 + z^2/36) = 0.3535363,
    //        from 0.0368401 to 0.7439128
    //   1/2: middle 1/2, half 0.8594481 sqrt(1/12 + z^2/36) = 0.3746685, from 0.1253315 to 0.8746685
    // Correlation: deviations 3/4 -1/4 -1/4 -1/4 and 1/2 1/2 -1/2 -1/2: xy = 1/2, xx = 3/4, yy = 1: 0.5773503
    //   low:  a = 1/2 - 0.1253315 = 0.3746685, b = 0.7439128 - 1/4 = 0.4939128
    //         1/4 - sqrt(0.1403765 - 2 x 0.5773503 x 0.1850536 + 0.2439499) = 1/4 - 0.4130919
    //   high: c = 0.3746685, d = 1/4 - 0.0368401 = 0.2131599
    //         1/4 + sqrt(0.1403765 - 2 x 0.5773503 x 0.0798643 + 0.0454371) = 1/4 + 0.3059319
    double low, high;
    Evaluation before = COUNTED(1, 1, 0, 0, 0), after = COUNTED(1, 1, 1, 0, 0), best = COUNTED(1, 1, 1, 1, 1);
    CHECK_NEAR(pass_difference(&low, &high, &before, &after, 1), 0.25, 1e-15);
    CHECK_NEAR(low, 0.25 - 0.4130919, 2e-6);
    CHECK_NEAR(high, 0.25 + 0.3059319, 2e-6);
    // The other way round it is the mirror image.
    CHECK_NEAR(pass_difference(&low, &high, &after, &before, 1), -0.25, 1e-15);
    CHECK_NEAR(low, -0.25 - 0.3059319, 2e-6);
    CHECK_NEAR(high, -0.25 + 0.4130919, 2e-6);
    // A model against itself: r = 1, and of the errors |a - b| = 0.4939128 - 0.2131599 is left. If it solves
    // everything there is no correlation, and 0 is still not certain: b = 0, a = 1 - 4 / (4 + z^2) = 0.4899.
    CHECK(pass_difference(&low, &high, &before, &before, 1) == 0.0);
    CHECK_INTERVAL(low, high, 0.0, 0.2807529, 2e-6);
    CHECK(pass_difference(&low, &high, &best, &best, 1) == 0.0);
    CHECK_INTERVAL(low, high, 0.0, 0.4899, 1e-6);
    CHECK(pass_difference(&low, &high, &before, &best, 1) == 0.75);   // nor where one of two solves all
    CHECK_NEAR(low, 0.75 - hypot(0.4899, before.high[0] - 0.25), 1e-6);
    // Two rates of 1/2 with 1 flip: against itself |a - b| = 0 is left, rounded by one unit of 0.4.
    Evaluation half = COUNTED(2, 2, 0);
    CHECK(pass_difference(&low, &high, &half, &half, 2) == 0.0 && high >= low && high - low <= 2e-16);
    evaluation_free(&before), evaluation_free(&after), evaluation_free(&best), evaluation_free(&half);
}

static void surer_than_coins_is_nobody(void) {
    // Three questions with 2, 1, 2 of 4 answers right. pass@1, 5/12, keeps the variance of the shares,
    // 1/48: flips = 35/144 / (1/144) = 35, 1 + z^2/35 = 1.1097600, middle (0.4166667 + 0.0548800) / 1.1097600
    // = 0.4249087, half 1.96 / 1.1097600 sqrt(0.2430556 / 35 + z^2/4900) = 1.7661477 sqrt(0.0077284)
    Evaluation e = COUNTED(4, 2, 1, 2);
    CHECK_INTERVAL(e.low[0], e.high[0], 0.4249087, 0.1552648, 1e-6);
    // pass@2 is 5/6, 1/2, 5/6: mean 13/18, variance 1/27, less than 65/648 of two coin flips each. 6 flips:
    //   1 + z^2/6 = 1.6402667; middle (0.7222222 + 0.3201333) / 1.6402667 = 0.6354793
    //   half 1.96 / 1.6402667 sqrt(0.2006173 / 6 + z^2/144) = 1.1949276 sqrt(0.0601140) = 0.2929742
    CHECK_INTERVAL(e.low[1], e.high[1], 0.6354793, 0.2929742, 1e-6);
    evaluation_free(&e);
}

static void who_solved_what(void) {
    // before solves every 4th, after every 2nd of 8: 2 both, 2 only after, 4 neither
    int solved[4];
    Evaluation a = COUNTED(8, 2, 0, 0, 0, 2, 0, 0, 0), b = COUNTED(8, 8, 0, 8, 0, 8, 0, 8, 0);
    count_solved(solved, &a, &b);
    CHECK(solved[0] == 4 && solved[1] == 0 && solved[2] == 2 && solved[3] == 2);
    count_solved(solved, &b, &a);
    CHECK(solved[0] == 4 && solved[1] == 2 && solved[2] == 0 && solved[3] == 2);
    evaluation_free(&a), evaluation_free(&b);
}

static void test_evaluation(void) {
    RUN_ALL(TEST(every_pass_at_k_has_an_interval), TEST(all_or_nothing_is_no_certainty),
            TEST(the_last_k_is_all), TEST(votes_of_one_question), TEST(a_question_is_added),
            TEST(surer_than_coins_is_nobody), TEST(difference_on_the_same_questions), TEST(who_solved_what));
}

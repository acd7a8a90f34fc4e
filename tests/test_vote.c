// Chapter 11 once more: intervals of pass@k, the majority vote, two models on the same questions, the plot.
#include "chapters.h"

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
    static const int right[4] = {2, 1, 0, 1};
    Evaluation e = evaluation_new(2);
    for (int i = 0; i < 4; i++) evaluation_add(&e, 2, right[i]);
    evaluation_finish(&e);
    CHECK_NEAR(e.pass[0], 0.5, 1e-15);
    CHECK_NEAR(e.low[0], 0.5 - 0.312387, 1e-6);
    CHECK_NEAR(e.high[0], 0.5 + 0.312387, 1e-6);
    CHECK_NEAR(e.pass[1], 0.75, 1e-15);
    CHECK_NEAR(e.low[1], 0.6096235 - 0.3535363, 1e-6);
    CHECK_NEAR(e.high[1], 0.6096235 + 0.3535363, 1e-6);
    evaluation_free(&e);
}

static void all_or_nothing_is_no_certainty(void) {
    // 16 questions that always and never pass: the ends are Wilson's n / (n + z^2) and z^2 / (n + z^2), for
    // every k. 16 / 19.8416 = 0.806387
    for (int right = 0; right <= 8; right += 8) {
        Evaluation e = evaluation_new(8);
        for (int i = 0; i < 16; i++) evaluation_add(&e, 8, right);
        evaluation_finish(&e);
        for (int k = 0; k < 8; k++) {
            CHECK_NEAR(right ? e.low[k] : 1.0 - e.high[k], 0.806387, 1e-6);
            CHECK_NEAR(right ? 1.0 - e.high[k] : e.low[k], 0.0, 1e-12);
        }
        evaluation_free(&e);
    }
}

static void ladder_ends_with_the_whole(void) {
    // 1, 2, 4, 8, 10; with 16 the last doubling is the end itself; 1, 4, 16, 64, 256; 1 alone; 1, 7
    static const struct { int n, factor, steps, last_but_one; } ladders[] = {
        {10, 2, 5, 8}, {16, 2, 5, 8}, {256, 4, 5, 64}, {1, 2, 1, 0}, {7, 7, 2, 1}, {INT_MAX, 2, 32, 1 << 30}};
    for (size_t i = 0; i < sizeof ladders / sizeof *ladders; i++) {
        int steps = 0, before = 0, last = 0;
        for (int k = 1; k; k = next_k(k, ladders[i].factor, ladders[i].n)) before = last, last = k, steps++;
        CHECK(steps == ladders[i].steps && last == ladders[i].n && before == ladders[i].last_but_one);
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
    static const struct { int votes; double right, none; } expected[] = {
        {1, 2.0 / 8, 3.0 / 8}, {2, 1.0 / 4, 1.0 / 4}, {3, 0.5, 0}, {4, 0.5, 0}, {8, 1, 0}, {9, 0, 0},
        {0, 0, 0}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        double none = -1.0;
        CHECK(vote_accuracy(&none, answers, 8, expected[i].votes, "7") == expected[i].right);
        CHECK(none == expected[i].none);
    }
}

static Rollout* written(const char* const* texts, int K) {       // rollouts that say these texts
    Rollout* r = allocate((size_t)K, sizeof(Rollout));
    for (int k = 0; k < K; k++) {
        Tokens t = {0};
        tokens_add_text(&t, texts[k], strlen(texts[k]), 1);
        r[k] = (Rollout){.length = t.length, .ids = allocate((size_t)t.length, sizeof(int)),
                         .mask = allocate((size_t)t.length, sizeof(int)),
                         .logp = allocate((size_t)t.length, sizeof(float)),
                         .logp_sampler = allocate((size_t)t.length, sizeof(float))};
        memcpy(r[k].ids, t.ids, (size_t)t.length * sizeof(int));
        tokens_free(&t);
    }
    return r;
}

static void a_rollout_votes_with_its_format(void) {
    // For the reward gsm8k what stands behind #### votes. A box and a last number vote leniently only; words
    // without a number never do.
    static const char* const texts[5] = {"#### 7, not 5", "\\boxed{8}", "It is 3 and 9.", "No.", "#### x 4"};
    static const char* const strict_votes[5] = {"7", "", "", "", ""};
    static const char* const lenient_votes[5] = {"7", "8", "9", "", "4"};
    char *strict[5], *lenient[5];
    Rollout* r = written(texts, 5);
    read_votes(strict, lenient, r, 5, find_reward("gsm8k"));
    for (int k = 0; k < 5; k++) {
        CHECK_TEXT(strict[k], strict_votes[k]);
        CHECK_TEXT(lenient[k], lenient_votes[k]);
        free(strict[k]), free(lenient[k]);
    }
    rollouts_free(r, 5);
}

static void the_ladder_adds_up(void) {
    // One question, truth 7, four answers: 7 in the format, nothing, 7 in a box, 8 in the format.
    //   1 vote:   strict 1/4, none 2/4; lenient 2/4
    //   2 votes:  strict 7 | 8: 1/2;    lenient: "" loses to 7, and 7 came before 8: 2/2
    //   4 votes:  strict 7 before 8;    lenient 7
    static const char* const texts[4] = {"#### 7", "Hm.", "\\boxed{7}", "#### 8"};
    static const double right[3] = {0.25, 0.5, 1.0}, none[3] = {0.5, 0, 0}, lenient[3] = {0.5, 1.0, 1.0};
    Ladder l = {.rungs = 3, .rung = {{.votes = 1}, {.votes = 2}, {.votes = 4}}};
    Rollout* r = written(texts, 4);
    vote_on_question(&l, r, 4, "7", find_reward("gsm8k"));
    for (int i = 0; i < 3; i++) {
        CHECK(l.rung[i].right == right[i] && l.rung[i].none == none[i] && l.rung[i].lenient == lenient[i]);
        CHECK(l.rung[i].squares == right[i] * right[i]);
    }
    rollouts_free(r, 4);
}

static void cost_of_votes(void) {
    // A prompt of 80 tokens and answers of 40: one vote is 120 tokens, 4 are 240, 16 are 720. Of 3.6 s for
    // 100 questions with 16 answers, 36 ms each, one vote has 1/6: 6 ms, and four have 1/3: 12 ms.
    Ladder l = {.pass = {.questions = 100, .samples = 16, .length = 40.0}, .prompt = 80.0, .seconds = 3.6};
    CHECK_NEAR(model_tokens(&l, 16) / model_tokens(&l, 1), 6.0, 1e-12);
    CHECK_NEAR(rung_seconds(&l, &(Rung){.votes = 1}), 0.006, 1e-12);
    CHECK_NEAR(rung_seconds(&l, &(Rung){.votes = 4}), 0.012, 1e-12);
    CHECK_NEAR(rung_seconds(&l, &(Rung){.votes = 16}), 0.036, 1e-12);
}

// ---- before and after

// n answers to each question, of which right[i] are right.
static Evaluation counted(const int* right, int questions, int n) {
    Evaluation e = evaluation_new(n);
    for (int i = 0; i < questions; i++) evaluation_add(&e, n, right[i]);
    evaluation_finish(&e);
    return e;
}

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
    static const int one[4] = {1, 0, 0, 0}, two[4] = {1, 1, 0, 0};
    double low, high;
    Evaluation before = counted(one, 4, 1), after = counted(two, 4, 1);
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
    CHECK_NEAR(low, -0.2807529, 2e-6);
    CHECK_NEAR(high, 0.2807529, 2e-6);
    static const int all[4] = {1, 1, 1, 1};
    Evaluation best = counted(all, 4, 1);
    CHECK(pass_difference(&low, &high, &best, &best, 1) == 0.0);
    CHECK_NEAR(low, -0.4899, 1e-6);
    CHECK_NEAR(high, 0.4899, 1e-6);
    evaluation_free(&before), evaluation_free(&after), evaluation_free(&best);
}

static void surer_than_coins_is_nobody(void) {
    // Three questions with 2, 1, 2 of 4 answers right. pass@1, 5/12, keeps the variance of the shares,
    // 1/48: flips = 35/144 / (1/144) = 35, 1 + z^2/35 = 1.1097600, middle (0.4166667 + 0.0548800) / 1.1097600
    // = 0.4249087, half 1.96 / 1.1097600 sqrt(0.2430556 / 35 + z^2/4900) = 1.7661477 sqrt(0.0077284)
    static const int right[3] = {2, 1, 2};
    Evaluation e = counted(right, 3, 4);
    CHECK_NEAR(e.low[0], 0.4249087 - 0.1552648, 1e-6);
    CHECK_NEAR(e.high[0], 0.4249087 + 0.1552648, 1e-6);
    // pass@2 is 5/6, 1/2, 5/6: mean 13/18, variance 1/27, less than 65/648 of two coin flips each. 6 flips:
    //   1 + z^2/6 = 1.6402667; middle (0.7222222 + 0.3201333) / 1.6402667 = 0.6354793
    //   half 1.96 / 1.6402667 sqrt(0.2006173 / 6 + z^2/144) = 1.1949276 sqrt(0.0601140) = 0.2929742
    CHECK_NEAR(e.low[1], 0.6354793 - 0.2929742, 1e-6);
    CHECK_NEAR(e.high[1], 0.6354793 + 0.2929742, 1e-6);
    evaluation_free(&e);
}

static void curves_that_cross(void) {
    static const double a[4] = {0.2, 0.4, 0.7, 0.9}, b[4] = {0.5, 0.6, 0.65, 0.7};
    static const double same_start[3] = {0.5, 0.6, 0.7}, above[3] = {0.5 + 1e-15, 0.8, 0.7 - 1e-15};
    static const double late[3] = {0.5, 0.5, 0.8};                    // equal, below, above same_start
    CHECK(curves_cross(a, b, 4) == 3 && curves_cross(b, a, 4) == 3 && curves_cross(a, b, 2) == 0);
    CHECK(curves_cross(same_start, late, 3) == 3 && curves_cross(same_start, above, 3) == 0 &&
          curves_cross(a, a, 4) == 0);
}

static void check_reading(const int* before, const int* after, const char* const* expected) {
    enum { QUESTIONS = 40, SAMPLES = 8 };
    Evaluation a = counted(before, QUESTIONS, SAMPLES), b = counted(after, QUESTIONS, SAMPLES);
    Text t = {0};
    int solved[4];
    count_solved(solved, &a, &b);
    append_reading(&t, &a, &b, solved);
    for (; *expected; expected++)
        if (!strstr(t.data, *expected)) {
            CHECK(!"the reading says what the numbers say");
            printf("    expected: %s\n    found:    %s\n", *expected, t.data);
        }
    evaluation_free(&a), evaluation_free(&b), text_free(&t);
}

static void the_reading_follows_from_the_numbers(void) {
    // Eight answers to each of 40 questions. Before: 2 right everywhere, pass@1 = 1/4, pass@8 = 1; after: 6.
    // pass@2 of 2 in 8 is 1 - C(6,2)/C(8,2) = 13/28, pass@3 1 - 20/56 = 0.64, pass@4 1 - 15/70 = 0.79 >= 6/8.
    int rare[40], often[40], half[40], none[40];
    for (int i = 0; i < 40; i++) rare[i] = 2, often[i] = 6, half[i] = i % 2 ? 0 : 8, none[i] = i % 4 ? 0 : 2;
    check_reading(rare, often, (const char*[]){"pass@1 is up.", "is worth 4 before", "pass@8 is unchanged",
                                               "do not cross", "it elicited", "left 0 of 40", NULL});
    // After: half of the questions always, the others never: pass@k = 1/2 for every k. Before is ahead from
    // k = 3 on, where it has 0.64.
    check_reading(rare, half, (const char*[]){"pass@1 is up.", "is worth 3 before", "pass@8 is down.",
                                              "from k = 3 on, before is ahead", "narrower", NULL});
    // Before solves a quarter of the questions, 2 of 8; after solves all of them: 30 are new.
    check_reading(none, often, (const char*[]){"pass@8 is up.", "Even 8 answers before find less than one",
                                               "more than eliciting", "left 30 of 40", NULL});
    check_reading(often, often, (const char*[]){"pass@1 is unchanged", "There is no gain", NULL});
    check_reading(often, rare, (const char*[]){"pass@1 is down.", "There is no gain", NULL});
    Evaluation a = counted(none, 40, 8), b = counted(half, 40, 8);
    int solved[4];     // none: every 4th, half: every 2nd: 10 both, 10 only after, 20 neither
    count_solved(solved, &a, &b);
    CHECK(solved[0] == 20 && solved[1] == 0 && solved[2] == 10 && solved[3] == 10);
    count_solved(solved, &b, &a);
    CHECK(solved[0] == 20 && solved[1] == 10 && solved[2] == 0 && solved[3] == 10);
    evaluation_free(&a), evaluation_free(&b);
}

int main(void) {
    RUN(every_pass_at_k_has_an_interval);
    RUN(all_or_nothing_is_no_certainty);
    RUN(ladder_ends_with_the_whole);
    RUN(votes_of_one_question);
    RUN(a_rollout_votes_with_its_format);
    RUN(the_ladder_adds_up);
    RUN(cost_of_votes);
    RUN(surer_than_coins_is_nobody);
    RUN(difference_on_the_same_questions);
    RUN(curves_that_cross);
    RUN(the_reading_follows_from_the_numbers);
    return check_failed != 0;
}

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

int main(void) {
    RUN(every_pass_at_k_has_an_interval);
    RUN(all_or_nothing_is_no_certainty);
    RUN(ladder_ends_with_the_whole);
    return check_failed != 0;
}

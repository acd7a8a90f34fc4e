// chapter_07.c - advantages. The values of three_groups come from the independent PyTorch program, the
// others are worked by hand.

static void chapter_07_three_groups(void) {
    // 1 1 0 0: mean 1/2, squares sum to 1: std sqrt(1/3) sample, 1/2 population. 1 1 0 ... of 16: mean 3/16.
    // centered, GRPO with eps 1e-8 and 1e-4, RLOO
    static const struct { int K; float reward[16]; double adv[4][16]; } groups[] = {
        {4, {1, 1, 0, 0}, {{0.5, 0.5, -0.5, -0.5},
                           {0.866025388784, 0.866025388784, -0.866025388784, -0.866025388784},
                           {0.865875429761, 0.865875429761, -0.865875429761, -0.865875429761},
                           {2.0 / 3, 2.0 / 3, -2.0 / 3, -2.0 / 3}}},
        {5, {0.3f, -1.2f, 2.5f, 0.0f, 0.7f},
         {{-0.16, -1.66, 2.04, -0.46, 0.24},
          {-0.119157701167, -1.23626114961, 1.51926068988, -0.342578390856, 0.178736551751},
          {-0.119148828617, -1.2361690969, 1.51914756486, -0.342552882273, 0.178723242925},
          {-0.2, -2.075, 2.55, -0.575, 0.3}}},
        {16, {1, 1, 1}, {{0.8125, 0.8125, 0.8125, -0.1875},
                         {2.01556438707, 2.01556438707, 2.01556438707, -0.465130243171},
                         {2.01506456108, 2.01506456108, 2.01506456108, -0.46501489871},
                         {0.866666666667, 0.866666666667, 0.866666666667, -0.2}}}};
    for (int i = 0; i < 3; i++) {
        const float* r = groups[i].reward;
        int K = groups[i].K;
        float adv[4][16];
        advantages_centered(adv[0], r, K);
        advantages_grpo(adv[1], r, K, 1e-8f);
        advantages_grpo(adv[2], r, K, 1e-4f);
        advantages_rloo(adv[3], r, K);
        for (int rule = 0; rule < 4; rule++)             // the 12 behind the fourth of 16 are like it
            for (int k = 0; k < K; k++)
                CHECK_NEAR(adv[rule][k], groups[i].adv[rule][K == 16 && k > 3 ? 3 : k], 1e-6);
    }
}

static void chapter_07_equal_rewards_give_exactly_zero(void) {
    const float values[6] = {0, 1, 0.1f, -3.7f, 1e-30f, 1e30f};
    for (int i = 0; i < 6 * 16; i++) {
        int K = i % 16 + 1;
        float r[16], adv[16];
        for (int k = 0; k < K; k++) r[k] = values[i / 16];
#ifdef IN_DOUBLE
        for (int k = 0; k < K; k++) r[k] = values[i / 16] > 0; // 53 bits leave no room to be exact
#endif
        for (int rule = ADVANTAGE_CENTERED; rule <= ADVANTAGE_GRPO; rule++) {
            compute_advantages(adv, r, K, rule);
            for (int k = 0; k < K; k++) CHECK(adv[k] == 0.0);
        }
        advantages_grpo(adv, r, K, 0.0f);                       // eps = 0: still no 0/0
        for (int k = 0; k < K; k++) CHECK(adv[k] == 0.0);
    }
}

static void chapter_07_small_groups(void) {
    for (int rule = ADVANTAGE_CENTERED; rule <= ADVANTAGE_GRPO; rule++) {
        float adv[2] = {9, 9};
        compute_advantages(adv, (float[]){0.7f}, 0, rule);      // nothing at all
        CHECK(adv[0] == 9);
        compute_advantages(adv, (float[]){0.7f}, 1, rule);      // nothing to compare with
        CHECK(adv[0] == 0.0 && adv[1] == 9);
    }
    // K = 2: mean 1/2, std sqrt(1/2) sample, 1/2 population; the other one's reward is the baseline of RLOO;
    // the rewards may be where the advantages go
    float adv[2], in_place[2] = {1, 0};
    advantages_rloo(adv, in_place, 2);
    CHECK_LIST(adv, EXACT, 1, -1);
    advantages_grpo(in_place, in_place, 2, 0.0f);
    CHECK_LIST(in_place, EXACT, 0.70710678118654752, -0.70710678118654752);
    // every sampled token gets its answer's
    float out[6] = {9, 9, 9, 9, 9, 9};
    broadcast_advantages(out, (float[]){0.5f, -0.5f}, (int[]){0, 1, 1, 1, 0, 0}, 2, 3);
    CHECK_LIST(out, 0.0, 0, 0.5, 0.5, -0.5, 0, 0);
}

// The claim of the chapter's comment, over all 2^K groups: RLOO is the true gradient p(1-p), centered (K-1)/K
// of it.
static void chapter_07_expected_gradient_over_all_groups(void) {
    for (int K = 2; K <= 8; K += 2)
        for (double p = 0.1; p < 0.95; p += 0.2) {
            double truth = p * (1 - p);
            CHECK_NEAR(expected_gradient(p, K, ADVANTAGE_RLOO) / truth, 1.0, 2e-6);
            CHECK_NEAR(expected_gradient(p, K, ADVANTAGE_CENTERED) / truth, (K - 1.0) / K, 2e-6);
            // by hand: E[GRPO] = sum over c of binomial(c) * sqrt(c (K-c) (K-1) / K) / K, as sum of A_i r_i =
            // c A_right
            double e = 0, pmf = pow(1 - p, K);
            for (int c = 0; c <= K; c++) {
                e += pmf * sqrt((double)c * (K - c) * (K - 1) / K) / K;
                pmf *= (double)(K - c) / (c + 1) * p / (1 - p);
            }
            CHECK_NEAR(expected_gradient(p, K, ADVANTAGE_GRPO), e, 2e-6);
        }
}

static void chapter_07_zero_variance_odds(void) {
    CHECK_NEAR(zero_variance_odds(0.5, 4), 0.125, 1e-15);           // 2 / 16
    CHECK(zero_variance_odds(0.0, 16) == 1.0 && zero_variance_odds(1.0, 16) == 1.0);
    CHECK_NEAR(zero_variance_odds(0.3, 1), 1.0, 1e-15);   // one rollout has nothing to be compared with
    CHECK_NEAR(zero_variance_odds(0.1875, 16), pow(0.8125, 16) + pow(0.1875, 16), 1e-15);
}

static void test_chapter_07(void) {
    RUN_ALL(TEST(chapter_07_three_groups), TEST(chapter_07_equal_rewards_give_exactly_zero),
            TEST(chapter_07_small_groups), TEST(chapter_07_expected_gradient_over_all_groups),
            TEST(chapter_07_zero_variance_odds));
}

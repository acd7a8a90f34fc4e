// chapter_03.c - token log-probabilities, the off-by-one shift, the mask. "Reference": the independent
// PyTorch program.

enum { RB = 3, RT = 6, RV = 7 };
static const int ref_ids[RB * RT] = {1, 2, 3, 4, 5, 6, 6, 0, 6, 0, 6, 0, 3, 3, 1, 5, 2, 0};
static const int ref_mask[RB * RT] = {0, 0, 1, 1, 1, 1, 0, 1, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0};

static void chapter_03_reference_logprobs(void) {
    static const double expected[RB * (RT - 1)] = {
        -2.86584687214, -2.13971875346, -1.21315114422, -0.926434584765, -0.797914679187,
        -3.03043047791, -2.31712326243, -3.27381775742, -2.18903458889, -1.60940757936,
        -2.77146669757, -2.91601744453, -4.6460841922, -1.00023298619, -4.9079467964};
    static const double sum[RB] = {-5.07721916163, -7.53658832923, -5.64631717839};
    static const double mean[RB] = {-1.26930479041, -2.51219610974, -2.82315858919};
    float logits[RB * RT * RV], logp[RB * (RT - 1)], out[RB];
    int shifted[RB * (RT - 1)];
    fill(logits, RB * RT * RV, 1, 2.0, 0.0);
    token_logprobs(logp, logits, ref_ids, RB, RT, RV);
    for (int i = 0; i < RB * (RT - 1); i++) CHECK_NEAR(logp[i], expected[i], 1e-6);
    shift_mask(shifted, ref_mask, RB, RT);
    for (int i = 0; i < RB * (RT - 1); i++) CHECK(shifted[i] == ref_mask[i + i / (RT - 1) + 1]);
    sequence_logprobs(out, logp, shifted, RB, RT - 1);
    for (int b = 0; b < RB; b++) {
        CHECK_NEAR(out[b], sum[b], 1e-6);
        CHECK_NEAR(masked_mean(logp + b * (RT - 1), shifted + b * (RT - 1), RT - 1), mean[b], 1e-6);
    }
}

static void chapter_03_reference_entropy(void) {
    const double expected[RB * RT] = {
        1.2313385693, 1.46545950856, 1.5561870964, 1.34587934483, 1.43829152581, 1.26513646011,
        1.5439421889, 1.51022038335, 1.19993474632, 1.27369563097, 1.4405492575, 1.55850192691,
        1.37974535867, 1.39030435162, 1.23534208643, 1.53534354664, 1.52399070608, 1.21197227138};
    float logits[RB * RT * RV], entropy[RB * RT];
    fill(logits, RB * RT * RV, 1, 2.0, 0.0);
    token_entropy(entropy, logits, RB * RT, RV);
    for (int i = 0; i < RB * RT; i++) CHECK_NEAR(entropy[i], expected[i], 1e-6);
}

static void chapter_03_logprob_limits(void) {
    static const int ids[3] = {0, 1, 0}, none[3] = {0};
    float logp[2], entropy[3], one[2] = {9, 9};
    // logits +-1e4: exp would overflow. log pi(1) = -1e4 - log(e^1e4 + e^-1e4) + ... = -2e4; log pi(0) = 0
    const float huge[6] = {1e4f, -1e4f, 1e4f, -1e4f, 0, 0};
    token_logprobs(logp, huge, ids, 1, 3, 2);
    CHECK_LIST(logp, 1e-12, -2e4, 0);
    token_entropy(entropy, huge, 3, 2);
    CHECK_LIST(entropy, EXACT, 0, 0, log(2.0));                 // certain, certain; no idea: log V
    const float rising[4] = {-1e4f, 1e4f, 0, 0};                // the largest need not come first
    token_logprobs(logp, rising, ids, 1, 2, 2);
    CHECK(logp[0] == 0.0f);
    const float low[4] = {-1e4f, -1e4f, -1e4f, -1e4f};          // all tiny: subtracting the max saves it
    token_logprobs(logp, low, ids, 1, 2, 2);
    CHECK_NEAR(logp[0], -log(2.0), EXACT);
    // a token that can not occur (-inf) leaves the others untouched
    const float never[4] = {0, -INFINITY, 0, 0};
    token_logprobs(logp, never, ids, 1, 2, 2);
    token_entropy(entropy, never, 1, 2);
    CHECK(isinf(logp[0]) && logp[0] < 0 && entropy[0] == 0);
    // V = 1: the only token has probability 1
    const float single[3] = {5, -3, 1e4f};
    token_logprobs(logp, single, none, 1, 3, 1);
    token_entropy(entropy, single, 3, 1);
    CHECK(logp[0] == 0 && logp[1] == 0 && entropy[1] == 0);
    // one token, no token, no sequence: nothing to predict, nothing written
    token_logprobs(one, huge, ids, 1, 1, 2);
    token_logprobs(one, huge, ids, 2, 0, 2);
    token_logprobs(one, huge, ids, 0, 3, 2);
    CHECK(one[0] == 9 && one[1] == 9);
    // an id outside the vocabulary: NaN at its place only
    token_logprobs(logp, huge, (int[]){0, 2, 1}, 1, 3, 2);
    CHECK(isnan(logp[0]) && !isnan(logp[1]));
    token_logprobs(logp, huge, (int[]){0, 1, -1}, 1, 3, 2);
    CHECK(!isnan(logp[0]) && isnan(logp[1]));
}

static void chapter_03_mask_limits(void) {
    const float x[4] = {1, NAN, 3, INFINITY};
    const int none[4] = {0, 0, 0, 0}, some[4] = {1, 0, 1, 0};
    int m[6] = {0, 1, 1, 0, 0, 1}, out[4];
    float sum[2] = {7, 7};
    CHECK(masked_mean(x, none, 4) == 0.0 && masked_mean(x, some, 0) == 0.0);
    CHECK(masked_mean(x, some, 4) == 2.0);                      // (1 + 3) / 2; the NaN stays behind its mask
    sequence_logprobs(sum, x, none, 1, 4);
    CHECK(sum[0] == 0);
    sequence_logprobs(sum, x, some, 1, 4);
    CHECK(sum[0] == 4);
    sequence_logprobs(sum, x, some, 2, 0);                      // empty sequences: log 1
    CHECK(sum[0] == 0 && sum[1] == 0);
    shift_mask(out, m, 2, 3);                                   // rows 0 1 1 and 0 0 1
    shift_mask(m, m, 2, 3);                                     // in place
    CHECK_LIST(out, 0.0, 1, 1, 0, 1);
    CHECK_LIST(m, 0.0, 1, 1, 0, 1);
    out[0] = 5;
    shift_mask(out, m, 1, 1);                                   // one token: nothing
    CHECK(out[0] == 5);
}

static void test_chapter_03(void) {
    RUN_ALL(TEST(chapter_03_reference_logprobs), TEST(chapter_03_reference_entropy),
            TEST(chapter_03_logprob_limits), TEST(chapter_03_mask_limits));
}

// chapter_03.c - token log-probabilities, the off-by-one shift, the mask. "Reference": the independent
// PyTorch program.

enum { RB = 3, RT = 6, RV = 7 };
static const int ref_ids[RB * RT] = {1, 2, 3, 4, 5, 6, 6, 0, 6, 0, 6, 0, 3, 3, 1, 5, 2, 0};
static const int ref_mask[RB * RT] = {0, 0, 1, 1, 1, 1, 0, 1, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0};

static void chapter_03_reference_logprobs(void) {
    const double expected[RB * (RT - 1)] = {
        -2.86584687214, -2.13971875346, -1.21315114422, -0.926434584765, -0.797914679187,
        -3.03043047791, -2.31712326243, -3.27381775742, -2.18903458889, -1.60940757936,
        -2.77146669757, -2.91601744453, -4.6460841922, -1.00023298619, -4.9079467964};
    const double seq[RB] = {-5.07721916163, -7.53658832923, -5.64631717839};
    const double seq_all[RB] = {-7.94306603378, -12.419813666, -16.2417481169};
    const double per_token[RB] = {-1.26930479041, -2.51219610974, -2.82315858919};
    const double slip_shift[RB] = {-8.91747206088, -10.4507297716, -6.63817901426};
    const double slip_mask[RB] = {-2.93750040817, -7.20034859921, -5.90817978259};
    const int ones[RT] = {1, 1, 1, 1, 1, 1};
    float logits[RB * RT * RV], logp[RB * (RT - 1)], out[RB];
    int shifted[RB * (RT - 1)];
    fill(logits, RB * RT * RV, 1, 2.0, 0.0);
    token_logprobs(logp, logits, ref_ids, RB, RT, RV);
    for (int i = 0; i < RB * (RT - 1); i++) CHECK_NEAR(logp[i], expected[i], 1e-6);
    shift_mask(shifted, ref_mask, RB, RT);
    for (int b = 0; b < RB; b++)
        for (int t = 0; t < RT - 1; t++) CHECK(shifted[b * (RT - 1) + t] == ref_mask[b * RT + t + 1]);
    sequence_logprobs(out, logp, shifted, RB, RT - 1);
    for (int b = 0; b < RB; b++) {
        CHECK_NEAR(out[b], seq[b], 1e-6);
        CHECK_NEAR(masked_mean(logp + b * (RT - 1), shifted + b * (RT - 1), RT - 1), per_token[b], 1e-6);
        float one, unshifted[RT];
        sequence_logprobs(&one, logp + b * (RT - 1), ones, 1, RT - 1);
        CHECK_NEAR(one, seq_all[b], 1e-6);
        sequence_logprobs(&one, logp + b * (RT - 1), ref_mask + b * RT, 1, RT - 1);
        CHECK_NEAR(one, slip_mask[b], 1e-6);
        int late[RT + 1] = {0};
        memcpy(late + 1, ref_ids + b * RT, RT * sizeof(int));
        token_logprobs(unshifted, logits + b * RT * RV, late, 1, RT + 1, RV);
        sequence_logprobs(&one, unshifted, ref_mask + b * RT, 1, RT);
        CHECK_NEAR(one, slip_shift[b], 1e-6);
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
    const int ids[3] = {0, 1, 0};
    float logp[2], entropy[3], one[2] = {9, 9};
    // logits +-1e4: exp would overflow. log pi(1) = -1e4 - log(e^1e4 + e^-1e4) + ... = -2e4; log pi(0) = 0
    const float huge[6] = {1e4f, -1e4f, 1e4f, -1e4f, 0, 0};
    token_logprobs(logp, huge, ids, 1, 3, 2);
    CHECK_NEAR(logp[0], -2e4, 1e-12);
    CHECK_NEAR(logp[1], 0.0, 0.0);
    token_entropy(entropy, huge, 3, 2);
    CHECK_NEAR(entropy[0], 0.0, 0.0);                           // certain
    CHECK_NEAR(entropy[2], log(2.0), EXACT);                    // no idea: log V
    const float rising[4] = {-1e4f, 1e4f, 0, 0};                // the largest need not come first
    token_logprobs(logp, rising, ids, 1, 2, 2);
    CHECK_NEAR(logp[0], 0.0, 0.0);
    const float low[4] = {-1e4f, -1e4f, -1e4f, -1e4f};          // all tiny: subtracting the max saves it
    token_logprobs(logp, low, ids, 1, 2, 2);
    CHECK_NEAR(logp[0], -log(2.0), EXACT);
    // a token that can not occur (-inf) leaves the others untouched
    const float never[4] = {0, -INFINITY, 0, 0};
    token_logprobs(logp, never, ids, 1, 2, 2);
    CHECK(isinf(logp[0]) && logp[0] < 0);
    token_entropy(entropy, never, 1, 2);
    CHECK_NEAR(entropy[0], 0.0, 0.0);
    // V = 1: the only token has probability 1
    const float single[3] = {5, -3, 1e4f};
    const int zeros[3] = {0, 0, 0};
    token_logprobs(logp, single, zeros, 1, 3, 1);
    CHECK_NEAR(logp[0], 0.0, 0.0);
    CHECK_NEAR(logp[1], 0.0, 0.0);
    token_entropy(entropy, single, 3, 1);
    CHECK_NEAR(entropy[1], 0.0, 0.0);
    // one token, no token, no sequence: nothing to predict, nothing written
    token_logprobs(one, huge, ids, 1, 1, 2);
    token_logprobs(one, huge, ids, 2, 0, 2);
    token_logprobs(one, huge, ids, 0, 3, 2);
    CHECK(one[0] == 9 && one[1] == 9);
    // an id outside the vocabulary: NaN at its place only
    const int bad[3] = {0, 2, 1}, negative[3] = {0, 1, -1};
    token_logprobs(logp, huge, bad, 1, 3, 2);
    CHECK(isnan(logp[0]) && !isnan(logp[1]));
    token_logprobs(logp, huge, negative, 1, 3, 2);
    CHECK(!isnan(logp[0]) && isnan(logp[1]));
}

static void chapter_03_mask_limits(void) {
    const float x[4] = {1, NAN, 3, INFINITY};
    const int none[4] = {0, 0, 0, 0}, some[4] = {1, 0, 1, 0};
    int m[6] = {0, 1, 1, 0, 0, 1}, out[4];
    float sum[2] = {7, 7};
    CHECK_NEAR(masked_mean(x, none, 4), 0.0, 0.0);
    CHECK_NEAR(masked_mean(x, some, 4), 2.0, 0.0);              // (1 + 3) / 2; the NaN stays behind its mask
    CHECK_NEAR(masked_mean(x, some, 0), 0.0, 0.0);
    sequence_logprobs(sum, x, none, 1, 4);
    CHECK_NEAR(sum[0], 0.0, 0.0);
    sequence_logprobs(sum, x, some, 1, 4);
    CHECK_NEAR(sum[0], 4.0, 0.0);
    sequence_logprobs(sum, x, some, 2, 0);                      // empty sequences: log 1
    CHECK(sum[0] == 0 && sum[1] == 0);
    shift_mask(out, m, 2, 3);                                   // rows 0 1 1 and 0 0 1
    CHECK(out[0] == 1 && out[1] == 1 && out[2] == 0 && out[3] == 1);
    shift_mask(m, m, 2, 3);                                     // in place
    CHECK(m[0] == 1 && m[1] == 1 && m[2] == 0 && m[3] == 1);
    out[0] = 5;
    shift_mask(out, m, 1, 1);                                   // one token: nothing
    CHECK(out[0] == 5);
}

#ifdef IN_DOUBLE
// d(sum over masked tokens of logp)/d z[b,t,v] = mask[b,t+1] (1[v = ids[b,t+1]] - pi(v)): the shift again.
// The derivative is 0 for the last row, and for rows whose next token is masked.
static void chapter_03_logprob_gradient(void) {
    double logits[RB * RT * RV], logp[RB * (RT - 1)], out[RB], h = 1e-4;
    int shifted[RB * (RT - 1)];
    fill(logits, RB * RT * RV, 1, 2.0, 0.0);
    shift_mask(shifted, ref_mask, RB, RT);
    for (int i = 0; i < RB * RT * RV; i++) {
        int b = i / (RT * RV), t = i / RV % RT, v = i % RV;
        double keep = logits[i], side[2];
        for (int k = 0; k < 2; k++) {
            logits[i] = keep + (k ? h : -h);
            token_logprobs(logp, logits, ref_ids, RB, RT, RV);
            sequence_logprobs(out, logp, shifted, RB, RT - 1);
            side[k] = out[b];
        }
        logits[i] = keep;
        double total = 0, formula = 0;
        for (int j = 0; j < RV; j++) total += exp(logits[b * RT * RV + t * RV + j]);
        if (t + 1 < RT && ref_mask[b * RT + t + 1])
            formula = (v == ref_ids[b * RT + t + 1]) - exp(keep) / total;
        CHECK(fabs((side[1] - side[0]) / (2 * h) - formula) <= 1e-6 * fabs(formula) + 1e-10);
    }
}
#endif

static void test_chapter_03(void) {
    RUN_ALL(TEST(chapter_03_reference_logprobs), TEST(chapter_03_reference_entropy),
            TEST(chapter_03_logprob_limits), TEST(chapter_03_mask_limits));
#ifdef IN_DOUBLE
    RUN_ALL(TEST(chapter_03_logprob_gradient));
#endif
}

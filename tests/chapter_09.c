// chapter_09.c - the losses. "Reference": the independent PyTorch program; everything else is worked by hand
// above the expectation. Central differences of every loss are in gradients.c.

// The reference's loss, and its derivatives, which d has.
static void check_reference(double loss, double expected, const float* d, const double* slopes) {
    CHECK_NEAR(loss, expected, 1e-6);
    check_array(d, slopes, REF_N, 1e-5);
}

static void chapter_09_losses_match_reference(void) {
    float logp[REF_N], old[REF_N], ref[REF_N], d[REF_N], dkl[REF_N];
    const int K = REF_K, T1 = REF_T1, *mask = ref_group_mask;
    double slopes[REF_N];
    fill_logp(logp, 4);
    fill_logp(old, 5);
    fill_logp(ref, 6);
    // -A over 9 tokens; over 3 answers and their 4, 3, 2 tokens; over 3; over 3 and the limit. SFT: -1/9
    static const double loss[NORMS] = {0.3785920317065184, 0.4729917352301691, 1.135776095119555,
                                       1.135776095119555 / LIMIT};
    for (int norm = 0; norm < NORMS; norm++) {
        for (int i = 0; i < REF_N; i++) {
            const double by[NORMS] = {9, 3.0 * (4 - i / T1), 3, 3.0 * LIMIT};
            slopes[i] = mask[i] ? -(double)ref_adv[i / T1] / by[norm] : 0.0;
        }
        check_reference(group_policy_gradient(d, logp, ref_adv, mask, K, T1, norm), loss[norm], d, slopes);
    }
    for (int i = 0; i < REF_N; i++) slopes[i] = mask[i] ? -1.0 / 9.0 : 0.0;
    check_reference(group_sft(d, logp, mask, K, T1), 1.0677503170154983, d, slopes);
    const double token[REF_N] = {0, -0.0422001396279, -0.0581949935866, 0, 0, 0.0411325803704,
                                 0.0312475036951};
    const double sequence[REF_N] = {0, -0.031650104721, -0.0436462451899, 0, 0, token[5], token[6]};
    check_reference(group_clip(d, logp, old, ref_adv, mask, K, T1, 0.2f, 0.2f, NORM_TOKEN_MEAN),
                    -0.5391261602601225, d, token);
    check_reference(group_clip(d, logp, old, ref_adv, mask, K, T1, 0.2f, 0.28f, NORM_TOKEN_MEAN),
                    -0.5746817158156781, d, token);
    double clip = group_clip(d, logp, old, ref_adv, mask, K, T1, 0.2f, 0.2f, NORM_SEQUENCE_MEAN);
    check_reference(clip, -0.6806940436231667, d, sequence);
    // the GRPO paper's loss: + 0.04 * k3, averaged in a sequence, then over sequences
    const double grpo[REF_N] = {0, -0.0315339739888, -0.0422883373178, 0.00178199292463, 0.0015875952924,
                                0.0420264285923, 0.0296726181669, 0, -0.00496354719181, 0, 0, 0,
                                0.00356865163486, 0.00315016359715, 0};
    double kl = group_kl(dkl, logp, ref, mask, K, T1, NORM_SEQUENCE_MEAN, 3);
    for (int i = 0; i < REF_N; i++) d[i] += 0.04f * dkl[i];
    check_reference(clip + 0.04 * kl, -0.674353881362626, d, grpo);
}

static void chapter_09_preferences_match_reference(void) {
    // DPO: margin 0.1 ((-12 + 11) - (-15.5 + 14)) = 0.1 * 0.5 = 0.05; loss = log(1 + e^-0.05) = 0.66846;
    //      d/dchosen = -0.1 sigma(-0.05) = -0.1 * 0.4875026 = -0.04875026
    // at the reference: margin 0, loss log 2, gradient -beta/2; beta 0 is always at the reference
    static const struct { float chosen, rejected, ref_chosen, ref_rejected, beta; double loss, d; } dpo[] = {
        {-12.0f, -15.5f, -11.0f, -14.0f, 0.1f, 0.6684596480132863, -0.04875026035157897},
        {-3.0f, -4.0f, -3.0f, -4.0f, 0.5f, 0.6931471805599453, -0.25},
        {5.0f, -3.0f, 0.0f, 0.0f, 0.0f, 0.6931471805599453, 0.0},
        {80.0f, -80.0f, 0.0f, 0.0f, 1.0f, 0.0, 0.0}, {-80.0f, 80.0f, 0.0f, 0.0f, 1.0f, 160.0, -1.0}};
    // Bradley-Terry: sigma(0.9) = 0.71095; -log = 0.341154; gradient -(1 - 0.71095) = -0.28905;
    // a margin of -800 costs 800, of +800 nothing
    static const struct { float chosen, rejected; double loss, d; } judged[] = {
        {1.3f, 0.4f, 0.3411538747320878, -0.289050497375}, {0.0f, 800.0f, 800.0, -1.0},
        {800.0f, 0.0f, 0.0, 0.0}};
    float dc, dr;
    for (int i = 0; i < 5; i++) {
        CHECK_NEAR(loss_dpo(&dc, &dr, dpo[i].chosen, dpo[i].rejected, dpo[i].ref_chosen, dpo[i].ref_rejected,
                            dpo[i].beta), dpo[i].loss, 1e-6);
        CHECK_NEAR(dc, dpo[i].d, 1e-7);
        CHECK(dr == -dc);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_NEAR(loss_reward_model(&dc, &dr, judged[i].chosen, judged[i].rejected), judged[i].loss, 1e-6);
        CHECK_NEAR(dc, judged[i].d, 1e-6);
        CHECK(dr == -dc);
    }
    CHECK_NEAR(sigmoid(0.9), 0.7109495026250039, 1e-12);
}

static void nines(float* x, int n) {                            // what a function must not leave there
    for (int i = 0; i < n; i++) x[i] = 9.0f;
}

// An unknown norm or estimator is NaN wherever a token counts; no answer or no token: nothing is written.
static void chapter_09_loss_limits(void) {
    float logp[REF_N], other[REF_N], d[REF_N], w[REF_N];
    const int* mask = ref_group_mask;
    fill_logp(logp, 4);
    fill_logp(other, 5);
    for (int norm = -1; norm <= NORMS; norm++) {
        nines(w, REF_N);
        token_weights(w, mask, 0, REF_T1, norm, LIMIT);
        token_weights(w, mask, REF_K, 0, norm, LIMIT);
        token_weights(w, mask, -1, REF_T1, norm, LIMIT);
        CHECK(w[0] == 9.0f);
        token_weights(w, mask, REF_K, REF_T1, norm, LIMIT);
        for (int j = 0; j < REF_N; j++)
            CHECK(mask[j] ? !isnan(w[j]) == (norm >= 0 && norm < NORMS) : w[j] == 0.0f);
    }
    for (int estimator = 0; estimator <= 4; estimator += 4) {
        CHECK(isnan(group_kl(d, logp, other, mask, REF_K, REF_T1, NORM_TOKEN_MEAN, estimator)));
        CHECK(isnan(d[2]) && d[0] == 0.0f);
    }
}

static void chapter_09_drift_of_80(void) {
    // e^80 = 5.5406e34, e^-80 = 1.8049e-35; both are floats. Far beyond, the loss goes on along the tangent,
    // e^80 (1 + 1000 - 80), with the slope of e^80, and is never inf.
    const double big = exp(80.0), small = exp(-80.0);
    const struct { float logp, old, adv; double loss, slope; } cases[] = {
        {-10, -90, 1, -1.2, 0}, {-10, -90, -1, big, big}, {-90, -10, 1, -small, -small},
        {-90, -10, -1, 0.8, 0}, {-10, -1010, -1, big * 921.0, big}};
    const int one[1] = {1};
    float d[1];
    for (int i = 0; i < 5; i++) {
        double loss = group_clip(d, &cases[i].logp, &cases[i].old, &cases[i].adv, one, 1, 1, 0.2f, 0.2f, 0);
        CHECK_NEAR(loss / cases[i].loss, 1.0, 1e-6);
        CHECK_LIST(d, 1e-6, cases[i].slope);
    }
}

static void chapter_09_rejection_sampling(void) {
    const float a[] = {0.0f, 1.0f, 1.0f, 0.0f}, b[] = {NAN, -3.0f, -1.0f}, c[] = {NAN, NAN};
    CHECK(best_of_n(a, 4) == 1);   // the first among equals
    CHECK(best_of_n(a, 1) == 0);
    CHECK(best_of_n(a, 0) == -1);
    CHECK(best_of_n(b, 3) == 2);   // a NaN never wins
    CHECK(best_of_n(c, 2) == -1);
}

static void chapter_09_weights_and_ratios_by_hand(void) {
    // Three answers with 2, 1 and 0 sampled tokens, at most 10 long. Token mean 1/3; sequence mean 1/(3*2)
    // and 1/(3*1); sum 1/3; constant 1/(3*10). The answer without tokens adds nothing and counts in K.
    const double w[NORMS][3] = {{1.0 / 3, 1.0 / 3, 1.0 / 3}, {1.0 / 6, 1.0 / 6, 1.0 / 3},
                                {1.0 / 3, 1.0 / 3, 1.0 / 3}, {1.0 / 30, 1.0 / 30, 1.0 / 30}};
    float out[9];
    for (int norm = 0; norm < NORMS; norm++) {
        nines(out, 9);
        token_weights(out, (int[9]){0, 1, 1, 1}, 3, 3, norm, 10);
        CHECK_LIST(out, 1e-6, 0, w[norm][0], w[norm][1], w[norm][2], 0, 0, 0, 0, 0);
        token_weights(out, (int[9]){0}, 3, 3, norm, 10);       // nothing sampled: all 0, and no 0/0
        CHECK_LIST(out, 0.0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    }
    // ratios 2 and 1/2, and 4; per answer: the mean logarithm, 0 and ln 4. NaN behind the mask.
    const float l2 = (float)log(2.0), logp[6] = {-1, NAN, -2, -3, INFINITY, NAN};
    const float old[6] = {-1 - l2, NAN, -2 + l2, -3 - 2 * l2, NAN, NAN};
    const int mask[6] = {1, 0, 1, 1, 0, 0};
    nines(out, 6);
    token_log_ratio(out, logp, old, mask, 2, 3);
    CHECK_LIST(out, 2.5e-7, 0.6931471806, 0, -0.6931471806, 1.3862943611, 0, 0);
    nines(out, 6);
    sequence_log_ratio(out, logp, old, mask, 2, 3);
    CHECK_NEAR(out[0], 0.0, 2e-7);
    CHECK_LIST(out + 1, 2.5e-7, 0, out[0], 1.3862943611, 0, 0);
}

// NaN wherever the weight is 0: the loss is that of the two tokens that count, the rest exactly 0. By hand
// with w = 1/2 and 1/4, A = 2 and -1, logp = -1 and -3, log-ratios 0 and ln 2:
static void chapter_09_where_w_is_0_nothing_is_read(void) {
    const float l2 = (float)log(2.0), w[5] = {0, 0.5f, 0, 0.25f, 0}, logp[5] = {NAN, -1, INFINITY, -3, NAN};
    const float adv[5] = {NAN, 2, NAN, -1, INFINITY}, log_ratio[5] = {NAN, 0, -INFINITY, l2, NAN};
    const float target[5] = {NAN, 1, NAN, -1, NAN}, other[5] = {NAN, -1 - l2, NAN, -3 - l2, NAN};
    static const double by_hand[8][3] = {                               // the loss and its two derivatives
        {1.0 - 0.75, -1.0, 0.25},            // policy gradient  -1/2 2 (-1) - 1/4 (-1)(-3) = 1/4
        {-1.0 + 0.5, -1.0, 0.5},             // clip   -1/2 1 2 + 1/4 2 1 (A < 0: a ratio of 2 is corrected)
        {1.0 - 0.25 * 1.2 * 3, -1.0, 0.3},                              // cispo            2 is held at 1.2
        {0.5 * 0.6931471806 + 0.25 * 0.6931471806, 0.5, 0.25},          // k1
        {0.75 * 0.2402265070, 0.5 * 0.6931471806, 0.25 * 0.6931471806}, // k2
        {0.75 * 0.1931471806, 0.25, 0.125},                             // k3
        {0.5 * 0.5 * 4 + 0.5 * 0.25 * 4, -1.0, -0.5}, // value: errors -1 - 1 = -2 and -3 + 1 = -2
        {0.5 + 0.75, -0.5, -0.25},                    // sft              1/2 1 + 1/4 3
    };
    float d[5];
    for (int i = 0; i < 8; i++) {
        nines(d, 5);
        double loss = i == 0   ? loss_policy_gradient(d, logp, adv, w, 5)
                      : i == 1 ? loss_clip(d, log_ratio, adv, w, 5, 0.2f, 0.2f)
                      : i == 2 ? loss_cispo(d, logp, log_ratio, adv, w, 5, 0.2f, 0.2f)
                      : i < 6  ? loss_kl(d, logp, other, w, 5, i - 2)
                      : i == 6 ? loss_value(d, logp, other, target, w, 5, 0.0f)
                               : loss_sft(d, logp, w, 5);
        CHECK_NEAR(loss, by_hand[i][0], 1e-6);
        CHECK_LIST(d, 1e-6, 0, by_hand[i][1], 0, by_hand[i][2], 0);
    }
    d[0] = 7;
    CHECK(loss_sft(d, logp, w, 0) == 0.0 && d[0] == 7.0f);         // n = 0 writes nothing
}

// log-ratios within +-6000 nats, advantages of both signs and 0 (which costs nothing, not 0 * inf)
static void chapter_09_finite_far_away(void) {
    const float w = 1, advantage[3] = {1, -1, 0}, logp = -1;
    for (float x = -6000.0f; x <= 6000.0f; x += 125.0f)
        for (int i = 0; i < 3; i++) {
            float d;
            double loss = loss_clip(&d, &x, advantage + i, &w, 1, 0.2f, 0.28f);
            CHECK(isfinite(loss) && isfinite(d) && (i < 2 || (loss == 0.0 && d == 0.0f)));
            CHECK(isfinite(loss_cispo(&d, &logp, &x, advantage + i, &w, 1, 1.0f, 1e6f)) && isfinite(d));
        }
}

static void chapter_09_is_clipped(void) {
    // TRL's count: clipped is where the clip takes the gradient away, not all outside of 0.8 and 1.28
    CHECK(is_clipped(1.3, 1.0, 0.2, 0.28) && !is_clipped(1.27, 1.0, 0.2, 0.28));
    CHECK(is_clipped(0.7, -1.0, 0.2, 0.28) && !is_clipped(0.81, -1.0, 0.2, 0.28));
    CHECK(!is_clipped(1.3, -1.0, 0.2, 0.28) && !is_clipped(0.7, 1.0, 0.2, 0.28)); // outside, but corrected
    CHECK(!is_clipped(1.3, 0.0, 0.2, 0.28) && !is_clipped(0.7, 0.0, 0.2, 0.28));
    CHECK(!is_clipped(0.75, -1.0, 0.25, 0.25) && !is_clipped(1.25, 1.0, 0.25, 0.25));   // the bounds
    CHECK(!is_clipped(1.0, 1.0, 0.0, 0.0) && !is_clipped(NAN, 1.0, 0.2, 0.28));
}

static void chapter_09_gspo_by_hand(void) {
    // Two answers; NaN stands where nothing may be read. A = 2:
    //   answer 0, log-ratios 0.3 and 0.1: s = exp(0.2) = 1.221402758, in 0.5 .. 1.3 (PPO would clip token 0)
    //       loss -s A / B = -1.221402758        each token: -s A / (B * 2) = -0.610701379
    //   answer 1, token 2 only, 0.5: s = 1.648721271, above 1.3: clipped; loss -1.3 A / B = -1.3, token: 0
    // A = -2: too high a ratio is corrected: loss 1.221402758 + 1.648721271; d[5] = 1.648721271 * 2 / 2; the
    // other way round, s = exp(-0.2) = 0.818730753, below 0.9, is clipped: loss 0.9 * 2 / 2
    const float logp[6] = {-1.0f, -2.0f, NAN, NAN, NAN, -0.5f}, old[6] = {-1.3f, -2.1f, NAN, NAN, NAN, -1.0f};
    const int mask[6] = {1, 1, 0, 0, 0, 1};
    const float adv[2] = {2, 2}, against[2] = {-2, -2};
    float d[6] = {9, 9, 9, 9, 9, 9};
    double loss = group_gspo(d, logp, old, adv, mask, 2, 3, 0.5f, 0.3f, NORM_SEQUENCE_MEAN);
    CHECK_NEAR(loss, -1.221402758 - 1.3, 1e-6);
    CHECK_LIST(d, 1e-6, -0.610701379, -0.610701379, 0, 0, 0, 0);
    loss = group_gspo(d, logp, old, against, mask, 2, 3, 0.5f, 0.3f, NORM_SEQUENCE_MEAN);
    CHECK_NEAR(loss, 1.221402758 + 1.648721271, 1e-6);
    CHECK_LIST(d, 1e-6, 0.610701379, 0.610701379, 0, 0, 0, 1.648721271);
    loss = group_gspo(d, old, logp, against, mask, 1, 3, 0.1f, 0.3f, NORM_SEQUENCE_MEAN);
    CHECK_NEAR(loss, 0.9 * 2, 1e-6);
    CHECK_LIST(d, 0.0, 0, 0, 0);
}

static void chapter_09_cispo_by_hand(void) {
    // One answer of 4 places, A = 2, bounds 0.5 .. 1.28, token mean over 3: weight 1/3.
    //   ratio 1.2   inside       weight of the token 1.2     d = -1.2 * 2 / 3  = -0.8
    //   ratio 2     held at 1.28                              d = -1.28 * 2 / 3 = -0.853333  (PPO: 0)
    //   masked
    //   ratio 0.25  held at 0.5                               d = -0.5 * 2 / 3  = -0.333333
    // loss = -(2/3) (1.2 * -1 + 1.28 * -2 + 0.5 * -3) = (2/3) * 5.26 = 3.506667
    // no sign of A ever switches a token off; sum over the sequence: three times as much
    const float logp[4] = {-1, -2, NAN, -3};
    const float old[4] = {-1 - 0.182321557f, -2 - 0.693147181f, NAN, -3 + 1.386294361f};
    const int mask[4] = {1, 1, 0, 1};
    const float adv[1] = {2}, against[1] = {-2};
    float d[4] = {9, 9, 9, 9};
    CHECK_NEAR(group_cispo(d, logp, old, adv, mask, 1, 4, 0.5f, 0.28f, NORM_TOKEN_MEAN), 3.506666667, 1e-6);
    CHECK_LIST(d, 1e-6, -0.8, -0.853333333, 0, -0.333333333);
    group_cispo(d, logp, old, against, mask, 1, 4, 0.5f, 0.28f, NORM_SEQUENCE_SUM);
    CHECK_LIST(d, 1e-6, 2.4, 2.56, 0, 1.0);
}

static void chapter_09_value_by_hand(void) {
    // V, V_old, target; clip 0.2; token mean over 5 of 6 places, weight 1/5:
    //   0.5  0.4  1.0   moved by 0.1, inside:                        1/2 0.5^2 = 0.125     d = -0.5 / 5
    //   0.9  0.4  1.0   moved by 0.5, held at 0.6: 1/2 0.4^2 = 0.08 > 1/2 0.1^2 = 0.005    d = 0 (clipped)
    //   0.9  0.4  0.0   held at 0.6: 0.18 < 1/2 0.9^2 = 0.405: the error itself counts     d = +0.9 / 5
    //  -0.5  0.4  0.3   moved by -0.9, held at 0.2: 0.005 < 0.32                           d = -0.8 / 5
    //   0.1  0.4  0.0   downwards past the bound: held at 0.2, 0.02 > 0.005                d = 0 (clipped)
    // loss = (0.125 + 0.08 + 0.405 + 0.32 + 0.02) / 5 = 0.19
    // clip 0: the plain error, (0.125 + 0.005 + 0.405 + 0.32 + 0.005) / 5 = 0.172; both clipped ones learn
    const float value[6] = {0.5f, 0.9f, 0.9f, NAN, -0.5f, 0.1f}, old[6] = {0.4f, 0.4f, 0.4f, NAN, 0.4f, 0.4f};
    const float target[6] = {1.0f, 1.0f, 0.0f, NAN, 0.3f, 0.0f};
    const int mask[6] = {1, 1, 1, 0, 1, 1};
    float d[6] = {9, 9, 9, 9, 9, 9};
    CHECK_NEAR(group_value(d, value, old, target, mask, 1, 6, 0.2f, NORM_TOKEN_MEAN), 0.19, 1e-6);
    CHECK_LIST(d, 1e-6, -0.1, 0, 0.18, 0, -0.16, 0);
    CHECK_NEAR(group_value(d, value, old, target, mask, 1, 6, 0.0f, NORM_TOKEN_MEAN), 0.172, 1e-6);
    CHECK_LIST(d, 2e-6, -0.1, -0.02, 0.18, 0, -0.16, 0.02);
}

static void chapter_09_one_example_through_every_row(void) {
    // Rewards 1 and 0, two tokens and one; the ratios are 1.25, 1.3 and 0.9; answers have 10 tokens at most.
    //   advantage   centered +-0.5;  rloo +-1;  none 1, 0;  grpo 0.5 / sqrt(0.5) = +-0.707107;  gae: +-0.5
    //   average     token 1/3;   sequence 1/4, 1/4, 1/2;   sum 1/2;   constant 1/20
    // grpo, drgrpo, ppo: 1.25 and 1.3 are above 1.2, clipped; 0.9 x 0.707107 / 2, 0.9 x 0.5 / 20 or / 3
    // dapo: 1.25 is below 1.28: -1.25 x 0.707107 / 3; cispo: 1.3 counts as 1.28: -1.28 x 0.707107 / 3
    // gspo: exp(mean log) = 1.2748 is above 1.04 and 0.9 below 0.97: nothing is left
    static const struct { const char* name; double d[3]; } rows[] = {
        {"nanochat", {-0.166667, -0.166667, 0.166667}}, {"reinforce", {-0.5, -0.5, 0}},
        {"rloo", {-0.5, -0.5, 0.5}}, {"grpo", {0, 0, 0.318198}}, {"drgrpo", {0, 0, 0.0225}},
        {"dapo", {-0.294628, 0, 0.212132}}, {"gspo", {0, 0, 0}}, {"cispo", {-0.294628, -0.301699, 0.212132}},
        {"ppo", {0, 0, 0.15}}};
    const float logp[4] = {-1, -2, -1.5f, NAN}, reward[2] = {1, 0};
    const float old[4] = {-1 - 0.223143551f, -2 - 0.262364264f, -1.5f + 0.105360516f, NAN};
    const int mask[4] = {1, 1, 1, 0};
    CHECK(METHODS == sizeof rows / sizeof *rows);
    for (int i = 0; i < METHODS; i++) {
        RlOptions o = rl_defaults();
        set_method(&o, rows[i].name);
        o.sample.max_new_tokens = 10;
        Learner l = learner_new(NULL, NULL, (Reward){0}, &o);
        float of_answer[2] = {0.5f, -0.5f}, adv[4], d[4];
        compute_advantages(of_answer, reward, 2, l.advantage);
        broadcast_advantages(adv, of_answer, mask, 2, 2);
        method_loss(d, &l, logp, old, NULL, adv, mask, 2, 2);
        for (int t = 0; t < 3; t++) CHECK_NEAR(d[t], rows[i].d[t], 2e-6);
        // a KL term: grpo k3 in the loss, ppo k1 in the reward, and so rloo's when it gets a beta; only dapo
        // draws again and shortens
        int ppo = !strcmp(o.algo, "ppo"), dapo = !strcmp(o.algo, "dapo"), in_reward = ppo || i == 2;
        CHECK((o.beta > 0.0f) == (ppo || i == 3) && l.kl_in_reward == in_reward);
        CHECK(l.estimator == (in_reward ? 1 : 3));
        CHECK((o.resample > 0) == dapo && (o.overlong > 0) == dapo);
    }
}

#ifdef IN_DOUBLE
// through all 27 answers it is -grad J; a third under a mean over three tokens, a seventh under the constant
static void chapter_09_loss_policy_gradient_is_unbiased(void) {
    const int mask[TOY_T] = {1, 1, 1};
    double value[TOY_STATES], exact[TOY_PARAMS];
    toy_solve(value, exact, p_logp, p_reward);
    for (int norm = 0; norm < NORMS; norm++) {
        double grad[TOY_PARAMS] = {0};
        for (int y = 0; y < TOY_ANSWERS; y++) {
            double lp[TOY_T], d[TOY_T], adv[1] = {toy_verify(y) - 0.3}, p = exp(toy_sum_along(p_logp, y));
            int path[TOY_T];
            toy_path(path, y);
            for (int t = 0; t < TOY_T; t++) lp[t] = p_logp[path[t]];
            group_policy_gradient(d, lp, adv, mask, 1, TOY_T, norm);
            for (int t = 0; t < TOY_T; t++) toy_add_score(grad, p_logp, path[t], p * d[t]);
        }
        double factor = norm == NORM_SEQUENCE_SUM ? 1.0 : norm == NORM_CONSTANT ? LIMIT : 3.0;
        for (int e = 0; e < TOY_PARAMS; e++) CHECK_NEAR(grad[e], -exact[e] / factor, 1e-13);
    }
}

static void chapter_09_best_of_n_distribution(void) {
    // N = 3: all 27^3 triples through best_of_n. Ties go to the first, as good as random: draws are alike.
    double p_ref[TOY_ANSWERS], p[TOY_ANSWERS], counted[TOY_ANSWERS] = {0}, grades[TOY_ANSWERS];
    toy_probabilities(p_ref, p_logp_ref);
    for (int y = 0; y < TOY_ANSWERS; y++) grades[y] = y / 9 + y / 3 % 3 + y % 3;      // seven reward levels
    for (int i = 0; i < TOY_ANSWERS * TOY_ANSWERS * TOY_ANSWERS; i++) {
        const int drawn[3] = {i / 729, i / 27 % 27, i % 27};
        const double rewards[3] = {grades[drawn[0]], grades[drawn[1]], grades[drawn[2]]};
        counted[drawn[best_of_n(rewards, 3)]] += p_ref[drawn[0]] * p_ref[drawn[1]] * p_ref[drawn[2]];
    }
    toy_best_of_n(p, p_ref, grades, 3);
    for (int y = 0; y < TOY_ANSWERS; y++) CHECK_NEAR(counted[y], p[y], 1e-13);
}
#endif

static void test_chapter_09(void) {
    RUN_ALL(TEST(chapter_09_losses_match_reference), TEST(chapter_09_preferences_match_reference),
            TEST(chapter_09_loss_limits), TEST(chapter_09_drift_of_80),
            TEST(chapter_09_rejection_sampling), TEST(chapter_09_weights_and_ratios_by_hand),
            TEST(chapter_09_where_w_is_0_nothing_is_read), TEST(chapter_09_finite_far_away),
            TEST(chapter_09_is_clipped), TEST(chapter_09_gspo_by_hand), TEST(chapter_09_cispo_by_hand),
            TEST(chapter_09_value_by_hand), TEST(chapter_09_one_example_through_every_row));
#ifdef IN_DOUBLE
    p_set_up();
    RUN_ALL(TEST(chapter_09_loss_policy_gradient_is_unbiased), TEST(chapter_09_best_of_n_distribution));
#endif
}

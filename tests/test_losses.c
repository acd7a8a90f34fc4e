// Worksheets for chapters 4, 8 and 9. Each expectation has its hand calculation above it. Reference numbers come
// from an independent PyTorch computation in double precision.
#include "chapters.h"

enum { B = 3, T1 = 5, N = B * T1 };
static const float ADV[B] = {0.5f, -0.25f, 1.5f};
static const int MASK[N] = {0, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 1, 1, 0};

// element i of tensor number k: -1.2 + 0.4 sin(0.7 (i+1) + 1.3 k)
static void fill(float* x, int k) {
    for (int i = 0; i < N; i++) x[i] = (float)(-1.2 + 0.4 * sin(0.7 * (i + 1) + 1.3 * k));
}

static void check_array(const float* x, const double* expected, int n, double tolerance) {
    for (int i = 0; i < n; i++) {
        CHECK(fabs(x[i] - expected[i]) <= tolerance * fabs(expected[i]));   // relative
        if (expected[i] == 0.0) CHECK(x[i] == 0.0f);
    }
}

// ---- chapter 4

static void toy_numbering(void) {
    // "021": entry 0 (state "", token 0); its next state is 1; entry 3*1 + 2 = 5 -> state 6; entry 3*6 + 1 = 19.
    // answer = 19 - 12 = 7 = 0*9 + 2*3 + 1
    int path[TOY_T];
    char text[4];
    toy_path(path, 7);
    CHECK(path[0] == 0 && path[1] == 5 && path[2] == 19);
    CHECK_TEXT(toy_text(text, 7), "021");
    CHECK_TEXT(toy_text(text, 26), "222");
    toy_path(path, 26);
    CHECK(path[0] == 2 && path[1] == 11 && path[2] == 38);
    // digits that add up to 3: the six orders of 0,1,2 and 1,1,1
    double passes = 0.0;
    for (int y = 0; y < TOY_ANSWERS; y++) passes += toy_verify(y);
    CHECK(passes == 7.0 && toy_verify(7) == 1.0 && toy_verify(13) == 1.0 && toy_verify(8) == 0.0);
}

static void toy_uniform_by_hand(void) {
    // All logits 0: each answer has probability 1/27, J = 7/27. V("0") = P(rest adds to 3) = 2/9 ("12","21"),
    // V("1") = 3/9 ("02","11","20"), V("2") = 2/9. dJ/dlogit("",1) = 1/3 (3/9 - 7/27) = 2/81,
    // the other two 1/3 (6/27 - 7/27) = -1/81.
    double theta[TOY_PARAMS] = {0}, logp[TOY_PARAMS], reward[TOY_PARAMS], value[TOY_STATES], grad[TOY_PARAMS];
    toy_log_policy(logp, theta);
    toy_rewards(reward);
    CHECK_NEAR(toy_sum_along(logp, 5), -3.0 * log(3.0), 1e-14);
    CHECK_NEAR(toy_solve(value, grad, logp, reward), 7.0 / 27.0, 1e-14);
    CHECK_NEAR(value[1], 2.0 / 9.0, 1e-14);
    CHECK_NEAR(value[2], 3.0 / 9.0, 1e-14);
    CHECK_NEAR(grad[0], -1.0 / 81.0, 1e-14);
    CHECK_NEAR(grad[1], 2.0 / 81.0, 1e-14);
    // state 6 = "02": only token 1 passes: visit 1/9, pi 1/3, Q - V = 1 - 1/3: 1/27 * 2/3
    CHECK_NEAR(grad[19], 2.0 / 81.0, 1e-14);
    // Variance of one rollout's gradient. Each token's score is (2/3, -1/3, -1/3), squared length 2/3; three tokens
    // in three states: 2. So E|sample|^2 = 7/27 * 2 = 14/27. |mean|^2: state "" (-1,2,-1)/81 gives 6/6561, "0" and
    // "2" give (1/9 (-2/9, 1/9, 1/9))^2 = 6/6561 each, "1" gives 0 (every token leaves chance 1/3), and each of the
    // seven two-token prefixes with one way to pass 1/27 (2/3, -1/3, -1/3): 6/6561. Together 10 * 6/6561.
    CHECK_NEAR(toy_rollout_gradient(grad, logp, reward, NULL, 1.0, CREDIT_TO_GO), 14.0 / 27.0 - 60.0 / 6561.0, 1e-14);
}

// ---- chapter 8

static void kl_five_way(void) {
    // answer 1: log_ratio = ln(0.327716/0.0328584) = 2.29994; k2 = 2.29994^2/2 = 2.64486; k3 = e^-2.29994 - 1 + 2.29994
    //           = 0.100265 + 1.29994 = 1.40020
    double logp[5], logp_ref[5], variance, negative;
    float a[5], b[5], k[5];
    five_way(logp, logp_ref, 1.0);
    for (int i = 0; i < 5; i++) { a[i] = (float)logp[i]; b[i] = (float)logp_ref[i]; }
    const double k1[] = {2.29993819084, 1.15921764698, -0.0347414124387, -0.72040138565, -0.575285673516};
    const double k2[] = {2.64485784085, 0.671892776538, 0.000603482869117, 0.259489078223, 0.165476803077};
    const double k3[] = {1.40020323167, 0.472949180689, 0.000610532607669, 0.334856610521, 0.202352605047};
    kl_k1(k, a, b, 5); check_array(k, k1, 5, 1e-5);
    kl_k2(k, a, b, 5); check_array(k, k2, 5, 1e-5);
    kl_k3(k, a, b, 5); check_array(k, k3, 5, 1e-5);
    CHECK_NEAR(exact_kl(logp, logp_ref, 5), 0.6295814148798539, 1e-12);
    CHECK_NEAR(kl_moments(&variance, &negative, logp, logp_ref, 5, 1.0, 1), 0.6295814148798539, 1e-12);
    CHECK_NEAR(variance, 1.6887271833572681, 1e-12);
    CHECK_NEAR(negative, 0.092654768125 + 0.130271218102 + 0.315930276479, 1e-10);
    CHECK_NEAR(kl_moments(&variance, &negative, logp, logp_ref, 5, 1.0, 2), 1.0425499706596935, 1e-12);
    CHECK_NEAR(kl_moments(&variance, &negative, logp, logp_ref, 5, 1.0, 3), 0.6295814148798539, 1e-12);
    CHECK_NEAR(variance, 0.3035254621770531, 1e-12);
    CHECK(negative == 0.0);
    // as printed in D3
    CHECK_NEAR(kl_moments(&variance, &negative, logp, logp_ref, 5, -1.0, 1), -0.6295814148798539, 1e-12);
    CHECK_NEAR(kl_moments(&variance, &negative, logp, logp_ref, 5, -1.0, 3), 2.3948072490134176, 1e-12);
}

static void kl_five_way_gradients(void) {
    const double exact[] = {0.547402302198, 0.0706682715265, -0.0615526775253, -0.175863903842, -0.380653992357};
    const double k3_loss[] = {0.294857359281, 0.0915673879099, -0.00327552627104, -0.137469744573, -0.245679476347};
    double logp[5], logp_ref[5], grad[5], other[5], weight[5];
    five_way(logp, logp_ref, 1.0);
    exact_kl_gradient(grad, other, logp, logp_ref, 5);
    for (int j = 0; j < 5; j++) { CHECK_NEAR(grad[j], exact[j], 1e-11); CHECK_NEAR(other[j], k3_loss[j], 1e-11); }
    for (int use = 0; use < KL_USES; use++) {
        for (int i = 0; i < 5; i++) weight[i] = kl_score_weight(logp[i] - logp_ref[i], use);
        softmax_score_sum(grad, logp, weight, 5);
        for (int j = 0; j < 5; j++) {
            if (use == 0) CHECK_NEAR(grad[j], 0.0, 1e-15);                     // k1 in the loss
            if (use == 1 || use == 3 || use == 4) CHECK_NEAR(grad[j], exact[j], 1e-11);
            if (use == 2) CHECK_NEAR(grad[j], k3_loss[j], 1e-11);
            if (use == 6) CHECK_NEAR(grad[j], exact[j] - k3_loss[j], 1e-11);   // k3 in the reward
            if (use == 7) CHECK_NEAR(grad[j], -exact[j], 1e-11);               // D3's k1 in the reward
        }
    }
}

static void kl_limits(void) {
    // log_ratio -80: k3 = e^80 - 81 = 5.5406e34.  +80: e^-80 - 1 + 80 = 79.  k2 = 3200 both ways.
    float logp[2] = {-90.0f, -10.0f}, ref[2] = {-10.0f, -90.0f}, k[2];
    kl_k1(k, logp, ref, 2); CHECK(k[0] == -80.0f && k[1] == 80.0f);
    kl_k2(k, logp, ref, 2); CHECK(k[0] == 3200.0f && k[1] == 3200.0f);
    kl_k3(k, logp, ref, 2); CHECK_NEAR(k[0] / 5.5406224e34, 1.0, 1e-6); CHECK_NEAR(k[1], 79.0, 1e-6);
    // -5000: e^80 (1 + 4920) = 2.7e38, still a float
    logp[0] = -5010.0f;
    kl_k3(k, logp, ref, 2);
    CHECK(isfinite(k[0]));
    CHECK_NEAR(k[0] / (exp(80.0) * 4921.0), 1.0, 1e-6);
    // log_ratio 1e-4: x^2/2 - x^3/6 = 5e-9 - 1.7e-13 = 4.99983e-9; a float subtraction would return about -1.7e-8
    logp[0] = 1e-4f; ref[0] = 0.0f;
    kl_k3(k, logp, ref, 1);
    CHECK_NEAR(k[0] / 4.99983334e-9, 1.0, 1e-6);
    // log_ratio 1e-9: x^2/2 = 5e-19; only expm1 keeps it, and only in double precision
    logp[0] = 1e-9f;
    kl_k3(k, logp, ref, 1);
    CHECK_NEAR(k[0] / 5e-19, 1.0, 1e-3);
    kl_k3(k, ref, ref, 1); CHECK(k[0] == 0.0f);
    logp[0] = NAN;                                // a NaN must not be hidden
    kl_k3(k, logp, ref, 1); CHECK(isnan(k[0]));
    k[0] = 7.0f; kl_k3(k, logp, ref, 0); CHECK(k[0] == 7.0f);
    for (double x = 1e-12; x < 1e-3; x *= 1.37) {  // never negative, however small
        double slope;
        CHECK(kl_estimate(&slope, x, 3) >= 0.0 && kl_estimate(&slope, -x, 3) >= 0.0);
    }
}

// ---- chapter 9: the reference's numbers

static void losses_match_reference(void) {
    float logp[N], old[N], ref[N], dlogp[N];
    fill(logp, 4); fill(old, 5); fill(ref, 6);
    // 9 sampled tokens in all: A/9 = 0.0555.., -0.0277.., 0.1666..
    const double token[N] = {0, -0.0555555555556, -0.0555555555556, -0.0555555555556, -0.0555555555556,
                             0.0277777777778, 0.0277777777778, 0, 0.0277777777778, 0, 0, 0, -0.166666666667, -0.166666666667, 0};
    CHECK_NEAR(loss_policy_gradient(dlogp, logp, ADV, MASK, B, T1, NORM_TOKEN_MEAN), 0.3785920317065184, 1e-6);
    check_array(dlogp, token, N, 1e-5);
    // 4, 3, 2 tokens in the three sequences: A/(3*4), A/(3*3), A/(3*2)
    const double mean[N] = {0, -0.0416666666667, -0.0416666666667, -0.0416666666667, -0.0416666666667,
                            0.0277777777778, 0.0277777777778, 0, 0.0277777777778, 0, 0, 0, -0.25, -0.25, 0};
    CHECK_NEAR(loss_policy_gradient(dlogp, logp, ADV, MASK, B, T1, NORM_SEQUENCE_MEAN), 0.4729917352301691, 1e-6);
    check_array(dlogp, mean, N, 1e-5);
    // A/3
    const double sum[N] = {0, -0.166666666667, -0.166666666667, -0.166666666667, -0.166666666667,
                           0.0833333333333, 0.0833333333333, 0, 0.0833333333333, 0, 0, 0, -0.5, -0.5, 0};
    CHECK_NEAR(loss_policy_gradient(dlogp, logp, ADV, MASK, B, T1, NORM_SEQUENCE_SUM), 1.135776095119555, 1e-6);
    check_array(dlogp, sum, N, 1e-5);

    const double clip_token[N] = {0, -0.0422001396279, -0.0581949935866, 0, 0, 0.0411325803704, 0.0312475036951};
    CHECK_NEAR(loss_clip(dlogp, logp, old, ADV, MASK, B, T1, 0.2f, 0.2f, NORM_TOKEN_MEAN), -0.5391261602601225, 1e-6);
    check_array(dlogp, clip_token, N, 1e-5);
    CHECK_NEAR(loss_clip(dlogp, logp, old, ADV, MASK, B, T1, 0.2f, 0.28f, NORM_TOKEN_MEAN), -0.5746817158156781, 1e-6);
    check_array(dlogp, clip_token, N, 1e-5);
    const double clip_sequence[N] = {0, -0.031650104721, -0.0436462451899, 0, 0, 0.0411325803704, 0.0312475036951};
    CHECK_NEAR(loss_clip(dlogp, logp, old, ADV, MASK, B, T1, 0.2f, 0.2f, NORM_SEQUENCE_MEAN), -0.6806940436231667, 1e-6);
    check_array(dlogp, clip_sequence, N, 1e-5);

    // the GRPO paper's loss: clipped policy gradient + 0.04 * k3, each averaged in a sequence, then over sequences
    const double grpo[N] = {0, -0.0315339739888, -0.0422883373178, 0.00178199292463, 0.0015875952924,
                            0.0420264285923, 0.0296726181669, 0, -0.00496354719181, 0, 0, 0, 0.00356865163486, 0.00315016359715, 0};
    float dkl[N];
    double loss = loss_clip(dlogp, logp, old, ADV, MASK, B, T1, 0.2f, 0.2f, NORM_SEQUENCE_MEAN);
    loss += 0.04 * loss_kl(dkl, logp, ref, MASK, B, T1, NORM_SEQUENCE_MEAN, 3);
    for (int i = 0; i < N; i++) dlogp[i] += 0.04f * dkl[i];
    CHECK_NEAR(loss, -0.674353881362626, 1e-6);
    check_array(dlogp, grpo, N, 1e-5);

    // SFT: -1/9 on every sampled token
    CHECK_NEAR(loss_sft(dlogp, logp, MASK, B, T1), 1.0677503170154983, 1e-6);
    for (int i = 0; i < N; i++) CHECK_NEAR(dlogp[i], MASK[i] ? -1.0 / 9.0 : 0.0, 1e-7);
}

static void preferences_match_reference(void) {
    // DPO: margin 0.1 ((-12 + 11) - (-15.5 + 14)) = 0.1 * 0.5 = 0.05; loss = log(1 + e^-0.05) = 0.66846;
    //      d/dchosen = -0.1 sigma(-0.05) = -0.1 * 0.4875026 = -0.04875026
    float dc, dr;
    CHECK_NEAR(loss_dpo(&dc, &dr, -12.0f, -15.5f, -11.0f, -14.0f, 0.1f), 0.6684596480132863, 1e-6);
    CHECK_NEAR(dc, -0.04875026035157897, 1e-7);
    CHECK_NEAR(dr, 0.04875026035157897, 1e-7);
    // at the reference: margin 0, loss log 2, gradient -beta/2
    CHECK_NEAR(loss_dpo(&dc, &dr, -3.0f, -4.0f, -3.0f, -4.0f, 0.5f), log(2.0), 1e-7);
    CHECK_NEAR(dc, -0.25, 1e-7);
    // Bradley-Terry: sigma(0.9) = 0.71095; -log = 0.341154; gradient -(1 - 0.71095) = -0.28905
    CHECK_NEAR(loss_reward_model(&dc, &dr, 1.3f, 0.4f), 0.3411538747320878, 1e-6);
    CHECK_NEAR(dc, -0.289050497375, 1e-6);
    CHECK_NEAR(dr, 0.289050497375, 1e-6);
    CHECK_NEAR(sigmoid(0.9), 0.7109495026250039, 1e-12);
    // a margin of -800 costs 800, of +800 nothing
    CHECK_NEAR(loss_reward_model(&dc, &dr, 0.0f, 800.0f), 800.0, 1e-9); CHECK(dc == -1.0f && dr == 1.0f);
    CHECK_NEAR(loss_reward_model(&dc, &dr, 800.0f, 0.0f), 0.0, 1e-9);   CHECK(dc == 0.0f && dr == 0.0f);
    CHECK_NEAR(loss_dpo(&dc, &dr, 80.0f, -80.0f, 0.0f, 0.0f, 1.0f), 0.0, 1e-9); CHECK(isfinite(dc));
    CHECK_NEAR(loss_dpo(&dc, &dr, -80.0f, 80.0f, 0.0f, 0.0f, 1.0f), 160.0, 1e-6); CHECK(dc == -1.0f && dr == 1.0f);
    CHECK_NEAR(loss_dpo(&dc, &dr, 5.0f, -3.0f, 0.0f, 0.0f, 0.0f), log(2.0), 1e-7); CHECK(dc == 0.0f && dr == 0.0f);
}

static void policy_gradient_by_hand(void) {
    // two answers: logp -0.5 -1.0 -1.5 (A = +1) and -2.0 (A = -1); sums -3 and -2
    //   token mean     -(1*-3 + -1*-2)/4 = 0.25,      -1/4 and +1/4
    //   sequence mean  -(-3/3 + 2/1)/2   = -0.5,      -1/6 and +1/2
    //   sequence sum   -(-3 + 2)/2       = 0.5,       -1/2 and +1/2
    const float logp[8] = {-0.5f, -1.0f, -1.5f, NAN, -2.0f, NAN, INFINITY, -9.0f}, adv[2] = {1.0f, -1.0f};
    const int mask[8] = {1, 1, 1, 0, 1, 0, 0, 0};
    const double loss[3] = {0.25, -0.5, 0.5}, first[3] = {-0.25, -1.0 / 6.0, -0.5}, second[3] = {0.25, 0.5, 0.5};
    float d[8];
    for (int norm = 0; norm < 3; norm++) {
        CHECK_NEAR(loss_policy_gradient(d, logp, adv, mask, 2, 4, norm), loss[norm], 1e-7);
        for (int t = 0; t < 3; t++) CHECK_NEAR(d[t], first[norm], 1e-7);
        CHECK_NEAR(d[4], second[norm], 1e-7);
        CHECK(d[3] == 0.0f && d[5] == 0.0f && d[6] == 0.0f && d[7] == 0.0f);   // masked: never read, exactly 0
    }
}

static void clip_four_cases(void) {
    // bounds 0.8 and 1.28        A = +1: min(r, clip r)    A = -1: min(-r, -clip r)
    //   ratio 0.5   +1: min(0.5, 0.8) = 0.5 -> loss -0.5, gradient -0.5     -1: min(-0.5, -0.8) -> 0.8, gradient 0
    //   ratio 1.5   +1: min(1.5, 1.28)      -> loss -1.28, gradient 0       -1: min(-1.5, -1.28) -> 1.5, gradient 1.5
    const int one[1] = {1};
    const struct { double ratio; float adv; double loss, slope; } cases[] = {
        {0.5, 1.0f, -0.5, -0.5}, {1.5, 1.0f, -1.28, 0.0}, {0.5, -1.0f, 0.8, 0.0}, {1.5, -1.0f, 1.5, 1.5},
        {1.0, 1.0f, -1.0, -1.0}, {1.0, -1.0f, 1.0, 1.0}, {1.25, 1.0f, -1.25, -1.25}, {0.9, -1.0f, 0.9, 0.9}};
    for (int i = 0; i < 8; i++) {
        float old[1] = {-2.0f}, logp[1] = {(float)(-2.0 + log(cases[i].ratio))}, d[1];
        CHECK_NEAR(loss_clip(d, logp, old, &cases[i].adv, one, 1, 1, 0.2f, 0.28f, NORM_TOKEN_MEAN), cases[i].loss, 1e-6);
        CHECK_NEAR(d[0], cases[i].slope, 1e-6);
        if (cases[i].slope == 0.0) CHECK(d[0] == 0.0f);
    }
    // on-policy the clipped loss has the policy gradient's gradient, exactly, under every normalization
    float logp[N], a[N], b[N];
    fill(logp, 4);
    for (int norm = 0; norm < 3; norm++) {
        loss_policy_gradient(a, logp, ADV, MASK, B, T1, norm);
        loss_clip(b, logp, logp, ADV, MASK, B, T1, 0.2f, 0.2f, norm);
        for (int i = 0; i < N; i++) CHECK(a[i] == b[i]);
    }
}

static void loss_limits(void) {
    float logp[N], other[N], d[N];
    const int none[N] = {0};
    fill(logp, 4); fill(other, 5);
    // all forced: loss 0, gradient exactly 0, under every norm and loss
    for (int norm = 0; norm < 3; norm++) {
        for (int which = 0; which < 6; which++) {
            for (int i = 0; i < N; i++) d[i] = 9.0f;
            double loss = which == 0 ? loss_policy_gradient(d, logp, ADV, none, B, T1, norm)
                        : which == 1 ? loss_clip(d, logp, other, ADV, none, B, T1, 0.2f, 0.2f, norm)
                        : which == 2 ? loss_sft(d, logp, none, B, T1)
                                     : loss_kl(d, logp, other, none, B, T1, norm, which - 2);
            CHECK(loss == 0.0);
            for (int i = 0; i < N; i++) CHECK(d[i] == 0.0f);
        }
    }
    // an empty row adds nothing and still counts: sequence mean of rows {-1 * -2.0} and {} is 2.0/2 = 1
    const float two[2] = {-2.0f, -5.0f}, ones[2] = {1.0f, 1.0f};
    const int first_only[2] = {1, 0};
    CHECK_NEAR(loss_policy_gradient(d, two, ones, first_only, 2, 1, NORM_SEQUENCE_MEAN), 1.0, 1e-7);
    CHECK_NEAR(d[0], -0.5, 1e-7); CHECK(d[1] == 0.0f);
    CHECK_NEAR(loss_policy_gradient(d, two, ones, first_only, 2, 1, NORM_SEQUENCE_SUM), 1.0, 1e-7);
    CHECK_NEAR(loss_policy_gradient(d, two, ones, first_only, 2, 1, NORM_TOKEN_MEAN), 2.0, 1e-7);
    // one token, one rollout: the three norms are the same
    for (int norm = 0; norm < 3; norm++)
        CHECK_NEAR(loss_policy_gradient(d, two, ones, first_only, 1, 1, norm), 2.0, 1e-7);
    // equal rewards: advantages 0, gradient exactly 0
    const float zero[B] = {0};
    CHECK(loss_policy_gradient(d, logp, zero, MASK, B, T1, NORM_TOKEN_MEAN) == 0.0);
    for (int i = 0; i < N; i++) CHECK(d[i] == 0.0f);
    CHECK(loss_clip(d, logp, other, zero, MASK, B, T1, 0.2f, 0.2f, NORM_TOKEN_MEAN) == 0.0);
    for (int i = 0; i < N; i++) CHECK(d[i] == 0.0f);
    // no sequence, no token, unknown norm, unknown estimator
    d[0] = 9.0f;
    CHECK(loss_sft(d, logp, MASK, 0, T1) == 0.0 && loss_sft(d, logp, MASK, B, 0) == 0.0);
    CHECK(loss_sft(d, logp, MASK, -1, T1) == 0.0 && loss_sft(d, logp, MASK, B, -1) == 0.0);
    CHECK(d[0] == 9.0f);
    CHECK(isnan(loss_policy_gradient(d, logp, ADV, MASK, B, T1, 3)));
    for (int i = 0; i < N; i++) CHECK(d[i] == 0.0f);
    d[2] = 9.0f;
    CHECK(isnan(loss_kl(d, logp, other, MASK, B, T1, NORM_TOKEN_MEAN, 0)));
    CHECK(isnan(loss_kl(d, logp, other, MASK, B, T1, NORM_TOKEN_MEAN, 4)));
    CHECK(d[2] == 0.0f);
    // K = 2, advantages +0.5 and -0.5: the two rows get opposite gradients
    const float pair[2] = {0.5f, -0.5f};
    const int both[2] = {1, 1};
    loss_policy_gradient(d, two, pair, both, 2, 1, NORM_SEQUENCE_MEAN);
    CHECK(d[0] == -0.25f && d[1] == 0.25f);
}

static void drift_of_80(void) {
    // e^80 = 5.5406e34, e^-80 = 1.8049e-35; both are floats
    const int one[1] = {1};
    const float low[1] = {-90.0f}, high[1] = {-10.0f}, plus[1] = {1.0f}, minus[1] = {-1.0f};
    float d[1];
    CHECK_NEAR(loss_clip(d, high, low, plus, one, 1, 1, 0.2f, 0.2f, 0), -1.2, 1e-6);         CHECK(d[0] == 0.0f);
    CHECK_NEAR(loss_clip(d, high, low, minus, one, 1, 1, 0.2f, 0.2f, 0) / exp(80.0), 1.0, 1e-9);
    CHECK(isfinite(d[0])); CHECK_NEAR(d[0] / 5.5406224e34, 1.0, 1e-6);
    CHECK_NEAR(loss_clip(d, low, high, plus, one, 1, 1, 0.2f, 0.2f, 0), -exp(-80.0), 1e-40); CHECK(d[0] < 0.0f);
    CHECK_NEAR(loss_clip(d, low, high, minus, one, 1, 1, 0.2f, 0.2f, 0), 0.8, 1e-6);         CHECK(d[0] == 0.0f);
    for (int k = 1; k <= 3; k++) {
        CHECK(isfinite(loss_kl(d, high, low, one, 1, 1, 0, k)) && isfinite(d[0]) && d[0] > 0.0f);
        CHECK(isfinite(loss_kl(d, low, high, one, 1, 1, 0, k)) && isfinite(d[0]));
        if (k > 1) CHECK(d[0] < 0.0f);                     // far below the reference: k2 and k3 pull back up
    }
    // far beyond: the loss goes on along the tangent, e^80 (1 + 1000 - 80), with the slope of e^80, and never inf
    const float far[1] = {-1010.0f};
    CHECK_NEAR(loss_clip(d, high, far, minus, one, 1, 1, 0.2f, 0.2f, 0) / (exp(80.0) * 921.0), 1.0, 1e-6);
    CHECK(d[0] > 5.5e34f && isfinite(d[0]));
    CHECK(isfinite(loss_kl(d, far, high, one, 1, 1, 0, 3)) && d[0] < -5.5e34f && isfinite(d[0]));
}

static void rejection_sampling(void) {
    const float a[] = {0.0f, 1.0f, 1.0f, 0.0f}, b[] = {NAN, -3.0f, -1.0f}, c[] = {NAN, NAN};
    CHECK(best_of_n(a, 4) == 1);   // the first among equals
    CHECK(best_of_n(a, 1) == 0);
    CHECK(best_of_n(a, 0) == -1);
    CHECK(best_of_n(b, 3) == 2);   // a NaN never wins
    CHECK(best_of_n(c, 2) == -1);
}

static void lessons_run(void) {
    clock_t start = clock();
    lesson_4(0); lesson_8(0); lesson_9(0);
    CHECK((double)(clock() - start) / CLOCKS_PER_SEC < 0.3);
}

int main(int argc, char** argv) {
    RUN(toy_numbering);
    RUN(toy_uniform_by_hand);
    RUN(kl_five_way);
    RUN(kl_five_way_gradients);
    RUN(kl_limits);
    RUN(losses_match_reference);
    RUN(preferences_match_reference);
    RUN(policy_gradient_by_hand);
    RUN(clip_four_cases);
    RUN(loss_limits);
    RUN(drift_of_80);
    RUN(rejection_sampling);
    if (argc > 1 && !strcmp(argv[1], "lessons")) RUN(lessons_run);
    else (void)lessons_run;
    return check_failed != 0;
}

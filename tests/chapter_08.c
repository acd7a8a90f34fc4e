// chapter_08.c - reward minus beta KL, and what k1, k2, k3 estimate. The numbers of the five-way policy come
// from the independent reference, the others are worked by hand; in double the sums over all 27 answers.

static void (*const estimators[3])(float*, const float*, const float*, int) = {kl_k1, kl_k2, kl_k3};

static void chapter_08_five_way(void) {
    static const double expected[3][5] = {
        {2.29993819084, 1.15921764698, -0.0347414124387, -0.72040138565, -0.575285673516},
        {2.64485784085, 0.671892776538, 0.000603482869117, 0.259489078223, 0.165476803077},
        {1.40020323167, 0.472949180689, 0.000610532607669, 0.334856610521, 0.202352605047}};
    // the last two as printed in D3, with the sign of the log-ratio turned
    static const struct { double sign; int k; double mean, variance; } moments[] = {
        {1, 1, 0.6295814148798539, 1.6887271833572681}, {1, 2, 1.0425499706596935, NAN},
        {1, 3, 0.6295814148798539, 0.3035254621770531}, {-1, 1, -0.6295814148798539, NAN},
        {-1, 3, 2.3948072490134176, NAN}};
    double logp[5], logp_ref[5], variance;
    float a[5], b[5], k[5];
    five_way(logp, logp_ref, 1.0);
    for (int i = 0; i < 5; i++) {
        a[i] = (float)logp[i];
        b[i] = (float)logp_ref[i];
    }
    for (int i = 0; i < 3; i++) {
        estimators[i](k, a, b, 5);
        check_array(k, expected[i], 5, 1e-5);
    }
    CHECK_NEAR(exact_kl(logp, logp_ref, 5), 0.6295814148798539, 1e-12);
    for (int i = 0; i < 5; i++) {
        double mean = kl_moments(&variance, logp, logp_ref, 5, moments[i].sign, moments[i].k);
        CHECK_NEAR(mean, moments[i].mean, 1e-12);
        if (!isnan(moments[i].variance)) CHECK_NEAR(variance, moments[i].variance, 1e-12);
    }
}

// What the expected gradient of each use is: of KL(pi||ref) times `exact` plus of KL(ref||pi) times `other`.
// k1 in the loss is 0; k2 in the loss, k3 times the ratio and k1 in the reward are exact; k3 in the loss is
// that of the other KL, in the reward the difference; D3's k1 in the reward has the wrong sign. Uses 5 and 8
// are neither.
static const struct { int known, exact, other; } kl_gradient[KL_USES] = {
    {1, 0, 0}, {1, 1, 0}, {1, 0, 1}, {1, 1, 0}, {1, 1, 0}, {0, 0, 0}, {1, 1, -1}, {1, -1, 0}, {0, 0, 0}};

static void check_kl_use(int use, const double* grad, const double* exact, const double* other, int n,
                         double tolerance) {
    for (int j = 0; j < n && kl_gradient[use].known; j++)
        CHECK_NEAR(grad[j], kl_gradient[use].exact * exact[j] + kl_gradient[use].other * other[j], tolerance);
}

static void chapter_08_five_way_gradients(void) {
    static const double exact[] = {0.547402302198, 0.0706682715265, -0.0615526775253, -0.175863903842,
                                   -0.380653992357};
    static const double k3_loss[] = {0.294857359281, 0.0915673879099, -0.00327552627104, -0.137469744573,
                                     -0.245679476347};
    double logp[5], logp_ref[5], grad[5], other[5], weight[5];
    five_way(logp, logp_ref, 1.0);
    exact_kl_gradient(grad, other, logp, logp_ref, 5);
    for (int j = 0; j < 5; j++) CHECK_NEAR(grad[j], exact[j], 1e-11);
    for (int j = 0; j < 5; j++) CHECK_NEAR(other[j], k3_loss[j], 1e-11);
    for (int use = 0; use < KL_USES; use++) {
        for (int i = 0; i < 5; i++) weight[i] = kl_score_weight(logp[i] - logp_ref[i], use);
        softmax_score_sum(grad, logp, weight, 5);
        check_kl_use(use, grad, exact, k3_loss, 5, 1e-11);
    }
}

static void chapter_08_limits(void) {
    // -80: k3 = e^80 - 81 = 5.5406e34.  +80: e^-80 - 1 + 80 = 79.  k2 = 3200 both ways.
    // -5000: e^80 (1 + 4920) = 2.7e38, still a float
    // 1e-4: x^2/2 - x^3/6 = 5e-9 - 1.7e-13 = 4.99983e-9; a float subtraction would return about -1.7e-8
    // 1e-9: x^2/2 = 5e-19; only expm1 keeps it, and only in double precision
    static const struct { float logp, ref; int k; double expected; } cases[] = {
        {-90, -10, 1, -80}, {-10, -90, 1, 80}, {-90, -10, 2, 3200}, {-10, -90, 2, 3200},
        {-90, -10, 3, 5.5406224e34}, {-10, -90, 3, 79}, {-5010, -10, 3, 2.7265402e38},
        {1e-4f, 0, 3, 4.99983334e-9}, {1e-9f, 0, 3, 5e-19}, {-3, -3, 3, 0}};
    float k[1] = {7}, none[1] = {NAN};
    kl_k3(k, k, k, 0);
    CHECK(k[0] == 7.0f);
    for (int i = 0; i < 10; i++) {
        estimators[cases[i].k - 1](k, &cases[i].logp, &cases[i].ref, 1);
        check_array(k, &cases[i].expected, 1, 1e-6);
    }
    kl_k3(k, none, &cases[0].ref, 1);              // a NaN must not be hidden
    CHECK(isnan(k[0]));
    for (double x = 1e-12; x < 1e-3; x *= 1.37) {  // never negative, however small
        double slope;
        CHECK(kl_estimate(&slope, x, 3) >= 0.0 && kl_estimate(&slope, -x, 3) >= 0.0);
    }
}

static void chapter_08_token_rewards_by_hand(void) {
    // Two answers, rewards 1 and -2, beta 1/2, kl 0.4 and 0.2; then 0.6, a forced token, and 1.0 at the end.
    //   sum    -0.2, 1 - 0.1 = 0.9         -0.3, 0, -2 - 0.5 = -2.5
    //   mean   -0.1, 1 - 0.05 = 0.95       -0.15, 0, -2 - 0.25 = -2.25             over two tokens each
    // An answer without a sampled token keeps nothing.
    const float reward[3] = {1, -2, 5}, kl[9] = {0.4f, 0.2f, NAN, 0.6f, NAN, 1.0f, NAN, NAN, NAN};
    const int mask[9] = {1, 1, 0, 1, 0, 1, 0, 0, 0};
    float out[9] = {9, 9, 9, 9, 9, 9, 9, 9, 9};
    token_rewards(out, reward, kl, mask, 3, 3, 0.5f, 0);
    CHECK_LIST(out, 1e-6, -0.2, 0.9, 0, -0.3, 0, -2.5, 0, 0, 0);
    token_rewards(out, reward, kl, mask, 3, 3, 0.5f, 1);
    CHECK_LIST(out, 1e-6, -0.1, 0.95, 0, -0.15, 0, -2.25, 0, 0, 0);
    token_rewards(out, reward, NULL, mask, 3, 3, 0.5f, 1); // no penalty: the reward at the last sampled token
    CHECK_LIST(out, 0.0, 0, 1, 0, 0, 0, -2, 0, 0, 0);
}

// all three, and their slopes, for log-ratios within +-6000 nats
static void chapter_08_finite_far_away(void) {
    const float w = 1, ref = -6001;
    for (float x = -6000.0f; x <= 6000.0f; x += 125.0f)
        for (int k = 0; k < 3; k++) {
            float logp = ref + x, kl, d;
            estimators[k](&kl, &logp, &ref, 1);
            CHECK(isfinite(kl) && (k == 0 || kl >= 0.0f));
            CHECK(isfinite(loss_kl(&d, &logp, &ref, &w, 1, k + 1)) && isfinite(d));
        }
}

#ifdef IN_DOUBLE
// KL(theta) = J without a penalty minus J with beta 1: the derivative of its 27 terms
static double c08_kl(void) { return p_objective(p_theta, 0.0) - p_objective(p_theta, 1.0); }

static void chapter_08_kl_on_27_answers(void) {
    double value[TOY_STATES], exact[TOY_PARAMS], grad[TOY_PARAMS], ratio[TOY_PARAMS], table[TOY_PARAMS];
    double all[TOY_ANSWERS], all_ref[TOY_ANSWERS], weight[TOY_ANSWERS], other[TOY_PARAMS], variance, d;
    for (int e = 0; e < TOY_PARAMS; e++) ratio[e] = p_logp[e] - p_logp_ref[e];
    for (int y = 0; y < TOY_ANSWERS; y++) {
        all[y] = toy_sum_along(p_logp, y);
        all_ref[y] = toy_sum_along(p_logp_ref, y);
    }
    double kl = exact_kl(all, all_ref, TOY_ANSWERS);
    CHECK_NEAR(toy_solve(value, exact, p_logp, ratio), kl, 1e-13);
    for (int e = 0; e < TOY_PARAMS; e += 5)
        CHECK_GRADIENT_OFF(exact[e], slope(c08_kl, &p_theta[e], NULL), 1e-10);
    // k1 and k3 unbiased, whole answers and token sums; k2 not
    for (int k = 1; k <= 3; k++) {
        double mean = kl_moments(&variance, all, all_ref, TOY_ANSWERS, 1.0, k), sum = 0.0;
        for (int e = 0; e < TOY_PARAMS; e++) table[e] = kl_estimate(&d, ratio[e], k);
        for (int y = 0; y < TOY_ANSWERS; y++) sum += exp(all[y]) * toy_sum_along(table, y);
        if (k == 2) CHECK(fabs(mean - kl) > 1e-2 && fabs(sum - kl) > 1e-2);
        else { CHECK_NEAR(mean, kl, 1e-13); CHECK_NEAR(sum, kl, 1e-13); }
    }
    for (int y = 0; y < TOY_ANSWERS; y++) weight[y] = -exp(all_ref[y]);
    toy_answer_gradient(other, p_logp, weight);            // grad KL(ref||pi) = -sum_y ref(y) grad log pi(y)
    for (int use = 0; use < KL_USES; use++) {
        for (int y = 0; y < TOY_ANSWERS; y++)
            weight[y] = exp(all[y]) * kl_score_weight(all[y] - all_ref[y], use);
        toy_answer_gradient(grad, p_logp, weight);
        check_kl_use(use, grad, exact, other, TOY_PARAMS, 1e-13);
        if (!kl_gradient[use].known) CHECK(toy_relative_error(grad, exact, TOY_PARAMS) > 0.1);
    }
    // token by token: k1 in the reward with the return stays exact; k2 in the loss does not
    toy_rollout_gradient(grad, p_logp, ratio, NULL, 1.0, CREDIT_TO_GO);
    CHECK(toy_largest_difference(grad, exact, TOY_PARAMS) < 1e-13);
    toy_rollout_gradient(grad, p_logp, ratio, NULL, 1.0, CREDIT_OWN);      // k2's slope is the log-ratio
    CHECK(toy_relative_error(grad, exact, TOY_PARAMS) > 0.1);
}

// pi_ref exp(r/beta) / Z; plain gradient ascent ends there, with J = beta log Z.
static void chapter_08_regularized_optimum(void) {
    double at[TOY_PARAMS], best[TOY_ANSWERS], beta = 0.7, Z = 0.0, log_Z;
    log_Z = toy_optimum(best, p_logp_ref, p_reward, beta);
    for (int y = 0; y < TOY_ANSWERS; y++) {
        double tilted = exp(toy_sum_along(p_logp_ref, y) + toy_verify(y) / beta);
        CHECK_NEAR(best[y] * exp(log_Z), tilted, 1e-12);
        Z += tilted;
    }
    CHECK_NEAR(log_Z, log(Z), 1e-12);
    memcpy(at, p_theta_ref, sizeof at);
    CHECK(toy_ascend(at, p_logp_ref, p_reward, beta, 0.0, 0) == 0.0);      // no step, no J
    CHECK_NEAR(toy_ascend(at, p_logp_ref, p_reward, beta, 2.0, 10000), beta * log_Z, 1e-12);
    CHECK_NEAR(p_objective(at, beta), beta * log_Z, 1e-12);
    CHECK(p_objective(p_theta, beta) < beta * log_Z);
}

static void chapter_08_gradients_under_drift(void) {
    // Log-ratios up to and beyond 80 on both sides: value and slope must still belong together, and a use in
    // the loss weighs a score by that slope.
    static const double drifts[] = {-120.0, -81.0, -79.0, -40.0, -1e-3, 1e-3, 40.0, 79.0, 81.0, 120.0};
    for (int i = 0; i < 30; i++) {
        double slope, unused, x = drifts[i % 10], h = 1e-5;
        int k = i / 10 + 1;
        kl_estimate(&slope, x, k);
        CHECK(kl_score_weight(x, k - 1) == slope);
        double difference = kl_estimate(&unused, x + h, k) - kl_estimate(&unused, x - h, k);
        CHECK_GRADIENT_OFF(slope, difference / (2 * h), 0);
    }
}
#endif

static void test_chapter_08(void) {
    RUN_ALL(TEST(chapter_08_five_way), TEST(chapter_08_five_way_gradients), TEST(chapter_08_limits),
            TEST(chapter_08_token_rewards_by_hand), TEST(chapter_08_finite_far_away));
#ifdef IN_DOUBLE
    p_set_up();
    RUN_ALL(TEST(chapter_08_kl_on_27_answers), TEST(chapter_08_regularized_optimum),
            TEST(chapter_08_gradients_under_drift));
#endif
}

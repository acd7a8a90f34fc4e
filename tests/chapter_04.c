// chapter_04.c - why it is a bandit: the model of 27 answers by hand and, in double, its exact sums.

static void chapter_04_numbering(void) {
    // "021": entry 0 (state "", token 0); its next state is 1; entry 3*1 + 2 = 5 -> state 6; entry 3*6 + 1 =
    // 19. answer = 19 - 12 = 7 = 0*9 + 2*3 + 1
    int path[TOY_T];
    toy_path(path, 7);
    CHECK_LIST(path, 0.0, 0, 5, 19);
    toy_path(path, 26);
    CHECK_LIST(path, 0.0, 2, 11, 38);
    // digits that add up to 3: the six orders of 0,1,2 and 1,1,1
    double passes = 0.0;
    for (int y = 0; y < TOY_ANSWERS; y++) passes += toy_verify(y);
    CHECK(passes == 7.0 && toy_verify(7) == 1.0 && toy_verify(13) == 1.0 && toy_verify(8) == 0.0);
}

static void chapter_04_uniform_by_hand(void) {
    // All logits 0: each answer has probability 1/27, J = 7/27. V("0") = P(rest adds to 3) = 2/9 ("12","21"),
    // V("1") = 3/9 ("02","11","20"), V("2") = 2/9. dJ/dlogit("",1) = 1/3 (3/9 - 7/27) = 2/81,
    // the other two 1/3 (6/27 - 7/27) = -1/81.
    double theta[TOY_PARAMS] = {0}, logp[TOY_PARAMS], reward[TOY_PARAMS], value[TOY_STATES], grad[TOY_PARAMS];
    toy_log_policy(logp, theta);
    toy_rewards(reward);
    CHECK_NEAR(toy_sum_along(logp, 5), -3.0 * log(3.0), 1e-14);
    CHECK_NEAR(toy_solve(value, grad, logp, reward), 7.0 / 27.0, 1e-14);
    CHECK_LIST(value, 1e-14, 7.0 / 27, 2.0 / 9, 3.0 / 9, 2.0 / 9);
    CHECK_LIST(grad, 1e-13, -1.0 / 81, 2.0 / 81, -1.0 / 81);
    // state 6 = "02": only token 1 passes: visit 1/9, pi 1/3, Q - V = 1 - 1/3: 1/27 * 2/3
    CHECK_NEAR(grad[19], 2.0 / 81.0, 1e-14);
    // Variance of one rollout's gradient. Each token's score is (2/3, -1/3, -1/3), squared length 2/3; three
    // tokens in three states: 2. So E|sample|^2 = 7/27 * 2 = 14/27. |mean|^2: state "" (-1,2,-1)/81 gives
    // 6/6561, "0" and "2" give (1/9 (-2/9, 1/9, 1/9))^2 = 6/6561 each, "1" gives 0 (every token leaves chance
    // 1/3), and each of the seven two-token prefixes with one way to pass 1/27 (2/3, -1/3, -1/3): 6/6561.
    // Together 10 * 6/6561.
    CHECK_NEAR(toy_rollout_gradient(grad, logp, reward, NULL, 1.0, CREDIT_TO_GO), 14.0 / 27.0 - 60.0 / 6561.0,
               1e-14);
}

#ifdef IN_DOUBLE
static double c04_beta;
static double c04_objective(void) { return p_objective(p_theta, c04_beta); }

static void chapter_04_exact_gradients_are_derivatives(void) {
    // MDP gradient against central differences of the 27-term sum, without (beta 0) and with the KL penalty
    for (double beta = 0.0; beta < 1.0; beta += 0.3) {
        double value[TOY_STATES], grad[TOY_PARAMS], penalized[TOY_PARAMS];
        c04_beta = beta;
        for (int e = 0; e < TOY_PARAMS; e++) penalized[e] = p_reward[e] - beta * (p_logp[e] - p_logp_ref[e]);
        CHECK_NEAR(toy_solve(value, grad, p_logp, penalized), p_objective(p_theta, beta), 1e-13);
        for (int e = 0; e < TOY_PARAMS; e++)
            CHECK_GRADIENT_OFF(grad[e], slope(c04_objective, &p_theta[e], NULL), 1e-10);
    }
    double total = 0.0;
    for (int y = 0; y < TOY_ANSWERS; y++) total += exp(toy_sum_along(p_logp, y));
    CHECK_NEAR(total, 1.0, 1e-14);
}

// The variance of the gradient of one rollout, whose mean is the exact one.
static double c04_variance(const double* exact, const double* reward, const double* baseline, int credit) {
    double grad[TOY_PARAMS], variance = toy_rollout_gradient(grad, p_logp, reward, baseline, 1.0, credit);
    for (int e = 0; e < TOY_PARAMS; e++) CHECK_NEAR(grad[e], exact[e], 1e-12);
    return variance;
}

static void chapter_04_views_and_baselines_agree(void) {
    double value[TOY_STATES], exact[TOY_PARAMS], grad[TOY_PARAMS], weight[TOY_ANSWERS], constant[TOY_STATES];
    double J = toy_solve(value, exact, p_logp, p_reward);
    for (int y = 0; y < TOY_ANSWERS; y++) weight[y] = exp(toy_sum_along(p_logp, y)) * toy_verify(y);
    toy_answer_gradient(grad, p_logp, weight);
    CHECK(toy_largest_difference(grad, exact, TOY_PARAMS) < 1e-12);
    double none = c04_variance(exact, p_reward, NULL, CREDIT_WHOLE);
    CHECK_NEAR(c04_variance(exact, p_reward, NULL, CREDIT_TO_GO), none, 1e-12); // one reward, at the end
    CHECK(c04_variance(exact, p_reward, value, CREDIT_TO_GO) < none);
    for (int s = 0; s < TOY_STATES; s++) constant[s] = J; // the same mean, and less variance than none
    CHECK(c04_variance(exact, p_reward, constant, CREDIT_WHOLE) < none);
    // a reward at every token: its own reward only is wrong, whole and to-go are right
    double paid[TOY_PARAMS];
    fill(paid, TOY_PARAMS, 5, 0.5, 0.2);
    toy_solve(value, exact, p_logp, paid);
    none = c04_variance(exact, paid, NULL, CREDIT_WHOLE);
    CHECK(c04_variance(exact, paid, NULL, CREDIT_TO_GO) < none);
    toy_rollout_gradient(grad, p_logp, paid, NULL, 1.0, CREDIT_OWN);
    CHECK(toy_largest_difference(grad, exact, TOY_PARAMS) > 1e-2);
}

#endif

static void test_chapter_04(void) {
    RUN_ALL(TEST(chapter_04_numbering), TEST(chapter_04_uniform_by_hand));
#ifdef IN_DOUBLE
    p_set_up();
    RUN_ALL(TEST(chapter_04_exact_gradients_are_derivatives), TEST(chapter_04_views_and_baselines_agree));
#endif
}

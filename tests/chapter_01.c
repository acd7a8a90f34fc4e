// chapter_01.c - the language of RL: return, values, trajectories. The working stands beside its value.

static void chapter_01_discounted_return(void) {                // more of it: the worksheet
    const double r[3] = {1.0, 2.0, 3.0};
    CHECK(discounted_return(r, 3, 1.0) == 6.0 && discounted_return(r, 1, 0.9) == 1.0);
    CHECK(discounted_return(r, 3, 0.0) == 1.0);                 // 0^0 = 1: the first reward counts in full
    CHECK(discounted_return(r, 0, 0.9) == 0.0 && discounted_return(r, -1, 0.9) == 0.0);
}

static void chapter_01_chain_values(void) {
    double V[5], Q[5][2];
    ChainPolicy coin = {{.5, .5, .5, .5, .5}}, right = {{.75, .75, .75, .75, .75}};
    solve_chain(V, Q, &coin, 1.0 / 6.0, 1.0);
    CHECK_LIST(V, 1e-13, 0, 0.25, 0.5, 0.75, 0);                // the goal is final: nothing comes after it
    CHECK_LIST(Q[2], 1e-13, 1.0 / 3, 2.0 / 3);                  // right: 5/6 * 3/4 + 1/6 * 1/4 = 16/24
    CHECK_NEAR(Q[3][CHAIN_RIGHT], 11.0 / 12.0, 1e-13);          // 5/6 * 1 + 1/6 * 1/2
    solve_chain(V, Q, &right, 1.0 / 6.0, 1.0);
    CHECK_LIST(V, 1e-13, 0, 8.0 / 15, 12.0 / 15, 14.0 / 15, 0);
    CHECK_LIST(Q[2], 1e-13, 54.0 / 90, 78.0 / 90);              // 5/6 * 8/15 + 1/6 * 14/15; right: 5 to 1
    for (int s = 1; s < 4; s++) {
        // one step goes right with 3/4 * 5/6 + 1/4 * 1/6 = 2/3, x = 1/2: gambler's ruin (1 - x^s) / (1 - x^4)
        CHECK_NEAR(V[s], (1.0 - pow(0.5, s)) / (1.0 - pow(0.5, 4)), 1e-13);
        CHECK_NEAR(0.75 * (Q[s][CHAIN_RIGHT] - V[s]) + 0.25 * (Q[s][CHAIN_LEFT] - V[s]), 0.0, 1e-13);
    }
    solve_chain(V, Q, &coin, 1.0 / 6.0, 0.9);                   // V2 = 0.405 V2 + 0.225
    const double middle = 0.225 / 0.595;
    CHECK_LIST(V, 1e-13, 0, 0.45 * middle, middle, 0.5 + 0.45 * middle, 0);
}

static void chapter_01_trajectory_probability(void) {
    ChainPolicy pi = {{.75, .75, .75, .75, .75}};
    Trajectory tau = {4, {2, 3, 2, 3, 4}, {1, 1, 1, 1}, {0, 0, 0, 1}};
    double a, b, total = trajectory_logprob(&a, &b, &tau, &pi, 1.0 / 6.0);
    CHECK_NEAR(exp(a), 81.0 / 256.0, 1e-14);                    // (3/4)^4
    CHECK_NEAR(exp(b), 125.0 / 1296.0, 1e-14);                  // (5/6)^3 * 1/6
    CHECK_NEAR(exp(total), 81.0 / 256.0 * 125.0 / 1296.0, 1e-14);
    tau.action[1] = CHAIN_LEFT;                                 // left, and it goes left: 1/4 and 5/6
    trajectory_logprob(&a, &b, &tau, &pi, 1.0 / 6.0);
    CHECK_NEAR(exp(a), 27.0 / 256.0, 1e-14);
    CHECK_NEAR(exp(b), 625.0 / 1296.0, 1e-14);
    for (int action = 0; action < 2; action++) {                // p(. | s, a) sums to 1
        double sum = 0.0;
        for (int next = 0; next < 5; next++) sum += chain_dynamics(0.2, 2, action, next);
        CHECK_NEAR(sum, 1.0, 1e-15);
    }
}

static double c01_theta[5] = {0, 0.3, -0.2, 0.9, 0}, c01_gradient[5];

// E[G] over all trajectories of at most six steps; E[G score] goes to c01_gradient. The digits of `path` to
// base 4 are the steps; one that ends before its digits do is counted where the others are 0.
static double c01_J(void) {
    ChainPolicy pi = chain_policy_from(c01_theta);
    double J = 0.0, score[5], a, b, pG;
    memset(c01_gradient, 0, sizeof c01_gradient);
    for (int path = 0; path < 4096; path++) {
        Trajectory tau = {.state = {2}};
        int rest = path;
        for (; tau.T < 6 && !chain_is_final(tau.state[tau.T]); tau.T++, rest /= 4) {
            tau.action[tau.T] = rest & 1;
            tau.state[tau.T + 1] = tau.state[tau.T] + (rest & 2 ? 1 : -1);
            tau.reward[tau.T] = chain_reward(tau.state[tau.T + 1]);
        }
        if (rest) continue;
        pG = exp(trajectory_logprob(&a, &b, &tau, &pi, 0.2)) * discounted_return(tau.reward, tau.T, 0.9);
        score_trajectory(score, &tau, &pi);
        for (int s = 0; s < 5; s++) c01_gradient[s] += pG * score[s];
        J += pG;
    }
    return J;
}

static void chapter_01_policy_gradient_over_all_trajectories(void) {
    double gradient[5];
    c01_J();
    memcpy(gradient, c01_gradient, sizeof gradient);
    for (int s = 0; s < 5; s++) CHECK_GRADIENT(gradient[s], slope(c01_J, &c01_theta[s], NULL));
}

// The sampler obeys pi, which is another one in each state, and P: mean return = V.
static void chapter_01_sampled_values(void) {
    ChainPolicy pi = {{0, .9, .5, .8, 0}};
    Rng rng = {11};
    double V[5], Q[5][2], mean = 0, slipped = 0, moves = 0;
    solve_chain(V, Q, &pi, 1.0 / 6.0, 1.0);
    for (int i = 0; i < 40000; i++) {
        Trajectory tau;
        sample_trajectory(&tau, 1, &pi, 1.0 / 6.0, &rng);
        mean += discounted_return(tau.reward, tau.T, 1.0) / 40000;
        for (int t = 0; t < tau.T; t++, moves++)
            slipped += (tau.state[t + 1] > tau.state[t]) != (tau.action[t] == CHAIN_RIGHT);
    }
    CHECK(fabs(mean - V[1]) < 0.01);                            // 4 standard errors of 0.0025
    CHECK(fabs(slipped / moves - 1.0 / 6.0) < 0.005);
}

static void test_chapter_01(void) {
    RUN_ALL(TEST(chapter_01_discounted_return), TEST(chapter_01_chain_values),
            TEST(chapter_01_trajectory_probability), TEST(chapter_01_policy_gradient_over_all_trajectories),
            TEST(chapter_01_sampled_values));
}

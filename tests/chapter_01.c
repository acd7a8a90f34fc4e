// chapter_01.c - the language of RL: return, values, trajectories. The working by hand stands above each
// expectation.

static void chapter_01_discounted_return(void) {
    const double r[3] = {1.0, 2.0, 3.0};
    CHECK_NEAR(discounted_return(r, 3, 0.5), 2.75, 1e-15);      // 1 + 2/2 + 3/4
    CHECK_NEAR(discounted_return(r, 3, 1.0), 6.0, 1e-15);
    CHECK_NEAR(discounted_return(r, 3, 0.0), 1.0, 0.0);         // 0^0 = 1: the first reward counts in full
    CHECK_NEAR(discounted_return(r, 1, 0.9), 1.0, 0.0);
    CHECK_NEAR(discounted_return(r, 0, 0.9), 0.0, 0.0);
    CHECK_NEAR(discounted_return(r, -1, 0.9), 0.0, 0.0);
    double late[501] = {0};
    late[500] = 1.0;                                            // 0.99^500 = exp(500 ln 0.99) = exp(-5.02517)
    CHECK_NEAR(discounted_return(late, 501, 0.99), exp(500.0 * log(0.99)), 1e-13);
    CHECK(fabs(discounted_return(late, 501, 0.99) - 0.00657) < 5e-6);
}

static void chapter_01_chain_values(void) {
    double V[5], Q[5][2];
    ChainPolicy coin = {{.5, .5, .5, .5, .5}}, right = {{.75, .75, .75, .75, .75}};
    solve_chain(V, Q, &coin, 1.0 / 6.0, 1.0);
    for (int s = 0; s < 4; s++) CHECK_NEAR(V[s], s / 4.0, 1e-13);
    CHECK_NEAR(V[4], 0.0, 0.0);                                 // final: nothing comes after it
    CHECK_NEAR(Q[2][CHAIN_RIGHT], 2.0 / 3.0, 1e-13);            // 5/6 * 3/4 + 1/6 * 1/4 = 16/24
    CHECK_NEAR(Q[2][CHAIN_LEFT], 1.0 / 3.0, 1e-13);
    CHECK_NEAR(Q[3][CHAIN_RIGHT], 11.0 / 12.0, 1e-13);          // 5/6 * 1 + 1/6 * 1/2
    solve_chain(V, Q, &right, 1.0 / 6.0, 1.0);
    CHECK_NEAR(V[1], 8.0 / 15.0, 1e-13);
    CHECK_NEAR(V[2], 12.0 / 15.0, 1e-13);
    CHECK_NEAR(V[3], 14.0 / 15.0, 1e-13);
    CHECK_NEAR(Q[2][CHAIN_RIGHT], 78.0 / 90.0, 1e-13);          // 5/6 * 14/15 + 1/6 * 8/15
    CHECK_NEAR(Q[2][CHAIN_LEFT], 54.0 / 90.0, 1e-13);           // 5/6 * 8/15 + 1/6 * 14/15
    for (int s = 1; s < 4; s++) {
        // one step goes right with 3/4 * 5/6 + 1/4 * 1/6 = 2/3, x = 1/2: gambler's ruin (1 - x^s) / (1 - x^4)
        CHECK_NEAR(V[s], (1.0 - pow(0.5, s)) / (1.0 - pow(0.5, 4)), 1e-13);
        CHECK_NEAR(0.75 * (Q[s][CHAIN_RIGHT] - V[s]) + 0.25 * (Q[s][CHAIN_LEFT] - V[s]), 0.0, 1e-13);
    }
    solve_chain(V, Q, &coin, 1.0 / 6.0, 0.9);                   // V2 = 0.405 V2 + 0.225
    CHECK_NEAR(V[2], 0.225 / 0.595, 1e-13);
    CHECK_NEAR(V[1], 0.45 * 0.225 / 0.595, 1e-13);
    CHECK_NEAR(V[3], 0.5 + 0.45 * 0.225 / 0.595, 1e-13);
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

// Every trajectory of at most `horizon` steps, by recursion. Adds p, p G and p G score.
static void c01_enumerate(double* p_sum, double* J, double* gradient, Trajectory* tau, const ChainPolicy* pi,
                          double slip, int horizon) {
    int s = tau->state[tau->T];
    if (chain_is_final(s) || tau->T == horizon) {
        double a, b, score[5], p = exp(trajectory_logprob(&a, &b, tau, pi, slip));
        double G = discounted_return(tau->reward, tau->T, 0.9);
        score_trajectory(score, tau, pi);
        *p_sum += p;
        *J += p * G;
        for (int i = 0; i < 5; i++) gradient[i] += p * G * score[i];
        return;
    }
    for (int a = 0; a < 2; a++)
        for (int next = s - 1; next <= s + 1; next += 2) {
            int t = tau->T;
            tau->action[t] = a;
            tau->reward[t] = chain_reward(next);
            tau->state[t + 1] = next;
            tau->T = t + 1;
            c01_enumerate(p_sum, J, gradient, tau, pi, slip, horizon);
            tau->T = t;
        }
}

static void chapter_01_policy_gradient_over_all_trajectories(void) {
    const double theta[5] = {0, 0.3, -0.2, 0.9, 0}, slip = 0.2, h = 1e-5;
    double p = 0, J = 0, g[5] = {0}, waste[5];
    Trajectory tau = {.T = 0, .state = {2}};
    ChainPolicy pi = chain_policy_from(theta);
    c01_enumerate(&p, &J, g, &tau, &pi, slip, 8);
    CHECK_NEAR(p, 1.0, 1e-12);                                  // all trajectories together are certain
    for (int s = 0; s < 5; s++) {                               // E[G score] = dJ/dtheta
        double side[2];
        for (int k = 0; k < 2; k++) {
            double moved[5], q = 0;
            memcpy(moved, theta, sizeof moved);
            moved[s] += k ? h : -h;
            ChainPolicy other = chain_policy_from(moved);
            side[k] = 0;
            c01_enumerate(&q, &side[k], waste, &tau, &other, slip, 8);
        }
        CHECK_GRADIENT(g[s], (side[1] - side[0]) / (2 * h));
    }
}

static void chapter_01_sampled_values(void) { // the sampler obeys pi and P: mean return = V
    ChainPolicy pi = {{.75, .75, .75, .75, .75}};
    Rng rng = {11};
    double mean = 0, slipped = 0, moves = 0;
    for (int i = 0; i < 40000; i++) {
        Trajectory tau;
        sample_trajectory(&tau, 1, &pi, 1.0 / 6.0, &rng);
        mean += discounted_return(tau.reward, tau.T, 1.0) / 40000;
        for (int t = 0; t < tau.T; t++, moves++)
            slipped += (tau.state[t + 1] > tau.state[t]) != (tau.action[t] == CHAIN_RIGHT);
    }
    CHECK(fabs(mean - 8.0 / 15.0) < 0.01);                      // 4 standard errors of 0.0025
    CHECK(fabs(slipped / moves - 1.0 / 6.0) < 0.005);
}

static void test_chapter_01(void) {
    RUN_ALL(TEST(chapter_01_discounted_return), TEST(chapter_01_chain_values),
            TEST(chapter_01_trajectory_probability), TEST(chapter_01_policy_gradient_over_all_trajectories),
            TEST(chapter_01_sampled_values));
}

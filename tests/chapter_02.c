// chapter_02.c - the two warm-ups: thermostat, CartPole, and GAE, which chapter 2 defines.

static void chapter_02_thermostat_rates(void) {
    CHECK_NEAR(thermostat_rate(70, 0), -0.9, 1e-13);            // -0.03 * (70 - 40); on: the worksheet
    CHECK(thermostat_rate(40, 0) == 0.0);                       // as cold as outside: no loss
    CHECK(thermostat_in_band(68) && thermostat_in_band(72) && thermostat_in_band(70));
    CHECK(!thermostat_in_band(67.999) && !thermostat_in_band(72.001));
}

static void chapter_02_cartpole_step(void) {
    CartPole c = {0, 0, 0, 0};
    CartPoleForces a = cartpole_forces(&c, 10.0);
    CHECK_NEAR(a.alpha, 100.0 / 11.0, 1e-14);
    CHECK_NEAR(a.theta_acc, -600.0 / 41.0, 1e-14);
    CHECK_NEAR(a.x_acc, 400.0 / 41.0, 1e-14);
    CHECK(step_cartpole(&c, 1));                                // old velocity: x and theta have not moved
    CHECK_LIST((double*)&c, 1e-14, 0, 8.0 / 41, 0, -12.0 / 41); // x, x_dot, theta, theta_dot
    // a general state, pushed left, worked out elsewhere: x = 0.1 + 0.02 * -0.3, theta = 0.05 + 0.02 * 0.4
    CartPole d = {0.1, -0.3, 0.05, 0.4}, mirror = {-0.1, 0.3, -0.05, -0.4};
    step_cartpole(&d, 0);
    CHECK_LIST((double*)&d, 1e-13, 0.094, -0.4957942420561364, 0.058, 0.7080182011216816);
    step_cartpole(&mirror, 1);                                  // left and right are mirror images
    CHECK_LIST((double*)&mirror, 1e-14, -d.x, -d.x_dot, -d.theta, -d.theta_dot);
}

static void chapter_02_cartpole_limits(void) {
    // 2.39 + 0.02 > 2.4; 12 degrees = 0.20944 rad, 0.209 + 0.001 = 0.21
    static const struct { CartPole state; int action, stands; } cases[] = {
        {{2.39, 0, 0, 0}, 1, 1}, {{2.39, 1, 0, 0}, 1, 0}, {{-2.39, -1, 0, 0}, 1, 0},
        {{0, 0, 0.209, 0}, 1, 1}, {{0, 0, 0.209, 0.05}, 1, 0}, {{0, 0, -0.209, -0.05}, 0, 0}};
    for (int i = 0; i < 6; i++) {
        CartPole c = cases[i].state;
        CHECK(step_cartpole(&c, cases[i].action) == cases[i].stands);
    }
}

static void chapter_02_gae(void) {
    const float r[5] = {0, 0, 0.5f, 0, 1}, v[5] = {0.2f, 0.1f, 0.4f, 0.6f, 0.5f};
    static const struct { float gamma, lambda; double adv[5]; } cases[] = {
        {1, 1, {1.3, 1.4, 1.1, 0.4, 0.5}},
        {1, 0.95f, {1.1382656249999996, 1.3034374999999998, 1.05625, 0.375, 0.5}},
        {0.99f, 0.95f, {1.0951140993969062, 1.2717853263124999, 1.0375176249999998, 0.36525, 0.5}},
        {0.9f, 0, {-0.11, 0.26, 0.64, -0.15, 0.5}}};
    float adv[5];
    for (int i = 0; i < 4; i++)
        for (int in_place = 0; in_place < 2; in_place++) {
            memcpy(adv, r, sizeof adv);
            advantages_gae(adv, in_place ? adv : r, v, 5, cases[i].gamma, cases[i].lambda);
            for (int t = 0; t < 5; t++) CHECK_NEAR(adv[t], cases[i].adv[t], 2e-7);
        }
    adv[0] = 7;
    advantages_gae(adv, r, v, 0, 1.0f, 1.0f);                   // T = 0 writes nothing
    CHECK(adv[0] == 7);
    advantages_gae(adv, r + 4, v + 4, 1, 0.9f, 0.9f);           // T = 1: r - V, the terminal value is 0
    CHECK_NEAR(adv[0], 0.5, EXACT);
}

// A value function that is right leaves nothing to be surprised by. V = 100 = 1 + 0.99 * 100 is right for a
// pole that never falls: every advantage of a cut-off episode is 0. If it falls, the last is 1 - 100 = -99.
static void chapter_02_cut_off_is_not_falling(void) {
    CartPoleGroup* group = allocate(1, sizeof *group);
    double v[VALUE_SIZE] = {100.0};
    for (int k = 0; k < CARTPOLE_GROUP; k++) {
        group->first[k + 1] = group->first[k] + 3;
        group->cut_off[k] = k != 0;
        group->last[k][0] = 1.0;
        for (int t = 0; t < 3; t++) group->features[3 * k + t][0] = 1.0;
    }
    fill_advantages(group, v, BASELINE_VALUE);
    CHECK_NEAR(group->advantage[2], -99.0, 1e-6);
    CHECK_NEAR(group->advantage[1], -99.0 * 0.99 * 0.95, 1e-6);
    for (int i = 3; i < 3 * CARTPOLE_GROUP; i++) CHECK_NEAR(group->advantage[i], 0.0, 1e-5);
    // group mean: 3 everywhere, so nobody is better than average
    fill_advantages(group, v, BASELINE_GROUP_MEAN);
    for (int i = 0; i < 3 * CARTPOLE_GROUP; i++) CHECK_NEAR(group->advantage[i], 0.0, 1e-12);
    free(group);
}

static void chapter_02_group_mean_spreads_one_number(void) {
    CartPoleGroup* group = allocate(1, sizeof *group);
    double w[POLICY_SIZE] = {0}, v[VALUE_SIZE] = {0}, sum = 0;
    Rng rng = {3};
    double mean = collect_group(group, w, &rng);
    fill_advantages(group, v, BASELINE_GROUP_MEAN);
    for (int k = 0; k < CARTPOLE_GROUP; k++) {
        int begin = group->first[k], end = group->first[k + 1], T = end - begin;
        for (int i = begin; i < end; i++) CHECK_NEAR(group->advantage[i], T - mean, 1e-6);
        CHECK(group->features[begin][3] == group->features[0][3]);  // one common start
        double *f = group->features[end - 1], last[POLICY_SIZE];    // group->last is the state one step later
        CartPole c = {f[1] * x_limit, f[2] * 2.0, f[3] * theta_limit, f[4] * 2.0};
        step_cartpole(&c, group->action[end - 1]);
        cartpole_features(last, &c);
        for (int j = 0; j < POLICY_SIZE; j++) CHECK_NEAR(group->last[k][j], last[j], 1e-12);
        sum += T - mean;
    }
    CHECK_NEAR(sum, 0.0, 1e-9);
    free(group);
}

static CartPoleGroup* c02_group;
static double c02_w[POLICY_SIZE] = {0.1, -0.4, 0.3, 0.8, 0.2}, c02_v[VALUE_SIZE];
static const double c02_features[POLICY_SIZE] = {1, 0.3, -0.7, 0.2, 0.9};

static double c02_surrogate(void) {                             // mean of A / rms * log pi(a)
    const CartPoleGroup* group = c02_group;
    int N = group->first[CARTPOLE_GROUP];
    double square = 0, sum = 0;
    for (int i = 0; i < N; i++) square += group->advantage[i] * group->advantage[i] / N;
    for (int i = 0; i < N; i++) {
        double p = sigmoid(inner_product(c02_w, group->features[i], POLICY_SIZE));
        sum += group->advantage[i] / fmax(sqrt(square), 1.0) * log(group->action[i] ? p : 1 - p) / N;
    }
    return sum;
}

static double c02_value_error(void) { return 0.5 * pow(2.0 - value_of(c02_v, c02_features), 2); }

static void chapter_02_cartpole_gradients(void) {
    CartPoleGroup* group = c02_group = allocate(1, sizeof *group);
    double gradient[POLICY_SIZE], moved[VALUE_SIZE], expected[VALUE_SIZE];
    Rng rng = {4};
    collect_group(group, c02_w, &rng);
    fill_advantages(group, c02_v, BASELINE_GROUP_MEAN);
    cartpole_gradient(gradient, group, c02_w);
    for (int j = 0; j < POLICY_SIZE; j++) CHECK_GRADIENT(gradient[j], slope(c02_surrogate, &c02_w[j], NULL));
    // value_update moves v by rate times minus the gradient of (target - V)^2 / 2
    for (int n = 0; n < VALUE_SIZE; n++) moved[n] = c02_v[n] = 0.1 * n - 0.5;
    value_update(moved, c02_features, 2.0, 0.01);
    for (int n = 0; n < VALUE_SIZE; n++)
        CHECK_GRADIENT((moved[n] - c02_v[n]) / 0.01, -slope(c02_value_error, &c02_v[n], NULL));
    // fit_value: each episode from its end, towards 1 + 0.99 + ... of the steps that followed, and V of the
    // last state where it was cut off
    double later = value_of(c02_v, group->last[0]);
    memcpy(expected, c02_v, sizeof expected);
    group->cut_off[0] = 1;
    for (int k = 0; k < CARTPOLE_GROUP; k++)
        for (int n = 1; n <= group->first[k + 1] - group->first[k]; n++) {
            double past = pow(0.99, n), target = (1.0 - past) / 0.01 + (k ? 0.0 : past * later);
            value_update(expected, group->features[group->first[k + 1] - n], target, 0.02);
        }
    fit_value(c02_v, group);
    for (int n = 0; n < VALUE_SIZE; n++) CHECK_NEAR(c02_v[n], expected[n], 1e-9);
    free(group);
}

// The training, made again from its definition: the return of step t is that of the rest of its own day,
// G_t = discounted_return(r_t, r_t+1, ..., until midnight), minus the mean over all eight days.
static void chapter_02_thermostat_return_ends_with_the_day(void) {
    enum { T = THERMOSTAT_STEPS, N = THERMOSTAT_GROUP * T };
    double w[2] = {5.0, 5.0}, again[2] = {0.0, 0.0}, share[THERMOSTAT_UPDATES], gradient[2], temperature[T];
    double f[2 * N], reward[N], A[N];
    int action[N];
    Rng rng = {1};
    for (int i = 0; i < THERMOSTAT_UPDATES; i++) share[i] = 100.0;   // what stood there before is not counted
    train_thermostat(w, share, 1);
    CHECK(share[0] < 0.9 && share[THERMOSTAT_UPDATES - 1] > 0.9 && share[THERMOSTAT_UPDATES - 1] <= 1.0);
    for (int update = 0; update < THERMOSTAT_UPDATES; update++) {
        double mean = 0.0;
        for (int i = 0; i < N; i += T)
            simulate_day(temperature, f + 2 * i, action + i, reward + i, again, &rng);
        for (int i = 0; i < N; i++) {
            A[i] = discounted_return(reward + i, T - i % T, thermostat_gamma);
            mean += A[i] / N;
        }
        for (int i = 0; i < N; i++) A[i] -= mean;
        reinforce_gradient(gradient, f, action, A, N, again, 2, 1e-8);
        for (int j = 0; j < 2; j++) again[j] += thermostat_learning_rate * gradient[j];
    }
    for (int j = 0; j < 2; j++) CHECK_NEAR(w[j], again[j], 1e-9);
}

#ifndef IN_DOUBLE                                               // all of CartPole is in double anyway
static void chapter_02_cartpole_learns(void) {
    CartPoleRun run, again;
    for (int baseline = 0; baseline < BASELINES; baseline++) {
        train_cartpole(&run, 1, baseline, cartpole_learning_rate);
        int steps = 0, update = 0;
        do steps += (int)lround(8.0 * run.length[update]);
        while (run.length[update++] < 475.0);
        CHECK(run.solved == steps && run.length[0] < 60.0); // the first group of 8 that averages 0.95 of 500
        CHECK(test_cartpole(run.w, 40, &(Rng){51}) >= 475.0);
    }
    train_cartpole(&again, 1, BASELINE_VALUE, cartpole_learning_rate);        // the same seed is the same run
    CHECK(!memcmp(&run.w, &again.w, sizeof run.w) && run.updates == again.updates);
    memset(run.w, 0, sizeof run.w);                                           // one episode's length
    Rng first = {7}, second = {7};
    CartPoleGroup* group = allocate(1, sizeof *group);
    double mean = test_cartpole(run.w, 1, &first);
    CHECK(mean == run_cartpole_episode(group, 0, start_cartpole(&second), run.w, &second));
    free(group);
}
#endif

static void test_chapter_02(void) {
    RUN_ALL(TEST(chapter_02_thermostat_rates), TEST(chapter_02_cartpole_step),
            TEST(chapter_02_cartpole_limits), TEST(chapter_02_gae), TEST(chapter_02_cut_off_is_not_falling),
            TEST(chapter_02_group_mean_spreads_one_number), TEST(chapter_02_cartpole_gradients),
            TEST(chapter_02_thermostat_return_ends_with_the_day));
#ifndef IN_DOUBLE
    RUN(chapter_02_cartpole_learns);
#endif
}

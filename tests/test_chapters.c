// Worksheets for chapters 1, 2, 3 and 7. The hand calculation stands above each expectation. Built twice: as
// written, and with -DIN_DOUBLE, where every `float` of the pieces becomes double so that the same code can be held
// against central differences to 1e-6.
#include "chapters.h"
#ifdef IN_DOUBLE
#define EXACT 1e-11              // what a hand value may be off by, relative
#else
#define EXACT 1e-6
#endif
#define REFERENCE 1e-5

static void fill(float* x, int n, int k, double scale, double offset) {
    for (int i = 0; i < n; i++) x[i] = (float)(offset + scale * sin(0.7 * (i + 1) + 1.3 * k));
}

// relative to the larger of the two, as gradients are small numbers
#define CHECK_GRADIENT(value, expected) \
    CHECK(fabs((value) - (expected)) <= 1e-6 * fmax(fabs(value), fabs(expected)) + 1e-11)

// ---------------------------------------------------------------------------------------------- chapter 1
static void test_discounted_return(void) {
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

static void test_chain_values(void) {
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
        CHECK_NEAR(V[s], chain_value_by_hand(s, 0.75, 1.0 / 6.0), 1e-13);
        CHECK_NEAR(0.75 * (Q[s][CHAIN_RIGHT] - V[s]) + 0.25 * (Q[s][CHAIN_LEFT] - V[s]), 0.0, 1e-13);
    }
    solve_chain(V, Q, &coin, 1.0 / 6.0, 0.9);                   // V2 = 0.405 V2 + 0.225
    CHECK_NEAR(V[2], 0.225 / 0.595, 1e-13);
    CHECK_NEAR(V[1], 0.45 * 0.225 / 0.595, 1e-13);
    CHECK_NEAR(V[3], 0.5 + 0.45 * 0.225 / 0.595, 1e-13);
}

static void test_trajectory_probability(void) {
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
static void enumerate(double* p_sum, double* J, double* gradient, Trajectory* tau, const ChainPolicy* pi, double slip,
                      int horizon) {
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
            enumerate(p_sum, J, gradient, tau, pi, slip, horizon);
            tau->T = t;
        }
}

static void test_policy_gradient_over_all_trajectories(void) {
    const double theta[5] = {0, 0.3, -0.2, 0.9, 0}, slip = 0.2, h = 1e-5;
    double p = 0, J = 0, g[5] = {0}, waste[5];
    Trajectory tau = {.T = 0, .state = {2}};
    ChainPolicy pi = chain_policy_from(theta);
    enumerate(&p, &J, g, &tau, &pi, slip, 8);
    CHECK_NEAR(p, 1.0, 1e-12);                                  // all trajectories together are certain
    for (int s = 0; s < 5; s++) {                               // E[G score] = dJ/dtheta
        double side[2];
        for (int k = 0; k < 2; k++) {
            double moved[5], q = 0;
            memcpy(moved, theta, sizeof moved);
            moved[s] += k ? h : -h;
            ChainPolicy other = chain_policy_from(moved);
            side[k] = 0;
            enumerate(&q, &side[k], waste, &tau, &other, slip, 8);
        }
        CHECK_GRADIENT(g[s], (side[1] - side[0]) / (2 * h));
    }
}

static void test_no_dynamics_in_the_score(void) {
    const double theta[5] = {0, 0.4, -1.1, 0.7, 0}, h = 1e-5, slips[3] = {1.0 / 6.0, 0.3, 0.01};
    Rng rng = {5};
    ChainPolicy pi = chain_policy_from(theta);
    for (int n = 0; n < 20; n++) {
        Trajectory tau;
        double score[5], a, b;
        sample_trajectory(&tau, 2, &pi, 0.3, &rng);
        CHECK(chain_is_final(tau.state[tau.T]));
        CHECK_NEAR(discounted_return(tau.reward, tau.T, 1.0), tau.state[tau.T] == 4, 0.0);
        score_trajectory(score, &tau, &pi);
        for (int i = 0; i < 3; i++)
            for (int s = 1; s < 4; s++) {
                double up[5], down[5];
                memcpy(up, theta, sizeof up);
                memcpy(down, theta, sizeof down);
                up[s] += h;
                down[s] -= h;
                ChainPolicy pu = chain_policy_from(up), pd = chain_policy_from(down);
                double numeric = (trajectory_logprob(&a, &b, &tau, &pu, slips[i])
                                  - trajectory_logprob(&a, &b, &tau, &pd, slips[i])) / (2 * h);
                CHECK(fabs(numeric - score[s]) <= 1e-6 * fmax(1.0, fabs(score[s])));
            }
    }
}

static void test_sampled_values(void) {                        // the sampler obeys pi and P: mean return = V
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

// ---------------------------------------------------------------------------------------------- chapter 2
static void test_thermostat_rates(void) {
    CHECK_NEAR(thermostat_rate(70, 0), -0.9, 1e-13);            // -0.03 * (70 - 40)
    CHECK_NEAR(thermostat_rate(70, 1), 1.5, 1e-13);             // + 2.4
    CHECK_NEAR(thermostat_rate(40, 0), 0.0, 1e-13);             // as cold as outside: no loss
    CHECK(thermostat_in_band(68) && thermostat_in_band(72) && thermostat_in_band(70));
    CHECK(!thermostat_in_band(67.999) && !thermostat_in_band(72.001));
}

static void test_cartpole_step(void) {
    CartPole c = {0, 0, 0, 0};
    CartPoleForces a = cartpole_forces(&c, 10.0);
    CHECK_NEAR(a.alpha, 100.0 / 11.0, 1e-14);
    CHECK_NEAR(a.theta_acc, -600.0 / 41.0, 1e-14);
    CHECK_NEAR(a.x_acc, 400.0 / 41.0, 1e-14);
    CHECK(step_cartpole(&c, 1));
    CHECK_NEAR(c.x, 0.0, 0.0);                                  // old velocity: x has not moved
    CHECK_NEAR(c.theta, 0.0, 0.0);
    CHECK_NEAR(c.x_dot, 8.0 / 41.0, 1e-14);
    CHECK_NEAR(c.theta_dot, -12.0 / 41.0, 1e-14);
    // a general state, pushed left, worked out elsewhere
    CartPole d = {0.1, -0.3, 0.05, 0.4}, mirror = {-0.1, 0.3, -0.05, -0.4};
    step_cartpole(&d, 0);
    CHECK_NEAR(d.x, 0.094, 1e-14);                              // 0.1 + 0.02 * -0.3
    CHECK_NEAR(d.x_dot, -0.4957942420561364, 1e-13);
    CHECK_NEAR(d.theta, 0.058, 1e-14);                          // 0.05 + 0.02 * 0.4
    CHECK_NEAR(d.theta_dot, 0.7080182011216816, 1e-13);
    step_cartpole(&mirror, 1);                                  // left and right are mirror images
    CHECK_NEAR(mirror.x_dot, -d.x_dot, 1e-14);
    CHECK_NEAR(mirror.theta_dot, -d.theta_dot, 1e-14);
}

static void test_cartpole_limits(void) {
    CartPole in = {2.39, 0, 0, 0}, out = {2.39, 1, 0, 0}, left = {-2.39, -1, 0, 0};
    CHECK(step_cartpole(&in, 1));
    CHECK(!step_cartpole(&out, 1));                             // 2.39 + 0.02 > 2.4
    CHECK(!step_cartpole(&left, 1));
    CartPole up = {0, 0, 0.209, 0}, fallen = {0, 0, 0.209, 0.05};
    CHECK(step_cartpole(&up, 1));                               // 12 degrees = 0.20944 rad
    CHECK(!step_cartpole(&fallen, 1));                          // 0.209 + 0.001 = 0.21
}

static void test_gae(void) {
    const float r[5] = {0, 0, 0.5f, 0, 1}, v[5] = {0.2f, 0.1f, 0.4f, 0.6f, 0.5f};
    const double setting[4][2] = {{1, 1}, {1, 0.95}, {0.99, 0.95}, {0.9, 0}};
    const double expected[4][5] = {{1.3, 1.4, 1.1, 0.4, 0.5},
                                   {1.1382656249999996, 1.3034374999999998, 1.05625, 0.375, 0.5},
                                   {1.0951140993969062, 1.2717853263124999, 1.0375176249999998, 0.36525, 0.5},
                                   {-0.11, 0.26, 0.64, -0.15, 0.5}};
    float adv[5];
    for (int i = 0; i < 4; i++) {
        advantages_gae(adv, r, v, 5, (float)setting[i][0], (float)setting[i][1]);
        for (int t = 0; t < 5; t++) CHECK_NEAR(adv[t], expected[i][t], 2e-7);
    }
    // gamma 1, lambda 1/2, r = (0,1), V = (1/4,1/2): delta = (1/4, 1/2); A_1 = 1/2, A_0 = 1/4 + 1/2 * 1/2
    const float r2[2] = {0, 1}, v2[2] = {0.25f, 0.5f};
    advantages_gae(adv, r2, v2, 2, 1.0f, 0.5f);
    CHECK_NEAR(adv[0], 0.5, EXACT);
    CHECK_NEAR(adv[1], 0.5, EXACT);
    adv[0] = 7;
    advantages_gae(adv, r, v, 0, 1.0f, 1.0f);                   // T = 0 writes nothing
    CHECK_NEAR(adv[0], 7, 0);
    advantages_gae(adv, r + 4, v + 4, 1, 0.9f, 0.9f);           // T = 1: r - V, the terminal value is 0
    CHECK_NEAR(adv[0], 0.5, EXACT);
    float in_place[5];
    memcpy(in_place, r, sizeof in_place);
    advantages_gae(in_place, in_place, v, 5, 0.99f, 0.95f);
    for (int t = 0; t < 5; t++) CHECK_NEAR(in_place[t], expected[2][t], 2e-7);
}

// lambda = 1 is discounted return minus V, for any V (Schulman et al. 2016, eq. 18)
static void test_gae_lambda_one_is_return_minus_value(void) {
    float r[20], v[20], adv[20];
    double rd[20];
    fill(r, 20, 1, 1.0, 0.0);
    fill(v, 20, 2, 1.0, 0.0);
    for (int t = 0; t < 20; t++) rd[t] = r[t];
    advantages_gae(adv, r, v, 20, 0.9f, 1.0f);
    for (int t = 0; t < 20; t++) CHECK_NEAR(adv[t], discounted_return(rd + t, 20 - t, (double)0.9f) - v[t], 2e-6);
}

// A value function that is right everywhere leaves nothing to be surprised by. V = 100 = 1 + 0.99 * 100 is right for
// a pole that never falls: every advantage of a cut-off episode is 0. If it falls, the last step is 1 - 100 = -99.
static void test_cut_off_is_not_falling(void) {
    CartPoleGroup* group = allocate(1, sizeof *group);
    CartPoleOptions options = cartpole_defaults;
    double v[VALUE_SIZE] = {100.0};
    options.baseline = BASELINE_VALUE;
    for (int k = 0; k < CARTPOLE_GROUP; k++) {
        group->first[k + 1] = group->first[k] + 3;
        group->cut_off[k] = k != 0;
        group->last[k][0] = 1.0;
        for (int t = 0; t < 3; t++) group->features[3 * k + t][0] = 1.0;
    }
    fill_advantages(group, v, &options);
    CHECK_NEAR(group->advantage[2], -99.0, 1e-6);
    CHECK_NEAR(group->advantage[1], -99.0 * 0.99 * 0.95, 1e-6);
    for (int i = 3; i < 3 * CARTPOLE_GROUP; i++) CHECK_NEAR(group->advantage[i], 0.0, 1e-5);
    // fit_value has nothing to correct either in the cut-off ones
    double before = v[0];
    group->first[0] = group->first[1];                          // leave out the fallen one
    fit_value(v, group, &options);
    CHECK_NEAR(v[0], before, 1e-9);
    // group mean: 3 everywhere, so nobody is better than average
    group->first[0] = 0;
    options.baseline = BASELINE_GROUP_MEAN;
    fill_advantages(group, v, &options);
    for (int i = 0; i < 3 * CARTPOLE_GROUP; i++) CHECK_NEAR(group->advantage[i], 0.0, 1e-12);
    free(group);
}

static void test_group_mean_spreads_one_number(void) {
    CartPoleGroup* group = allocate(1, sizeof *group);
    CartPoleOptions options = cartpole_defaults;
    double w[POLICY_SIZE] = {0}, v[VALUE_SIZE] = {0}, sum = 0;
    Rng rng = {3};
    double mean = collect_group(group, w, &rng);
    fill_advantages(group, v, &options);
    for (int k = 0; k < CARTPOLE_GROUP; k++) {
        int T = group->first[k + 1] - group->first[k];
        for (int t = 0; t < T; t++) CHECK_NEAR(group->advantage[group->first[k] + t], T - mean, 1e-6);
        CHECK_NEAR(group->features[group->first[k]][3], group->features[0][3], 0.0);      // one common start
        sum += T - mean;
    }
    CHECK_NEAR(sum, 0.0, 1e-9);
    free(group);
}

static double surrogate(const CartPoleGroup* group, const double* w) {   // mean of A / rms * log pi(a)
    int N = group->first[CARTPOLE_GROUP];
    double square = 0, sum = 0;
    for (int i = 0; i < N; i++) square += group->advantage[i] * group->advantage[i] / N;
    for (int i = 0; i < N; i++) {
        double p = sigmoid(inner_product(w, group->features[i], POLICY_SIZE));
        sum += group->advantage[i] / fmax(sqrt(square), 1.0) * log(group->action[i] ? p : 1 - p) / N;
    }
    return sum;
}

static void test_cartpole_gradients(void) {
    CartPoleGroup* group = allocate(1, sizeof *group);
    double w[POLICY_SIZE] = {0.1, -0.4, 0.3, 0.8, 0.2}, v[VALUE_SIZE] = {0}, gradient[POLICY_SIZE], h = 1e-5;
    CartPoleOptions options = cartpole_defaults;
    Rng rng = {4};
    collect_group(group, w, &rng);
    fill_advantages(group, v, &options);
    cartpole_gradient(gradient, group, w);
    for (int j = 0; j < POLICY_SIZE; j++) {
        double up, down, keep = w[j];
        w[j] = keep + h, up = surrogate(group, w);
        w[j] = keep - h, down = surrogate(group, w);
        w[j] = keep;
        CHECK_GRADIENT(gradient[j], (up - down) / (2 * h));
    }
    // value_update moves v by rate times minus the gradient of (target - V)^2 / 2
    for (int n = 0; n < VALUE_SIZE; n++) v[n] = 0.1 * n - 0.5;
    double f[POLICY_SIZE] = {1, 0.3, -0.7, 0.2, 0.9}, moved[VALUE_SIZE];
    memcpy(moved, v, sizeof moved);
    value_update(moved, f, 2.0, 0.01);
    for (int n = 0; n < VALUE_SIZE; n++) {
        double keep = v[n], e[2];
        for (int k = 0; k < 2; k++) {
            v[n] = keep + (k ? h : -h);
            e[k] = 0.5 * pow(2.0 - value_of(v, f), 2);
        }
        v[n] = keep;
        CHECK_GRADIENT((moved[n] - keep) / 0.01, -(e[1] - e[0]) / (2 * h));
    }
    free(group);
}

static void test_thermostat_learns(void) {
    for (uint64_t seed = 1; seed <= 5; seed++) {
        double w[2], nothing[2] = {0, 0}, share[64], temperature[THERMOSTAT_STEPS];
        Rng rng = {seed + 50};
        train_thermostat(w, share, seed, &thermostat_defaults);
        CHECK(test_thermostat(temperature, nothing, 100, &rng) < 0.2);
        CHECK(test_thermostat(temperature, w, 100, &rng) > 0.95);
        CHECK(w[1] < -2.0);                                     // warmer: less likely on
    }
}

static void test_cartpole_learns(void) {
    for (int baseline = 0; baseline < BASELINES; baseline++)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            CartPoleRun run, again;
            CartPoleOptions options = cartpole_defaults;
            Rng rng = {seed + 50};
            options.baseline = baseline;
            train_cartpole(&run, seed, &options);
            CHECK(run.solved > 0);
            CHECK(run.length[0] < 60.0);
            CHECK(test_cartpole(run.w, 100, &rng) >= 475.0);
            train_cartpole(&again, seed, &options);             // the same seed is the same run
            CHECK(!memcmp(&run.w, &again.w, sizeof run.w) && run.updates == again.updates);
        }
}

// ---------------------------------------------------------------------------------------------- chapter 3
enum { RB = 3, RT = 6, RV = 7 };
static const int ref_ids[RB * RT] = {1, 2, 3, 4, 5, 6, 6, 0, 6, 0, 6, 0, 3, 3, 1, 5, 2, 0};
static const int ref_mask[RB * RT] = {0, 0, 1, 1, 1, 1, 0, 1, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0};

static void test_reference_logprobs(void) {
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

static void test_reference_entropy(void) {
    const double expected[RB * RT] = {
        1.2313385693, 1.46545950856, 1.5561870964, 1.34587934483, 1.43829152581, 1.26513646011,
        1.5439421889, 1.51022038335, 1.19993474632, 1.27369563097, 1.4405492575, 1.55850192691,
        1.37974535867, 1.39030435162, 1.23534208643, 1.53534354664, 1.52399070608, 1.21197227138};
    float logits[RB * RT * RV], entropy[RB * RT];
    fill(logits, RB * RT * RV, 1, 2.0, 0.0);
    token_entropy(entropy, logits, RB * RT, RV);
    for (int i = 0; i < RB * RT; i++) CHECK_NEAR(entropy[i], expected[i], 1e-6);
}

static void test_hand_example(void) {
    float logp[5], sum;
    int shifted[5];
    token_logprobs(logp, example_logits, example_ids, 1, EXAMPLE_T, EXAMPLE_V);
    CHECK_NEAR(logp[3], 3.0 - log(exp(1.0) + exp(3.0) + 3.0), EXACT);
    CHECK_NEAR(logp[4], 2.0 - log(4.0 + exp(2.0)), EXACT);
    shift_mask(shifted, example_mask, 1, EXAMPLE_T);
    CHECK(!shifted[0] && !shifted[1] && !shifted[2] && shifted[3] && shifted[4]);
    sequence_logprobs(&sum, logp, shifted, 1, 5);
    CHECK(fabs(sum - -0.6832) < 5e-5);
    CHECK(fabs(exp(sum) - 0.5050) < 5e-5);
}

static void test_logprob_limits(void) {
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

static void test_softmax_is_a_distribution(void) {             // sum over v of exp(logp) = 1; a constant changes nothing
    float z[14], shifted[14], logp, again;
    fill(z, 14, 3, 5.0, 0.0);
    double sum = 0;
    for (int i = 0; i < 14; i++) shifted[i] = z[i] + 64.0f;
    for (int v = 0; v < 7; v++) {
        const int ids[2] = {0, v};
        token_logprobs(&logp, z, ids, 1, 2, 7);
        token_logprobs(&again, shifted, ids, 1, 2, 7);
        sum += exp(logp);
        CHECK_NEAR(again, logp, 1e-5);
    }
    CHECK_NEAR(sum, 1.0, 1e-6);
}

static void test_mask_limits(void) {
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

// ---------------------------------------------------------------------------------------------- chapter 7
static void check_rules(const float* r, int K, const double* centered, const double* grpo, const double* grpo4,
                        const double* population, const double* rloo) {
    float adv[16];
    advantages_centered(adv, r, K);
    for (int k = 0; k < K; k++) CHECK_NEAR(adv[k], centered[k], 1e-6);
    advantages_grpo(adv, r, K, 1e-8f);
    for (int k = 0; k < K; k++) CHECK_NEAR(adv[k], grpo[k], 1e-6);
    advantages_grpo(adv, r, K, 1e-4f);
    for (int k = 0; k < K; k++) CHECK_NEAR(adv[k], grpo4[k], 1e-6);
    advantages_by_rule(adv, r, K, RULE_GRPO_POPULATION);
    for (int k = 0; k < K; k++) CHECK_NEAR(adv[k], population[k], 1e-6);
    advantages_rloo(adv, r, K);
    for (int k = 0; k < K; k++) CHECK_NEAR(adv[k], rloo[k], 1e-6);
}

static void test_four_rollouts(void) {      // mean 1/2, squares sum to 1: std sqrt(1/3) sample, 1/2 population
    const float r[4] = {1, 1, 0, 0};
    check_rules(r, 4, (double[]){0.5, 0.5, -0.5, -0.5},
                (double[]){0.866025388784, 0.866025388784, -0.866025388784, -0.866025388784},
                (double[]){0.865875429761, 0.865875429761, -0.865875429761, -0.865875429761},
                (double[]){0.99999998, 0.99999998, -0.99999998, -0.99999998},
                (double[]){2.0 / 3, 2.0 / 3, -2.0 / 3, -2.0 / 3});
}

static void test_sixteen_rollouts(void) {   // mean 3/16
    const float r[16] = {1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
    double e[5][16];
    const double up[5] = {0.8125, 2.01556438707, 2.01506456108, 2.08166594613, 0.866666666667};
    const double down[5] = {-0.1875, -0.465130243171, -0.46501489871, -0.480384449108, -0.2};
    for (int i = 0; i < 5; i++) for (int k = 0; k < 16; k++) e[i][k] = r[k] > 0 ? up[i] : down[i];
    check_rules(r, 16, e[0], e[1], e[2], e[3], e[4]);
}

static void test_real_valued_rewards(void) {
    const float r[5] = {0.3f, -1.2f, 2.5f, 0.0f, 0.7f};
    check_rules(r, 5, (double[]){-0.16, -1.66, 2.04, -0.46, 0.24},
                (double[]){-0.119157701167, -1.23626114961, 1.51926068988, -0.342578390856, 0.178736551751},
                (double[]){-0.119148828617, -1.2361690969, 1.51914756486, -0.342552882273, 0.178723242925},
                (double[]){-0.133222359809, -1.38218198302, 1.69858508757, -0.383014284452, 0.199833539714},
                (double[]){-0.2, -2.075, 2.55, -0.575, 0.3});
}

static void test_rloo_is_leave_one_out(void) {
    float r[7], adv[7];
    fill(r, 7, 5, 2.0, 1.0);
    advantages_rloo(adv, r, 7);
    for (int i = 0; i < 7; i++) {
        double others = 0;
        for (int j = 0; j < 7; j++) others += j == i ? 0 : r[j] / 6.0;
        CHECK_NEAR(adv[i], r[i] - others, 1e-6);
    }
}

static void test_equal_rewards_give_exactly_zero(void) {
    const float values[6] = {0, 1, 0.1f, -3.7f, 1e-30f, 1e30f};
    for (int i = 0; i < 6; i++)
        for (int K = 1; K <= 16; K++) {
            float r[16], adv[16];
            for (int k = 0; k < K; k++) r[k] = (float)(values[i]);
#ifdef IN_DOUBLE
            for (int k = 0; k < K; k++) r[k] = (double)(int)(values[i] > 0);   // 53 bits leave no room to be exact
#endif
            for (int rule = 0; rule < RULES; rule++) {
                advantages_by_rule(adv, r, K, rule);
                for (int k = 0; k < K; k++) CHECK(adv[k] == 0.0);
            }
            advantages_grpo(adv, r, K, 0.0f);                   // eps = 0: still no 0/0
            for (int k = 0; k < K; k++) CHECK(adv[k] == 0.0);
        }
}

static void test_small_groups(void) {
    const float one[1] = {0.7f}, two[2] = {1, 0};
    float adv[2] = {9, 9};
    for (int rule = 0; rule < RULES; rule++) {
        adv[0] = adv[1] = 9;
        advantages_by_rule(adv, one, 1, rule);                  // nothing to compare with
        CHECK(adv[0] == 0.0 && adv[1] == 9);
        adv[0] = 9;
        advantages_by_rule(adv, one, 0, rule);                  // nothing at all
        CHECK(adv[0] == 9);
    }
    // K = 2: mean 1/2, std sqrt(1/2) sample, 1/2 population; the other one's reward is the baseline of RLOO
    advantages_grpo(adv, two, 2, 0.0f);
    CHECK_NEAR(adv[0], sqrt(0.5), EXACT);
    CHECK_NEAR(adv[1], -sqrt(0.5), EXACT);
    advantages_rloo(adv, two, 2);
    CHECK_NEAR(adv[0], 1.0, EXACT);
    CHECK_NEAR(adv[1], -1.0, EXACT);
    float in_place[4] = {1, 1, 0, 0};
    advantages_grpo(in_place, in_place, 4, 0.0f);
    CHECK_NEAR(in_place[0], sqrt(0.75), EXACT);
    CHECK_NEAR(in_place[3], -sqrt(0.75), EXACT);
}

// The claim of the chapter's comment, over all 2^K groups: RLOO is the true gradient p(1-p), centered (K-1)/K of it.
static void test_expected_gradient_over_all_groups(void) {
    for (int K = 2; K <= 8; K += 2)
        for (double p = 0.1; p < 0.95; p += 0.2) {
            double truth = p * (1 - p);
            CHECK_NEAR(expected_gradient(p, K, RULE_RLOO) / truth, 1.0, 2e-6);
            CHECK_NEAR(expected_gradient(p, K, RULE_CENTERED) / truth, (K - 1.0) / K, 2e-6);
            // by hand: E[GRPO] = sum over c of binomial(c) * sqrt(c (K-c) (K-1) / K) / K, as sum of A_i r_i = c A_right
            double e = 0, pmf = pow(1 - p, K);
            for (int c = 0; c <= K; c++) {
                e += pmf * sqrt((double)c * (K - c) * (K - 1) / K) / K;
                pmf *= (double)(K - c) / (c + 1) * p / (1 - p);
            }
            CHECK_NEAR(expected_gradient(p, K, RULE_GRPO), e, 2e-6);
        }
}

static void test_no_signal_odds(void) {
    Rng rng = {1};
    CHECK_NEAR(no_signal_odds(0.5, 4), 0.125, 1e-15);           // 2 / 16
    CHECK_NEAR(no_signal_odds(0.0, 16), 1.0, 0.0);
    CHECK_NEAR(no_signal_odds(1.0, 16), 1.0, 0.0);
    CHECK_NEAR(no_signal_odds(0.3, 1), 1.0, 1e-15);             // one rollout never has a signal
    CHECK_NEAR(no_signal_odds(0.1875, 16), pow(0.8125, 16) + pow(0.1875, 16), 1e-15);
    CHECK(fabs(no_signal_sampled(0.1, 8, 20000, &rng) - no_signal_odds(0.1, 8)) < 0.015);      // 4 s.e. of 0.0035
    CHECK(no_signal_sampled(1.0, 8, 10, &rng) == 1.0);
}

static void test_gae_with_constant_value_is_centered(void) {   // lambda = 1, V = group mean
    float first, last;
    gae_of_answer(&first, &last, 1.0f, 0.1875f, 10, 1.0f);
    CHECK_NEAR(first, 0.8125, EXACT);
    CHECK_NEAR(last, 0.8125, EXACT);
    gae_of_answer(&first, &last, 1.0f, 0.5f, 10, 0.95f);
    CHECK_NEAR(first, 0.5 * pow(0.95, 9), 1e-6);                // only the last delta is not 0, it fades by 0.95 a step
    CHECK_NEAR(last, 0.5, EXACT);
}

// ------------------------------------------------------------------------------- in double: central differences
#ifdef IN_DOUBLE
// d(sum over masked tokens of logp)/d z[b,t,v] = mask[b,t+1] (1[v = ids[b,t+1]] - pi(v)): the shift again. The
// derivative is 0 for the last row, and for rows whose next token is masked.
static void test_logprob_gradient(void) {
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

// dH/dz_v = -p_v (log p_v + H)
static void test_entropy_gradient(void) {
    double z[RV], H, h = 1e-4;
    fill(z, RV, 1, 2.0, 0.0);
    token_entropy(&H, z, 1, RV);
    for (int v = 0; v < RV; v++) {
        double keep = z[v], side[2], total = 0;
        for (int k = 0; k < 2; k++) {
            z[v] = keep + (k ? h : -h);
            token_entropy(&side[k], z, 1, RV);
        }
        z[v] = keep;
        for (int j = 0; j < RV; j++) total += exp(z[j]);
        double p = exp(keep) / total, formula = -p * (log(p) + H);
        CHECK(fabs((side[1] - side[0]) / (2 * h) - formula) <= 1e-6 * fabs(formula) + 1e-10);
    }
}
#endif

int main(void) {
    RUN(test_discounted_return);
    RUN(test_chain_values);
    RUN(test_trajectory_probability);
    RUN(test_policy_gradient_over_all_trajectories);
    RUN(test_no_dynamics_in_the_score);
    RUN(test_sampled_values);
    RUN(test_thermostat_rates);
    RUN(test_cartpole_step);
    RUN(test_cartpole_limits);
    RUN(test_gae);
    RUN(test_gae_lambda_one_is_return_minus_value);
    RUN(test_cut_off_is_not_falling);
    RUN(test_group_mean_spreads_one_number);
    RUN(test_cartpole_gradients);
    RUN(test_thermostat_learns);
    RUN(test_cartpole_learns);
    RUN(test_reference_logprobs);
    RUN(test_reference_entropy);
    RUN(test_hand_example);
    RUN(test_logprob_limits);
    RUN(test_softmax_is_a_distribution);
    RUN(test_mask_limits);
    RUN(test_four_rollouts);
    RUN(test_sixteen_rollouts);
    RUN(test_real_valued_rewards);
    RUN(test_rloo_is_leave_one_out);
    RUN(test_equal_rewards_give_exactly_zero);
    RUN(test_small_groups);
    RUN(test_expected_gradient_over_all_groups);
    RUN(test_no_signal_odds);
    RUN(test_gae_with_constant_value_is_centered);
#ifdef IN_DOUBLE
    RUN(test_logprob_gradient);
    RUN(test_entropy_gradient);
#endif
    return check_failed != 0;
}

// The contract's losses in double precision against central differences, and the exact sums over 27 answers.
// System headers come first; then every float of the chapters becomes a double.
#define IN_DOUBLE
#include "chapters.h"

enum { B = 3, T1 = 5, N = B * T1 };
static const double ADV[B] = {0.5, -0.25, 1.5};
static const double TARGET[N] = {9, -1.0, -1.5, -1.1, -0.3, -1.9, -1.3, 9, -0.2, 9, 9, 9, -1.6, -0.9, 9};
static const int MASK[N] = {0, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 1, 1, 0};

static void fill(double* x, int n, int k, double scale, double offset) {
    for (int i = 0; i < n; i++) x[i] = offset + scale * sin(0.7 * (i + 1) + 1.3 * k);
}

typedef struct { int which, norm, estimator; const double* other; } Case;

static double loss_of_case(double* d, const double* logp, const Case* c) {
    if (c->which == 0) return loss_policy_gradient(d, logp, ADV, MASK, B, T1, c->norm);
    if (c->which == 1) return loss_clip(d, logp, c->other, ADV, MASK, B, T1, 0.2, 0.28, c->norm);
    if (c->which == 2) return loss_sft(d, logp, MASK, B, T1);
    if (c->which == 4) return loss_gspo(d, logp, c->other, ADV, MASK, B, T1, 0.2, 0.28);
    if (c->which == 5) return loss_value(d, logp, c->other, TARGET, MASK, B, T1, c->estimator ? 0.2 : 0.0, c->norm);
    return loss_kl(d, logp, c->other, MASK, B, T1, c->norm, c->estimator);
}

// |analytic - numeric| <= 1e-6 * max(|analytic|, |numeric|), or both below what rounding leaves
static void check_gradient(double* logp, const Case* c) {
    double d[N], scratch[N], h = 1e-5, loss = loss_of_case(d, logp, c);
    CHECK(isfinite(loss));
    for (int i = 0; i < N; i++) {
        double x = logp[i];
        logp[i] = x + h; double up = loss_of_case(scratch, logp, c);
        logp[i] = x - h; double down = loss_of_case(scratch, logp, c);
        logp[i] = x;
        double numeric = (up - down) / (2.0 * h), size = fmax(fabs(d[i]), fabs(numeric));
        CHECK(fabs(d[i] - numeric) <= 1e-6 * size + 1e-10);
        if (!MASK[i]) CHECK(d[i] == 0.0);
    }
}

static void loss_gradients(void) {
    double logp[N], other[N];
    fill(logp, N, 4, 0.4, -1.2);
    fill(other, N, 5, 0.4, -1.2);
    for (int norm = 0; norm < 3; norm++) {
        Case pg = {0, norm, 0, other}, clip = {1, norm, 0, other}, sft = {2, norm, 0, other};
        Case gspo = {4, norm, 0, other}, value = {5, norm, 0, other}, value_clip = {5, norm, 1, other};
        check_gradient(logp, &gspo);
        check_gradient(logp, &value);
        check_gradient(logp, &value_clip);
        check_gradient(logp, &pg);
        check_gradient(logp, &clip);
        check_gradient(logp, &sft);
        for (int k = 1; k <= 3; k++) { Case kl = {3, norm, k, other}; check_gradient(logp, &kl); }
    }
}

static void clip_gradient_in_every_region(void) {
    // two ratios outside each bound, two inside, away from the corners 0.8 and 1.28, for both signs of advantage
    const double ratios[] = {0.3, 0.7, 0.9, 1.2, 1.4, 3.0};
    const int one[1] = {1};
    for (int i = 0; i < 6; i++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            double adv[1] = {0.7 * sign}, old[1] = {-2.0}, x[1] = {-2.0 + log(ratios[i])}, d[1], s[1], h = 1e-6;
            loss_clip(d, x, old, adv, one, 1, 1, 0.2, 0.28, NORM_TOKEN_MEAN);
            double up[1] = {x[0] + h}, down[1] = {x[0] - h};
            double numeric = (loss_clip(s, up, old, adv, one, 1, 1, 0.2, 0.28, NORM_TOKEN_MEAN) -
                              loss_clip(s, down, old, adv, one, 1, 1, 0.2, 0.28, NORM_TOKEN_MEAN)) / (2.0 * h);
            CHECK(fabs(d[0] - numeric) <= 1e-6 * fmax(fabs(d[0]), fabs(numeric)) + 1e-9);
            int stopped = (sign > 0 && ratios[i] > 1.28) || (sign < 0 && ratios[i] < 0.8);
            CHECK((d[0] == 0.0) == stopped);
        }
    }
}

static void gspo_gradient_in_every_region(void) {
    // the ratio of a whole answer outside each bound and inside, for both signs; tokens of one answer share their derivative
    const double ratios[] = {0.3, 0.7, 0.9, 1.2, 1.4, 3.0};
    const int mask[4] = {1, 1, 0, 1};
    for (int i = 0; i < 6; i++)
        for (int sign = -1; sign <= 1; sign += 2) {
            double adv[1] = {0.7 * sign}, old[4] = {-2.0, -1.0, NAN, -0.5}, x[4], d[4], s[4], h = 1e-6;
            for (int t = 0; t < 4; t++) x[t] = old[t] + log(ratios[i]) + (t == 0 ? 0.4 : t == 1 ? -0.3 : -0.1);
            loss_gspo(d, x, old, adv, mask, 1, 4, 0.2, 0.28);
            int stopped = (sign > 0 && ratios[i] > 1.28) || (sign < 0 && ratios[i] < 0.8);
            for (int t = 0; t < 4; t++) {
                if (!mask[t]) { CHECK(d[t] == 0.0); continue; }
                double kept = x[t];
                x[t] = kept + h; double up = loss_gspo(s, x, old, adv, mask, 1, 4, 0.2, 0.28);
                x[t] = kept - h; double down = loss_gspo(s, x, old, adv, mask, 1, 4, 0.2, 0.28);
                x[t] = kept;
                double numeric = (up - down) / (2.0 * h);
                CHECK(fabs(d[t] - numeric) <= 1e-6 * fmax(fabs(d[t]), fabs(numeric)) + 1e-9);
                CHECK((d[t] == 0.0) == stopped && d[t] == d[0]);
            }
        }
}

static void value_gradient_in_every_region(void) {
    // V below, inside and above the bounds V_old +- 0.2 = 0.3 .. 0.7; targets below, between and above. Clipped where the
    // bound is farther from the target than V is: V has gone beyond it, towards the target.
    const double values[] = {0.1, 0.45, 0.6, 0.9}, targets[] = {-1.0, 0.05, 0.47, 0.93, 2.0}, old[1] = {0.5};
    const int one[1] = {1};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 5; j++) {
            double x[1] = {values[i]}, d[1], s[1], h = 1e-6, up[1] = {x[0] + h}, down[1] = {x[0] - h};
            loss_value(d, x, old, targets + j, one, 1, 1, 0.2, NORM_TOKEN_MEAN);
            double numeric = (loss_value(s, up, old, targets + j, one, 1, 1, 0.2, NORM_TOKEN_MEAN) -
                              loss_value(s, down, old, targets + j, one, 1, 1, 0.2, NORM_TOKEN_MEAN)) / (2.0 * h);
            CHECK(fabs(d[0] - numeric) <= 1e-6 * fmax(fabs(d[0]), fabs(numeric)) + 1e-9);
            double held = fmin(fmax(x[0], 0.3), 0.7);
            CHECK((d[0] == 0.0) == (fabs(held - targets[j]) > fabs(x[0] - targets[j])));
        }
}

// The loss of every row of the table of methods, as group_backward computes it: policy_loss and, where a row has one, the KL
// term in the loss. Advantages are per token for GAE, per answer for all others. CISPO's weight is a constant: for the
// differences the old log-probability moves along, and the ratio stands still.
static void every_method_has_its_gradient(void) {
    Rng rng = random_stream(1, 2, 3);
    int moved = 0, stopped = 0;
    for (int i = 0; i < METHODS; i++) {
        for (int round = 0; round < 5; round++) {
            RlOptions o = rl_defaults();
            set_method(&o, methods[i].name);
            Learner l = learner_new(NULL, NULL, (Reward){0}, &o);
            double x[N], old[N], ref[N], adv[N], d[N], s[N], h = 1e-6;
            int mask[N], kl_in_loss = o.beta > 0.0 && !l.kl_in_reward;
            for (int j = 0; j < N; j++) {
                x[j] = -1.5 + random_normal(&rng) * 0.5, mask[j] = random_int(&rng, 4) > 0;
                old[j] = x[j] + random_normal(&rng) * (l.ratio == RATIO_SEQUENCE ? 0.05 : 0.3);
                ref[j] = x[j] + random_normal(&rng) * 0.3, adv[j] = random_normal(&rng);
                if (l.advantage != ADVANTAGE_GAE && j % T1) adv[j] = adv[j - 1];
                if (!mask[j]) x[j] = old[j] = ref[j] = NAN;
            }
            LossArrays a = {x, old, adv, mask, B, T1, 1, l.ratio == RATIO_SEQUENCE};
            policy_loss(d, &l, &a);
            if (kl_in_loss) add_kl_loss(d, &l, &a, ref);
            for (int j = 0; j < N; j++) {
                if (!mask[j]) { CHECK(d[j] == 0.0); continue; }
                double difference = 0.0, kept = x[j], kept_old = old[j];
                for (int sign = 1; sign >= -1; sign -= 2) {
                    x[j] = kept + sign * h, old[j] = kept_old + (l.ratio == RATIO_CISPO ? sign * h : 0.0);
                    difference += sign * policy_loss(s, &l, &a);
                    if (kl_in_loss) difference += sign * add_kl_loss(s, &l, &a, ref);
                }
                x[j] = kept, old[j] = kept_old;
                double numeric = difference / (2.0 * h);
                CHECK(fabs(d[j] - numeric) <= 1e-6 * fmax(fabs(d[j]), fabs(numeric)) + 1e-9);
                moved += d[j] != 0.0, stopped += d[j] == 0.0;
            }
        }
    }
    CHECK(moved > 200 && stopped > 10);
}

static void gradients_under_drift(void) {
    // log-ratios up to and beyond 80 on both sides: value and slope must still belong together
    const double drifts[] = {-120.0, -81.0, -79.0, -40.0, -1e-3, 1e-3, 40.0, 79.0, 81.0, 120.0};
    for (int i = 0; i < 10; i++) {
        for (int k = 1; k <= 3; k++) {
            double slope, s, h = 1e-5;
            kl_estimate(&slope, drifts[i], k);
            double numeric = (kl_estimate(&s, drifts[i] + h, k) - kl_estimate(&s, drifts[i] - h, k)) / (2.0 * h);
            CHECK(fabs(slope - numeric) <= 1e-6 * fmax(fabs(slope), fabs(numeric)));
        }
        double slope, s, h = 1e-5;
        TokenInput in = {.log_ratio = drifts[i], .advantage = drifts[i] > 0 ? -1.0 : 1.0, .clip_low = 0.2, .clip_high = 0.2};
        TokenInput up = in, down = in;
        up.log_ratio += h; down.log_ratio -= h;
        token_clip(&slope, &in);
        double numeric = (token_clip(&s, &up) - token_clip(&s, &down)) / (2.0 * h);
        CHECK(fabs(slope - numeric) <= 1e-6 * fmax(fabs(slope), fabs(numeric)) + 1e-300);
    }
}

static void preference_gradients(void) {
    const double margins[] = {-80.0, -3.0, -0.5, 0.0, 0.5, 3.0, 20.0};
    for (int i = 0; i < 7; i++) {
        double dc, dr, a, b, h = 1e-5, m = margins[i];
        loss_reward_model(&dc, &dr, 1.0 + m, 1.0);
        double nc = (loss_reward_model(&a, &b, 1.0 + m + h, 1.0) - loss_reward_model(&a, &b, 1.0 + m - h, 1.0)) / (2 * h);
        double nr = (loss_reward_model(&a, &b, 1.0 + m, 1.0 + h) - loss_reward_model(&a, &b, 1.0 + m, 1.0 - h)) / (2 * h);
        CHECK(fabs(dc - nc) <= 1e-6 * fabs(dc) + 1e-11 * fmax(1.0, fabs(m)));
        CHECK(fabs(dr - nr) <= 1e-6 * fabs(dr) + 1e-11 * fmax(1.0, fabs(m)));
        loss_dpo(&dc, &dr, -12.0 + m, -15.5, -11.0, -14.0, 0.7);
        nc = (loss_dpo(&a, &b, -12.0 + m + h, -15.5, -11.0, -14.0, 0.7) -
              loss_dpo(&a, &b, -12.0 + m - h, -15.5, -11.0, -14.0, 0.7)) / (2 * h);
        nr = (loss_dpo(&a, &b, -12.0 + m, -15.5 + h, -11.0, -14.0, 0.7) -
              loss_dpo(&a, &b, -12.0 + m, -15.5 - h, -11.0, -14.0, 0.7)) / (2 * h);
        CHECK(fabs(dc - nc) <= 1e-6 * fabs(dc) + 1e-11 * fmax(1.0, fabs(m)));
        CHECK(fabs(dr - nr) <= 1e-6 * fabs(dr) + 1e-11 * fmax(1.0, fabs(m)));
    }
}

// ---- exact sums over the 27 answers

static double theta[TOY_PARAMS], theta_ref[TOY_PARAMS], logp[TOY_PARAMS], logp_ref[TOY_PARAMS], reward[TOY_PARAMS];

static void set_up(void) {
    toy_fill(theta, TOY_PARAMS, 1, 1.0);
    toy_fill(theta_ref, TOY_PARAMS, 2, 1.0);
    toy_log_policy(logp, theta);
    toy_log_policy(logp_ref, theta_ref);
    toy_rewards(reward);
}

// J = sum_y pi(y) (r(y) - beta log(pi/pi_ref)), from whole answers, for central differences
static double objective(const double* at, double beta) {
    double lp[TOY_PARAMS], J = 0.0;
    toy_log_policy(lp, at);
    for (int y = 0; y < TOY_ANSWERS; y++) {
        double l = toy_sum_along(lp, y);
        J += exp(l) * (toy_verify(y) - beta * (l - toy_sum_along(logp_ref, y)));
    }
    return J;
}

static void exact_gradients_are_derivatives(void) {
    // MDP gradient against central differences of the 27-term sum, without (beta 0) and with the KL penalty
    for (double beta = 0.0; beta < 1.0; beta += 0.3) {
        double value[TOY_STATES], grad[TOY_PARAMS], penalized[TOY_PARAMS], h = 1e-5;
        toy_penalized(penalized, reward, logp, logp_ref, beta);
        CHECK_NEAR(toy_solve(value, grad, logp, penalized), objective(theta, beta), 1e-13);
        for (int e = 0; e < TOY_PARAMS; e++) {
            double at[TOY_PARAMS];
            memcpy(at, theta, sizeof at);
            at[e] = theta[e] + h; double up = objective(at, beta);
            at[e] = theta[e] - h; double down = objective(at, beta);
            CHECK(fabs(grad[e] - (up - down) / (2 * h)) <= 1e-6 * fabs(grad[e]) + 1e-10);
        }
    }
    double total = 0.0;
    for (int y = 0; y < TOY_ANSWERS; y++) total += exp(toy_sum_along(logp, y));
    CHECK_NEAR(total, 1.0, 1e-14);
}

static void views_and_baselines_agree(void) {
    double value[TOY_STATES], exact[TOY_PARAMS], grad[TOY_PARAMS], weight[TOY_ANSWERS], none, v;
    double J = toy_solve(value, exact, logp, reward);
    for (int y = 0; y < TOY_ANSWERS; y++) weight[y] = exp(toy_sum_along(logp, y)) * toy_verify(y);
    toy_answer_gradient(grad, logp, weight);
    CHECK(toy_largest_difference(grad, exact, TOY_PARAMS) < 1e-12);
    none = toy_rollout_gradient(grad, logp, reward, NULL, 1.0, CREDIT_WHOLE);
    CHECK(toy_largest_difference(grad, exact, TOY_PARAMS) < 1e-12);
    v = toy_rollout_gradient(grad, logp, reward, NULL, 1.0, CREDIT_TO_GO);
    CHECK(toy_largest_difference(grad, exact, TOY_PARAMS) < 1e-12);
    CHECK_NEAR(v, none, 1e-12);                          // one reward at the end: to-go is the whole return
    v = toy_rollout_gradient(grad, logp, reward, value, 1.0, CREDIT_TO_GO);
    CHECK(toy_largest_difference(grad, exact, TOY_PARAMS) < 1e-12 && v < none);
    // constants: same mean; the best one is a minimum of the variance
    double best = toy_best_baseline(logp, reward), at[3];
    const double constants[4] = {best - 0.01, best, best + 0.01, J};
    for (int i = 0; i < 4; i++) {
        double baseline[TOY_STATES];
        for (int s = 0; s < TOY_STATES; s++) baseline[s] = constants[i];
        double variance = toy_rollout_gradient(grad, logp, reward, baseline, 1.0, CREDIT_WHOLE);
        CHECK(toy_largest_difference(grad, exact, TOY_PARAMS) < 1e-12);
        if (i < 3) at[i] = variance;
    }
    CHECK(at[1] < at[0] && at[1] < at[2] && at[1] < none);
    // a token-by-token reward: its own reward only is wrong, whole and to-go are right
    for (int e = 0; e < TOY_PARAMS; e++) weight[e % TOY_ANSWERS] = 0.0;
    double paid[TOY_PARAMS];
    fill(paid, TOY_PARAMS, 5, 0.5, 0.2);
    toy_solve(value, exact, logp, paid);
    none = toy_rollout_gradient(grad, logp, paid, NULL, 1.0, CREDIT_WHOLE);
    CHECK(toy_largest_difference(grad, exact, TOY_PARAMS) < 1e-12);
    v = toy_rollout_gradient(grad, logp, paid, NULL, 1.0, CREDIT_TO_GO);
    CHECK(toy_largest_difference(grad, exact, TOY_PARAMS) < 1e-12 && v < none);
    toy_rollout_gradient(grad, logp, paid, NULL, 1.0, CREDIT_OWN);
    CHECK(toy_largest_difference(grad, exact, TOY_PARAMS) > 1e-2);
}

static void discounting_biases(void) {
    // credits 0.9801, 0.99, 1 instead of 1, 1, 1: between 0% and 2% short, and turned
    double value[TOY_STATES], exact[TOY_PARAMS], grad[TOY_PARAMS];
    toy_solve(value, exact, logp, reward);
    toy_rollout_gradient(grad, logp, reward, NULL, 0.99, CREDIT_TO_GO);
    double error = toy_relative_error(grad, exact, TOY_PARAMS);
    CHECK(error > 1e-3 && error < 0.0199 && toy_angle(grad, exact, TOY_PARAMS) > 0.1);
    // the true gradient of the discounted return: exactly 0.99^2 times as long, same direction
    toy_rollout_gradient(grad, logp, reward, NULL, 0.99, CREDIT_WHOLE);
    for (int e = 0; e < TOY_PARAMS; e++) CHECK_NEAR(grad[e], 0.9801 * exact[e], 1e-14);
    CHECK_NEAR(toy_angle(grad, exact, TOY_PARAMS), 0.0, 1e-9);
}

static void kl_on_27_answers(void) {
    double value[TOY_STATES], exact[TOY_PARAMS], grad[TOY_PARAMS], ratio[TOY_PARAMS], table[TOY_PARAMS];
    double all[TOY_ANSWERS], all_ref[TOY_ANSWERS], weight[TOY_ANSWERS], variance, negative, slope;
    for (int e = 0; e < TOY_PARAMS; e++) ratio[e] = logp[e] - logp_ref[e];
    for (int y = 0; y < TOY_ANSWERS; y++) { all[y] = toy_sum_along(logp, y); all_ref[y] = toy_sum_along(logp_ref, y); }
    double kl = exact_kl(all, all_ref, TOY_ANSWERS);
    CHECK_NEAR(toy_solve(value, exact, logp, ratio), kl, 1e-13);
    // exact is the derivative of the 27-term KL: KL(theta) = (objective(0) - objective(1))
    for (int e = 0; e < TOY_PARAMS; e += 5) {
        double at[TOY_PARAMS], h = 1e-5;
        memcpy(at, theta, sizeof at);
        at[e] = theta[e] + h; double up = objective(at, 0.0) - objective(at, 1.0);
        at[e] = theta[e] - h; double down = objective(at, 0.0) - objective(at, 1.0);
        CHECK(fabs(exact[e] - (up - down) / (2 * h)) <= 1e-6 * fabs(exact[e]) + 1e-10);
    }
    // k1 and k3 unbiased, whole answers and token sums; k2 not
    for (int k = 1; k <= 3; k++) {
        double mean = kl_moments(&variance, &negative, all, all_ref, TOY_ANSWERS, 1.0, k), sum = 0.0;
        for (int e = 0; e < TOY_PARAMS; e++) table[e] = kl_estimate(&slope, ratio[e], k);
        for (int y = 0; y < TOY_ANSWERS; y++) sum += exp(all[y]) * toy_sum_along(table, y);
        if (k == 2) CHECK(fabs(mean - kl) > 1e-2 && fabs(sum - kl) > 1e-2);
        else { CHECK_NEAR(mean, kl, 1e-13); CHECK_NEAR(sum, kl, 1e-13); }
    }
    // whole answers: k1 loss 0, k2 loss / k3*ratio / k1 reward exact, k3 loss is grad KL(ref||pi), D3's k1 minus
    double other[TOY_PARAMS];
    for (int y = 0; y < TOY_ANSWERS; y++) weight[y] = -exp(all_ref[y]);
    toy_answer_gradient(other, logp, weight);            // grad KL(ref||pi) = -sum_y ref(y) grad log pi(y)
    for (int use = 0; use < KL_USES; use++) {
        for (int y = 0; y < TOY_ANSWERS; y++) weight[y] = exp(all[y]) * kl_score_weight(all[y] - all_ref[y], use);
        toy_answer_gradient(grad, logp, weight);
        for (int e = 0; e < TOY_PARAMS; e++) {
            if (use == 0) CHECK_NEAR(grad[e], 0.0, 1e-14);
            if (use == 1 || use == 3 || use == 4) CHECK_NEAR(grad[e], exact[e], 1e-13);
            if (use == 2) CHECK_NEAR(grad[e], other[e], 1e-13);
            if (use == 6) CHECK_NEAR(grad[e], exact[e] - other[e], 1e-13);
            if (use == 7) CHECK_NEAR(grad[e], -exact[e], 1e-13);
        }
        if (use == 2 || use == 5 || use == 6 || use == 8) CHECK(toy_relative_error(grad, exact, TOY_PARAMS) > 0.1);
    }
    // token by token: k1 in the reward with the return stays exact; k2 in the loss does not
    toy_rollout_gradient(grad, logp, ratio, NULL, 1.0, CREDIT_TO_GO);
    CHECK(toy_largest_difference(grad, exact, TOY_PARAMS) < 1e-13);
    toy_rollout_gradient(grad, logp, ratio, NULL, 1.0, CREDIT_OWN);      // k2's slope is the log-ratio
    CHECK(toy_relative_error(grad, exact, TOY_PARAMS) > 0.1);
}

// The contract's loss_kl, put through all 27 answers: its expected gradient is what kl_on_27_answers uses
static void loss_kl_expected_gradient(void) {
    for (int k = 1; k <= 3; k++) {
        double grad[TOY_PARAMS] = {0}, table[TOY_PARAMS], expected[TOY_PARAMS];
        for (int y = 0; y < TOY_ANSWERS; y++) {
            double lp[TOY_T], ref[TOY_T], d[TOY_T], p = exp(toy_sum_along(logp, y));
            const int mask[TOY_T] = {1, 1, 1};
            int path[TOY_T];
            toy_path(path, y);
            for (int t = 0; t < TOY_T; t++) { lp[t] = logp[path[t]]; ref[t] = logp_ref[path[t]]; }
            loss_kl(d, lp, ref, mask, 1, TOY_T, NORM_SEQUENCE_SUM, k);
            for (int t = 0; t < TOY_T; t++) toy_add_score(grad, logp, path[t], p * d[t]);
        }
        for (int e = 0; e < TOY_PARAMS; e++) table[e] = kl_score_weight(logp[e] - logp_ref[e], k - 1);
        toy_rollout_gradient(expected, logp, table, NULL, 1.0, CREDIT_OWN);
        CHECK(toy_largest_difference(grad, expected, TOY_PARAMS) < 1e-13);
        if (k == 1) for (int e = 0; e < TOY_PARAMS; e++) CHECK_NEAR(grad[e], 0.0, 1e-14);
    }
}

// The contract's policy gradient through all 27 answers is minus grad J; with NORM_SEQUENCE_MEAN a third of it
static void loss_policy_gradient_is_unbiased(void) {
    double value[TOY_STATES], exact[TOY_PARAMS];
    toy_solve(value, exact, logp, reward);
    for (int norm = 0; norm < 3; norm++) {
        double grad[TOY_PARAMS] = {0};
        for (int y = 0; y < TOY_ANSWERS; y++) {
            double lp[TOY_T], d[TOY_T], adv[1] = {toy_verify(y) - 0.3}, p = exp(toy_sum_along(logp, y));
            const int mask[TOY_T] = {1, 1, 1};
            int path[TOY_T];
            toy_path(path, y);
            for (int t = 0; t < TOY_T; t++) lp[t] = logp[path[t]];
            loss_policy_gradient(d, lp, adv, mask, 1, TOY_T, norm);
            for (int t = 0; t < TOY_T; t++) toy_add_score(grad, logp, path[t], p * d[t]);
        }
        for (int e = 0; e < TOY_PARAMS; e++)
            CHECK_NEAR(grad[e], norm == NORM_SEQUENCE_SUM ? -exact[e] : -exact[e] / 3.0, 1e-13);
    }
}

static void regularized_optimum(void) {
    const double betas[] = {2.0, 0.7, 0.3};
    for (int i = 0; i < 3; i++) {
        double at[TOY_PARAMS], lp[TOY_PARAMS], p[TOY_ANSWERS], best[TOY_ANSWERS], sum = 0.0, Z = 0.0;
        memcpy(at, theta_ref, sizeof at);
        CHECK(toy_ascend(at, logp_ref, reward, betas[i], 2.0 / (0.3 + betas[i]), 1e-11, 100000) < 100000);
        toy_log_policy(lp, at);
        toy_probabilities(p, lp);
        double log_Z = toy_optimum(best, logp_ref, reward, betas[i]);
        for (int y = 0; y < TOY_ANSWERS; y++) {
            double tilted = exp(toy_sum_along(logp_ref, y) + toy_verify(y) / betas[i]);
            Z += tilted;
            CHECK_NEAR(best[y] * exp(log_Z), tilted, 1e-12);
            CHECK_NEAR(p[y], best[y], 1e-9);
            sum += p[y];
        }
        CHECK_NEAR(sum, 1.0, 1e-12);
        CHECK_NEAR(log_Z, log(Z), 1e-12);
        CHECK_NEAR(objective(at, betas[i]), betas[i] * log_Z, 1e-12);
        CHECK(objective(theta, betas[i]) < betas[i] * log_Z);
    }
}

static void dpo_reaches_the_optimum(void) {
    double verdict[TOY_ANSWERS];
    for (int y = 0; y < TOY_ANSWERS; y++) verdict[y] = toy_verify(y);
    // the gradient is the derivative of the expected loss
    double grad[TOY_PARAMS], scratch[TOY_PARAMS], h = 1e-5;
    toy_dpo_gradient(grad, logp, logp_ref, verdict, 0.5);
    for (int e = 0; e < TOY_PARAMS; e += 4) {
        double at[TOY_PARAMS], lp[TOY_PARAMS];
        memcpy(at, theta, sizeof at);
        at[e] = theta[e] + h; toy_log_policy(lp, at); double up = toy_dpo_gradient(scratch, lp, logp_ref, verdict, 0.5);
        at[e] = theta[e] - h; toy_log_policy(lp, at); double down = toy_dpo_gradient(scratch, lp, logp_ref, verdict, 0.5);
        CHECK(fabs(grad[e] - (up - down) / (2 * h)) <= 1e-6 * fabs(grad[e]) + 1e-10);
    }
    const double betas[] = {1.0, 0.3, 0.1};
    for (int i = 0; i < 3; i++) {
        double at[TOY_PARAMS], lp[TOY_PARAMS], p[TOY_ANSWERS], best[TOY_ANSWERS];
        memcpy(at, theta_ref, sizeof at);
        toy_train_dpo(at, logp_ref, verdict, betas[i], 800);
        toy_log_policy(lp, at);
        toy_probabilities(p, lp);
        double log_Z = toy_optimum(best, logp_ref, reward, betas[i]);
        for (int y = 0; y < TOY_ANSWERS; y++) {
            CHECK_NEAR(p[y], best[y], 1e-9);
            // implicit reward beta log(pi/pi_ref) + beta log Z is the reward
            CHECK_NEAR(betas[i] * (toy_sum_along(lp, y) - toy_sum_along(logp_ref, y) + log_Z), verdict[y], 1e-6);
        }
    }
}

static void reward_model_learns_differences(void) {
    // at r + constant the expected gradient of loss_reward_model is 0: sigma(d)(-sigma(-d)) + sigma(-d) sigma(d) = 0
    for (int i = 0; i < TOY_ANSWERS; i++) {
        double sum = 0.0, dc, dr;
        for (int j = 0; j < TOY_ANSWERS; j++) {
            if (i == j) continue;
            double wins = sigmoid(toy_verify(i) - toy_verify(j));
            loss_reward_model(&dc, &dr, toy_verify(i) + 5.0, toy_verify(j) + 5.0); sum += wins * dc;
            loss_reward_model(&dc, &dr, toy_verify(j) + 5.0, toy_verify(i) + 5.0); sum += (1.0 - wins) * dr;
        }
        CHECK_NEAR(sum, 0.0, 1e-14);
    }
}

static void best_of_n_distribution(void) {
    // N = 3: all 27^3 triples through best_of_n. Ties go to the first, which is as good as random: draws are alike.
    double p_ref[TOY_ANSWERS], p[TOY_ANSWERS], counted[TOY_ANSWERS] = {0}, grades[TOY_ANSWERS], best[TOY_ANSWERS];
    toy_probabilities(p_ref, logp_ref);
    for (int y = 0; y < TOY_ANSWERS; y++) grades[y] = y / 9 + y / 3 % 3 + y % 3;      // seven reward levels
    for (int a = 0; a < TOY_ANSWERS; a++)
        for (int b = 0; b < TOY_ANSWERS; b++)
            for (int c = 0; c < TOY_ANSWERS; c++) {
                const double rewards[3] = {grades[a], grades[b], grades[c]};
                const int drawn[3] = {a, b, c};
                counted[drawn[best_of_n(rewards, 3)]] += p_ref[a] * p_ref[b] * p_ref[c];
            }
    toy_best_of_n(p, p_ref, grades, 3);
    double expected = 0.0, sum = 0.0;
    for (int y = 0; y < TOY_ANSWERS; y++) { CHECK_NEAR(counted[y], p[y], 1e-13); expected += p[y] * grades[y]; sum += p[y]; }
    CHECK_NEAR(sum, 1.0, 1e-13);
    // seven levels: no beta makes pi* equal to it. Match E[r] by bisection, a difference stays.
    double low = 0.05, high = 50.0, table[TOY_PARAMS] = {0};
    for (int y = 0; y < TOY_ANSWERS; y++) table[TOY_LAST + y] = grades[y];
    for (int i = 0; i < 100; i++) {
        double middle = sqrt(low * high), r = 0.0;
        toy_optimum(best, logp_ref, table, middle);
        for (int y = 0; y < TOY_ANSWERS; y++) r += best[y] * grades[y];
        if (r > expected) low = middle; else high = middle;
    }
    CHECK(toy_largest_difference(p, best, TOY_ANSWERS) > 1e-3);
    // two levels: equal to pi* for beta = 1/log(odds ratio)
    double verdict[TOY_ANSWERS], passed = 0.0, passed_ref = 0.0;
    for (int y = 0; y < TOY_ANSWERS; y++) verdict[y] = toy_verify(y);
    toy_best_of_n(p, p_ref, verdict, 4);
    for (int y = 0; y < TOY_ANSWERS; y++) { passed += p[y] * verdict[y]; passed_ref += p_ref[y] * verdict[y]; }
    CHECK_NEAR(passed, 1.0 - pow(1.0 - passed_ref, 4), 1e-13);             // at least one of four passes
    toy_optimum(best, logp_ref, reward, 1.0 / log(passed / (1 - passed) * (1 - passed_ref) / passed_ref));
    CHECK(toy_largest_difference(p, best, TOY_ANSWERS) < 1e-12);
}

int main(void) {
    set_up();
    RUN(loss_gradients);
    RUN(clip_gradient_in_every_region);
    RUN(gspo_gradient_in_every_region);
    RUN(value_gradient_in_every_region);
    RUN(every_method_has_its_gradient);
    RUN(gradients_under_drift);
    RUN(preference_gradients);
    RUN(exact_gradients_are_derivatives);
    RUN(views_and_baselines_agree);
    RUN(discounting_biases);
    RUN(kl_on_27_answers);
    RUN(loss_kl_expected_gradient);
    RUN(loss_policy_gradient_is_unbiased);
    RUN(regularized_optimum);
    RUN(dpo_reaches_the_optimum);
    RUN(reward_model_learns_differences);
    RUN(best_of_n_distribution);
    (void)lesson_4; (void)lesson_8; (void)lesson_9;
    return check_failed != 0;
}

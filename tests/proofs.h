// proofs.h - the model of 27 answers (chapter 4), two policies on it and its rewards: what the exact sums of
// chapters 4, 8 and 9 are taken over.

static double p_theta[TOY_PARAMS], p_theta_ref[TOY_PARAMS], p_logp[TOY_PARAMS], p_logp_ref[TOY_PARAMS],
    p_reward[TOY_PARAMS];

static void p_set_up(void) {
    toy_fill(p_theta, TOY_PARAMS, 1, 1.0);
    toy_fill(p_theta_ref, TOY_PARAMS, 2, 1.0);
    toy_log_policy(p_logp, p_theta);
    toy_log_policy(p_logp_ref, p_theta_ref);
    toy_rewards(p_reward);
}

static double toy_largest_difference(const double* a, const double* b, int n) {
    double largest = 0.0;
    for (int i = 0; i < n; i++) largest = fmax(largest, fabs(a[i] - b[i]));
    return largest;
}

// The angle between two vectors in degrees. acos(a.b / |a| |b|) would lose the small ones to rounding.
static double toy_angle(const double* a, const double* b, int n) {
    double cross = 0.0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) cross += (a[i] * b[j] - a[j] * b[i]) * (a[i] * b[j] - a[j] * b[i]);
    return atan2(sqrt(cross), inner_product(a, b, n)) * 180.0 / M_PI;
}

// Expected gradient by the n logits of a softmax: grad_j = sum_i p_i weight_i (1[i=j] - p_j).
static void softmax_score_sum(double* grad, const double* logp, const double* weight, int n) {
    for (int j = 0; j < n; j++) {
        grad[j] = 0.0;
        for (int i = 0; i < n; i++)
            grad[j] += exp(logp[i]) * weight[i] * ((i == j ? 1.0 : 0.0) - exp(logp[j]));
    }
}

// The gradient of KL itself, from its definition and the quotient rule (no scores): for the logits of a
// softmax, d/dlogit_j sum_i p_i log(p_i/q_i) = p_j (log(p_j/q_j) - KL), and for KL(q||p) it is p_j - q_j.
static void exact_kl_gradient(double* grad, double* grad_other, const double* logp, const double* logp_ref,
                              int n) {
    double kl = exact_kl(logp, logp_ref, n);
    for (int j = 0; j < n; j++) {
        grad[j] = exp(logp[j]) * (logp[j] - logp_ref[j] - kl);
        grad_other[j] = exp(logp[j]) - exp(logp_ref[j]);
    }
}

// J = sum_y pi(y) (r(y) - beta log(pi/pi_ref)), from whole answers, for central differences
static double p_objective(const double* at, double beta) {
    double lp[TOY_PARAMS], J = 0.0;
    toy_log_policy(lp, at);
    for (int y = 0; y < TOY_ANSWERS; y++) {
        double l = toy_sum_along(lp, y);
        J += exp(l) * (toy_verify(y) - beta * (l - toy_sum_along(p_logp_ref, y)));
    }
    return J;
}

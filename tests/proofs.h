// proofs.h - the model of 27 answers (chapter 4), two policies on it and its rewards: what the exact sums of
// chapters 4, 8 and 9 are taken over. In double precision only.
#ifndef PROOFS_H
#define PROOFS_H

static double p_theta[TOY_PARAMS], p_theta_ref[TOY_PARAMS], p_logp[TOY_PARAMS], p_logp_ref[TOY_PARAMS],
    p_reward[TOY_PARAMS];

static void p_set_up(void) {
    toy_fill(p_theta, TOY_PARAMS, 1, 1.0);
    toy_fill(p_theta_ref, TOY_PARAMS, 2, 1.0);
    toy_log_policy(p_logp, p_theta);
    toy_log_policy(p_logp_ref, p_theta_ref);
    toy_rewards(p_reward);
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
#endif

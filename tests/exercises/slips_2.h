/* slips_2.h - exercises 17 to 28: their inputs, and each classic slip as a line, for table.h. */

// ---- 17. three estimators of the KL

static void make_kl(Case* c, int which, uint64_t* rng) {
    add_arg(c, "k", OUT_DOUBLES, 3);
    add_number(c, "logp", REAL, which == 0 ? log(0.5) : random_between(rng, -3, -0.1));
    add_number(c, "logp_ref", REAL, which == 0 ? log(0.25) : random_between(rng, -3, -0.1));
}

CALL(kl, AS(my_kl)(doubles(f, 0), number(f, 1), number(f, 2)))

#define KL(name, first, second, third) \
    static void name(double* k, double logp, double logp_ref) { \
        double x = logp - logp_ref; \
        k[0] = first; \
        k[1] = second; \
        k[2] = third; \
    }
KL(kl_printed, -x, x * x / 2, exp(x) - 1 - x)
KL(kl_printed_k1, -x, x * x / 2, exp(-x) - 1 + x)
KL(kl_printed_k3, x, x * x / 2, exp(x) - 1 - x)
KL(kl_no_1, x, x * x / 2, exp(-x) + x)
KL(kl_no_half, x, x * x, exp(-x) - 1 + x)
KL(kl_no_ratio, x, x * x / 2, exp(-x) - 1)
KL(kl_minus_ratio, x, x * x / 2, exp(-x) - 1 - x)
KL(kl_plus_in_exp, x, x * x / 2, exp(x) - 1 + x)
KL(kl_half_k1, x, x / 2, exp(-x) - 1 + x)
KL(kl_half_is_0, x, 0, exp(-x) - 1 + x)
KL(kl_probabilities, exp(logp) * x, x * x / 2, exp(-x) - 1 + x)

// ---- 18. reward minus beta KL

static void make_penalized(Case* c, int which, uint64_t* rng) {
    double kl[VALUES], mask[VALUES];
    int n = which == 0 ? 4 : which == 1 ? 2 : random_whole(rng, 5, 7);
    for (int t = 0; t < n; t++) mask[t] = t >= 1 && t < n - 1 && t != 2;
    add_number(c, "reward", REAL, which == 0 ? 1 : which == 1 ? 0.5 : random_between(rng, -1, 1));
    add_numbers(c, "kl", FLOATS, n,
                which == 0   ? NUMBERS(0.1, 0.2, 0.3, 0.9)
                : which == 1 ? NUMBERS(0.2, NAN)
                             : some(kl, n, 0, 1, rng));
    add_numbers(c, "mask", WHOLES, n, which == 0 ? NUMBERS(1, 1, 1, 0) : which == 1 ? NUMBERS(1, 0) : mask);
    add_number(c, "T1", WHOLE, n);
    add_number(c, "beta", REAL, which == 0 ? 0.1 : which == 1 ? 0.5 : random_between(rng, 0.1, 0.6));
}

CALL(penalized,
     returns(f, AS(my_penalized_reward)((float)number(f, 0), floats(f, 1), wholes(f, 2), whole(f, 3),
                                        (float)number(f, 4))))

#define PENALTY(name, take, expression) \
    static double name(float r, const float* kl, const int* mask, int n, float beta) { \
        int count; \
        double sum = kl_sum(&count, kl, mask, n, take); \
        return expression; \
    }
PENALTY(penalty_mean, SKIP, r - beta * sum / count)
PENALTY(penalty_mean_multiplied, MULTIPLY, r - beta * sum / count)
PENALTY(penalty_mean_of_all, SKIP, r - beta * sum / n)
PENALTY(penalty_plus, SKIP, r + beta * sum)
PENALTY(penalty_plus_multiplied, MULTIPLY, r + beta * sum)
PENALTY(penalty_no_beta, SKIP, r - sum)
PENALTY(penalty_pads, ALL, r - beta * sum)
PENALTY(penalty_multiplied, MULTIPLY, r - beta * sum)
PENALTY(penalty_each_token, SKIP, r * count - beta * sum)
PENALTY(penalty_sign, SKIP, beta * sum - r)
PENALTY(penalty_alone, SKIP, -beta * sum)

static double penalty_last(float r, const float* kl, const int* mask, int n, float beta) {
    double last = 0.0;
    for (int t = 0; t < n; t++) last = mask[t] ? kl[t] : last;
    return r - beta * last;
}

// ---- 19 and 20. the loss of a group and its slopes

static const double four_logp[12] = {-1, -1, -3, -2, -1, -1, -1, -2, -3, -1, -3, -3};          // times log 2
static const double four_mask[12] = {1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 0, 0};

static void add_group(Case* c, int which, uint64_t* rng, int with_logp) {
    double logp[VALUES], reward[VALUES], mask[VALUES];
    int K = which == 0 ? 4 : 3, T1 = which == 0 ? 3 : random_whole(rng, 5, 6);
    for (int i = 0; i < K * T1; i++) {
        int t = i % T1;
        mask[i] = which == 0 ? four_mask[i] : t >= 1 && t < T1 - i / T1;
        logp[i] = which == 0 ? four_logp[i] * log(2.0) : random_between(rng, -3, -0.1);
    }
    if (with_logp) add_numbers(c, "logp", FLOATS, K * T1, logp)->row = T1;
    add_numbers(c, "reward", FLOATS, K, which == 0 ? NUMBERS(1, 1, 0, 0) : some(reward, K, 0.3, 2, rng));
    add_numbers(c, "mask", WHOLES, K * T1, mask)->row = T1;
    add_number(c, "K", WHOLE, K);
    add_number(c, "T1", WHOLE, T1);
}

static void make_group_loss(Case* c, int which, uint64_t* rng) { add_group(c, which, rng, 1); }

CALL(group_loss,
     returns(f, AS(my_group_loss)(floats(f, 0), floats(f, 1), wholes(f, 2), whole(f, 3), whole(f, 4))))

static void make_group_slopes(Case* c, int which, uint64_t* rng) {
    int K = which == 0 ? 4 : 3;
    Case rest = {0};
    add_group(&rest, which, rng, 0);
    int T1 = (int)rest.arg[3].value[0];
    add_arg(c, "dlogp", OUT_FLOATS, K * T1)->row = T1;
    for (int i = 0; i < rest.args; i++) c->arg[c->args++] = rest.arg[i];
}

CALL(group_slopes, AS(my_group_slopes)(floats(f, 0), floats(f, 1), wholes(f, 2), whole(f, 3), whole(f, 4)))

enum {
    RAW = 1,
    STANDARDIZED = 2,
    LEAVE_ONE_OUT = 4, // the advantage, else centered
    EVERYWHERE = 8,    // the tokens, else those of the mask
    BY_ANSWERS = 32,
    BY_ALL = 64,
    BY_ANSWER = 128,
    BY_NOTHING = 256,
    PLUS = 512
};

// The loss with one slip, and its derivatives (dlogp or logp may be NULL).
static double group_slip(float* dlogp, const float* logp, const float* r, const int* mask, int K, int T1,
                         int slip) {
    double loss = 0.0;
    int in_group = 0;
    for (int i = 0; i < K * T1; i++) in_group += mask[i];
    for (int k = 0; k < K; k++) {
        double adv = slip & RAW ? r[k] : r[k] - total(r, K) / K;
        int in_answer = 0;
        if (slip & STANDARDIZED) adv /= sqrt(squares(r, K) / (K - 1));
        if (slip & LEAVE_ONE_OUT) adv *= (double)K / (K - 1);
        for (int i = k * T1; i < (k + 1) * T1; i++) in_answer += mask[i];
        double count = slip & BY_ANSWERS ? K : slip & BY_ALL ? K * T1 : slip & BY_ANSWER ? K * in_answer
                     : slip & BY_NOTHING ? 1 : in_group;
        double w = (slip & PLUS ? adv : -adv) / count;
        for (int i = k * T1; i < (k + 1) * T1; i++) {
            int scored = slip & EVERYWHERE ? 1 : mask[i];
            if (logp && scored) loss += w * logp[i];
            if (dlogp) dlogp[i] = scored ? (float)w : 0.0f;
        }
    }
    return loss;
}
// the loss and the slopes with one slip
#define BOTH(name, slip) \
    static double loss_##name(const float* logp, const float* reward, const int* mask, int K, int T1) { \
        return group_slip(NULL, logp, reward, mask, K, T1, slip); \
    } \
    static void slopes_##name(float* dlogp, const float* reward, const int* mask, int K, int T1) { \
        group_slip(dlogp, NULL, reward, mask, K, T1, slip); \
    }
BOTH(sign, PLUS)
BOTH(by_answer, BY_ANSWER)
BOTH(by_answers, BY_ANSWERS)
BOTH(pads_in_count, BY_ALL)
BOTH(raw, RAW)
BOTH(no_mask, EVERYWHERE | BY_ALL)
BOTH(pads_in_sum, EVERYWHERE)
BOTH(standardized, STANDARDIZED)
BOTH(leave_one_out, LEAVE_ONE_OUT)
BOTH(sum, BY_NOTHING)

// ---- 21. PPO's clip

static void make_clip(Case* c, int which, uint64_t* rng) {
    double adv = random_between(rng, 0.5, 2) * (random_whole(rng, 0, 1) ? 1 : -1);
    add_arg(c, "slope", OUT_DOUBLES, 1);
    add_number(c, "ratio", REAL,
               which < 2    ? 1.5
               : which < 4  ? 0.5
               : which == 4 ? random_between(rng, 0.9, 1.1)
               : which == 5 ? random_between(rng, 1.35, 1.9)
                            : random_between(rng, 0.3, 0.7));
    add_number(c, "adv", REAL, which == 0 || which == 3 ? -1 : which < 4 ? 1 : adv);
    add_number(c, "clip_low", REAL, 0.2);
    add_number(c, "clip_high", REAL, 0.28);
}

CALL(clip, returns(f, AS(my_clip)(doubles(f, 0), number(f, 1), number(f, 2), number(f, 3), number(f, 4))))

static double held(double ratio, double low, double high) { return fmin(fmax(ratio, 1.0 - low), 1.0 + high); }

// the slope and the loss; right_slope and right_loss: rl.c's; cut: the held ratio, plain: without a clip
#define CLIP_ARGUMENTS (double* slope, double ratio, double adv, double low, double high)
#define CLIP(name, its_slope, its_loss) \
    static double name CLIP_ARGUMENTS { \
        double right_slope, right_loss = sol_clip(&right_slope, ratio, adv, low, high); \
        double cut = held(ratio, low, high), plain = ratio * adv; \
        *slope = its_slope; \
        return its_loss; \
    }
CLIP(clip_no_min, cut == ratio ? -plain : 0.0, -cut * adv)
CLIP(clip_max, cut * adv > plain ? 0.0 : -plain, -fmax(plain, cut * adv))
CLIP(clip_none, -plain, -plain)
CLIP(clip_slope_kept, -plain, right_loss)
CLIP(clip_slope_of_loss, right_loss, right_loss)
CLIP(clip_by_ratio, right_slope / ratio, right_loss)
GIVES(clip_swapped, CLIP_ARGUMENTS, sol_clip(slope, ratio, adv, high, low))
GIVES(clip_low_twice, CLIP_ARGUMENTS, sol_clip(slope, ratio, adv, low, low))
CLIP(clip_sign, -right_slope, -right_loss)
CLIP(clip_sign_of_loss, right_slope, -right_loss)
CLIP(clip_sign_of_slope, -right_slope, right_loss)

// ---- 22. GAE

static void make_gae(Case* c, int which, uint64_t* rng) {
    double r[VALUES], v[VALUES];
    int T = which == 0 ? 2 : random_whole(rng, 3, 5);
    add_arg(c, "adv", OUT_FLOATS, T);
    add_numbers(c, "reward", FLOATS, T, which == 0 ? NUMBERS(0, 1) : some(r, T, -1, 1, rng));
    add_numbers(c, "value", FLOATS, T, which == 0 ? NUMBERS(0.25, 0.5) : some(v, T, -1, 1, rng));
    add_number(c, "T", WHOLE, T);
    add_number(c, "gamma", REAL, which == 0 ? 0.9 : random_between(rng, 0.7, 0.95));
    add_number(c, "lambda", REAL, which == 0 ? 0.5 : random_between(rng, 0.2, 0.8));
}

CALL(gae,
     AS(my_gae)(floats(f, 0), floats(f, 1), floats(f, 2), whole(f, 3), (float)number(f, 4),
                (float)number(f, 5)))

// fade: of the advantage; discount: of the next value; end: the value and the advantage behind the last step,
// own: times V(s_t)
static void gae_slip(float* adv, const float* r, const float* v, int T, double discount, double fade,
                     double end, double own) {
    double next_adv = 0.0, next_value = end;
    for (int t = T - 1; t >= 0; t--) {
        next_adv = r[t] + discount * next_value - own * v[t] + fade * next_adv;
        next_value = v[t];
        adv[t] = (float)next_adv;
    }
}
#define GAE(name, discount, fade, end, own) \
    static void name(float* adv, const float* r, const float* v, int T, float gamma, float lambda) { \
        gae_slip(adv, r, v, T, discount, fade, end, own); \
    }
GAE(gae_no_gamma_in_decay, gamma, lambda, 0, 1)
GAE(gae_no_gamma, 1, lambda, 0, 1)
GAE(gae_no_gamma_in_delta, 1, (double)gamma * lambda, 0, 1)
GAE(gae_bootstrap, gamma, (double)gamma * lambda, v[T - 1], 1)
GAE(gae_lambda_0, gamma, 0, 0, 1)
GAE(gae_lambda_1, gamma, gamma, 0, 1)
GAE(gae_no_next_value, 0, (double)gamma * lambda, 0, 1)
GAE(gae_no_own_value, gamma, (double)gamma * lambda, 0, 0)
GAE(gae_no_values, 0, (double)gamma * lambda, 0, 0)
GAE(gae_own_added, gamma, (double)gamma * lambda, 0, -1)

static void gae_target(float* adv, const float* r, const float* v, int T, float gamma, float lambda) {
    sol_gae(adv, r, v, T, gamma, lambda);
    for (int t = 0; t < T; t++) adv[t] += v[t];
}
static void gae_forward(float* adv, const float* r, const float* v, int T, float gamma, float lambda) {
    double last = 0.0;
    for (int t = 0; t < T; t++) {
        double delta = r[t] + gamma * (t + 1 < T ? v[t + 1] : 0.0f) - v[t];
        last = delta + (double)gamma * lambda * last;
        adv[t] = (float)last;
    }
}

// ---- 23. supervised fine-tuning

static void make_sft(Case* c, int which, uint64_t* rng) {
    double logp[VALUES], mask[VALUES];
    int n = which == 0 ? 4 : random_whole(rng, 6, 8);
    for (int t = 0; t < n; t++) mask[t] = t >= 2 && t < n - 1;
    add_numbers(c, "logp", FLOATS, n,
                which == 0 ? NUMBERS(-4, -6, -0.5, -1.5) : some(logp, n, -5, -0.1, rng));
    add_numbers(c, "mask", WHOLES, n, which == 0 ? NUMBERS(0, 0, 1, 1) : mask);
    add_number(c, "n", WHOLE, n);
}

CALL(sft, returns(f, AS(my_sft)(floats(f, 0), wholes(f, 1), whole(f, 2))))

#define SFT(name, take, expression) \
    static double name(const float* logp, const int* mask, int n) { \
        int count; \
        double sum = kl_sum(&count, logp, mask, n, take); \
        return expression; \
    }
SFT(sft_prompt, ALL, -sum / n)
SFT(sft_sum, SKIP, -sum)
SFT(sft_sign, SKIP, sum / count)
SFT(sft_by_all, SKIP, -sum / n)
SFT(sft_prompt_in_sum, ALL, -sum / count)
SFT(sft_perplexity, SKIP, exp(-sum / count))
SFT(sft_probability, SKIP, exp(sum / count))
SFT(sft_inverted, ALL, -(sum - kl_sum(&count, logp, mask, n, SKIP)) / (n - ones_in(mask, n)))
SUMS(sft_mean_probability, (const float* logp, const int* mask, int n), n,
     mask[t] ? -exp(logp[t]) / ones_in(mask, n) : 0.0)

// ---- 24. Bradley-Terry

static void make_bradley_terry(Case* c, int which, uint64_t* rng) {
    add_number(c, "chosen", REAL, which == 0 ? 1.3 : which == 1 ? -400 : random_between(rng, -2, 2));
    add_number(c, "rejected", REAL, which == 0 ? 0.4 : which == 1 ? 400 : random_between(rng, -2, 2));
}

CALL(bradley_terry, returns(f, AS(my_reward_model_loss)(number(f, 0), number(f, 1))))

static double plain_sigmoid(double z) { return 1.0 / (1.0 + exp(-z)); }
static double softplus(double z) { return fmax(z, 0.0) + log1p(exp(-fabs(z))); } // - log sigma(-z), stable

#define PAIR(name, expression) \
    static double name(double chosen, double rejected) { \
        double d = chosen - rejected; \
        return expression; \
    }
PAIR(pair_swapped, softplus(d))
PAIR(pair_no_log, plain_sigmoid(d))
PAIR(pair_one_minus, 1.0 - plain_sigmoid(d))
PAIR(pair_overflow, -log(plain_sigmoid(d)))
PAIR(pair_sign, -softplus(-d))
PAIR(pair_sign_2, log(plain_sigmoid(d)))
PAIR(pair_difference, -d)
PAIR(pair_chosen_alone, softplus(-chosen))

// ---- 25. DPO

static void make_dpo(Case* c, int which, uint64_t* rng) {
    add_number(c, "chosen", REAL, which == 0 ? -10 : random_between(rng, -14, -6));
    add_number(c, "rejected", REAL, which == 0 ? -13.5 : random_between(rng, -14, -6));
    add_number(c, "ref_chosen", REAL, which == 0 ? -11 : random_between(rng, -14, -6));
    add_number(c, "ref_rejected", REAL, which == 0 ? -14 : random_between(rng, -14, -6));
    add_number(c, "beta", REAL, which == 0 ? 0.1 : random_between(rng, 0.1, 0.5));
}

CALL(dpo, returns(f, AS(my_dpo)(number(f, 0), number(f, 1), number(f, 2), number(f, 3), number(f, 4))))

// w, l: the two log-probs; rw, rl: under the reference
#define DPO(name, expression) \
    static double name(double w, double l, double rw, double rl, double beta) { \
        return expression; \
    }
DPO(dpo_no_reference, softplus(-beta * (w - l)))
DPO(dpo_swapped, softplus(beta * ((w - rw) - (l - rl))))
DPO(dpo_no_beta, softplus(-((w - rw) - (l - rl))))
DPO(dpo_no_log, plain_sigmoid(beta * ((w - rw) - (l - rl))))
DPO(dpo_sign, -softplus(-beta * ((w - rw) - (l - rl))))
DPO(dpo_reference_added, softplus(-beta * ((w + rw) - (l + rl))))
DPO(dpo_chosen_alone, softplus(-beta * (w - rw)))
DPO(dpo_sum, softplus(-beta * ((w - rw) + (l - rl))))
DPO(dpo_no_log_sigma, -beta * ((w - rw) - (l - rl)))
DPO(dpo_beta_outside, beta * softplus(-((w - rw) - (l - rl))))
DPO(dpo_divided, softplus(-((w - rw) - (l - rl)) / beta))

// ---- 26. best of N

static void make_best_of_n(Case* c, int which, uint64_t* rng) {
    double r[VALUES];
    int n = which == 0 ? 4 : which == 1 || which == 3 ? 3 : which == 2 ? 2 : random_whole(rng, 5, 7);
    for (int i = 0; i < n; i++) r[i] = random_whole(rng, 0, 4) / 4.0 - 2.0;
    r[random_whole(rng, 1, n - 1)] = NAN;
    add_numbers(c, "reward", FLOATS, n,
                which == 0   ? NUMBERS(0.2, 0.9, NAN, 0.9)
                : which == 1 ? NUMBERS(NAN, 0.5, 0.9)
                : which == 2 ? NUMBERS(NAN, NAN)
                : which == 3 ? NUMBERS(-2, -1, -3)
                             : r);
    add_number(c, "n", WHOLE, n);
}

CALL(best_of_n, returns(f, AS(my_best_of_n)(floats(f, 0), whole(f, 1))))

// where the search begins, and when reward i replaces the best so far
#define BEST(name, begin, better) \
    static int name(const float* r, int n) { \
        int best = begin; \
        for (int i = 0; i < n; i++) \
            if (better) best = i; \
        return best; \
    }
BEST(best_last, -1, !isnan(r[i]) && (best < 0 || r[i] >= r[best]))
BEST(best_nan_first, 0, r[i] > r[best])
BEST(best_nan_first_last, 0, r[i] >= r[best])
BEST(best_nan_wins, 0, !(r[i] <= r[best]))
BEST(best_any_nan, sol_best_of_n(r, n), isnan(r[i]) && (best < 0 || !isnan(r[best])))
BEST(best_none_is_0, sol_best_of_n(r, n), best < 0)
BEST(best_smallest, -1, !isnan(r[i]) && (best < 0 || r[i] < r[best]))
BEST(best_from_0, -1, r[i] > (best < 0 ? 0.0f : r[best]))
static int best_counted_from_1(const float* r, int n) {
    int best = sol_best_of_n(r, n);
    return best < 0 ? best : best + 1;
}

// ---- 27. pass@k

static void make_pass_at_k(Case* c, int which, uint64_t* rng) {
    int n = which == 0 ? 16 : which == 1 ? 4 : random_whole(rng, 10, 20), right = random_whole(rng, 2, n / 2);
    add_number(c, "n", WHOLE, n);
    add_number(c, "correct", WHOLE, which == 0 ? 3 : which == 1 ? 2 : right);
    add_number(c, "k", WHOLE, which == 0 ? 4 : which == 1 ? 3 : random_whole(rng, 2, 4));
}

CALL(pass_at_k, returns(f, AS(my_pass_at_k)(whole(f, 0), whole(f, 1), whole(f, 2))))

#define PASS (int n, int c, int k)
GIVES(none_right, PASS, 1.0 - sol_pass_at_k(n, c, k))
GIVES(pass_naive, PASS, 1.0 - pow(1.0 - (double)c / n, k))
GIVES(pass_linear, PASS, (double)k * c / n)
GIVES(pass_linear_held, PASS, fmin(1.0, (double)k * c / n))
GIVES(pass_complement, PASS, none_right(n, c, k))
GIVES(pass_at_1, PASS, (double)c / n)
GIVES(pass_all_right, PASS, none_right(n, n - c, k))
GIVES(pass_one_factor_less, PASS, k > 1 ? sol_pass_at_k(n, c, k - 1) : 0.0)
GIVES(pass_one_factor_more, PASS, sol_pass_at_k(n, c, k + 1))
#define PRODUCT(name, factor) \
    static double name PASS { \
        double none = 1.0; \
        for (int i = 0; i < k; i++) none *= factor; \
        return 1.0 - none; \
    }
PRODUCT(pass_whole_division, (n - c - i) / (n - i))
PRODUCT(pass_same_divisor, (double)(n - c - i) / n)

// ---- 28. the majority vote

static void make_vote(Case* c, int which, uint64_t* rng) {
    static const char* const form[] = {"%d", "%d", "\\frac{%d}{2}", "", "%d.0", "%d", "", "%d"};
    char text[TEXTS][TEXT_SIZE];
    const char* list[TEXTS];
    int x = random_whole(rng, 11, 49), y = x + random_whole(rng, 1, 9), shift = random_whole(rng, 0, 7);
    for (int i = 0; i < TEXTS; i++) { // three times x in three spellings, twice y
        int a = i == 0 || i == 5 ? y : i == 2 ? 2 * x : i == 7 ? 9 : x;
        snprintf(text[i], TEXT_SIZE, form[i], a);
    }
    for (int i = 0; i < TEXTS; i++) list[i] = text[(i + shift) % TEXTS];
    int n = which == 0 ? 5 : which == 1 ? 7 : which < 4 ? 2 : TEXTS;
    add_texts(c, "answer", n, which == 0 ? LIST("38", "83", "38", "83.0", "\\frac{166}{2}")
                              : which == 1 ? LIST("", "7", "", "8", "", "8", "7") : which == 2 ? LIST("", "")
                              : which == 3 ? LIST("", "5") : list);
    add_number(c, "n", WHOLE, n);
}

CALL(vote, returns(f, AS(my_vote)(texts(f, 0), whole(f, 1), answers_equal)))

enum { VOTE_TEXT = 1, VOTE_LAST = 2, VOTE_EMPTY = 4, VOTE_COUNT = 8, VOTE_NONE_IS_0 = 16,
       VOTE_OTHERS = 32 };

static int vote_slip(const char* const* answer, int n, Equal* equal, int slip) {
    int best = slip & VOTE_NONE_IS_0 ? 0 : -1, most = 0;
    for (int i = 0; i < n; i++) {
        int votes = 0;
        for (int j = 0; j < n; j++) {
            if (slip & VOTE_OTHERS && i == j) continue;   // an answer does not vote for itself
            if (!(slip & VOTE_EMPTY) && (!answer[i][0] || !answer[j][0])) continue;
            votes += slip & (VOTE_TEXT | VOTE_EMPTY) && !strcmp(answer[i], answer[j]) ? 1
                   : slip & VOTE_TEXT ? 0 : equal(answer[i], answer[j]);
        }
        if (slip & VOTE_LAST ? votes > 0 && votes >= most : votes > most) {
            most = votes;
            best = i;
        }
    }
    return slip & VOTE_COUNT ? most : best;
}
#define VOTE(name, slip) \
    static int name(const char* const* answer, int n, Equal* equal) { \
        return vote_slip(answer, n, equal, slip); \
    }
VOTE(vote_text, VOTE_TEXT)
VOTE(vote_last, VOTE_LAST)
VOTE(vote_empty, VOTE_EMPTY)
VOTE(vote_count, VOTE_COUNT)
VOTE(vote_none_is_0, VOTE_NONE_IS_0)
VOTE(vote_text_and_empty, VOTE_TEXT | VOTE_EMPTY)

VOTE(vote_others_only, VOTE_OTHERS)

// == compares addresses: one vote for each, and the first wins; the same when "" abstains
static int vote_address(const char* const* answer, int n, Equal* equal) { return 0; }
static int vote_address_2(const char* const* answer, int n, Equal* equal) {
    for (int i = 0; i < n; i++)
        if (answer[i][0]) return i;
    return -1;
}

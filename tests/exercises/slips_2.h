/* slips_2.h - exercises 17 to 28, in the form of slips_1.h. */

// ---- 17. three estimators of the KL
static void make_kl(Case* c, int which, uint64_t* rng) {
    add_arg(c, "k", OUT_DOUBLES, 3);
    add_scalars(c, "logp logp_ref", which == 0 ? NUMBERS(log(0.5), log(0.25)) : some(2, -3, -0.1, rng));
}
CALL(kl, doubles(f, 0), number(f, 1), number(f, 2))
static void slips_kl(double* k, double logp, double logp_ref) {
    double x = logp - logp_ref, k2 = x * x / 2, down = exp(-x), up = exp(x), k3 = down - 1 + x;
    const double* made = ROW_OF(
        {{-x, k2, up - 1 - x}, "-0.6931 0.2402 0.3069", "the printed sign (or pi and pi_ref swapped): for "
         "samples of the policy x = logp - logp_ref, k1 = x"},
        {{-x, k2, k3}, "-0.6931 0.2402 0.1931",
         "k1 with the printed sign: as an estimate of KL(pi || pi_ref) it is + log_ratio"},
        {{x, k2, up - 1 - x}, "0.6931 0.2402 0.3069", "k3 with the printed sign: exp(-log_ratio) = pi_ref/pi "
         "averages to 1 under pi, exp(log_ratio) does not"},
        {{x, k2, down + x}, "0.6931 0.2402 1.1931", "the 1 of k3 is forgotten: at pi = pi_ref it must be 0"},
        {{x, x * x, k3}, "0.6931 0.4805 0.1931", "the 1/2 of k2 is forgotten"},
        {{x, 0, k3}, "0.6931 0 0.1931", "k2 is 0: 1 / 2 of whole numbers is 0 in C, write 0.5"},
        {{x, k2, down - 1}, "0.6931 0.2402 -0.5", "k3 lacks + log_ratio: without it, it can be negative"},
        {{x, k2, down - 1 - x}, "0.6931 0.2402 -1.1931",
         "k3 has - log_ratio: with exp(-log_ratio) goes + log_ratio"},
        {{x, k2, up - 1 + x}, "0.6931 0.2402 1.6931", "k3 has exp(+log_ratio): pi_ref/pi is exp(-log_ratio)"},
        {{x, x / 2, k3}, "0.6931 0.3466 0.1931", "k2 is not squared"},
        {{exp(logp) * x, k2, k3}, "0.3466 0.2402 0.1931",
         "k1 was multiplied by pi: the sample was drawn from pi already"});
    memcpy(k, made, 3 * sizeof *k);
}

// ---- 18. reward minus beta KL
static void make_penalized_reward(Case* c, int which, uint64_t* rng) {
    double mask[VALUES];
    int n = which == 0 ? 4 : which == 1 ? 2 : random_whole(rng, 5, 7);
    for (int t = 0; t < n; t++) mask[t] = t >= 1 && t < n - 1 && t != 2;
    add_scalars(c, "reward", NUMBERS(which == 0 ? 1 : which == 1 ? 0.5 : random_between(rng, -1, 1)));
    add_numbers(c, "kl", FLOATS, n,
                which > 1 ? some(n, 0, 1, rng) : which ? NUMBERS(0.2, NAN) : NUMBERS(0.1, 0.2, 0.3, 0.9));
    add_numbers(c, "mask", WHOLES, n, which == 0 ? NUMBERS(1, 1, 1, 0) : which == 1 ? NUMBERS(1, 0) : mask);
    add_scalars(c, "T1", NUMBERS(n));
    add_scalars(c, "beta", NUMBERS(which == 0 ? 0.1 : which == 1 ? 0.5 : random_between(rng, 0.1, 0.6)));
}
RETURNS(penalized_reward, number(f, 0), floats(f, 1), wholes(f, 2), whole(f, 3), number(f, 4))
static double slips_penalized_reward(float r, const float* kl, const int* mask, int n, float beta) {
    double sum = sum_of(kl, mask, n, SKIP), product = sum_of(kl, mask, n, MULTIPLY), last = 0.0;
    int count = ones_in(mask, n);
    for (int t = 0; t < n; t++) last = mask[t] ? kl[t] : last;
    return ONE_OF(
        {{r - beta * sum / count}, "0.98",
         "the mean over the tokens: the KL of an answer is their sum, or long answers drift almost for free"},
        {{r - beta * product / count}, SAME},
        {{r - beta * sum / n}, "0.985", "divided by T1: the KL of an answer is a sum over its tokens"},
        {{r + beta * sum}, "1.06", "plus: drift would be rewarded"},
        {{r + beta * product}, SAME},
        {{r - sum}, "0.4", "beta is not used"},
        {{r - beta * total(kl, n)}, "0.85", "padding is counted: its 0.9 came into the sum"},
        {{r - beta * product}, "nan", "0 * NaN is NaN: skip what the mask hides, do not multiply by it"},
        {{r - beta * last}, "0.97", "only the last token's KL is left: = where += is meant"},
        {{r * count - beta * sum}, "2.94", "the reward was added for each token: it is paid once"},
        {{beta * sum - r}, "-0.94", "the sign: reward minus beta KL"},
        {{-beta * sum}, "-0.06", "the reward is missing"});
}

// ---- 19 and 20. the loss of a group and its slopes
// The arguments of both: either logp, or dlogp.
static void add_group(Case* c, int which, uint64_t* rng, int with_logp) {
    static const double four_logp[] = {-1, -1, -3, -2, -1, -1, -1, -2, -3, -1, -3, -3};        // times log 2
    static const double four_mask[] = {1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 0, 0};
    double logp[VALUES], mask[VALUES];
    int K = which == 0 ? 4 : 3, T1 = which == 0 ? 3 : random_whole(rng, 5, 6);
    for (int i = 0; i < K * T1; i++) {
        int t = i % T1;
        mask[i] = which == 0 ? four_mask[i] : t >= 1 && t < T1 - i / T1;
        logp[i] = which == 0 ? four_logp[i] * log(2.0) : random_between(rng, -3, -0.1);
    }
    if (with_logp) add_numbers(c, "logp", FLOATS, K * T1, logp)->row = T1;
    else add_arg(c, "dlogp", OUT_FLOATS, K * T1)->row = T1;
    add_numbers(c, "reward", FLOATS, K, which == 0 ? NUMBERS(1, 1, 0, 0) : some(K, 0.3, 2, rng));
    add_numbers(c, "mask", WHOLES, K * T1, mask)->row = T1;
    add_scalars(c, "K T1", NUMBERS(K, T1));
}

static void make_group_loss(Case* c, int which, uint64_t* rng) { add_group(c, which, rng, 1); }
static void make_group_slopes(Case* c, int which, uint64_t* rng) { add_group(c, which, rng, 0); }
RETURNS(group_loss, floats(f, 0), floats(f, 1), wholes(f, 2), whole(f, 3), whole(f, 4))
CALL(group_slopes, floats(f, 0), floats(f, 1), wholes(f, 2), whole(f, 3), whole(f, 4))
static void slips_group_slopes(float* dlogp, const float* r, const int* mask, int K, int T1) {
    double std = sqrt(squares(r, K) / (K - 1));
    int n = ones_in(mask, K * T1);
    for (int i = 0; i < K * T1; i++) {
        int k = i / T1;
        double adv = r[k] - total(r, K) / K, own = mask[i] * adv;
        dlogp[i] = (float)ONE_OF(
            {{own / n}, "0.0625 0.0625 0 0.0625",
             "the sign: the loss has a minus, praise is a negative slope"},
            {{-own / (K * ones_in(mask + k * T1, T1))}, "-0.0625 -0.0625 0 -0.0417",
             "each answer was divided by its own tokens: D1 divides by the 8 of all"},
            {{-own / K}, "-0.125 -0.125 0 -0.125", "divided by K = 4 answers: D1 divides by the 8 tokens"},
            {{-own / (K * T1)}, "-0.0417 -0.0417 0 -0.0417 -0.0417",
             "padding is counted: 12 places, but 8 tokens have mask 1"},
            {{-mask[i] * r[k] / n}, "-0.125 -0.125 0 -0.125 -0.125 -0.125 0", "the reward itself instead of "
             "the advantage: wrong answers got no slope (1 / K of ints is 0 in C)"},
            {{-adv / (K * T1)}, "-0.0417 -0.0417 -0.0417", "no mask: padding gets a slope and is counted"},
            {{-adv / n}, "-0.0625 -0.0625 -0.0625", "padding gets a slope: where mask is 0, dlogp is 0"},
            {{-own / std / n}, "-0.1083 -0.1083 0",
             "GRPO's advantage: D1 does not divide by the standard deviation"},
            {{-own * K / (K - 1) / n}, "-0.0833 -0.0833 0",
             "RLOO's advantage: D1 subtracts the mean of all K rewards"},
            {{-own}, "-0.5 -0.5 0", "not divided by the 8 tokens"});
    }
}

// The loss is linear in logp: with a slip it is the sum of logp times the slopes with that slip (same row).
static double slips_group_loss(const float* logp, const float* r, const int* mask, int K, int T1) {
    float slope[VALUES];
    double sum = 0.0;
    slips_group_slopes(slope, r, mask, K, T1);
    for (int i = 0; i < K * T1; i++) sum += (double)slope[i] * logp[i];
    return ONE_OF(
        {{sum}, "-0.0866", "the sign: a loss is minimized, so it is minus what should grow"},
        {{sum}, "-0.0144", "a mean over each answer, then over the answers: D1 divides by the tokens of all"},
        {{sum}, "0.1733", "divided by K = 4 answers: D1 divides by the 8 tokens"},
        {{sum}, "0.0578", "padding is counted: 12 places, but 8 tokens have mask 1"},
        {{sum}, "0.5199", "the reward itself instead of the advantage: subtract the mean of the group (1 / K "
         "of ints is 0 in C)"},
        {{sum}, "-0.1155", "no mask: padding is in the sum and in the count"},
        {{sum}, "-0.1733", "padding is in the sum, though not in the count"},
        {{sum}, "0.1501", "GRPO's advantage: D1 does not divide by the standard deviation"},
        {{sum}, "0.1155", "RLOO's advantage: D1 subtracts the mean of all K rewards"},
        {{sum}, "0.6931", "a sum: divide by the 8 tokens"});
}

// ---- 21. PPO's clip
static void make_clip(Case* c, int which, uint64_t* rng) {
    double adv = random_between(rng, 0.5, 2) * (random_whole(rng, 0, 1) ? 1 : -1);
    add_arg(c, "slope", OUT_DOUBLES, 1);
    double ratio = which < 4 ? (which < 2 ? 1.5 : 0.5) : which == 4 ? random_between(rng, 0.9, 1.1)
                   : which == 5 ? random_between(rng, 1.35, 1.9) : random_between(rng, 0.3, 0.7);
    adv = which == 0 || which == 3 ? -1 : which < 4 ? 1 : adv;
    add_scalars(c, "ratio adv clip_low clip_high", NUMBERS(ratio, adv, 0.2, 0.28));
}
RETURNS(clip, doubles(f, 0), number(f, 1), number(f, 2), number(f, 3), number(f, 4))
static double slips_clip(double* slope, double ratio, double adv, double low, double high) {
    double held = fmin(fmax(ratio, 1.0 - low), 1.0 + high), plain = ratio * adv, cut = held * adv;
    double right, swapped, twice, L = my_clip(&right, ratio, adv, low, high);
    double L_swapped = my_clip(&swapped, ratio, adv, high, low);
    double L_twice = my_clip(&twice, ratio, adv, low, low);
    const double* made = ROW_OF(
        {{-cut, held == ratio ? -plain : 0.0}, "1.28 0",
         "without the minimum: the clip also holds a token that moved the wrong way"},
        {{-fmax(plain, cut), cut > plain ? 0.0 : -plain}, "1.28 0",
         "the larger product: the minimum is meant, and of products with the advantage"},
        {{-plain, -plain}, "-1.5 -1.5", "no clip: what went far enough still pushes"},
        {{L, -plain}, "-1.28 -1.5", "the slope of a clipped token is 0"},
        {{L, L}, "-1.28 -1.28", "where it is clipped the loss does not depend on logp any more: slope 0"},
        {{L, right / ratio}, "1.5 1",
         "this is dL/d ratio; d ratio / dlogp is ratio, so dL/dlogp = - ratio * adv"},
        {{L_swapped, swapped}, "-1.2 0", "the bounds are swapped: 1 - clip_low below, 1 + clip_high above"},
        {{L_twice, twice}, "-1.2 0", "clip_low is used on both sides: the upper bound is 1 + clip_high"},
        {{-L, -right}, "-1.5 -1.5", "the sign: a loss is minimized, so it is minus the smaller product"},
        {{-L, right}, "-1.5 1.5", "the sign of L: a loss is minus the smaller product"},
        {{L, -right}, "1.5 -1.5", "the sign of the slope: dL/dlogp = - ratio * adv"});
    *slope = made[1];
    return made[0];
}

// ---- 22. GAE
static void make_gae(Case* c, int which, uint64_t* rng) {
    int T = which == 0 ? 2 : random_whole(rng, 3, 5);
    add_arg(c, "adv", OUT_FLOATS, T);
    add_numbers(c, "reward", FLOATS, T, which == 0 ? NUMBERS(0, 1) : some(T, -1, 1, rng));
    add_numbers(c, "value", FLOATS, T, which == 0 ? NUMBERS(0.25, 0.5) : some(T, -1, 1, rng));
    add_scalars(c, "T gamma", NUMBERS(T, which == 0 ? 0.9 : random_between(rng, 0.7, 0.95)));
    add_scalars(c, "lambda", NUMBERS(which == 0 ? 0.5 : random_between(rng, 0.2, 0.8)));
}
CALL(gae, floats(f, 0), floats(f, 1), floats(f, 2), whole(f, 3), number(f, 4), number(f, 5))
static void slips_gae(float* adv, const float* r, const float* v, int T, float gamma, float lambda) {
    float A[VALUES];
    double forward[VALUES + 1] = {0}, g = gamma, l = lambda, next = 0.0;
    my_gae(A, r, v, T, gamma, lambda);
    for (int t = 0; t < T; t++)
        forward[t + 1] = r[t] + (t + 1 < T ? g * v[t + 1] : 0.0) - v[t] + g * l * forward[t];
    for (int t = T - 1; t >= 0; t--) {
        double ahead = t + 1 < T ? v[t + 1] : 0.0, d = r[t] + g * ahead - v[t];
        next = ONE_OF(
            {{d + l * next}, "0.45 0.5", "gamma is lost in the decay: it is gamma * lambda"},
            {{r[t] + ahead - v[t] + l * next}, "0.5 0.5",
             "gamma is not used at all: it discounts the next value and the next advantage"},
            {{r[t] + ahead - v[t] + g * l * next}, "0.475 0.5",
             "gamma is lost in delta: reward + gamma * next value - value"},
            {{r[t] + g * v[t + 1 < T ? t + 1 : t] - v[t] + g * l * next}, "0.6275 0.95",
             "the last value was used for the state behind the end: the episode is over, 0"},
            {{d}, "0.2 0.5", "as if lambda were 0: adv[t] is delta[t] alone, the next advantage is missing"},
            {{d + g * next}, "0.65 0.5", "as if lambda were 1: the decay is gamma * lambda"},
            {{r[t] - v[t] + g * l * next}, "-0.025 0.5",
             "the next value is missing in delta: reward + gamma * next value - value"},
            {{r[t] + g * ahead + g * l * next}, "0.9 1", "the value of the state itself was not subtracted"},
            {{r[t] + g * l * next}, "0.45 1", "no values at all: this is a discounted return"},
            {{r[t] + g * ahead + v[t] + g * l * next}, "1.375 1.5",
             "the value of the state was added: it is subtracted"},
            {{A[t] + v[t]}, "0.675 1", "this is the target of the value function, A + V: the advantage is A"},
            {{forward[t + 1]}, "0.2 0.59",
             "from the front to the end: later surprises count for earlier steps, not the other way"});
        adv[t] = (float)next;
    }
}

// ---- 23. supervised fine-tuning
static void make_sft(Case* c, int which, uint64_t* rng) {
    double mask[VALUES];
    int n = which == 0 ? 4 : random_whole(rng, 6, 8);
    for (int t = 0; t < n; t++) mask[t] = t >= 2 && t < n - 1;
    add_numbers(c, "logp", FLOATS, n, which == 0 ? NUMBERS(-4, -6, -0.5, -1.5) : some(n, -5, -0.1, rng));
    add_numbers(c, "mask", WHOLES, n, which == 0 ? NUMBERS(0, 0, 1, 1) : mask);
    add_scalars(c, "n", NUMBERS(n));
}
RETURNS(sft, floats(f, 0), wholes(f, 1), whole(f, 2))
static double slips_sft(const float* logp, const int* mask, int n) {
    double sum = sum_of(logp, mask, n, SKIP), all = total(logp, n), chances = 0.0;
    int count = ones_in(mask, n);
    for (int t = 0; t < n; t++) chances += mask[t] ? exp(logp[t]) : 0.0;
    return ONE_OF(
        {{-all / n}, "3", "the prompt is in the mean: the model learns to write questions"},
        {{-sum}, "2", "a sum: divide by the tokens of the answer"},
        {{sum / count}, "-1", "the sign: a loss is minus the log-probability"},
        {{-sum / n}, "0.5", "divided by all n: only the tokens of the answer count"},
        {{-all / count}, "6", "the prompt is in the sum, though not in the count"},
        {{exp(-sum / count)}, "2.7183", "this is the perplexity, exp of the loss"},
        {{exp(sum / count)}, "0.3679", "this is a probability, exp of minus the loss"},
        {{-(all - sum) / (n - count)}, "5", "the mask is turned over: this is the loss of the prompt"},
        {{-chances / count}, "-0.4148", "exp was taken: the loss is the mean of -logp, not of -p"});
}

// ---- 24. Bradley-Terry
static void make_reward_model_loss(Case* c, int which, uint64_t* rng) {
    add_scalars(c, "chosen rejected", which == 0 ? NUMBERS(1.3, 0.4) : which == 1 ? NUMBERS(-400, 400)
                                      : some(2, -2, 2, rng));
}
RETURNS(reward_model_loss, number(f, 0), number(f, 1))

static double sigmoid_of(double z) { return 1.0 / (1.0 + exp(-z)); }
static double softplus(double z) { return fmax(z, 0.0) + log1p(exp(-fabs(z))); }    // - log sigma(-z), stable

static double slips_reward_model_loss(double chosen, double rejected) {
    double d = chosen - rejected;
    return ONE_OF(
        {{softplus(d)}, "1.2412", "chosen and rejected are swapped: this rewards the worse answer"},
        {{sigmoid_of(d)}, "0.7109", "this is P(chosen wins): the loss is - log of it"},
        {{1.0 - sigmoid_of(d)}, "0.2891", "this is 1 - P(chosen wins): the loss is - log P"},
        {{-log(sigmoid_of(d))}, "inf", "overflow: exp(800) is infinite; for z < 0 use -z + log(1 + exp(z))"},
        {{-softplus(-d)}, "-0.3412", "the sign: the loss is - log sigma"},
        {{log(sigmoid_of(d))}, SAME},
        {{-d}, "-0.9", "only the difference: - log sigma of it is missing"},
        {{softplus(-chosen)}, "0.241", "rejected is not used: only the difference of the two counts"});
}

// ---- 25. DPO
static void make_dpo(Case* c, int which, uint64_t* rng) {
    add_scalars(c, "chosen rejected ref_chosen ref_rejected",
                which == 0 ? NUMBERS(-10, -13.5, -11, -14) : some(4, -14, -6, rng));
    add_scalars(c, "beta", NUMBERS(which == 0 ? 0.1 : random_between(rng, 0.1, 0.5)));
}
RETURNS(dpo, number(f, 0), number(f, 1), number(f, 2), number(f, 3), number(f, 4))

// w, l: the two log-probs; rw, rl: under the reference
static double slips_dpo(double w, double l, double rw, double rl, double beta) {
    double margin = (w - rw) - (l - rl);
    return ONE_OF(
        {{softplus(-beta * (w - l))}, "0.5334", "without the reference: the margin is 3.5, not 1 - 0.5"},
        {{softplus(beta * margin)}, "0.7185",
         "chosen and rejected are swapped: this makes the worse answer likelier"},
        {{softplus(-margin)}, "0.4741", "beta is lost: sigma(0.5) instead of sigma(0.1 * 0.5)"},
        {{sigmoid_of(beta * margin)}, "0.5125", "this is P(chosen wins): the loss is - log of it"},
        {{-softplus(-beta * margin)}, "-0.6685", "the sign: the loss is - log sigma"},
        {{softplus(-beta * ((w + rw) - (l + rl)))}, "0.4201", "the reference has the wrong sign, or the two "
         "are crossed: chosen - ref_chosen, rejected - ref_rejected"},
        {{softplus(-beta * (w - rw))}, "0.6444", "the rejected answer is not used"},
        {{softplus(-beta * ((w - rw) + (l - rl)))}, "0.621",
         "the two log-ratios were added: the margin is their difference"},
        {{-beta * margin}, "-0.05", "only -beta * margin: - log sigma of it is missing"},
        {{beta * softplus(-margin)}, "0.0474", "beta stands outside: it belongs inside of sigma"},
        {{softplus(-margin / beta)}, "0.0067", "divided by beta: it multiplies the margin"});
}

// ---- 26. best of N
static void make_best_of_n(Case* c, int which, uint64_t* rng) {
    double r[VALUES];
    int n = which == 0 ? 4 : which == 1 || which == 3 ? 3 : which == 2 ? 2 : random_whole(rng, 5, 7);
    for (int i = 0; i < n; i++) r[i] = random_whole(rng, 0, 4) / 4.0 - 2.0;
    r[random_whole(rng, 1, n - 1)] = NAN;
    add_numbers(c, "reward", FLOATS, n,
                which == 0 ? NUMBERS(0.2, 0.9, NAN, 0.9) : which == 1 ? NUMBERS(NAN, 0.5, 0.9)
                : which == 2 ? NUMBERS(NAN, NAN) : which == 3 ? NUMBERS(-2, -1, -3) : r);
    add_scalars(c, "n", NUMBERS(n));
}
RETURNS(best_of_n, floats(f, 0), whole(f, 1))
static int slips_best_of_n(const float* r, int n) {
    int best = -1, right = my_best_of_n(r, n);
    for (int i = 0; i < n; i++) {
        int none = best < 0, old_nan = !none && isnan(r[best]);
        float x = r[i], old = none ? 0.0f : r[best];
        best = (int)ONE_OF(
            {{!isnan(x) && (none || x >= old) ? i : best}, "3",
             "the last of the best: > keeps the first, >= the last"},
            {{none || x > old ? i : best}, "0",
             "NaN wins when it comes first: every comparison with it is false, so nothing replaces it"},
            {{none || x >= old ? i : best}, "3",
             "the last of the best (>= for >), and a NaN that comes first is never replaced"},
            {{none || !(x <= old) ? i : best}, "3", "NaN wins: !(x <= best) is true for it"},
            {{none || (!old_nan && (isnan(x) || x > old)) ? i : best}, "2", "NaN wins, as in numpy's argmax"},
            {{right < 0 ? 0 : right}, "0", "nothing to choose from: -1, not the first"},
            {{!isnan(x) && (none || x < old) ? i : best}, "0", "the smallest: the largest reward is meant"},
            {{x > old ? i : best}, "-1",
             "the search begins with a number, as 0: rewards below it can never win"},
            {{right < 0 ? -1 : right + 1}, "2", "counted from 1: the first index is 0"});
    }
    return best;
}

// ---- 27. pass@k
static void make_pass_at_k(Case* c, int which, uint64_t* rng) {
    int n = which == 0 ? 16 : which == 1 ? 4 : random_whole(rng, 10, 20), right = random_whole(rng, 2, n / 2);
    add_scalars(c, "n correct", NUMBERS(n, which == 0 ? 3 : which == 1 ? 2 : right));
    add_scalars(c, "k", NUMBERS(which == 0 ? 4 : which == 1 ? 3 : random_whole(rng, 2, 4)));
}
RETURNS(pass_at_k, whole(f, 0), whole(f, 1), whole(f, 2))
static double slips_pass_at_k(int n, int c, int k) {
    double whole_numbers = 1.0, same_divisor = 1.0;
    for (int i = 0; i < k; i++) {
        whole_numbers *= (n - c - i) / (n - i);
        same_divisor *= (double)(n - c - i) / n;
    }
    return ONE_OF(
        {{1.0 - pow(1.0 - (double)c / n, k)}, "0.5642",
         "1 - (1 - c/n)^k draws with putting back: biased, the factors must change"},
        {{(double)k * c / n}, "0.75", "k times c/n: chances do not add up, they can pass 1"},
        {{fmin(1.0, (double)k * c / n)}, "0.75", "k times c/n: chances do not add up"},
        {{1.0 - my_pass_at_k(n, c, k)}, "0.3929", "this is the probability that none is right: 1 - it"},
        {{(double)c / n}, "0.1875", "this is pass@1: k is not used"},
        {{1.0 - my_pass_at_k(n, n - c, k)}, "0", "that all k are right: one is enough"},
        {{1.0 - whole_numbers}, "1", "1 always, as when the product is 0: 13 / 16 of whole numbers is 0 in "
         "C, write (double)(n - correct - i) / (n - i)"},
        {{k > 1 ? my_pass_at_k(n, c, k - 1) : 0.0}, "0.4893", "one factor too few: i runs from 0 to k - 1"},
        {{my_pass_at_k(n, c, k + 1)}, "0.7054", "one factor too many: i runs from 0 to k - 1"},
        {{1.0 - same_divisor}, "0.7382", "the divisor stays n: it shrinks with each draw, n - i"});
}

// ---- 28. the majority vote
static void make_vote(Case* c, int which, uint64_t* rng) {
    static const char* const form[] = {"%d", "%d", "\\frac{%d}{2}", "", "%d.0", "%d", "", "%d"};
    char text[TEXTS][TEXT_SIZE];
    const char* list[TEXTS];
    int x = random_whole(rng, 11, 49), y = x + random_whole(rng, 1, 9), shift = random_whole(rng, 0, 7);
    for (int i = 0; i < TEXTS; i++)                     // three times x in three spellings, twice y
        snprintf(text[i], TEXT_SIZE, form[i], i == 0 || i == 5 ? y : i == 2 ? 2 * x : i == 7 ? 9 : x);
    for (int i = 0; i < TEXTS; i++) list[i] = text[(i + shift) % TEXTS];
    int n = which == 0 ? 5 : which == 1 ? 7 : which < 4 ? 2 : TEXTS;
    add_texts(c, "answer", n, which == 0 ? LIST("38", "83", "38", "83.0", "\\frac{166}{2}")
                              : which == 1 ? LIST("", "7", "", "8", "", "8", "7") : which == 2 ? LIST("", "")
                              : which == 3 ? LIST("", "5") : list);
    add_scalars(c, "n", NUMBERS(n));
}
RETURNS(vote, texts(f, 0), whole(f, 1), answers_equal)

enum { AS_TEXT = 1, LAST = 2, EMPTY_TOO = 4, COUNT = 8, OTHERS = 16 };

static int vote(const char* const* answer, int n, Equal* equal, int how) {
    int best = -1, most = 0;
    for (int i = 0; i < n; i++) {
        int votes = 0;
        for (int j = 0; j < n; j++) {
            if (how & OTHERS && i == j) continue;                   // an answer does not vote for itself
            if (!(how & EMPTY_TOO) && (!answer[i][0] || !answer[j][0])) continue;
            int same = !strcmp(answer[i], answer[j]);
            votes += how & AS_TEXT ? same : (how & EMPTY_TOO && same) || equal(answer[i], answer[j]);
        }
        if (how & LAST ? votes > 0 && votes >= most : votes > most) {
            most = votes;
            best = i;
        }
    }
    return how & COUNT ? most : best;
}

static int slips_vote(const char* const* a, int n, Equal* same) {
    int right = my_vote(a, n, same), first = 0;
    while (first < n && !a[first][0]) first++;
    return (int)ONE_OF(
        {{vote(a, n, same, AS_TEXT)}, "0",
         "compared as text: 83, 83.0 and \\frac{166}{2} are three votes for one answer"},
        {{vote(a, n, same, AS_TEXT | EMPTY_TOO)}, "0",
         "compared as text: 83, 83.0 and \\frac{166}{2} are three votes for one answer (and \"\" abstains)"},
        {{vote(a, n, same, LAST)}, "4",
         "the last of the best: the index of the first is asked, > and not >="},
        {{vote(a, n, same, EMPTY_TOO)}, "0", "\"\" abstains: it neither votes nor wins"},
        {{vote(a, n, same, COUNT)}, "3", "this is the number of votes: its index is asked"},
        {{right < 0 ? 0 : right}, "0", "when all abstain there is no winner: -1"},
        {{0}, "0",
         "always the first answer, as if each had one vote: == compares addresses in C, use equal()"},
        {{first < n ? first : -1}, SAME},
        {{vote(a, n, same, OTHERS)}, "-1",
         "a single vote is more than none: an answer votes for itself too, and most begins with 0"});
}

// reference.h - what the worksheets share. The independent reference is a PyTorch program in double
// precision; its inputs come from one formula, so that a test holds its outputs only.

#ifdef IN_DOUBLE
#define EXACT 1e-11              // what a hand value may be off by, relative
#else
#define EXACT 1e-6
#endif

// element i (row-major) of tensor number k
static void fill(float* x, int n, int k, double scale, double offset) {
    for (int i = 0; i < n; i++) x[i] = (float)(offset + scale * sin(0.7 * (i + 1) + 1.3 * k));
}

// relative to the larger of the two, as gradients are small numbers; `off` is what rounding leaves of a 0
#define CHECK_GRADIENT(value, expected) CHECK_GRADIENT_OFF(value, expected, 1e-11)
#define CHECK_GRADIENT_OFF(value, expected, off)                                           \
    do {                                                                                   \
        double g_ = (double)(value), h_ = (double)(expected);                              \
        if (!(fabs(g_ - h_) <= 1e-6 * fmax(fabs(g_), fabs(h_)) + (off)))                   \
            BROKEN("the gradient %s is %.12g, the difference %.12g\n", #value, g_, h_);    \
    } while (0)

// |x - expected| relative to each expected value; where that is 0 it must be exactly 0
static void check_array(const float* x, const double* expected, int n, double tolerance) {
    for (int i = 0; i < n; i++)
        if (!(fabs(x[i] - expected[i]) <= tolerance * fabs(expected[i])))
            BROKEN("element %d is %.12g, expected %.12g\n", i, (double)x[i], expected[i]);
}

// The gradient of one group of CartPole episodes, as train_cartpole() takes it.
static void cartpole_gradient(double* gradient, const CartPoleGroup* group, const double* w) {
    reinforce_gradient(gradient, group->features[0], group->action, group->advantage,
                       group->first[CARTPOLE_GROUP], w, POLICY_SIZE, 1.0);
}

// Two policies over five answers, from irregular logits; drift 1: the example of the reference, 0: equal.
static void five_way(double* logp, double* logp_ref, double drift) {
    double policy[5], reference[5];
    toy_fill(policy, 5, 2, 1.5);
    toy_fill(reference, 5, 3, 1.5);
    for (int i = 0; i < 5; i++) policy[i] = reference[i] + drift * (policy[i] - reference[i]);
    toy_log_softmax(logp, policy, 5);
    toy_log_softmax(logp_ref, reference, 5);
}

// ---- the losses of a group: rows (K,T1), put together from the contract's functions as rl_step() does it

enum { GROUP_TOKENS = 256, LIMIT = 7 };      // LIMIT: the longest possible answer, for NORM_CONSTANT
enum { POLICY_GRADIENT, CLIP, GSPO, CISPO, VALUE, VALUE_CLIP, SFT, KL, GROUP_LOSSES = KL + 3 };

static double group_kl(float* d, const float* logp, const float* ref, const int* mask, int K, int T1,
                       int norm, int estimator) {
    float w[GROUP_TOKENS];
    token_weights(w, mask, K, T1, norm, LIMIT);
    return loss_kl(d, logp, ref, w, K * T1, estimator);
}

// Loss `which`; the last three are the KL with k1, k2, k3. x and other are log-probabilities, adv (K) is one
// per answer; for the value they are V, V_old and the target (n), and high is the clip.
static double group_of(int which, float* d, const float* x, const float* other, const float* adv,
                       const int* mask, int K, int T1, float low, float high, int norm) {
    float w[GROUP_TOKENS], token_adv[GROUP_TOKENS], log_ratio[GROUP_TOKENS];
    token_weights(w, mask, K, T1, norm, LIMIT);
    if (which <= CISPO) broadcast_advantages(token_adv, adv, mask, K, T1);
    if (which == CLIP || which == CISPO) token_log_ratio(log_ratio, x, other, mask, K, T1);
    if (which == GSPO) sequence_log_ratio(log_ratio, x, other, mask, K, T1);
    switch (which) {
    case POLICY_GRADIENT: return loss_policy_gradient(d, x, token_adv, w, K * T1);
    case CLIP:
    case GSPO: return loss_clip(d, log_ratio, token_adv, w, K * T1, low, high);
    case CISPO: return loss_cispo(d, x, log_ratio, token_adv, w, K * T1, low, high);
    case VALUE:
    case VALUE_CLIP: return loss_value(d, x, other, adv, w, K * T1, high);
    case SFT: return loss_sft(d, x, w, K * T1);
    default: return group_kl(d, x, other, mask, K, T1, norm, which - KL + 1);
    }
}

#define group_policy_gradient(d, logp, adv, mask, K, T1, norm)                                               \
    group_of(POLICY_GRADIENT, d, logp, NULL, adv, mask, K, T1, 0.0f, 0.0f, norm)
#define group_clip(...) group_of(CLIP, __VA_ARGS__)
#define group_gspo(...) group_of(GSPO, __VA_ARGS__)
#define group_cispo(...) group_of(CISPO, __VA_ARGS__)
#define group_value(d, value, old, target, mask, K, T1, clip, norm)                                          \
    group_of(VALUE_CLIP, d, value, old, target, mask, K, T1, 0.0f, clip, norm)
#define group_sft(d, logp, mask, K, T1)                                                                      \
    group_of(SFT, d, logp, NULL, NULL, mask, K, T1, 0.0f, 0.0f, NORM_TOKEN_MEAN)

// Loss `which` with the clips and targets of the reference.
static double group_loss(int which, float* d, const float* x, const float* other, const float* adv,
                         const int* mask, int K, int T1, int norm) {
    static const float target[] = {9, -1.0f, -1.5f, -1.1f, -0.3f, -1.9f, -1.3f, 9, -0.2f, 9, 9, 9, -1.6f,
        -0.9f, 9};
    int value = which == VALUE || which == VALUE_CLIP;
    float high = which == VALUE ? 0.0f : which == VALUE_CLIP ? 0.2f : 0.28f;
    return group_of(which, d, x, other, value ? target : adv, mask, K, T1, 0.2f, high, norm);
}

// The example of the reference: three answers, nine of their fifteen places sampled.
enum { REF_K = 3, REF_T1 = 5, REF_N = REF_K * REF_T1, NORMS = 4 };
static const float ref_adv[REF_K] = {0.5f, -0.25f, 1.5f};
static const int ref_group_mask[REF_N] = {0, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 1, 1, 0};
static void fill_logp(float* x, int k) { fill(x, REF_N, k, 0.4, -1.2); }

// The loss that a row of the table of methods names: the switch of rl_step() with given arrays, adv (n) per
// token; with a reference, beta times the KL term is added.
static double method_loss(float* d, const Learner* l, const float* logp, const float* old, const float* ref,
                          const float* adv, const int* mask, int K, int T1) {
    const RlOptions* o = l->o;
    float w[GROUP_TOKENS], log_ratio[GROUP_TOKENS], dkl[GROUP_TOKENS];
    double loss;
    token_weights(w, mask, K, T1, l->norm, o->sample.max_new_tokens);
    if (l->ratio == RATIO_SEQUENCE) sequence_log_ratio(log_ratio, logp, old, mask, K, T1);
    else token_log_ratio(log_ratio, logp, old, mask, K, T1);
    if (l->ratio == RATIO_NONE) loss = loss_policy_gradient(d, logp, adv, w, K * T1);
    else if (l->ratio == RATIO_CISPO)
        loss = loss_cispo(d, logp, log_ratio, adv, w, K * T1, o->clip_low, o->clip_high);
    else loss = loss_clip(d, log_ratio, adv, w, K * T1, o->clip_low, o->clip_high);
    if (!ref) return loss;
    loss += o->beta * loss_kl(dkl, logp, ref, w, K * T1, l->estimator);
    for (int i = 0; i < K * T1; i++) d[i] += o->beta * dkl[i];
    return loss;
}

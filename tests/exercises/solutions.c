/* solutions.c - `make ex SOLUTION=1`: each exercise answered by rl.c's own function, so that no second
 * solution can rot. Compiled once, with all of rl.c, into an object that the checker links with. */
#define RL_NO_MAIN
#include "../../rl.c"

#pragma GCC visibility push(hidden)                         // a submission has functions of the same names
#define log_sum_exp log_sum_exp_of_exercises                // which is rl.c's own, too
#include "../../docs/exercises.h"
#undef log_sum_exp

_Static_assert((int)TOKEN_OUTPUT_START == OUTPUT_START && (int)TOKEN_OUTPUT_END == OUTPUT_END, "tokens");

enum { SMALL = 256 };      // room for any case of the checker

// ---- one function of rl.c, with other arguments

double my_return(const double* reward, int T, double gamma) { return discounted_return(reward, T, gamma); }
void my_step_rewards(float* reward, const int* mask, int T1, float verdict) {
    token_rewards(reward, &verdict, NULL, mask, 1, T1, 0.0f, 0);
}
void my_token_logprobs(float* logp, const float* logits, const int* ids, int B, int T, int V) {
    token_logprobs(logp, logits, ids, B, T, V);
}
void my_answer_means(float* out, const float* logp, const int* mask, int B, int T1) {
    for (int b = 0; b < B; b++) out[b] = (float)masked_mean(logp + b * T1, mask + b * T1, T1);
}
void my_boxed_rewards(float* reward, const char* const* response, int K, const char* truth, Equal* equal) {
    (void)equal;
    for (int k = 0; k < K; k++) reward[k] = reward_boxed(response[k], truth);
}
void my_centered(float* adv, const float* reward, int K) { advantages_centered(adv, reward, K); }
void my_rloo(float* adv, const float* reward, int K) { advantages_rloo(adv, reward, K); }
void my_grpo(float* adv, const float* reward, int K, float eps) { advantages_grpo(adv, reward, K, eps); }
double my_zero_variance_odds(double p, int K) { return zero_variance_odds(p, K); }
void my_gae(float* adv, const float* reward, const float* value, int T, float gamma, float lambda) {
    advantages_gae(adv, reward, value, T, gamma, lambda);
}
int my_best_of_n(const float* reward, int n) { return best_of_n(reward, n); }
double my_pass_at_k(int n, int correct, int k) { return pass_at_k(n, correct, k); }
int my_vote(const char* const* answer, int n, Equal* equal) {
    (void)equal;
    return majority_vote(answer, n);
}

// ---- several of them

double my_chain_value(int s, double pi_right, double slip) {
    double V[CHAIN_STATES], Q[CHAIN_STATES][2];
    ChainPolicy pi;
    for (int i = 0; i < CHAIN_STATES; i++) pi.right[i] = pi_right;
    solve_chain(V, Q, &pi, slip, 1.0);
    return V[s];
}

double my_advantage(const double* Q, const double* pi, int actions, int a) {
    return Q[a] - inner_product(pi, Q, actions);
}

void my_score(double* grad, const int* state, const int* action, int T, const double* pi_right) {
    Trajectory tau = {.T = T};
    ChainPolicy pi;
    memcpy(tau.state, state, (size_t)T * sizeof(int));
    memcpy(tau.action, action, (size_t)T * sizeof(int));
    memcpy(pi.right, pi_right, sizeof pi.right);
    score_trajectory(grad, &tau, &pi);
}

// What the row z says of each token that may come next.
void my_log_softmax(float* out, const float* z, int V) {
    for (int i = 0; i < V; i++) token_logprobs(out + i, z, (int[]){0, i}, 1, 2, V);
}

double my_answer_logprob(const float* logits, const int* ids, const int* mask, int T, int V) {
    float logp[SMALL], sum;
    int shifted[SMALL];
    token_logprobs(logp, logits, ids, 1, T, V);
    shift_mask(shifted, mask, 1, T);
    sequence_logprobs(&sum, logp, shifted, 1, T - 1);
    return sum;
}

// Play the sampled tokens of the answer again, with rl.c's tool: it forces the same tokens, and the rollout
// has the mask.
void my_tool_mask(int* mask, const int* ids, int prompt, int T) {
    Tokens question = {0};
    int script[SMALL], n = 0, forced = 0;
    for (int t = 0; t < prompt; t++) tokens_add(&question, ids[t], 0);
    for (int t = prompt; t < T; t++) {
        if (ids[t] == OUTPUT_START) forced = 1;
        if (!forced) script[n++] = ids[t];
        if (ids[t] == OUTPUT_END) forced = 0;
    }
    Rollout* r = play_script(&question, script, n);
    for (int t = 0; t < T; t++) mask[t] = r->prompt + r->length == T && r->ids[t] == ids[t] ? r->mask[t] : -1;
    rollouts_free(r);
    tokens_free(&question);
}

void my_hash_rewards(float* reward, const char* const* response, int K, double truth) {
    char text[64];
    snprintf(text, sizeof text, "%.10g", truth);
    for (int k = 0; k < K; k++) reward[k] = reward_gsm8k(response[k], text);
}

void my_kl(double* k, double logp, double logp_ref) {
    void (*const estimator[])(float*, const float*, const float*, int) = {kl_k1, kl_k2, kl_k3};
    for (int i = 0; i < 3; i++) {
        float kl, policy = (float)logp, reference = (float)logp_ref;
        estimator[i](&kl, &policy, &reference, 1);
        k[i] = kl;
    }
}

double my_penalized_reward(float reward, const float* kl, const int* mask, int T1, float beta) {
    float paid[SMALL];
    double sum = 0.0;
    token_rewards(paid, &reward, kl, mask, 1, T1, beta, 0);
    for (int t = 0; t < T1; t++) sum += paid[t];
    return sum;
}

static double group_loss(float* dlogp, const float* logp, const float* r, const int* mask, int K, int T1) {
    float adv[SMALL], token_adv[SMALL], w[SMALL];
    advantages_centered(adv, r, K);
    broadcast_advantages(token_adv, adv, mask, K, T1);
    token_weights(w, mask, K, T1, NORM_TOKEN_MEAN, 0);
    return loss_policy_gradient(dlogp, logp, token_adv, w, K * T1);
}

double my_group_loss(const float* logp, const float* reward, const int* mask, int K, int T1) {
    return group_loss((float[SMALL]){0}, logp, reward, mask, K, T1);
}

void my_group_slopes(float* dlogp, const float* reward, const int* mask, int K, int T1) {
    group_loss(dlogp, (float[SMALL]){0}, reward, mask, K, T1);
}

double my_clip(double* slope, double ratio, double adv, double clip_low, double clip_high) {
    float log_ratio = (float)log(ratio), a = (float)adv, w = 1.0f, dlogp;
    double loss = loss_clip(&dlogp, &log_ratio, &a, &w, 1, (float)clip_low, (float)clip_high);
    *slope = dlogp;
    return loss;
}

double my_sft(const float* logp, const int* mask, int n) {
    float w[SMALL], dlogp[SMALL];
    token_weights(w, mask, 1, n, NORM_TOKEN_MEAN, 0);
    return loss_sft(dlogp, logp, w, n);
}

double my_reward_model_loss(double w, double l) {
    return loss_reward_model(&(float){0}, &(float){0}, (float)w, (float)l);
}

double my_dpo(double w, double l, double rw, double rl, double beta) {
    return loss_dpo(&(float){0}, &(float){0}, (float)w, (float)l, (float)rw, (float)rl, (float)beta);
}

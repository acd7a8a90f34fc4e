/* solutions.h - for each exercise rl.c's own function, in the form of docs/exercises.h. */
#ifndef SOLUTIONS_H
#define SOLUTIONS_H

double sol_return(const double* reward, int T, double gamma);
double sol_chain_value(int s, double pi_right, double slip);
double sol_advantage(const double* Q, const double* pi, int actions, int a);
void   sol_score(double* grad, const int* state, const int* action, int T, const double* pi_right);
void   sol_step_rewards(float* reward, const int* mask, int T1, float verdict);
void   sol_log_softmax(float* out, const float* z, int V);
double sol_answer_logprob(const float* logits, const int* ids, const int* mask, int T, int V);
void   sol_token_logprobs(float* logp, const float* logits, const int* ids, int B, int T, int V);
void   sol_answer_means(float* out, const float* logp, const int* mask, int B, int T1);
void   sol_tool_mask(int* mask, const int* ids, int prompt, int T);
void   sol_hash_rewards(float* reward, const char* const* response, int K, double truth);
void   sol_boxed_rewards(float* reward, const char* const* response, int K, const char* truth, Equal* equal);
void   sol_centered(float* adv, const float* reward, int K);
void   sol_rloo(float* adv, const float* reward, int K);
void   sol_grpo(float* adv, const float* reward, int K, float eps);
double sol_zero_variance_odds(double p, int K);
void   sol_kl(double* k, double logp, double logp_ref);
double sol_penalized_reward(float reward, const float* kl, const int* mask, int T1, float beta);
double sol_group_loss(const float* logp, const float* reward, const int* mask, int K, int T1);
void   sol_group_slopes(float* dlogp, const float* reward, const int* mask, int K, int T1);
double sol_clip(double* slope, double ratio, double adv, double clip_low, double clip_high);
void   sol_gae(float* adv, const float* reward, const float* value, int T, float gamma, float lambda);
double sol_sft(const float* logp, const int* mask, int n);
double sol_reward_model_loss(double chosen, double rejected);
double sol_dpo(double chosen, double rejected, double ref_chosen, double ref_rejected, double beta);
int    sol_best_of_n(const float* reward, int n);
double sol_pass_at_k(int n, int correct, int k);
int    sol_vote(const char* const* answer, int n, Equal* equal);

Equal answers_equal;     // rl.c's, handed to exercises 12 and 28
#endif

/* exercises.h - the form of each exercise, and the few helpers that it may call.
 *
 * The compiler compares these lines with your file, so keep names and arguments as they are. What comes out
 * stands first: an array without `const` is yours to fill, one with `const` is only read. An int is a whole
 * number, float and double are numbers with a fraction. NAN, "not a number", is what every output starts as.
 */
#ifndef EXERCISES_H
#define EXERCISES_H
#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int Equal(const char* a,
                  const char* b); // rl.c's answers_equal(): 1 = the same answer, as mathematics

// chapter 1
double my_return(const double* reward, int T, double gamma);
double my_chain_value(int s, double pi_right, double slip);
double my_advantage(const double* Q, const double* pi, int actions, int a);
void   my_score(double* grad, const int* state, const int* action, int T, const double* pi_right);
// chapter 3
void   my_step_rewards(float* reward, const int* mask, int T1, float verdict);
void   my_log_softmax(float* out, const float* z, int V);
double my_answer_logprob(const float* logits, const int* ids, const int* mask, int T, int V);
void   my_token_logprobs(float* logp, const float* logits, const int* ids, int B, int T, int V);
void   my_answer_means(float* out, const float* logp, const int* mask, int B, int T1);
// chapters 6 and 5
void   my_tool_mask(int* mask, const int* ids, int prompt, int T);
void   my_hash_rewards(float* reward, const char* const* response, int K, double truth);
void   my_boxed_rewards(float* reward, const char* const* response, int K, const char* truth, Equal* equal);
// chapter 7
void   my_centered(float* adv, const float* reward, int K);
void   my_rloo(float* adv, const float* reward, int K);
void   my_grpo(float* adv, const float* reward, int K, float eps);
double my_zero_variance_odds(double p, int K);
// chapter 8
void   my_kl(double* k, double logp, double logp_ref);
double my_penalized_reward(float reward, const float* kl, const int* mask, int T1, float beta);
// chapter 9 (my_gae: chapter 2)
double my_group_loss(const float* logp, const float* reward, const int* mask, int K, int T1);
void   my_group_slopes(float* dlogp, const float* reward, const int* mask, int K, int T1);
double my_clip(double* slope, double ratio, double adv, double clip_low, double clip_high);
void   my_gae(float* adv, const float* reward, const float* value, int T, float gamma, float lambda);
double my_sft(const float* logp, const int* mask, int n);
double my_reward_model_loss(double chosen, double rejected);
double my_dpo(double chosen, double rejected, double ref_chosen, double ref_rejected, double beta);
int    my_best_of_n(const float* reward, int n);
// chapter 11
double my_pass_at_k(int n, int correct, int k);
int    my_vote(const char* const* answer, int n, Equal* equal);

// open ones
void   my_cartpole_advantage(double* adv, int T, const int* length, int K);
float  my_work_reward(const char* response, const char* truth);
float  my_proxy_reward(const char* response, const char* truth);
double my_beta(void);

enum { TOKEN_OUTPUT_START = 263, TOKEN_OUTPUT_END = 264 }; // <|output_start|> and <|output_end|>, exercise 10

// log(sum over j of exp(z[j])) of V logits, without overflow: what exercise 6 is about. z[i] - log_sum_exp(z,
// V) = log pi(i)
static inline double log_sum_exp(const float* z, int V) {
    double top = z[0], sum = 0.0;
    for (int i = 1; i < V; i++) top = z[i] > top ? z[i] : top;
    for (int i = 0; i < V; i++) sum += exp(z[i] - top);
    return top + log(sum);
}

// What follows the last `mark` in text; NULL (in Python: None) when there is no mark.
static inline const char* after_last(const char* text, const char* mark) {
    const char* after = NULL;
    for (const char* p = strstr(text, mark); p; p = strstr(p + 1, mark)) after = p + strlen(mark);
    return after;
}

// The number at the beginning of text ("42", " 42.0 apples", "$42"); NAN when there is none.
static inline double number_at(const char* text) {
    char* end;
    while (*text == ' ' || *text == '$') text++;
    double x = strtod(text, &end);
    return end > text ? x : (double)NAN;
}

// The characters from `from` up to, not including, `to`, as a text of its own; good until the next call.
static inline const char* piece(const char* from, const char* to) {
    static char out[256];
    size_t n = (size_t)(to - from) < sizeof out ? (size_t)(to - from) : sizeof out - 1;
    memcpy(out, from, n);
    out[n] = 0;
    return out;
}
#endif

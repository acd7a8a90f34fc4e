/* Exercises to rl.c, in the order of its chapters.
 *
 * `make ex` copied this file to out/my.c. That copy is yours: write there, it is never overwritten. Each
 * function wants at most six lines. `make ex` compiles them, stops at the first that is not right and says
 * what its answer looks like. Further:
 *     make ex N=12      only exercise 12              make ex HINT=1       with a hint
 *     make ex ALL=1     a table of all                make ex SOLUTION=1   rl.c's own functions instead
 *
 * 本文件是 rl.c 的练习，按章节排列。`make ex` 把它复制为 out/my.c，那一份是你自己的，不会被覆盖。每个函数
 * 最多写六行。每次 `make ex` 编译并检查，停在第一个不对的练习上，说明可能错在哪里。
 *
 * D1, D2, D3 are the three documents. (K,T) after a name is the shape of an array: K rows of T numbers, one
 * row after the other, so that row k, column t is x[k * T + t]. What comes out stands first among the
 * arguments; nothing is in it yet.
 *
 * C for people who know Python:
 *     for t in range(T):                   for (int t = 0; t < T; t++)
 *         G = G + r[t]                         G = G + r[t];        several lines: { put them in braces }
 *     G = 0.0                              double G = 0.0;          the first time with its type
 *     n += 1 if mask[t] else 0             n += mask[t] ? 1 : 0;
 *     x ** k, log(x), exp(x), abs(x)       pow(x, k), log(x), exp(x), fabs(x)
 *     not, and, or                         !, &&, ||
 *     5 / 9 is 0.555                       5 / 9 is 0: whole numbers divide to whole numbers; 5.0 / 9
 *     print(x)                             printf("%g\n", x);       %d for an int, %s for a text
 */
#include "exercises.h"

/* ---- 1. The return
 *      chapter 1; D3 section 1
 * An episode paid reward[0], reward[1], ... Return G = reward[0] + gamma reward[1] + ...
 * 一个回合的奖励是 reward[0], reward[1], ...；返回折扣回报 G，第 t 步的奖励乘 gamma 的 t 次方。
 *     reward (T)
 *     Example: rewards 1, 2, 3 and gamma 1/2 give 1 + 2/2 + 3/4 = 2.75
 */
double my_return(const double* reward, int T, double gamma) {
    return NAN;   // yours
}

/* ---- 2. The value of a state
 *      chapter 1; D3 section 1
 * The chain [0] <-> 1 <-> 2 <-> 3 <-> [4]: both ends are final, entering 4 pays 1, gamma = 1. The policy
 * goes right with probability pi_right, and with probability slip the world turns a step around. Let u be
 * the probability that a step really goes right, x = (1 - u) / u. Then V(s) = (1 - x^s) / (1 - x^4), and
 * s / 4 where x = 1. Return V(s).
 * 五个状态的链，两端终止，进入 4 得 1。策略以 pi_right 的概率向右，世界以 slip 的概率把这一步反过来。设 u
 * 为真正向右走的概率，x = (1 - u) / u，则 V(s) = (1 - x^s) / (1 - x^4)；x = 1 时为 s / 4。返回 V(s)。
 *     Example: s = 2, pi_right = 3/4, slip = 1/6: u = 3/4 * 5/6 + 1/4 * 1/6 = 2/3, x = 1/2,
 *     V = (3/4) / (15/16) = 0.8
 */
double my_chain_value(int s, double pi_right, double slip) {
    return NAN;   // yours
}

/* ---- 3. The advantage of an action
 *      chapter 1; D3 section 1
 * In one state action i has the value Q[i], and the policy takes it with probability pi[i]. Return A(a) =
 * Q[a] - V, where V is the mean of Q under the policy.
 * 某状态下动作 i 的价值为 Q[i]，策略选它的概率为 pi[i]。返回 A(a) = Q[a] - V，V 是 Q 在策略下的平均。
 *     Q, pi (actions)
 *     Example: Q = 9/15 (left), 13/15 (right), pi = 1/4, 3/4: V = 12/15, A(right) = 1/15 = 0.0667
 */
double my_advantage(const double* Q, const double* pi, int actions, int a) {
    return NAN;   // yours
}

/* ---- 4. The score of a trajectory
 *      chapter 1; D3 section 1
 * Each state s has its own parameter theta_s, and pi(right | s) = sigmoid(theta_s) = pi_right[s]. Write the
 * score, grad[s] = d log p(tau) / d theta_s. A step in s that went right adds 1 - pi_right[s] to grad[s],
 * one that went left adds -pi_right[s]. The dynamics are not needed. Set all five grad to 0 first.
 * 每个状态 s 有自己的参数 theta_s，pi(right | s) = sigmoid(theta_s)。写出 d log p(tau) / d theta_s：在 s 向
 * 右的一步加 1 - pi_right[s]，向左的一步加 -pi_right[s]。环境动力学不出现。先把五个 grad 都设为 0。
 *     grad, pi_right (5); state, action (T), action 1 = right, 0 = left
 *     Example: states 2, 3, 2, 3, always right, pi_right = 3/4: grad = 0, 0, 2 * 1/4, 2 * 1/4, 0
 */
void my_score(double* grad, const int* state, const int* action, int T, const double* pi_right) {
    // yours
}

/* ---- 5. The rewards of the MDP's steps
 *      chapter 3; D3 section 3
 * A token is an action. Every step pays 0, but the last token that the model chose is paid the verifier's
 * verdict on the whole answer. mask is 1 where the model chose the token, 0 on prompt and padding. Write
 * all T1 rewards.
 * 一个 token 就是一个动作。中间步骤的奖励都是 0，验证器的判定 verdict 只在模型选的最后一个 token 上发放。
 * mask 为 1 表示 token 由模型选出，prompt 与 padding 为 0。写满 T1 个奖励。
 *     reward, mask (T1)
 *     Example: mask 0 0 1 1 0, verdict 1: rewards 0 0 0 1 0
 */
void my_step_rewards(float* reward, const int* mask, int T1, float verdict) {
    // yours
}

/* ---- 6. Log-softmax
 *      chapter 3; D3 section 3
 * From V logits z to log-probabilities: out[i] = z[i] - log(sum over j of exp(z[j])). Subtract the largest
 * logit m inside of exp, and add it back outside: log(sum exp(z[j])) = m + log(sum exp(z[j] - m)).
 * 从 logits z 算 log 概率。exp 里先减去最大的 m，再在外面加回来，否则会溢出。
 *     out, z (V)
 *     Example: z = 1000, 1001: m = 1001, log(e^-1 + 1) = 0.3133, out = -1.3133, -0.3133
 */
void my_log_softmax(float* out, const float* z, int V) {
    // yours
}

/* ---- 7. The log-probability of an answer
 *      chapter 3, "The shift"; D3 section 3
 * Return log pi(y|x), the sum of log pi(token) over the tokens whose mask is 1. Row t of the logits, logits
 * + t * V, is about token t + 1: log pi(ids[t + 1]) = row[ids[t + 1]] - log_sum_exp(row, V). log_sum_exp()
 * is given (exercises.h).
 * 返回 log pi(y|x)：对 mask 为 1 的 token 求 log 概率之和。第 t 行 logits 预测的是第 t + 1 个 token
 * （错一位），mask 也属于 token。
 *     logits (T,V); ids, mask (T)
 *     Example: the tokens 2 + 2 = 4 <end> are ids 0 1 0 2 3 4, mask 0 0 0 0 1 1. Only rows 3 and 4 matter:
 *     1 0 0 3 0 and 0 0 0 0 2. (3 - 3.2505) + (2 - 2.4327) = -0.2505 - 0.4327 = -0.6832
 */
double my_answer_logprob(const float* logits, const int* ids, const int* mask, int T, int V) {
    return NAN;   // yours
}

/* ---- 8. The shifted gather
 *      chapter 3, token_logprobs; D3 section 3, compute_log_probs
 * The same for a batch and without a mask, D3's compute_log_probs: logp[b,t] = log pi(ids[b,t+1] | the
 * tokens up to t). T tokens give T - 1 log-probabilities, so that the rows of logp are T - 1 long and those
 * of logits and ids T.
 * 一个 batch 的同一件事，不用 mask：logp[b,t] 是第 t + 1 个 token 的 log 概率。T 个 token 得到 T - 1 个 log
 * 概率。
 *     logp (B,T-1), logits (B,T,V), ids (B,T)
 *     Example: V = 2, one row (0, log 3), probabilities 1/4 and 3/4. If the NEXT token is 1: log 3/4 =
 *     -0.2877
 */
void my_token_logprobs(float* logp, const float* logits, const int* ids, int B, int T, int V) {
    // yours
}

/* ---- 9. The mean of a padded batch
 *      chapter 3, masked_mean; D3 experiment 1
 * out[b] = the mean of logp over the tokens of answer b whose mask is 1. An answer without any gives 0.
 * What lies under a mask of 0 may be anything, even NAN: do not even multiply it.
 * out[b] 是第 b 个回答中 mask 为 1 的 token 的 logp 平均；一个都没有时为 0。mask 为 0 处可能是任何数，包括
 * NAN，不要去乘它。
 *     out (B); logp, mask (B,T1)
 *     Example: logp -1 -2 -3 and -4 (pad) (pad): means -2 and -4
 */
void my_answer_means(float* out, const float* logp, const int* mask, int B, int T1) {
    // yours
}

/* ---- 10. The mask of a tool call
 *      chapter 6; D1, "工具调用在 RL 中的位置"
 * The first `prompt` tokens are the question. In the answer all tokens were sampled by the model, but those
 * that the engine forced: from TOKEN_OUTPUT_START to TOKEN_OUTPUT_END, both included. mask[t] = 1 where the
 * model sampled, else 0.
 * 前 prompt 个 token 是问题。回答里只有从 TOKEN_OUTPUT_START 到 TOKEN_OUTPUT_END（两端都算）是引擎强制写入
 * 的，mask 为 0；其余为 1。
 *     mask, ids (T)
 *     Example: prompt "?", answer <|python_start|> 1 2 * 3 <|python_end|> <|output_start|> 3 6
 *     <|output_end|> <|assistant_end|>: mask 0 1 1 1 1 1 1 0 0 0 0 1
 */
void my_tool_mask(int* mask, const int* ids, int prompt, int T) {
    // yours
}

/* ---- 11. The #### reward
 *      chapter 5; D1, "奖励怎样计算"
 * reward[k] = 1 when the number behind the LAST #### of response[k] equals truth, else 0; no ####, or no
 * number behind it: 0. Given: after_last(text, "####") and number_at(text). Numbers are compared, not
 * strings: 42.0 is 42, and 420 is not.
 * 最后一个 #### 后的数字等于 truth 时奖励 1，否则 0。比较数字，不是字符串。可用 after_last 和 number_at。
 *     reward, response (K)
 *     Example, truth 42: "#### 42" 1, "#### 41, no, #### 42" 1, "#### 420" 0, "#### 42.0" 1, "It is 42" 0
 */
void my_hash_rewards(float* reward, const char* const* response, int K, double truth) {
    // yours
}

/* ---- 12. The boxed reward
 *      chapter 5; D2 section 4
 * reward[k] = 1 when the content of the last \boxed{...} of response[k] equals truth, else 0. No box: 0,
 * even if the number is right. Braces nest: the box closes at the brace where as many have closed as were
 * opened. In C a backslash in a text is written twice: after_last(response[k], "\\boxed{"). Given too:
 * piece(from, to), and equal(a, b), which is 1 when two answers are equal.
 * 最后一个 \boxed{...} 里的内容等于 truth 得 1，否则 0；没有框就是 0，哪怕数字对（D2 的 r3）。花括号可以嵌
 * 套。
 *     reward, response (K)
 *     Example, D2's four, truth 83: "\boxed{83}" 1, "The correct answer is \boxed{83}" 1, "The final answer
 *     is 83" 0, "\boxed{38}" 0
 */
void my_boxed_rewards(float* reward, const char* const* response, int K, const char* truth, Equal* equal) {
    // yours
}

/* ---- 13. Better than average
 *      chapter 7; D1, "优势：比平均好多少"
 * adv[k] = reward[k] - mean of the group's K rewards, itself included. Nothing is divided by a standard
 * deviation.
 * 优势 = 奖励 - 同题平均奖励；不除以标准差。
 *     adv, reward (K)
 *     Example, D1's sixteen, three of them right: the mean is 3/16 = 0.1875, adv 0.8125 where right,
 *     -0.1875 where wrong
 */
void my_centered(float* adv, const float* reward, int K) {
    // yours
}

/* ---- 14. Leave one out
 *      chapter 7; D3 section 4, compute_loo_advantages
 * RLOO: adv[k] = reward[k] - mean of the OTHER K - 1 rewards, which is K / (K - 1) * (reward[k] - mean of
 * all). K is at least 2.
 * 留一法：基线是其余 K - 1 个奖励的平均。
 *     adv, reward (K)
 *     Example: [1,1,0,0]: 1 - (1+0+0)/3 = 0.6667
 */
void my_rloo(float* adv, const float* reward, int K) {
    // yours
}

/* ---- 15. GRPO's advantage
 *      chapter 7; D3 section 4, compute_standardized_advantages
 * adv[k] = (reward[k] - mean) / (std + eps), std = sqrt(sum of (reward - mean)^2 / (K - 1)), as torch.std.
 * When all rewards are equal every adv is 0, also with eps = 0. K is at least 2.
 * 组内标准化优势：std 用 K - 1（同 torch.std）。奖励全相等时优势都是 0，eps 为 0 时也一样。
 *     adv, reward (K)
 *     Example: [1,1,0,0], eps 0: std = sqrt(1/3) = 0.5774, adv = 0.5 / 0.5774 = 0.8660
 */
void my_grpo(float* adv, const float* reward, int K, float eps) {
    // yours
}

/* ---- 16. A group without a signal
 *      chapter 7; D1, "如果所有回答都正确或都错误"
 * An answer is right with probability p. Return the probability that K independent answers are all right or
 * all wrong: then their advantages are all 0, a zero-variance group.
 * 每个回答答对的概率是 p。返回 K 个独立回答全对或全错的概率：这时没有信号。
 *     Example: p = 1/2, K = 4: 1/16 + 1/16 = 0.125
 */
double my_zero_variance_odds(double p, int K) {
    return NAN;   // yours
}

/* ---- 17. Three estimators of the KL
 *      chapter 8; D3 section 5, experiment 2
 * One token, sampled from the policy: logp under the policy, logp_ref under the reference. With log_ratio =
 * logp - logp_ref: k[0] = k1 = log_ratio, k[1] = k2 = log_ratio^2 / 2, k[2] = k3 = exp(-log_ratio) - 1 +
 * log_ratio. (D3 prints k1 and k3 with the other sign: chapter 8 says why that does not fit samples from
 * the policy.)
 * 样本来自策略本身时 KL(pi||pi_ref) 的三个估计量 k1、k2、k3（D3 印出的符号与此相反，见第 8 章）。
 *     k (3)
 *     Example: pi = 1/2, pi_ref = 1/4, log_ratio = log 2 = 0.6931: k = 0.6931, 0.6931^2 / 2 = 0.2402, 1/2 -
 *     1 + 0.6931 = 0.1931
 */
void my_kl(double* k, double logp, double logp_ref) {
    // yours
}

/* ---- 18. Reward minus beta KL
 *      chapter 8, token_rewards; D3 section 5
 * Return reward - beta * KL of one answer. Its KL is the SUM of kl over its tokens (mask 1). Under a mask
 * of 0 stands anything.
 * 返回 r - beta * KL；整条回答的 KL 是各 token 之和，不是平均。
 *     kl, mask (T1)
 *     Example: reward 1, beta 0.1, kl 0.1 0.2 0.3: 1 - 0.1 * 0.6 = 0.94
 */
double my_penalized_reward(float reward, const float* kl, const int* mask, int T1, float beta) {
    return NAN;   // yours
}

/* ---- 19. The loss of a group
 *      chapter 9, loss_policy_gradient; D1, "损失函数"
 * K answers to one question. With adv[k] = reward[k] - mean(reward), return - (sum of adv[k] * logp[k,t]
 * over all tokens with mask 1) / (number of these tokens in the whole group).
 * D1 的损失：-(优势 × 回答中词元对数概率之和) / 有效词元数。优势是奖励减组内平均；有效词元数按整组计。
 *     logp, mask (K,T1); reward (K)
 *     Example, D2's four, [1,1,0,0], 2 3 2 1 tokens whose log-probs add up to -2 -4 -3 -1 times log 2:
 *     -(1/2 * (-2 - 4) - 1/2 * (-3 - 1)) * log 2 / 8 = log 2 / 8 = 0.0866
 */
double my_group_loss(const float* logp, const float* reward, const int* mask, int K, int T1) {
    return NAN;   // yours
}

/* ---- 20. The slopes of that loss
 *      chapter 9, loss_policy_gradient; D1, "损失函数"
 * dlogp[k,t] = the derivative of exercise 19's loss by logp[k,t]; 0 where mask is 0. Negative: make this
 * token more likely.
 * 写出上题损失对每个 logp[k,t] 的导数；mask 为 0 处为 0。负数表示"提高这个 token 的概率"。
 *     dlogp, mask (K,T1); reward (K)
 *     Example, D2's four: -1/2 / 8 = -0.0625 on each token of the two right answers, +0.0625 on the wrong
 *     ones
 */
void my_group_slopes(float* dlogp, const float* reward, const int* mask, int K, int T1) {
    // yours
}

/* ---- 21. PPO's clip
 *      chapter 9, loss_clip; D1, "当前实现的限制"
 * One token, ratio = pi / pi_old. Return L = - min(ratio * adv, clip(ratio, 1 - clip_low, 1 + clip_high) *
 * adv), and set *slope = dL/dlogp: - ratio * adv, but 0 where the clipped product is the smaller one.
 * (*slope is the number that slope points at.)
 * PPO 的裁剪：取两个乘积中较小的一个的相反数；裁剪起作用时斜率为 0，否则为 -ratio * adv。
 *     Example, bounds 0.2 and 0.28, adv -1, ratio 1.5: products -1.5 and -1.28; L = 1.5, slope 1.5. With
 *     adv +1: L = -1.28, slope 0
 */
double my_clip(double* slope, double ratio, double adv, double clip_low, double clip_high) {
    *slope = NAN;   // yours
    return NAN;
}

/* ---- 22. GAE
 *      chapters 2 and 7, advantages_gae; D3 section 1
 * delta[t] = reward[t] + gamma * value[t+1] - value[t], where the value after the last step is 0, and
 * adv[t] = delta[t] + gamma * lambda * adv[t+1], nothing after the last step. Go from the end to the front.
 * 广义优势估计：从后往前递推；最后一步之后的价值和优势都是 0。
 *     adv, reward, value (T)
 *     Example: reward 0 1, value 1/4 1/2, gamma 0.9, lambda 1/2: adv[1] = 1 - 0.5 = 0.5; adv[0] = 0.45 -
 *     0.25 + 0.45 * 0.5 = 0.425
 */
void my_gae(float* adv, const float* reward, const float* value, int T, float gamma, float lambda) {
    // yours
}

/* ---- 23. Supervised fine-tuning
 *      chapter 9, loss_sft; D3 section 6
 * Return the mean of -logp over the tokens of the answer (mask 1): nats per token. The prompt (mask 0) has
 * no part in it.
 * SFT 的损失：只在回复部分取 -logp 的平均。
 *     logp, mask (n)
 *     Example: prompt -4 -6, answer -0.5 -1.5: (0.5 + 1.5) / 2 = 1
 */
double my_sft(const float* logp, const int* mask, int n) {
    return NAN;   // yours
}

/* ---- 24. Bradley-Terry
 *      chapter 9, loss_reward_model; D3 section 6
 * The reward model scored the preferred answer `chosen`, the other `rejected`. Return L = - log
 * sigma(chosen - rejected), where sigma(z) = 1 / (1 + exp(-z)). With a difference of -800 it is 800: for z
 * < 0 use - log sigma(z) = -z + log(1 + exp(z)).
 * 奖励模型的损失 -log sigma(chosen - rejected)。差为 -800 时应为 800，不能溢出。
 *     Example: 1.3 and 0.4: log(1 + exp(-0.9)) = log 1.4066 = 0.3412
 */
double my_reward_model_loss(double chosen, double rejected) {
    return NAN;   // yours
}

/* ---- 25. DPO
 *      chapter 9, loss_dpo; D3 section 6
 * Given log pi(y|x) of the chosen and the rejected answer, and the same under the reference. Return - log
 * sigma(beta * margin), margin = (chosen - ref_chosen) - (rejected - ref_rejected).
 * DPO 损失：把奖励差换成"策略相对参考模型的对数概率比之差"，乘 beta。
 *     Example: chosen -10 and -11 under the reference, rejected -13.5 and -14, beta 0.1: margin 1 - 0.5,
 *     log(1 + exp(-0.05)) = 0.6685
 */
double my_dpo(double chosen, double rejected, double ref_chosen, double ref_rejected, double beta) {
    return NAN;   // yours
}

/* ---- 26. Best of N
 *      chapter 9, best_of_n; D3 section 6
 * Return the index of the largest reward, the first one among equals. A NAN (a judge that failed) never
 * wins; when nothing is left to choose from, return -1. isnan(x) is 1 for NAN, and every comparison with
 * NAN is false.
 * 返回最大奖励的下标，并列取第一个；NAN 不能胜出；没有可选的返回 -1。
 *     reward (n)
 *     Example: 0.2 0.9 NAN 0.9: index 1
 */
int my_best_of_n(const float* reward, int n) {
    return INT_MIN;   // yours
}

/* ---- 27. pass@k
 *      chapter 11; D1, "评估指标：pass@k"
 * Of n sampled answers `correct` are right. Return the probability that k of the n, drawn without putting
 * back, contain a right one: 1 - C(n - correct, k) / C(n, k), a product of k factors: 1 - product over i =
 * 0 ... k-1 of (n - correct - i) / (n - i).
 * n 个回答里 correct 个正确；返回不放回地抽 k 个至少有一个正确的概率（无偏估计）。
 *     Example: n 16, 3 right, k 4: 1 - (13 * 12 * 11 * 10) / (16 * 15 * 14 * 13) = 0.6071
 */
double my_pass_at_k(int n, int correct, int k) {
    return NAN;   // yours
}

/* ---- 28. The majority vote
 *      chapter 11, majority_vote; D2 section 1
 * Return the index of the first answer that has the most votes. Answer j votes for answer i when
 * equal(answer[i], answer[j]) is 1; "" abstains, it neither votes nor wins. When all abstain return -1.
 * (answer[i][0] is 0 exactly when answer[i] is "".)
 * 多数投票：按数学相等计票，返回票数最多的答案第一次出现的下标；"" 弃权；全部弃权返回 -1。
 *     answer (n)
 *     Example: 38, 83, 38, 83.0, \frac{166}{2}: three say 83, two say 38: index 1
 */
int my_vote(const char* const* answer, int n, Equal* equal) {
    return INT_MIN;   // yours
}

/* ---- 29. Open: CartPole with your own advantage
 *      chapter 2; D3 section 2
 * No single answer is right here: `make ex N=29` trains CartPole with your advantage and looks how long the
 * pole stands. A group of K episodes from one start lasted length[0] ... length[K-1] steps, each step paid
 * 1. Write the advantage of each of the T steps of one of these episodes. Asked: 475 steps, over five seeds.
 * 开放题：用你自己的优势训练 CartPole。同一起点的 K 个回合各撑了 length[k] 步，每步奖励 1；给其中一个回合的
 * T 步各写一个优势。目标：五个种子平均撑 475 步以上。
 *     adv (T); length (K)
 *     Example: as it stands, each step is praised for 1: the pole falls after 9
 */
void my_cartpole_advantage(double* adv, int T, const int* length, int K) {
    for (int t = 0; t < T; t++) adv[t] = 1;
}

/* ---- 30. Open: a reward under which the model shows its work
 *      chapter 5; D2 section 4
 * `make ex N=30` trains the tiny model of `make run` with your reward, 30 updates, half a minute. The
 * response holds the calls of the calculator as "<|python_start|>12*3<|python_end|>" and its answers as
 * "<|output_start|>36<|output_end|>"; truth is the right answer. Asked: 95 in 100 answers call the
 * calculator, 80 in 100 are right and in \boxed{}.
 * 开放题：设计一个奖励，让模型既会调用计算器，又把正确答案写进 \boxed{}。目标：95% 的回答调用计算器，
 * 80% 答对。
 *     Example: as it stands, a box is paid, whatever is in it
 */
float my_work_reward(const char* response, const char* truth) {
    return after_last(response, "\\boxed{") ? 1 : 0;
}

/* ---- 31. Open: over-optimization, and how to stop it
 *      chapter 8; D3 section 5
 * Write a proxy reward that a policy can please without being right, and a price beta of one nat of drift.
 * `make ex N=31` trains twice for 40 updates, with beta 0 and with yours, a minute or two. Asked: with beta 0
 * the reward rises while right answers (in a box) fall 0.2 below their best; with yours they rise and stay.
 * 开放题：写一个有漏洞的代理奖励和一个 beta。目标：beta 为 0 时奖励上升而答对率下降；用你的 beta 时答对率
 * 上升并保持。
 *     Example: as it stands, right answers are paid 1: there is nothing to over-optimize
 */
float my_proxy_reward(const char* response, const char* truth) {
    const char* at = after_last(response, "\\boxed{");
    return at && number_at(at) == number_at(truth);
}

double my_beta(void) {
    return 0.1;
}

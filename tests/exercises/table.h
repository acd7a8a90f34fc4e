/* table.h - the exercises: where to read, a hint, and examples worked by hand.
 *
 * Numbers stand as they are printed, with four decimals. tests/exercises.c checks every one of them: that
 * rl.c's own function gives `right`, that each slip gives its value and is diagnosed as itself, and that no
 * two of them can be confused.
 */
#include "slips_1.h"
#include "slips_2.h"

#define S(function) ((Fn)(function))
#define OF(name) "my_" #name, make_##name, call_##name, S(my_##name), BIND(my_##name, slips_##name)

static const Exercise exercises[] = {
{"the return", OF(return), 1e-5, "chapter 1; D3 section 1",
 "go from the end to the front with G = reward[t] + gamma * G, or add pow(gamma, t) * reward[t]",
 {{"rewards 1, 2, 3; gamma 1/2", "2.75", "1 + 2/2 + 3/4"}}},

{"the value of a state", OF(chain_value), 1e-5, "chapter 1; D3 section 1",
 "u = pi_right * (1 - slip) + (1 - pi_right) * slip; s / 4.0 where x is 1",
 {{"s 2, pi_right 3/4, slip 1/6", "0.8", "(1 - 1/4) / (1 - 1/16), u = 3/4 * 5/6 + 1/4 * 1/6 = 2/3, x = 1/2"},
  {"s 1, pi_right 1/2, slip 1/4", "0.25", "s / 4: u = 1/2, x = 1"}}},

{"the advantage of an action", OF(advantage), 1e-5, "chapter 1; D3 section 1",
 "V is the sum over i of pi[i] * Q[i]",
 {{"Q 9/15 (left), 13/15 (right); pi 1/4, 3/4; a = 1, right", "0.0667",
   "13/15 - (1/4 * 9/15 + 3/4 * 13/15) = 1/15"}, {"the same, a = 0, left", "-0.2", "9/15 - 12/15"}}},

{"the score of a trajectory", OF(score), 1e-5, "chapter 1, score_trajectory(); D3 section 1",
 "grad[state[t]] += (action[t] == 1 ? 1 : 0) - pi_right[state[t]]",
 {{"states 2, 3, 2, 3, always right; pi_right 3/4", "0 0 0.5 0.5 0", "2 (1 - 3/4) in states 2 and 3"},
  {"states 2, 1, 2, 3, actions left, right, right, right; pi_right 3/4", "0 0.25 -0.5 0.25 0",
   "state 2: -3/4 + 1/4"}}},

{"the rewards of the MDP's steps", OF(step_rewards), 1e-5, "chapter 3, section 1 of its lesson; D3 section 3",
 "set all to 0 and remember the last t with mask[t]",
 {{"mask 0 0 1 1 0, verdict 1", "0 0 0 1 0", NULL}, {"mask 0 0 1 1 0, verdict 0", "0 0 0 0 0", NULL}}},

{"log-softmax", OF(log_softmax), 1e-4, "chapter 3, log_sum_exp(); D3 section 3",
 "m = the largest z; lse = m + log(sum of exp(z[j] - m)); out[i] = z[i] - lse",
 {{"z 1000, 1001", "-1.3133 -0.3133", "1000 - (1001 + log(e^-1 + 1))"},
  {"z -1000, 0", "-1000 0", "log(e^-1000 + 1) is 0"}}},

{"the log-probability of an answer", OF(answer_logprob), 1e-5, "chapter 3, \"The shift\"; D3 section 3",
 "for t from 0 to T - 2: if mask[t + 1], add logits[t * V + ids[t + 1]] - log_sum_exp(logits + t * V, V)",
 {{"prompt \"2 + 2 =\", answer \"4 <end>\" (chapter 3)", "-0.6832", "-0.2505 - 0.4327"}}},

{"the shifted gather", OF(token_logprobs), 1e-5,
 "chapter 3, token_logprobs(); D3 section 3, compute_log_probs",
 "rows of logits: (b * T + t) * V; of ids: b * T + t + 1; of logp: b * (T - 1) + t",
 {{"B 2, T 3, V 2, logits of 0 and log 3: probabilities 1/4, 3/4; ids 0 1 1 and 1 0 1",
   "-0.2877 -1.3863 -0.2877 -0.6931", "log 3/4, log 1/4; log 3/4, log 1/2"}}},

{"the mean of a padded batch", OF(answer_means), 1e-5, "chapter 3, masked_mean(); D3 experiment 1",
 "if (mask[i]) { sum += logp[i]; n++; }, and n ? sum / n : 0",
 {{"logp -1 -2 -3 | -4 -9 -9, mask 1 1 1 | 1 0 0", "-2 -4", NULL},
  {"logp -1 NaN | NaN NaN, mask 1 0 | 0 0", "-1 0",
   "what lies under mask 0 is not read; an empty answer gives 0"}}},

{"the mask of a tool call", OF(tool_mask), 1e-5, "chapter 6; D1, \"工具调用在 RL 中的位置\"",
 "an int `forced`, 1 from TOKEN_OUTPUT_START on, back to 0 behind TOKEN_OUTPUT_END",
 {{"? <|python_start|> 1 2 * 3 <|python_end|> <|output_start|> 3 6 <|output_end|> <|assistant_end|>, prompt "
    "1", "0 1 1 1 1 1 1 0 0 0 0 1", NULL}}},

{"the #### reward", OF(hash_rewards), 1e-5, "chapter 5, reward_gsm8k(); D1, \"奖励怎样计算\"",
 "const char* at = after_last(response[k], \"####\"); reward[k] = at && number_at(at) == truth",
 {{"\"#### 42\", \"#### 41, no, #### 42\", \"#### 420\", \"#### 42.0\", \"It is 42\", \"#### 42, no, #### "
    "41\"; truth 42", "1 1 0 1 0 0", NULL},
  {"\"#### 0\", \"#### none\", \"#### 0.5\", \"none\"; truth 0", "1 0 0 0", NULL}}},

{"the boxed reward", OF(boxed_rewards), 1e-5, "chapter 5, \"Extract\"; D2 section 4",
 "depth = 1 behind \\boxed{; { adds 1, } takes 1 away; the box closes where depth is 0. Without a box "
  "after_last() is NULL",
 {{"D2's four: \"\\boxed{83}\", \"The correct answer is \\boxed{83}\", \"The final answer is 83\", \"We get "
    "\\boxed{38}\"; truth 83", "1 1 0 0", NULL},
  {"\"\\boxed{\\frac{1}{2}}\", \"\\boxed{0.5}\", \"\\boxed{2}, no, \\boxed{\\frac{1}{2}}\", \"It is "
    "\\frac{1}{2}, \\boxed{\\frac{1}{3}}\", \"\\boxed{\\frac{1}{2}\", \"\\boxed{\\frac{1}{2}} {x}\"; truth "
    "\\frac{1}{2}", "1 1 1 0 0 1", NULL}}},

{"better than average", OF(centered), 1e-5, "chapter 7, advantages_centered(); D1, \"优势：比平均好多少\"",
 "first the sum of all K rewards, then adv[k] = reward[k] - sum / K",
 {{"D1's sixteen rewards, 1 1 0 0 0 0 0 0 1 0 0 0 0 0 0 0",
   "0.8125 0.8125 -0.1875 -0.1875 -0.1875 -0.1875 -0.1875 -0.1875 0.8125 -0.1875 -0.1875 -0.1875 -0.1875 "
   "-0.1875 -0.1875 -0.1875", "1 - 3/16 and 0 - 3/16"}}},

{"leave one out", OF(rloo), 1e-5, "chapter 7, advantages_rloo(); D3 section 4, compute_loo_advantages",
 "the others' mean is (sum - reward[k]) / (K - 1)",
 {{"rewards 1, 1, 0, 0", "0.6667 0.6667 -0.6667 -0.6667", "1 - (1 + 0 + 0)/3 and 0 - (1 + 1 + 0)/3"}}},

{"GRPO's advantage", OF(grpo), 1e-5,
 "chapter 7, advantages_grpo(); D3 section 4, compute_standardized_advantages",
 "two loops: the mean, then the sum of squares; if that sum is 0 every adv is 0",
 {{"rewards 1, 1, 0, 0; eps 0", "0.866 0.866 -0.866 -0.866", "1/2 / sqrt((4 * 1/4) / 3) = 1/2 / 0.5774"},
  {"rewards 1, 1, 1, 1; eps 0", "0 0 0 0", "all equal"},
  {"rewards 1, 1, 0, 0; eps 1/2", "0.4641 0.4641 -0.4641 -0.4641", "1/2 / (0.5774 + 1/2)"}}},

{"a group without a signal", OF(zero_variance_odds), 1e-5,
 "chapter 7, zero_variance_odds(); D1, \"优势：比平均好多少\"",
 "all right: p to the power K; all wrong: 1 - p to the power K; add",
 {{"p 1/2, K 4", "0.125", "1/16 + 1/16"}, {"p 1/4, K 2", "0.625", "1/16 + 9/16"}}},

{"three estimators of the KL", OF(kl), 1e-5, "chapter 8, kl_k1() to kl_k3(); D3 section 5",
 "x = logp - logp_ref; k3 = exp(-x) - 1 + x",
 {{"pi 1/2, pi_ref 1/4", "0.6931 0.2402 0.1931", "log 2, (log 2)^2 / 2, 1/2 - 1 + log 2"}}},

{"reward minus beta KL", OF(penalized_reward), 1e-5, "chapter 8, token_rewards(); D3 section 5",
 "if (mask[t]) sum += kl[t], then reward - beta * sum",
 {{"reward 1, beta 0.1, kl 0.1 0.2 0.3 (0.9), mask 1 1 1 0", "0.94", "1 - 0.1 * (0.1 + 0.2 + 0.3)"},
  {"reward 1/2, beta 1/2, kl 0.2 NaN, mask 1 0", "0.4", "1/2 - 1/2 * 0.2"}}},

{"the loss of a group", OF(group_loss), 1e-5, "chapter 9, loss_policy_gradient(); D1, \"损失函数\"",
 "the mean of the rewards first; then one sum over all K * T1 places with mask 1, and one count",
 {{"D2's four: rewards 1, 1, 0, 0; 2 + 3 + 2 + 1 tokens with logp -2, -4, -3, -1 times log 2 in all",
   "0.0866", "-(1/2 (-2 - 4) - 1/2 (-3 - 1)) log 2 / 8 = log 2 / 8"}}},

{"the slopes of that loss", OF(group_slopes), 1e-5, "chapter 9, loss_policy_gradient(); D1, \"损失函数\"",
 "dlogp[i] = mask[i] ? - adv / count : 0, with the count of the whole group",
 {{"D2's four: rewards 1, 1, 0, 0; mask 110 111 110 100",
   "-0.0625 -0.0625 0 -0.0625 -0.0625 -0.0625 0.0625 0.0625 0 0.0625 0 0", "-+ 1/2 / 8"}}},

{"PPO's clip", OF(clip), 1e-5, "chapter 9, loss_clip(); D1, \"当前实现的限制\"",
 "two products; the smaller one counts. The slope is 0 exactly when that is the clipped one and ratio lies "
  "outside of the bounds",
 {{"ratio 1.5, adv -1, bounds 0.2 and 0.28", "1.5 1.5", "-min(1.5 * -1, 1.28 * -1); slope - 1.5 * -1"},
  {"ratio 1.5, adv +1, bounds 0.2 and 0.28", "-1.28 0", "-min(1.5, 1.28); clipped"},
  {"ratio 0.5, adv +1, bounds 0.2 and 0.28", "-0.5 -0.5", "-min(0.5, 0.8); slope -0.5"},
  {"ratio 0.5, adv -1, bounds 0.2 and 0.28", "0.8 0", "-min(-0.5, -0.8); clipped"}}},

{"GAE", OF(gae), 1e-5, "chapter 2, advantages_gae(); D3 section 1",
 "double next = 0, next_value = 0; for (int t = T - 1; t >= 0; t--): adv[t] = delta + gamma * lambda * next",
 {{"reward 0 1, value 1/4 1/2, gamma 0.9, lambda 1/2", "0.425 0.5", "(0.45 - 0.25) + 0.45 * 0.5; 1 - 0.5"}}},

{"supervised fine-tuning", OF(sft), 1e-5, "chapter 9, loss_sft(); D3 section 6",
 "sum and count where mask is 1; - sum / count",
 {{"prompt -4 -6, answer -0.5 -1.5", "1", "(0.5 + 1.5) / 2"}}},

{"Bradley-Terry", OF(reward_model_loss), 1e-5, "chapter 9, loss_reward_model(); D3 section 6",
 "d = chosen - rejected; d > 0 ? log(1 + exp(-d)) : -d + log(1 + exp(d))",
 {{"chosen 1.3, rejected 0.4", "0.3412", "log(1 + exp(-0.9))"},
  {"chosen -400, rejected 400", "800", "-(-800) + log(1 + exp(-800))"}}},

{"DPO", OF(dpo), 1e-5, "chapter 9, loss_dpo(); D3 section 6",
 "margin = (chosen - ref_chosen) - (rejected - ref_rejected); log(1 + exp(-beta * margin))",
 {{"chosen -10, rejected -13.5, under the reference -11 and -14, beta 0.1", "0.6685",
   "log(1 + exp(-0.1 * (1 - 0.5)))"}}},

{"best of N", OF(best_of_n), 1e-5, "chapter 9, best_of_n(); D3 section 6",
 "begin with best = -1; i wins if it is no NAN and (best < 0 or reward[i] > reward[best])",
 {{"rewards 0.2 0.9 NaN 0.9", "1", NULL}, {"rewards NaN 0.5 0.9", "2", NULL}, {"rewards NaN NaN", "-1", NULL},
  {"rewards -2 -1 -3", "1", NULL}}},

{"pass@k", OF(pass_at_k), 1e-5, "chapter 11, pass_at_k(); D1, \"评估指标：pass@k\"",
 "none = 1; k times none *= (double)(n - correct - i) / (n - i); 1 - none",
 {{"n 16, correct 3, k 4", "0.6071", "1 - (13 * 12 * 11 * 10) / (16 * 15 * 14 * 13)"},
  {"n 4, correct 2, k 3", "1", "only 2 are wrong"}}},

{"the majority vote", OF(vote), 1e-5, "chapter 11, majority_vote(); D2 section 1",
 "for each i that is not \"\" count the j with answer[j][0] && equal(answer[i], answer[j]); "
 "keep the first with the most",
 {{"38, 83, 38, 83.0, \\frac{166}{2}", "1", NULL}, {"\"\", 7, \"\", 8, \"\", 8, 7", "1", NULL},
  {"\"\", \"\"", "-1", NULL}, {"\"\", 5", "1", NULL}}},
};

enum { EXERCISES = sizeof exercises / sizeof *exercises };

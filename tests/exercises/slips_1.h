/* slips_1.h - exercises 1 to 16: their inputs, and each classic slip as a line, for table.h. */

// A slip often forgets an argument.
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"

// A slip that gives a number, one that gives a sum over t, and one that fills its array.
#define GIVES(name, arguments, expression) static double name arguments { return expression; }
#define SUMS(name, arguments, n, term) \
    static double name arguments { \
        double sum = 0.0; \
        for (int t = 0; t < n; t++) sum += term; \
        return sum; \
    }
#define FILLS(name, arguments, n, expression) \
    static void name arguments { \
        for (int t = 0; t < n; t++) out[t] = (float)(expression); \
    }

// Calls the function with the arguments of a case.
#define CALL(name, ...) static void call_##name(Frame* f) { __VA_ARGS__; }

static double* some(double* x, int n, double low, double high, uint64_t* rng) {      // n random hundredths
    for (int i = 0; i < n; i++) x[i] = random_between(rng, low, high);
    return x;
}

static int ones_in(const int* mask, int n) {
    int count = 0;
    for (int t = 0; t < n; t++) count += mask[t];
    return count;
}

enum { SKIP, MULTIPLY, ALL };                                     // what is done where the mask is 0
static double kl_sum(int* count, const float* kl, const int* mask, int n, int take) {
    double sum = 0.0;
    *count = ones_in(mask, n);
    for (int t = 0; t < n; t++)
        sum += take == ALL || mask[t] ? kl[t] : take == MULTIPLY ? kl[t] * (float)mask[t] : 0.0;
    return sum;
}

#define NUMBERS(...) ((const double[]){__VA_ARGS__})
#define LIST(...) ((const char* const[]){__VA_ARGS__})

// ---- 1. the return

static void make_return(Case* c, int which, uint64_t* rng) {
    double r[VALUES];
    int T = which == 0 ? 3 : random_whole(rng, 4, 6);
    add_numbers(c, "reward", DOUBLES, T, which == 0 ? NUMBERS(1, 2, 3) : some(r, T, -2, 2, rng));
    add_number(c, "T", WHOLE, T);
    add_number(c, "gamma", REAL, which == 0 ? 0.5 : random_between(rng, 0.2, 0.95));
}

CALL(return, returns(f, AS(my_return)(doubles(f, 0), whole(f, 1), number(f, 2))))

#define RETURN (const double* r, int T, double gamma)
GIVES(return_power, RETURN, gamma * sol_return(r, T, gamma))
SUMS(return_reversed, RETURN, T, pow(gamma, T - 1 - t) * r[t])
GIVES(return_undiscounted, RETURN, sol_return(r, T, 1.0))
SUMS(return_gamma_once, RETURN, T, (t ? gamma : 1.0) * r[t])
SUMS(return_times_t, RETURN, T, (t ? gamma * t : 1.0) * r[t])
GIVES(return_last, RETURN, pow(gamma, T - 1) * r[T - 1])
GIVES(return_mean, RETURN, sol_return(r, T, gamma) / T)

// ---- 2. the value of a state

static void make_chain_value(Case* c, int which, uint64_t* rng) {
    add_number(c, "s", WHOLE, which == 0 ? 2 : which == 1 ? 1 : random_whole(rng, 1, 3));
    add_number(c, "pi_right", REAL, which == 0 ? 0.75 : which == 1 ? 0.5 : random_between(rng, 0.55, 0.9));
    add_number(c, "slip", REAL, which == 0 ? 1.0 / 6.0 : which == 1 ? 0.25 : random_between(rng, 0.05, 0.3));
}

CALL(chain_value, returns(f, AS(my_chain_value)(whole(f, 0), number(f, 1), number(f, 2))))

// u: really going right. unguarded: without the case x = 1.
static double chain_formula(int s, double u, int unguarded) {
    double x = (1.0 - u) / u;
    return !unguarded && fabs(x - 1.0) < 1e-12 ? s / 4.0 : (1.0 - pow(x, s)) / (1.0 - pow(x, 4));
}
static double chain_u(double pi, double slip) { return pi * (1.0 - slip) + (1.0 - pi) * slip; }
#define CHAIN (int s, double pi, double slip)
GIVES(chain_no_world, CHAIN, chain_formula(s, pi, 0))
GIVES(chain_no_world_2, CHAIN, chain_formula(s, pi, 1))
GIVES(chain_one_path, CHAIN, chain_formula(s, pi * (1.0 - slip), 0))
GIVES(chain_turned, CHAIN, chain_formula(s, 1.0 - chain_u(pi, slip), 0))
GIVES(chain_turned_2, CHAIN, chain_formula(s, 1.0 - chain_u(pi, slip), 1))
GIVES(chain_no_guard, CHAIN, chain_formula(s, chain_u(pi, slip), 1))
GIVES(chain_whole_division, CHAIN, chain_u(pi, slip) == 0.5 ? s / 4 : chain_formula(s, chain_u(pi, slip), 0))

// ---- 3. the advantage of an action

static void make_advantage(Case* c, int which, uint64_t* rng) {
    double Q[VALUES], pi[VALUES], sum = 0.0;
    int n = which < 2 ? 2 : random_whole(rng, 3, 4);
    for (int i = 0; i < n; i++) sum += pi[i] = random_whole(rng, 1, 6);
    for (int i = 0; i < n; i++) pi[i] /= sum;
    add_numbers(c, "Q", DOUBLES, n, which < 2 ? NUMBERS(0.6, 13.0 / 15.0) : some(Q, n, -1, 2, rng));
    add_numbers(c, "pi", DOUBLES, n, which < 2 ? NUMBERS(0.25, 0.75) : pi);
    add_number(c, "actions", WHOLE, n);
    add_number(c, "a", WHOLE, which < 2 ? 1 - which : random_whole(rng, 0, n - 1));
}

CALL(advantage, returns(f, AS(my_advantage)(doubles(f, 0), doubles(f, 1), whole(f, 2), whole(f, 3))))

#define ADVANTAGE (const double* Q, const double* pi, int n, int a)
static double advantage_max ADVANTAGE {
    double top = Q[0];
    for (int i = 1; i < n; i++) top = fmax(top, Q[i]);
    return Q[a] - top;
}
GIVES(advantage_q, ADVANTAGE, Q[a])
SUMS(advantage_plain_mean, ADVANTAGE, n, (Q[a] - Q[t]) / n)
GIVES(advantage_sign, ADVANTAGE, -sol_advantage(Q, pi, n, a))
GIVES(advantage_v, ADVANTAGE, Q[a] - sol_advantage(Q, pi, n, a))
GIVES(advantage_times_pi, ADVANTAGE, pi[a] * Q[a] - advantage_v(Q, pi, n, a))

// ---- 4. the score of a trajectory

static void make_score(Case* c, int which, uint64_t* rng) {
    double state[VALUES], action[VALUES], pi[VALUES];
    int T = which < 2 ? 4 : random_whole(rng, 5, 8), s = random_whole(rng, 1, 3);
    for (int t = 0; t < T; t++) {                   // inner states only; a step out of them is turned around
        state[t] = s;
        action[t] = s == 1 ? 1 : s == 3 ? 0 : random_whole(rng, 0, 1);
        s += action[t] == 1 ? 1 : -1;
    }
    add_arg(c, "grad", OUT_DOUBLES, 5);
    add_numbers(c, "state", WHOLES, T,
                which == 0   ? NUMBERS(2, 3, 2, 3)
                : which == 1 ? NUMBERS(2, 1, 2, 3)
                             : state);
    add_numbers(c, "action", WHOLES, T,
                which == 0   ? NUMBERS(1, 1, 1, 1)
                : which == 1 ? NUMBERS(0, 1, 1, 1)
                             : action);
    add_number(c, "T", WHOLE, T);
    add_numbers(c, "pi_right", DOUBLES, 5,
                which < 2 ? NUMBERS(0.75, 0.75, 0.75, 0.75, 0.75) : some(pi, 5, 0.2, 0.9, rng));
}

CALL(score, AS(my_score)(doubles(f, 0), wholes(f, 1), wholes(f, 2), whole(f, 3), doubles(f, 4)))

// what is there already, and what a step to the right or to the left adds; p: pi_right of its state s
#define SCORE(name, before, right, left) \
    static void name(double* grad, const int* state, const int* action, int T, const double* pi_right) { \
        for (int s = 0; s < 5; s++) grad[s] = 0.0; \
        for (int t = 0; t < T; t++) { \
            int s = state[t]; \
            double p = pi_right[s]; \
            grad[s] = before + (action[t] ? right : left); \
        } \
    }
SCORE(score_pi, grad[s], p, p - 1.0)
SCORE(score_pi_right_only, grad[s], p, -p)
SCORE(score_last, 0.0, 1.0 - p, -p)
SCORE(score_no_action, grad[s], 1.0 - p, 1.0 - p)
SCORE(score_left_sign, grad[s], 1.0 - p, p)
SCORE(score_no_log, grad[s], 1.0 / p, -1.0 / (1.0 - p))
SCORE(score_count, grad[s], 1.0, 0.0)
SCORE(score_left_nothing, grad[s], 1.0 - p, 0.0)

// ---- 5. the rewards of the MDP's steps

static void make_step_rewards(Case* c, int which, uint64_t* rng) {
    double mask[VALUES];
    int n = which < 2 ? 5 : random_whole(rng, 7, 9), prompt = random_whole(rng, 1, 2),
        end = n - random_whole(rng, 2, 3);
    for (int t = 0; t < n; t++)
        mask[t] = t >= prompt && t < end && t != prompt + 1; // the tool wrote one token
    add_arg(c, "reward", OUT_FLOATS, n);
    add_numbers(c, "mask", WHOLES, n, which < 2 ? NUMBERS(0, 0, 1, 1, 0) : mask);
    add_number(c, "T1", WHOLE, n);
    add_number(c, "verdict", REAL, which == 0 ? 1 : which == 1 ? 0 : random_between(rng, 0.2, 0.9));
}

CALL(step_rewards, AS(my_step_rewards)(floats(f, 0), wholes(f, 1), whole(f, 2), (float)number(f, 3)))

#define STEPS (float* out, const int* mask, int n, float verdict)
FILLS(steps_each, STEPS, n, mask[t] ? verdict : 0.0f)
FILLS(steps_everywhere, STEPS, n, verdict)
FILLS(steps_last_place, STEPS, n, t == n - 1 ? verdict : 0.0f)
FILLS(steps_shared, STEPS, n, mask[t] ? verdict / (float)ones_in(mask, n) : 0.0f)
FILLS(steps_first, STEPS, n, mask[t] && !ones_in(mask, t) ? verdict : 0.0f)
static void steps_always_1 STEPS { sol_step_rewards(out, mask, n, 1.0f); }

// ---- 6. log-softmax

static void make_log_softmax(Case* c, int which, uint64_t* rng) {
    double z[VALUES];
    int V = which < 2 ? 2 : random_whole(rng, 3, 5);
    add_arg(c, "out", OUT_FLOATS, V);
    add_numbers(c, "z", FLOATS, V, which == 0 ? NUMBERS(1000, 1001)
                : which == 1 ? NUMBERS(-1000, 0) : some(z, V, -3, 3, rng));
    add_number(c, "V", WHOLE, V);
}

CALL(log_softmax, AS(my_log_softmax)(floats(f, 0), floats(f, 1), whole(f, 2)))

static double largest(const float* z, int V) {
    double top = z[0];
    for (int i = 1; i < V; i++) top = fmax(top, z[i]);
    return top;
}
#define SOFTMAX (float* out, const float* z, int V)
SUMS(exp_sum, (const float* z, int V), V, exp(z[t]))
FILLS(softmax_overflow, SOFTMAX, V, z[t] - log(exp_sum(z, V)))
FILLS(softmax_overflow_ratio, SOFTMAX, V, log(exp(z[t]) / exp_sum(z, V)))
FILLS(softmax_not_added, SOFTMAX, V, z[t] - (log_sum_exp(z, V) - largest(z, V)))
FILLS(softmax_subtracted_twice, SOFTMAX, V, z[t] - largest(z, V) - log_sum_exp(z, V))
FILLS(softmax_no_log, SOFTMAX, V, exp(z[t] - log_sum_exp(z, V)))
FILLS(softmax_only_shifted, SOFTMAX, V, z[t] - largest(z, V))
FILLS(softmax_sign, SOFTMAX, V, log_sum_exp(z, V) - z[t])

// ---- 7. the log-probability of an answer

static void make_answer_logprob(Case* c, int which, uint64_t* rng) {
    double logits[VALUES], ids[VALUES], mask[VALUES];
    int T = which == 0 ? 6 : random_whole(rng, 7, 9), V = which == 0 ? 5 : 4;
    for (int t = 0; t < T; t++) {
        ids[t] = random_whole(rng, 0, V - 1);
        mask[t] = t >= 2 && t != 4 && t < T - 1; // a forced token inside, padding behind
    }
    add_numbers(c, "logits", FLOATS, T * V, which == 0 ? NUMBERS(0, 2, 1, 0, 0, 3, 0, 0, 1, 0, 0, 1, 3, 0, 0,
                                                                 1, 0, 0, 3, 0, 0, 0, 0, 0, 2, 0, 0, 1, 0, 0)
                                                       : some(logits, T * V, -2, 2, rng))->row = V;
    add_numbers(c, "ids", WHOLES, T, which == 0 ? NUMBERS(0, 1, 0, 2, 3, 4) : ids);
    add_numbers(c, "mask", WHOLES, T, which == 0 ? NUMBERS(0, 0, 0, 0, 1, 1) : mask);
    add_number(c, "T", WHOLE, T);
    add_number(c, "V", WHOLE, V);
}

CALL(answer_logprob,
     returns(f, AS(my_answer_logprob)(floats(f, 0), wholes(f, 1), wholes(f, 2), whole(f, 3), whole(f, 4))))

static double row_logp(const float* logits, int t, int id, int V) {
    return logits[t * V + id] - log_sum_exp(logits + t * V, V);
}

#define ANSWER (const float* z, const int* ids, const int* mask, int T, int V)
SUMS(answer_mask_not_shifted, ANSWER, T - 1, mask[t] ? row_logp(z, t, ids[t + 1], V) : 0.0)
SUMS(answer_no_mask, ANSWER, T - 1, row_logp(z, t, ids[t + 1], V))
GIVES(answer_mean, ANSWER, sol_answer_logprob(z, ids, mask, T, V) / ones_in(mask + 1, T - 1))
GIVES(answer_mean_of_all, ANSWER, sol_answer_logprob(z, ids, mask, T, V) / (T - 1))
SUMS(answer_ids_not_shifted, ANSWER, T, mask[t] ? row_logp(z, t, ids[t], V) : 0.0)
SUMS(answer_ids_not_shifted_2, ANSWER, T - 1, mask[t + 1] ? row_logp(z, t, ids[t], V) : 0.0)
GIVES(answer_probability, ANSWER, exp(sol_answer_logprob(z, ids, mask, T, V)))
GIVES(answer_sign, ANSWER, -sol_answer_logprob(z, ids, mask, T, V))
SUMS(answer_logits, ANSWER, T - 1, mask[t + 1] ? z[t * V + ids[t + 1]] : 0.0)

// ---- 8. the shifted gather

static void make_token_logprobs(Case* c, int which, uint64_t* rng) {
    const double l = log(3.0);
    double logits[VALUES], ids[VALUES];
    int B = 2, T = which == 0 ? 3 : random_whole(rng, 4, 5), V = which == 0 ? 2 : 3;
    for (int i = 0; i < B * T; i++) ids[i] = random_whole(rng, 0, V - 1);
    add_arg(c, "logp", OUT_FLOATS, B * (T - 1))->row = T - 1;
    add_numbers(c, "logits", FLOATS, B * T * V,
                which == 0 ? NUMBERS(0, l, l, 0, 0, 0, l, 0, 0, 0, 0, l)
                           : some(logits, B * T * V, -2, 2, rng))
        ->row = V;
    add_numbers(c, "ids", WHOLES, B * T, which == 0 ? NUMBERS(0, 1, 1, 1, 0, 1) : ids)->row = T;
    add_number(c, "B", WHOLE, B);
    add_number(c, "T", WHOLE, T);
    add_number(c, "V", WHOLE, V);
}

CALL(token_logprobs,
     AS(my_token_logprobs)(floats(f, 0), floats(f, 1), wholes(f, 2), whole(f, 3), whole(f, 4), whole(f, 5)))

// which row of logits, which of the ids, and what is made of both; n: the T - 1 of a row of logp
#define GATHER(name, row, place, value) \
    static void name(float* logp, const float* z, const int* ids, int B, int T, int V) { \
        for (int n = T - 1, b = 0; b < B; b++) \
            for (int t = 0; t < n; t++) { \
                int at = row, id = ids[place]; \
                logp[b * n + t] = (float)(value); \
            } \
    }
GATHER(gather_no_shift, b * T + t, b * T + t, row_logp(z, at, id, V))
GATHER(gather_next_row, b * T + t + 1, b * T + t + 1, row_logp(z, at, id, V))
GATHER(gather_ids_row, b * T + t, b * n + t + 1, row_logp(z, at, id, V))
GATHER(gather_logits_row, b * n + t, b * T + t + 1, row_logp(z, at, id, V))
GATHER(gather_logits, b * T + t, b * T + t + 1, z[at * V + id])
GATHER(gather_exp, b * T + t, b * T + t + 1, exp(row_logp(z, at, id, V)))
GATHER(gather_sign, b * T + t, b * T + t + 1, -row_logp(z, at, id, V))

// ---- 9. the mean of a padded batch

static void make_answer_means(Case* c, int which, uint64_t* rng) {
    double logp[VALUES], mask[VALUES];
    int B = 2, T1 = which == 0 ? 3 : which == 1 ? 2 : random_whole(rng, 4, 5);
    for (int t = 0; t < B * T1; t++) mask[t] = t % T1 >= 1 && t % T1 < (t < T1 ? T1 : T1 - 1);
    add_arg(c, "out", OUT_FLOATS, B);
    add_numbers(c, "logp", FLOATS, B * T1, which == 0 ? NUMBERS(-1, -2, -3, -4, -9, -9)
                : which == 1 ? NUMBERS(-1, NAN, NAN, NAN) : some(logp, B * T1, -4, -0.1, rng))->row = T1;
    add_numbers(c, "mask", WHOLES, B * T1, which == 0 ? NUMBERS(1, 1, 1, 1, 0, 0)
                : which == 1 ? NUMBERS(1, 0, 0, 0) : mask)->row = T1;
    add_number(c, "B", WHOLE, B);
    add_number(c, "T1", WHOLE, T1);
}

CALL(answer_means, AS(my_answer_means)(floats(f, 0), floats(f, 1), wholes(f, 2), whole(f, 3), whole(f, 4)))

#define MEANS(name, take, mean) \
    static void name(float* out, const float* logp, const int* mask, int B, int T1) { \
        for (int count, b = 0; b < B; b++) { \
            double sum = kl_sum(&count, logp + b * T1, mask + b * T1, T1, take); \
            out[b] = (float)(mean); \
        } \
    }
MEANS(means_by_T1, SKIP, sum / T1)
MEANS(means_by_T1_multiplied, MULTIPLY, sum / T1)
MEANS(means_all, ALL, sum / T1)
MEANS(means_all_by_count, ALL, count ? sum / count : 0.0)
MEANS(means_multiplied, MULTIPLY, count ? sum / count : 0.0)
MEANS(means_unguarded, SKIP, sum / count)
MEANS(means_sum, SKIP, sum)
MEANS(means_batch, SKIP, kl_sum(&count, logp, mask, B * T1, SKIP) / ones_in(mask, B * T1))

// ---- 10. the mask of a tool call

static void make_tool_mask(Case* c, int which, uint64_t* rng) {
    enum { PYTHON = 261, PYTHON_CLOSE = 262, END = 260 };
    double ids[VALUES];
    char text[40];
    int n = 0, prompt = which == 0 ? 1 : random_whole(rng, 2, 4),
        calls = which == 0 ? 1 : random_whole(rng, 1, 2);
    for (int t = 0; t < prompt; t++) ids[n++] = '?';
    for (int i = 0; i < calls; i++) {
        int a = which == 0 ? 12 : random_whole(rng, 2, 30), b = which == 0 ? 3 : random_whole(rng, 2, 9);
        ids[n++] = PYTHON;
        snprintf(text, sizeof text, "%d*%d", a, b);
        for (const char* p = text; *p; p++) ids[n++] = *p;
        ids[n++] = PYTHON_CLOSE;
        ids[n++] = TOKEN_OUTPUT_START;
        snprintf(text, sizeof text, "%d", a * b);
        for (const char* p = text; *p; p++) ids[n++] = *p;
        ids[n++] = TOKEN_OUTPUT_END;
        if (which) ids[n++] = ' ';
    }
    ids[n++] = END;
    add_arg(c, "mask", OUT_WHOLES, n);
    add_numbers(c, "ids", WHOLES, n, ids);
    add_number(c, "prompt", WHOLE, prompt);
    add_number(c, "T", WHOLE, n);
}

CALL(tool_mask, AS(my_tool_mask)(wholes(f, 0), wholes(f, 1), whole(f, 2), whole(f, 3)))

// forced: from a token that begins the output to one that ends it; the mask of an answer's token
#define TOOL(name, begins, answer, ends) \
    static void name(int* mask, const int* ids, int prompt, int T) { \
        for (int forced = 0, t = 0; t < T; t++) { \
            int start = ids[t] == TOKEN_OUTPUT_START, end = ids[t] == TOKEN_OUTPUT_END; \
            forced |= begins; \
            mask[t] = answer; \
            if (ends) forced = 0; \
        } \
    }
TOOL(tool_all, start, t >= prompt, end)
TOOL(tool_between, start, t >= prompt && (!forced || start || end), end)
TOOL(tool_start_kept, start, t >= prompt && (!forced || start), end)
TOOL(tool_end_kept, start, t >= prompt && (!forced || end), end)
TOOL(tool_call_too, (start || ids[t] == 261), t >= prompt && !forced, end)
TOOL(tool_prompt, start, t < prompt || !forced, end)
TOOL(tool_never_back, start, t >= prompt && !forced, 0)
TOOL(tool_inverted, start, t >= prompt && forced, end)

// ---- 11. the #### reward

static void make_hash_rewards(Case* c, int which, uint64_t* rng) {
    static const char* const first[] = {"#### 42",  "#### 41, no, #### 42", "#### 420", "#### 42.0",
                                        "It is 42", "#### 42, no, #### 41"};
    char text[TEXTS][TEXT_SIZE];
    const char* list[TEXTS];
    int K = which == 0   ? 6
            : which == 1 ? 4
                         : 8,
        x = random_whole(rng, 11, 99), y = x + random_whole(rng, 1, 9);
    static const char* const form[] = {"#### %d", "#### %d then #### %d", "#### %d.00 apples", "#### %d0",
                                       "so %d",   "#### %d then #### %d", "#### %d.5", "#### %d.5"};
    for (int k = 0; k < TEXTS; k++) {
        int a = k == 1 ? y : k == 7 ? x - 1 : x, b = k == 1 ? x : y;
        snprintf(text[k], TEXT_SIZE, form[k], a, b);
        list[k] = text[k];
    }
    add_arg(c, "reward", OUT_FLOATS, K);
    add_texts(c, "response", K,
              which == 0   ? first
              : which == 1 ? LIST("#### 0", "#### none", "#### 0.5", "none")
                           : list);
    add_number(c, "K", WHOLE, K);
    add_number(c, "truth", REAL, which == 0 ? 42 : which == 1 ? 0 : x);
}

CALL(hash_rewards, AS(my_hash_rewards)(floats(f, 0), texts(f, 1), whole(f, 2), number(f, 3)))

static double last_number(const char* text) {
    double x = NAN;
    for (const char* p = text; *p; p++)
        if (isdigit((unsigned char)*p) && (p == text || !(isdigit((unsigned char)p[-1]) || p[-1] == '.')))
            x = strtod(p, NULL);
    return x;
}

static int any_hash(const char* text, double truth) {
    int found = 0;
    for (const char* p = strstr(text, "####"); p; p = strstr(p + 4, "####"))
        found |= number_at(p + 4) == truth;
    return found;
}

static int hash_text_equal(const char* at, const char* truth) {
    while (*at == ' ') at++;
    size_t n = strcspn(at, " ,");
    return n == strlen(truth) && !strncmp(at, truth, n);
}

#define HASH(name, right) \
    static void name(float* reward, const char* const* response, int K, double truth) { \
        char want[40]; \
        snprintf(want, sizeof want, "%g", truth); \
        for (int k = 0; k < K; k++) { \
            const char *r = response[k], *last = after_last(r, "####"), *first = strstr(r, "####"); \
            reward[k] = (float)(right); \
        } \
    }
HASH(hash_first, first && number_at(first + 4) == truth)
HASH(hash_any, any_hash(r, truth))
HASH(hash_substring, last && strstr(last, want))
HASH(hash_text, last && hash_text_equal(last, want))
HASH(hash_fallback, (last ? number_at(last) : last_number(r)) == truth)
HASH(hash_anywhere, strstr(r, want) != NULL)
HASH(hash_none_is_0, last && atof(last) == truth)
HASH(hash_whole, last && floor(number_at(last)) == floor(truth))

// ---- 12. the boxed reward

static void make_boxed_rewards(Case* c, int which, uint64_t* rng) {
    static const char* const four[] = {"\\boxed{83}", "The correct answer is \\boxed{83}",
                                       "The final answer is 83", "We get \\boxed{38}"};
    static const char* const six[] = {"\\boxed{\\frac{1}{2}}",
                                      "\\boxed{0.5}",
                                      "\\boxed{2}, no, \\boxed{\\frac{1}{2}}",
                                      "It is \\frac{1}{2}, \\boxed{\\frac{1}{3}}",
                                      "\\boxed{\\frac{1}{2}",
                                      "\\boxed{\\frac{1}{2}} {x}"};
    static const char* const form[] = {"It is %d",
                                       "\\boxed{%d}",
                                       "\\boxed{%d} {or} so",
                                       "\\boxed{%d}, no: \\boxed{%d}",
                                       "\\boxed{%d.0}",
                                       "\\boxed{%d}, no: \\boxed{%d}"};
    char text[TEXTS][TEXT_SIZE], truth[TEXT_SIZE];
    const char* list[TEXTS];
    int x = random_whole(rng, 11, 99), y = x + random_whole(rng, 1, 9), K = which == 0 ? 4 : 6;
    for (int k = 0; k < 6; k++) {
        snprintf(text[k], TEXT_SIZE, form[k], k == 3 ? y : x, k == 3 ? x : y);
        list[k] = text[k];
    }
    snprintf(truth, sizeof truth, "%d", x);
    add_arg(c, "reward", OUT_FLOATS, K);
    add_texts(c, "response", K, which == 0 ? four : which == 1 ? six : list);
    add_number(c, "K", WHOLE, K);
    add_text(c, "truth", which == 0 ? "83" : which == 1 ? "\\frac{1}{2}" : truth);
}

CALL(boxed_rewards,
     AS(my_boxed_rewards)(floats(f, 0), texts(f, 1), whole(f, 2), f->list[3][0], answers_equal))

static const char* closing(const char* p) {   // the brace that closes
    for (int depth = 1; *p; p++) {
        depth += (*p == '{') - (*p == '}');
        if (depth == 0) return p;
    }
    return NULL;
}
static const char* last_number_text(const char* text) {
    static char out[40];
    snprintf(out, sizeof out, "%g", last_number(text));
    return out;
}
// where the box opens and closes, and what is right
#define BOX(name, opens, closes, right) \
    static void name(float* reward, const char* const* response, int K, const char* truth, Equal* equal) { \
        for (int k = 0; k < K; k++) { \
            const char *r = response[k], *first = strstr(r, "\\boxed{"), *last = after_last(r, "\\boxed{"); \
            const char *open = opens, *close = open ? closes : NULL; \
            reward[k] = (float)(right); \
        } \
    }
#define IN_BOX (close && equal(piece(open, close), truth))
BOX(box_fallback, last, closing(open), open ? IN_BOX : equal(last_number_text(r), truth))
BOX(box_only, last, closing(open), open != NULL)
BOX(box_first_brace, last, strchr(open, '}'), IN_BOX)
BOX(box_last_brace, last, strrchr(open, '}'), IN_BOX)
BOX(box_first_box, first ? first + 7 : NULL, closing(open), IN_BOX)
BOX(box_anywhere, last, closing(open), strstr(r, truth) != NULL)
BOX(box_text, last, closing(open), close && !strcmp(piece(open, close), truth))

// ---- 13. better than average

static void make_centered(Case* c, int which, uint64_t* rng) {
    double r[VALUES];
    int K = which == 0 ? 16 : random_whole(rng, 4, 6);
    add_arg(c, "adv", OUT_FLOATS, K);
    add_numbers(c, "reward", FLOATS, K,
                which == 0 ? NUMBERS(1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0) : some(r, K, 1, 3, rng));
    add_number(c, "K", WHOLE, K);
}

CALL(centered, AS(my_centered)(floats(f, 0), floats(f, 1), whole(f, 2)))

// All of 13, 14 and 15: (scale * reward - mean of a kind) over a spread of a kind.
SUMS(total, (const float* r, int K), K, r[t])
SUMS(squares, (const float* r, int K), K, pow(r[t] - total(r, K) / K, 2.0))
#define GROUP(name, expression) \
    static void name(float* adv, const float* r, int K) { \
        for (int k = 0; k < K; k++) adv[k] = (float)(expression); \
    }
GROUP(centered_other_divisor, r[k] - total(r, K) / (K - 1))
GROUP(centered_raw, r[k])
GROUP(centered_sign, total(r, K) / K - r[k])
GROUP(centered_sum, r[k] - total(r, K))
GROUP(centered_sample_std, (r[k] - total(r, K) / K) / sqrt(squares(r, K) / (K - 1)))
GROUP(centered_population_std, (r[k] - total(r, K) / K) / sqrt(squares(r, K) / K))
GROUP(centered_leave_one_out, (r[k] - total(r, K) / K) * K / (K - 1))
GROUP(centered_mean_alone, total(r, K) / K)

static void centered_whole_division(float* adv, const float* r, int K) {
    int sum = 0;
    for (int k = 0; k < K; k++) sum += (int)r[k];
    for (int k = 0; k < K; k++) adv[k] = r[k] - (float)(sum / K);
}

// ---- 14. leave one out

static void make_rloo(Case* c, int which, uint64_t* rng) {
    double r[VALUES];
    int K = which == 0 ? 4 : random_whole(rng, 5, 7);
    add_arg(c, "adv", OUT_FLOATS, K);
    add_numbers(c, "reward", FLOATS, K, which == 0 ? NUMBERS(1, 1, 0, 0) : some(r, K, 0, 2, rng));
    add_number(c, "K", WHOLE, K);
}

CALL(rloo, AS(my_rloo)(floats(f, 0), floats(f, 1), whole(f, 2)))

GROUP(rloo_inverted, (r[k] - total(r, K) / K) * (K - 1) / K)
GROUP(rloo_sum_of_others, r[k] - (total(r, K) - r[k]))
GROUP(rloo_own_in_sum, r[k] - total(r, K) / (K - 1))
GROUP(rloo_divided_by_K, r[k] - (total(r, K) - r[k]) / K)
GROUP(rloo_sign, (total(r, K) / K - r[k]) * K / (K - 1))

// ---- 15. GRPO's advantage

static void make_grpo(Case* c, int which, uint64_t* rng) {
    double r[VALUES];
    int K = which < 3 ? 4 : random_whole(rng, 5, 7);
    add_arg(c, "adv", OUT_FLOATS, K);
    add_numbers(c, "reward", FLOATS, K,
                which == 1  ? NUMBERS(1, 1, 1, 1)
                : which < 3 ? NUMBERS(1, 1, 0, 0)
                            : some(r, K, 0, 2, rng));
    add_number(c, "K", WHOLE, K);
    add_number(c, "eps", REAL, which < 2 ? 0 : which == 2 ? 0.5 : random_between(rng, 0.1, 0.4));
}

CALL(grpo, AS(my_grpo)(floats(f, 0), floats(f, 1), whole(f, 2), (float)number(f, 3)))

// expression: the number to divide by. guarded: 0 when all rewards are equal.
#define GRPO(name, numerator, divisor, guarded) \
    static void name(float* adv, const float* r, int K, float eps) { \
        for (int k = 0; k < K; k++) \
            adv[k] = (guarded) && squares(r, K) == 0.0 ? 0.0f : (float)((numerator) / (divisor)); \
    }
#define OFF_MEAN (r[k] - total(r, K) / K)
GRPO(grpo_population, OFF_MEAN, sqrt(squares(r, K) / K) + eps, 1)
GRPO(grpo_population_2, OFF_MEAN, sqrt(squares(r, K) / K) + eps, 0)
GRPO(grpo_variance, OFF_MEAN, squares(r, K) / (K - 1) + eps, 1)
GRPO(grpo_variance_2, OFF_MEAN, squares(r, K) / (K - 1) + eps, 0)
GRPO(grpo_population_variance, OFF_MEAN, squares(r, K) / K + eps, 1)
GRPO(grpo_population_variance_2, OFF_MEAN, squares(r, K) / K + eps, 0)
GRPO(grpo_nan, OFF_MEAN, sqrt(squares(r, K) / (K - 1)) + eps, 0)
GRPO(grpo_no_eps, OFF_MEAN, sqrt(squares(r, K) / (K - 1)), 1)
GRPO(grpo_eps_in_root, OFF_MEAN, sqrt(squares(r, K) / (K - 1) + eps), 1)
GRPO(grpo_not_centered, r[k], sqrt(squares(r, K) / (K - 1)) + eps, 1)
GRPO(grpo_centered_only, OFF_MEAN, 1.0, 1)
GRPO(grpo_root_of_sum, OFF_MEAN, sqrt(squares(r, K)) + eps, 1)

// ---- 16. a group without a signal

static void make_zero_variance_odds(Case* c, int which, uint64_t* rng) {
    add_number(c, "p", REAL, which == 0 ? 0.5 : which == 1 ? 0.25 : random_between(rng, 0.1, 0.9));
    add_number(c, "K", WHOLE, which == 0 ? 4 : which == 1 ? 2 : random_whole(rng, 3, 5));
}

CALL(zero_variance_odds, returns(f, AS(my_zero_variance_odds)(number(f, 0), whole(f, 1))))

#define ODDS (double p, int K)
GIVES(odds_all_right, ODDS, pow(p, K))
GIVES(odds_all_wrong, ODDS, pow(1.0 - p, K))
GIVES(odds_complement, ODDS, 1.0 - sol_zero_variance_odds(p, K))
GIVES(odds_twice, ODDS, 2.0 * pow(p, K))
GIVES(odds_not_all_right, ODDS, 1.0 - pow(p, K))
GIVES(odds_product, ODDS, pow(p, K) * pow(1.0 - p, K))
GIVES(odds_times_K, ODDS, K * p + K * (1.0 - p))

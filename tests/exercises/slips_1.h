/* slips_1.h - exercises 1 to 16: their inputs, and each classic slip as a small function, for table.h. */

static double* some(double* x, int n, double low, double high, uint64_t* rng) {      // n random hundredths
    for (int i = 0; i < n; i++) x[i] = random_between(rng, low, high);
    return x;
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

static void call_return(Frame* f) { returns(f, AS(my_return)(doubles(f, 0), whole(f, 1), number(f, 2))); }

static double return_power(const double* r, int T, double gamma) {
    return gamma * sol_return(r, T, gamma);
}
static double return_reversed(const double* r, int T, double gamma) {
    double G = 0.0;
    for (int t = 0; t < T; t++) G = r[t] + gamma * G;
    return G;
}
static double return_undiscounted(const double* r, int T, double gamma) {
    (void)gamma;
    return sol_return(r, T, 1.0);
}
static double return_gamma_once(const double* r, int T, double gamma) {
    double G = r[0];
    for (int t = 1; t < T; t++) G += gamma * r[t];
    return G;
}
static double return_times_t(const double* r, int T, double gamma) {
    double G = r[0];
    for (int t = 1; t < T; t++) G += gamma * t * r[t];
    return G;
}
static double return_last(const double* r, int T, double gamma) { return pow(gamma, T - 1) * r[T - 1]; }
static double return_mean(const double* r, int T, double gamma) { return sol_return(r, T, gamma) / T; }

// ---- 2. the value of a state

static void make_chain_value(Case* c, int which, uint64_t* rng) {
    add_number(c, "s", WHOLE, which == 0 ? 2 : which == 1 ? 1 : random_whole(rng, 1, 3));
    add_number(c, "pi_right", REAL, which == 0 ? 0.75 : which == 1 ? 0.5 : random_between(rng, 0.55, 0.9));
    add_number(c, "slip", REAL, which == 0 ? 1.0 / 6.0 : which == 1 ? 0.25 : random_between(rng, 0.05, 0.3));
}

static void call_chain_value(Frame* f) {
    returns(f, AS(my_chain_value)(whole(f, 0), number(f, 1), number(f, 2)));
}

// u: really going right. unguarded: without the case x = 1.
static double chain_formula(int s, double u, int unguarded) {
    double x = (1.0 - u) / u;
    return !unguarded && fabs(x - 1.0) < 1e-12 ? s / 4.0 : (1.0 - pow(x, s)) / (1.0 - pow(x, 4));
}
static double chain_u(double pi, double slip) { return pi * (1.0 - slip) + (1.0 - pi) * slip; }
static double chain_no_world(int s, double pi, double slip) {
    (void)slip;
    return chain_formula(s, pi, 0);
}
static double chain_no_world_2(int s, double pi, double slip) {
    (void)slip;
    return chain_formula(s, pi, 1);
}
static double chain_one_path(int s, double pi, double slip) { return chain_formula(s, pi * (1.0 - slip), 0); }
static double chain_turned(int s, double pi, double slip) {
    return chain_formula(s, 1.0 - chain_u(pi, slip), 0);
}
static double chain_turned_2(int s, double pi, double slip) {
    return chain_formula(s, 1.0 - chain_u(pi, slip), 1);
}
static double chain_no_guard(int s, double pi, double slip) { return chain_formula(s, chain_u(pi, slip), 1); }
static double chain_whole_division(int s, double pi, double slip) {
    double u = chain_u(pi, slip);
    return u == 0.5 ? s / 4 : chain_formula(s, u, 0);
}

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

static void call_advantage(Frame* f) {
    returns(f, AS(my_advantage)(doubles(f, 0), doubles(f, 1), whole(f, 2), whole(f, 3)));
}

static double advantage_max(const double* Q, const double* pi, int n, int a) {
    double top = Q[0];
    (void)pi;
    for (int i = 1; i < n; i++) top = fmax(top, Q[i]);
    return Q[a] - top;
}
static double advantage_q(const double* Q, const double* pi, int n, int a) {
    (void)pi, (void)n;
    return Q[a];
}
static double advantage_plain_mean(const double* Q, const double* pi, int n, int a) {
    double sum = 0.0;
    (void)pi;
    for (int i = 0; i < n; i++) sum += Q[i];
    return Q[a] - sum / n;
}
static double advantage_sign(const double* Q, const double* pi, int n, int a) {
    return -sol_advantage(Q, pi, n, a);
}
static double advantage_v(const double* Q, const double* pi, int n, int a) {
    return Q[a] - sol_advantage(Q, pi, n, a);
}
static double advantage_times_pi(const double* Q, const double* pi, int n, int a) {
    return pi[a] * Q[a] - advantage_v(Q, pi, n, a);
}

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

static void call_score(Frame* f) {
    AS(my_score)(doubles(f, 0), wholes(f, 1), wholes(f, 2), whole(f, 3), doubles(f, 4));
}

enum { SCORE_PI, SCORE_PI_RIGHT_ONLY, SCORE_LAST, SCORE_NO_ACTION, SCORE_LEFT_SIGN, SCORE_NO_LOG,
       SCORE_COUNT, SCORE_LEFT_NOTHING };

static void score_slip(double* grad, const int* state, const int* action, int T, const double* pi_right,
                       int slip) {
    for (int s = 0; s < 5; s++) grad[s] = 0.0;
    for (int t = 0; t < T; t++) {
        double p = pi_right[state[t]], right = 1.0 - p, left = -p;
        if (slip == SCORE_PI) {
            right = p;
            left = -(1.0 - p);
        }
        if (slip == SCORE_PI_RIGHT_ONLY) right = p;
        if (slip == SCORE_NO_ACTION) left = 1.0 - p;
        if (slip == SCORE_LEFT_SIGN) left = p;
        if (slip == SCORE_NO_LOG) {
            right = 1.0 / p;
            left = -1.0 / (1.0 - p);
        }
        if (slip == SCORE_COUNT) {
            right = 1.0;
            left = 0.0;
        }
        if (slip == SCORE_LEFT_NOTHING) left = 0.0;
        grad[state[t]] = (slip == SCORE_LAST ? 0.0 : grad[state[t]]) + (action[t] ? right : left);
    }
}
#define SCORE(name, slip) \
    static void name(double* grad, const int* state, const int* action, int T, const double* pi_right) { \
        score_slip(grad, state, action, T, pi_right, slip); \
    }
SCORE(score_pi, SCORE_PI)
SCORE(score_pi_right_only, SCORE_PI_RIGHT_ONLY)
SCORE(score_last, SCORE_LAST)
SCORE(score_no_action, SCORE_NO_ACTION)
SCORE(score_left_sign, SCORE_LEFT_SIGN)
SCORE(score_no_log, SCORE_NO_LOG)
SCORE(score_count, SCORE_COUNT)
SCORE(score_left_nothing, SCORE_LEFT_NOTHING)

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

static void call_step_rewards(Frame* f) {
    AS(my_step_rewards)(floats(f, 0), wholes(f, 1), whole(f, 2), (float)number(f, 3));
}

static void steps_each(float* r, const int* mask, int n, float verdict) {
    for (int t = 0; t < n; t++) r[t] = mask[t] ? verdict : 0.0f;
}
static void steps_everywhere(float* r, const int* mask, int n, float verdict) {
    (void)mask;
    for (int t = 0; t < n; t++) r[t] = verdict;
}
static void steps_last_place(float* r, const int* mask, int n, float verdict) {
    (void)mask;
    for (int t = 0; t < n; t++) r[t] = t == n - 1 ? verdict : 0.0f;
}
static void steps_shared(float* r, const int* mask, int n, float verdict) {
    int count = 0;
    for (int t = 0; t < n; t++) count += mask[t];
    for (int t = 0; t < n; t++) r[t] = mask[t] ? verdict / (float)count : 0.0f;
}
static void steps_first(float* r, const int* mask, int n, float verdict) {
    int seen = 0;
    for (int t = 0; t < n; t++) {
        r[t] = mask[t] && !seen ? verdict : 0.0f;
        seen |= mask[t];
    }
}
static void steps_always_1(float* r, const int* mask, int n, float verdict) {
    (void)verdict;
    sol_step_rewards(r, mask, n, 1.0f);
}

// ---- 6. log-softmax

static void make_log_softmax(Case* c, int which, uint64_t* rng) {
    double z[VALUES];
    int V = which < 2 ? 2 : random_whole(rng, 3, 5);
    add_arg(c, "out", OUT_FLOATS, V);
    add_numbers(c, "z", FLOATS, V, which == 0 ? NUMBERS(1000, 1001)
                : which == 1 ? NUMBERS(-1000, 0) : some(z, V, -3, 3, rng));
    add_number(c, "V", WHOLE, V);
}

static void call_log_softmax(Frame* f) { AS(my_log_softmax)(floats(f, 0), floats(f, 1), whole(f, 2)); }

static double largest(const float* z, int V) {
    double top = z[0];
    for (int i = 1; i < V; i++) top = fmax(top, z[i]);
    return top;
}
static void softmax_overflow(float* out, const float* z, int V) {
    double sum = 0.0;
    for (int i = 0; i < V; i++) sum += exp(z[i]);
    for (int i = 0; i < V; i++) out[i] = (float)(z[i] - log(sum));
}
static void softmax_overflow_ratio(float* out, const float* z, int V) {
    double sum = 0.0;
    for (int i = 0; i < V; i++) sum += exp(z[i]);
    for (int i = 0; i < V; i++) out[i] = (float)log(exp(z[i]) / sum);
}
static void softmax_not_added(float* out, const float* z, int V) {
    double top = largest(z, V);
    for (int i = 0; i < V; i++) out[i] = (float)(z[i] - (log_sum_exp(z, V) - top));
}
static void softmax_subtracted_twice(float* out, const float* z, int V) {
    double top = largest(z, V);
    for (int i = 0; i < V; i++) out[i] = (float)(z[i] - top - log_sum_exp(z, V));
}
static void softmax_no_log(float* out, const float* z, int V) {
    for (int i = 0; i < V; i++) out[i] = (float)exp(z[i] - log_sum_exp(z, V));
}
static void softmax_only_shifted(float* out, const float* z, int V) {
    for (int i = 0; i < V; i++) out[i] = (float)(z[i] - largest(z, V));
}
static void softmax_sign(float* out, const float* z, int V) {
    for (int i = 0; i < V; i++) out[i] = (float)(log_sum_exp(z, V) - z[i]);
}

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

static void call_answer_logprob(Frame* f) {
    returns(f, AS(my_answer_logprob)(floats(f, 0), wholes(f, 1), wholes(f, 2), whole(f, 3), whole(f, 4)));
}

static double row_logp(const float* logits, int t, int id, int V) {
    return logits[t * V + id] - log_sum_exp(logits + t * V, V);
}

static double answer_mask_not_shifted(const float* z, const int* ids, const int* mask, int T, int V) {
    double sum = 0.0;
    for (int t = 0; t + 1 < T; t++) sum += mask[t] ? row_logp(z, t, ids[t + 1], V) : 0.0;
    return sum;
}
static double answer_no_mask(const float* z, const int* ids, const int* mask, int T, int V) {
    double sum = 0.0;
    (void)mask;
    for (int t = 0; t + 1 < T; t++) sum += row_logp(z, t, ids[t + 1], V);
    return sum;
}
static double answer_mean(const float* z, const int* ids, const int* mask, int T, int V) {
    int count = 0;
    for (int t = 1; t < T; t++) count += mask[t];
    return sol_answer_logprob(z, ids, mask, T, V) / count;
}
static double answer_mean_of_all(const float* z, const int* ids, const int* mask, int T, int V) {
    return sol_answer_logprob(z, ids, mask, T, V) / (T - 1);
}
static double answer_ids_not_shifted(const float* z, const int* ids, const int* mask, int T, int V) {
    double sum = 0.0;
    for (int t = 0; t < T; t++) sum += mask[t] ? row_logp(z, t, ids[t], V) : 0.0;
    return sum;
}
static double answer_ids_not_shifted_2(const float* z, const int* ids, const int* mask, int T, int V) {
    double sum = 0.0;
    for (int t = 0; t + 1 < T; t++) sum += mask[t + 1] ? row_logp(z, t, ids[t], V) : 0.0;
    return sum;
}
static double answer_probability(const float* z, const int* ids, const int* mask, int T, int V) {
    return exp(sol_answer_logprob(z, ids, mask, T, V));
}
static double answer_sign(const float* z, const int* ids, const int* mask, int T, int V) {
    return -sol_answer_logprob(z, ids, mask, T, V);
}
static double answer_logits(const float* z, const int* ids, const int* mask, int T, int V) {
    double sum = 0.0;
    for (int t = 0; t + 1 < T; t++) sum += mask[t + 1] ? z[t * V + ids[t + 1]] : 0.0;
    return sum;
}

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

static void call_token_logprobs(Frame* f) {
    AS(my_token_logprobs)(floats(f, 0), floats(f, 1), wholes(f, 2), whole(f, 3), whole(f, 4), whole(f, 5));
}

enum { GATHER_NO_SHIFT, GATHER_NEXT_ROW, GATHER_IDS_ROW, GATHER_LOGITS_ROW, GATHER_LOGITS, GATHER_EXP,
       GATHER_SIGN };

static void gather_slip(float* logp, const float* logits, const int* ids, int B, int T, int V, int slip) {
    for (int b = 0; b < B; b++)
        for (int t = 0; t + 1 < T; t++) {
            int row = (slip == GATHER_LOGITS_ROW ? b * (T - 1) : b * T) + t + (slip == GATHER_NEXT_ROW);
            int id = ids[(slip == GATHER_IDS_ROW ? b * (T - 1) : b * T) + t + (slip != GATHER_NO_SHIFT)];
            double x = slip == GATHER_LOGITS ? logits[row * V + id] : row_logp(logits, row, id, V);
            logp[b * (T - 1) + t] = (float)(slip == GATHER_EXP ? exp(x) : slip == GATHER_SIGN ? -x : x);
        }
}
#define GATHER(name, slip) \
    static void name(float* logp, const float* logits, const int* ids, int B, int T, int V) { \
        gather_slip(logp, logits, ids, B, T, V, slip); \
    }
GATHER(gather_no_shift, GATHER_NO_SHIFT)
GATHER(gather_next_row, GATHER_NEXT_ROW)
GATHER(gather_ids_row, GATHER_IDS_ROW)
GATHER(gather_logits_row, GATHER_LOGITS_ROW)
GATHER(gather_logits, GATHER_LOGITS)
GATHER(gather_exp, GATHER_EXP)
GATHER(gather_sign, GATHER_SIGN)

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

static void call_answer_means(Frame* f) {
    AS(my_answer_means)(floats(f, 0), floats(f, 1), wholes(f, 2), whole(f, 3), whole(f, 4));
}

enum { SKIP, MULTIPLY, ALL };                                     // what is done where the mask is 0
enum { BY_COUNT, BY_COUNT_UNGUARDED, BY_T1, BY_1, BY_BATCH };     // what the sum is divided by

static void means_slip(float* out, const float* logp, const int* mask, int B, int T1, int take, int by) {
    int in_batch = 0;
    double batch = 0.0;
    for (int i = 0; i < B * T1; i++) {
        in_batch += mask[i];
        if (mask[i]) batch += logp[i];
    }
    for (int b = 0; b < B; b++) {
        double sum = 0.0;
        int count = 0;
        for (int i = b * T1; i < (b + 1) * T1; i++) {
            count += mask[i];
            sum += take == ALL || mask[i] ? logp[i] : take == MULTIPLY ? logp[i] * (float)mask[i] : 0.0;
        }
        out[b] = (float)(by == BY_COUNT ? (count ? sum / count : 0.0) : by == BY_COUNT_UNGUARDED ? sum / count
                         : by == BY_T1 ? sum / T1 : by == BY_BATCH ? batch / in_batch : sum);
    }
}
#define MEANS(name, take, by)                                                                                \
    static void name(float* out, const float* logp, const int* mask, int B, int T1) {                        \
        means_slip(out, logp, mask, B, T1, take, by);                                                        \
    }
MEANS(means_by_T1, SKIP, BY_T1)
MEANS(means_by_T1_multiplied, MULTIPLY, BY_T1)
MEANS(means_all, ALL, BY_T1)
MEANS(means_all_by_count, ALL, BY_COUNT)
MEANS(means_multiplied, MULTIPLY, BY_COUNT)
MEANS(means_unguarded, SKIP, BY_COUNT_UNGUARDED)
MEANS(means_sum, SKIP, BY_1)
MEANS(means_batch, SKIP, BY_BATCH)

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

static void call_tool_mask(Frame* f) {
    AS(my_tool_mask)(wholes(f, 0), wholes(f, 1), whole(f, 2), whole(f, 3));
}

enum { TOOL_ALL, TOOL_BETWEEN, TOOL_START_KEPT, TOOL_END_KEPT, TOOL_CALL_TOO, TOOL_PROMPT, TOOL_NEVER_BACK,
       TOOL_INVERTED };

static void tool_slip(int* mask, const int* ids, int prompt, int T, int slip) {
    int forced = 0;
    for (int t = 0; t < T; t++) {
        int start = ids[t] == TOKEN_OUTPUT_START, end = ids[t] == TOKEN_OUTPUT_END;
        if (start || (slip == TOOL_CALL_TOO && ids[t] == 261)) forced = 1;
        mask[t] = !forced || slip == TOOL_ALL ||
                  (start && (slip == TOOL_BETWEEN || slip == TOOL_START_KEPT)) ||
                  (end && (slip == TOOL_BETWEEN || slip == TOOL_END_KEPT));
        if (slip == TOOL_INVERTED) mask[t] = !mask[t];
        if (t < prompt) mask[t] = slip == TOOL_PROMPT;
        if (end && slip != TOOL_NEVER_BACK) forced = 0;
    }
}
#define TOOL(name, slip) \
    static void name(int* mask, const int* ids, int prompt, int T) { tool_slip(mask, ids, prompt, T, slip); }
TOOL(tool_all, TOOL_ALL)
TOOL(tool_between, TOOL_BETWEEN)
TOOL(tool_start_kept, TOOL_START_KEPT)
TOOL(tool_end_kept, TOOL_END_KEPT)
TOOL(tool_call_too, TOOL_CALL_TOO)
TOOL(tool_prompt, TOOL_PROMPT)
TOOL(tool_never_back, TOOL_NEVER_BACK)
TOOL(tool_inverted, TOOL_INVERTED)

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

static void call_hash_rewards(Frame* f) {
    AS(my_hash_rewards)(floats(f, 0), texts(f, 1), whole(f, 2), number(f, 3));
}

enum { HASH_FIRST, HASH_ANY, HASH_SUBSTRING, HASH_TEXT, HASH_FALLBACK, HASH_ANYWHERE, HASH_NONE_IS_0,
       HASH_WHOLE };

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

static void hash_slip(float* reward, const char* const* response, int K, double truth, int slip) {
    char want[40];
    snprintf(want, sizeof want, "%g", truth);
    for (int k = 0; k < K; k++) {
        const char *r = response[k], *last = after_last(r, "####"), *first = strstr(r, "####");
        const char* at = slip == HASH_FIRST && first ? first + 4 : last;
        int right = at && number_at(at) == truth;
        if (slip == HASH_ANY) right = any_hash(r, truth);
        if (slip == HASH_SUBSTRING) right = at && strstr(at, want) != NULL;
        if (slip == HASH_TEXT) right = at && hash_text_equal(at, want);
        if (slip == HASH_FALLBACK && !at) right = last_number(r) == truth;
        if (slip == HASH_ANYWHERE) right = strstr(r, want) != NULL;
        if (slip == HASH_WHOLE) right = at && floor(number_at(at)) == floor(truth);
        if (slip == HASH_NONE_IS_0) right = at && atof(at) == truth;
        reward[k] = (float)right;
    }
}
#define HASH(name, slip)                                                                                     \
    static void name(float* reward, const char* const* response, int K, double truth) {                      \
        hash_slip(reward, response, K, truth, slip);                                                         \
    }
HASH(hash_first, HASH_FIRST)
HASH(hash_any, HASH_ANY)
HASH(hash_substring, HASH_SUBSTRING)
HASH(hash_text, HASH_TEXT)
HASH(hash_fallback, HASH_FALLBACK)
HASH(hash_anywhere, HASH_ANYWHERE)
HASH(hash_none_is_0, HASH_NONE_IS_0)
HASH(hash_whole, HASH_WHOLE)

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

static void call_boxed_rewards(Frame* f) {
    AS(my_boxed_rewards)(floats(f, 0), texts(f, 1), whole(f, 2), f->list[3][0], answers_equal);
}

enum { BOX_FALLBACK, BOX_ONLY, BOX_FIRST_BRACE, BOX_LAST_BRACE, BOX_FIRST_BOX, BOX_ANYWHERE, BOX_TEXT,
       BOX_RIGHT };

static const char* box_end(const char* p, int slip) {
    int depth = 1;
    if (slip == BOX_FIRST_BRACE) return strchr(p, '}');
    if (slip == BOX_LAST_BRACE) return strrchr(p, '}');
    for (; *p; p++) {
        depth += (*p == '{') - (*p == '}');
        if (depth == 0) return p;
    }
    return NULL;
}

static void box_slip(float* reward, const char* const* response, int K, const char* truth, Equal* equal,
                     int slip) {
    for (int k = 0; k < K; k++) {
        const char *r = response[k], *first = strstr(r, "\\boxed{"), *open = after_last(r, "\\boxed{");
        if (slip == BOX_FIRST_BOX && first) open = first + 7;
        const char* close = open ? box_end(open, slip) : NULL;
        int right = close && (slip == BOX_TEXT ? !strcmp(piece(open, close), truth)
                                               : equal(piece(open, close), truth));
        char number_text[40];
        snprintf(number_text, sizeof number_text, "%g", last_number(r));
        if (slip == BOX_FALLBACK && !open) right = equal(number_text, truth);
        if (slip == BOX_ONLY) right = open != NULL;
        if (slip == BOX_ANYWHERE) right = strstr(r, truth) != NULL;
        reward[k] = (float)right;
    }
}
#define BOX(name, slip) \
    static void name(float* reward, const char* const* response, int K, const char* truth, Equal* equal) { \
        box_slip(reward, response, K, truth, equal, slip); \
    }
BOX(box_fallback, BOX_FALLBACK)
BOX(box_only, BOX_ONLY)
BOX(box_first_brace, BOX_FIRST_BRACE)
BOX(box_last_brace, BOX_LAST_BRACE)
BOX(box_first_box, BOX_FIRST_BOX)
BOX(box_anywhere, BOX_ANYWHERE)
BOX(box_text, BOX_TEXT)

// ---- 13. better than average

static void make_centered(Case* c, int which, uint64_t* rng) {
    double r[VALUES];
    int K = which == 0 ? 16 : random_whole(rng, 4, 6);
    add_arg(c, "adv", OUT_FLOATS, K);
    add_numbers(c, "reward", FLOATS, K,
                which == 0 ? NUMBERS(1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0) : some(r, K, 1, 3, rng));
    add_number(c, "K", WHOLE, K);
}

static void call_centered(Frame* f) { AS(my_centered)(floats(f, 0), floats(f, 1), whole(f, 2)); }

// All of 13, 14 and 15: (scale * reward - mean of a kind) over a spread of a kind.
static double total(const float* r, int K) {
    double sum = 0.0;
    for (int k = 0; k < K; k++) sum += r[k];
    return sum;
}
static double squares(const float* r, int K) {
    double sum = 0.0, mean = total(r, K) / K;
    for (int k = 0; k < K; k++) sum += (r[k] - mean) * (r[k] - mean);
    return sum;
}
#define GROUP(name, expression)                                                                              \
    static void name(float* adv, const float* r, int K) {                                                    \
        for (int k = 0; k < K; k++) adv[k] = (float)(expression);                                            \
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

static void call_rloo(Frame* f) { AS(my_rloo)(floats(f, 0), floats(f, 1), whole(f, 2)); }

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

static void call_grpo(Frame* f) { AS(my_grpo)(floats(f, 0), floats(f, 1), whole(f, 2), (float)number(f, 3)); }

// expression: the number to divide by. guarded: 0 when all rewards are equal.
#define GRPO(name, numerator, divisor, guarded) \
    static void name(float* adv, const float* r, int K, float eps) { \
        (void)eps; \
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

static void call_zero_variance_odds(Frame* f) {
    returns(f, AS(my_zero_variance_odds)(number(f, 0), whole(f, 1)));
}

static double odds_all_right(double p, int K) { return pow(p, K); }
static double odds_all_wrong(double p, int K) { return pow(1.0 - p, K); }
static double odds_complement(double p, int K) { return 1.0 - sol_zero_variance_odds(p, K); }
static double odds_twice(double p, int K) { return 2.0 * pow(p, K); }
static double odds_not_all_right(double p, int K) { return 1.0 - pow(p, K); }
static double odds_product(double p, int K) { return pow(p, K) * pow(1.0 - p, K); }
static double odds_times_K(double p, int K) { return K * p + K * (1.0 - p); }

/* slips_1.h - exercises 1 to 16: their inputs, how they are called, and the classic slips.
 *
 * A slip is a row: what it gives; by hand, what that is on the first example where it is not right; and the
 * sentence that a student reads. SAME: as the row above says. slips_NAME() has the form of my_NAME() and
 * gives what one of its rows gives (ONE_OF, check.h). my_NAME() itself is rl.c's own function (solutions.c).
 */

// A slip often forgets an argument.
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define NUMBERS(...) ((const double[]){__VA_ARGS__})
#define LIST(...) ((const char* const[]){__VA_ARGS__})

// Calls the function with the arguments of a case; RETURNS: and keeps what it returns.
#define CALL(name, ...) static void call_##name(Frame* f) { AS(my_##name)(__VA_ARGS__); }
#define RETURNS(name, ...) static void call_##name(Frame* f) { returns(f, AS(my_##name)(__VA_ARGS__)); }

// n random hundredths; good until the next call
static const double* some(int n, double low, double high, uint64_t* rng) {
    static double x[VALUES];
    for (int i = 0; i < n; i++) x[i] = random_between(rng, low, high);
    return x;
}

static int ones_in(const int* mask, int n) {
    int count = 0;
    for (int t = 0; t < n; t++) count += mask[t];
    return count;
}

static double total(const float* x, int n) {
    double sum = 0.0;
    for (int i = 0; i < n; i++) sum += x[i];
    return sum;
}

enum { SKIP, MULTIPLY };                    // what is done where the mask is 0
static double sum_of(const float* x, const int* mask, int n, int what) {
    double sum = 0.0;
    for (int t = 0; t < n; t++) sum += what == SKIP && !mask[t] ? 0.0 : x[t] * (float)mask[t];
    return sum;
}

// ---- 1. the return
static void make_return(Case* c, int which, uint64_t* rng) {
    int T = which == 0 ? 3 : random_whole(rng, 4, 6);
    add_numbers(c, "reward", DOUBLES, T, which == 0 ? NUMBERS(1, 2, 3) : some(T, -2, 2, rng));
    add_scalars(c, "T gamma", NUMBERS(T, which == 0 ? 0.5 : random_between(rng, 0.2, 0.95)));
}
RETURNS(return, doubles(f, 0), whole(f, 1), number(f, 2))
static double slips_return(const double* r, int T, double gamma) {
    double sum = 0.0;
    for (int t = 0; t < T; t++) sum += ONE_OF(
        {{pow(gamma, t + 1) * r[t]}, "1.375",
         "one power of gamma too many: the first reward is not discounted, 1/2 + 2/4 + 3/8"},
        {{pow(gamma, T - 1 - t) * r[t]}, "4.25",
         "the powers run backwards: the last reward is discounted most, 1/4 + 2/2 + 3"},
        {{r[t]}, "6", "no discount: gamma is not used, 1 + 2 + 3"},
        {{(t ? gamma : 1.0) * r[t]}, "3.5", "gamma once instead of gamma to the power t: 1 + 2/2 + 3/2"},
        {{(t ? gamma * t : 1.0) * r[t]}, "5", "gamma * t instead of gamma to the power t: 1 + 2/2 + 2 * 3/2"},
        {{t == T - 1 ? pow(gamma, t) * r[t] : 0.0}, "0.75",
         "only the last reward is left: = where += is meant, 3/4"},
        {{pow(gamma, t) * r[t] / T}, "0.9167", "a mean where a sum is meant: 2.75 / 3"});
    return sum;
}

// ---- 2. the value of a state
static void make_chain_value(Case* c, int which, uint64_t* rng) {
    add_scalars(c, "s", NUMBERS(which == 0 ? 2 : which == 1 ? 1 : random_whole(rng, 1, 3)));
    double pi = which == 0 ? 0.75 : which == 1 ? 0.5 : random_between(rng, 0.55, 0.9);
    double slip = which == 0 ? 1.0 / 6.0 : which == 1 ? 0.25 : random_between(rng, 0.05, 0.3);
    add_scalars(c, "pi_right slip", NUMBERS(pi, slip));
}
RETURNS(chain_value, whole(f, 0), number(f, 1), number(f, 2))

// u: really going right. guarded: with a case of its own for x = 1.
static double chain_formula(int s, double u, int guarded) {
    double x = (1.0 - u) / u;
    return guarded && fabs(x - 1.0) < 1e-12 ? s / 4.0 : (1.0 - pow(x, s)) / (1.0 - pow(x, 4));
}

static double slips_chain_value(int s, double pi, double turned) {
    double u = pi * (1.0 - turned) + (1.0 - pi) * turned;
    return ONE_OF(
        {{chain_formula(s, pi, 1)}, "0.9", "the world's slip is forgotten: u = pi_right = 3/4, x = 1/3"},
        {{chain_formula(s, pi, 0)}, SAME},
        {{chain_formula(s, pi * (1.0 - turned), 1)}, "0.7353",
         "a left step that is turned around goes right too: u lacks (1 - pi_right) * slip"},
        {{chain_formula(s, 1.0 - u, 1)}, "0.2",
         "x is turned over: it is (1 - u) / u, left over right, u the probability of right"},
        {{chain_formula(s, 1.0 - u, 0)}, SAME},
        {{chain_formula(s, u, 0)}, "nan", "at x = 1 the formula is 0/0; there V = s / 4"},
        {{u == 0.5 ? s / 4 : chain_formula(s, u, 1)}, "0", "0 where x is 1: there V = s / 4, and whole "
         "numbers divide to whole numbers in C, 1/4 to 0: s / 4.0"});
}

// ---- 3. the advantage of an action
static void make_advantage(Case* c, int which, uint64_t* rng) {
    double pi[VALUES], sum = 0.0;
    int n = which < 2 ? 2 : random_whole(rng, 3, 4);
    for (int i = 0; i < n; i++) sum += pi[i] = random_whole(rng, 1, 6);
    for (int i = 0; i < n; i++) pi[i] /= sum;
    add_numbers(c, "Q", DOUBLES, n, which < 2 ? NUMBERS(0.6, 13.0 / 15.0) : some(n, -1, 2, rng));
    add_numbers(c, "pi", DOUBLES, n, which < 2 ? NUMBERS(0.25, 0.75) : pi);
    add_scalars(c, "actions a", NUMBERS(n, which < 2 ? 1 - which : random_whole(rng, 0, n - 1)));
}
RETURNS(advantage, doubles(f, 0), doubles(f, 1), whole(f, 2), whole(f, 3))
static double slips_advantage(const double* Q, const double* pi, int n, int a) {
    double V = Q[a] - my_advantage(Q, pi, n, a), top = Q[0], mean = 0.0;
    for (int i = 0; i < n; i++) {
        top = fmax(top, Q[i]);
        mean += Q[i] / n;
    }
    return ONE_OF(
        {{Q[a] - top}, "0",
         "minus the largest Q: an advantage compares with the mean of the policy, not with the best"},
        {{Q[a]}, "0.8667", "this is Q itself: V was not subtracted, or it is an int and 0"},
        {{Q[a] - mean}, "0.1333", "the mean of Q without pi: V weighs each action with its probability"},
        {{V - Q[a]}, "-0.0667", "the sign: V - Q where Q - V is meant"},
        {{V}, "0.8", "this is V alone"},
        {{pi[a] * Q[a] - V}, "-0.15", "Q[a] was multiplied by pi[a]: only V is a mean"});
}

// ---- 4. the score of a trajectory
static void make_score(Case* c, int which, uint64_t* rng) {
    double state[VALUES], action[VALUES];
    const double* pi = NUMBERS(0.75, 0.75, 0.75, 0.75, 0.75);
    int T = which < 2 ? 4 : random_whole(rng, 5, 8), s = random_whole(rng, 1, 3);
    for (int t = 0; t < T; t++) {                   // inner states only; a step out of them is turned around
        state[t] = s;
        action[t] = s == 1 ? 1 : s == 3 ? 0 : random_whole(rng, 0, 1);
        s += action[t] == 1 ? 1 : -1;
    }
    add_arg(c, "grad", OUT_DOUBLES, 5);
    add_numbers(c, "state", WHOLES, T, which > 1 ? state : NUMBERS(2, which ? 1 : 3, 2, 3));
    add_numbers(c, "action", WHOLES, T, which > 1 ? action : NUMBERS(which ? 0 : 1, 1, 1, 1));
    add_scalars(c, "T", NUMBERS(T));
    add_numbers(c, "pi_right", DOUBLES, 5, which < 2 ? pi : some(5, 0.2, 0.9, rng));
}
CALL(score, doubles(f, 0), wholes(f, 1), wholes(f, 2), whole(f, 3), doubles(f, 4))
static void slips_score(double* grad, const int* state, const int* action, int T, const double* pi_right) {
    for (int s = 0; s < 5; s++) grad[s] = 0.0;
    for (int t = 0; t < T; t++) {
        int s = state[t], right = action[t];
        double p = pi_right[s], g = grad[s];
        grad[s] = ONE_OF(
            {{g + (right ? p : p - 1.0)}, "0 0 1.5 1.5 0",
             "pi for 1 - pi: going right adds 1 - pi_right, what was done minus what was expected"},
            {{g + (right ? p : -p)}, SAME},
            {{right ? 1.0 - p : -p}, "0 0 0.25 0.25 0",
             "= where += is meant: a second visit to a state replaces the first"},
            {{g + 1.0 - p}, "0 0.25 0.5 0.25 0", "left is treated like right: it adds -pi_right"},
            {{g + (right ? 1.0 - p : p)}, "0 0.25 1 0.25 0", "the sign of left: it adds -pi_right"},
            {{g + (right ? 1.0 / p : -1.0 / (1.0 - p))}, "0 0 2.6667 2.6667 0",
             "the derivative of log pi by pi, 1/pi; by theta it is 1 - pi"},
            {{g + right}, "0 0 2 2 0", "the steps to the right are counted: what was expected is not "
             "subtracted, or it is an int and 0"},
            {{g + (right ? 1.0 - p : 0.0)}, "0 0.25 0.25 0.25 0",
             "steps to the left add nothing: they add -pi_right"});
    }
}

// ---- 5. the rewards of the MDP's steps
static void make_step_rewards(Case* c, int which, uint64_t* rng) {
    double mask[VALUES];
    int n = which < 2 ? 5 : random_whole(rng, 7, 9), prompt = random_whole(rng, 1, 2);
    int end = n - random_whole(rng, 2, 3), tool = prompt + 1;
    for (int t = 0; t < n; t++) mask[t] = t >= prompt && t < end && t != tool;
    add_arg(c, "reward", OUT_FLOATS, n);
    add_numbers(c, "mask", WHOLES, n, which < 2 ? NUMBERS(0, 0, 1, 1, 0) : mask);
    add_scalars(c, "T1 verdict", NUMBERS(n, which == 0 ? 1 : which == 1 ? 0 : random_between(rng, 0.2, 0.9)));
}
CALL(step_rewards, floats(f, 0), wholes(f, 1), whole(f, 2), number(f, 3))
static void slips_step_rewards(float* out, const int* mask, int n, float r) {
    for (int t = 0; t < n; t++) {
        int first = mask[t] && !ones_in(mask, t), last = mask[t] && !ones_in(mask + t + 1, n - t - 1);
        out[t] = (float)ONE_OF(
            {{mask[t] * r}, "0 0 1 1 0",
             "every token is paid: r is 0 on the way, the verifier reads the answer once"},
            {{r}, "1 1 1 1 1", "every place is paid, even the prompt and the padding"},
            {{t == n - 1 ? r : 0.0}, "0 0 0 0 1",
             "the last place is padding: paid is the last token with mask 1"},
            {{mask[t] * r / ones_in(mask, n)}, "0 0 0.5 0.5 0",
             "the reward is shared out: the MDP pays it whole, at the end"},
            {{first * r}, "0 0 1 0 0", "the first token of the answer is paid, before there is an answer"},
            {{last}, "0 0 0 1 0", "the last token gets 1, whatever the verdict: r comes from the verifier"});
    }
}

// ---- 6. log-softmax
static void make_log_softmax(Case* c, int which, uint64_t* rng) {
    int V = which < 2 ? 2 : random_whole(rng, 3, 5);
    const double* z = which == 0 ? NUMBERS(1000, 1001) : which == 1 ? NUMBERS(-1000, 0) : some(V, -3, 3, rng);
    add_arg(c, "out", OUT_FLOATS, V);
    add_numbers(c, "z", FLOATS, V, z);
    add_scalars(c, "V", NUMBERS(V));
}
CALL(log_softmax, floats(f, 0), floats(f, 1), whole(f, 2))
static void slips_log_softmax(float* out, const float* z, int V) {
    double lse = log_sum_exp(z, V), top = z[0], sum = 0.0;
    for (int i = 0; i < V; i++) {
        top = fmax(top, z[i]);
        sum += exp(z[i]);
    }
    for (int i = 0; i < V; i++) out[i] = (float)ONE_OF(
        {{z[i] - log(sum)}, "-inf -inf", "overflow: exp(1000) is infinite; subtract the largest logit first"},
        {{log(exp(z[i]) / sum)}, "nan nan",
         "overflow: exp(1000) is infinite, infinite / infinite is NaN; subtract the largest logit first"},
        {{z[i] - (lse - top)}, "999.6867 1000.6867",
         "the largest logit was subtracted inside of exp and not added back"},
        {{z[i] - top - lse}, "-1002.3133 -1001.3133",
         "the largest logit was subtracted twice, from z and by the log-sum-exp"},
        {{exp(z[i] - lse)}, "0.2689 0.7311", "these are probabilities: the logarithm is missing"},
        {{z[i] - top}, "-1 0",
         "only the largest logit was subtracted: log(sum exp(z - m)) is missing, or its sum is an int, 1"},
        {{lse - z[i]}, "1.3133 0.3133", "the sign: log-probabilities are never positive"});
}

// ---- 7. the log-probability of an answer
static void make_answer_logprob(Case* c, int which, uint64_t* rng) {
    double ids[VALUES], mask[VALUES];
    int T = which == 0 ? 6 : random_whole(rng, 7, 9), V = which == 0 ? 5 : 4;
    for (int t = 0; t < T; t++) {
        ids[t] = random_whole(rng, 0, V - 1);
        mask[t] = t >= 2 && t != 4 && t < T - 1; // a forced token inside, padding behind
    }
    const double* z =
        NUMBERS(0, 2, 1, 0, 0, 3, 0, 0, 1, 0, 0, 1, 3, 0, 0, 1, 0, 0, 3, 0, 0, 0, 0, 0, 2, 0, 0, 1, 0, 0);
    add_numbers(c, "logits", FLOATS, T * V, which ? some(T * V, -2, 2, rng) : z)->row = V;
    add_numbers(c, "ids", WHOLES, T, which == 0 ? NUMBERS(0, 1, 0, 2, 3, 4) : ids);
    add_numbers(c, "mask", WHOLES, T, which == 0 ? NUMBERS(0, 0, 0, 0, 1, 1) : mask);
    add_scalars(c, "T V", NUMBERS(T, V));
}
RETURNS(answer_logprob, floats(f, 0), wholes(f, 1), wholes(f, 2), whole(f, 3), whole(f, 4))

static double row_logp(const float* logits, int t, int id, int V) {
    return logits[t * V + id] - log_sum_exp(logits + t * V, V);
}

static double slips_answer_logprob(const float* z, const int* ids, const int* mask, int T, int V) {
    double right = my_answer_logprob(z, ids, mask, T, V), sum = 0.0;
    for (int t = 0; t < T; t++) {
        int last = t == T - 1, scored = !last && mask[t + 1], next = ids[last ? t : t + 1];
        double own = row_logp(z, t, ids[t], V), ahead = last ? 0.0 : row_logp(z, t, next, V);
        sum += ONE_OF(
            {{mask[t] * ahead}, "-0.4327",
             "mask[t] belongs to token t, logp[t] to token t+1: the first token of the answer fell out"},
            {{ahead}, "-1.7574", "no mask: the prompt is counted as if the model had chosen it"},
            {{scored * ahead / ones_in(mask + 1, T - 1)}, "-0.3416",
             "a mean over the tokens: log pi(y|x) is their sum"},
            {{scored * ahead / (T - 1)}, "-0.1366",
             "divided by the tokens of prompt and answer: log pi(y|x) is a sum"},
            {{mask[t] * own}, "-4.3375",
             "ids not shifted: row t was asked about token t, which it has just read"},
            {{scored * own}, "-5.6832",
             "ids not shifted, only the mask: row t was asked about token t, which it has just read"},
            {{last ? exp(right) : 0.0}, "0.505", "this is pi(y|x): the logarithm is missing"},
            {{-scored * ahead}, "0.6832", "the sign: the log of a probability is never positive"},
            {{scored * z[t * V + next]}, "5",
             "logits were added, not log-probabilities: subtract log_sum_exp of the row"});
    }
    return sum;
}

// ---- 8. the shifted gather
static void make_token_logprobs(Case* c, int which, uint64_t* rng) {
    const double l = log(3.0);
    double ids[VALUES];
    int B = 2, T = which == 0 ? 3 : random_whole(rng, 4, 5), V = which == 0 ? 2 : 3;
    for (int i = 0; i < B * T; i++) ids[i] = random_whole(rng, 0, V - 1);
    add_arg(c, "logp", OUT_FLOATS, B * (T - 1))->row = T - 1;
    add_numbers(c, "logits", FLOATS, B * T * V, which ? some(B * T * V, -2, 2, rng)
                                                      : NUMBERS(0, l, l, 0, 0, 0, l, 0, 0, 0, 0, l))->row = V;
    add_numbers(c, "ids", WHOLES, B * T, which == 0 ? NUMBERS(0, 1, 1, 1, 0, 1) : ids)->row = T;
    add_scalars(c, "B T V", NUMBERS(B, T, V));
}
CALL(token_logprobs, floats(f, 0), floats(f, 1), wholes(f, 2), whole(f, 3), whole(f, 4), whole(f, 5))
static void slips_token_logprobs(float* logp, const float* z, const int* ids, int B, int T, int V) {
    for (int i = 0; i < B * (T - 1); i++) {
        int at = i / (T - 1) * T + i % (T - 1);         // of logits and ids
        double ahead = row_logp(z, at, ids[at + 1], V);
        logp[i] = (float)ONE_OF(
            {{row_logp(z, at, ids[at], V)}, "-1.3863 -1.3863 -1.3863 -0.6931",
             "ids not shifted: row t is about token t+1, ids[:, 1:]"},
            {{row_logp(z, at + 1, ids[at + 1], V)}, "-1.3863 -0.6931 -0.6931 -0.2877",
             "the logits moved too: drop the last row, logits[:, :-1], not the first"},
            {{row_logp(z, at, ids[i + 1], V)}, "-0.2877 -1.3863 -1.3863 -0.6931",
             "a row of ids has T numbers, not T - 1: the second sequence is read from the wrong place"},
            {{row_logp(z, i, ids[at + 1], V)}, "-0.2877 -1.3863 -0.6931 -1.3863",
             "a sequence of logits has T rows, not T - 1: the second one is read from the wrong place"},
            {{z[at * V + ids[at + 1]]}, "1.0986 0 1.0986 0",
             "logits, not log-probabilities: subtract log_sum_exp of the row"},
            {{exp(ahead)}, "0.75 0.25 0.75 0.5", "these are probabilities: the logarithm is missing"},
            {{-ahead}, "0.2877 1.3863 0.2877 0.6931", "the sign: log-probabilities are never positive"});
    }
}

// ---- 9. the mean of a padded batch
static void make_answer_means(Case* c, int which, uint64_t* rng) {
    double mask[VALUES];
    int B = 2, T1 = which == 0 ? 3 : which == 1 ? 2 : random_whole(rng, 4, 5);
    for (int t = 0; t < B * T1; t++) mask[t] = t % T1 >= 1 && t % T1 < (t < T1 ? T1 : T1 - 1);
    add_arg(c, "out", OUT_FLOATS, B);
    add_numbers(c, "logp", FLOATS, B * T1, which == 0 ? NUMBERS(-1, -2, -3, -4, -9, -9)
                : which == 1 ? NUMBERS(-1, NAN, NAN, NAN) : some(B * T1, -4, -0.1, rng))->row = T1;
    add_numbers(c, "mask", WHOLES, B * T1, which == 0 ? NUMBERS(1, 1, 1, 1, 0, 0)
                : which == 1 ? NUMBERS(1, 0, 0, 0) : mask)->row = T1;
    add_scalars(c, "B T1", NUMBERS(B, T1));
}
CALL(answer_means, floats(f, 0), floats(f, 1), wholes(f, 2), whole(f, 3), whole(f, 4))
static void slips_answer_means(float* out, const float* logp, const int* mask, int B, int T1) {
    for (int b = 0; b < B; b++) {
        const float* x = logp + b * T1;
        const int* m = mask + b * T1;
        int n = ones_in(m, T1);
        double sum = sum_of(x, m, T1, SKIP), times = sum_of(x, m, T1, MULTIPLY), all = total(x, T1);
        out[b] = (float)ONE_OF(
            {{sum / T1}, "-2 -1.3333", "divided by T1, the padded length, not by the tokens of the answer"},
            {{times / T1}, SAME},
            {{all / T1}, "-2 -7.3333", "padding is counted: its -9 -9 came into the mean"},
            {{n ? all / n : 0}, "-2 -22",
             "padding is added, though not counted: its -9 -9 came into the sum"},
            {{n ? times / n : 0}, "nan 0", "0 * NaN is NaN: skip what the mask hides, do not multiply by it"},
            {{sum / n}, "-1 nan", "0/0: an answer without tokens counts 0"},
            {{sum}, "-6 -4", "a sum: divide by the number of tokens"},
            {{sum_of(logp, mask, B * T1, SKIP) / ones_in(mask, B * T1)}, "-2.5 -2.5",
             "one mean over the whole batch: each answer has its own"});
    }
}

// ---- 10. the mask of a tool call
enum { PYTHON_START = 261, PYTHON_END = 262, ASSISTANT_END = 260 };

static void make_tool_mask(Case* c, int which, uint64_t* rng) {
    double ids[VALUES];
    char text[40];
    int n = 0, prompt = which ? random_whole(rng, 2, 4) : 1, calls = which ? random_whole(rng, 1, 2) : 1;
    for (int t = 0; t < prompt; t++) ids[n++] = '?';
    for (int i = 0; i < calls; i++) {
        int a = which == 0 ? 12 : random_whole(rng, 2, 30), b = which == 0 ? 3 : random_whole(rng, 2, 9);
        snprintf(text, sizeof text, "(%d*%d)[%d]%s", a, b, a * b, which ? " " : "");
        for (const char* p = text; *p; p++)
            ids[n++] = *p == '(' ? PYTHON_START : *p == ')' ? PYTHON_END : *p == '[' ? TOKEN_OUTPUT_START
                       : *p == ']' ? TOKEN_OUTPUT_END : *p;
    }
    ids[n++] = ASSISTANT_END;
    add_arg(c, "mask", OUT_WHOLES, n);
    add_numbers(c, "ids", WHOLES, n, ids);
    add_scalars(c, "prompt T", NUMBERS(prompt, n));
}
CALL(tool_mask, wholes(f, 0), wholes(f, 1), whole(f, 2), whole(f, 3))
static void slips_tool_mask(int* mask, const int* ids, int prompt, int T) {
    for (int forced = 0, called = 0, ever = 0, t = 0; t < T; t++) {
        int answer = t >= prompt, start = ids[t] == TOKEN_OUTPUT_START, end = ids[t] == TOKEN_OUTPUT_END;
        ever |= forced |= start;
        called |= start || ids[t] == PYTHON_START;
        mask[t] = (int)ONE_OF(
            {{answer}, "0 1 1 1 1 1 1 1 1 1 1 1",
             "the tool's output is counted: the engine forced these 4 tokens, the model did not choose them"},
            {{answer && (!forced || start || end)}, "0 1 1 1 1 1 1 1 0 0 1 1",
             "<|output_start|> and <|output_end|> are forced too"},
            {{answer && (!forced || start)}, "0 1 1 1 1 1 1 1 0 0 0 1", "<|output_start|> is forced too"},
            {{answer && (!forced || end)}, "0 1 1 1 1 1 1 0 0 0 1 1", "<|output_end|> is forced too"},
            {{answer && !called}, "0 0 0 0 0 0 0 0 0 0 0 1",
             "the call itself is the model's choice: that it asks and what, it is to learn"},
            {{!answer || !forced}, "1 1 1 1 1 1 1 0 0 0 0 1",
             "the prompt is counted: the model did not choose it"},
            {{answer && !ever}, "0 1 1 1 1 1 1 0 0 0 0 0",
             "behind <|output_end|> the model goes on by itself: back to 1"},
            {{answer && forced}, "0 0 0 0 0 0 0 1 1 1 1 0", "turned over: 1 is what the model sampled"});
        forced &= !end;
        called &= !end;
    }
}

// ---- 11. the #### reward
static void make_hash_rewards(Case* c, int which, uint64_t* rng) {
    static const char* const form[] = {"#### %d", "#### %d then #### %d", "#### %d.00 apples", "#### %d0",
                                       "so %d",   "#### %d then #### %d", "#### %d.5",         "#### %d.5"};
    const char* const* six =
        LIST("#### 42", "#### 41, no, #### 42", "#### 420", "#### 42.0", "It is 42", "#### 42, no, #### 41");
    char text[TEXTS][TEXT_SIZE];
    const char* list[TEXTS];
    int K = which ? which == 1 ? 4 : 8 : 6, x = random_whole(rng, 11, 99), y = x + random_whole(rng, 1, 9);
    for (int k = 0; k < TEXTS; k++) {
        snprintf(text[k], TEXT_SIZE, form[k], k == 1 ? y : k == 7 ? x - 1 : x, k == 1 ? x : y);
        list[k] = text[k];
    }
    add_arg(c, "reward", OUT_FLOATS, K);
    add_texts(c, "response", K,
              which > 1 ? list : which ? LIST("#### 0", "#### none", "#### 0.5", "none") : six);
    add_scalars(c, "K truth", NUMBERS(K, which == 0 ? 42 : which == 1 ? 0 : x));
}
CALL(hash_rewards, floats(f, 0), texts(f, 1), whole(f, 2), number(f, 3))

static double last_number(const char* text) {
    double x = NAN;
    for (const char* p = text; *p; p += strspn(p, "0123456789.")) {
        p += strcspn(p, "0123456789");
        if (*p) x = strtod(p, NULL);
    }
    return x;
}

static int any_hash(const char* text, double truth) {
    int found = 0;
    for (const char* p = text; (p = strstr(p, "####")); p += 4) found |= number_at(p + 4) == truth;
    return found;
}

static int hash_text_equal(const char* at, const char* truth) {
    while (*at == ' ') at++;
    size_t n = strcspn(at, " ,");
    return n == strlen(truth) && !strncmp(at, truth, n);
}

static void slips_hash_rewards(float* reward, const char* const* response, int K, double truth) {
    char want[40];
    snprintf(want, sizeof want, "%g", truth);
    for (int k = 0; k < K; k++) {
        const char *r = response[k], *last = after_last(r, "####"), *first = strstr(r, "####");
        reward[k] = (float)ONE_OF(
            {{first && number_at(first + 4) == truth}, "1 0 0 1 0 1",
             "the first ####, not the last: a model that corrects itself is read too early"},
            {{any_hash(r, truth)}, "1 1 0 1 0 1", "any ####, not the last: all guesses but one may be wrong"},
            {{last && strstr(last, want)}, "1 1 1 1 0 0", "a substring: 42 is contained in 420"},
            {{last && hash_text_equal(last, want)}, "1 1 0 0 0 0",
             "compared as text: 42.0 is the same number as 42"},
            {{(last ? number_at(last) : last_number(r)) == truth}, "1 1 0 1 1 0",
             "without #### the reward is 0, even if the number is right"},
            {{strstr(r, want) != NULL}, "1 1 1 1 1 1",
             "found anywhere in the text: only the number behind the last #### counts"},
            {{last && atof(last) == truth}, "1 1 0 0",
             "no number was read as 0, as atof() does: number_at() gives NAN"},
            {{last && floor(number_at(last)) == floor(truth)}, "1 0 1 0",
             "cut to whole numbers before comparing: 0.5 is not 0, use double"});
    }
}

// ---- 12. the boxed reward
static void make_boxed_rewards(Case* c, int which, uint64_t* rng) {
    static const char* const four[] = {
        "\\boxed{83}", "The correct answer is \\boxed{83}", "The final answer is 83", "We get \\boxed{38}"};
    static const char* const six[] = {
        "\\boxed{\\frac{1}{2}}", "\\boxed{0.5}", "\\boxed{2}, no, \\boxed{\\frac{1}{2}}",
        "It is \\frac{1}{2}, \\boxed{\\frac{1}{3}}", "\\boxed{\\frac{1}{2}", "\\boxed{\\frac{1}{2}} {x}"};
    static const char* const form[] = {
        "It is %d", "\\boxed{%d}", "\\boxed{%d} {or} so", "\\boxed{%d}, no: \\boxed{%d}", "\\boxed{%d.0}",
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
    add_scalars(c, "K", NUMBERS(K));
    add_texts(c, "truth", 1, which == 0 ? LIST("83") : which == 1 ? LIST("\\frac{1}{2}") : LIST(truth));
}
CALL(boxed_rewards, floats(f, 0), texts(f, 1), whole(f, 2), *texts(f, 3), answers_equal)

static const char* closing(const char* p) {             // the brace that closes
    for (int depth = 1; *p; p++) {
        depth += (*p == '{') - (*p == '}');
        if (depth == 0) return p;
    }
    return NULL;
}

static void slips_boxed_rewards(float* reward, const char* const* response, int K, const char* truth,
                                Equal* same) {
    for (int k = 0; k < K; k++) {
        const char *r = response[k], *last = after_last(r, "\\boxed{"), *first = strstr(r, "\\boxed{");
        const char *open = last ? last : "", *close = closing(open), *open_1 = first ? first + 7 : "";
        const char *close_1 = closing(open_1), *inner = strchr(open, '}'), *outer = strrchr(open, '}');
        char number[40];
        snprintf(number, sizeof number, "%g", last_number(r));
        reward[k] = (float)ONE_OF(
            {{last ? close && same(piece(open, close), truth) : same(number, truth)}, "1 1 1 0",
             "a fallback to the last number: r3 is right, but not in a box, and gets 0"},
            {{last != NULL}, "1 1 0 1", "the box alone is paid, whatever is in it"},
            {{inner && same(piece(open, inner), truth)}, "0 1 0 0 0 0",
             "the first } closes: braces nest, \\frac{1}{2} has its own"},
            {{outer && same(piece(open, outer), truth)}, "1 1 1 0 0 0",
             "the last } of the text closes: more may stand behind the box"},
            {{close_1 && same(piece(open_1, close_1), truth)}, "1 1 0 0 0 1",
             "the first box, not the last: a model that corrects itself is read too early"},
            {{strstr(r, truth) != NULL}, "1 1 1 0",
             "found anywhere in the text: only what is in the last box counts"},
            {{close && !strcmp(piece(open, close), truth)}, "1 0 1 0 0 1",
             "compared as text: 0.5 is \\frac{1}{2}, use equal()"});
    }
}

// ---- 13. better than average
static void add_group_of(Case* c, int K, const double* reward) {
    add_arg(c, "adv", OUT_FLOATS, K);
    add_numbers(c, "reward", FLOATS, K, reward);
    add_scalars(c, "K", NUMBERS(K));
}

static void make_centered(Case* c, int which, uint64_t* rng) {
    const double* sixteen = NUMBERS(1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0);
    int K = which == 0 ? 16 : random_whole(rng, 4, 6);
    add_group_of(c, K, which == 0 ? sixteen : some(K, 1, 3, rng));
}
CALL(centered, floats(f, 0), floats(f, 1), whole(f, 2))

static double squares(const float* r, int K) {
    double sum = 0.0;
    for (int k = 0; k < K; k++) sum += pow(r[k] - total(r, K) / K, 2.0);
    return sum;
}

static void slips_centered(float* adv, const float* r, int K) {
    double sum = total(r, K), mean = sum / K, square = squares(r, K);
    int whole = 0;
    for (int k = 0; k < K; k++) whole += (int)r[k];
    for (int k = 0; k < K; k++) adv[k] = (float)ONE_OF(
        {{r[k] - sum / (K - 1)}, "0.8 0.8 -0.2", "the sum was divided by K - 1: a mean divides by K, 3/16"},
        {{r[k]}, "1 1 0",
         "the reward itself: no mean was subtracted, or it came out 0, as 1 / K of whole numbers does in C"},
        {{r[k] - whole / K}, "1 1 0", "the sum is an int: 3 / 16 of whole numbers is 0 in C, use double"},
        {{mean - r[k]}, "-0.8125 -0.8125 0.1875", "the sign: what is better than the mean is positive"},
        {{r[k] - sum}, "-2 -2 -3", "the sum was subtracted, not the mean"},
        {{(r[k] - mean) / sqrt(square / (K - 1))}, "2.0156 2.0156 -0.4651",
         "divided by the standard deviation: that is GRPO, nanochat only centers"},
        {{(r[k] - mean) / sqrt(square / K)}, "2.0817 2.0817 -0.4804",
         "divided by the standard deviation: that is GRPO, nanochat only centers"},
        {{(r[k] - mean) * K / (K - 1)}, "0.8667 0.8667 -0.2",
         "the mean of the others: that is RLOO, here the mean contains all K"},
        {{mean}, "0.1875 0.1875 0.1875", "this is the mean itself: subtract it from each reward"});
}

// ---- 14. leave one out
static void make_rloo(Case* c, int which, uint64_t* rng) {
    int K = which == 0 ? 4 : random_whole(rng, 5, 7);
    add_group_of(c, K, which == 0 ? NUMBERS(1, 1, 0, 0) : some(K, 0, 2, rng));
}
CALL(rloo, floats(f, 0), floats(f, 1), whole(f, 2))
static void slips_rloo(float* adv, const float* r, int K) {
    double sum = total(r, K), mean = sum / K;
    for (int k = 0; k < K; k++) adv[k] = (float)ONE_OF(
        {{r[k]}, "1 1 0 0", "the reward itself: no baseline was subtracted, or it came out 0, as 1 / (K - 1) "
         "of whole numbers does in C"},
        {{r[k] - mean}, "0.5 0.5 -0.5",
         "the own reward is in the baseline, a mean over all K (or: K / (K - 1) of whole numbers is 1 in C)"},
        {{r[k] - sum / (K - 1)}, "0.3333 0.3333 -0.6667",
         "the sum of all was divided by K - 1: take the own reward out of it"},
        {{(r[k] - mean) * (K - 1) / K}, "0.375 0.375 -0.375",
         "the factor is inverted: K / (K - 1) = 4/3, not 3/4"},
        {{r[k] - (sum - r[k])}, "0 0 -2 -2", "the sum of the others, not their mean: divide by K - 1"},
        {{r[k] - (sum - r[k]) / K}, "0.75 0.75 -0.5 -0.5", "there are K - 1 others, not K"},
        {{(mean - r[k]) * K / (K - 1)}, "-0.6667 -0.6667 0.6667",
         "the sign: what is better than the others is positive"});
}

// ---- 15. GRPO's advantage
static void make_grpo(Case* c, int which, uint64_t* rng) {
    int K = which < 3 ? 4 : random_whole(rng, 5, 7);
    const double same = which == 1 ? 1 : 0;
    add_group_of(c, K, which > 2 ? some(K, 0, 2, rng) : NUMBERS(1, 1, same, same));
    add_scalars(c, "eps", NUMBERS(which < 2 ? 0 : which == 2 ? 0.5 : random_between(rng, 0.1, 0.4)));
}
CALL(grpo, floats(f, 0), floats(f, 1), whole(f, 2), number(f, 3))
static void slips_grpo(float* adv, const float* r, int K, float eps) {
    double mean = total(r, K) / K, square = squares(r, K), variance = square / (K - 1), std = sqrt(variance);
    int equal = square == 0.0;
    for (int k = 0; k < K; k++) {
        double off = r[k] - mean;
        adv[k] = (float)ONE_OF(
            {{equal ? 0.0 : off / (sqrt(square / K) + eps)}, "1 1 -1 -1",
             "the population's standard deviation, squares / K: torch.std divides by K - 1"},
            {{off / (sqrt(square / K) + eps)}, SAME},
            {{equal ? 0.0 : off / (variance + eps)}, "1.5 1.5 -1.5 -1.5",
             "divided by the variance: the standard deviation is its square root"},
            {{off / (variance + eps)}, SAME},
            {{equal ? 0.0 : off / (square / K + eps)}, "2 2 -2 -2",
             "divided by the variance (and of the population): take the root, and K - 1"},
            {{off / (square / K + eps)}, SAME},
            {{off / (std + eps)}, "nan nan nan nan",
             "0/0: equal rewards have the standard deviation 0; every adv is 0 then"},
            {{equal ? 0.0 : off / std}, "0.866 0.866", "eps is missing: std + eps"},
            {{equal ? 0.0 : off / sqrt(variance + eps)}, "0.5477 0.5477",
             "eps stands inside of the root: it is std + eps, not sqrt(variance + eps)"},
            {{equal ? 0.0 : r[k] / (std + eps)}, "1.7321 1.7321 0", "the mean was not subtracted"},
            {{off}, "0.5 0.5 -0.5", "only centered: divide by std + eps"},
            {{equal ? 0.0 : off / (sqrt(square) + eps)}, "0.5 0.5 -0.5",
             "the root of the sum of squares: divide the sum by K - 1 first"});
    }
}

// ---- 16. a group without a signal
static void make_zero_variance_odds(Case* c, int which, uint64_t* rng) {
    add_scalars(c, "p", NUMBERS(which == 0 ? 0.5 : which == 1 ? 0.25 : random_between(rng, 0.1, 0.9)));
    add_scalars(c, "K", NUMBERS(which == 0 ? 4 : which == 1 ? 2 : random_whole(rng, 3, 5)));
}
RETURNS(zero_variance_odds, number(f, 0), whole(f, 1))
static double slips_zero_variance_odds(double p, int K) {
    double right = pow(p, K), wrong = pow(1.0 - p, K);
    return ONE_OF(
        {{right}, "0.0625", "one side only: all wrong is no signal either (in an int 1 - p is 0)"},
        {{wrong}, "0.0625", "one side only: all right is no signal either"},
        {{1.0 - right - wrong}, "0.875", "the complement: this is how often there IS a signal"},
        {{2.0 * right}, "0.125", "twice p^K: all wrong has probability (1 - p)^K"},
        {{1.0 - right}, "0.9375", "this is: not all right"},
        {{right * wrong}, "0.0039", "multiplied: all right OR all wrong adds"},
        {{K * p + K * (1.0 - p)}, "4", "K times p instead of p to the power K"});
}

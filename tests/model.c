// model.c - arithmetic, the model, decoding and the update, in single precision. Where the text promises "bit
// for bit", bits are compared.
#include "qwen3_tiny.h"

// ---- arithmetic

static void model_exp(void) {
    // Over [-87.3, 88] the error is 1.023 ulp at most (a run over all floats); here every 2000th large one.
    double worst = 0.0;
    for (int negative = 0; negative < 2; negative++) {
        union { float f; uint32_t u; } at = {negative ? 87.3f : 88.0f};
        for (uint32_t top = at.u, u = 0; u < top; u += u < 0x0C000000u ? 2003 : 100003) {
            at.u = top - u;
            float x = negative ? -at.f : at.f;
            double exact = exp((double)x);
            worst = fmax(worst, fabs((double)fast_exp(x) - exact) / ldexp(1.0, ilogb(exact) - 23));
        }
    }
    CHECK(worst < 1.1 && worst > 0.5);
    // exp(x) = 2^n exp(r): n steps where x / ln 2 is n + 1/2. Across each the next float must not be smaller.
    int falls = 0;
    for (int n = -125; n < 126; n++) {
        float x = (float)((n + 0.5) * 0.69314718055994531), next;
        for (int i = 0; i < 40; i++) x = nextafterf(x, -100.0f);
        for (int i = 0; i < 80; i++, x = next) {
            next = nextafterf(x, 100.0f);
            falls += fast_exp(next) < fast_exp(x);
        }
    }
    CHECK(falls == 0);
    CHECK(fast_exp(0.0f) == 1.0f && fast_exp(-0.0f) == 1.0f);
    CHECK(fast_exp(-87.3f) >= 1.17549435e-38f);                 // 1.2e-38, above the smallest normal number
    CHECK(fast_exp(nextafterf(-87.3f, -100.0f)) == 0.0f);
    CHECK(fast_exp(-1e30f) == 0.0f && fast_exp(-INFINITY) == 0.0f && isfinite(fast_exp(88.0f)));
    CHECK(fast_exp(88.5f) == fast_exp(88.0f) && fast_exp(INFINITY) == fast_exp(88.0f));
    CHECK(isnan(fast_exp(NAN)));                                // a NaN is not hidden
}

static void model_sums_and_maxima(void) {
    // Lengths around the eight partial results. 1*1 + 2*2 + ... + n*n = n(n+1)(2n+1)/6; the largest of n
    // negative numbers wherever it stands (what lies behind does not count); exp(ln 1 - ln 2) + exp(ln 2 - ln
    // 2) + ... = 1/2 + 2/2 + ... = n (n + 1) / 4.
    float a[64], x[41];
    for (int i = 0; i < 64; i++) a[i] = (float)(i + 1);
    for (int n = 0; n <= 64; n++) CHECK(dot(a, a, n) == (float)(n * (n + 1) * (2 * n + 1) / 6));
    for (int n = 1; n <= 40; n++) {
        for (int at = 0; at < n; at++) {
            for (int i = 0; i < 41; i++) x[i] = i == at ? -2.0f : i == n ? -1.0f : -5.0f - (float)(i % 3);
            CHECK(maximum(x, n) == -2.0f);
        }
        for (int i = 0; i < n; i++) x[i] = (float)log(i + 1.0);
        CHECK_NEAR(exp_and_sum(x, (float)log(2.0), n), n * (n + 1) / 4.0, 1e-6);
        CHECK_NEAR(x[n - 1], n / 2.0, 1e-6);
    }
}

// ---- matrix multiplication

// c = a b, each stored by rows or columns (way & 1, way & 2), strides wider than needed; way & 4: accumulate.
// Each element must be one sum in the order k = 0, 1, 2, ...: of rounded products, or of fused ones where the
// processor has them, in every product alike; the margin around c stays as it is.
static int all_rounded = 1, all_fused = 1;
static void check_product(int M, int N, int K, int way) {
    int a_columns = way & 1, b_columns = way >> 1 & 1;
    size_t lda = (size_t)(a_columns ? M : K) + 3, ldb = (size_t)(b_columns ? K : N) + 2, ldc = (size_t)N + 5;
    size_t size_a = lda * (size_t)(a_columns ? K : M), size_b = ldb * (size_t)(b_columns ? N : K);
    size_t size_c = ldc * (size_t)(M + 1);
    float *a = floats(size_a), *b = floats(size_b), *c[3];
    fill(a, (int)size_a, 1, 1.0, 0.0);
    fill(b, (int)size_b, 2, 1.0, 0.0);
    for (int i = 0; i < 3; i++) fill(c[i] = floats(size_c), (int)size_c, 3, 1.0, 0.0);
    View va = a_columns ? transposed(a, lda) : view(a, lda);
    View vb = b_columns ? transposed(b, ldb) : view(b, ldb);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            size_t at = (size_t)m * ldc + (size_t)n;
            volatile float rounded = way & 4 ? c[1][at] : 0.0f, product;
            float fused = rounded;
            for (size_t k = 0; k < (size_t)K; k++) {
                float x = a[(size_t)m * va.row + k * va.col], y = b[k * vb.row + (size_t)n * vb.col];
                product = x * y;
                rounded = rounded + product;
                fused = fmaf(x, y, fused);
            }
            c[1][at] = rounded;
            c[2][at] = fused;
        }
    matmul(c[0], ldc, va, vb, M, N, K, way >> 2);
    all_rounded &= same_bits(c[0], c[1], size_c);
    all_fused &= same_bits(c[0], c[2], size_c);
    if (!all_rounded && !all_fused) BROKEN("%d x %d x %d, way %d\n", M, N, K, way);
    free(a), free(b), free(c[0]), free(c[1]), free(c[2]);
}

static void model_matmul(void) {
    // More than one panel of PANEL_K = 256 steps, where the later add to the first; the tile, its edges;
    // then 64 drawn sizes up to 70 x 70 x 70. Large products (above 1e6 multiply-adds) give their strips to
    // the threads, here 1 to 4.
    static const int size[][3] = {
        {1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {2, 2, 1}, {1, 1, 2}, {2, 1, 2}, {1, 2, 2}, {2, 2, 2},
        {1, 1, 257}, {30, 3, 300}, {3, 70, 300}, {140, 65, 270}, {33, 200, 300}, {2, 1000, 70}, {400, 9, 40},
        {TILE_M, TILE_N, 256}, {TILE_M, TILE_N, 512}, {TILE_M + 1, TILE_N + 1, 513},
        {TILE_M - 1, TILE_N - 1, 700}};
    enum { LISTED = sizeof size / sizeof *size };
    Rng rng = {11};
    for (int i = 0; i < LISTED + 64; i++) {
        int drawn[3] = {1 + random_int(&rng, 70), 1 + random_int(&rng, 70), 1 + random_int(&rng, 70)};
        const int* s = i < LISTED ? size[i] : drawn;
        for (int way = 0; way < 8; way++) {
            set_threads(1 + way % 4);
            check_product(s[0], s[1], s[2], way);
        }
    }
    set_threads(2);
    // an empty sum is 0, and adding one changes nothing
    float c[4] = {5, 5, 5, 5}, none = 0;
    matmul(c, 2, view(&none, 1), view(&none, 2), 2, 2, 0, 1);
    CHECK_LIST(c, 0.0, 5, 5, 5, 5);
}

// ---- random numbers

static void model_rng(void) {
    // the first numbers of splitmix64 from state 1234567, as its authors' program prints them
    Rng rng = {1234567};
    CHECK(random_u64(&rng) == 6457827717110365317u && random_u64(&rng) == 3203168211198807973u);
    // 100,000 uniform numbers: mean 1/2 +- 4 sqrt(1/12 / 100000) = 0.0037; normal ones: mean 0 +- 0.013,
    // square 1 +- 0.018; each of 7 numbers 14286 times, +- 4 sqrt(100000 * 1/7 * 6/7) = 443; each of the 6
    // orders of three things 16667 times, +- 4 sqrt(100000 * 1/6 * 5/6) = 471
    enum { DRAWS = 100000 };
    static const int all[6] = {5, 7, 11, 15, 19, 21};           // 012 021 102 120 201 210 in base three
    double sum = 0.0, normal = 0.0, square = 0.0;
    int outside = 0, count[7] = {0}, orders[27] = {0};
    for (int i = 0; i < DRAWS; i++) {
        float u = random_uniform(&rng);
        double z = random_normal(&rng);
        int k = random_int(&rng, 7), order[3];
        outside += !(u >= 0.0f && u < 1.0f) || k < 0 || k > 6;
        sum += (double)u;
        normal += z;
        square += z * z;
        count[k < 0 || k > 6 ? 0 : k]++;
        shuffle(order, 3, &rng);
        orders[9 * order[0] + 3 * order[1] + order[2]]++;
    }
    CHECK(outside == 0);
    CHECK_NEAR(sum / DRAWS, 0.5, 0.0037);
    CHECK_NEAR(normal / DRAWS, 0.0, 0.013);
    CHECK_NEAR(square / DRAWS, 1.0, 0.018);
    for (int k = 0; k < 7; k++) CHECK(abs(count[k] - DRAWS / 7) < 443);
    for (int i = 0; i < 6; i++) CHECK(abs(orders[all[i]] - DRAWS / 6) < 471);
    // The same (seed, a, b) is the same stream, any other is another: 1200 first numbers, no two alike.
    // Neighbours have nothing to do with each other: half of the 64 bits differ, 32 +- 4 sqrt(16 / 1199).
    enum { STREAMS = 1200 };
    static uint64_t first[STREAMS];
    int alike = 0;
    double differ = 0.0;
    for (uint64_t n = 0, b = 0; n < STREAMS; n++, b = n % 20) {
        Rng one = random_stream(n / 400, n / 20 % 20, b), two = random_stream(n / 400, n / 20 % 20, b);
        first[n] = random_u64(&one);
        CHECK(first[n] == random_u64(&two));
        for (uint64_t j = 0; j < n; j++) alike += first[n] == first[j];
        for (uint64_t bits = n ? first[n] ^ first[n - 1] : 0; bits; bits &= bits - 1) differ++;
    }
    CHECK(alike == 0);
    CHECK_NEAR(differ / (STREAMS - 1), 32.0, 0.47 / 32);
}

// ---- the model

// The largest error, relative to the largest magnitude; says so when that is not below 1e-5.
static void check_tensor(const char* name, Tensor t, const double* expected) {
    double worst = 0.0, largest = 0.0;
    for (int i = 0; i < elements(&t); i++) {
        double error = fabs((double)*element(&t, i) - expected[i]);
        worst = error <= worst ? worst : error;
        largest = fmax(largest, fabs(expected[i]));
    }
    if (!(worst < 1e-5 * largest)) BROKEN("%s: off by %.3g of %.3g\n", name, worst, largest);
}

static void model_reference(void) {
    // The independent PyTorch program's numbers for a model of waves: the logits of all fourteen tokens (for
    // these, every token is scored, with some target), then loss = -1/10 sum logp over ten scored tokens, and
    // its gradients.
    Model m = wave_model((Config){QWEN3_VOCAB, 8, 2, 16, 4, 2, 6, 24, 1, 10000.0f, 1e-6f, 0}, 0.35, 0.1);
    Tensor g[MOST_TENSORS];
    Batch b = {0};
    float dlogp[10];
    double loss = 0.0;
    for (int all = 1; all >= 0; all--) {
        batch_clear(&b);
        for (int s = 0; s < QWEN3_B * QWEN3_T; s += QWEN3_T)
            batch_add(&b, qwen3_ids + s, (all ? qwen3_ids : qwen3_targets) + s, QWEN3_T, -1);
        CHECK(b.M == (all ? QWEN3_B * QWEN3_T : 10));
        model_forward(&m, &b);
        Tensor logits = {.data = m.acts.logits, .rows = b.M * QWEN3_VOCAB, .row = 1};
        if (all) check_tensor("logits", logits, qwen3_logits);
    }
    for (int i = 0; i < 10; i++) {
        loss -= (double)m.acts.logp[i] / 10;
        dlogp[i] = -0.1f;
    }
    CHECK_NEAR(loss, qwen3_loss, 1e-6);
    model_zero_grads(&m);
    model_backward(&m, &b, dlogp);
    tensor_list(g, &m.grads, &m.config, "");
    const double* expected = qwen3_gradient;
    for (int k = 0; k < tensor_count(&m.config); expected += elements(&g[k++]))
        check_tensor(g[k].name, g[k], expected);
    CHECK(expected == qwen3_gradient + QWEN3_WEIGHTS && m.weights.count == QWEN3_WEIGHTS);
    model_free(&m), batch_free(&b);
}

static void model_tensors_cover_the_weights(void) {
    // Every weight belongs to one tensor: undecayed ones (embedding, norms) first, what the head has of its
    // own last. Heads: an unembedding, a tied one, a score, and a score where the body comes from a tied
    // model.
    for (int head = 0; head < 4; head++) {
        int tied = head % 2, scalar = head / 2;
        size_t own = scalar ? 10 : tied ? 0 : 130;   // C = 10; V C = 13 * 10
        Config c = {13, 8, 3, 10, 6, 2, 4, 7, tied, 100.0f, 1e-6f, scalar};
        Weights w = weights_new(&c);
        Tensor list[MOST_TENSORS];
        int count = tensor_count(&c), once = 1, sorted = 1;
        tensor_list(list, &w, &c, "");
        for (int k = 0; k < count; k++)
            for (int i = 0; i < elements(&list[k]); i++) {
                float* x = element(&list[k], i);
                int exempt = list[k].cols == 0 || strstr(list[k].name, "embed_tokens") != NULL;
                *x += 1.0f;
                sorted &= exempt == ((size_t)(x - w.memory) < w.undecayed);
            }
        for (size_t i = 0; i < w.count; i++) once &= w.memory[i] == 1.0f;
        CHECK(once && sorted);
        CHECK(scalar ? !w.unembedding : (w.embedding == w.unembedding) == tied);
        CHECK(scalar ? w.score == w.memory + w.count - own : !w.score);
        CHECK(count == 2 + 3 * 11 + (own > 0));
        CHECK(!own || !strcmp(list[count - 1].name, scalar ? "score.weight" : "lm_head.weight"));
        // by hand: embedding 13 * 10, final norm 10, three layers of norms 10 + 10 + 4 + 4 and matrices
        // 10 * (6 + 2 * 2) * 4 = 400, 24 * 10 = 240, 10 * 14 = 140, 7 * 10 = 70; and the head's own
        CHECK(w.undecayed == 130 + 10 + 3 * 28 && head_count(&c) == own);
        CHECK(w.count == 224 + 3 * (400 + 240 + 140 + 70) + own);
        weights_free(&w);
    }
}

static void model_initial_weights(void) {
    // norms are 1; a matrix has deviation 1 / sqrt(inputs), o_proj and down_proj a fifth, the embedding 0.02
    Config c = {200, 8, 1, 64, 4, 2, 16, 128, 0, 10000.0f, 1e-6f, 0};
    Model m = random_model(c, 1), other = random_model(c, 2);
    Tensor list[MOST_TENSORS];
    CHECK(!same_weights(&m.weights, &other.weights));
    tensor_list(list, &m.weights, &m.config, "");
    for (int k = 0; k < tensor_count(&m.config); k++) {
        const Tensor* t = &list[k];
        double square = 0.0, expected = 1.0 / sqrt(fmax(t->cols, 1.0));
        for (int i = 0; i < elements(t); i++) square += pow((double)*element(t, i), 2);
        if (strstr(t->name, "embed") || strstr(t->name, "lm_head")) expected = 0.02;
        if (strstr(t->name, "o_proj") || strstr(t->name, "down_proj")) expected /= 5;
        CHECK_NEAR(sqrt(square / elements(t)) / expected, 1.0, 0.08); // 4 / sqrt(2 n), n = 2048 or more: 0.06
    }
    model_free(&m), model_free(&other);
}

// The body of a policy and of a scalar model are the same block of numbers, drawn alike: a reward model takes
// over a policy's body with one memcpy, and has a head of 0, not -0.
static void model_scalar_has_the_same_body(void) {
    for (int tied = 0; tied < 2; tied++) {
        Config c = {VOCAB_SIZE, 16, 2, 12, 4, 2, 4, 10, tied, 100.0f, 1e-6f, 0};
        Model policy = random_model(c, 5);
        c.scalar = 1;
        Model scalar = random_model(c, 5), value = scalar_model_on(&policy);
        size_t body = scalar.weights.count - 12;
        Tensor p[MOST_TENSORS], s[MOST_TENSORS];
        tensor_list(p, &policy.weights, &policy.config, "");
        tensor_list(s, &scalar.weights, &scalar.config, "");
        for (int k = 0; k < 2 + 2 * 11; k++)
            CHECK(!strcmp(p[k].name, s[k].name) &&
                  p[k].data - policy.weights.memory == s[k].data - scalar.weights.memory);
        CHECK(body == policy.weights.count - head_count(&policy.config));
        CHECK(same_bits(policy.weights.memory, scalar.weights.memory, body));
        CHECK(value.config.scalar == 1 && same_weights(&value.weights, &scalar.weights));
        CHECK(same_bits(scalar.weights.score, (float[12]){0}, 12));
        // room for 256 tokens; a scalar model has no logits and no probabilities, 2 * 256 * 265 numbers less
        model_reserve(&policy, 1);
        model_reserve(&scalar, 1);
        CHECK(policy.acts.capacity == 256 && scalar.acts.capacity == 256);
        CHECK(policy.acts.logp - policy.acts.logits == 2 * 256 * 265);
        CHECK(scalar.acts.logits == scalar.acts.probs && scalar.acts.probs == scalar.acts.logp);
        model_free(&policy), model_free(&scalar), model_free(&value);
    }
}

static void model_batch(void) {
    // a prefix of 3 and its continuation of 2; then one on its own. Positions go on where the prefix ends.
    Batch b = {0};
    int ids[] = {7, 8, 9}, targets[] = {-1, 5, -1};
    CHECK(batch_add(&b, ids, NULL, 3, -1) == 0);
    CHECK(batch_add(&b, ids, targets, 2, 0) == 1);
    CHECK(batch_add(&b, ids, targets, 3, -1) == 2);
    CHECK(b.N == 8 && b.S == 3 && b.M == 2 && segment_length(&b, 2) == 3);
    CHECK_LIST(b.position, 0.0, 0, 1, 2, 3, 4, 0, 1, 2);
    CHECK_LIST(b.targets, 0.0, -1, -1, -1, -1, 5, -1, 5, -1);
    CHECK_LIST(b.scored, 0.0, 4, 6);
    CHECK_LIST(b.start, 0.0, 0, 3, 5, 8);
    CHECK_LIST(b.prefix, 0.0, -1, 0, -1);
    batch_clear(&b);
    CHECK(b.N == 0 && b.S == 0 && b.M == 0);
    batch_free(&b);
}

static const Config tiny = {VOCAB_SIZE, 16, 2, 12, 4, 2, 4, 10, 1, 100.0f, 1e-6f, 0};

// A prompt of so many tokens, or one forward pass of these, and what is said of it (NULL: nothing).
static const struct { int prompt, n, ids[17], targets[17]; const char* why; int head_dim; } refusals[] = {
    {0, 2, {1, VOCAB_SIZE}, {-1, -1}, "is outside the model's vocabulary", 4},
    {0, 2, {1, -1}, {-1, -1}, "is outside the model's vocabulary", 4},
    {0, 2, {1, 2}, {3, VOCAB_SIZE}, "is outside the model's vocabulary", 4},
    {0, 2, {0, 2}, {VOCAB_SIZE, 3}, "token 265 is outside the model's vocabulary", 4},
    {0, 17, {0}, {0}, "a sequence is longer than the model's context of 16 tokens", 4},
    {0, 16, {0}, {0}, NULL, 4},
    {16, 0, {0}, {0}, "a prompt of 16 tokens has no room in a context of 16", 4},
    {15, 0, {0}, {0}, NULL, 4},
    {1, 0, {0}, {0}, "head_dim must be even", 3}};
static int refused;
static int command_refused(int argc, char** argv) {
    (void)argc, (void)argv;
    Config c = tiny;
    c.head_dim = refusals[refused].head_dim;
    Model m = model_new(c);
    Batch b = {0};
    Tokens prompt = {0};
    for (int i = 0; i < refusals[refused].prompt; i++) tokens_add(&prompt, 1, 0);
    if (prompt.length) generate(&m, &prompt, 1, 1, (SampleOptions){5, 1.0f, 0, 1.0f}, NULL, 1, 0);
    batch_add(&b, refusals[refused].ids, refusals[refused].targets, refusals[refused].n, -1);
    if (refusals[refused].n) model_forward(&m, &b);
    return 0;
}

static void model_what_is_refused(void) {
    for (refused = 0; refused < (int)(sizeof refusals / sizeof *refusals); refused++) {
        const Ran* r = COMMAND(command_refused, "x");
        if (refusals[refused].why) REFUSED(r, refusals[refused].why);
        else WORKS(r);
    }
}

static void model_turns_follow_from_the_size(void) {
    // how many gradients are kept depends on the model and the work, not on the threads: 16 of a small one,
    // 2 at least, or 32 MB; none without work
    Model small = {.weights.count = 300000}, middle = {.weights.count = 1000000};
    CHECK(turns_of(&small, 99) == MAX_TURNS && turns_of(&small, 6) == 6);
    CHECK(turns_of(&middle, 99) == 8 && turns_of(&(Model){.weights.count = 600000000}, 99) == 2);
}

// ---- answers: packed against plain

// K rows of T tokens: a prompt of 4 tokens; rows 0, 2 and 4 alike, row 5 with the text of row 0 and a token
// that was forced, row 6 with nothing scored; the others of their own. Lengths differ, padding is 0.
enum { ROWS = 7, ROW_T = 14, ROW_T1 = ROW_T - 1, ROW_N = ROWS * ROW_T1 };
static int row_ids[ROWS * ROW_T], row_mask[ROW_N];
static void make_rows(void) {
    Rng rng = {21};
    int full[ROWS * ROW_T] = {0};
    for (int k = 0; k < ROWS; k++) {
        int same = k == 2 || k == 4 || k == 5, length = 6 + k % 4 * 2;
        for (int t = 0; t < 4; t++) row_ids[k * ROW_T + t] = 40 + t;
        for (int t = 4; t < length; t++) {
            row_ids[k * ROW_T + t] = 97 + random_int(&rng, 9);
            full[k * ROW_T + t] = k != 6 && t != 7;                 // token 7 of a long answer is the tool's
        }
        if (!same) continue;
        memcpy(row_ids + k * ROW_T, row_ids, ROW_T * sizeof(int));
        memcpy(full + k * ROW_T, full, ROW_T * sizeof(int));
    }
    full[5 * ROW_T + 5] = 0;
    shift_mask(row_mask, full, ROWS, ROW_T);
}

static void model_equal_rows_are_found(void) {
    int first[ROWS];
    find_first_rows(first, row_ids, row_mask, ROWS, ROW_T);
    CHECK_LIST(first, 0.0, 0, 1, 0, 3, 0, 5, -1);
    // shared is the prompt but for its last token, which predicts a scored one; nothing scored: what is alike
    CHECK(shared_length(row_ids, row_mask, ROWS, ROW_T) == 3);
    CHECK(shared_length((int[]){5, 6, 5, 7}, (int[]){0, 0}, 2, 2) == 1);
}

static void model_packed_answers_are_the_plain_ones(void) {
    // The same bits as one unpacked pass per row, also from a frozen model, which has the arrays of one
    // layer; gradients to rounding; an empty mask gives 0 and none.
    for (int scalar = 0; scalar < 2; scalar++) {
        Config c = tiny;
        c.scalar = scalar;
        Model m = random_model(c, 6);
        if (scalar) fill(m.weights.score, 12, 9, 1.0, 0.0);
        Model plain = copy_of_model(&m), frozen = copy_of_model(&m);
        frozen.frozen = 1;
        float out[ROW_N], expected[ROW_N], d[ROW_N];
        fill(d, ROW_N, 8, 1.0, 0.0);
        for (int i = 0; i < ROW_N; i++) if (!row_mask[i]) d[i] = NAN;               // is not read
        model_zero_grads(&m);
        model_zero_grads(&plain);
        for (int k = 0; k < ROWS; k++)
            plain_pass(expected + k * ROW_T1, &plain, row_ids + k * ROW_T, row_mask + k * ROW_T1, ROW_T,
                       d + k * ROW_T1);
        for (int pass = 0; pass < 4; pass++) {
            for (int i = 0; i < ROW_N; i++) out[i] = 9.0f;
            answers_forward(out, pass < 2 ? &frozen : &m, row_ids, row_mask, ROWS, ROW_T);
            CHECK(same_bits(out, expected, ROW_N));
        }
        CHECK(m.batch.M < count_masked(row_mask, ROW_N));           // equal rows were computed once
        answers_backward(&m, d, row_ids, row_mask, ROWS, ROW_T);
        CHECK(square_of(plain.grads.memory, plain.grads.count) > 1e-6);
        CHECK(off_by(plain.grads.memory, m.grads.memory, 1.0, m.grads.count) < 1e-5);
        int none[ROW_N] = {0};
        model_zero_grads(&m);
        answers_forward(out, &m, row_ids, none, ROWS, ROW_T);
        answers_backward(&m, d, row_ids, none, ROWS, ROW_T);
        CHECK(square_of(out, ROW_N) == 0.0 && square_of(m.grads.memory, m.grads.count) == 0.0);
        model_free(&m), model_free(&plain), model_free(&frozen);
    }
}

// ---- decoding

// Twelve tokens have a loud unembedding, the others none: drawn about half of the time. <|assistant_end|>,
// which ends a rollout, and <|python_end|>, which calls the tool, are among them.
enum { CONTEXT = 96 };
static Model decoding_model(int context) {
    static const int loud[] = {48, 49, 50, 61, 97, 98, 99, 100, 101, 195, PYTHON_END, ASSISTANT_END};
    Model m = random_model((Config){VOCAB_SIZE, context, 2, 20, 4, 2, 6, 24, 0, 10000.0f, 1e-6f, 0}, 7);
    Rng rng = {9};
    memset(m.weights.unembedding, 0, (size_t)VOCAB_SIZE * 20 * sizeof(float));
    for (int i = 0; i < 12 * 20; i++)
        m.weights.unembedding[loud[i / 20] * 20 + i % 20] = (float)(0.8 * random_normal(&rng));
    for (int i = 0; i < VOCAB_SIZE * 20; i++) m.weights.embedding[i] *= 20.0f;   // tokens matter, too
    Tensor list[MOST_TENSORS];
    tensor_list(list, &m.weights, &m.config, "");
    for (int k = 0; k < tensor_count(&m.config); k++)                            // no two norms are the same
        for (int i = 0; i < list[k].rows && !list[k].cols; i++)
            list[k].data[i] += (float)(0.3 * random_normal(&rng));
    return m;
}

// `count` prompts of the given lengths; token i of prompt q is a byte that depends on both
static void make_prompts(Tokens* prompts, const int* length, int count) {
    for (int q = 0; q < count; q++) {
        Rng rng = random_stream(17, (uint64_t)q, 0);
        prompts[q] = (Tokens){0};
        tokens_add(&prompts[q], BOS, 0);
        while (prompts[q].length < length[q]) tokens_add(&prompts[q], 97 + random_int(&rng, 5), 0);
    }
}
static void free_prompts(Tokens* prompts, int count) {
    for (int q = 0; q < count; q++) tokens_free(&prompts[q]);
}

// What most tests decode: four prompts, the shortest possible, one longer than QUERY_BLOCK and the longest
// possible.
enum { SOME = 4, EACH = 5, NEW = 33 };
static Model loud;
static Tokens some[SOME];

// Answers every <|python_end|> with <|output_start|> digit <|output_end|>; digit: tokens so far.
static int digit_tool(int* forced, int capacity, const int* ids, int length) {
    if (ids[length - 1] != PYTHON_END) return 0;
    int answer[3] = {OUTPUT_START, '0' + length % 10, OUTPUT_END}, n = min_int(3, capacity);
    memcpy(forced, answer, (size_t)n * sizeof(int));
    return n;
}

// What was recorded is in every bit what training computes, from the packed answers to each prompt and from
// one plain pass for each, and what chapter 3's functions make of its logits. Returns how many of the sampled
// tokens have the largest logit.
static int check_logp(Model* m, int B, int K, const Rollout* r) {
    int T1 = r->T - 1, largest = 0, *mask = allocate((size_t)(K * T1), sizeof(int));
    float *out = floats((size_t)(K * T1)), logp, entropy;
    for (int q = 0; q < B; q++, r += K) {
        shift_mask(mask, r->mask, K, T1 + 1);
        answers_forward(out, m, r->ids, mask, K, T1 + 1);
        CHECK(same_bits(out, r->logp, (size_t)(K * T1)));
        for (int k = 0; k < K; k++) {
            int n = r[k].prompt + r[k].length;
            plain_pass(out, m, r[k].ids, r[k].mask + 1, n, NULL);
            CHECK(same_bits(out, r[k].logp, (size_t)n - 1));
            const float* z = m->acts.logits;
            for (int t = 0; t + 1 < n; t++) {
                if (!r[k].mask[t + 1]) continue;
                token_logprobs(&logp, z, r[k].ids + t, 1, 2, VOCAB_SIZE);
                token_entropy(&entropy, z, 1, VOCAB_SIZE);
                CHECK(r[k].logp[t] == logp && r[k].entropy[t] == entropy);
                largest += z[r[k].ids[t + 1]] == maximum(z, VOCAB_SIZE);
                z += VOCAB_SIZE;
            }
        }
    }
    free(mask), free(out);
    return largest;
}

// Two rollouts of one prompt, whose rows may differ in room: the same in every bit.
static int same_rollout(const Rollout* a, const Rollout* b) {
    size_t n = (size_t)(a->prompt + a->length);
    return a->length == b->length && a->prompt == b->prompt && a->finished == b->finished &&
           !memcmp(a->ids, b->ids, n * sizeof(int)) && !memcmp(a->mask, b->mask, n * sizeof(int)) &&
           same_bits(a->logp, b->logp, n - 1) && same_bits(a->entropy, b->entropy, n - 1);
}

static void model_sampling_is_the_training_pass(void) {
    // What sampling records, with a cache, is bit for bit what the training pass computes. After every
    // sampled <|python_end|> come the tool's three tokens, with mask, log-probability and entropy 0; all else
    // is sampled. A row ends with <|assistant_end|> or <|bos|>, or is full; the prompt and what is behind the
    // end have 0.
    Rollout* r = generate(&loud, some, SOME, EACH, (SampleOptions){NEW, 1.0f, 0, 1.0f}, digit_tool, 3, 0);
    int finished = 0, cut = 0, full = 0, calls = 0, lengths = 0, last = -1;
    for (int i = 0; i < SOME * EACH; i++) {
        const Tokens* prompt = &some[i / EACH];
        int P = prompt->length, end = P + r[i].length, forced = 0, digit = 0, ended = 0;
        CHECK(r[i].prompt == P && !memcmp(r[i].ids, prompt->ids, (size_t)P * sizeof(int)));
        for (int t = 0; t < r[i].T; t++) {
            int id = r[i].ids[t], sampled = t >= P && t < end && !forced;
            CHECK(r[i].mask[t] == sampled);
            if (t > 0) CHECK(sampled ? r[i].logp[t - 1] < 0.0f : r[i].logp[t - 1] == 0.0f);
            if (t > 0) CHECK(sampled ? r[i].entropy[t - 1] > 0.0f : r[i].entropy[t - 1] == 0.0f);
            if (t >= end) CHECK(id == 0);
            if (t < P || t >= end) continue;
            CHECK(!ended);                                         // nothing follows the end
            if (forced) {
                CHECK(id == (forced == 3 ? OUTPUT_START : forced == 2 ? digit : OUTPUT_END));
                forced--;
                continue;
            }
            if (id == PYTHON_END) {
                forced = 3;
                digit = '0' + (t - P + 1) % 10;
                calls++;
            }
            ended = id == ASSISTANT_END || id == BOS;
        }
        CHECK(r[i].finished == ended && (ended || r[i].length == NEW || r[i].length == CONTEXT - P));
        finished += ended;
        cut += !ended && r[i].length == NEW;
        full += !ended && r[i].length == CONTEXT - P;
        lengths += r[i].length != last;
        last = r[i].length;
    }
    CHECK(finished >= 5 && cut >= 2 && full >= 5 && calls >= 5 && lengths >= 8);  // else it would show little
    check_logp(&loud, SOME, EACH, r);
    rollouts_free(r);
}

static int ending_tool(int* forced, int capacity, const int* ids, int length) {
    (void)capacity, (void)ids;
    forced[0] = ASSISTANT_END;
    return length == 1;
}

static int flooding_tool(int* forced, int capacity, const int* ids, int length) {
    (void)ids;
    for (int i = 0; i < capacity; i++) forced[i] = 'x';
    return length == 2 ? capacity : 0;
}

static void model_forced_tokens_at_the_edges(void) {
    // a forced <|assistant_end|> does not end a rollout: only the model's own word does
    Rollout* r = generate(&loud, some, 2, 3, (SampleOptions){4, 1.0f, 0, 1.0f}, ending_tool, 6, 0);
    int after = 0;
    for (int i = 0; i < 6; i++) {
        if (r[i].length <= 1) continue;
        const int *answer = r[i].ids + r[i].prompt, *mask = r[i].mask + r[i].prompt;
        CHECK(answer[1] == ASSISTANT_END && mask[1] == 0 && r[i].length > 2 && mask[2] == 1);
        after++;
    }
    CHECK(after > 0);
    rollouts_free(r);
    // a tool that forces more than there is room for: the rollout is cut off at max_new_tokens
    r = generate(&loud, some, 2, 3, (SampleOptions){9, 1.0f, 0, 1.0f}, flooding_tool, 6, 0);
    for (int i = 0; i < 6; i++) {
        if (r[i].finished) continue;
        const int *answer = r[i].ids + r[i].prompt, *mask = r[i].mask + r[i].prompt;
        CHECK(r[i].length == 9 && mask[1] == 1 && mask[2] == 0 && mask[8] == 0 && answer[8] == 'x');
    }
    rollouts_free(r);
}

static void model_rollouts_do_not_depend_on_the_batch(void) {
    // More rows than one decoding batch takes and more prompt tokens than the 1024 of one prefill: each
    // prompt's rollouts are the same bits when it is sampled alone (`first` keeps its stream), or with
    // another number of them.
    enum { B = 24, K = 6 };
    int length[B], total = 0, distinct = 0;
    for (int q = 0; q < B; q++) length[q] = q == 7 ? 2 : 70 - q;
    for (int q = 0; q < DECODE_ROWS / K; q++) total += length[q];
    CHECK(B * K > DECODE_ROWS && total > 1024);
    SampleOptions o = {12, 1.0f, 0, 1.0f};
    Tokens prompts[B];
    make_prompts(prompts, length, B);
    Rollout* all = generate(&loud, prompts, B, K, o, digit_tool, 5, 100);
    for (int q = 0; q < B; q++) {
        Rollout* alone = generate(&loud, prompts + q, 1, K, o, digit_tool, 5, 100 + (uint64_t)q);
        for (int k = 0; k < K; k++)
            CHECK(same_rollout(&alone[k], &all[q * K + k]) && alone[k].prompt == prompts[q].length);
        distinct += !same_rollout(&alone[0], &alone[1]);
        rollouts_free(alone);
    }
    CHECK(distinct >= B - 2);           // the rollouts of a prompt differ among themselves
    Rollout* more = generate(&loud, prompts + 3, 2, 7, o, digit_tool, 5, 103);
    for (int i = 0; i < 2 * K; i++) CHECK(same_rollout(&more[i / K * 7 + i % K], &all[3 * K + i]));
    check_logp(&loud, B, K, all);
    Rollout* other = generate(&loud, prompts, B, K, o, digit_tool, 6, 100);
    distinct = 0;
    for (int i = 0; i < B * K; i++) distinct += !same_rollout(&other[i], &all[i]);
    CHECK(distinct >= B * K - 12);      // another seed, other rollouts
    rollouts_free(all), rollouts_free(other), rollouts_free(more), free_prompts(prompts, B);
}

static void model_rollouts_do_not_depend_on_threads(void) {
    // forty rollouts of each prompt: more rows than one batch takes, so that there is something to share out
    enum { K = 40 };
    CHECK(SOME * K > DECODE_ROWS);
    Rollout* r[5];
    for (int threads = 1; threads <= 4; threads++) {
        set_threads(threads);
        r[threads] = generate(&loud, some, SOME, K, (SampleOptions){12, 1.0f, 0, 1.0f}, digit_tool, 3, 0);
        for (int k = 0; k < SOME * K; k++) CHECK(same_rollout(&r[threads][k], &r[1][k]));
    }
    set_threads(2);
    for (int threads = 1; threads <= 4; threads++) rollouts_free(r[threads]);
}

static void model_greedy(void) {
    // temperature 0 takes the full pass's largest logit at every step, and so does top_k = 1 at any
    Rollout* r = generate(&loud, some, SOME, 1, (SampleOptions){20, 0.0f, 0, 1.0f}, NULL, 1, 0);
    Rollout* one = generate(&loud, some, SOME, 1, (SampleOptions){20, 1.0f, 1, 1.0f}, NULL, 2, 0);
    Rollout* hot = generate(&loud, some, SOME, 1, (SampleOptions){20, 3.0f, 1, 1.0f}, NULL, 3, 0);
    int sampled = 0;
    for (int i = 0; i < SOME; i++) {
        CHECK(same_rollout(&one[i], &r[i]) && same_rollout(&hot[i], &r[i]));
        sampled += r[i].length;
    }
    CHECK(check_logp(&loud, SOME, 1, r) == sampled && sampled > 20);    // the log-probability is not 0
    rollouts_free(r), rollouts_free(one), rollouts_free(hot);
}

// ---- one token

static void model_sampler(void) {
    // What is drawn: probabilities, and what the sampler makes of them, up to a factor; 0 = never.
#define FIVE {0.4, 0.1, 0.25, 0.05, 0.2}
    static const struct { double p[8], wanted[8]; float temperature; int top_k; float top_p; } cases[] = {
        {FIVE, FIVE, 1.0f, 0, 1.0f},
        {FIVE, FIVE, 1.0f, 5, 1.0f},                                // top-k of all is all
        {FIVE, FIVE, 1.0f, 50, 1.0f},
        {FIVE, {0.16, 0.01, 0.0625, 0.0025, 0.04}, 0.5f, 0, 1.0f},  // temperature 1/2: squares
        {{16.0 / 34, 4.0 / 34, 9.0 / 34, 1.0 / 34, 4.0 / 34}, {4, 2, 3, 1, 2}, 2.0f, 0, 1.0f},   // 2: roots
        {FIVE, {0.4, 0, 0.25, 0, 0.2}, 1.0f, 3, 1.0f},              // the best three, four, one; of squares
        {FIVE, {0.4, 0.1, 0.25, 0, 0.2}, 1.0f, 4, 1.0f},
        {FIVE, {1, 0, 0, 0, 0}, 1.0f, 1, 1.0f},
        {FIVE, {0.16, 0, 0.0625, 0, 0.04}, 0.5f, 3, 1.0f},
        // of two equal largest both ways take the first; what is recorded is the model's, not 0
        {{1.0 / 6, 2.0 / 6, 2.0 / 6, 1.0 / 6}, {0, 1, 0, 0}, 0.0f, 0, 1.0f},
        {{1.0 / 6, 2.0 / 6, 2.0 / 6, 1.0 / 6}, {0, 1, 0, 0}, 1.0f, 1, 1.0f},
        // among equals at the border the first ones stay: exactly k, not more
        {{0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125}, {1, 1, 1, 0, 0, 0, 0, 0}, 1.0f, 3, 1.0f},
        {{0.125, 0.25, 0.125, 0.25, 0.125, 0.125}, {1, 2, 1, 2, 0, 0}, 1.0f, 4, 1.0f},
        // top-p: 0.4 < 0.6 <= 0.4 + 0.25, so two tokens are the smallest set that has 0.6
        {FIVE, {0.4, 0, 0.25, 0, 0}, 1.0f, 0, 0.6f},
        {FIVE, {0.4, 0, 0.25, 0, 0.2}, 1.0f, 0, 0.7f},
        {FIVE, {1, 0, 0, 0, 0}, 1.0f, 0, 0.3f},
        {FIVE, {1, 0, 0, 0, 0}, 1.0f, 0, 0.0f},                     // one always stays, of none too
        // after top-k it is the share of what top-k left: of (0.4, 0.25, 0.2) / 0.85, 0.47 < 0.75 <= 0.76
        {FIVE, {0.4, 0, 0.25, 0, 0}, 1.0f, 3, 0.75f},
        // under ties: 1/2 + 1/8 has 0.6, so one of the four equals stays, the first
        {{0.125, 0.125, 0.5, 0.125, 0.125}, {0.125, 0, 0.5, 0, 0}, 1.0f, 0, 0.6f},
    };
    enum { DRAWS = 20000 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double *p = cases[i].p, *wanted = cases[i].wanted;
        SampleOptions o = {1, cases[i].temperature, cases[i].top_k, cases[i].top_p};
        float logits[8], work[16], logp, entropy;
        double nats = 0.0, sum = 0.0, chi = 0.0;
        int count[8] = {0}, V = 0, wrong = 0, kinds = 0;
        Rng rng = {77};
        for (; V < 8 && p[V] > 0.0; V++) {
            logits[V] = 3.0f + (float)log(p[V]);                    // any constant may be added
            nats -= p[V] * log(p[V]);
            sum += wanted[V];
            kinds += wanted[V] > 0.0;
        }
        for (int n = 0; n < DRAWS; n++) {
            int id = sample_token(&logp, &entropy, logits, V, o, &rng, work);
            count[id]++;
            wrong += !(fabs((double)logp - log(p[id])) <= 2e-6);    // the model's, whatever the sampler,
            wrong += !(fabs((double)entropy - nats) <= 2e-6);       // and so is this
            wrong += wanted[id] == 0.0;
        }
        // chi-square = sum (count - np)^2 / np: with up to 7 degrees of freedom above 29.9 once in 10,000
        // seeds
        for (int k = 0; k < V; k++) {
            double mean = DRAWS * wanted[k] / sum;
            if (mean > 0.0) chi += (count[k] - mean) * (count[k] - mean) / mean;
        }
        CHECK(wrong == 0 && chi < 29.9);
        CHECK(kinds == 1 || chi > 0.01);
    }
}

static void model_keep_largest(void) {
    // Against the definition, with many ties: a number stays when fewer than k others come before it, which
    // are larger, or equal and further ahead. 60 lists, every k; numbers from 0 to 1, and tiny ones.
    Rng rng = {3};
    int wrong = 0;
    for (int n = 1; n <= 60; n++)
        for (int k = 1; k <= n; k++) {
            float x[60], kept[60], unit = k % 3 ? 1.0f / (float)n : 1e-37f;
            for (int i = 0; i < n; i++) kept[i] = x[i] = unit * (float)random_int(&rng, 1 + n / 2);
            keep_largest(kept, n, k);
            for (int i = 0; i < n; i++) {
                int before = 0;
                for (int j = 0; j < n; j++) before += x[j] > x[i] || (x[j] == x[i] && j < i);
                wrong += kept[i] != (before < k ? x[i] : 0.0f);
            }
        }
    CHECK(wrong == 0);
}

// ---- the update

static const AdamOptions adam = {0.9f, 0.95f, 1e-8f, 0.1f};
static const Config toy_config = {VOCAB_SIZE, 96, 2, 20, 4, 2, 6, 30, 1, 10000.0f, 1e-6f, 0};

// Six conversations, and sixty: several passes, several tasks.
enum { TOY = 6, MANY = 60 };
static Tokens toy_set[TOY];
static const Tokens *toy_list[TOY], *many[MANY];
static void make_toy_set(void) {
    static const char* const text[TOY][2] = {
        {"2+3", "<<2+3=5>>5\n#### 5"}, {"4+4", "8"}, {"1+6", "<<1+6=7>>7"}, {"5+5", "It is 10."},
        {"Ann has 2 pears and buys 7. How many now?", "2+7=<<2+7=9>>9\n#### 9"}, {"9-1", "8"}};
    for (int i = 0; i < TOY; i++) {
        render_conversation(&toy_set[i], text[i][0], text[i][1]);
        toy_list[i] = &toy_set[i];
    }
    for (int i = 0; i < MANY; i++) many[i] = &toy_set[i * i % TOY];
}

static void model_training_does_not_depend_on_threads(void) {
    // Losses, norms and all weights after three updates, bit for bit.
    Model m[5];
    double loss[3], norm[3], l, n;
    CHECK(MANY > 2 * TOGETHER);
    for (int threads = 1; threads <= 4; threads++) {
        set_threads(threads);
        m[threads] = random_model(toy_config, 1);
        Optimizer o = optimizer_new(&toy_config);
        for (int step = 0; step < 3; step++) {
            l = sft_loss(&m[threads], many, MANY, 1);
            n = clip_and_step(&m[threads], &o, 0.01f, 1.0f, adam);
            if (threads == 1) loss[step] = l;
            if (threads == 1) norm[step] = n;
            CHECK(l == loss[step] && n == norm[step]);
        }
        CHECK(same_weights(&m[threads].weights, &m[1].weights));
        optimizer_free(&o);
    }
    CHECK(loss[2] < loss[0]);
    set_threads(2);
    for (int threads = 1; threads <= 4; threads++) model_free(&m[threads]);
}

static void model_loss_of_conversations(void) {
    // the padded arrays: ids, and the mask shifted by one; behind the end 0
    Padded p = pad_conversations(many, MANY);
    int T1 = p.T - 1, tokens = count_masked(p.mask, MANY * T1);
    for (int k = 0; k < MANY; k++)
        for (int t = 0; t < p.T; t++) {
            CHECK(p.ids[k * p.T + t] == (t < many[k]->length ? many[k]->ids[t] : 0));
            if (t < T1) CHECK(p.mask[k * T1 + t] == (t + 1 < many[k]->length ? many[k]->mask[t + 1] : 0));
        }
    // 60 conversations, several to a pass: loss and gradient are those of one plain pass for each
    Model m = random_model(toy_config, 1), plain = copy_of_model(&m);
    float logp[96], d[96];
    double loss = 0.0;
    for (int t = 0; t < T1; t++) d[t] = -1.0f / (float)tokens;
    model_zero_grads(&m);
    model_zero_grads(&plain);
    for (int k = 0; k < MANY; k++) {
        plain_pass(logp, &plain, p.ids + k * p.T, p.mask + k * T1, p.T, d);
        for (int t = 0; t < T1; t++) loss -= (double)logp[t] / tokens;
    }
    CHECK_NEAR(loss, log(265.0), 0.05);                           // at first every token has about 1/265
    CHECK_NEAR(sft_loss(&m, many, MANY, 1), loss, 1e-6);
    CHECK(off_by(plain.grads.memory, m.grads.memory, 1.0, m.grads.count) < 1e-5);
    // without learning: the same loss, and the gradients stay as they are
    memcpy(plain.grads.memory, m.grads.memory, m.grads.count * sizeof(float));
    CHECK_NEAR(sft_loss(&m, many, MANY, 0), loss, 1e-6);
    CHECK(same_bits(plain.grads.memory, m.grads.memory, m.grads.count));
    // an update: the same mean loss; |g|, and its clipped length (beta1 = 0: AdamW's first moment is the
    // gradient); learning rate 0 moves nothing; afterwards the gradient is 0
    Optimizer o = optimizer_new(&m.config);
    model_zero_grads(&m);
    CHECK_NEAR(sft_loss(&m, many, MANY, 1), loss, 1e-6);
    double norm = clip_and_step(&m, &o, 0.0f, 0.125f, (AdamOptions){0.0f, 0.95f, 1e-8f, 0.1f});
    CHECK_NEAR(norm, sqrt(square_of(plain.grads.memory, m.grads.count)), 1e-5);
    CHECK(norm > 0.125);
    CHECK_NEAR(sqrt(square_of(o.first.memory, o.first.count)), 0.125, 1e-6);
    CHECK(same_weights(&plain.weights, &m.weights) && square_of(m.grads.memory, m.grads.count) == 0.0);
    model_free(&m), model_free(&plain), optimizer_free(&o), padded_free(&p);
}

static void model_update_without_scored_tokens(void) {
    // the assistant says nothing, or there is no conversation: loss 0, norm 0, no NaN anywhere
    Tokens t = {0};
    for (int i = 0; i < 9; i++) tokens_add(&t, 'a' + i, 0);
    const Tokens* list[2] = {&t, &t};
    Model m = random_model(toy_config, 1);
    Optimizer o = optimizer_new(&m.config);
    for (int count = 2; count >= 0; count -= 2) {
        CHECK(sft_loss(&m, list, count, 1) == 0.0 && clip_and_step(&m, &o, 0.01f, 1.0f, adam) == 0.0);
        CHECK(isfinite(square_of(m.weights.memory, m.weights.count)));
    }
    tokens_free(&t), model_free(&m), optimizer_free(&o);
}

static void test_model(void) {
    static const int lengths[SOME] = {2, 9, 70, CONTEXT - 1};
    RUN(model_what_is_refused);
    set_threads(2);                  // where there are threads; what copies the process came before
    make_rows();
    make_toy_set();
    loud = decoding_model(CONTEXT);
    make_prompts(some, lengths, SOME);
    RUN_ALL(TEST(model_exp), TEST(model_sums_and_maxima), TEST(model_matmul), TEST(model_rng),
            TEST(model_reference), TEST(model_tensors_cover_the_weights), TEST(model_initial_weights),
            TEST(model_scalar_has_the_same_body), TEST(model_batch), TEST(model_turns_follow_from_the_size),
            TEST(model_equal_rows_are_found), TEST(model_packed_answers_are_the_plain_ones),
            TEST(model_sampling_is_the_training_pass), TEST(model_forced_tokens_at_the_edges),
            TEST(model_rollouts_do_not_depend_on_the_batch), TEST(model_rollouts_do_not_depend_on_threads),
            TEST(model_greedy), TEST(model_sampler), TEST(model_keep_largest),
            TEST(model_training_does_not_depend_on_threads), TEST(model_loss_of_conversations),
            TEST(model_update_without_scored_tokens));
    free_prompts(some, SOME), model_free(&loud);
    for (int i = 0; i < TOY; i++) tokens_free(&toy_set[i]);
}

/* model.c - arithmetic, the model, decoding and the update, in single precision.
 *
 * Whole numbers make exact tests: a sum of products of integers stays exact in float below 2^24, so a matrix
 * product must equal the naive one to the last bit. Where the text promises "bit for bit", bits are compared.
 */
#include "qwen3_tiny.h"

// ---- helpers

static int same_bits(const float* a, const float* b, size_t n) { return !memcmp(a, b, n * sizeof(float)); }

// whole numbers from -3 to 3
static void fill_integers(float* x, size_t n, uint64_t seed) {
    Rng rng = {seed};
    for (size_t i = 0; i < n; i++) x[i] = (float)(random_int(&rng, 7) - 3);
}

static void fill_normal(float* x, size_t n, uint64_t seed) {
    Rng rng = {seed};
    for (size_t i = 0; i < n; i++) x[i] = (float)random_normal(&rng);
}

static float* floats(size_t n) { return allocate(n, sizeof(float)); }

// How far value is from the exact result, in units in the last place of a float.
static double ulps(float value, double exact) {
    return fabs((double)value - exact) / ldexp(1.0, ilogb(exact) - 23);
}

// Element (i,j) of a tensor; a vector has one column.
static float* element(const Tensor* t, int i, int j) {
    return &t->data[(size_t)i * t->row + (size_t)j * t->col];
}
static int columns(const Tensor* t) { return max_int(t->cols, 1); }

// The status with which action() ends the program, in a copy of the process; -1 when it does not end it.
static int exit_status(void (*action)(void)) {
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) _exit(99);
        action();
        _exit(100);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) != 100 ? WEXITSTATUS(status) : -1;
}

// Thread counts to be compared: the first is the reference. Without OpenMP there is only one.
#ifdef _OPENMP
static const int thread_counts[] = {1, 2, 3, 4};
#else
static const int thread_counts[] = {1};
#endif
enum { THREAD_COUNTS = sizeof thread_counts / sizeof *thread_counts };

// ---- arithmetic

static void model_exp_error(void) {
    // Over [-87.3, 88] the error is 1.023 ulp at most (a run over all floats); here every 2000th is tried.
    double worst = 0.0;
    long falls = 0;
    for (int negative = 0; negative < 2; negative++) {
        union { float f; uint32_t u; } at = {negative ? 87.3f : 88.0f};
        float last = fast_exp(negative ? -at.f : at.f);
        for (uint32_t top = at.u, u = 0; u < top; u += u < 0x3C000000u ? 100003 : 2003) {
            at.u = top - u;
            float x = negative ? -at.f : at.f, y = fast_exp(x);
            worst = fmax(worst, ulps(y, exp((double)x)));
            falls += negative ? y < last : y > last;
            last = y;
        }
    }
    CHECK(worst < 1.1);
    CHECK(worst > 0.5);
    CHECK(falls == 0);       // exp rises, and so do its samples
}

static void model_exp_at_the_joints(void) {
    // exp(x) = 2^n exp(r): n steps where x / ln 2 is n + 1/2. Across each the next float must not be smaller.
    int falls = 0;
    for (int n = -125; n < 126; n++) {
        float x = (float)((n + 0.5) * 0.69314718055994531);
        for (int i = 0; i < 40; i++) x = nextafterf(x, -100.0f);
        for (int i = 0; i < 80; i++) {
            float next = nextafterf(x, 100.0f);
            falls += fast_exp(next) < fast_exp(x);
            x = next;
        }
    }
    CHECK(falls == 0);
}

static void model_exp_at_the_ends(void) {
    CHECK(fast_exp(0.0f) == 1.0f && fast_exp(-0.0f) == 1.0f);
    CHECK(fast_exp(-87.3f) > 0.0f);                             // 1.2e-38, above the smallest normal number
    CHECK(fast_exp(-87.3f) >= 1.17549435e-38f);
    CHECK(fast_exp(nextafterf(-87.3f, -100.0f)) == 0.0f);
    CHECK(fast_exp(-1e30f) == 0.0f && fast_exp(-INFINITY) == 0.0f);
    CHECK(fast_exp(88.5f) == fast_exp(88.0f) && fast_exp(INFINITY) == fast_exp(88.0f));
    CHECK(isfinite(fast_exp(INFINITY)));
    CHECK(isnan(fast_exp(NAN)));                                // a NaN is not hidden
}

static void model_dot(void) {
    // lengths around the eight partial sums: 1*1 + 2*2 + ... + n*n = n(n+1)(2n+1)/6
    float a[64];
    for (int i = 0; i < 64; i++) a[i] = (float)(i + 1);
    for (int n = 0; n <= 64; n++) CHECK(dot(a, a, n) == (float)(n * (n + 1) * (2 * n + 1) / 6));
}

static void model_maximum(void) {
    // the largest of n numbers wherever it stands; all are negative: a start value of 0 would win
    for (int n = 1; n <= 40; n++)
        for (int at = 0; at < n; at++) {
            float x[41];
            for (int i = 0; i < 41; i++) x[i] = -5.0f - (float)(i % 3);
            x[at] = -2.0f;  // what lies behind does not count
            x[n] = -1.0f;
            CHECK(maximum(x, n) == -2.0f);
        }
}

static void model_exp_and_sum(void) {
    // exp(ln 1 - ln 2), exp(ln 2 - ln 2), ... = 1/2, 2/2, 3/2, ...: n of them are n (n + 1) / 4
    for (int n = 1; n <= 40; n++) {
        float x[40];
        for (int i = 0; i < n; i++) x[i] = (float)log(i + 1.0);
        CHECK_NEAR(exp_and_sum(x, (float)log(2.0), n), n * (n + 1) / 4.0, 1e-6);
        CHECK_NEAR(x[n - 1], n / 2.0, 1e-6);
    }
}

// ---- matrix multiplication

// c = a b, each stored by rows or columns, strides wider than needed, against the naive loop over whole
// numbers, exactly; the margin around c stays as it is.
static int product_is_exact(int M, int N, int K, int a_columns, int b_columns, int accumulate) {
    size_t lda = (size_t)(a_columns ? M : K) + 3, ldb = (size_t)(b_columns ? K : N) + 2, ldc = (size_t)N + 5;
    size_t size_a = lda * (size_t)(a_columns ? K : M), size_b = ldb * (size_t)(b_columns ? N : K);
    size_t size_c = ldc * (size_t)(M + 1);
    float *a = floats(size_a), *b = floats(size_b), *c = floats(size_c), *expected = floats(size_c);
    fill_integers(a, size_a, 1);
    fill_integers(b, size_b, 2);
    fill_integers(c, size_c, 3);
    memcpy(expected, c, size_c * sizeof(float));
    View va = a_columns ? transposed(a, lda) : view(a, lda);
    View vb = b_columns ? transposed(b, ldb) : view(b, ldb);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            double sum = accumulate ? (double)expected[(size_t)m * ldc + n] : 0.0;
            for (int k = 0; k < K; k++)
                sum += (double)(a_columns ? a[(size_t)k * lda + m] : a[(size_t)m * lda + k]) *
                       (double)(b_columns ? b[(size_t)n * ldb + k] : b[(size_t)k * ldb + n]);
            expected[(size_t)m * ldc + n] = (float)sum;
        }
    matmul(c, ldc, va, vb, M, N, K, accumulate);
    int exact = same_bits(c, expected, size_c);
    if (!exact)
        printf("  %d x %d x %d, columns %d %d, accumulate %d\n", M, N, K, a_columns, b_columns, accumulate);
    free(a), free(b), free(c), free(expected);
    return exact;
}

static void model_matmul(void) {
    // 250 sizes from 1 x 1 x 1 to 70 x 70 x 70, mostly odd, every way to store the factors
    Rng rng = {11};
    int inexact = 0;
    for (int i = 0; i < 250; i++) {
        int M = 1 + random_int(&rng, 70), N = 1 + random_int(&rng, 70), K = 1 + random_int(&rng, 70);
        if (i < 8) {
            M = 1 + i % 2;
            N = 1 + i / 2 % 2;
            K = 1 + i / 4;
        }
        for (int way = 0; way < 8 && !inexact; way++)
            inexact += !product_is_exact(M, N, K, way & 1, way >> 1 & 1, way >> 2);
    }
    CHECK(inexact == 0);
}

static void model_matmul_long_sums(void) {
    // more than one panel of PANEL_K = 256 steps: the later add to the first; the whole tile and its edges
    static const int size[][3] = {
        {1, 1, 257}, {30, 3, 300}, {3, 70, 300}, {140, 65, 270}, {33, 200, 300}, {2, 1000, 70}, {400, 9, 40},
        {TILE_M, TILE_N, 256}, {TILE_M, TILE_N, 512}, {TILE_M + 1, TILE_N + 1, 513},
        {TILE_M - 1, TILE_N - 1, 700}};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        for (int way = 0; way < 8; way++)
            CHECK(product_is_exact(size[i][0], size[i][1], size[i][2], way & 1, way >> 1 & 1, way >> 2));
    // an empty sum is 0, and adding one changes nothing
    float c[4] = {5, 5, 5, 5}, none = 0;
    matmul(c, 2, view(&none, 1), view(&none, 2), 2, 2, 0, 1);
    CHECK(c[0] == 5 && c[3] == 5);
}

static void model_matmul_order_of_the_sum(void) {
    // Each element is one sum in the order k = 0, 1, 2, ...: of rounded products, or of fused ones where the
    // processor has them, all alike. 300 steps pass the border of a panel.
    enum { M = 29, N = 75, K = 300 };
    float *a = floats(M * K), *b = floats(K * N), *c = floats(M * N);
    fill_normal(a, M * K, 1);
    fill_normal(b, K * N, 2);
    matmul(c, N, view(a, K), view(b, N), M, N, K, 0);
    int rounded = 0, fused = 0;
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            volatile float r = 0.0f, product;
            float f = 0.0f;
            for (int k = 0; k < K; k++) {
                product = a[m * K + k] * b[k * N + n];
                r = r + product;
                f = fmaf(a[m * K + k], b[k * N + n], f);
            }
            rounded += r == c[m * N + n];
            fused += f == c[m * N + n];
        }
    CHECK(rounded == M * N || fused == M * N);
    free(a), free(b), free(c);
}

static void model_matmul_rows_are_independent(void) {
    // A row's result does not depend on the other rows: 37 together, one by one, and from the fifth on.
    enum { M = 37, N = 45, K = 260 };
    for (int columns = 0; columns < 2; columns++) {
        float *a = floats(M * K), *b = floats(K * N), *all = floats(M * N), *one = floats(M * N);
        fill_normal(a, M * K, 3);
        fill_normal(b, K * N, 4);
        View va = columns ? transposed(a, M) : view(a, K);
        matmul(all, N, va, view(b, N), M, N, K, 0);
        for (int m = 0; m < M; m++)
            matmul(one + m * N, N, (View){a + (size_t)m * va.row, va.row, va.col}, view(b, N), 1, N, K, 0);
        CHECK(same_bits(all, one, M * N));
        memset(one, 0, M * N * sizeof(float));
        matmul(one + 5 * N, N, (View){a + 5 * va.row, va.row, va.col}, view(b, N), M - 5, N, K, 0);
        CHECK(same_bits(all + 5 * N, one + 5 * N, (M - 5) * N));
        free(a), free(b), free(all), free(one);
    }
}

// ---- random numbers

static void model_rng(void) {
    // the first numbers of splitmix64 from state 1234567, as its authors' program prints them
    Rng rng = {1234567};
    CHECK(random_u64(&rng) == 6457827717110365317u);
    CHECK(random_u64(&rng) == 3203168211198807973u);
    CHECK(random_u64(&rng) == 9817491932198370423u);
    // 100,000 uniform numbers: mean 1/2 +- 4 sqrt(1/12 / 100000) = 0.0037; normal ones: mean 0 +- 0.013,
    // square 1 +- 0.018
    enum { DRAWS = 100000 };
    double sum = 0.0, normal = 0.0, square = 0.0;
    int outside = 0, count[7] = {0};
    for (int i = 0; i < DRAWS; i++) {
        float u = random_uniform(&rng);
        double z = random_normal(&rng);
        int k = random_int(&rng, 7);
        outside += !(u >= 0.0f && u < 1.0f) || k < 0 || k > 6;
        sum += (double)u;
        normal += z;
        square += z * z;
        count[k < 0 || k > 6 ? 0 : k]++;
    }
    CHECK(outside == 0);
    CHECK_NEAR(sum / DRAWS, 0.5, 0.0037);
    CHECK_NEAR(normal / DRAWS, 0.0, 0.013);
    CHECK_NEAR(square / DRAWS, 1.0, 0.018);
    // each of 7 numbers 14286 times, +- 4 sqrt(100000 * 1/7 * 6/7) = 443
    for (int k = 0; k < 7; k++) CHECK(abs(count[k] - DRAWS / 7) < 443);
}

static void model_random_streams(void) {
    // The same (seed, a, b) is the same stream, any other is another: 1200 first numbers, no two alike.
    enum { STREAMS = 1200 };
    static uint64_t first[STREAMS];
    int n = 0, alike = 0;
    for (uint64_t seed = 0; seed < 3; seed++)
        for (uint64_t a = 0; a < 20; a++)
            for (uint64_t b = 0; b < 20; b++) {
                Rng one = random_stream(seed, a, b), two = random_stream(seed, a, b);
                first[n] = random_u64(&one);
                CHECK(first[n] == random_u64(&two));
                n++;
            }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) alike += first[i] == first[j];
    CHECK(alike == 0);
    // neighbours have nothing to do with each other: half of the 64 bits differ, 32 +- 4 sqrt(16 / 1199)
    double differ = 0.0;
    for (int i = 1; i < n; i++)
        for (uint64_t bits = first[i] ^ first[i - 1]; bits; bits &= bits - 1) differ++;
    CHECK_NEAR(differ / (n - 1), 32.0, 0.47 / 32);
}

static void model_shuffle(void) {
    // a permutation of any length
    for (int n = 0; n < 40; n++) {
        Rng rng = random_stream(1, 2, (uint64_t)n);
        int order[40], seen[40] = {0}, missing = 0;
        shuffle(order, n, &rng);
        for (int i = 0; i < n; i++) if (order[i] >= 0 && order[i] < n) seen[order[i]]++;
        for (int i = 0; i < n; i++) missing += seen[i] != 1;
        CHECK(missing == 0);
    }
    // and any permutation: the 6 of three things come 2000 times each in 12000, +- 4 sqrt(12000 * 1/6 *
    // 5/6) = 163
    int count[27] = {0};
    Rng rng = {5};
    for (int i = 0; i < 12000; i++) {
        int order[3];
        shuffle(order, 3, &rng);
        count[9 * order[0] + 3 * order[1] + order[2]]++;
    }
    static const int all[6] = {5, 7, 11, 15, 19, 21};   // 012 021 102 120 201 210 in base three
    for (int i = 0; i < 6; i++) CHECK(abs(count[all[i]] - 2000) < 163);
}

// ---- the model

static void model_reference(void) {
    // The independent PyTorch program's numbers. Element i (row by row) of tensor k of tensor_list() is 0.35
    // sin(0.7 (i + 1) + 1.3 k) in a matrix, 1 + 0.1 sin(...) in a norm. 1e-5 is relative to the tensor's
    // largest magnitude.
    Model m = model_new((Config){QWEN3_VOCAB, 8, 2, 16, 4, 2, 6, 24, 1, 10000.0f, 1e-6f, 0});
    int count = tensor_count(&m.config);
    CHECK(m.weights.count == QWEN3_WEIGHTS);
    Tensor *w = allocate((size_t)count, sizeof(Tensor)), *g = allocate((size_t)count, sizeof(Tensor));
    tensor_list(w, &m.weights, &m.config, "");
    for (int k = 0; k < count; k++)
        for (int i = 0, n = 0; i < w[k].rows; i++)
            for (int j = 0; j < columns(&w[k]); j++) {
                double wave = sin(0.7 * ++n + 1.3 * k);
                *element(&w[k], i, j) = (float)(w[k].cols ? 0.35 * wave : 1.0 + 0.1 * wave);
            }

    // the logits of all fourteen tokens: for these, every token is scored (with some target)
    Batch b = {0};
    for (int s = 0; s < QWEN3_B; s++) {
        const int* ids = qwen3_ids + s * QWEN3_T;
        batch_add(&b, ids, ids, QWEN3_T, -1);
    }
    model_forward(&m, &b);
    double worst = 0.0, largest = 0.0;
    for (int i = 0; i < QWEN3_B * QWEN3_T * QWEN3_VOCAB; i++) {
        worst = fmax(worst, fabs((double)m.acts.logits[i] - qwen3_logits[i]));
        largest = fmax(largest, fabs(qwen3_logits[i]));
    }
    CHECK(b.M == QWEN3_B * QWEN3_T && isfinite(m.acts.logits[0]) && worst < 1e-5 * largest);

    // loss and gradients: ten scored tokens, loss = -1/10 sum logp
    batch_clear(&b);
    for (int s = 0; s < QWEN3_B; s++)
        batch_add(&b, qwen3_ids + s * QWEN3_T, qwen3_targets + s * QWEN3_T, QWEN3_T, -1);
    CHECK(b.M == 10);
    float dlogp[10];
    double loss = 0.0;
    model_forward(&m, &b);
    for (int i = 0; i < 10; i++) {
        loss -= (double)m.acts.logp[i] / 10;
        dlogp[i] = -0.1f;
    }
    CHECK_NEAR(loss, qwen3_loss, 1e-6);
    model_zero_grads(&m);
    model_backward(&m, &b, dlogp);
    tensor_list(g, &m.grads, &m.config, "");
    const double* expected = qwen3_gradient;
    for (int k = 0; k < count; k++) {
        worst = largest = 0.0;
        for (int i = 0; i < g[k].rows; i++)
            for (int j = 0; j < columns(&g[k]); j++, expected++) {
                double error = fabs((double)*element(&g[k], i, j) - *expected);
                worst = error <= worst ? worst : error;
                largest = fmax(largest, fabs(*expected));
            }
        if (!(worst < 1e-5 * largest)) printf("  %s: off by %.3g of %.3g\n", g[k].name, worst, largest);
        CHECK(worst < 1e-5 * largest);
    }
    CHECK(expected == qwen3_gradient + QWEN3_WEIGHTS);
    free(w), free(g);
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
        int count = tensor_count(&c), once = 1, sorted = 1;
        Tensor* list = allocate((size_t)count, sizeof(Tensor));
        tensor_list(list, &w, &c, "");
        for (int k = 0; k < count; k++)
            for (int i = 0; i < list[k].rows; i++)
                for (int j = 0; j < columns(&list[k]); j++) {
                    float* x = element(&list[k], i, j);
                    int exempt = list[k].cols == 0 || strstr(list[k].name, "embed_tokens") != NULL;
                    *x += 1.0f;
                    sorted &= exempt == ((size_t)(x - w.memory) < w.undecayed);
                }
        for (size_t i = 0; i < w.count; i++) once &= w.memory[i] == 1.0f;
        CHECK(once);
        CHECK(sorted);
        CHECK(scalar ? !w.unembedding : (w.embedding == w.unembedding) == tied);
        CHECK(scalar ? w.score == w.memory + w.count - own : !w.score);
        CHECK(count == 2 + 3 * 11 + (own > 0));
        CHECK(!own || !strcmp(list[count - 1].name, scalar ? "score.weight" : "lm_head.weight"));
        // by hand: embedding 13 * 10, final norm 10, three layers of norms 10 + 10 + 4 + 4 and matrices
        // 10 * (6 + 2 * 2) * 4 = 400, 24 * 10 = 240, 10 * 14 = 140, 7 * 10 = 70; and the head's own
        CHECK(w.undecayed == 130 + 10 + 3 * 28);
        CHECK(head_count(&c) == own);
        CHECK(w.count == 224 + 3 * (400 + 240 + 140 + 70) + own);
        free(list);
        weights_free(&w);
    }
}

static void model_initial_weights(void) {
    // norms are 1; a matrix has deviation 1 / sqrt(inputs), o_proj and down_proj a fifth, the embedding 0.02
    Config c = {200, 8, 1, 64, 4, 2, 16, 128, 0, 10000.0f, 1e-6f, 0};
    Model m = model_new(c), again = model_new(c);
    model_init(&m, 1);
    model_init(&again, 1);
    CHECK(same_bits(m.weights.memory, again.weights.memory, m.weights.count));
    model_init(&again, 2);
    CHECK(!same_bits(m.weights.memory, again.weights.memory, m.weights.count));
    Tensor list[32];
    tensor_list(list, &m.weights, &m.config, "");
    for (int k = 0; k < tensor_count(&m.config); k++) {
        const Tensor* t = &list[k];
        double square = 0.0, n = (double)t->rows * columns(t);
        for (int i = 0; i < t->rows; i++)
            for (int j = 0; j < columns(t); j++) square += pow((double)*element(t, i, j), 2);
        double expected = 1.0 / sqrt((double)columns(t));
        if (strstr(t->name, "embed") || strstr(t->name, "lm_head")) expected = 0.02;
        if (strstr(t->name, "o_proj") || strstr(t->name, "down_proj")) expected /= 5;
        CHECK_NEAR(sqrt(square / n) / expected, 1.0, 0.08);      // 4 / sqrt(2 n) with n = 2048 or more: 0.06
    }
    model_free(&m), model_free(&again);
}

// ---- the scalar head

// C = 2, and the two matrices that write to the residual stream are 0: the final norm sees the embedding.
//     token 0: (1,-1), mean square 1:                  (1,-1)
//     token 1: (3,4), mean square (9 + 16)/2 = 12.5:   (3,4) / sqrt(12.5) = (0.8485281, 1.1313708)
// The norm's weights (1,2) and the score (0.5,-1) make of them
//     0.5 * 1 + 1 * 2 = 2.5      and      0.5 * 0.8485281 - 1 * 2 * 1.1313708 = -1.8384776
static void model_scalar_by_hand(void) {
    Model m = model_new((Config){2, 4, 1, 2, 1, 1, 2, 2, 1, 10000.0f, 1e-12f, 1});
    Batch b = {0};
    model_init(&m, 1);
    memset(m.weights.layer[0].out, 0, 4 * sizeof(float));
    memset(m.weights.layer[0].down, 0, 4 * sizeof(float));
    memcpy(m.weights.embedding, (float[]){1, -1, 3, 4}, 4 * sizeof(float));
    memcpy(m.weights.norm, (float[]){1, 2}, 2 * sizeof(float));
    memcpy(m.weights.score, (float[]){0.5f, -1}, 2 * sizeof(float));
    batch_add(&b, (int[]){0, 1, 0, 1}, (int[]){0, -1, -1, 0}, 4, -1);   // scored: the first and the last
    model_scalar_forward(&m, &b);
    CHECK(b.M == 2);
    CHECK_NEAR(m.acts.scalar[0], 2.5, 1e-6);
    CHECK_NEAR(m.acts.scalar[1], -1.8384776, 1e-6);
    // which tokens the targets are makes no difference
    float before[2] = {m.acts.scalar[0], m.acts.scalar[1]};
    batch_clear(&b);
    batch_add(&b, (int[]){0, 1, 0, 1}, (int[]){1, -1, -1, 1}, 4, -1);
    model_scalar_forward(&m, &b);
    CHECK(same_bits(m.acts.scalar, before, 2));
    model_free(&m), batch_free(&b);
}

// The body of a policy and of a scalar model are the same block of numbers, drawn alike, with the same hidden
// states: a reward model takes over a policy's body with one memcpy.
static void model_scalar_has_the_same_body(void) {
    for (int tied = 0; tied < 2; tied++) {
        Config c = {VOCAB_SIZE, 16, 2, 12, 4, 2, 4, 10, tied, 100.0f, 1e-6f, 0};
        Model policy = model_new(c);
        c.scalar = 1;
        Model scalar = model_new(c);
        size_t body = policy.weights.count - head_count(&policy.config);
        CHECK(body == scalar.weights.count - head_count(&scalar.config) && head_count(&scalar.config) == 12);
        Tensor p[32], s[32];
        tensor_list(p, &policy.weights, &policy.config, "");
        tensor_list(s, &scalar.weights, &scalar.config, "");
        for (int k = 0; k < 2 + 2 * 11; k++)
            CHECK(!strcmp(p[k].name, s[k].name) &&
                  p[k].data - policy.weights.memory == s[k].data - scalar.weights.memory);
        model_init(&policy, 5);
        model_init(&scalar, 5);
        CHECK(same_bits(policy.weights.memory, scalar.weights.memory, body));
        CHECK(same_bits(scalar.weights.score, (float[12]){0}, 12));   // 0, and not -0

        // score 0 says 0 to everything; otherwise it says hidden . score
        Batch b = {0};
        batch_add(&b, (int[]){1, 2, 3, 4}, (int[]){-1, 3, 4, 5}, 4, -1);
        batch_add(&b, (int[]){7, 8}, (int[]){-1, 9}, 2, 0);
        model_forward(&policy, &b);
        model_scalar_forward(&scalar, &b);
        CHECK(same_bits(policy.acts.hidden, scalar.acts.hidden, 4 * 12));
        CHECK(same_bits(scalar.acts.scalar, (float[4]){0}, 4));
        fill_normal(scalar.weights.score, 12, 9);
        model_scalar_forward(&scalar, &b);
        for (int i = 0; i < 4; i++) {
            double sum = 0.0;
            for (int j = 0; j < 12; j++)
                sum += (double)scalar.acts.hidden[i * 12 + j] * (double)scalar.weights.score[j];
            CHECK_NEAR(scalar.acts.scalar[i], sum, 1e-6);
        }
        // room for 256 tokens; a scalar model has no logits and no probabilities, 2 * 256 * 265 numbers less
        model_reserve(&policy, 1);
        CHECK(policy.acts.capacity == 256 && scalar.acts.capacity == 256);
        CHECK(policy.acts.probs - policy.acts.logits == 256 * 265);
        CHECK(policy.acts.logp - policy.acts.probs == 256 * 265);
        CHECK(scalar.acts.logits == scalar.acts.probs && scalar.acts.probs == scalar.acts.logp);
        model_free(&policy), model_free(&scalar), batch_free(&b);
    }
}

static void model_batch(void) {
    // a prefix of 3 and its continuation of 2; then one on its own. Positions go on where the prefix ends.
    Batch b = {0};
    int ids[] = {7, 8, 9}, targets[] = {-1, 5, -1};
    CHECK(batch_add(&b, ids, NULL, 3, -1) == 0);
    CHECK(batch_add(&b, ids, targets, 2, 0) == 1);
    CHECK(batch_add(&b, ids, targets, 3, -1) == 2);
    int position[] = {0, 1, 2, 3, 4, 0, 1, 2}, all[] = {-1, -1, -1, -1, 5, -1, 5, -1};
    CHECK(b.N == 8 && b.S == 3 && b.M == 2);
    CHECK(!memcmp(b.position, position, sizeof position) && !memcmp(b.targets, all, sizeof all));
    CHECK(b.scored[0] == 4 && b.scored[1] == 6);
    CHECK(b.start[0] == 0 && b.start[1] == 3 && b.start[2] == 5 && b.start[3] == 8);
    CHECK(b.prefix[0] == -1 && b.prefix[1] == 0 && b.prefix[2] == -1 && segment_length(&b, 2) == 3);
    batch_clear(&b);
    CHECK(b.N == 0 && b.S == 0 && b.M == 0);
    batch_free(&b);
}

static const Config tiny = {VOCAB_SIZE, 16, 2, 12, 4, 2, 4, 10, 1, 100.0f, 1e-6f, 0};

// What one forward pass of these tokens, or a prompt of so many, ends with.
static struct { int n, ids[17], targets[17], prompt, status; } refusal[] = {
    {2, {1, VOCAB_SIZE}, {-1, -1}, 0, 2}, {2, {1, -1}, {-1, -1}, 0, 2}, {2, {1, 2}, {3, VOCAB_SIZE}, 0, 2},
    {17, {0}, {0}, 0, 2}, {16, {0}, {0}, 0, -1}, {0, {0}, {0}, 16, 2}, {0, {0}, {0}, 15, -1}};
static int refused;
static void try_refusal(void) {
    Model m = model_new(tiny);
    Batch b = {0};
    Tokens prompt = {0};
    for (int i = 0; i < refusal[refused].prompt; i++) tokens_add(&prompt, 1, 0);
    if (prompt.length) generate(&m, &prompt, 1, 1, (SampleOptions){5, 1.0f, 0, 1.0f}, NULL, 1, 0);
    batch_add(&b, refusal[refused].ids, refusal[refused].targets, refusal[refused].n, -1);
    if (refusal[refused].n) model_forward(&m, &b);
}
static void odd_head(void) {
    Config c = tiny;
    c.head_dim = 3;
    model_new(c);
}

static void model_what_is_refused(void) {
    for (refused = 0; refused < (int)(sizeof refusal / sizeof *refusal); refused++)
        CHECK(exit_status(try_refusal) == refusal[refused].status);
    CHECK(exit_status(odd_head) == 2);
}

static void model_matmul_strips_in_parallel(void) {
    // A large product (above 1e6 multiply-adds) gives its strips to the threads: the same bits as in a row,
    // however the factors are stored, and as inside of a parallel loop, where it does not.
    enum { M = 130, N = 140, K = 301 };
    CHECK((double)M * N * K > 1e6);
    float *a = floats(M * K), *b = floats(K * N), *serial = floats(M * N), *c = floats(M * N);
    fill_normal(a, M * K, 5);
    fill_normal(b, K * N, 6);
    for (int way = 0; way < 8; way++) {
        View va = way & 1 ? transposed(a, M) : view(a, K), vb = way & 2 ? transposed(b, K) : view(b, N);
        int accumulate = way >> 2;
        set_threads(1);
        fill_normal(serial, M * N, 7);
        matmul(serial, N, va, vb, M, N, K, accumulate);
        for (int threads = 2; threads <= 4; threads++) {
            set_threads(threads);
            fill_normal(c, M * N, 7);
            matmul(c, N, va, vb, M, N, K, accumulate);
            CHECK(same_bits(c, serial, M * N));
        }
        float* inside = floats(2 * M * N);
        fill_normal(inside, M * N, 7);
        fill_normal(inside + M * N, M * N, 7);
#pragma omp parallel for
        for (int i = 0; i < 2; i++) matmul(inside + i * M * N, N, va, vb, M, N, K, accumulate);
        CHECK(same_bits(inside, serial, M * N) && same_bits(inside + M * N, serial, M * N));
        free(inside);
    }
    set_threads(2);
    free(a), free(b), free(serial), free(c);
}

// ---- turns: which gradients are added in which order does not depend on the number of threads

static void model_turns_follow_from_the_size(void) {
    // how many gradients are kept depends on the model alone: 16 of a small one, 2 at least, or 32 MB
    Model m = {0};
    m.weights.count = 300000;
    CHECK(turns_of(&m) == MAX_TURNS);
    m.weights.count = 1000000;
    CHECK(turns_of(&m) == 8);
    m.weights.count = 600000000;
    CHECK(turns_of(&m) == 2);
}

// ---- answers: packed against plain

// K rows of T tokens: a prompt of 4 tokens; rows 0, 2 and 4 alike, row 5 with the text of row 0 and a token
// that was forced, row 6 with nothing scored; the others of their own. Lengths differ, padding is 0.
enum { ROWS = 7, ROW_T = 14, ROW_T1 = ROW_T - 1 };
static void some_rows(int* ids, int* mask) {
    Rng rng = {21};
    int full[ROWS * ROW_T] = {0};
    memset(ids, 0, ROWS * ROW_T * sizeof(int));
    for (int k = 0; k < ROWS; k++) {
        int same = k == 2 || k == 4 || k == 5, length = 6 + k % 4 * 2;
        for (int t = 0; t < 4; t++) ids[k * ROW_T + t] = 40 + t;
        for (int t = 4; t < length; t++) {
            ids[k * ROW_T + t] = 97 + random_int(&rng, 9);
            full[k * ROW_T + t] = k != 6 && t != 7;                 // token 7 of a long answer is the tool's
        }
        if (!same) continue;
        memcpy(ids + k * ROW_T, ids, ROW_T * sizeof(int));
        memcpy(full + k * ROW_T, full, ROW_T * sizeof(int));
    }
    full[5 * ROW_T + 5] = 0;
    shift_mask(mask, full, ROWS, ROW_T);
}

static void model_equal_rows_are_found(void) {
    int ids[ROWS * ROW_T], mask[ROWS * ROW_T1], first[ROWS];
    static const int by_hand[ROWS] = {0, 1, 0, 3, 0, 5, -1};
    some_rows(ids, mask);
    find_first_rows(first, ids, mask, ROWS, ROW_T);
    CHECK(!memcmp(first, by_hand, sizeof first));
    CHECK(shared_length(ids, mask, ROWS, ROW_T) ==
          3); // the prompt but for its last token, which predicts a scored one
    const int none[2 * 3] = {0}, one[4] = {5, 6, 5, 7};
    CHECK(shared_length(one, none, 2, 2) == 1);                    // nothing scored: what is alike
}

// One plain pass per row, nothing packed: the values (K,T1), and with d the gradients of m.
static void plain_answers(float* out, Model* m, const float* d, const int* ids, const int* mask, int K,
                          int T) {
    for (int k = 0; k < K; k++) {
        int targets[64], n = 0, at = 0;
        float scored[64];
        Batch b = {0};
        for (int t = 0; t < T - 1; t++) {
            targets[t] = mask[k * (T - 1) + t] ? ids[k * T + t + 1] : -1;
            if (targets[t] >= 0) {
                n++;
                if (d) scored[n - 1] = d[k * (T - 1) + t];
            }
        }
        batch_add(&b, ids + k * T, targets, T - 1, -1);
        if (m->config.scalar) model_scalar_forward(m, &b);
        else model_forward(m, &b);
        const float* said = m->config.scalar ? m->acts.scalar : m->acts.logp;
        for (int t = 0; t < T - 1; t++) out[k * (T - 1) + t] = targets[t] >= 0 ? said[at++] : 0.0f;
        if (d && m->config.scalar) model_scalar_backward(m, &b, scored);
        else if (d) model_backward(m, &b, scored);
        CHECK(at == b.M && at == n);
        batch_free(&b);
    }
}

static void model_packed_answers_are_the_plain_ones(void) {
    // The same bits as one unpacked pass per row; gradients to rounding; an empty mask gives 0 and none.
    int ids[ROWS * ROW_T], mask[ROWS * ROW_T1];
    some_rows(ids, mask);
    for (int scalar = 0; scalar < 2; scalar++) {
        Config c = tiny;
        c.scalar = scalar;
        Model m = model_new(c), plain = model_new(c);
        model_init(&m, 6);
        if (scalar) fill_normal(m.weights.score, 12, 9);
        memcpy(plain.weights.memory, m.weights.memory, m.weights.count * sizeof(float));
        float out[ROWS * ROW_T1], expected[ROWS * ROW_T1], d[ROWS * ROW_T1];
        fill_normal(d, ROWS * ROW_T1, 8);
        for (int i = 0; i < ROWS * ROW_T1; i++) if (!mask[i]) d[i] = NAN;           // is not read
        model_zero_grads(&m);
        model_zero_grads(&plain);
        plain_answers(expected, &plain, d, ids, mask, ROWS, ROW_T);
        for (int twice = 0; twice < 2; twice++) {
            for (int i = 0; i < ROWS * ROW_T1; i++) out[i] = 9.0f;
            answers_forward(out, &m, ids, mask, ROWS, ROW_T);
            CHECK(same_bits(out, expected, ROWS * ROW_T1));
        }
        CHECK(m.batch.M < count_masked(mask, ROWS * ROW_T1));       // equal rows were computed once
        answers_backward(&m, d, ids, mask, ROWS, ROW_T);
        CHECK(square_of(plain.grads.memory, plain.grads.count) > 1e-6);
        CHECK(off_by(plain.grads.memory, m.grads.memory, 1.0, m.grads.count) < 1e-5);
        int none[ROWS * ROW_T1] = {0}, nonzero = 0;
        model_zero_grads(&m);
        answers_forward(out, &m, ids, none, ROWS, ROW_T);
        answers_backward(&m, d, ids, none, ROWS, ROW_T);
        for (int i = 0; i < ROWS * ROW_T1; i++) nonzero += out[i] != 0.0f;
        for (size_t i = 0; i < m.grads.count; i++) nonzero += m.grads.memory[i] != 0.0f;
        CHECK(nonzero == 0);
        model_free(&m), model_free(&plain);
    }
}

static void model_chapter_3_is_what_the_model_computes(void) {
    // On the model's logits these give what its forward pass gives and the sampler has recorded, to the bit.
    Model m = model_new(tiny);
    model_init(&m, 6);
    for (int i = 0; i < VOCAB_SIZE * 12; i++)
        m.weights.embedding[i] *= 20.0f; // logits that are not all alike
    enum { T = 9, T1 = T - 1 };
    const int ids[T] = {1, 2, 3, 50, 60, 70, 80, 90, 100}, all[T1] = {1, 1, 1, 1, 1, 1, 1, 1};
    float logp[T1], out[T1], entropy[T];
    answers_forward(out, &m, ids, all, 1, T);
    float* logits = floats(T * VOCAB_SIZE);
    memcpy(logits, m.acts.logits, T1 * VOCAB_SIZE * sizeof(float));
    token_logprobs(logp, logits, ids, 1, T, VOCAB_SIZE);
    CHECK(same_bits(logp, out, T1));
    Tokens prompt = {0};
    tokens_add(&prompt, 1, 0);
    tokens_add(&prompt, 2, 0);
    tokens_add(&prompt, 3, 0);
    Rollout* r = generate(&m, &prompt, 1, 3, (SampleOptions){8, 1.0f, 50, 0.9f}, NULL, 4, 0);
    int sampled = 0;
    for (int k = 0; k < 3; k++) {
        int n = r[k].prompt + r[k].length, mask[64] = {0};
        for (int t = 0; t + 1 < n; t++) mask[t] = 1;
        float said[64], nats[64], row[64];
        answers_forward(said, &m, r[k].ids, mask, 1, n);
        float* z = floats((size_t)n * VOCAB_SIZE);
        memcpy(z, m.acts.logits, (size_t)(n - 1) * VOCAB_SIZE * sizeof(float));
        token_logprobs(row, z, r[k].ids, 1, n, VOCAB_SIZE);
        token_entropy(nats, z, n - 1, VOCAB_SIZE);
        for (int t = 0; t + 1 < n; t++) {
            CHECK(row[t] == said[t]);
            if (!r[k].mask[t + 1]) continue;
            CHECK(r[k].logp[t] == row[t] && r[k].entropy[t] == nats[t]);
            sampled++;
        }
        free(z);
    }
    token_entropy(entropy, logits, T1, VOCAB_SIZE);
    CHECK(sampled > 12 && entropy[0] > 0.0f && entropy[0] < (float)log(265.0));
    free(logits), rollouts_free(r), tokens_free(&prompt), model_free(&m);
}

static void model_a_frozen_model_says_the_same(void) {
    // Three layers in the arrays of one: log-probabilities and scores bit for bit, also for a second batch.
    int ids[ROWS * ROW_T], mask[ROWS * ROW_T1];
    some_rows(ids, mask);
    for (int scalar = 0; scalar < 2; scalar++) {
        Config c = {VOCAB_SIZE, 96, 3, 16, 2, 1, 8, 24, 1, 10000.0f, 1e-6f, scalar};
        Model m = model_new(c), frozen = model_new(c);
        model_init(&m, 9);
        for (int i = 0; scalar && i < c.width; i++) m.weights.score[i] = (float)i - 7.5f;
        memcpy(frozen.weights.memory, m.weights.memory, m.weights.count * sizeof(float));
        frozen.frozen = 1;
        for (int K = 1; K <= ROWS; K += ROWS - 1) {
            float said[ROWS * ROW_T1], found[ROWS * ROW_T1];
            int scored = count_masked(mask, K * ROW_T1);
            answers_forward(said, &m, ids, mask, K, ROW_T);
            answers_forward(found, &frozen, ids, mask, K, ROW_T);
            CHECK(scored >= 2 && said[3] != 0.0f && same_bits(said, found, (size_t)(K * ROW_T1)));
        }
        model_free(&m), model_free(&frozen);
    }
}

// ---- decoding

// Twelve tokens have a loud unembedding, the others none: drawn about half of the time. <|assistant_end|>,
// which ends a rollout, and <|python_end|>, which calls the tool, are among them.
enum { CONTEXT = 96 };
static Model decoding_model(int context) {
    Model m = model_new((Config){VOCAB_SIZE, context, 2, 20, 4, 2, 6, 24, 0, 10000.0f, 1e-6f, 0});
    model_init(&m, 7);
    static const int loud[] = {48, 49, 50, 61, 97, 98, 99, 100, 101, 195, PYTHON_END, ASSISTANT_END};
    Rng rng = {9};
    memset(m.weights.unembedding, 0, (size_t)VOCAB_SIZE * 20 * sizeof(float));
    for (int k = 0; k < 12; k++)
        for (int i = 0; i < 20; i++)
            m.weights.unembedding[loud[k] * 20 + i] = (float)(0.8 * random_normal(&rng));
    for (int i = 0; i < VOCAB_SIZE * 20; i++) m.weights.embedding[i] *= 20.0f;   // tokens matter, too
    Tensor list[32];
    tensor_list(list, &m.weights, &m.config, "");
    for (int k = 0; k < tensor_count(&m.config); k++)                            // no two norms are the same
        for (int i = 0; i < list[k].rows && !list[k].cols; i++)
            list[k].data[i] += (float)(0.3 * random_normal(&rng));
    return m;
}

// `count` prompts of the given lengths; token i of prompt q is a byte that depends on both
static Tokens* make_prompts(const int* length, int count) {
    Tokens* prompts = allocate((size_t)count, sizeof(Tokens));
    for (int q = 0; q < count; q++) {
        Rng rng = random_stream(17, (uint64_t)q, 0);
        tokens_add(&prompts[q], BOS, 0);
        while (prompts[q].length < length[q]) tokens_add(&prompts[q], 97 + random_int(&rng, 5), 0);
    }
    return prompts;
}

static void free_prompts(Tokens* prompts, int count) {
    for (int q = 0; q < count; q++) tokens_free(&prompts[q]);
    free(prompts);
}

// Answers every <|python_end|> with <|output_start|> digit <|output_end|>; digit: tokens so far.
static int digit_tool(int* forced, int capacity, const int* ids, int length) {
    if (ids[length - 1] != PYTHON_END) return 0;
    int answer[3] = {OUTPUT_START, '0' + length % 10, OUTPUT_END}, n = min_int(3, capacity);
    memcpy(forced, answer, (size_t)n * sizeof(int));
    return n;
}

// The training batch of the rollouts: a prompt but for its last token, then its K continuations; `shared` =
// 0: each one written out. Sampled tokens are scored, forced ones not.
static void batch_of_rollouts(Batch* b, const Tokens* prompts, int B, int K, const Rollout* rollouts,
                              int shared) {
    int ids[2 * CONTEXT], targets[2 * CONTEXT];
    batch_clear(b);
    for (int q = 0; q < B; q++) {
        int P = prompts[q].length - 1, root = shared ? batch_add(b, prompts[q].ids, NULL, P, -1) : -1;
        for (int k = 0; k < K; k++) {
            const Rollout* r = &rollouts[q * K + k];
            int from = shared ? P : 0, end = r->prompt + r->length;
            for (int t = from; t < end; t++) {
                ids[t - from] = r->ids[t];
                targets[t - from] = t + 1 < end && r->mask[t + 1] ? r->ids[t + 1] : -1;
            }
            batch_add(b, ids, targets, end - 1 - from, root);
        }
    }
}

// How many recorded log-probabilities differ in any bit from the training pass's; -1: their numbers differ.
static int logp_mismatches(Model* m, const Tokens* prompts, int B, int K, const Rollout* rollouts,
                           int shared) {
    Batch b = {0};
    int different = 0, at = 0;
    batch_of_rollouts(&b, prompts, B, K, rollouts, shared);
    model_forward(m, &b);
    for (int i = 0; i < B * K; i++)
        for (int t = 0; t < rollouts[i].T - 1; t++) {
            if (!rollouts[i].mask[t + 1]) continue;
            if (at < b.M) different += !same_bits(&rollouts[i].logp[t], &m->acts.logp[at], 1);
            at++;
        }
    if (at != b.M) different = -1;
    batch_free(&b);
    return different;
}

// Two rollouts of one prompt, whose rows may differ in room: the same in every bit.
static int same_rollout(const Rollout* a, const Rollout* b) {
    size_t n = (size_t)(a->prompt + a->length), n1 = n - 1;
    return a->length == b->length && a->prompt == b->prompt && a->finished == b->finished &&
           !memcmp(a->ids, b->ids, n * sizeof(int)) && !memcmp(a->mask, b->mask, n * sizeof(int)) &&
           same_bits(a->logp, b->logp, n1) && same_bits(a->entropy, b->entropy, n1);
}

static const int some_lengths[4] = {2, 9, 61, 30};     // the shortest possible; one longer than QUERY_BLOCK
enum { SOME = 4, EACH = 5, NEW = 33 };
static const SampleOptions plain_sampling = {NEW, 1.0f, 0, 1.0f};

static void model_sampling_is_the_training_pass(void) {
    // What sampling records, with a cache, is bit for bit what the training pass computes, with the prompt
    // shared or written out. Rows finish at different times and some tokens are forced.
    Model m = decoding_model(CONTEXT);
    Tokens* prompts = make_prompts(some_lengths, SOME);
    Rollout* r = generate(&m, prompts, SOME, EACH, plain_sampling, digit_tool, 3, 0);
    int finished = 0, cut = 0, forced = 0, lengths = 0, last = -1;
    for (int i = 0; i < SOME * EACH; i++) {
        const Tokens* prompt = &prompts[i / EACH];
        CHECK(r[i].prompt == prompt->length &&
              !memcmp(r[i].ids, prompt->ids, (size_t)prompt->length * sizeof(int)));
        finished += r[i].finished;
        cut += !r[i].finished && r[i].length == NEW;
        lengths += r[i].length != last;
        last = r[i].length;
        for (int t = 0; t < r[i].length; t++) forced += !r[i].mask[r[i].prompt + t];
        // padding: token 0, mask 0, log-probability 0; the prompt has mask 0
        for (int t = 0; t < r[i].T; t++) {
            int answer = t >= r[i].prompt && t < r[i].prompt + r[i].length;
            if (!answer) CHECK(!r[i].mask[t] && (t < r[i].prompt || r[i].ids[t] == 0));
            if (t > 0 && !r[i].mask[t]) CHECK(r[i].logp[t - 1] == 0.0f && r[i].entropy[t - 1] == 0.0f);
        }
    }
    CHECK(finished >= 5 && cut >= 2 && forced >= 10 && lengths >= 8);   // else the test would show little
    CHECK(logp_mismatches(&m, prompts, SOME, EACH, r, 1) == 0);
    CHECK(logp_mismatches(&m, prompts, SOME, EACH, r, 0) == 0);
    rollouts_free(r), free_prompts(prompts, SOME);
    model_free(&m);
}

static void model_forced_tokens(void) {
    // After every sampled <|python_end|> come the tool's three tokens with mask 0 and log-probability 0; all
    // else is sampled. A row ends with <|assistant_end|> or <|bos|>, or is full.
    Model m = decoding_model(CONTEXT);
    Tokens* prompts = make_prompts(some_lengths, SOME);
    Rollout* r = generate(&m, prompts, SOME, EACH, plain_sampling, digit_tool, 4, 0);
    int wrong = 0, calls = 0;
    for (int i = 0; i < SOME * EACH; i++) {
        int pending = 0, called_at = 0, ended = 0;
        for (int t = 0; t < r[i].length; t++) {
            int id = r[i].ids[r[i].prompt + t], sampled = r[i].mask[r[i].prompt + t];
            float logp = r[i].logp[r[i].prompt + t - 1], entropy = r[i].entropy[r[i].prompt + t - 1];
            wrong += ended;                                  // nothing follows the end
            if (pending) {
                int digit = '0' + (called_at + 1) % 10;
                wrong += id != (pending == 3 ? OUTPUT_START : pending == 2 ? digit : OUTPUT_END);
                wrong += sampled != 0 || logp != 0.0f || entropy != 0.0f;
                pending--;
                continue;
            }
            wrong += sampled != 1 || !(logp < 0.0f) || !(entropy > 0.0f);
            if (id == PYTHON_END) {
                pending = 3;
                called_at = t;
                calls++;
            }
            ended = id == ASSISTANT_END || id == BOS;
        }
        wrong += r[i].finished != ended;
        wrong += !r[i].finished && r[i].length != NEW && r[i].length != CONTEXT - prompts[i / EACH].length;
    }
    CHECK(wrong == 0);
    CHECK(calls >= 5);
    rollouts_free(r), free_prompts(prompts, SOME);
    model_free(&m);
}

static int ending_tool(int* forced, int capacity, const int* ids, int length) {
    (void)capacity;
    (void)ids;
    forced[0] = ASSISTANT_END;
    return length == 1;
}

static int flooding_tool(int* forced, int capacity, const int* ids, int length) {
    (void)ids;
    for (int i = 0; i < capacity; i++) forced[i] = 'x';
    return length == 2 ? capacity : 0;
}

static void model_forced_tokens_at_the_edges(void) {
    Model m = decoding_model(CONTEXT);
    Tokens* prompts = make_prompts(some_lengths, 2);
    // a forced <|assistant_end|> does not end a rollout: only the model's own word does
    Rollout* r = generate(&m, prompts, 2, 3, (SampleOptions){4, 1.0f, 0, 1.0f}, ending_tool, 6, 0);
    int after = 0;
    for (int i = 0; i < 6; i++)
        if (r[i].length > 1) {
            const int *answer = r[i].ids + r[i].prompt, *mask = r[i].mask + r[i].prompt;
            CHECK(answer[1] == ASSISTANT_END && mask[1] == 0);
            CHECK(r[i].length > 2 && mask[2] == 1);
            after++;
        }
    CHECK(after > 0);
    rollouts_free(r);
    // a tool that forces more than there is room for: the rollout is cut off at max_new_tokens
    r = generate(&m, prompts, 2, 3, (SampleOptions){9, 1.0f, 0, 1.0f}, flooding_tool, 6, 0);
    for (int i = 0; i < 6; i++) {
        if (r[i].finished) continue;
        const int *answer = r[i].ids + r[i].prompt, *mask = r[i].mask + r[i].prompt;
        CHECK(r[i].length == 9 && mask[1] == 1 && mask[2] == 0 && mask[8] == 0);
        CHECK(answer[8] == 'x');
    }
    rollouts_free(r), free_prompts(prompts, 2);
    model_free(&m);
}

static void model_rollouts_do_not_depend_on_the_batch(void) {
    // More rows than one decoding batch takes and more prompt tokens than the 1024 of one prefill: each
    // prompt's rollouts are the same bits when it is sampled alone (`first` keeps its stream), or with
    // another number of them.
    enum { B = 24, K = 6 };
    int length[B], total = 0;
    for (int q = 0; q < B; q++) length[q] = q == 7 ? 2 : 70 - q;
    for (int q = 0; q < DECODE_ROWS / K; q++) total += length[q];
    CHECK(B * K > DECODE_ROWS && total > 1024);
    SampleOptions o = {12, 1.0f, 0, 1.0f};
    Model m = decoding_model(CONTEXT);
    Tokens* prompts = make_prompts(length, B);
    Rollout* all = generate(&m, prompts, B, K, o, digit_tool, 5, 100);
    int different = 0, distinct = 0;
    for (int q = 0; q < B; q++) {
        Rollout* alone = generate(&m, prompts + q, 1, K, o, digit_tool, 5, 100 + (uint64_t)q);
        for (int k = 0; k < K; k++) {
            different += !same_rollout(&alone[k], &all[q * K + k]);
            CHECK(alone[k].prompt == prompts[q].length && all[q * K + k].prompt == prompts[q].length);
        }
        distinct += !same_rollout(&alone[0], &alone[1]);
        rollouts_free(alone);
    }
    CHECK(different == 0);
    CHECK(distinct >= B - 2);          // the rollouts of a prompt differ among themselves
    Rollout* more = generate(&m, prompts + 3, 2, 7, o, digit_tool, 5, 103);
    for (int q = 0; q < 2; q++)
        for (int k = 0; k < K; k++) CHECK(same_rollout(&more[q * 7 + k], &all[(3 + q) * K + k]));
    CHECK(logp_mismatches(&m, prompts, B, K, all, 1) == 0);
    Rollout* other = generate(&m, prompts, B, K, o, digit_tool, 6, 100);
    distinct = 0;
    for (int i = 0; i < B * K; i++) distinct += !same_rollout(&other[i], &all[i]);
    CHECK(distinct >= B * K - 12);      // another seed, other rollouts
    rollouts_free(all), rollouts_free(other), rollouts_free(more), free_prompts(prompts, B);
    model_free(&m);
}

static void model_rollouts_do_not_depend_on_threads(void) {
    // forty rollouts of each prompt: more rows than one batch takes, so that there is something to share out
    enum { K = 40 };
    CHECK(SOME * K > DECODE_ROWS);
    Model m = decoding_model(CONTEXT);
    Tokens* prompts = make_prompts(some_lengths, SOME);
    Rollout* first = NULL;
    for (int i = 0; i < THREAD_COUNTS; i++) {
        set_threads(thread_counts[i]);
        Rollout* r = generate(&m, prompts, SOME, K, (SampleOptions){12, 1.0f, 0, 1.0f}, digit_tool, 3, 0);
        for (int k = 0; k < SOME * K && i > 0; k++) CHECK(same_rollout(&r[k], &first[k]));
        if (i == 0) first = r;
        else rollouts_free(r);
    }
    set_threads(2);
    rollouts_free(first), free_prompts(prompts, SOME);
    model_free(&m);
}

static void model_greedy(void) {
    // temperature 0 takes the full pass's largest logit at every step, and so does top_k = 1 at any
    Model m = decoding_model(CONTEXT);
    Tokens* prompts = make_prompts(some_lengths, SOME);
    Rollout* r = generate(&m, prompts, SOME, 1, (SampleOptions){20, 0.0f, 0, 1.0f}, NULL, 1, 0);
    Rollout* one = generate(&m, prompts, SOME, 1, (SampleOptions){20, 1.0f, 1, 1.0f}, NULL, 2, 0);
    Rollout* hot = generate(&m, prompts, SOME, 1, (SampleOptions){20, 3.0f, 1, 1.0f}, NULL, 3, 0);
    Batch b = {0};
    int wrong = 0, at = 0;
    batch_of_rollouts(&b, prompts, SOME, 1, r, 1);
    model_forward(&m, &b);
    for (int i = 0; i < SOME; i++) {
        CHECK(same_rollout(&one[i], &r[i]) && same_rollout(&hot[i], &r[i]));
        for (int t = r[i].prompt; t < r[i].prompt + r[i].length; t++, at++) {
            const float* logits = m.acts.logits + (size_t)at * VOCAB_SIZE;
            wrong += logits[r[i].ids[t]] != maximum(logits, VOCAB_SIZE);
            wrong += !same_bits(&r[i].logp[t - 1], &m.acts.logp[at], 1);   // the model's own, not 0
        }
    }
    CHECK(wrong == 0 && at == b.M && at > 20);
    rollouts_free(r), rollouts_free(one), rollouts_free(hot), free_prompts(prompts, SOME);
    batch_free(&b), model_free(&m);
}

static void model_cut_off(void) {
    // 61 tokens in a context of 64 leave 3; 2 stop at max_new_tokens = 5. The end token is made quiet.
    Model m = decoding_model(64);
    for (int i = 0; i < 20; i++) m.weights.unembedding[ASSISTANT_END * 20 + i] = 0.0f;
    static const int length[3] = {61, 2, 63};
    Tokens* prompts = make_prompts(length, 3);
    Rollout* r = generate(&m, prompts, 3, 4, (SampleOptions){5, 1.0f, 12, 1.0f}, NULL, 1, 0);
    for (int k = 0; k < 4; k++) {
        CHECK(!r[k].finished && r[k].length == 3);
        CHECK(!r[4 + k].finished && r[4 + k].length == 5);
        CHECK(!r[8 + k].finished && r[8 + k].length == 1);
    }
    CHECK(logp_mismatches(&m, prompts, 3, 4, r, 1) == 0);
    rollouts_free(r), free_prompts(prompts, 3);
    model_free(&m);
}

static void model_greedy_ties(void) {
    // of two equal largest logits both ways take the first, of probability 1/(2 + 2/e) = 0.3655
    float logits[4] = {1, 2, 2, 1}, work[8], logp, entropy;
    const double p = 1.0 / (2.0 + 2.0 / exp(1.0)), q = p / exp(1.0);
    Rng rng = {1};
    for (int k = 0; k < 2; k++) {
        SampleOptions o = {1, k ? 1.0f : 0.0f, k, 1.0f};
        for (int n = 0; n < 20; n++) {
            CHECK(sample_token(&logp, &entropy, logits, 4, o, &rng, work) == 1);
            CHECK_NEAR(entropy, -2.0 * p * log(p) - 2.0 * q * log(q), 1e-6);   // the model's, not 0
            CHECK_NEAR(logp, -log(2.0 + 2.0 / exp(1.0)), 1e-6);
        }
    }
}

// ---- one token

// Counts 20,000 draws and checks what is recorded; expected[i]: probability under the sampler, 0 = never.
static void check_sampler(const double* probability, const double* expected, int V, SampleOptions o) {
    enum { DRAWS = 20000 };
    float logits[16], work[32], logp, entropy;
    double nats = 0.0;
    int count[16] = {0}, wrong = 0, kinds = 0;
    Rng rng = {77};
    for (int i = 0; i < V; i++) logits[i] = 3.0f + (float)log(probability[i]);   // any constant may be added
    for (int i = 0; i < V; i++) nats -= probability[i] * log(probability[i]);
    for (int n = 0; n < DRAWS; n++) {
        int id = sample_token(&logp, &entropy, logits, V, o, &rng, work);
        count[id]++;
        wrong += !(fabs((double)logp - log(probability[id])) <= 2e-6);           // the model's
        wrong += !(fabs((double)entropy - nats) <= 2e-6); // the model's, whatever the sampler
        wrong += expected[id] == 0.0;
    }
    CHECK(wrong == 0);
    // chi-square = sum (count - np)^2 / np: with up to 7 degrees of freedom above 29.9 once in 10,000 seeds
    double chi = 0.0;
    for (int i = 0; i < V; i++) {
        if (expected[i] == 0.0) { CHECK(count[i] == 0); continue; }
        double mean = DRAWS * expected[i];
        chi += (count[i] - mean) * (count[i] - mean) / mean;
        kinds++;
    }
    CHECK(chi < 29.9);
    CHECK(kinds == 1 || chi > 0.01);
}

// What is drawn: probabilities, and what the sampler makes of them, up to a factor.
static void model_sampler(void) {
    static const struct { double p[8], wanted[8]; float temperature; int top_k; float top_p; } cases[] = {
        {{0.4, 0.1, 0.25, 0.05, 0.2}, {0.4, 0.1, 0.25, 0.05, 0.2}, 1.0f, 0, 1.0f},
        {{0.4, 0.1, 0.25, 0.05, 0.2}, {0.4, 0.1, 0.25, 0.05, 0.2}, 1.0f, 5, 1.0f},    // top-k of all is all
        {{0.4, 0.1, 0.25, 0.05, 0.2}, {0.4, 0.1, 0.25, 0.05, 0.2}, 1.0f, 50, 1.0f},
        {{0.4, 0.1, 0.25, 0.05, 0.2}, {0.16, 0.01, 0.0625, 0.0025, 0.04}, 0.5f, 0, 1.0f},   // 1/2: squares
        {{16.0 / 34, 4.0 / 34, 9.0 / 34, 1.0 / 34, 4.0 / 34}, {4, 2, 3, 1, 2}, 2.0f, 0, 1.0f},   // 2: roots
        // the best three, four, one; of squares
        {{0.4, 0.1, 0.25, 0.05, 0.2}, {0.4, 0, 0.25, 0, 0.2}, 1.0f, 3, 1.0f},
        {{0.4, 0.1, 0.25, 0.05, 0.2}, {0.4, 0.1, 0.25, 0, 0.2}, 1.0f, 4, 1.0f},
        {{0.4, 0.1, 0.25, 0.05, 0.2}, {1, 0, 0, 0, 0}, 1.0f, 1, 1.0f},
        {{0.4, 0.1, 0.25, 0.05, 0.2}, {0.16, 0, 0.0625, 0, 0.04}, 0.5f, 3, 1.0f},
        // among equals at the border the first ones stay: exactly k, not more
        {{0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125}, {1, 1, 1, 0, 0, 0, 0, 0}, 1.0f, 3, 1.0f},
        {{0.125, 0.25, 0.125, 0.25, 0.125, 0.125}, {1, 2, 1, 2, 0, 0}, 1.0f, 4, 1.0f},
        // top-p: 0.4 < 0.6 <= 0.4 + 0.25, so two tokens are the smallest set that has 0.6
        {{0.4, 0.1, 0.25, 0.05, 0.2}, {0.4, 0, 0.25, 0, 0}, 1.0f, 0, 0.6f},
        {{0.4, 0.1, 0.25, 0.05, 0.2}, {0.4, 0, 0.25, 0, 0.2}, 1.0f, 0, 0.7f},
        {{0.4, 0.1, 0.25, 0.05, 0.2}, {1, 0, 0, 0, 0}, 1.0f, 0, 0.3f},
        {{0.4, 0.1, 0.25, 0.05, 0.2}, {1, 0, 0, 0, 0}, 1.0f, 0, 1e-6f},   // one token always stays,
        {{0.4, 0.1, 0.25, 0.05, 0.2}, {1, 0, 0, 0, 0}, 1.0f, 0, 0.0f},    // even when none is asked for
        // after top-k it is the share of what top-k left: of (0.4, 0.25, 0.2) / 0.85, 0.47 < 0.75 <= 0.76
        {{0.4, 0.1, 0.25, 0.05, 0.2}, {0.4, 0, 0.25, 0, 0}, 1.0f, 3, 0.75f},
        // under ties: 1/2 + 1/8 has 0.6, so one of the four equals stays, the first
        {{0.125, 0.125, 0.5, 0.125, 0.125}, {0.125, 0, 0.5, 0, 0}, 1.0f, 0, 0.6f},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double expected[8], sum = 0.0;
        int V = 0;
        for (; V < 8 && cases[i].p[V] > 0.0; V++) sum += cases[i].wanted[V];
        for (int k = 0; k < V; k++) expected[k] = cases[i].wanted[k] / sum;
        check_sampler(cases[i].p, expected, V,
                      (SampleOptions){1, cases[i].temperature, cases[i].top_k, cases[i].top_p});
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

// One supervised update, as ./train_gpt does it.
static double train_step(Model* m, Optimizer* o, const Tokens* const* list, int count, double lr,
                         double max_norm, AdamOptions adam, double* norm) {
    double loss = sft_loss(m, list, count, 1);
    *norm = clip_and_step(m, o, lr, max_norm, adam);
    return loss;
}

static const AdamOptions adam = {0.9f, 0.95f, 1e-8f, 0.1f};
static const Config toy_config = {VOCAB_SIZE, 96, 2, 20, 4, 2, 6, 30, 1, 10000.0f, 1e-6f, 0};

enum { TOY = 6 };
static void make_toy_set(Tokens* set, const Tokens** list) {
    static const char* const text[TOY][2] = {
        {"2+3", "<<2+3=5>>5\n#### 5"}, {"4+4", "8"}, {"1+6", "<<1+6=7>>7"}, {"5+5", "It is 10."},
        {"Ann has 2 pears and buys 7. How many now?", "2+7=<<2+7=9>>9\n#### 9"}, {"9-1", "8"}};
    for (int i = 0; i < TOY; i++) {
        set[i] = (Tokens){0};
        render_conversation(&set[i], text[i][0], text[i][1]);
        list[i] = &set[i];
    }
}

static void model_training_learns(void) {
    // First every token has about 1/265, loss near ln 265 = 5.58; after 60 updates the six answers are known.
    Tokens set[TOY];
    const Tokens* list[TOY];
    make_toy_set(set, list);
    Model m = model_new(toy_config);
    model_init(&m, 1);
    Optimizer o = optimizer_new(&m.config);
    double first = 0.0, last = 0.0, norm = 0.0;
    for (int step = 0; step < 60; step++) {
        last = train_step(&m, &o, list, TOY, 0.01f, 1.0f, adam, &norm);
        if (step == 0) first = last;
        CHECK(isfinite(last) && isfinite(norm) && norm > 0.0);
    }
    CHECK_NEAR(first, log(265.0), 0.05);
    CHECK(last < 0.3);
    CHECK(o.step == 60);
    for (int i = 0; i < TOY; i++) tokens_free(&set[i]);
    model_free(&m), optimizer_free(&o);
}

static void model_training_does_not_depend_on_threads(void) {
    // Losses, norms and all weights after three updates, bit for bit. 60 conversations are several tasks.
    Tokens set[TOY];
    const Tokens *list[TOY], *many[60];
    make_toy_set(set, list);
    int tokens = 0;
    for (int i = 0; i < 60; i++) {
        many[i] = list[i * i % TOY];
        tokens += many[i]->length;
    }
    CHECK(tokens > 1000 && 60 > 2 * TOGETHER);
    float* weights = NULL;
    double loss[3] = {0}, norm[3] = {0};
    for (int t = 0; t < THREAD_COUNTS; t++) {
        set_threads(thread_counts[t]);
        Model m = model_new(toy_config);
        model_init(&m, 1);
        Optimizer o = optimizer_new(&m.config);
        for (int step = 0; step < 3; step++) {
            double n, l = train_step(&m, &o, many, 60, 0.01f, 1.0f, adam, &n);
            if (t == 0) {
                loss[step] = l;
                norm[step] = n;
            }
            CHECK(l == loss[step] && n == norm[step]);
        }
        if (t == 0) {
            weights = floats(m.weights.count);
            memcpy(weights, m.weights.memory, m.weights.count * sizeof(float));
        }
        CHECK(same_bits(m.weights.memory, weights, m.weights.count));
        model_free(&m), optimizer_free(&o);
    }
    set_threads(2);
    free(weights);
    for (int i = 0; i < TOY; i++) tokens_free(&set[i]);
}

static void model_loss_of_conversations(void) {
    // 60 conversations, in several passes: loss and gradient are those of one batch of them all.
    Tokens set[TOY];
    const Tokens *list[TOY], *many[60];
    make_toy_set(set, list);
    Model m = model_new(toy_config);
    model_init(&m, 1);
    Batch b = {0};
    long mask = 0;
    int tokens = 0, targets[96];
    for (int i = 0; i < 60; i++) {
        many[i] = list[i * i % TOY];
        int n = many[i]->length - 1;
        for (int t = 0; t < n; t++)
            targets[t] = many[i]->mask[t + 1] ? many[i]->ids[t + 1] : -1; // token t predicts token t + 1
        batch_add(&b, many[i]->ids, targets, n, -1);
        tokens += n;
        for (int t = 0; t < many[i]->length; t++) mask += many[i]->mask[t];
    }
    CHECK(b.N == tokens && b.M == mask);
    // the padded arrays: ids, and the mask shifted by one; behind the end 0
    Padded p = pad_conversations(list, TOY);
    for (int k = 0; k < TOY; k++)
        for (int t = 0; t < p.T; t++) {
            CHECK(p.ids[k * p.T + t] == (t < set[k].length ? set[k].ids[t] : 0));
            if (t + 1 < p.T)
                CHECK(p.mask[k * (p.T - 1) + t] == (t + 1 < set[k].length ? set[k].mask[t + 1] : 0));
        }
    padded_free(&p);
    float* d = floats((size_t)b.M);
    double sum = 0.0;
    model_forward(&m, &b);
    for (int i = 0; i < b.M; i++) {
        sum -= (double)m.acts.logp[i];
        d[i] = -1.0f / (float)mask;
    }
    model_zero_grads(&m);
    model_backward(&m, &b, d);
    float* gradient = floats(m.grads.count);
    memcpy(gradient, m.grads.memory, m.grads.count * sizeof(float));
    model_zero_grads(&m);
    CHECK_NEAR(sft_loss(&m, many, 60, 1), sum / (double)mask, 1e-6);
    CHECK(off_by(gradient, m.grads.memory, 1.0, m.grads.count) < 1e-5);
    double square = square_of(gradient, m.grads.count);
    // without learning: the same loss, and the gradients stay as they are
    memcpy(gradient, m.grads.memory, m.grads.count * sizeof(float));
    CHECK_NEAR(sft_loss(&m, many, 60, 0), sum / (double)mask, 1e-6);
    CHECK(same_bits(gradient, m.grads.memory, m.grads.count));
    // an update: the same mean loss; |g|, and its clipped length (beta1 = 0: AdamW's first moment is the
    // gradient); learning rate 0 moves nothing; afterwards the gradient is 0
    Optimizer o = optimizer_new(&m.config);
    AdamOptions plain = {0.0f, 0.95f, 1e-8f, 0.1f};
    float* before = floats(m.weights.count);
    memcpy(before, m.weights.memory, m.weights.count * sizeof(float));
    model_zero_grads(&m);
    double norm;
    CHECK_NEAR(train_step(&m, &o, many, 60, 0.0, 0.125, plain, &norm), sum / (double)mask, 1e-6);
    CHECK_NEAR(norm, sqrt(square), 1e-5);
    CHECK(norm > 0.125);
    CHECK_NEAR(sqrt(square_of(o.first.memory, o.first.count)), 0.125, 1e-6);
    CHECK(same_bits(before, m.weights.memory, m.weights.count));
    CHECK(square_of(m.grads.memory, m.grads.count) == 0.0);
    free(before);
    for (int i = 0; i < TOY; i++) tokens_free(&set[i]);
    free(d), free(gradient);
    model_free(&m), optimizer_free(&o), batch_free(&b);
}

static void model_update_without_scored_tokens(void) {
    // the assistant says nothing, or there is no conversation: loss 0, norm 0, no NaN anywhere
    Tokens t = {0};
    for (int i = 0; i < 9; i++) tokens_add(&t, 'a' + i, 0);
    const Tokens* list[2] = {&t, &t};
    Model m = model_new(toy_config);
    model_init(&m, 1);
    Optimizer o = optimizer_new(&m.config);
    for (int count = 2; count >= 0; count -= 2) {
        double norm = 1.0, loss = train_step(&m, &o, list, count, 0.01f, 1.0f, adam, &norm);
        int bad = 0;
        for (size_t i = 0; i < m.weights.count; i++) bad += !isfinite(m.weights.memory[i]);
        CHECK(loss == 0.0 && norm == 0.0 && bad == 0);
    }
    tokens_free(&t);
    model_free(&m), optimizer_free(&o);
}

static void test_model(void) {
    RUN(model_what_is_refused);
    set_threads(2);                  // where there are threads; what copies the process came before
    RUN_ALL(TEST(model_exp_error), TEST(model_exp_at_the_joints), TEST(model_exp_at_the_ends),
            TEST(model_dot), TEST(model_maximum), TEST(model_exp_and_sum), TEST(model_matmul),
            TEST(model_matmul_long_sums), TEST(model_matmul_order_of_the_sum),
            TEST(model_matmul_rows_are_independent), TEST(model_rng), TEST(model_random_streams),
            TEST(model_shuffle), TEST(model_reference), TEST(model_tensors_cover_the_weights),
            TEST(model_initial_weights), TEST(model_scalar_by_hand), TEST(model_scalar_has_the_same_body),
            TEST(model_batch), TEST(model_matmul_strips_in_parallel), TEST(model_matmul_strips_in_parallel),
            TEST(model_turns_follow_from_the_size), TEST(model_equal_rows_are_found),
            TEST(model_packed_answers_are_the_plain_ones), TEST(model_chapter_3_is_what_the_model_computes),
            TEST(model_a_frozen_model_says_the_same), TEST(model_sampling_is_the_training_pass),
            TEST(model_forced_tokens), TEST(model_forced_tokens_at_the_edges),
            TEST(model_rollouts_do_not_depend_on_the_batch), TEST(model_rollouts_do_not_depend_on_threads),
            TEST(model_greedy), TEST(model_greedy_ties), TEST(model_cut_off), TEST(model_sampler),
            TEST(model_keep_largest), TEST(model_training_learns),
            TEST(model_training_does_not_depend_on_threads), TEST(model_loss_of_conversations),
            TEST(model_update_without_scored_tokens));
}

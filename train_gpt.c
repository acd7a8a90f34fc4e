/*
train_gpt.c - a tiny GPT, from random numbers to a checkpoint, on a CPU.

This is the model that rl.c trains by reinforcement learning: the architecture of Qwen3 at a thousandth of
its size. The file reads top to bottom, and nothing is used long before it is explained:

    1  small things          errors, memory, random numbers, time, files
    2  arithmetic            the exponential, sums in a fixed order
    3  matrix multiplication where the time goes
    4  layers                each one a forward and a backward function, side by side
    5  the model             parameters, a batch, forward, backward
    6  the optimizer         AdamW, gradient clipping, the learning-rate schedule
    7  text and tokens       bytes, nine special tokens, conversations and their mask
    8  decoding              many rollouts at once with a key/value cache
    9  JSON                  reading and writing the little that is needed
   10  options               one table: the command line, --help, what a resumed run remembers
   11  checkpoints and runs  a Hugging Face model directory, the folder of a run, its table and its end
   12  supervised training   the loop

Letters for sizes, everywhere:
    N tokens in a batch     S segments (sequences)   V vocabulary     C width of the residual stream
    L layers                H query heads            G key/value heads D width of one head
    F width of the MLP      Q = (H + 2G) D, the width of query, key and value side by side

Arrays are row-major: "x (N,C)" means that element (n,c) is x[n*C + c].

Three decisions shape the rest.

Log-probabilities are the interface. The forward pass ends in logp, the log-probability of each token that
is scored; the backward pass begins with d(loss)/d(logp). Supervised training, policy gradients, clipping,
KL penalties and DPO differ only in the few lines in between, and these live in rl.c.

Nothing is padded. A batch is one stream of N tokens cut into segments. A segment may continue an earlier
one: sixteen rollouts of one question share the question's tokens, which are computed once.

Every sum has one order. No result depends on the number of threads, nor on what else is in the batch: a
token's log-probability while sampling equals, bit for bit, the one of the training pass.
*/
#define _XOPEN_SOURCE 700
#define _DARWIN_C_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifndef __GNUC__
#define __attribute__(what)   // of gcc and clang
#endif
#ifdef _OPENMP
#include <omp.h>
#else   // one thread
static int omp_get_max_threads(void) { return 1; }
static int omp_get_thread_num(void) { return 0; }
static int omp_in_parallel(void) { return 0; }
static void omp_set_num_threads(int threads) { (void)threads; }
#endif

// ==== 1  Small things ========================================================================

// An error is one sentence on stderr and the end of the program. Status 2 is the user's to mend (a wrong
// option, a broken file); status 1 is everything else (no memory, a full disk).
__attribute__((format(printf, 2, 3))) _Noreturn static void fail(int status, const char* format, ...) {
    char line[10000];   // room for two paths; one line, whatever bytes a name or a file contributes to it
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    for (char* p = line; *p; p++) if ((unsigned char)*p < 0x20 || *p == 0x7F) *p = '?';
    fflush(stdout);
    fprintf(stderr, "error: %s\n", line);
    exit(status);
}

// Ctrl-C asks the loop to finish its update, to save and to say how to go on. A second Ctrl-C ends at once,
// and so does one while no loop is looking (-1).
static volatile sig_atomic_t stop_asked = -1;
static void on_stop(int sig) {
    static const char words[] = "error: stopped by a signal; what was not written yet is lost\n";
    if (stop_asked == 0) stop_asked = 1;
    else _exit(write(2, words, sizeof words - 1) < 0 ? 1 : 128 + sig);
}

// What was ignored when the program was started (nohup does this) stays so. The last two become errors like a
// full disk: a file beyond the user's limit, a pipe that nobody reads.
static void watch_signals(void) {
    static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction stop = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
    for (int i = 0; i < 3; i++) {
        struct sigaction before;
        sigaction(stops[i], NULL, &before);
        if (before.sa_handler != SIG_IGN) sigaction(stops[i], &stop, NULL);
    }
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
}

// A program that is started with a closed stdin, stdout or stderr would open its files in that place, and
// what it prints would end up in them.
static void open_standard_streams(void) {
    int file;
    while ((file = open("/dev/null", O_RDWR)) >= 0 && file <= 2) {}
    if (file > 2) close(file);
    watch_signals();
}

// The last thing of main(): a full disk behind stdout is an error too.
static int end_of_output(int status) {
    if (fflush(stdout) != 0 || ferror(stdout)) fail(1, "the output could not be written");
    return status;
}

// count x size bytes, all zero (calloc refuses an overflow); never NULL
static void* allocate(size_t count, size_t size) {
    void* memory = calloc(count ? count : 1, size ? size : 1);
    if (!memory) fail(1, "out of memory: %zu x %zu bytes were asked for", count, size);
    return memory;
}

// make room for `count` elements, at least 1: the old content stays, the new part is not cleared
static void* enlarge(void* memory, size_t count, size_t size) {
    memory = count > SIZE_MAX / size ? NULL : realloc(memory, count * size);
    if (!memory) fail(1, "out of memory: %zu x %zu bytes were asked for", count, size);
    return memory;
}

static int min_int(int a, int b) { return a < b ? a : b; }
static int max_int(int a, int b) { return a > b ? a : b; }

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// The largest resident size so far, in MB (getrusage counts KB on Linux, bytes on macOS).
static double peak_memory_mb(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
    return (double)usage.ru_maxrss / 1e6;
#else
    return (double)usage.ru_maxrss / 1e3;
#endif
}

enum { MAX_THREADS = 1024 };
static int thread_count(void) { return omp_get_max_threads(); }
static void set_threads(int threads) {   // 0 = as many as there are cores
    omp_set_num_threads(min_int(threads > 0 ? threads : thread_count(), MAX_THREADS));
}

// Random numbers: splitmix64 (Steele, Lea, Flood 2014). The state is one counter, so that a stream
// of its own for every rollout costs nothing: see random_stream().
typedef struct { uint64_t state; } Rng;

static uint64_t mix_u64(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static uint64_t random_u64(Rng* rng) { return mix_u64(rng->state += 0x9E3779B97F4A7C15u); }

// uniform in [0,1), 24 bits
static float random_uniform(Rng* rng) { return (float)(random_u64(rng) >> 40) * 0x1p-24f; }

// uniform in 0..n-1; the bias of the modulus is below n / 2^64
static int random_int(Rng* rng, int n) { return (int)(random_u64(rng) % (uint64_t)n); }

// standard normal, by Box and Muller
static double random_normal(Rng* rng) {
    double u = 1.0 - (double)(random_u64(rng) >> 11) * 0x1p-53;
    double v = (double)(random_u64(rng) >> 11) * 0x1p-53;
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

// The stream that belongs to (seed, a, b). What a rollout draws depends on who it is, not on what was drawn
// before, on the order of the batch or on the number of threads.
static Rng random_stream(uint64_t seed, uint64_t a, uint64_t b) {
    return (Rng){mix_u64(mix_u64(mix_u64(seed + 0x9E3779B97F4A7C15u) + a) + b)};
}

// a permutation of 0..n-1 (Fisher and Yates)
static void shuffle(int* order, int n, Rng* rng) {
    for (int i = 0; i < n; i++) order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = random_int(rng, i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

// ---- files

// A growing piece of text or bytes; data[length] is always 0.
typedef struct { char* data; size_t length, capacity; } Text;

// Without bytes (NULL) there is only room for them.
static void text_append(Text* text, const void* bytes, size_t count) {
    if (text->length + count + 1 > text->capacity) {
        text->capacity = 2 * (text->length + count + 1);
        text->data = enlarge(text->data, text->capacity, 1);
    }
    if (bytes) memcpy(text->data + text->length, bytes, count);
    text->length += count;
    text->data[text->length] = 0;
}

__attribute__((format(printf, 2, 3))) static void text_printf(Text* text, const char* format, ...) {
    va_list args;
    va_start(args, format);
    size_t count = max_int(vsnprintf(NULL, 0, format, args), 0);
    va_end(args);
    text_append(text, NULL, count);
    va_start(args, format);
    vsnprintf(text->data + text->length - count, count + 1, format, args);
    va_end(args);
}

static void text_free(Text* text) {
    free(text->data);
    *text = (Text){0};
}

static int file_exists(const char* path) { return access(path, F_OK) == 0; }

static int same_folder(const char* a, const char* b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

// path = folder/name, checked for length
enum { PATH_SIZE = 4096 };
static void join_path(char path[PATH_SIZE], const char* folder, const char* name) {
    if (snprintf(path, PATH_SIZE, "%s/%s", folder, name) >= PATH_SIZE)
        fail(2, "the path %s/%s is too long", folder, name);
}

// The rest of an open file, with a 0 behind it; the file is closed. NULL, or what cannot be read, ends the
// program with status 2, as does a file without an end, such as /dev/zero.
enum { FILE_LIMIT = 1 << 28 };
static Text read_stream(FILE* file, const char* path) {
    if (!file) fail(2, "cannot open %s: %s", path, strerror(errno));
    Text text = {0};
    char block[1 << 16];
    size_t count;
    text_append(&text, "", 0);
    while ((count = fread(block, 1, sizeof block, file)) > 0) {
        text_append(&text, block, count);
        if (text.length > FILE_LIMIT)
            fail(2, "%s has more than %d MB; no file is read that is larger", path, FILE_LIMIT >> 20);
    }
    if (ferror(file)) fail(2, "cannot read %s: %s", path, strerror(errno));
    fclose(file);
    return text;
}

static Text read_file(const char* path) { return read_stream(fopen(path, "rb"), path); }

// mkdir -p
static void make_folder(const char* folder) {
    char path[PATH_SIZE];
    if (!*folder) fail(2, "a directory was expected, but its name is empty");
    join_path(path, folder, ".");
    for (char* p = path + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = 0;
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            fail(1, "cannot make the directory %s: %s", path, strerror(errno));
        *p = '/';
    }
    if (!file_exists(path)) fail(1, "%s is not a directory", folder);
}

// A name is on the disk when its folder is. (Not every system can do this.)
static void flush_folder(const char* folder) {
    int file = open(folder, O_RDONLY);
    fsync(file);
    close(file);
}

// Closes a file that was written, once its bytes are on the disk. Returns 0, or why this failed (errno).
static int close_written(FILE* file) {
    int failed = !file || fflush(file) != 0 || ferror(file) || fsync(fileno(file)) != 0;
    int reason = failed ? errno : 0;
    if (file && fclose(file) != 0 && !failed) reason = errno;
    return reason;
}

// ==== 2  Arithmetic ==========================================================================

// The compiler may not reorder a sum, so `s += x[i]` stays one long chain and is never vectorized. Eight
// partial sums are eight chains: they fit a vector register, and their order is fixed by the code, not by a
// flag. This is why -ffast-math is not needed.
enum { SUMS = 8 };

static inline float add_up(const float* s) {
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

static inline float dot(const float* a, const float* b, int n) {
    float s[SUMS] = {0};
    int i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (int j = 0; j < SUMS; j++) s[j] += a[i + j] * b[i + j];
    for (int j = 0; i + j < n; j++) s[j] += a[i + j] * b[i + j];
    return add_up(s);
}

static inline float maximum(const float* x, int n) {
    float m[SUMS];
    for (int j = 0; j < SUMS; j++) m[j] = x[0];
    int i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (int j = 0; j < SUMS; j++) m[j] = m[j] < x[i + j] ? x[i + j] : m[j];
    for (; i < n; i++) m[0] = m[0] < x[i] ? x[i] : m[0];
    for (int j = 1; j < SUMS; j++) m[0] = m[0] < m[j] ? m[j] : m[0];
    return m[0];
}

// exp(x) without a branch or a call, so that loops over it vectorize: x = n ln 2 + r with |r| <= ln(2)/2,
// exp(x) = 2^n exp(r). Adding 1.5 * 2^23 rounds x / ln 2 to the integer n and leaves n in the low bits, from
// where it is shifted into the exponent field. ln 2 is subtracted in two parts, the first with so few bits
// that n times it is exact. exp(r) is a polynomial of degree 6 (a Taylor series whose last two coefficients
// are nudged). Error at most 1.02 ulp; exactly 0 below -87.3; held at exp(88) above.
static inline float fast_exp(float x) {
    // the tests compile this file with float = double
    if (sizeof(float) == sizeof(double)) return (float)exp((double)x);
    union { float f; uint32_t u; } t, scale;
    float c = x > 88.0f ? 88.0f : x;
    t.f = c * 1.44269504f + 12582912.0f;
    float n = t.f - 12582912.0f;
    float r = (c - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    scale.u = (t.u << 23) + 0x3F800000u;
    return x < -87.3f ? 0.0f : p * scale.f;
}

// x[i] <- exp(x[i] - shift); returns the sum
static inline float exp_and_sum(float* x, float shift, int n) {
    float s[SUMS] = {0};
    for (int i = 0; i < n; i++) x[i] = fast_exp(x[i] - shift);
    int i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (int j = 0; j < SUMS; j++) s[j] += x[i + j];
    for (int j = 0; i + j < n; j++) s[j] += x[i + j];
    return add_up(s);
}

// ==== 3  Matrix multiplication ===============================================================
//     c (M,N) = a (M,K) b (K,N)        or, with `accumulate`,  c += a b
//
// A core can start two vector multiply-adds per cycle but load only two vectors, so that a loop which loads
// both factors and the sum for every product runs at a third of its speed. The remedy is to keep a tile of c
// in registers: TILE_M x TILE_N sums. Each step of k then loads one row of b (TILE_N numbers) and TILE_M
// numbers of a, and does TILE_M * TILE_N multiply-adds with them. With 512-bit registers 12 x 32 is 24
// registers of sums and 2 for b; a step does 24 vector multiply-adds for 14 loads, 2 of b and 12 of a.
//
// The strip of b that a tile walks down is first copied into a `panel`: contiguous, padded with zeros to
// TILE_N, whatever the strides of b. So one kernel serves x W, dy W^T and x^T dy; only strides differ.
// Each element of c is one sum in the order k = 0, 1, 2, ...; neither tile nor panel changes that.
//
// vec is the compiler's portable vector type (gcc and clang): element-wise + and *, no intrinsics.

#if defined(__AVX512F__)
enum { VECTOR_BYTES = 64, TILE_M = 12 };
#elif defined(__AVX__)
enum { VECTOR_BYTES = 32, TILE_M = 6 };
#else
enum { VECTOR_BYTES = 16, TILE_M = 6 };
#endif
enum { LANES = VECTOR_BYTES / sizeof(float), TILE_V = 2, TILE_N = TILE_V * LANES, PANEL_K = 256 };
typedef float vec __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(float)), may_alias));

// A matrix seen through strides: element (i,j) is data[i*row + j*col]. Exchanging row and col transposes.
typedef struct { const float* data; size_t row, col; } View;
static View view(const float* data, size_t row) { return (View){data, row, 1}; }
static View transposed(const float* data, size_t row) { return (View){data, 1, row}; }

// c (TILE_M,TILE_N) = a (TILE_M,K) panel (K,TILE_N), or += with `add`; element (m,k) of a at a[m*row + k*col]
static inline __attribute__((always_inline))
void tile(float* c, size_t ldc, int add, const float* a, size_t row, size_t col, const float* panel, int K) {
#ifdef __GNUC__
    vec sum[TILE_M][TILE_V];
    for (int m = 0; m < TILE_M; m++)
        for (int v = 0; v < TILE_V; v++) sum[m][v] = add ? *(const vec*)(c + m * ldc + v * LANES) : (vec){0};
    for (int k = 0; k < K; k++) {
        vec b[TILE_V];
        for (int v = 0; v < TILE_V; v++) b[v] = *(const vec*)(panel + (size_t)k * TILE_N + v * LANES);
        for (int m = 0; m < TILE_M; m++) {
            float x = a[m * row + k * col];
            for (int v = 0; v < TILE_V; v++) sum[m][v] += x * b[v];
        }
    }
    for (int m = 0; m < TILE_M; m++)
        for (int v = 0; v < TILE_V; v++) *(vec*)(c + m * ldc + v * LANES) = sum[m][v];
#else
    for (int m = 0; m < TILE_M; m++)
        for (int n = 0; n < TILE_N && !add; n++) c[m * ldc + n] = 0.0f;
    for (int k = 0; k < K; k++)
        for (int m = 0; m < TILE_M; m++)
            for (int n = 0; n < TILE_N; n++) c[m * ldc + n] += a[m * row + k * col] * panel[k * TILE_N + n];
#endif
}

// panel (K,TILE_N) <- b (K,n), the missing columns 0
static void pack_panel(float* panel, View b, int K, int n) {
    if (n < TILE_N) memset(panel, 0, (size_t)K * TILE_N * sizeof(float));
    if (b.col == 1 && n == TILE_N) {
        for (int k = 0; k < K; k++)
            memcpy(panel + (size_t)k * TILE_N, b.data + k * b.row, TILE_N * sizeof(float));
    } else {
        for (int k = 0; k < K; k++)
            for (int j = 0; j < n; j++) panel[(size_t)k * TILE_N + j] = b.data[k * b.row + j * b.col];
    }
}

// One tile of c with m1 x n1 elements. At the right edge of c the result goes through a block of full size;
// at the lower edge zeros complete the rows of a. Inlined: a View in memory waits for the tile's stores.
static inline __attribute__((always_inline))
void matmul_tile(float* c, size_t ldc, int add, View a, const float* panel, int m1, int n1, int K) {
    float block[TILE_M * TILE_N], rows[PANEL_K * TILE_M], *target = c;
    size_t stride = ldc;
    if (m1 < TILE_M) {
        for (int k = 0; k < K; k++)
            for (int m = 0; m < TILE_M; m++)
                rows[k * TILE_M + m] = m < m1 ? a.data[m * a.row + k * a.col] : 0.0f;
        a = transposed(rows, TILE_M);
    }
    if (m1 < TILE_M || n1 < TILE_N) {
        target = block;
        stride = TILE_N;
        if (add) memset(block, 0, sizeof block);
        for (int m = 0; m < m1 && add; m++)
            for (int n = 0; n < n1; n++) block[m * TILE_N + n] = c[m * ldc + n];
    }
    // compiled twice, so that the compiler knows which of the two strides is 1
    if (a.col == 1) tile(target, stride, add, a.data, a.row, 1, panel, K);
    else tile(target, stride, add, a.data, 1, a.col, panel, K);
    if (target == block)
        for (int m = 0; m < m1; m++)
            for (int n = 0; n < n1; n++) c[m * ldc + n] = block[m * TILE_N + n];
}

// The columns n0 .. n0 + TILE_N - 1 of c.
static void matmul_strip(float* c, size_t ldc, View a, View b, int M, int N, int K, int accumulate, int n0) {
    float panel[PANEL_K * TILE_N];
    int n1 = min_int(TILE_N, N - n0);
    for (int k0 = 0; k0 < K; k0 += PANEL_K) {
        int k1 = min_int(PANEL_K, K - k0), add = accumulate || k0 > 0;
        pack_panel(panel, (View){b.data + k0 * b.row + n0 * b.col, b.row, b.col}, k1, n1);
        for (int m0 = 0; m0 < M; m0 += TILE_M) {
            int m1 = min_int(TILE_M, M - m0);
            View rows = {a.data + m0 * a.row + k0 * a.col, a.row, a.col};
            matmul_tile(c + m0 * ldc + n0, ldc, add, rows, panel, m1, n1, k1);
        }
    }
}

// c has the row stride ldc; a.row or a.col must be 1. A large product outside of the loops over questions and
// conversations gives its strips to the threads: one long answer, a large model. (The branch is written in C:
// a pragma with a false `if` would still cost a quarter of the speed inside of those loops.)
static void matmul(float* c, size_t ldc, View a, View b, int M, int N, int K, int accumulate) {
    if ((double)M * N * K > 1e6 && thread_count() > 1 && !omp_in_parallel()) {
        #pragma omp parallel for schedule(static)
        for (int n = 0; n < N; n += TILE_N) matmul_strip(c, ldc, a, b, M, N, K, accumulate, n);
    } else {
        for (int n = 0; n < N; n += TILE_N) matmul_strip(c, ldc, a, b, M, N, K, accumulate, n);
    }
}

// ==== 4  Layers: forward and backward side by side ===========================================
// A forward function computes y from x and weights w. Its backward function is the chain rule: it receives
// dy = d(loss)/dy, computes dx = d(loss)/dx, and ADDS d(loss)/dw to the gradient of the weights, because a
// step may consist of several batches. What it does to dx (store or add) is said at each one.

typedef struct {
    int vocab_size;      // V
    int context;         // longest sequence in tokens: prompt and answer together
    int layers;          // L
    int width;           // C
    int heads;           // H query heads
    int kv_heads;        // G key/value heads; each serves H / G query heads (grouped-query attention)
    int head_dim;        // D, even; H D need not be C
    int mlp_width;       // F
    int tied;            // 1 = the unembedding is the embedding
    float rope_theta;    // wavelengths of the rotary positions run from 2 pi to 2 pi theta
    float norm_eps;
    int scalar;          // 1 = one number per token instead of V logits: a reward or value model
                         // (tied then plays no part)
} Config;

static int qkv_width(const Config* c) { return (c->heads + 2 * c->kv_heads) * c->head_dim; }

// A batch: one stream of N tokens, cut into S segments. Segment s is ids[start[s]] .. ids[start[s+1]-1]. If
// prefix[s] = p >= 0, it continues segment p: its positions go on where p ends, and its tokens see all of p.
// A prefix is itself no continuation and comes directly before its continuations. targets[n] is the token
// whose log-probability is asked after reading token n, -1 where none is; scored lists the M that have one.
typedef struct {
    int N, S, M;
    int *ids, *targets, *position, *scored;   // (N), (N), (N), (M)
    int *start, *prefix;                      // (S+1), (S)
} Batch;

static void batch_clear(Batch* b) { b->N = b->S = b->M = 0; }

static void batch_free(Batch* b) {
    free(b->ids), free(b->targets), free(b->position), free(b->scored), free(b->start), free(b->prefix);
    *b = (Batch){0};
}

static int segment_length(const Batch* b, int s) { return b->start[s + 1] - b->start[s]; }

// Appends a segment and returns its index. targets may be NULL: nothing is scored then.
static int batch_add(Batch* b, const int* ids, const int* targets, int n, int prefix) {
    size_t tokens = b->N + n + 1, segments = b->S + 1;
    b->ids = enlarge(b->ids, tokens, sizeof(int));
    b->targets = enlarge(b->targets, tokens, sizeof(int));
    b->position = enlarge(b->position, tokens, sizeof(int));
    b->scored = enlarge(b->scored, tokens, sizeof(int));
    b->start = enlarge(b->start, segments + 1, sizeof(int));
    b->prefix = enlarge(b->prefix, segments, sizeof(int));
    int first = prefix < 0 ? 0 : segment_length(b, prefix);
    b->start[b->S] = b->N;
    b->prefix[b->S] = prefix;
    for (int i = 0; i < n; i++) {
        b->ids[b->N + i] = ids[i];
        b->targets[b->N + i] = targets ? targets[i] : -1;
        b->position[b->N + i] = first + i;
        if (targets && targets[i] >= 0) b->scored[b->M++] = b->N + i;
    }
    b->N += n;
    b->start[++b->S] = b->N;
    return b->S - 1;
}

// ---- embedding: x[n] = w[ids[n]]                                      x (N,C), w (V,C)

static void embedding_forward(float* x, const int* ids, const float* w, int N, int C) {
    for (int n = 0; n < N; n++, x += C) memcpy(x, w + (size_t)ids[n] * C, C * sizeof(float));
}

static void embedding_backward(float* dw, const float* dx, const int* ids, int N, int C) {
    for (int n = 0; n < N; n++) {
        float* row = dw + (size_t)ids[n] * C;
        for (int i = 0; i < C; i++) row[i] += dx[(size_t)n * C + i];
    }
}

// ---- RMSNorm: y = w x / rms(x), rms(x) = sqrt(mean(x^2) + eps)        (Zhang and Sennrich 2019)

static inline void rmsnorm_row(float* y, const float* x, const float* w, float eps, int C) {
    float scale = (float)(1.0 / sqrt((double)(dot(x, x, C) / (float)C + eps)));
    for (int i = 0; i < C; i++) y[i] = x[i] * scale * w[i];
}

// With s = 1/rms(x) and u = x s:   dx = s (w dy - u mean(w dy u)).   dw is added to; dx is added to or stored
// (dx may be dy itself when it is stored).
static inline void rmsnorm_row_backward(float* dx, float* dw, const float* dy, const float* x, const float* w,
                                        float eps, int C, int add) {
    float s = (float)(1.0 / sqrt((double)(dot(x, x, C) / (float)C + eps)));
    float sum[SUMS] = {0};
    for (int i = 0; i < C; i += SUMS)
        for (int j = 0; j < SUMS && i + j < C; j++) sum[j] += w[i + j] * dy[i + j] * x[i + j];
    float mean = add_up(sum) * s / (float)C;
    for (int i = 0; i < C; i++) {
        float g = dy[i], u = x[i] * s, d = s * (w[i] * g - u * mean);
        dw[i] += g * u;
        dx[i] = add ? dx[i] + d : d;
    }
}

static void rmsnorm_forward(float* y, const float* x, const float* w, float eps, int N, int C) {
    for (int n = 0; n < N; n++, y += C, x += C) rmsnorm_row(y, x, w, eps, C);
}

// dx += ..., dw += ...
static void rmsnorm_backward(float* dx, float* dw, const float* dy, const float* x, const float* w, float eps,
                             int N, int C) {
    for (int n = 0; n < N; n++, dx += C, dy += C, x += C) rmsnorm_row_backward(dx, dw, dy, x, w, eps, C, 1);
}

// ---- rotary positions
// Each pair (x[i], x[i + D/2]) is turned by the angle position * theta^(-2i/D), so that the product of a
// query and a key depends on how far apart they are (Su et al. 2021; the "rotate half" pairing of Hugging
// Face's models). Turning back is the backward pass, since a rotation's transpose is its inverse.

static void rope_table(float* cosine, float* sine, const Config* c) {   // (context, D/2) each
    for (int t = 0; t < c->context; t++)
        for (int i = 0; i < c->head_dim / 2; i++) {
            double angle = t * pow(c->rope_theta, -2.0 * i / c->head_dim);
            *cosine++ = (float)cos(angle);
            *sine++ = (float)sin(angle);
        }
}

static inline void rope_row(float* x, const float* cosine, const float* sine, int D, float direction) {
    int half = D / 2;
    for (int i = 0; i < half; i++) {
        float a = x[i], b = x[i + half], s = direction * sine[i];
        x[i] = a * cosine[i] - b * s;
        x[i + half] = b * cosine[i] + a * s;
    }
}

// ---- query and key: per head RMSNorm, then RoPE; the value is copied.
// y, qkv (N,Q): H queries, G keys, G values

static void qk_forward(float* y, const float* qkv, const float* wq, const float* wk, const float* cosine,
                       const float* sine, const int* position, int N, const Config* c) {
    int H = c->heads, G = c->kv_heads, D = c->head_dim, Q = qkv_width(c);
    size_t half = D / 2;
    for (int n = 0; n < N; n++, y += Q, qkv += Q) {
        for (int h = 0; h < H + G; h++) {
            rmsnorm_row(y + h * D, qkv + h * D, h < H ? wq : wk, c->norm_eps, D);
            rope_row(y + h * D, cosine + position[n] * half, sine + position[n] * half, D, 1.0f);
        }
        memcpy(y + (H + G) * D, qkv + (H + G) * D, G * D * sizeof(float));
    }
}

// dy (N,Q) is replaced by the gradient with respect to qkv
static void qk_backward(float* dy, float* dwq, float* dwk, const float* qkv, const float* wq, const float* wk,
                        const float* cosine, const float* sine, const int* position, int N, const Config* c) {
    int H = c->heads, G = c->kv_heads, D = c->head_dim, Q = qkv_width(c);
    size_t half = D / 2;
    for (int n = 0; n < N; n++, dy += Q, qkv += Q)
        for (int h = 0; h < H + G; h++) {
            float *d = dy + h * D, *dw = h < H ? dwq : dwk;
            rope_row(d, cosine + position[n] * half, sine + position[n] * half, D, -1.0f);
            rmsnorm_row_backward(d, dw, d, qkv + h * D, h < H ? wq : wk, c->norm_eps, D, 0);
        }
}

// ---- attention: out_i = sum_j p_ij v_j over the keys j that token i may see,
//      p_ij = exp(q_i k_j / sqrt(D)) / sum_j exp(q_i k_j / sqrt(D))
//
// In each head a token has a query q (what it looks for), a key k (what it is found by) and a value v (what
// it passes on), all three computed from its x; H / G query heads share one head's keys and values.
//
// A token sees the whole prefix of its segment and its segment up to itself. The queries of a segment are
// taken in blocks; a block's scores are a small matrix product, so are the outputs. Only the logarithm of
// each denominator (lse) is kept for the backward pass, which computes the p anew: memory grows with N.

enum { QUERY_BLOCK = 36 };

// Working space: keys, values and their gradients for one head, scores and their gradients for one block.
typedef struct { float *k, *v, *dk, *dv, *p, *dp; } AttentionScratch;

static void copy_rows(float* to, int to_row, const float* from, int from_row, int rows, int cols) {
    for (int i = 0; i < rows; i++)
        memcpy(to + (size_t)i * to_row, from + (size_t)i * from_row, cols * sizeof(float));
}

// k, v (count,D) <- the keys and values of head g of `count` tokens
static void copy_keys(float* k, float* v, const float* qkv, int count, int g, const Config* c) {
    int D = c->head_dim, Q = qkv_width(c);
    copy_rows(k, D, qkv + (c->heads + g) * D, Q, count, D);
    copy_rows(v, D, qkv + (c->heads + c->kv_heads + g) * D, Q, count, D);
}

// scores (width) become weights: softmax over the first `seen`, 0 behind; returns log(sum exp)
static inline float softmax_row(float* p, float scale, int seen, int width) {
    for (int j = 0; j < seen; j++) p[j] *= scale;
    float top = maximum(p, seen), sum = exp_and_sum(p, top, seen), inverse = 1.0f / sum;
    for (int j = 0; j < seen; j++) p[j] *= inverse;
    for (int j = seen; j < width; j++) p[j] = 0.0f;
    return top + (float)log((double)sum);
}

static inline float attention_scale(const Config* c) { return (float)(1.0 / sqrt((double)c->head_dim)); }

static void attention_forward(float* out, float* lse, const float* qkv, const Batch* b, const Config* c,
                              AttentionScratch a) {
    int H = c->heads, G = c->kv_heads, D = c->head_dim, Q = qkv_width(c);
    float scale = attention_scale(c);
    for (int task = 0; task < b->S * G; task++) {
        int s = task / G, g = task % G, before = b->prefix[s], P = before < 0 ? 0 : segment_length(b, before);
        int first = b->start[s], length = segment_length(b, s);
        if (P) copy_keys(a.k, a.v, qkv + (size_t)b->start[before] * Q, P, g, c);
        copy_keys(a.k + (size_t)P * D, a.v + (size_t)P * D, qkv + (size_t)first * Q, length, g, c);
        for (int h = g * (H / G); h < (g + 1) * (H / G); h++)
            for (int i0 = 0; i0 < length; i0 += QUERY_BLOCK) {
                int rows = min_int(QUERY_BLOCK, length - i0), keys = P + i0 + rows;
                size_t n0 = (size_t)(first + i0);
                View q = view(qkv + n0 * Q + h * D, Q);
                matmul(a.p, keys, q, transposed(a.k, D), rows, keys, D, 0);
                for (int i = 0; i < rows; i++)
                    lse[(n0 + i) * H + h] = softmax_row(a.p + (size_t)i * keys, scale, P + i0 + i + 1, keys);
                float* y = out + n0 * H * D + h * D;
                matmul(y, H * D, view(a.p, keys), view(a.v, D), rows, D, keys, 0);
            }
    }
}

// Backward for the queries of one segment and one head; a.dk, a.dv are added to, dq is stored.
//     dp_ij = dout_i v_j      ds_ij = p_ij (dp_ij - sum_j p_ij dp_ij) / sqrt(D)
//     sum_j p_ij dp_ij = dout_i out_i
//     dv_j = sum_i p_ij dout_i      dk_j = sum_i ds_ij q_i      dq_i = sum_j ds_ij k_j
static void attention_head_backward(float* dqkv, const float* dout, const float* out, const float* lse,
                                    const float* qkv, AttentionScratch a, int first, int length, int P, int h,
                                    const Config* c) {
    int H = c->heads, D = c->head_dim, Q = qkv_width(c);
    float scale = attention_scale(c);
    for (int i0 = 0; i0 < length; i0 += QUERY_BLOCK) {
        int rows = min_int(QUERY_BLOCK, length - i0), keys = P + i0 + rows;
        size_t n0 = (size_t)(first + i0);
        const float *q = qkv + n0 * Q + h * D, *dy = dout + n0 * H * D + h * D;
        matmul(a.p, keys, view(q, Q), transposed(a.k, D), rows, keys, D, 0);
        matmul(a.dp, keys, view(dy, H * D), transposed(a.v, D), rows, keys, D, 0);
        for (int i = 0; i < rows; i++) {
            float *p = a.p + (size_t)i * keys, *dp = a.dp + (size_t)i * keys, top = lse[(n0 + i) * H + h];
            float mean = dot(dy + (size_t)i * H * D, out + (n0 + i) * H * D + h * D, D);
            int seen = P + i0 + i + 1;
            for (int j = 0; j < seen; j++) {
                p[j] = fast_exp(p[j] * scale - top);
                dp[j] = p[j] * (dp[j] - mean) * scale;
            }
            for (int j = seen; j < keys; j++) p[j] = dp[j] = 0.0f;
        }
        matmul(a.dv, D, transposed(a.p, keys), view(dy, H * D), keys, D, rows, 1);
        matmul(a.dk, D, transposed(a.dp, keys), view(q, Q), keys, D, rows, 1);
        matmul(dqkv + n0 * Q + h * D, Q, view(a.dp, keys), view(a.k, D), rows, D, keys, 0);
    }
}

// the way back: gradients of keys and values from the scratch to dqkv
static void store_key_gradients(float* dqkv, const float* dk, const float* dv, int count, int g,
                                const Config* c) {
    int D = c->head_dim, Q = qkv_width(c);
    copy_rows(dqkv + (c->heads + g) * D, Q, dk, D, count, D);
    copy_rows(dqkv + (c->heads + c->kv_heads + g) * D, Q, dv, D, count, D);
}

// dqkv (N,Q) is stored. A segment is taken together with all its continuations, because the keys of a shared
// prefix collect gradients from each of them.
static void attention_backward(float* dqkv, const float* dout, const float* out, const float* lse,
                               const float* qkv, const Batch* b, const Config* c, AttentionScratch a) {
    int H = c->heads, G = c->kv_heads, D = c->head_dim, Q = qkv_width(c);
    for (int task = 0; task < b->S * G; task++) {
        int root = task / G, g = task % G, end = root + 1;
        if (b->prefix[root] >= 0) continue;
        while (end < b->S && b->prefix[end] == root) end++;
        for (int s = root, P = 0, shared = segment_length(b, root); s < end; s++, P = shared) {
            int first = b->start[s], length = segment_length(b, s);
            float *k = a.k + (size_t)P * D, *dk = a.dk + (size_t)P * D, *dv = a.dv + (size_t)P * D;
            copy_keys(k, a.v + (size_t)P * D, qkv + (size_t)first * Q, length, g, c);
            memset(dk, 0, (size_t)length * D * sizeof(float));
            memset(dv, 0, (size_t)length * D * sizeof(float));
            for (int h = g * (H / G); h < (g + 1) * (H / G); h++)
                attention_head_backward(dqkv, dout, out, lse, qkv, a, first, length, P, h, c);
            if (s > root) store_key_gradients(dqkv + (size_t)first * Q, dk, dv, length, g, c);
        }
        store_key_gradients(dqkv + (size_t)b->start[root] * Q, a.dk, a.dv, segment_length(b, root), g, c);
    }
}

// ---- SwiGLU: y = silu(gate) up, silu(z) = z sigmoid(z)                                     (Shazeer 2020)
// gu (N,2F): gate and up side by side; y (N,F)

static void swiglu_forward(float* y, const float* gu, int N, int F) {
    for (int n = 0; n < N; n++, y += F, gu += 2 * F)
        for (int i = 0; i < F; i++) y[i] = gu[i] / (1.0f + fast_exp(-gu[i])) * gu[F + i];
}

// dgu (N,2F) is stored.   d silu / dz = s (1 + z (1 - s)) with s = sigmoid(z)
static void swiglu_backward(float* dgu, const float* dy, const float* gu, int N, int F) {
    for (int n = 0; n < N; n++, dgu += 2 * F, dy += F, gu += 2 * F)
        for (int i = 0; i < F; i++) {
            float gate = gu[i], up = gu[F + i], s = 1.0f / (1.0f + fast_exp(-gate));
            dgu[i] = dy[i] * up * s * (1.0f + gate * (1.0f - s));
            dgu[F + i] = dy[i] * gate * s;
        }
}

// ---- log-probabilities:  log softmax(logits)[i] = logits[i] - log sum exp(logits)

// log of the sum of exp(z_j), j < V, in nats: the one log-softmax of this project. The largest z is taken out
// first, so that no exp overflows and one of them is 1. In double, because z - log_sum_exp(z) is taken next:
// at logits of 10,000 a float has no digits left for it. A NaN or +inf gives NaN; -inf is allowed.
static inline double log_sum_exp(const float* z, int V) {
    if (V <= 0) return -INFINITY;   // the log of an empty sum
    float top = maximum(z, V), s[SUMS] = {0};
    int i = 0;
    for (; i + SUMS <= V; i += SUMS)
        for (int j = 0; j < SUMS; j++) s[j] += fast_exp(z[i + j] - top);
    for (int j = 0; i + j < V; j++) s[j] += fast_exp(z[i + j] - top);
    return top + log((double)add_up(s));
}

// The entropy -sum p log p of the row, in nats; lse is its log_sum_exp. p = 0 adds 0, as its limit does.
static inline float row_entropy(const float* z, double lse, int V) {
    float s[SUMS] = {0}, high = (float)lse, low = (float)(lse - high);   // z - lse in float keeps its digits
    for (int i = 0; i < V; i += SUMS)
        for (int j = 0; j < SUMS && i + j < V; j++) {
            float l = z[i + j] - high - low, p = fast_exp(l);
            s[j] += p == 0.0f ? 0.0f : -p * l;
        }
    return add_up(s);
}

// logp (M) of the scored tokens: the target of row m is targets[scored[m]]. logits, probs (M,V).
static void logprob_forward(float* logp, float* probs, const float* logits, const int* targets,
                            const int* scored, int M, int V) {
    for (int m = 0; m < M; m++, logits += V, probs += V) {
        double lse = log_sum_exp(logits, V);
        float high = (float)lse, low = (float)(lse - high);
        for (int i = 0; i < V; i++) probs[i] = fast_exp(logits[i] - high - low);
        logp[m] = (float)(logits[targets[scored[m]]] - lse);
    }
}

// d logp / d logit_i = [i = target] - p_i.   probs (M,V) is replaced by the gradient of the logits.
static void logprob_backward(float* probs, const float* dlogp, const int* targets, const int* scored,
                             int M, int V) {
    for (int m = 0; m < M; m++, probs += V) {
        for (int i = 0; i < V; i++) probs[i] *= -dlogp[m];
        probs[targets[scored[m]]] += dlogp[m];
    }
}

// ==== 5  The model ===========================================================================
// Each token becomes a vector x of C numbers, a row of the table `embedding`. Each layer corrects x twice:
// attention brings in what earlier tokens have to say, the MLP (SwiGLU between two matrices) works on each
// token alone. What is passed on from layer to layer in this way is the residual stream. In the end x is
// multiplied with one vector per token of the vocabulary, the unembedding: V logits, one for each next token.
//
//     x = embedding[ids]
//     for each layer:   x += attention(qk(RMSNorm(x) Wqkv)) Wout
//                       x += SwiGLU(RMSNorm(x) Wgate_up) Wdown
//     logits = RMSNorm(x) unembedding^T
//
// A scalar model ends in one vector instead of V: a single number per token. With it the same body judges
// answers (a reward model) or predicts the reward (a value model):
//     scalar = RMSNorm(x) . score
//
// A weight matrix is stored (in, out), the transpose of Hugging Face's, so that y = x W runs along its rows;
// query, key and value lie side by side in one matrix, and so do gate and up: see tensor_list().

typedef struct { float *norm1, *qkv, *qnorm, *knorm, *out, *norm2, *gate_up, *down; } LayerWeights;

// Weights, gradients and both moments of AdamW are four of these, laid out alike in one block of `count`
// floats. The first `undecayed` of them (embedding and norms) are exempt from weight decay. What the head has
// of its own, the unembedding or the score, comes last: everything before it is the body.
typedef struct {
    float* memory;
    size_t count, undecayed;
    float *embedding, *norm, *unembedding;   // (V,C), (C), (V,C); the last is the first when tied
    float* score;                            // (C), of a scalar model only, which has no unembedding
    LayerWeights* layer;
} Weights;

// Weights of the head alone: a score, an unembedding, or none when the embedding is the unembedding.
static size_t head_count(const Config* c) {
    return c->scalar ? (size_t)c->width : c->tied ? 0 : (size_t)c->vocab_size * (size_t)c->width;
}

static size_t weight_count(const Config* c, size_t* undecayed) {
    size_t C = c->width, D = c->head_dim, F = c->mlp_width, L = c->layers;
    *undecayed = c->vocab_size * C + C + L * (2 * C + 2 * D);
    return *undecayed + L * C * (qkv_width(c) + c->heads * D + 3 * F) + head_count(c);
}

static float* take(float** next, size_t count) { return (*next += count) - count; }

static Weights weights_new(const Config* c) {
    size_t V = c->vocab_size, C = c->width, D = c->head_dim, F = c->mlp_width;
    Weights w = {0};
    w.count = weight_count(c, &w.undecayed);
    w.memory = allocate(w.count, sizeof(float));
    w.layer = allocate(c->layers, sizeof(LayerWeights));
    float* next = w.memory;
    w.embedding = take(&next, V * C);
    w.norm = take(&next, C);
    for (LayerWeights* l = w.layer; l < w.layer + c->layers; l++) {
        l->norm1 = take(&next, C);
        l->norm2 = take(&next, C);
        l->qnorm = take(&next, D);
        l->knorm = take(&next, D);
    }
    for (LayerWeights* l = w.layer; l < w.layer + c->layers; l++) {
        l->qkv = take(&next, C * qkv_width(c));
        l->out = take(&next, c->heads * D * C);
        l->gate_up = take(&next, C * 2 * F);
        l->down = take(&next, F * C);
    }
    if (c->scalar) w.score = next;
    else w.unembedding = c->tied ? w.embedding : next;
    return w;
}

static void weights_free(Weights* w) {
    free(w->memory), free(w->layer);
    *w = (Weights){0};
}

// One Hugging Face tensor: shape (rows, cols), or (rows) when cols is 0; (i,j) is at data[i*row + j*col].
typedef struct { char name[96], shape[32]; float* data; int rows, cols; size_t row, col; } Tensor;

static int tensor_count(const Config* c) { return 2 + 11 * c->layers + (c->scalar || !c->tied); }

static Tensor tensor(const char* prefix, const char* name, float* data, int rows, int cols, size_t row,
                     size_t col) {
    Tensor t = {.data = data, .rows = rows, .cols = cols, .row = row, .col = col};
    snprintf(t.name, sizeof t.name, "%s%s.weight", prefix, name);
    snprintf(t.shape, sizeof t.shape, cols ? "[%d,%d]" : "[%d]", rows, cols);
    return t;
}

// All tensors of w, their names with a prefix.
static void tensor_list(Tensor* t, const Weights* w, const Config* c, const char* prefix) {
    int C = c->width, D = c->head_dim, H = c->heads, G = c->kv_heads, F = c->mlp_width;
    size_t Q = qkv_width(c), HD = (size_t)H * D;
    *t++ = tensor(prefix, "model.embed_tokens", w->embedding, c->vocab_size, C, C, 1);
    for (int l = 0; l < c->layers; l++) {
        const LayerWeights* y = &w->layer[l];
        char p[40];
        snprintf(p, sizeof p, "%smodel.layers.%d.", prefix, l);
        *t++ = tensor(p, "input_layernorm", y->norm1, C, 0, 1, 0);
        *t++ = tensor(p, "self_attn.q_proj", y->qkv, H * D, C, 1, Q);
        *t++ = tensor(p, "self_attn.k_proj", y->qkv + HD, G * D, C, 1, Q);
        *t++ = tensor(p, "self_attn.v_proj", y->qkv + HD + G * D, G * D, C, 1, Q);
        *t++ = tensor(p, "self_attn.q_norm", y->qnorm, D, 0, 1, 0);
        *t++ = tensor(p, "self_attn.k_norm", y->knorm, D, 0, 1, 0);
        *t++ = tensor(p, "self_attn.o_proj", y->out, C, H * D, 1, C);
        *t++ = tensor(p, "post_attention_layernorm", y->norm2, C, 0, 1, 0);
        *t++ = tensor(p, "mlp.gate_proj", y->gate_up, F, C, 1, 2 * F);
        *t++ = tensor(p, "mlp.up_proj", y->gate_up + F, F, C, 1, 2 * F);
        *t++ = tensor(p, "mlp.down_proj", y->down, C, F, 1, C);
    }
    *t++ = tensor(prefix, "model.norm", w->norm, C, 0, 1, 0);
    if (c->scalar) *t++ = tensor(prefix, "score", w->score, 1, C, C, 1);
    else if (!c->tied) *t++ = tensor(prefix, "lm_head", w->unembedding, c->vocab_size, C, C, 1);
}

// What the forward pass leaves for the backward pass, for up to `capacity` tokens. A frozen model needs no
// backward pass: it has the arrays of one layer, and all layers use these, which stay in the cache.
typedef struct {
    int capacity;
    // each (L, capacity, its width); x has L+1 of them
    float *x, *h1, *qkv, *rot, *att, *lse, *mid, *h2, *gu, *act;
    // scored tokens only: (M,C), (M,C), (M,V), (M,V), (M), (M); a scalar model has no logits and probs
    float *last, *hidden, *logits, *probs, *logp, *scalar;
    float *dx, *dh, *dqkv, *datt, *dgu, *dact;   // gradients of one layer at a time
    AttentionScratch scratch;
    float* memory;
} Activations;

enum { MAX_TURNS = 16 };

typedef struct Model {
    Config config;
    int frozen;                        // 1 = never learns; to be set before the first forward pass
    Weights weights, grads;            // grads are allocated by the first backward pass
    Activations acts;
    Batch batch;                       // what answers_forward() sent through it last
    float *cosine, *sine;              // (context, D/2) the rotary angles
    struct Model* workers;             // (MAX_THREADS) see worker()
    Weights turn_grads[MAX_TURNS];     // see learning_worker()
} Model;

// The sizes of a model, by their names in Hugging Face's config.json, and how large they may be.
static const struct { const char* name; size_t at; int most; } config_sizes[] = {
    {"vocab_size", offsetof(Config, vocab_size), 1 << 20},
    {"max_position_embeddings", offsetof(Config, context), 1 << 16},
    {"num_hidden_layers", offsetof(Config, layers), 256},
    {"hidden_size", offsetof(Config, width), 1 << 14},
    {"intermediate_size", offsetof(Config, mlp_width), 1 << 16},
    {"num_attention_heads", offsetof(Config, heads), 256},
    {"num_key_value_heads", offsetof(Config, kv_heads), 256},   // the last two may be missing
    {"head_dim", offsetof(Config, head_dim), 1024},
};
enum { CONFIG_SIZES = sizeof config_sizes / sizeof *config_sizes };

static int* config_size(const Config* c, int i) { return (int*)((char*)c + config_sizes[i].at); }

// Refuses what cannot be computed; `from` says where the configuration stands.
static void check_config(const Config* c, const char* from) {
    for (int i = 0; i < CONFIG_SIZES; i++) {
        int size = *config_size(c, i), most = config_sizes[i].most;
        if (size < 1 || size > most)
            fail(2, "%s: %s must be from 1 to %d, not %d", from, config_sizes[i].name, most, size);
    }
    if (c->heads % c->kv_heads)
        fail(2, "%s: num_attention_heads must be a multiple of num_key_value_heads", from);
    if (c->head_dim % 2) fail(2, "%s: head_dim must be even", from);
    if (!(c->rope_theta > 1.0f && c->rope_theta < 1e9f))
        fail(2, "%s: rope_theta must be above 1 and below 1e9", from);
    if (!(c->norm_eps > 0.0f && c->norm_eps < 1.0f))
        fail(2, "%s: rms_norm_eps must be above 0 and below 1", from);
}

static Model model_new(Config config) {
    check_config(&config, "this model cannot be built");
    Model m = {.config = config};
    m.weights = weights_new(&config);
    size_t angles = (size_t)config.context * config.head_dim / 2;
    m.cosine = allocate(angles, sizeof(float));
    m.sine = allocate(angles, sizeof(float));
    rope_table(m.cosine, m.sine, &config);
    m.workers = allocate(MAX_THREADS, sizeof(Model));
    return m;
}

static void model_free(Model* m) {
    for (int i = 0; i < MAX_THREADS && m->workers; i++) {
        batch_free(&m->workers[i].batch);
        free(m->workers[i].acts.memory);
    }
    for (int j = 0; j < MAX_TURNS; j++) weights_free(&m->turn_grads[j]);
    weights_free(&m->weights), weights_free(&m->grads), batch_free(&m->batch);
    free(m->acts.memory), free(m->workers), free(m->cosine), free(m->sine);
    *m = (Model){0};
}

// Random weights: normal with standard deviation 1/sqrt(inputs), a fifth of it for the two matrices that
// write to the residual stream (so that every layer begins as a small correction), 0.02 for the embedding;
// norms are 1, and a score is 0: a scalar model begins by saying 0 to everything.
static void model_init(Model* m, uint64_t seed) {
    const Config* c = &m->config;
    Rng rng = random_stream(seed, 0, 0);
    Tensor* list = allocate(tensor_count(c), sizeof(Tensor));
    tensor_list(list, &m->weights, c, "");
    for (int k = 0; k < tensor_count(c); k++) {
        Tensor* t = &list[k];
        int writes = strstr(t->name, "o_proj") || strstr(t->name, "down_proj");
        int embeds = strstr(t->name, "embed") || strstr(t->name, "lm_head");
        double scale = embeds ? 0.02 : (writes ? 0.2 : 1.0) / sqrt((double)max_int(t->cols, 1));
        for (int i = 0; i < t->rows && t->data != m->weights.score; i++) {
            if (t->cols == 0) t->data[i] = 1.0f;
            for (int j = 0; j < t->cols; j++)
                t->data[i * t->row + j * t->col] = (float)(scale * random_normal(&rng));
        }
    }
    free(list);
}

// Arrays that lie side by side in one block, each on a 64-byte line. lay_out() returns the block.
typedef struct { float** array; size_t size; } Place;

static float* lay_out(const Place* plan, int count) {
    size_t total = 16;
    for (int i = 0; i < count; i++) total += (plan[i].size + 15) / 16 * 16;
    float* memory = allocate(total, sizeof(float));
    float* next = memory + (64 - (uintptr_t)memory % 64) % 64 / sizeof(float);
    for (int i = 0; i < count; next += (plan[i++].size + 15) / 16 * 16) *plan[i].array = next;
    return memory;
}

static void model_reserve(Model* m, int tokens) {
    const Config* c = &m->config;
    Activations* a = &m->acts;
    AttentionScratch* s = &a->scratch;
    if (a->capacity && tokens <= a->capacity) return;
    free(a->memory);
    a->capacity = max_int(tokens, 256);
    size_t C = c->width, V = c->scalar ? 0 : c->vocab_size, F = c->mlp_width, Q = qkv_width(c), H = c->heads;
    size_t D = c->head_dim, HD = H * D, T = c->context, L = m->frozen ? 1 : c->layers, n = a->capacity;
    const Place plan[] = {
        {&a->x, (L + 1) * n * C}, {&a->h1, L * n * C}, {&a->qkv, L * n * Q}, {&a->rot, L * n * Q},
        {&a->att, L * n * HD}, {&a->lse, L * n * H}, {&a->mid, L * n * C}, {&a->h2, L * n * C},
        {&a->gu, L * n * 2 * F}, {&a->act, L * n * F}, {&a->last, n * C}, {&a->hidden, n * C},
        {&a->logits, n * V}, {&a->probs, n * V}, {&a->logp, n}, {&a->scalar, n},
        {&a->dx, n * C}, {&a->dh, n * C}, {&a->dqkv, n * Q}, {&a->datt, n * HD},
        {&a->dgu, n * 2 * F}, {&a->dact, n * F}, {&s->k, T * D}, {&s->v, T * D}, {&s->dk, T * D},
        {&s->dv, T * D}, {&s->p, T * QUERY_BLOCK}, {&s->dp, T * QUERY_BLOCK},
    };
    a->memory = lay_out(plan, sizeof plan / sizeof *plan);
}

// Every token has a place in the vocabulary and in the context? Everything below relies on it.
static void batch_check(const Batch* b, const Config* c) {
    for (int n = 0; n < b->N; n++) {
        int V = c->vocab_size, id = b->ids[n], token = id < 0 || id >= V ? id : b->targets[n];
        if (id < 0 || token >= V) fail(2, "token %d is outside the model's vocabulary of %d", token, V);
        if (b->position[n] >= c->context)
            fail(2, "a sequence is longer than the model's context of %d tokens", c->context);
    }
}

// The body: acts.hidden (M,C) = the final norm's output at the scored tokens.
static void model_hidden_forward(Model* m, const Batch* b) {
    const Config* c = &m->config;
    batch_check(b, c);
    model_reserve(m, b->N);
    Activations* a = &m->acts;
    int N = b->N, C = c->width, Q = qkv_width(c), F = c->mlp_width, HD = c->heads * c->head_dim;
    size_t n = m->frozen ? 0 : (size_t)a->capacity;   // from a layer's arrays to the next one's
    embedding_forward(a->x, b->ids, m->weights.embedding, N, C);
    for (int l = 0; l < c->layers; l++) {
        const LayerWeights* w = &m->weights.layer[l];
        size_t at = l * n;   // this layer's first row
        float *x = a->x + at * C, *next = x + n * C, *h1 = a->h1 + at * C, *qkv = a->qkv + at * Q;
        float *rot = a->rot + at * Q, *att = a->att + at * HD, *mid = m->frozen ? x : a->mid + at * C;
        float *h2 = a->h2 + at * C, *gu = a->gu + at * 2 * F, *act = a->act + at * F;
        rmsnorm_forward(h1, x, w->norm1, c->norm_eps, N, C);
        matmul(qkv, Q, view(h1, C), view(w->qkv, Q), N, Q, C, 0);
        qk_forward(rot, qkv, w->qnorm, w->knorm, m->cosine, m->sine, b->position, N, c);
        attention_forward(att, a->lse + at * c->heads, rot, b, c, a->scratch);
        if (mid != x) memcpy(mid, x, (size_t)N * C * sizeof(float));
        matmul(mid, C, view(att, HD), view(w->out, C), N, C, HD, 1);
        rmsnorm_forward(h2, mid, w->norm2, c->norm_eps, N, C);
        matmul(gu, 2 * F, view(h2, C), view(w->gate_up, 2 * F), N, 2 * F, C, 0);
        swiglu_forward(act, gu, N, F);
        if (next != mid) memcpy(next, mid, (size_t)N * C * sizeof(float));
        matmul(next, C, view(act, F), view(w->down, C), N, C, F, 1);
    }
    embedding_forward(a->last, b->scored, a->x + c->layers * n * C, b->M, C);   // rows of x by their number
    rmsnorm_forward(a->hidden, a->last, m->weights.norm, c->norm_eps, b->M, C);
}

// The whole model. Leaves acts.logits (M,V) and acts.logp (M), in nats, for the M scored tokens.
static void model_forward(Model* m, const Batch* b) {
    model_hidden_forward(m, b);
    Activations* a = &m->acts;
    int C = m->config.width, V = m->config.vocab_size;
    matmul(a->logits, V, view(a->hidden, C), transposed(m->weights.unembedding, C), b->M, V, C, 0);
    logprob_forward(a->logp, a->probs, a->logits, b->targets, b->scored, b->M, V);
}

static void model_zero_grads(Model* m) {
    if (!m->grads.memory) m->grads = weights_new(&m->config);
    memset(m->grads.memory, 0, m->grads.count * sizeof(float));
}

// Backward of model_hidden_forward from dhidden (M,C). Adds to grads, which model_zero_grads() clears.
static void model_hidden_backward(Model* m, const Batch* b, const float* dhidden) {
    const Config* c = &m->config;
    Activations* a = &m->acts;
    int N = b->N, C = c->width, Q = qkv_width(c), F = c->mlp_width, HD = c->heads * c->head_dim;
    size_t n = a->capacity;
    memset(a->dx, 0, (size_t)N * C * sizeof(float));
    for (int i = 0; i < b->M; i++)
        rmsnorm_row_backward(a->dx + (size_t)b->scored[i] * C, m->grads.norm, dhidden + (size_t)i * C,
                             a->last + (size_t)i * C, m->weights.norm, c->norm_eps, C, 0);
    for (int l = c->layers - 1; l >= 0; l--) {
        const LayerWeights *w = &m->weights.layer[l], *g = &m->grads.layer[l];
        size_t at = l * n;
        float *x = a->x + at * C, *h1 = a->h1 + at * C, *qkv = a->qkv + at * Q, *rot = a->rot + at * Q;
        float *att = a->att + at * HD, *mid = a->mid + at * C, *h2 = a->h2 + at * C;
        float *gu = a->gu + at * 2 * F, *act = a->act + at * F;
        matmul(g->down, C, transposed(act, F), view(a->dx, C), F, C, N, 1);
        matmul(a->dact, F, view(a->dx, C), transposed(w->down, C), N, F, C, 0);
        swiglu_backward(a->dgu, a->dact, gu, N, F);
        matmul(g->gate_up, 2 * F, transposed(h2, C), view(a->dgu, 2 * F), C, 2 * F, N, 1);
        matmul(a->dh, C, view(a->dgu, 2 * F), transposed(w->gate_up, 2 * F), N, C, 2 * F, 0);
        rmsnorm_backward(a->dx, g->norm2, a->dh, mid, w->norm2, c->norm_eps, N, C);
        matmul(g->out, C, transposed(att, HD), view(a->dx, C), HD, C, N, 1);
        matmul(a->datt, HD, view(a->dx, C), transposed(w->out, C), N, HD, C, 0);
        attention_backward(a->dqkv, a->datt, att, a->lse + at * c->heads, rot, b, c, a->scratch);
        const int* t = b->position;
        qk_backward(a->dqkv, g->qnorm, g->knorm, qkv, w->qnorm, w->knorm, m->cosine, m->sine, t, N, c);
        matmul(g->qkv, Q, transposed(h1, C), view(a->dqkv, Q), C, Q, N, 1);
        matmul(a->dh, C, view(a->dqkv, Q), transposed(w->qkv, Q), N, C, Q, 0);
        rmsnorm_backward(a->dx, g->norm1, a->dh, x, w->norm1, c->norm_eps, N, C);
    }
    embedding_backward(m->grads.embedding, a->dx, b->ids, N, C);
}

// Backward of model_forward from dlogp (M) = d(loss)/d(logp). Must follow it directly, with the same batch.
static void model_backward(Model* m, const Batch* b, const float* dlogp) {
    Activations* a = &m->acts;
    int C = m->config.width, V = m->config.vocab_size;
    if (!m->grads.memory) model_zero_grads(m);
    logprob_backward(a->probs, dlogp, b->targets, b->scored, b->M, V);
    matmul(m->grads.unembedding, C, transposed(a->probs, V), view(a->hidden, C), V, C, b->M, 1);
    matmul(a->dh, C, view(a->probs, V), view(m->weights.unembedding, C), b->M, C, V, 0);
    model_hidden_backward(m, b, a->dh);
}

// The body with a scalar head. Leaves acts.scalar (M), one number for each scored token.
static void model_scalar_forward(Model* m, const Batch* b) {
    model_hidden_forward(m, b);
    Activations* a = &m->acts;
    int C = m->config.width;
    for (int i = 0; i < b->M; i++) a->scalar[i] = dot(a->hidden + (size_t)i * C, m->weights.score, C);
}

// Backward of model_scalar_forward from dscalar (M) = d(loss)/d(scalar); must follow it directly.
//     dscore += dscalar_i hidden_i       dhidden_i = dscalar_i score
static void model_scalar_backward(Model* m, const Batch* b, const float* dscalar) {
    Activations* a = &m->acts;
    int C = m->config.width;
    if (!m->grads.memory) model_zero_grads(m);
    for (int i = 0; i < b->M; i++)
        for (int c = 0; c < C; c++) {
            m->grads.score[c] += dscalar[i] * a->hidden[(size_t)i * C + c];
            a->dh[(size_t)i * C + c] = dscalar[i] * m->weights.score[c];
        }
    model_hidden_backward(m, b, a->dh);
}

// ---- answers through a model: the only place where they are packed
// ids (K,T): K sequences, prompt included, padded at the end. mask (K,T1), T1 = T - 1, shifted: mask[k,t] = 1
// asks for the log-probability of token t + 1. This is the documents' shape in PyTorch. Computed is less:
//
//     what all rows have in common before the first scored token (the prompt of a question) once, as a
//     segment of its own that each row continues;
//     of rows that are alike only the first one (a sure policy writes the same answer again and again);
//     nothing behind a row's last scored token.
//
//     segment 0, the prompt    <|bos|> <|user_start|> H o w ... ? <|user_end|>         nothing is scored
//     segment 1, row 0         <|assistant_start|>    T    o    m  ...                 what the model reads
//                               T                     o    m   ' ' ...                 its targets, shifted

// Tokens that all rows have in common before the first one that is scored.
static int shared_length(const int* ids, const int* mask, int K, int T) {
    for (int t = 0; t < T - 1; t++)
        for (int k = 0; k < K; k++)
            if (mask[k * (T - 1) + t] || ids[k * T + t] != ids[t]) return t;
    return T - 1;
}

// first[k] = the first row that is like row k, or -1 when nothing of row k is scored.
static void find_first_rows(int* first, const int* ids, const int* mask, int K, int T) {
    int T1 = T - 1;
    for (int k = 0; k < K; k++) {
        first[k] = -1;
        for (int t = 0; t < T1; t++) if (mask[k * T1 + t]) first[k] = k;
        for (int i = 0; i < k && first[k] == k; i++)
            if (!memcmp(ids + i * T, ids + k * T, T * sizeof(int)) &&
                !memcmp(mask + i * T1, mask + k * T1, T1 * sizeof(int))) first[k] = i;
    }
}

// What m says about every scored token: its log-probability or, of a scalar model, the scalar at the token
// before it. out (K,T1), in nats (the scalar's unit is the reward's), 0 where the mask is 0. A sequence
// longer than the context, or a token outside the vocabulary, ends the program.
static void answers_forward(float* out, Model* m, const int* ids, const int* mask, int K, int T) {
    int T1 = T - 1, shared = shared_length(ids, mask, K, T), prefix = -1;
    int *first = allocate(K, sizeof(int)), *targets = allocate(T, sizeof(int));
    find_first_rows(first, ids, mask, K, T);
    batch_clear(&m->batch);
    for (int k = 0; k < K; k++) {
        int end = shared;
        for (int t = shared; t < T1; t++) {
            targets[t] = mask[k * T1 + t] ? ids[k * T + t + 1] : -1;
            if (mask[k * T1 + t]) end = t + 1;
        }
        if (first[k] != k) continue;
        if (shared && prefix < 0) prefix = batch_add(&m->batch, ids, NULL, shared, -1);
        batch_add(&m->batch, ids + k * T + shared, targets + shared, end - shared, prefix);
    }
    if (m->batch.M && m->config.scalar) model_scalar_forward(m, &m->batch);
    else if (m->batch.M) model_forward(m, &m->batch);
    const float* scored = m->config.scalar ? m->acts.scalar : m->acts.logp;
    for (int k = 0; k < K; k++)
        for (int t = 0; t < T1; t++) {
            if (first[k] == k) out[k * T1 + t] = mask[k * T1 + t] ? *scored++ : 0.0f;
            else out[k * T1 + t] = first[k] < 0 ? 0.0f : out[first[k] * T1 + t];
        }
    free(first), free(targets);
}

// The way back, directly after it and with the same arguments, from d = d(loss)/d(out) (K,T1): adds to the
// gradients of m. Where the mask is 0, d is not read.
static void answers_backward(Model* m, const float* d, const int* ids, const int* mask, int K, int T) {
    int T1 = T - 1, M = 0;
    int* first = allocate(K, sizeof(int));
    float* sum = allocate((size_t)K * T1, sizeof(float));
    find_first_rows(first, ids, mask, K, T);
    for (int k = 0; k < K; k++)   // rows that are alike add up in the first of them
        for (int t = 0; t < T1; t++)
            if (mask[k * T1 + t]) sum[first[k] * T1 + t] += d[k * T1 + t];
    for (int k = 0; k < K; k++)   // from (K,T1) to the list of scored tokens
        for (int t = 0; t < T1; t++)
            if (first[k] == k && mask[k * T1 + t]) sum[M++] = sum[k * T1 + t];
    if (M && m->config.scalar) model_scalar_backward(m, &m->batch, sum);
    else if (M) model_backward(m, &m->batch, sum);
    free(first), free(sum);
}

// ---- threads
// The loops over questions or conversations are parallel. Each thread has a model of its own, worker(m),
// which shares the weights of m and has activations of its own. A loop that learns is cut into turns:
//
//     #pragma omp parallel for schedule(dynamic)
//     for (int turn = 0; turn < turns; turn++) {
//         Model* w = learning_worker(m, turn);             gradients of this turn, at first 0
//         for (int i = turn; i < count; i += turns) ...    forward and backward with w
//     }
//     add_gradients(m, turns);                             in the order of the turns
//
// Which questions share a turn, and the order of every sum, does not depend on the number of threads: the
// same bits for one as for sixteen. A gradient has the model's size, which sets how many; `count` at most.

static int turns_of(const Model* m, int count) {
    double fit = fmax(2.0, 8e6 / (double)m->weights.count);   // 32 MB of gradients
    return (int)fmin(fit, min_int(count, MAX_TURNS));
}

static Model* worker(Model* m) {
    Model* w = &m->workers[omp_get_thread_num()];
    w->config = m->config;
    w->frozen = m->frozen;
    w->weights = m->weights;
    w->cosine = m->cosine;
    w->sine = m->sine;
    return w;
}

// The first turn adds to the gradients of m itself, which model_zero_grads() has cleared. No model (NULL) has
// no worker.
static Model* learning_worker(Model* m, int turn) {
    if (!m) return NULL;
    Model* w = worker(m);
    Weights* grads = turn ? &m->turn_grads[turn] : &m->grads;
    if (!grads->memory) *grads = weights_new(&m->config);
    else if (turn) memset(grads->memory, 0, grads->count * sizeof(float));
    w->grads = *grads;
    return w;
}

static void add_gradients(Model* m, int turns) {
    #pragma omp parallel for schedule(static)
    for (long k = 0; k < (long)m->grads.count; k += 4096)
        for (int turn = 1; turn < turns; turn++)
            for (long i = k; i < k + 4096 && i < (long)m->grads.count; i++)
                m->grads.memory[i] += m->turn_grads[turn].memory[i];
}

// ==== 6  The optimizer =======================================================================
// AdamW (Kingma and Ba 2014; Loshchilov and Hutter 2017):
//     m = beta1 m + (1 - beta1) g          v = beta2 v + (1 - beta2) g^2
//     w -= lr ( m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + decay w )
// g is the gradient of w, t = 1, 2, ... counts the updates. m and v, the moments, are running means of g and
// g^2; the divisions by 1 - beta^t make up for their start at 0. The decay is decoupled: it does not pass
// through the moments. Embedding and norms are not decayed. Written with one product in each sum (m += (1 -
// beta1)(g - m)): the compiler cannot choose which of two to fuse, and all builds get the same bits.

typedef struct { float beta1, beta2, eps, weight_decay; } AdamOptions;
typedef struct { Weights first, second; long step; } Optimizer;   // the moments m and v, updates done

static Optimizer optimizer_new(const Config* c) { return (Optimizer){weights_new(c), weights_new(c), 0}; }
static void optimizer_free(Optimizer* o) { weights_free(&o->first), weights_free(&o->second); }

static void adamw_step(Model* model, Optimizer* o, float lr, AdamOptions s) {
    o->step++;
    float *w = model->weights.memory, *grad = model->grads.memory;
    float *m = o->first.memory, *v = o->second.memory;
    long count = (long)model->weights.count, undecayed = (long)model->weights.undecayed;
    float correct1 = (float)(1.0 / (1.0 - pow(s.beta1, (double)o->step)));
    float correct2 = (float)(1.0 / (1.0 - pow(s.beta2, (double)o->step)));
    #pragma omp parallel for schedule(static)
    for (long i = 0; i < count; i++) {
        float g = grad[i], decay = i < undecayed ? 0.0f : s.weight_decay;
        m[i] += (1.0f - s.beta1) * (g - m[i]);
        v[i] += (1.0f - s.beta2) * (g * g - v[i]);
        w[i] -= lr * (m[i] * correct1 / ((float)sqrt((double)(v[i] * correct2)) + s.eps) + decay * w[i]);
    }
}

// Returns the global norm of the gradient, |g| = sqrt(sum g^2), and scales it down to max_norm when it is
// longer (max_norm <= 0: never). The squares are added in double in blocks of a fixed size.
static double clip_gradient(Model* m, double max_norm) {
    float* g = m->grads.memory;
    double sum = 0.0;
    for (size_t i = 0; i < m->grads.count; i += 1024) {
        int n = (int)(m->grads.count - i < 1024 ? m->grads.count - i : 1024);
        sum += dot(g + i, g + i, n);
    }
    double norm = sqrt(sum);
    if (max_norm > 0.0 && norm > max_norm) {
        float scale = (float)(max_norm / norm);
        for (size_t i = 0; i < m->grads.count; i++) g[i] *= scale;
    }
    return norm;
}

// The end of a gradient step: clip, AdamW, a gradient of 0. Returns the norm before clipping.
static double clip_and_step(Model* m, Optimizer* o, double lr, double max_norm, AdamOptions adam) {
    if (!m->grads.memory) model_zero_grads(m);
    double norm = clip_gradient(m, max_norm);
    adamw_step(m, o, (float)lr, adam);
    model_zero_grads(m);
    return norm;
}

// The factor on the learning rate at update `step` = 0 .. steps-1: it rises in `warmup` updates, then falls
// in a straight line towards `final`, which it would reach at `step` = steps.
static double lr_schedule(long step, long steps, long warmup, double final) {
    if (step < warmup) return (double)(step + 1) / (double)warmup;
    if (steps <= warmup) return 1.0;
    return 1.0 - (1.0 - final) * (double)(step - warmup) / (double)(steps - warmup);
}

// ==== 7  Text and tokens =====================================================================
// A token is a byte, or one of nanochat's nine special tokens. Any text goes in and comes out unchanged, and
// text from a user can never become a special token: the ids 256 to 264 come from no byte.

enum {
    BOS = 256, USER_START, USER_END, ASSISTANT_START, ASSISTANT_END,
    PYTHON_START, PYTHON_END, OUTPUT_START, OUTPUT_END, VOCAB_SIZE
};
static const char* const special_names[VOCAB_SIZE - 256] = {
    "<|bos|>", "<|user_start|>", "<|user_end|>", "<|assistant_start|>", "<|assistant_end|>",
    "<|python_start|>", "<|python_end|>", "<|output_start|>", "<|output_end|>"
};

// A growing list of tokens, each with its mask: 1 = the assistant's own, 0 = given to it.
typedef struct { int *ids, *mask; int length, capacity; } Tokens;

static void tokens_add(Tokens* t, int id, int mask) {
    if (t->length == t->capacity) {
        t->capacity = 2 * t->capacity + 64;
        t->ids = enlarge(t->ids, t->capacity, sizeof(int));
        t->mask = enlarge(t->mask, t->capacity, sizeof(int));
    }
    t->ids[t->length] = id;
    t->mask[t->length++] = mask;
}

static void tokens_add_text(Tokens* t, const char* text, size_t length, int mask) {
    for (size_t i = 0; i < length; i++) tokens_add(t, (unsigned char)text[i], mask);
}

static void tokens_free(Tokens* t) {
    free(t->ids), free(t->mask);
    *t = (Tokens){0};
}

// Tokens as text; special tokens by name, or left out.
static void decode_tokens(Text* text, const int* ids, int length, int with_special) {
    text_append(text, "", 0);
    for (int i = 0; i < length; i++) {
        if (ids[i] < 256) text_append(text, &(char){(char)ids[i]}, 1);
        else if (with_special && ids[i] < VOCAB_SIZE) text_printf(text, "%s", special_names[ids[i] - 256]);
    }
}

// The number of bytes of the UTF-8 character at s, 0 when it is none (as overlong forms and surrogates).
static int utf8_length(const char* s, const char* end) {
    unsigned char a = (unsigned char)s[0], b = s + 1 < end ? (unsigned char)s[1] : 0;
    int n = a < 0x80 ? 1 : a < 0xC2 ? 0 : a < 0xE0 ? 2 : a < 0xF0 ? 3 : a < 0xF5 ? 4 : 0;
    if (n == 0 || end - s < n) return 0;
    for (int i = 1; i < n; i++) if (((unsigned char)s[i] & 0xC0) != 0x80) return 0;
    int wrong = a == 0xE0 ? b < 0xA0 : a == 0xED ? b >= 0xA0 : a == 0xF0 ? b < 0x90 : a == 0xF4 && b >= 0x90;
    return wrong ? 0 : n;
}

// Appends text as it may go to a terminal: bytes that are no UTF-8, and control characters, become \xNN.
static void append_printable(Text* out, const char* s, size_t length) {
    text_append(out, "", 0);
    for (const char* end = s + length; s < end;) {
        int n = utf8_length(s, end);
        int control = (unsigned char)*s < 0x20 || *s == 0x7F ||
                      (n == 2 && (unsigned char)s[0] == 0xC2 && (unsigned char)s[1] < 0xA0);
        if (control && *s != '\n') n = 0;
        if (n) text_append(out, s, n);
        else text_printf(out, "\\x%02X", (unsigned char)*s);
        s += max_int(n, 1);
    }
}

// The prompt of a rollout: everything up to the point where the assistant speaks.
static void render_prompt(Tokens* t, const char* question) {
    tokens_add(t, BOS, 0);
    tokens_add(t, USER_START, 0);
    tokens_add_text(t, question, strlen(question), 0);
    tokens_add(t, USER_END, 0);
    tokens_add(t, ASSISTANT_START, 0);
}

// A whole conversation, as nanochat renders it. A calculator annotation <<48/2=24>> of GSM8K becomes a call:
//     <|python_start|>48/2<|python_end|>       mask 1: the assistant decides to call, and what
//     <|output_start|>24<|output_end|>         mask 0: the tool's words, not the assistant's
static void render_conversation(Tokens* t, const char* question, const char* answer) {
    render_prompt(t, question);
    while (*answer) {
        const char* call = strstr(answer, "<<");
        const char* end = call ? strchr(call + 2, '>') : NULL;
        if (!end || end[1] != '>' || end == call + 2) {   // no call, or something that only looks like one
            size_t length = call ? (size_t)(call - answer) + 2 : strlen(answer);
            tokens_add_text(t, answer, length, 1);
            answer += length;
            continue;
        }
        tokens_add_text(t, answer, call - answer, 1);
        const char *from = call + 2, *equals = end;
        while (equals > from && equals[-1] != '=') equals--;    // behind the last '=' is the result
        const char* expression_end = equals > from ? equals - 1 : end;
        tokens_add(t, PYTHON_START, 1);
        tokens_add_text(t, from, expression_end - from, 1);
        tokens_add(t, PYTHON_END, 1);
        tokens_add(t, OUTPUT_START, 0);
        if (equals > from) tokens_add_text(t, equals, end - equals, 0);
        tokens_add(t, OUTPUT_END, 0);
        answer = end + 2;
    }
    tokens_add(t, ASSISTANT_END, 1);
}

// ==== 8  Decoding ============================================================================
// K answers to each of B questions are sampled together. The prompt but for its last token is computed once
// per question, by model_hidden_forward; its keys and values are shared by the K rows. The keys and values of
// a token do not change when others follow, so they are kept (the cache), and from then on each step feeds
// only one token to every row that is not finished. All rows have fed the same number of own tokens, but each
// has its own position, because the prompts differ in length.
//
// Some tokens are not sampled but forced, one by one: the output of the tool.

typedef struct {
    int max_new_tokens;      // at most so many tokens per rollout, forced ones included
    float temperature;       // logits are divided by it; 0 = always the likeliest token
    int top_k;               // keep the k likeliest tokens; 0 = all
    float top_p;             // keep the likeliest tokens that together have this probability; 1 = all
} SampleOptions;

// One sequence: a row of the arrays that rollouts_new() makes, T1 = T - 1
typedef struct {
    int T;                   // room
    int prompt, length;      // tokens of the prompt, and those that follow it
    int finished;            // 1 = ended with <|assistant_end|> (or <|bos|>), 0 = cut off
    int* ids;                // (T) prompt, answer, padding (0)
    int* mask;               // (T) 1 = sampled by the model; 0 = prompt, forced by the tool, padding
    float* logp;             // (T1) log pi of the NEXT token, in nats; 0 where it was not sampled
    float* entropy;          // (T1) of the distribution that it was drawn from, before top-k and temperature
} Rollout;

// The tool. It sees a row's answer after each sampled token and writes the tokens that must follow now, at
// most `capacity`; it returns how many. It keeps no state between calls.
typedef int (*ForceFunction)(int* forced, int capacity, const int* answer, int length);

// `count` rollouts with room for T tokens each. The rows of each array are one block: r->ids and r->mask
// (count,T) and r->logp (count,T1) of the first are the padded arrays of all of them.
static Rollout* rollouts_new(int count, int T) {
    size_t size = (size_t)count * T;
    int *ids = allocate(size, sizeof(int)), *mask = allocate(size, sizeof(int));
    float *logp = allocate(size, sizeof(float)), *entropy = allocate(size, sizeof(float));
    Rollout* r = allocate(count, sizeof(Rollout));
    for (int i = 0; i < count; i++) {
        size_t at = (size_t)i * T, at1 = (size_t)i * (T - 1);
        r[i] = (Rollout){T, 0, 0, 0, ids + at, mask + at, logp + at1, entropy + at1};
    }
    return r;
}

static void rollouts_free(Rollout* r) {
    if (r) free(r->ids), free(r->mask), free(r->logp), free(r->entropy);
    free(r);
}

// Sets all but the `keep` largest of p (V), numbers from 0 to 1, to 0; among equals the first ones stay. An
// interval around the border is halved until exactly `keep` lie above it, or no float is left inside.
static void keep_largest(float* p, int V, int keep) {
    float low = 0.0f, high = 2.0f, border = 1.0f;     // at least `keep` are >= low, and fewer are >= high
    for (int above = V; above != keep && low < border && border < high; border = 0.5f * (low + high)) {
        above = 0;
        for (int i = 0; i < V; i++) above += p[i] >= border;
        if (above >= keep) low = border;
        else high = border;
    }
    for (int i = 0; i < V; i++) keep -= p[i] >= high;
    for (int i = 0; i < V; i++)
        if (p[i] < low || (p[i] < high && keep-- <= 0)) p[i] = 0.0f;
}

static float sum_of(const float* p, int V) {
    float total = 0.0f;
    for (int i = 0; i < V; i++) total += p[i];
    return total;
}

// How many of the largest of p (V) make up at least the share top_p of the total, at least 1. work (V).
static int count_for_share(const float* p, int V, float top_p, float* work) {
    float wanted = top_p * sum_of(p, V), have = 0.0f;
    int count = 0;
    memcpy(work, p, V * sizeof(float));
    while (count < V && (count == 0 || have < wanted)) {
        int top = count;
        for (int i = count + 1; i < V; i++) if (work[i] > work[top]) top = i;
        have += work[top];
        work[top] = work[count++];
    }
    return count;
}

// Draws a token from logits (V). logp: its log-probability under the model; entropy: of the model's
// distribution; both in nats, before temperature, top-k and top-p. work (2V).
static int sample_token(float* logp, float* entropy, const float* logits, int V, SampleOptions o, Rng* rng,
                        float* work) {
    float *p = work, top = maximum(logits, V), below = 0.0f;
    double lse = log_sum_exp(logits, V);
    int choice = 0;
    while (logits[choice] < top) choice++;
    *entropy = row_entropy(logits, lse, V);
    *logp = (float)(logits[choice] - lse);
    if (o.temperature <= 0.0f) return choice;
    for (int i = 0; i < V; i++) p[i] = fast_exp((logits[i] - top) / o.temperature);
    if (o.top_k > 0 && o.top_k < V) keep_largest(p, V, o.top_k);
    if (o.top_p < 1.0f) keep_largest(p, V, count_for_share(p, V, o.top_p, work + V));
    float u = random_uniform(rng) * sum_of(p, V);
    for (int i = 0; i < V && below <= u; i++) {
        if (p[i] == 0.0f) continue;
        choice = i;   // the last one, should rounding leave u above the sum
        below += p[i];
    }
    *logp = (float)(logits[choice] - lse);
    return choice;
}

// A decoding batch. Keys are kept (D, tokens), so that scores run along rows, values (tokens, D).
typedef struct {
    int B, K, R, longest;               // prompts, rows per prompt, longest own part, longest shared part
    int* P;                             // (B) the shared part: the prompt but for its last token
    float *prompt_k, *prompt_v;         // (B,L,G,D,longest), (B,L,G,longest,D)
    float *own_k, *own_v;               // (BK,L,G,D,R), (BK,L,G,R,D)
    float *work, *memory;               // for queries, outputs, scores, and sampling; the block of all
    int *active, *next, *position;      // rows that go on; the token each one is fed now, and where
    int* from;                          // (B+1) active rows of prompt q: from[q] .. from[q+1]-1
} Decoder;

static Decoder decoder_new(const Config* c, const Tokens* prompts, int B, int K, int R) {
    Decoder d = {.B = B, .K = K, .R = R};
    size_t n = (size_t)B * K, V = c->vocab_size, D = c->head_dim;
    size_t each = (size_t)c->layers * c->kv_heads * D, heads = (size_t)c->heads / c->kv_heads;
    size_t work = K * heads * (2 * D + c->context);
    d.P = allocate(3 * n + 2 * B + 1, sizeof(int));
    d.from = d.P + B;
    d.active = d.from + B + 1;
    d.next = d.active + n;
    d.position = d.next + n;
    for (int q = 0; q < B; q++) {
        d.P[q] = prompts[q].length - 1;
        d.longest = max_int(d.longest, d.P[q]);
    }
    size_t shared = (size_t)B * d.longest;
    const Place plan[] = {
        {&d.prompt_k, shared * each}, {&d.prompt_v, shared * each}, {&d.own_k, n * each * R},
        {&d.own_v, n * each * R},     {&d.work, work > 2 * V ? work : 2 * V},
    };
    d.memory = lay_out(plan, sizeof plan / sizeof *plan);
    return d;
}

// Where head g of layer l of prompt or row i begins in a cache with room for `room` tokens.
static size_t cache_place(const Config* c, int i, int l, int g, int room) {
    return (((size_t)i * c->layers + l) * c->kv_heads + g) * c->head_dim * room;
}

// k (D,room), v (room,D) <- key and value of head g of `count` tokens rot (count,Q), as numbers t, t + 1, ...
static void cache_tokens(float* k, float* v, int room, int t, const float* rot, int count, int g,
                         const Config* c) {
    int H = c->heads, D = c->head_dim, Q = qkv_width(c);
    for (int j = 0; j < count; j++)
        for (int i = 0; i < D; i++) k[(size_t)i * room + t + j] = rot[(size_t)j * Q + (H + g) * D + i];
    copy_rows(v + (size_t)t * D, D, rot + (H + c->kv_heads + g) * D, Q, count, D);
}

static void decoder_prefill(Decoder* d, Model* m, const Tokens* prompts) {
    const Config* c = &m->config;
    Batch batch = {0};
    for (int q = 0, from = 0; q < d->B; from = q) {
        batch_clear(&batch);
        do batch_add(&batch, prompts[q].ids, NULL, d->P[q], -1);
        while (++q < d->B && batch.N + prompts[q].length <= 1024);
        model_hidden_forward(m, &batch);
        for (int p = from; p < q; p++)
            for (int i = 0; i < c->layers * c->kv_heads; i++) {
                int l = i / c->kv_heads, g = i % c->kv_heads, room = d->longest;
                size_t at = cache_place(c, p, l, g, room);
                size_t row = (size_t)l * m->acts.capacity + (size_t)batch.start[p - from];
                const float* rot = m->acts.rot + row * qkv_width(c);
                cache_tokens(d->prompt_k + at, d->prompt_v + at, room, 0, rot, d->P[p], g, c);
            }
    }
    batch_free(&batch);
}

// Attention of rows from..to-1 of the active list, which all belong to prompt q, for key/value head g. `t`
// own tokens came before the present one. The sums run over the prompt, then over them, as in training.
static void decoder_attention(Decoder* d, Model* m, int l, int q, int g, int from, int to, int t) {
    const Config* c = &m->config;
    int H = c->heads, D = c->head_dim, Q = qkv_width(c), each = H / c->kv_heads, P = d->P[q], R = d->R;
    int M = (to - from) * each, width = P + t + 1;
    float *query = d->work, *out = query + (size_t)M * D, *score = out + (size_t)M * D;
    size_t at = cache_place(c, q, l, g, d->longest);
    copy_rows(query, each * D, m->acts.rot + (size_t)from * Q + g * each * D, Q, to - from, each * D);
    matmul(score, width, view(query, D), view(d->prompt_k + at, d->longest), M, P, D, 0);
    for (int i = 0; i < M; i++) {
        const float* key = d->own_k + cache_place(c, d->active[from + i / each], l, g, R);
        float* s = score + (size_t)i * width + P;
        for (int j = 0; j <= t; j++) s[j] = 0.0f;
        for (int k = 0; k < D; k++, key += R) {
            float x = query[(size_t)i * D + k];
            for (int j = 0; j <= t; j++) s[j] += x * key[j];
        }
        softmax_row(s - P, attention_scale(c), width, width);
    }
    matmul(out, D, view(score, width), view(d->prompt_v + at, D), M, D, P, 0);
    for (int i = 0; i < M; i++) {
        const float* value = d->own_v + cache_place(c, d->active[from + i / each], l, g, R);
        float *o = out + (size_t)i * D, *s = score + (size_t)i * width + P;
        for (int j = 0; j <= t; j++)
            for (int k = 0; k < D; k++) o[k] += s[j] * value[(size_t)j * D + k];
    }
    copy_rows(m->acts.att + ((size_t)from * H + g * each) * D, H * D, out, each * D, to - from, each * D);
}

// One step: feeds next[] to the n active rows, leaves acts.logits (n,V). Of the activations only one layer's
// are needed, and what the prefill has left in them is in the cache.
static void decoder_step(Decoder* d, Model* m, int n, int t) {
    const Config* c = &m->config;
    Activations* a = &m->acts;
    model_reserve(m, n);
    int C = c->width, Q = qkv_width(c), F = c->mlp_width, G = c->kv_heads, HD = c->heads * c->head_dim;
    int V = c->vocab_size, *from = d->from;
    memset(from, 0, (d->B + 1) * sizeof(int));
    for (int i = 0; i < n; i++) from[d->active[i] / d->K + 1]++;
    for (int q = 0; q < d->B; q++) from[q + 1] += from[q];
    for (int i = 0; i < n; i++) d->position[i] = d->P[d->active[i] / d->K] + t;
    embedding_forward(a->x, d->next, m->weights.embedding, n, C);
    for (int l = 0; l < c->layers; l++) {
        const LayerWeights* w = &m->weights.layer[l];
        rmsnorm_forward(a->h1, a->x, w->norm1, c->norm_eps, n, C);
        matmul(a->qkv, Q, view(a->h1, C), view(w->qkv, Q), n, Q, C, 0);
        qk_forward(a->rot, a->qkv, w->qnorm, w->knorm, m->cosine, m->sine, d->position, n, c);
        for (int i = 0; i < n * G; i++) {
            size_t at = cache_place(c, d->active[i / G], l, i % G, d->R);
            cache_tokens(d->own_k + at, d->own_v + at, d->R, t, a->rot + (size_t)(i / G) * Q, 1, i % G, c);
        }
        for (int q = 0; q < d->B; q++)
            for (int g = 0; g < G && from[q] < from[q + 1]; g++)
                decoder_attention(d, m, l, q, g, from[q], from[q + 1], t);
        matmul(a->x, C, view(a->att, HD), view(w->out, C), n, C, HD, 1);
        rmsnorm_forward(a->h1, a->x, w->norm2, c->norm_eps, n, C);
        matmul(a->gu, 2 * F, view(a->h1, C), view(w->gate_up, 2 * F), n, 2 * F, C, 0);
        swiglu_forward(a->act, a->gu, n, F);
        matmul(a->x, C, view(a->act, F), view(w->down, C), n, C, F, 1);
    }
    rmsnorm_forward(a->h1, a->x, m->weights.norm, c->norm_eps, n, C);
    matmul(a->logits, V, view(a->h1, C), transposed(m->weights.unembedding, C), n, V, C, 0);
}

// The row of a prompt, before the first token of the answer.
static void rollout_begin(Rollout* r, const Tokens* prompt) {
    size_t T = r->T;
    r->prompt = prompt->length;
    r->length = r->finished = 0;
    memset(r->ids, 0, T * sizeof(int));
    memset(r->mask, 0, T * sizeof(int));
    memset(r->logp, 0, (T - 1) * sizeof(float));
    memset(r->entropy, 0, (T - 1) * sizeof(float));
    memcpy(r->ids, prompt->ids, prompt->length * sizeof(int));
}

// Samples K rollouts for each of B prompts, into rollouts (B,K) whose rows have room for prompt and
// o.max_new_tokens. A prompt has at least 2 tokens; a rollout that reaches the end of the context is cut off
// there. Rollout k of prompt q draws from random_stream(seed, first + q, k): it depends neither on its
// neighbours nor on the number of threads.
static void sample_rollouts(Rollout* rollouts, Model* m, const Tokens* prompts, int B, int K, SampleOptions o,
                            ForceFunction tool, uint64_t seed, uint64_t first) {
    const Config* c = &m->config;
    int n = B * K, V = c->vocab_size, R = min_int(o.max_new_tokens, c->context);
    for (int q = 0; q < B; q++)
        if (prompts[q].length < 2 || prompts[q].length + 1 > c->context)
            fail(2, "a prompt of %d tokens has no room in a context of %d", prompts[q].length, c->context);
    Decoder d = decoder_new(c, prompts, B, K, R);
    Rng* rng = allocate(n, sizeof(Rng));
    int* forced = allocate((size_t)n * R, sizeof(int));   // tokens to come, of each row
    int *left = allocate(n, sizeof(int)), *taken = allocate(n, sizeof(int));
    for (int i = 0; i < n; i++) {
        const Tokens* prompt = &prompts[i / K];
        rollout_begin(&rollouts[i], prompt);
        rng[i] = random_stream(seed, first + (uint64_t)(i / K), (uint64_t)(i % K));
        d.active[i] = i;
        d.next[i] = prompt->ids[prompt->length - 1];
    }
    decoder_prefill(&d, m, prompts);
    for (int t = 0; t < R && n > 0; t++) {
        int going_on = 0;
        decoder_step(&d, m, n, t);
        for (int i = 0; i < n; i++) {
            int row = d.active[i];
            Rollout* r = &rollouts[row];
            int *answer = r->ids + r->prompt, at = r->prompt + t;
            if (left[row] > 0) {   // the tool's output: forced, not sampled
                answer[t] = forced[(size_t)row * R + taken[row]++];
                left[row]--;
            } else {
                const float* logits = m->acts.logits + (size_t)i * V;
                float *logp = &r->logp[at - 1], *entropy = &r->entropy[at - 1];
                answer[t] = sample_token(logp, entropy, logits, V, o, &rng[row], d.work);
                r->mask[at] = 1;
                r->finished = answer[t] == ASSISTANT_END || answer[t] == BOS;
                left[row] = tool && !r->finished ? tool(forced + (size_t)row * R, R, answer, t + 1) : 0;
                taken[row] = 0;
            }
            r->length = t + 1;
            if (r->finished || d.P[row / K] + t + 2 >= c->context) continue;   // leaves the batch
            d.next[going_on] = answer[t];
            d.active[going_on++] = row;
        }
        n = going_on;
    }
    free(forced), free(left), free(taken), free(rng), free(d.P), free(d.memory);
}

// The same for many prompts, in parallel. Returns (B,K) rollouts, for rollouts_free().
enum { DECODE_ROWS = 128 };          // rows of one batch: enough for the matmul, little enough for the cache
static Rollout* generate(Model* m, const Tokens* prompts, int B, int K, SampleOptions o, ForceFunction tool,
                         uint64_t seed, uint64_t first) {
    int longest = 0, together = max_int(1, DECODE_ROWS / K);
    for (int q = 0; q < B; q++) longest = max_int(longest, prompts[q].length);
    Rollout* rollouts = rollouts_new(B * K, longest + min_int(o.max_new_tokens, m->config.context) + 1);
    if (B <= together) {   // one batch: the products may use the threads
        sample_rollouts(rollouts, worker(m), prompts, B, K, o, tool, seed, first);
        return rollouts;
    }
    #pragma omp parallel for schedule(dynamic)
    for (int q = 0; q < B; q += together) {
        int some = min_int(together, B - q);
        Rollout* r = rollouts + (size_t)q * K;
        sample_rollouts(r, worker(m), prompts + q, some, K, o, tool, seed, first + (uint64_t)q);
    }
    return rollouts;
}

// ==== 9  JSON ================================================================================
// A parser for data files and checkpoints: the whole of RFC 8259, nothing else. A value is a node; the
// members of an object and the items of an array are a linked list. What is no JSON ends the program.

typedef enum { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT } JsonType;

typedef struct Json {
    JsonType type;
    char* key;              // within an object
    char* string;           // JSON_STRING, UTF-8, 0 at the end (a \u0000 inside is refused)
    double number;
    int line;               // of the text, where the value begins
    struct Json *child, *next;
} Json;

enum { JSON_DEPTH = 64, JSON_FIELDS = 10000 };

// Behind the text stands a 0, and nothing below reads beyond one.
typedef struct { const char *at, *line_start, *path; int depth, line; } JsonReader;

static void json_free(Json* j) {
    while (j) {
        Json* next = j->next;
        json_free(j->child);
        free(j->key), free(j->string), free(j);
        j = next;
    }
}

_Noreturn static void json_fail(const JsonReader* r, const char* problem) {
    fail(2, "%s, line %d, column %d: %s", r->path, r->line, (int)(r->at - r->line_start) + 1, problem);
}

static int json_skip(JsonReader* r, const char* word) {   // 1 = the word stood here
    size_t n = strlen(word);
    if (strncmp(r->at, word, n)) return 0;
    r->at += n;
    return 1;
}

static int json_space(JsonReader* r) {   // 1 = something stands behind the space
    for (; *r->at && strchr(" \t\n\r", *r->at); r->at++) {
        if (*r->at != '\n') continue;
        r->line++;
        r->line_start = r->at + 1;
    }
    return *r->at != 0;
}

static void utf8_append(Text* text, unsigned code) {
    static const unsigned char first[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    char c[4];
    int n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, code >>= 6) c[i] = (char)(0x80 | (code & 0x3F));
    c[0] = (char)(first[n] | code);
    text_append(text, c, n);
}

static unsigned json_hex(JsonReader* r) {
    char digits[5] = "";
    strncpy(digits, r->at, 4);
    if (strspn(digits, "0123456789abcdefABCDEF") != 4) json_fail(r, "\\u needs four hexadecimal digits");
    r->at += 4;
    return (unsigned)strtoul(digits, NULL, 16);
}

// What stands behind a backslash. A character beyond the basic plane is written as two \u, a surrogate pair:
// 0xD800 and up, then 0xDC00 and up.
static void json_escape(JsonReader* r, Text* text) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char* known = *r->at ? strchr(from, *r->at) : NULL;
    if (!known && !json_skip(r, "u")) json_fail(r, "unknown escape in a string");
    unsigned code = known ? (unsigned char)to[known - from] : json_hex(r);
    r->at += known != NULL;
    unsigned low = code >= 0xD800 && code < 0xDC00 && json_skip(r, "\\u") ? json_hex(r) : 0;
    if (low >= 0xDC00 && low < 0xE000) code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    if (code >= 0xD800 && code < 0xE000) json_fail(r, "half of a surrogate pair");
    if (code == 0) json_fail(r, "a zero character in a string");
    utf8_append(text, code);
}

static char* json_string(JsonReader* r) {
    Text text = {0};
    text_append(&text, "", 0);
    for (r->at++; !json_skip(r, "\"");) {
        if (!*r->at) json_fail(r, "the text ends inside a string");
        int n = utf8_length(r->at, r->at + 4);
        if (n == 0) json_fail(r, "invalid UTF-8 in a string");
        if ((unsigned char)*r->at < 0x20) json_fail(r, "a control character or a line's end in a string");
        if (json_skip(r, "\\")) json_escape(r, &text);
        else {
            text_append(&text, r->at, n);
            r->at += n;
        }
    }
    return text.data;
}

// strtod() takes more than JSON does: a plus, a dot without digits on both sides, a 0 in front, words.
static double json_number(JsonReader* r) {
    const char *whole = r->at + (*r->at == '-'), *end = r->at + strspn(r->at, "+-.0123456789eE");
    const char* dot = memchr(r->at, '.', end - r->at);
    char* stop;
    double number = strtod(r->at, &stop);
    int zero = whole[0] == '0' && isdigit((unsigned char)whole[1]);
    if (!isdigit((unsigned char)*whole) || zero || stop != end || (dot && !isdigit((unsigned char)dot[1])))
        json_fail(r, "a value was expected");
    r->at = stop;
    return number;
}

static const Json* json_get(const Json* object, const char* key) {
    for (const Json* j = object && object->type == JSON_OBJECT ? object->child : NULL; j; j = j->next)
        if (j->key && !strcmp(j->key, key)) return j;
    return NULL;
}

static Json* json_value(JsonReader* r);

// The inside of brackets. A name that is there twice is refused: some would read the first, others the last.
static void json_members(JsonReader* r, Json* parent) {
    int named = parent->type == JSON_OBJECT, count = 0;
    Json** last = &parent->child;
    r->at++;
    for (json_space(r); !json_skip(r, named ? "}" : "]"); json_space(r), last = &(*last)->next) {
        char* key = NULL;
        if (!*r->at) json_fail(r, "the text ends too early");
        if (count++ && !json_skip(r, ",")) json_fail(r, "a comma or a closing bracket was expected");
        json_space(r);
        if (named) {
            if (*r->at != '"') json_fail(r, "the name of a field was expected");
            if (count > JSON_FIELDS) json_fail(r, "this object has too many fields");
            key = json_string(r);
            if (json_get(parent, key)) json_fail(r, "this field is there twice");
            json_space(r);
            if (!json_skip(r, ":")) json_fail(r, "a colon was expected");
        }
        *last = json_value(r);
        (*last)->key = key;
    }
}

static Json* json_value(JsonReader* r) {
    static const char* const words[] = {"null", "false", "true"};   // by JsonType
    if (!json_space(r)) json_fail(r, "the text ends too early");
    if (r->depth >= JSON_DEPTH) json_fail(r, "brackets are nested too deeply");
    Json* j = allocate(1, sizeof(Json));
    j->line = r->line;
    char c = *r->at;
    j->type = c == '{' ? JSON_OBJECT : c == '[' ? JSON_ARRAY : c == '"' ? JSON_STRING : JSON_NULL;
    r->depth++;
    if (j->type == JSON_STRING) j->string = json_string(r);
    else if (j->type != JSON_NULL) json_members(r, j);
    else {
        while (j->type < JSON_NUMBER && !json_skip(r, words[j->type])) j->type++;
        if (j->type == JSON_NUMBER) j->number = json_number(r);
    }
    r->depth--;
    return j;
}

// The one value that fills the text. `path` is for what an error says.
static Json* json_parse(const char* text, size_t length, const char* path) {
    JsonReader r = {text, text, path, 0, 1};
    Json* j = json_value(&r);
    if (json_space(&r) || r.at != text + length) json_fail(&r, "there is something behind the value");
    return j;
}

static Json* json_read_stream(FILE* file, const char* path) {
    Text text = read_stream(file, path);
    Json* j = json_parse(text.data, text.length, path);
    text_free(&text);
    return j;
}

static void json_append_string(Text* out, const char* s) {
    text_append(out, "\"", 1);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') text_printf(out, "\\%c", c);
        else if (c == '\n') text_append(out, "\\n", 2);
        else if (c < 0x20) text_printf(out, "\\u%04x", c);
        else text_append(out, s, 1);
    }
    text_append(out, "\"", 1);
}

// ---- records: a file of lines, each an object (JSON lines), or one array of objects

// The objects of a file, as the items of an array; each knows its line. The first byte that is no space tells
// the two kinds of file apart: an array begins with '['. json_free() frees them.
static Json* load_records(const char* path) {
    Text text = read_file(path);
    JsonReader r = {text.data, text.data, path, 0, 1};
    json_skip(&r, "\xEF\xBB\xBF");   // byte order mark
    int whole = json_space(&r) && *r.at == '[', line = 0;
    Json *records = whole ? json_value(&r) : allocate(1, sizeof(Json)), **last = &records->child;
    records->type = JSON_ARRAY;
    for (; json_space(&r); last = &(*last)->next) {
        if (whole || r.line == line) json_fail(&r, "there is something behind the value");
        *last = json_value(&r);
        line = r.line;
    }
    if (r.at != text.data + text.length) json_fail(&r, "a zero byte");
    for (const Json* j = records->child; j; j = j->next)
        if (j->type != JSON_OBJECT) fail(2, "%s, line %d: an object {...} was expected", path, j->line);
    text_free(&text);
    return records;
}

// The text of a field that must be there.
static const char* record_text(const Json* record, const char* name, const char* path) {
    const Json* field = json_get(record, name);
    const char* problem = !field ? "missing" : field->type != JSON_STRING ? "not a text"
                        : !*field->string ? "empty" : NULL;
    if (problem) fail(2, "%s, line %d: the field \"%s\" is %s", path, record->line, name, problem);
    return field->string;
}

// ---- problems: records {"question" or "problem", "answer"}

// GSM8K calls the field "question"; its answer is the written solution, with "#### 42" at the end. MATH calls
// it "problem"; its answer is bare, \frac{14}{3}. MATH's field "solution" is read by nobody (D2 section 6).
typedef struct { char *question, *answer; } Problem;
typedef struct { Problem* list; int count; } Problems;

static void problems_free(Problems* p) {
    for (int i = 0; i < p->count; i++) free(p->list[i].question), free(p->list[i].answer);
    free(p->list);
    *p = (Problems){0};
}

static char* copy_text(const char* text) { return strcpy(allocate(strlen(text) + 1, 1), text); }

static const char* question_field(const Json* record) {
    return !json_get(record, "question") && json_get(record, "problem") ? "problem" : "question";
}

static Problems load_problems(const char* path) {
    Json* records = load_records(path);
    Problems p = {0};
    for (const Json* j = records->child; j; j = j->next) {
        const char* question = record_text(j, question_field(j), path);
        const char* answer = record_text(j, "answer", path);
        p.list = enlarge(p.list, p.count + 1, sizeof(Problem));
        p.list[p.count++] = (Problem){copy_text(question), copy_text(answer)};
    }
    json_free(records);
    if (!p.count)
        fail(2, "%s has no problems in it: lines {\"question\": ..., \"answer\": ...} were expected", path);
    return p;
}

// ==== 10  Options ============================================================================
// Every program of this project has one table of options. The table parses the command line, prints --help,
// is written into trainer_state.json, and is read back from there when a run is resumed.

typedef enum { OPTION_INT, OPTION_FLOAT, OPTION_SEED, OPTION_TEXT, OPTION_FLAG } OptionType;

typedef struct {
    const char* name;        // without the two dashes
    OptionType type;
    void* value;             // int, float, uint64_t, const char*, int
    double low, high;        // allowed range of numbers
    const char* help;        // NULL = no option of the command line, only of trainer_state.json
    int saved, given;        // 1 = kept in trainer_state.json for --resume; 1 = set on the command line
} Option;

// One value from its text; complains in a sentence that names the option.
static void option_set(Option* o, const char* text, const char* where) {
    static const char* const wanted[] = {"whole number", "number", "whole number from 0 to 2^64 - 1"};
    char* end;
    // a saved text goes into trainer_state.json, and JSON is UTF-8
    for (const char *p = text, *stop = p + strlen(p); o->saved && p < stop; p += utf8_length(p, stop))
        if (!utf8_length(p, stop)) fail(2, "%s--%s must be valid UTF-8", where, o->name);
    errno = 0;
    uint64_t seed = strtoull(text, &end, 10);
    int bad = !isdigit((unsigned char)*text) || *end || errno;
    double number = strtod(text, &end);
    if (o->type != OPTION_SEED)   // strtod() also takes ' 5' and '0x10'
        bad = end == text || *end || text[strspn(text, "+-.0123456789eE")] || !isfinite(number) ||
              (o->type == OPTION_INT && number != floor(number));
    if (bad && o->type <= OPTION_SEED)
        fail(2, "%s--%s must be a %s, not '%s'", where, o->name, wanted[o->type], text);
    if (o->type <= OPTION_FLOAT && (number < o->low || number > o->high))
        fail(2, "%s--%s must be from %g to %g, not %s", where, o->name, o->low, o->high, text);
    switch (o->type) {
        case OPTION_INT: *(int*)o->value = (int)number; break;
        case OPTION_FLOAT: *(float*)o->value = (float)number; break;
        case OPTION_SEED: *(uint64_t*)o->value = seed; break;
        case OPTION_TEXT: *(const char**)o->value = text; break;
        case OPTION_FLAG: *(int*)o->value = strcmp(text, "0") != 0;
    }
}

static void option_text(const Option* o, char* text, size_t size) {
    switch (o->type) {
        case OPTION_INT: case OPTION_FLAG: snprintf(text, size, "%d", *(int*)o->value); break;
        case OPTION_FLOAT: snprintf(text, size, "%.9g", (double)*(float*)o->value); break;
        case OPTION_SEED: snprintf(text, size, "%llu", (unsigned long long)*(uint64_t*)o->value); break;
        case OPTION_TEXT: snprintf(text, size, "%s", *(const char**)o->value ? *(const char**)o->value : "");
    }
}

// --name=value, --name value, --flag. Returns how many words are no options; they are put into rest (room).
static int parse_options(Option* options, int argc, char** argv, const char** rest, int room) {
    int count = 0;
    for (int i = 0; i < argc; i++) {
        const char *text = argv[i], *equals = strchr(text, '=');
        if (text[0] != '-' || text[1] == 0) {
            if (count == room) fail(2, "'%s' is not expected here; see --help", text);
            rest[count++] = text;
            continue;
        }
        size_t length = strcspn(text, "="), n = strncmp(text, "--", 2) ? 0 : length - 2;
        Option* o = options;
        while (o->name && (n != strlen(o->name) || strncmp(text + 2, o->name, n))) o++;
        if (!o->name || !o->help) fail(2, "unknown option '%.*s'; see --help", (int)length, text);
        int flag = o->type == OPTION_FLAG, next = !flag && !equals;
        if (flag && equals) fail(2, "--%s takes no value", o->name);
        if (next && (i + 1 == argc || !strncmp(argv[i + 1], "--", 2))) fail(2, "--%s needs a value", o->name);
        option_set(o, flag ? "1" : next ? argv[++i] : equals + 1, "");
        o->given = 1;
    }
    return count;
}

// --help anywhere on the command line prints the table and is all that happens.
static int asked_for_help(int argc, char** argv, const char* what, const char* usage, const Option* options) {
    static const char* const kind[] = {" N", " X", " N", " TEXT", ""};
    int asked = 0;
    for (int i = 0; i < argc; i++) asked |= !strcmp(argv[i], "--help") || !strcmp(argv[i], "-h");
    if (asked) printf("%s\n\nusage: %s\n\n", what, usage);
    for (const Option* o = options; asked && o->name; o++) {
        char left[48], value[256];
        if (!o->help) continue;
        option_text(o, value, sizeof value);
        if (o->type == OPTION_FLOAT) snprintf(value, sizeof value, "%g", (double)*(float*)o->value);
        snprintf(left, sizeof left, "--%s%s", o->name, kind[o->type]);
        int column = printf("  %-24s %s", left, o->help);
        if (o->type == OPTION_FLAG || !*value) printf("\n");
        else if (column + strlen(value) + 3 <= 80) printf(" [%s]\n", value);
        else printf("\n%27s[%s]\n", "", value);
    }
    return asked;
}

// ==== 11  Checkpoints and runs ===============================================================
// A checkpoint is a Hugging Face model directory, which other programs can open, plus files of our own, from
// the optimizer on. With them a resumed run is bit for bit the run that was never stopped. (Without the
// moments it is not: nanochat's RL leaves them out, and D1 names that as a limitation.)
static const char* const run_files[] = {
    "config.json",                   // the architecture: Qwen3ForCausalLM, or for a scalar model
    "generation_config.json",        // Qwen3ForSequenceClassification with one label
    "tokenizer.json",                // bytes and special tokens
    "tokenizer_config.json",
    "model.safetensors",             // the weights
    "optimizer.safetensors",         // both moments of AdamW
    "trainer_state.json",            // updates done, and every option of the run
    "metrics.csv",                   // one row for each update
    "value.safetensors",             // PPO's value model: the body that config.json describes, with a score
    "value_optimizer.safetensors",   // as its head; and its moments. Other runs have none.
};
enum { RUN_FILES = sizeof run_files / sizeof *run_files, VALUE_FILES = 2 };

// ---- a set of files that appears whole or not at all
// A save is written into the folder .saving within the run's folder and flushed to the disk. Then .saving is
// renamed to .saved: this one step is the save. Its files are then moved into their places. A process that is
// killed earlier leaves the old files, later the new ones: whoever reads a file looks in .saved first, and
// changes nothing; the next run that writes here moves what is left.

// File `name` of a checkpoint, opened to be read; NULL when it is not there. path is where it was looked for.
static FILE* open_saved(char path[PATH_SIZE], const char* folder, const char* name) {
    char saved[PATH_SIZE];
    join_path(saved, folder, ".saved");
    join_path(path, saved, name);
    FILE* file = fopen(path, "rb");
    if (file) return file;
    join_path(path, folder, name);
    return fopen(path, "rb");
}

static int has_saved(const char* folder, const char* name) {
    char path[PATH_SIZE];
    FILE* file = open_saved(path, folder, name);
    if (file) fclose(file);
    return file != NULL;
}

// Moves all files of folder/from into the folder, or removes them; then folder/from is gone.
static void empty_folder(const char* folder, const char* from, int keep) {
    char inner[PATH_SIZE], old[PATH_SIZE], new[PATH_SIZE];
    join_path(inner, folder, from);
    flush_folder(folder);
    for (int i = 0; i < RUN_FILES; i++) {
        join_path(old, inner, run_files[i]);
        join_path(new, folder, run_files[i]);
        if ((keep ? rename(old, new) : remove(old)) != 0 && errno != ENOENT)
            fail(1, "cannot %s %s: %s", keep ? "move" : "remove", old, strerror(errno));
    }
    flush_folder(folder);
    rmdir(inner);
}

static FILE* begin_save(char path[PATH_SIZE], const char* folder, const char* name) {
    char inner[PATH_SIZE];
    join_path(inner, folder, ".saving");
    mkdir(inner, 0777);
    join_path(path, inner, name);
    return fopen(path, "wb");
}

static void end_save(FILE* file, const char* folder, const char* path) {
    int reason = close_written(file);
    if (!reason) return;
    empty_folder(folder, ".saving", 0);
    fail(1, "cannot write %s: %s; what was there before is untouched", path, strerror(reason));
}

static void save_text(const char* folder, const char* name, Text* text) {
    char path[PATH_SIZE];
    FILE* file = begin_save(path, folder, name);
    if (file) fwrite(text->data, 1, text->length, file);
    end_save(file, folder, path);
    text_free(text);
}

// ---- config.json

// The architectures by their Hugging Face names, [scalar].
static const char* const architectures[] = {"Qwen3ForCausalLM", "Qwen3ForSequenceClassification"};

// What section 5 computes. A model with anything else in its place would be computed wrong: it is refused.
static const char* const config_plain[][2] = {
    {"model_type", "\"qwen3\""},      {"hidden_act", "\"silu\""},   {"attention_bias", "false"},
    {"use_sliding_window", "false"},  {"rope_scaling", "null"},     {"rope_type", "\"default\""},
    {"partial_rotary_factor", "1.0"},
};
enum { CONFIG_PLAIN = sizeof config_plain / sizeof *config_plain, CONFIG_WRITTEN = 5 };

static void config_to_json(Text* out, const Config* c) {
    text_printf(out, "{\n  \"architectures\": [\"%s\"],\n", architectures[c->scalar]);
    // transformers takes the score of the last token that is not padding, and refuses two texts at once when
    // it does not know which token padding is. <|bos|> never ends a text; <|assistant_end|> does.
    if (c->scalar) text_printf(out, "  \"num_labels\": 1,\n  \"pad_token_id\": %d,\n", BOS);
    for (int i = 0; i < CONFIG_SIZES; i++)
        text_printf(out, "  \"%s\": %d,\n", config_sizes[i].name, *config_size(c, i));
    for (int i = 0; i < CONFIG_WRITTEN; i++)
        text_printf(out, "  \"%s\": %s,\n", config_plain[i][0], config_plain[i][1]);
    text_printf(out, "  \"rope_theta\": %.9g,\n  \"rms_norm_eps\": %.9g,\n  \"tie_word_embeddings\": %s,\n"
                     "  \"bos_token_id\": %d,\n  \"eos_token_id\": %d,\n  \"torch_dtype\": \"float32\"\n}\n",
                (double)c->rope_theta, (double)c->norm_eps, c->tied ? "true" : "false", BOS, ASSISTANT_END);
}

static int json_is_size(const Json* j, double limit) {
    double x = j && j->type == JSON_NUMBER ? j->number : -1.0;
    return x >= 0.0 && x <= limit && x == floor(x);
}

// Whether two values are the same, whatever the order of their fields.
static int json_same(const Json* a, const Json* b) {
    if (!a || !b || a->type != b->type || a->number != b->number) return a == b;
    if (a->type == JSON_STRING) return !strcmp(a->string, b->string);
    const Json *x = a->child, *y = b->child;
    for (; x && y; x = x->next, y = y->next)
        if (!json_same(x, a->type == JSON_OBJECT ? json_get(b, x->key) : y)) return 0;
    return !x && !y;
}

static int json_same_text(const Json* j, const char* text) {
    Json* expected = json_parse(text, strlen(text), "");
    int same = json_same(j, expected);
    json_free(expected);
    return same;
}

static void check_plain(const Json* j, const char* path) {
    for (int i = 0; i < CONFIG_PLAIN; i++) {
        const char *name = config_plain[i][0], *value = config_plain[i][1];
        const Json* field = json_get(j, name);
        if (!field || field->type == JSON_NULL || json_same_text(field, value)) continue;
        if (field->type == JSON_OBJECT && json_get(field, "rope_type")) continue;   // check_plain() sees it
        fail(2, "%s: \"%s\" is %s; only %s can be computed", path, name,
             field->type == JSON_STRING ? field->string : "another one", value);
    }
}

static float config_float(const Json* j, const char* name, double fallback, const char* path) {
    const Json* field = json_get(j, name);
    if (field && field->type != JSON_NUMBER) fail(2, "%s: the field \"%s\" is not a number", path, name);
    return (float)(field ? field->number : fallback);
}

static Config config_from_json(const char* folder) {
    char path[PATH_SIZE];
    Json* j = json_read_stream(open_saved(path, folder, "config.json"), path);
    const Json *built = json_get(j, "architectures"), *tied = json_get(j, "tie_word_embeddings");
    const Json *rope = json_get(j, "rope_parameters"), *layers = json_get(j, "layer_types");
    const char* name = built && built->child ? built->child->string : NULL;
    int scalar = name && !strcmp(name, architectures[1]);
    if (!json_get(j, "model_type")) fail(2, "%s: the field \"model_type\" is missing", path);
    if (name && !scalar && strcmp(name, architectures[0]))
        fail(2, "%s: the architecture is \"%s\"; only %s can be computed", path, name, architectures[0]);
    check_plain(j, path);
    check_plain(rope, path);
    check_plain(json_get(j, "rope_scaling"), path);
    for (const Json* layer = layers ? layers->child : NULL; layer; layer = layer->next)
        if (!json_same_text(layer, "\"full_attention\""))
            fail(2, "%s: \"layer_types\" has another layer than \"full_attention\"", path);
    Config c = {.tied = tied && tied->type == JSON_TRUE, .scalar = scalar};
    for (int i = 0; i < CONFIG_SIZES; i++) {
        const Json* field = json_get(j, config_sizes[i].name);
        int *size = config_size(&c, i), usual = size == &c.kv_heads ? c.heads : c.width / max_int(c.heads, 1);
        const char* problem = field && !json_is_size(field, 1e9) ? "not a whole number"
                            : !field && i < CONFIG_SIZES - 2 ? "missing" : NULL;
        if (problem) fail(2, "%s: the field \"%s\" is %s", path, config_sizes[i].name, problem);
        *size = field ? (int)field->number : usual;
    }
    c.norm_eps = config_float(j, "rms_norm_eps", 1e-6, path);
    c.rope_theta = config_float(json_get(j, "rope_theta") ? j : rope, "rope_theta", 10000.0, path);
    check_config(&c, path);
    json_free(j);
    return c;
}

// ---- tokenizer.json

static void tokenizer_to_json(Text* out) {
    static const char bytes[] = "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
                                "\"trim_offsets\": true, \"use_regex\": false}";
    text_printf(out, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  "
                     "\"added_tokens\": [\n");
    for (int i = 256; i < VOCAB_SIZE; i++)
        text_printf(out, "    {\"id\": %d, \"content\": \"%s\", \"single_word\": false, \"lstrip\": false, "
                         "\"rstrip\": false, \"normalized\": false, \"special\": true}%s\n",
                    i, special_names[i - 256], i + 1 < VOCAB_SIZE ? "," : "");
    text_printf(out, "  ],\n  \"normalizer\": null,\n  \"pre_tokenizer\": %s,\n  \"post_processor\": null,\n"
                     "  \"decoder\": %s,\n  \"model\": {\"type\": \"BPE\", \"dropout\": null, "
                     "\"unk_token\": null, \"continuing_subword_prefix\": null, \"end_of_word_suffix\": null,"
                     "\n    \"fuse_unk\": false, \"byte_fallback\": false, \"vocab\": {\n", bytes, bytes);
    // GPT-2's way to write a byte as a visible character: printable Latin-1 stands for itself, the other 68
    // bytes are U+0100 and up in order
    for (int b = 0, next = 256; b < 256; b++) {
        int visible = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
        text_printf(out, "      \"%s", b == '"' || b == '\\' ? "\\" : "");
        utf8_append(out, (unsigned)(visible ? b : next++));
        text_printf(out, "\": %d%s\n", b, b < 255 ? "," : "");
    }
    text_printf(out, "    }, \"merges\": []}\n}\n");
}

// Tokens that were cut in another way would be read as nonsense. (A folder may have no tokenizer.)
static void check_tokenizer(const char* folder) {
    char path[PATH_SIZE];
    Text text = {0};
    FILE* file = open_saved(path, folder, "tokenizer.json");
    if (!file) return;
    tokenizer_to_json(&text);
    Json *ours = json_parse(text.data, text.length, ""), *theirs = json_read_stream(file, path);
    const Json *a = json_get(ours, "model"), *b = json_get(theirs, "model");
    if (!json_same(json_get(ours, "added_tokens"), json_get(theirs, "added_tokens")) ||
        !json_same(json_get(a, "vocab"), json_get(b, "vocab")) ||
        !json_same(json_get(a, "merges"), json_get(b, "merges")))
        fail(2, "%s is another tokenizer than this program's 256 bytes and nine special tokens", path);
    json_free(ours), json_free(theirs);
    text_free(&text);
}

// ---- safetensors: the length of the header in 8 bytes, the header as JSON, the numbers row by row

// Writes or reads the numbers of a tensor in the order of the file: IEEE floats, the lowest byte first; of
// BF16 (bytes = 2) the upper half. Without a file only looks at them. Returns whether all are finite.
static int pass_tensor(FILE* file, const Tensor* t, int reads, int bytes) {
    int finite = 1;
    for (int i = 0; i < t->rows; i++)
        for (int j = 0; j < max_int(t->cols, 1); j++) {
            float* place = &t->data[i * t->row + j * t->col];
            union { float f; uint32_t u; } number = {.u = 0};
            if (!reads) number.f = *place;
            for (int shift = 32 - 8 * bytes; shift < 32 && file; shift += 8)
                if (reads) number.u |= (uint32_t)(getc_unlocked(file) & 0xFF) << shift;
                else putc_unlocked((int)(number.u >> shift & 0xFF), file);
            finite &= isfinite(number.f) != 0;
            if (reads) *place = number.f;
        }
    return finite;
}

// What a file holds: the tensors of the weights w, or of both moments of an optimizer; to be freed.
static Tensor* list_tensors(int* count, const Config* c, const Weights* w, const Optimizer* o) {
    int each = tensor_count(c);
    Tensor* list = allocate(2 * each, sizeof(Tensor));
    tensor_list(list, o ? &o->first : w, c, o ? "exp_avg." : "");
    if (o) tensor_list(list + each, &o->second, c, "exp_avg_sq.");
    *count = o ? 2 * each : each;
    return list;
}

// What is not finite is neither trained on nor saved: the checkpoint before it stays.
static void check_finite(const Config* c, const Weights* w, const Optimizer* o, const char* whose,
                         const char* folder, long step) {
    int count;
    Tensor* list = list_tensors(&count, c, w, o);
    for (int k = 0; k < count; k++) {
        if (pass_tensor(NULL, &list[k], 0, 4)) continue;
        empty_folder(folder, ".saving", 0);
        fail(1, "after update %ld %s%s is not finite; what was saved before stays in %s; try a smaller --lr",
             step, whose, list[k].name, folder);
    }
    free(list);
}

// Checks type and shape of a tensor that the header describes in `entry`; returns the bytes of a number.
static int tensor_bytes(const Tensor* t, const Json* entry, const char* path) {
    const Json *dtype = json_get(entry, "dtype"), *from = json_get(entry, "data_offsets")->child;
    const char* format = dtype && dtype->type == JSON_STRING ? dtype->string : "of another kind";
    int bytes = !strcmp(format, "F32") ? 4 : !strcmp(format, "BF16") ? 2 : 0;
    if (!bytes)
        fail(2, "%s: tensor %s has the number format %s; F32 and BF16 can be read", path, t->name, format);
    if (!json_same_text(json_get(entry, "shape"), t->shape))
        fail(2, "%s: tensor %s does not have the shape that config.json asks for, %s", path, t->name,
             t->shape);
    if (from->next->number - from->number != (double)bytes * t->rows * max_int(t->cols, 1))
        fail(2, "%s: tensor %s has another number of bytes than its shape", path, t->name);
    return bytes;
}

// Reads the numbers of `count` tensors, in the order of the file: each begins where the last one ended, so
// that there is no gap, no overlap, and no other end than the file's.
static void read_tensors(const Tensor* list, int count, const Json* header, double size, FILE* file,
                         const char* path) {
    int found = 0, entries = 0;
    for (const Json* j = header->child; j; j = j->next) entries += strcmp(j->key, "__metadata__") != 0;
    for (int k = 0; k < count; k++)
        if (!json_get(header, list[k].name)) fail(2, "%s: the tensor %s is missing", path, list[k].name);
    for (double at = 0.0, end = 0.0; at < size; at = end, found++) {
        const Json *entry = header->child, *from = NULL;
        for (; entry; entry = entry->next) {
            from = json_get(entry, "data_offsets");
            from = from ? from->child : NULL;
            if (json_is_size(from, size) && json_is_size(from->next, size) && from->number == at) break;
        }
        if (!entry || from->next->number <= at)
            fail(2, "%s: no tensor begins at byte %.0f behind the header: it is damaged", path, at);
        end = from->next->number;
        int k = 0;
        while (k < count && strcmp(list[k].name, entry->key)) k++;
        if (k < count && !pass_tensor(file, &list[k], 1, tensor_bytes(&list[k], entry, path)))
            fail(2, "%s: the tensor %s has numbers that are not finite", path, entry->key);
        if (k == count && strcmp(entry->key, "lm_head.weight"))   // some write a tied embedding twice
            fail(2, "%s has the tensor %s, which is not in the model of config.json", path, entry->key);
        if (k == count) fseek(file, (long)(end - at), SEEK_CUR);
    }
    if (found != entries || ferror(file) || feof(file))
        fail(2, "%s: %d tensors overlap, or the file is truncated", path, entries - found);
}

// A count from the metadata, all of it digits; without it: the fallback.
static long metadata_count(const Json* header, const char* name, long fallback, const char* path) {
    const Json* count = json_get(json_get(header, "__metadata__"), name);
    if (!count) return fallback;
    const char* text = count->type == JSON_STRING ? count->string : "";
    if (!*text || strlen(text) > 15 || text[strspn(text, "0123456789")])
        fail(2, "%s: \"%s\" in its header is '%s', not a number of up to 15 digits", path, name, text);
    return strtol(text, NULL, 10);
}

// Reads a model, or an optimizer, of the sizes c from a file of a checkpoint; with neither (NULL) only its
// number of updates. That must be `step` (if it is not -1), or the weights of one update would go on with the
// moments of another. The file's size is looked at before memory for its numbers is asked for.
static void read_weights(Model* m, Optimizer* o, const Config* c, const char* folder, const char* name,
                         long step) {
    char path[PATH_SIZE];
    struct stat info;
    size_t undecayed;
    uint64_t length = 0;
    int count;
    FILE* file = open_saved(path, folder, name);
    if (!file || fstat(fileno(file), &info) != 0) fail(2, "cannot open %s: %s", path, strerror(errno));
    for (int i = 0; i < 8; i++) length |= (uint64_t)(getc(file) & 0xFF) << 8 * i;
    if (info.st_size < 8 || length > (uint64_t)info.st_size - 8 || length > 1 << 22)
        fail(2, "%s: the file ends inside its header; it is truncated or no safetensors file", path);
    char* text = allocate(length + 1, 1);
    if (fread(text, 1, length, file) != length) fail(2, "cannot read %s: %s", path, strerror(errno));
    double size = (double)info.st_size - 8.0 - (double)length;   // of the numbers
    Json* header = json_parse(text, length, path);
    long found = metadata_count(header, "step", -1, path);
    if (step >= 0 && found != step)
        fail(2, "%s belongs to update %ld, trainer_state.json to update %ld", path, found, step);
    if (size < 2.0 * (double)weight_count(c, &undecayed))
        fail(2, "%s is too small for the model that config.json describes; it is truncated or damaged", path);
    if (m) *m = model_new(*c);
    if (o) *o = optimizer_new(c);
    if (o) o->step = metadata_count(header, "optimizer_steps", found, path);   // else one for each update
    if (m || o) {
        Tensor* list = list_tensors(&count, c, m ? &m->weights : NULL, o);
        read_tensors(list, count, header, size, file, path);
        free(list);
    }
    json_free(header), free(text);
    fclose(file);
}

// Saves the weights of m, or with an optimizer both of its moments. step counts updates; an optimizer adds
// its own steps, since AdamW counts each minibatch of an update.
static void save_weights(const char* folder, const char* name, const Model* m, const Optimizer* o,
                         long step) {
    char path[PATH_SIZE];
    Text header = {0};
    size_t offset = 0;
    int count;
    check_finite(&m->config, &m->weights, o, "", folder, step);
    Tensor* list = list_tensors(&count, &m->config, &m->weights, o);
    text_printf(&header, "{\"__metadata__\":{\"format\":\"pt\",\"step\":\"%ld\",\"optimizer_steps\":\"%ld\"}",
                step, o ? o->step : step);
    for (int k = 0; k < count; k++) {
        size_t bytes = 4 * (size_t)list[k].rows * max_int(list[k].cols, 1);
        text_printf(&header, ",\"%s\":{\"dtype\":\"F32\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
                    list[k].name, list[k].shape, offset, offset + bytes);
        offset += bytes;
    }
    text_append(&header, "}", 1);
    while (header.length % 8) text_append(&header, " ", 1);
    FILE* file = begin_save(path, folder, name);
    for (int i = 0; i < 8 && file; i++) putc((int)((uint64_t)header.length >> 8 * i & 0xFF), file);
    if (file) fwrite(header.data, 1, header.length, file);
    for (int k = 0; k < count && file; k++) pass_tensor(file, &list[k], 0, 4);
    end_save(file, folder, path);
    text_free(&header), free(list);
}

// Saves a checkpoint from which the run can be resumed; it appears whole or not at all. trainer_state.json
// says which program it was, how many updates are done, and every option of the run. (Random numbers need no
// entry: they are functions of seed and update.) Without a value model (NULL) what an earlier run has left of
// one is removed. (Whoever is killed before that leaves a file of another update, which is refused.)
static void save_run(const char* folder, const char* kind, const Option* options, long step, const Model* m,
                     const Optimizer* o, const Model* value, const Optimizer* value_o) {
    Text text = {0};
    char path[PATH_SIZE], saving[PATH_SIZE], saved[PATH_SIZE], value_text[PATH_SIZE];
    const char* comma = "";
    make_folder(folder);
    config_to_json(&text, &m->config);
    save_text(folder, "config.json", &text);
    text_printf(&text, "{\n  \"bos_token_id\": %d,\n  \"eos_token_id\": [%d, %d],\n  \"do_sample\": true,\n"
                       "  \"temperature\": 1.0,\n  \"top_k\": 50\n}\n", BOS, ASSISTANT_END, BOS);
    save_text(folder, "generation_config.json", &text);
    tokenizer_to_json(&text);
    save_text(folder, "tokenizer.json", &text);
    text_printf(&text, "{\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\",\n  \"bos_token\": \"%s\",\n  "
                       "\"eos_token\": \"%s\",\n  \"clean_up_tokenization_spaces\": false,\n  ",
                special_names[0], special_names[ASSISTANT_END - 256]);
    if (m->config.scalar) text_printf(&text, "\"pad_token\": \"%s\",\n  ", special_names[0]);
    text_printf(&text, "\"model_max_length\": %d\n}\n", m->config.context);
    save_text(folder, "tokenizer_config.json", &text);
    save_weights(folder, "model.safetensors", m, NULL, step);
    save_weights(folder, "optimizer.safetensors", m, o, step);
    if (value) save_weights(folder, "value.safetensors", value, NULL, step);
    if (value) save_weights(folder, "value_optimizer.safetensors", value, value_o, step);
    text_printf(&text, "{\n  \"kind\": \"%s\",\n  \"step\": %ld,\n  \"options\": {", kind, step);
    for (const Option* t = options; t->name; t++) {
        if (!t->saved) continue;
        option_text(t, value_text, sizeof value_text);
        text_printf(&text, "%s\n    \"%s\": ", comma, t->name);
        json_append_string(&text, value_text);
        comma = ",";
    }
    text_printf(&text, "\n  }\n}\n");
    save_text(folder, "trainer_state.json", &text);
    join_path(saving, folder, ".saving");
    join_path(saved, folder, ".saved");
    flush_folder(saving);
    if (rename(saving, saved) != 0) fail(1, "cannot rename %s to %s: %s", saving, saved, strerror(errno));
    empty_folder(folder, ".saved", 1);
    for (int i = RUN_FILES - VALUE_FILES; i < RUN_FILES && !value; i++) {
        join_path(path, folder, run_files[i]);
        remove(path);
    }
}

static Model load_model(const char* folder) {
    if (!file_exists(folder)) fail(2, "there is no checkpoint directory '%s'", folder);
    Config c = config_from_json(folder);
    Model m;
    read_weights(&m, NULL, &c, folder, "model.safetensors", -1);
    if (c.vocab_size == VOCAB_SIZE) check_tokenizer(folder);
    return m;
}

// A model that can write, in the tokens of this tokenizer.
static Model load_fitting_model(const char* folder) {
    Model m = load_model(folder);
    if (m.config.scalar)
        fail(2, "%s holds a reward model: it gives scores and cannot write; choose another one", folder);
    if (m.config.vocab_size != VOCAB_SIZE)
        fail(2, "the model %s has a vocabulary of %d tokens; this tokenizer has %d", folder,
             m.config.vocab_size, VOCAB_SIZE);
    return m;
}

// The optimizer of a checkpoint. Are the weights that load_model() has read of the same update?
static Optimizer load_optimizer(const char* folder, const Config* c, long step) {
    Optimizer o;
    read_weights(NULL, NULL, c, folder, "model.safetensors", step);
    read_weights(NULL, &o, c, folder, "optimizer.safetensors", step);
    return o;
}

#ifdef TRAIN_GPT_NO_MAIN   // rl.c has value models
// The value model of a checkpoint and its optimizer; c is the policy's configuration.
static Model load_value_model(Optimizer* o, const char* folder, const Config* c, long step) {
    Config config = *c;
    Model m;
    config.scalar = 1;
    read_weights(&m, NULL, &config, folder, "value.safetensors", step);
    read_weights(NULL, o, &config, folder, "value_optimizer.safetensors", step);
    return m;
}
#endif

// ---- the folder of a run

// Takes the folder `out` for this process, until it ends or closes the file that is returned: a second one
// that wants to write there is refused. (A lock ends with its process. A disk without locks has none.) What a
// killed save has left is moved. A run that is there is worth more than a forgotten --out.
static int take_folder(const char* out, int is_new, int overwrite) {
    char path[PATH_SIZE];
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    join_path(path, out, ".saving/value_optimizer.safetensors");
    if (!file_exists(path) && errno == ENAMETOOLONG) fail(2, "the path %s is too long", path);
    join_path(path, out, ".lock");
    int file = open(path, O_RDWR | O_CREAT, 0666);
    if (file < 0 && (errno == ENOENT || errno == ENOTDIR)) return -1;   // no folder, no run
    if (file < 0) fail(1, "cannot write into the directory %s: %s", out, strerror(errno));
    if (fcntl(file, F_SETLK, &lock) != 0 && (errno == EACCES || errno == EAGAIN))
        fail(2, "another program is training into %s; wait for its end, or try another --out", out);
    empty_folder(out, ".saved", 1);
    if (is_new && !overwrite && has_saved(out, "model.safetensors"))
        fail(2, "%s holds a run: --resume %s goes on with it, --overwrite replaces it; or try another --out",
             out, out);
    return file;
}

// Options of the saved run that were not given anew take their saved values. Returns the number of updates
// done. The file stays in memory: options point into its texts.
static long state_from_json(const char* folder, const char* kind, Option* options) {
    static Json* kept;
    char path[PATH_SIZE];
    FILE* file = open_saved(path, folder, "trainer_state.json");
    if (!file) fail(2, "%s has no trainer_state.json: a run can be started from it, not resumed", folder);
    Json* j = json_read_stream(file, path);
    const Json *found = json_get(j, "kind"), *step = json_get(j, "step"), *saved = json_get(j, "options");
    if (!found || found->type != JSON_STRING || !json_is_size(step, 1e15) || !saved)
        fail(2, "%s is damaged: the fields \"kind\", \"step\" and \"options\" were expected", path);
    if (strcmp(found->string, kind))
        fail(2, "%s was written by a run of kind \"%s\", this one is of kind \"%s\": start from it instead",
             folder, found->string, kind);
    for (Option* o = options; o->name; o++) {
        const Json* value = o->saved && !o->given ? json_get(saved, o->name) : NULL;
        if (value && value->type == JSON_STRING) option_set(o, value->string, "in trainer_state.json: ");
    }
    j->next = kept;
    kept = j;
    return (long)step->number;
}

// The first thing that a training command does: it goes on with the run `resume`, whose options it takes, or
// begins one in *out (*usual, when no --out was given). Returns the number of updates done.
static long choose_run(const char** out, const char* usual, const char* resume, int overwrite,
                       const char* kind, Option* options) {
    if (resume && overwrite)
        fail(2, "--resume goes on with a run and --overwrite begins another one: leave one out");
    if (resume && *out != usual && !same_folder(*out, resume))
        fail(2, "a run goes on in its own folder: copy %s to %s and resume that, or leave --out out",
             resume, *out);
    if (resume) *out = resume;
    take_folder(*out, !resume, overwrite);
    return resume ? state_from_json(resume, kind, options) : 0;
}

// The data that a run is made of must be the same to its end: their bytes as one number (FNV-1a). *known is 0
// in a new run, else from its state.
static void check_data(uint64_t* known, const char* path) {
    Text text = read_file(path);
    uint64_t hash = 0xCBF29CE484222325u;
    for (size_t i = 0; i < text.length; i++) hash = (hash ^ (unsigned char)text.data[i]) * 0x100000001B3u;
    if (*known && *known != hash)
        fail(2, "%s has changed since the run began; bring the old file back, or start a new run", path);
    *known = hash;
    text_free(&text);
}

// "update 37 of 100, 12 s left", rewritten in place, on a terminal only
static void progress(long done, long total, double started) {
    if (!isatty(2)) return;
    double left = done ? (seconds_now() - started) / (double)done * (double)(total - done) : 0.0;
    fprintf(stderr, "\r  update %ld of %ld, %.0f s left \033[K\r", done, total, left);
    if (done == total || stop_asked > 0) fprintf(stderr, "\r\033[K");
    fflush(stderr);
}

// metrics.csv: one line per update. A resumed run needs those of the updates it has done, and drops later
// ones, which it will do again. A new run that replaces another writes its table beside the first save, so
// that weights and rows never come from two runs.
static FILE* open_metrics(const char* out, const char* header, long step) {
    char path[PATH_SIZE];
    FILE* file;
    join_path(path, out, "metrics.csv");
    if (step == 0) {
        file = has_saved(out, "model.safetensors") ? begin_save(path, out, "metrics.csv") : fopen(path, "wb");
        if (file) fputs(header, file);
    } else {
        Text old = read_file(path);
        size_t at = strlen(header);
        int ok = !strncmp(old.data, header, at);
        for (long row = 0; row < step; row++) {
            char *line = old.data + at, *stop = line;
            ok = ok && isdigit((unsigned char)*line) && strtol(line, &stop, 10) == row && *stop == ',';
            if (!ok || !strchr(line, '\n'))
                fail(2, "%s does not have its row of update %ld any more; bring the file back", path, row);
            at += strcspn(line, "\n") + 1;
        }
        text_free(&old);
        file = truncate(path, (off_t)at) == 0 ? fopen(path, "ab") : NULL;
    }
    if (!file || fflush(file) != 0) fail(1, "cannot write %s: %s", path, strerror(errno));
    return file;
}

// ---- a run: what all kinds of training have around their updates
// It begins (run_begin), and while it goes on (run_goes_on) update number r.step is made, the first is 0, and
// recorded (run_record: a row, perhaps a line; r.step grows), and saved when it is time (run_saves).

// An update's record is a struct of doubles; a list of columns, the last one empty, says what they are.
// metrics.csv gets all, the screen those with a title, as means since the last line. NaN is an empty field,
// on the screen -. A number in a column looked at now and then (rare) brings a line.
typedef struct { const char *name, *title; size_t at; int width, digits, rare; } Column;
enum { MAX_COLUMNS = 32 };

typedef struct {
    const char* out;
    FILE* metrics;
    int lock;                        // the file that says that this process writes here
    const Column* columns;
    long step, steps, begun;         // updates done, asked for, done before this process
    int log_every, save_every, stop; // updates between two lines, between two saves; 1 = Ctrl-C was pressed
    double started;                  // in seconds
    double sum[MAX_COLUMNS];         // since the last line, and of how many numbers
    int count[MAX_COLUMNS], lines;   // lines printed
} Run;

// Takes the folder `out` and opens its metrics.csv; `step` updates of `steps` are done.
static Run run_begin(const char* out, int overwrite, const Column* columns, long step, long steps,
                     int log_every, int save_every) {
    Text header = {0};
    if (step >= steps)
        fail(2, "the run in %s is finished: %ld of %ld updates are done; --num-steps "
                "(./train_gpt: --steps) asks for more", out, step, steps);
    make_folder(out);
    Run r = {.out = out, .lock = take_folder(out, step == 0, overwrite), .columns = columns, .step = step,
             .steps = steps, .begun = step, .log_every = log_every, .save_every = save_every,
             .started = seconds_now()};
    empty_folder(out, ".saving", 0);
    text_printf(&header, "step");
    for (const Column* c = columns; c->name; c++) text_printf(&header, ",%s", c->name);
    text_printf(&header, "\n");
    r.metrics = open_metrics(out, header.data, step);
    text_free(&header);
    stop_asked = 0;
    return r;
}

static int run_goes_on(const Run* r) { return r->step < r->steps && !r->stop; }

// After every `every` updates (0: never) and after the last one, also when Ctrl-C has made it the last.
static int run_due(const Run* r, int every) { return !run_goes_on(r) || (every && r->step % every == 0); }

static void print_line(Run* r) {
    if (!r->lines++) {
        printf("update");
        for (const Column* c = r->columns; c->name; c++) if (c->title) printf("%*s", c->width, c->title);
        printf("\n");
    }
    printf("%6ld", r->step);
    for (int i = 0; r->columns[i].name; i++) {
        const Column* c = &r->columns[i];
        if (c->title && r->count[i])
            printf(c->digits < 0 ? "%*.*e" : "%*.*f", c->width, abs(c->digits), r->sum[i] / r->count[i]);
        else if (c->title && !c->rare) printf("%*s", c->width, "-");
        r->sum[i] = 0.0;
        r->count[i] = 0;
    }
    printf("\n");
    fflush(stdout);
}

// One more update is done, and record says how it was. Only here is stop_asked looked at: a signal between
// two looks must not skip the save. The value model is NULL where there is none.
static void run_record(Run* r, const Model* m, const Model* value, const void* record) {
    int rare = 0;
    if (value) check_finite(&value->config, &value->weights, NULL, "the value's ", r->out, r->step + 1);
    check_finite(&m->config, &m->weights, NULL, "", r->out, r->step + 1);
    fprintf(r->metrics, "%ld", r->step);
    for (int i = 0; r->columns[i].name; i++) {
        double number = *(const double*)((const char*)record + r->columns[i].at);
        fprintf(r->metrics, isnan(number) ? "," : ",%.9g", number);
        if (isnan(number)) continue;
        r->sum[i] += number;
        r->count[i]++;
        rare |= r->columns[i].rare;
    }
    fprintf(r->metrics, "\n");
    r->step++;
    progress(r->step - r->begun, r->steps - r->begun, r->started);
    r->stop = stop_asked != 0;
    if (rare || run_due(r, r->log_every)) print_line(r);
}

// The row is written and the folder looked at after every update: who has neither learns it at once.
static int run_saves(const Run* r) {
    char path[PATH_SIZE];
    struct stat mine, found;
    join_path(path, r->out, ".lock");
    if (fflush(r->metrics) != 0) fail(1, "cannot write %s/metrics.csv: %s", r->out, strerror(errno));
    if (stat(path, &found) != 0 || fstat(r->lock, &mine) != 0 || found.st_ino != mine.st_ino)
        fail(1, "%s was moved or removed while the run was writing into it", r->out);
    if (run_due(r, r->save_every)) fsync(fileno(r->metrics));
    return run_due(r, r->save_every);
}

// Returns the exit status: 0, or 130 after Ctrl-C.
static int run_end(Run* r, const char* program, const char* out) {
    if (fclose(r->metrics) != 0) fail(1, "cannot write %s/metrics.csv: %s", out, strerror(errno));
    close(r->lock);
    stop_asked = -1;
    if (!r->stop) return 0;
    if (r->step == r->steps) printf("stopped after the last update, %ld, and saved in %s\n", r->step, out);
    else printf("stopped after update %ld and saved; go on with: %s --resume %s\n", r->step, program, out);
    return 130;
}

// ==== 12  Supervised training ================================================================
// The loss is the mean of -logp over the assistant's own tokens (mask 1), over the whole batch:
//     loss = -1/M sum over scored tokens of log p(token | what came before)          d(loss)/d(logp) = -1/M

typedef struct {
    const char *data, *eval_data, *model, *out, *resume;
    int overwrite, steps, batch_size, warmup_steps, save_every, log_every, threads;
    float lr, final_lr_frac, grad_clip;
    AdamOptions adam;
    uint64_t seed, data_hash;
    Config config;
} TrainOptions;

static TrainOptions train_defaults(void) {
    return (TrainOptions){
        .data = "data/demos.jsonl", .out = "out/sft", .steps = 1000, .batch_size = 24, .log_every = 50,
        .lr = 4e-3f, .warmup_steps = 20, .final_lr_frac = 0.0f, .grad_clip = 1.0f, .seed = 1,
        .adam = {0.9f, 0.95f, 1e-8f, 0.1f},
        .config = {VOCAB_SIZE, 256, 3, 96, 4, 2, 24, 256, 1, 10000.0f, 1e-6f, 0},
    };
}

enum { TRAIN_OPTIONS = 32 };
static void train_options(Option* t, TrainOptions* o) {
    Option table[TRAIN_OPTIONS] = {
        {"data", OPTION_TEXT, &o->data, 0, 0, "records {\"question\", \"answer\"} to imitate", 1, 0},
        {"eval-data", OPTION_TEXT, &o->eval_data, 0, 0, "file whose loss is reported too", 1, 0},
        {"model", OPTION_TEXT, &o->model, 0, 0, "start from the weights of this checkpoint", 1, 0},
        {"out", OPTION_TEXT, &o->out, 0, 0, "directory to write the checkpoint to", 0, 0},
        {"resume", OPTION_TEXT, &o->resume, 0, 0, "directory of a run to go on with", 0, 0},
        {"overwrite", OPTION_FLAG, &o->overwrite, 0, 0, "replace the run that is in --out", 0, 0},
        {"steps", OPTION_INT, &o->steps, 1, 1e9, "updates in all", 1, 0},
        {"batch-size", OPTION_INT, &o->batch_size, 1, 1e6, "examples per update", 1, 0},
        {"lr", OPTION_FLOAT, &o->lr, 0, 10, "learning rate at its highest", 1, 0},
        {"warmup-steps", OPTION_INT, &o->warmup_steps, 0, 1e9, "updates in which it rises from 0", 1, 0},
        {"final-lr-frac", OPTION_FLOAT, &o->final_lr_frac, 0, 1, "fraction of it left at the end", 1, 0},
        {"beta1", OPTION_FLOAT, &o->adam.beta1, 0, 0.9999, "AdamW: memory of the mean", 1, 0},
        {"beta2", OPTION_FLOAT, &o->adam.beta2, 0, 0.999999, "AdamW: memory of the square", 1, 0},
        {"adam-eps", OPTION_FLOAT, &o->adam.eps, 1e-30, 1, "AdamW: added to the root", 1, 0},
        {"weight-decay", OPTION_FLOAT, &o->adam.weight_decay, 0, 10, "AdamW: decay of matrices", 1, 0},
        {"grad-clip", OPTION_FLOAT, &o->grad_clip, 0, 1e9, "longest gradient norm; 0 = any", 1, 0},
        {"seed", OPTION_SEED, &o->seed, 0, 0, "of weights and order", 1, 0},
        {"context", OPTION_INT, &o->config.context, 2, 65536, "longest conversation in tokens", 1, 0},
        {"layers", OPTION_INT, &o->config.layers, 1, 256, "layers", 1, 0},
        {"width", OPTION_INT, &o->config.width, 1, 16384, "width of the residual stream", 1, 0},
        {"heads", OPTION_INT, &o->config.heads, 1, 256, "query heads", 1, 0},
        {"kv-heads", OPTION_INT, &o->config.kv_heads, 1, 256, "key/value heads, a divisor of heads", 1, 0},
        {"head-dim", OPTION_INT, &o->config.head_dim, 2, 1024, "width of a head, even", 1, 0},
        {"mlp-width", OPTION_INT, &o->config.mlp_width, 1, 65536, "width of the MLP", 1, 0},
        {"tied", OPTION_INT, &o->config.tied, 0, 1, "1 = unembed with the embedding", 1, 0},
        {"rope-theta", OPTION_FLOAT, &o->config.rope_theta, 1, 1e9, "base of the rotary positions", 1, 0},
        {"save-every", OPTION_INT, &o->save_every, 0, 1e9, "updates between saves; 0 = at the end", 1, 0},
        {"log-every", OPTION_INT, &o->log_every, 1, 1e9, "updates between printed lines", 1, 0},
        {"threads", OPTION_INT, &o->threads, 0, 1024, "threads; 0 = all cores", 0, 0},
        {"data-hash", OPTION_SEED, &o->data_hash, 0, 0, NULL, 1, 0},
    };
    memcpy(t, table, sizeof table);
}

// The `per_step` examples of update `step`, of `count` in a random order, new in every epoch: a function
// of (seed, step) alone, so that a resumed run goes on with the same.
static void deal_examples(int* chosen, int per_step, long step, int count, uint64_t seed) {
    int* order = allocate(count, sizeof(int));
    for (long i = 0, dealt = -1; i < per_step; i++) {
        long index = step * per_step + i, epoch = index / count;
        if (epoch != dealt) {
            Rng rng = random_stream(seed, 1, (uint64_t)epoch);
            shuffle(order, count, &rng);
            dealt = epoch;
        }
        chosen[i] = order[index % count];
    }
    free(order);
}

// Conversations that fit the context; the others are counted and left out.
static int render_all(Tokens* out, const Problems* p, int context, const char* path) {
    int count = 0;
    for (int i = 0; i < p->count; i++) {
        Tokens t = {0};
        render_conversation(&t, p->list[i].question, p->list[i].answer);
        if (t.length - 1 <= context) out[count++] = t;
        else tokens_free(&t);
    }
    if (count < p->count)
        printf("%s: %d of %d conversations are longer than the context of %d tokens and are skipped\n", path,
               p->count - count, p->count, context);
    if (!count)
        fail(2, "%s: no conversation fits the context of %d tokens; try a larger --context", path, context);
    return count;
}

// ---- the loss of supervised fine-tuning, and what one token counts in a loss

// The mask moves with the tokens: out[b,t] = mask[b,t+1] (why: chapter 3 of rl.c). out (B,T-1), mask (B,T).
// T <= 1 writes nothing. out may be mask itself: reading is always ahead of writing.
void shift_mask(int* out, const int* mask, int B, int T) {
    for (int b = 0; b < B && T > 1; b++, out += T - 1, mask += T)
        for (int t = 0; t + 1 < T; t++) out[t] = mask[t + 1];
}

static int count_masked(const int* mask, int n) {
    int count = 0;
    for (int i = 0; i < n; i++) count += mask[i] != 0;
    return count;
}

// Every loss of this project is  sum over tokens of  w * f(token).  Papers differ in the weight w:
//
//     NORM_TOKEN_MEAN     1 / (scored tokens of the group)   every token counts the same    DAPO, nanochat*
//     NORM_SEQUENCE_MEAN  1 / (K * tokens of its sequence)   every answer counts the same   GRPO, GSPO
//     NORM_SEQUENCE_SUM   1 / K                              log pi(y) = sum over tokens    REINFORCE, RLOO
//     NORM_CONSTANT       1 / (K * max_tokens)               the sum, over a constant       Dr. GRPO
// * nanochat takes 8 of its 16 rollouts at a time, and then the mean of the two passes.
enum { NORM_TOKEN_MEAN, NORM_SEQUENCE_MEAN, NORM_SEQUENCE_SUM, NORM_CONSTANT };

// w, mask (K,T1); no unit. 0 where the mask is 0. A sequence without scored tokens adds nothing but counts in
// K: it is a rollout that was paid for, and without it the step size would depend on how many answers happen
// to be empty. max_tokens, the longest possible answer, is read for NORM_CONSTANT only. Unknown norm: NaN.
void token_weights(float* w, const int* mask, int K, int T1, int norm, int max_tokens) {
    int in_group = count_masked(mask, K * T1);
    for (int k = 0; k < K; k++) {
        int in_sequence = count_masked(mask + k * T1, T1);
        double count = norm == NORM_TOKEN_MEAN    ? in_group
                     : norm == NORM_SEQUENCE_MEAN ? (double)K * in_sequence
                     : norm == NORM_SEQUENCE_SUM  ? K
                     : norm == NORM_CONSTANT      ? (double)K * max_tokens
                                                  : (double)NAN;
        for (int i = k * T1; i < (k + 1) * T1; i++) w[i] = mask[i] ? (float)(1.0 / count) : 0.0f;
    }
}

// Supervised fine-tuning: -logp of each demonstrated token, the policy gradient with advantage 1 (chapter 9
// of rl.c). dlogp (n) is d(loss)/d(logp) = -w; logp (n) in nats; w (n) from token_weights(): where it is 0
// nothing is read. Returns the loss in nats.
double loss_sft(float* dlogp, const float* logp, const float* w, int n) {
    double loss = 0.0;
    for (int i = 0; i < n; i++) {
        dlogp[i] = 0.0f;
        if (w[i] == 0.0f) continue;
        loss -= (double)w[i] * logp[i];
        dlogp[i] = -w[i];
    }
    return loss;
}

// Conversations as arrays of one shape: ids (K,T) and the shifted mask (K,T1), padded with 0. The longest has
// T - 1 tokens, so that a scalar model can be asked at each last one.
typedef struct { int T, *ids, *mask; } Padded;

static Padded pad_conversations(const Tokens* const* list, int K) {
    Padded p = {0};
    for (int k = 0; k < K; k++) p.T = max_int(p.T, list[k]->length + 1);
    p.ids = allocate((size_t)K * p.T, sizeof(int));
    p.mask = allocate((size_t)K * p.T, sizeof(int));
    for (int k = 0; k < K; k++) {
        memcpy(p.ids + (size_t)k * p.T, list[k]->ids, list[k]->length * sizeof(int));
        memcpy(p.mask + (size_t)k * p.T, list[k]->mask, list[k]->length * sizeof(int));
    }
    shift_mask(p.mask, p.mask, K, p.T);
    return p;
}

static void padded_free(Padded* p) { free(p->ids), free(p->mask); }

// Mean loss of `count` conversations per scored token, in nats. With learn its gradient is added to grads. A
// pass takes TOGETHER conversations: enough for the matmul, little enough for the cache.
enum { TOGETHER = 4 };
static double sft_loss(Model* m, const Tokens* const* list, int count, int learn) {
    Padded p = pad_conversations(list, count);
    int T = p.T, T1 = T - 1, turns = turns_of(m, (count + TOGETHER - 1) / TOGETHER);
    size_t n = (size_t)count * T1;
    float *logp = allocate(n, sizeof(float)), *dlogp = allocate(n, sizeof(float));
    float* w = allocate(n, sizeof(float));
    double *part = allocate(count, sizeof(double)), loss = 0.0;
    token_weights(w, p.mask, count, T1, NORM_TOKEN_MEAN, 0);
    #pragma omp parallel for schedule(dynamic)
    for (int turn = 0; turn < turns; turn++) {
        Model* one = learn ? learning_worker(m, turn) : worker(m);
        for (int k = turn * TOGETHER; k < count; k += turns * TOGETHER) {
            int K = min_int(TOGETHER, count - k), *ids = p.ids + (size_t)k * T;
            size_t at = (size_t)k * T1;
            answers_forward(logp + at, one, ids, p.mask + at, K, T);
            part[k] = loss_sft(dlogp + at, logp + at, w + at, K * T1);
            if (learn) answers_backward(one, dlogp + at, ids, p.mask + at, K, T);
        }
    }
    if (learn) add_gradients(m, turns);
    for (int k = 0; k < count; k++) loss += part[k];
    free(logp), free(dlogp), free(w), free(part), padded_free(&p);
    return loss;
}

// What the model answers now to the question of a conversation. There is no tool here: it has to write the
// calculator's output itself.
static void print_sample(Model* m, Tokens prompt, uint64_t seed) {
    Text text = {0}, shown = {0};
    SampleOptions o = {.max_new_tokens = 128, .temperature = 1.0f, .top_k = 50, .top_p = 1.0f};
    while (prompt.ids[prompt.length - 1] != ASSISTANT_START) prompt.length--;
    Rollout* r = generate(m, &prompt, 1, 1, o, NULL, seed, 0);
    decode_tokens(&text, prompt.ids, prompt.length, 0);
    text_append(&text, "\n", 1);
    decode_tokens(&text, r->ids + r->prompt, r->length, 1);
    append_printable(&shown, text.data, text.length);
    printf("\n%s\n\n", shown.data);
    rollouts_free(r), text_free(&text), text_free(&shown);
}

// The model that a run begins with: random, that of --model, or that of --resume (o->model then says where
// the run once began, which may be gone by now). A model that is read brings its sizes with it. A size that
// was given all the same must be the model's; in a resumed run all are given, by trainer_state.json.
static Model first_model(TrainOptions* o, const Option* options) {
    const char* from = o->resume ? o->resume : o->model;
    Model m = from ? load_fitting_model(from) : model_new(o->config);
    Config asked = o->config;
    if (!from) model_init(&m, o->seed);
    else if (!o->resume && same_folder(o->out, from))
        fail(2, "the run would be written over the model in %s that it starts from; try another --out", from);
    o->config = m.config;
    for (const Option* t = options; t->name; t++) {
        uintptr_t place = (uintptr_t)t->value - (uintptr_t)&o->config;
        char found[32];
        if (place >= sizeof(Config) || !(t->given || o->resume)) continue;
        if (!memcmp(t->value, (const char*)&asked + place, sizeof(int))) continue;
        option_text(t, found, sizeof found);
        fail(2, "--%s is %s for the model in %s; leave it out: a model brings its sizes with it", t->name,
             found, from);
    }
    return m;
}

typedef struct { double loss, lr, grad_norm, tokens_per_second, seconds, held_out; } SftMetrics;

static const Column sft_columns[] = {
    {"loss", "loss", offsetof(SftMetrics, loss), 10, 4, 0},           // before the update, nats per token
    {"lr", "lr", offsetof(SftMetrics, lr), 10, -2, 0},
    {"grad_norm", "|grad|", offsetof(SftMetrics, grad_norm), 10, 4, 0},
    {"tokens_per_second", "tokens/s", offsetof(SftMetrics, tokens_per_second), 10, 0, 0},
    {"seconds", "seconds", offsetof(SftMetrics, seconds), 9, 3, 0},   // of the update
    {"held_out", "held-out", offsetof(SftMetrics, held_out), 10, 4, 1},   // loss on --eval-data
    {0},
};

// The whole run. Returns 0, or 130 after Ctrl-C.
static int train(TrainOptions* o, Option* options) {
    set_threads(o->threads);
    if (o->resume && o->model) fail(2, "--model starts a run and --resume goes on with one: leave one out");
    long step = choose_run(&o->out, train_defaults().out, o->resume, o->overwrite, "sft", options);
    check_data(&o->data_hash, o->data);
    Problems problems = load_problems(o->data), eval = {0};
    if (o->eval_data && *o->eval_data) eval = load_problems(o->eval_data);
    Model m = first_model(o, options);
    Optimizer optimizer = o->resume ? load_optimizer(o->resume, &m.config, step) : optimizer_new(&m.config);
    Tokens* examples = allocate(problems.count, sizeof(Tokens));
    Tokens* held = allocate(eval.count, sizeof(Tokens));
    int count = render_all(examples, &problems, m.config.context, o->data);
    int held_count = eval.count ? render_all(held, &eval, m.config.context, o->eval_data) : 0;
    int* chosen = allocate(o->batch_size, sizeof(int));
    const Tokens** batch = allocate(o->batch_size, sizeof(Tokens*));
    const Tokens** all = allocate(held_count, sizeof(Tokens*));
    for (int i = 0; i < held_count; i++) all[i] = &held[i];
    Run run = run_begin(o->out, o->overwrite, sft_columns, step, o->steps, o->log_every, o->save_every);
    printf("supervised training: %d conversations, %zu parameters, %d threads\n", count, m.weights.count,
           thread_count());
    while (run_goes_on(&run)) {
        SftMetrics s = {.held_out = NAN, .seconds = -seconds_now()};
        deal_examples(chosen, o->batch_size, run.step, count, o->seed);
        for (int i = 0; i < o->batch_size; i++) {
            batch[i] = &examples[chosen[i]];
            s.tokens_per_second += batch[i]->length;
        }
        s.lr = o->lr * (float)lr_schedule(run.step, o->steps, o->warmup_steps, o->final_lr_frac);
        s.loss = sft_loss(&m, batch, o->batch_size, 1);
        s.grad_norm = clip_and_step(&m, &optimizer, s.lr, o->grad_clip, o->adam);
        s.seconds += seconds_now();
        s.tokens_per_second /= s.seconds;
        int looks = run.step + 1 == o->steps || (run.step + 1) % o->log_every == 0;
        if (held_count && looks) s.held_out = sft_loss(&m, all, held_count, 0);
        run_record(&run, &m, NULL, &s);
        if (run_saves(&run)) save_run(o->out, "sft", options, run.step, &m, &optimizer, NULL, NULL);
    }
    int status = run_end(&run, "./train_gpt", o->out);
    if (!status) {
        print_sample(&m, examples[0], o->seed);
        printf("saved %s (%.0f MB of memory were used)\n", o->out, peak_memory_mb());
    }
    for (int i = 0; i < count; i++) tokens_free(&examples[i]);
    for (int i = 0; i < held_count; i++) tokens_free(&held[i]);
    free(examples), free(held), free(chosen), free(batch), free(all);
    problems_free(&problems), problems_free(&eval), optimizer_free(&optimizer), model_free(&m);
    return status;
}

#ifndef TRAIN_GPT_NO_MAIN
int main(int argc, char** argv) {
    TrainOptions o = train_defaults();
    Option options[TRAIN_OPTIONS] = {{0}};
    open_standard_streams();
    train_options(options, &o);
    if (asked_for_help(argc - 1, argv + 1,
                       "train_gpt - supervised training of a tiny GPT on question/answer lines",
                       "./train_gpt [--option=value ...]", options))
        return end_of_output(0);
    parse_options(options, argc - 1, argv + 1, NULL, 0);
    return end_of_output(train(&o, options));
}
#endif

// chapters.h - rl.c for a test: all of it but main(). With IN_DOUBLE every float of the two files becomes a
// double, so that the same code can be held against central differences. System headers come first: they must
// keep their floats.
#define _XOPEN_SOURCE 700
#define _DARWIN_C_SOURCE
#include <ctype.h>
#include <errno.h>
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#include "check.h"

// CHECK_LIST(x, tolerance, a, b, ...): x[0] is a, x[1] is b, ..., relative to each; a 0 must be exactly 0.
#define CHECK_LIST(x, tolerance, ...)                                                      \
    do {                                                                                   \
        const double list_[] = {__VA_ARGS__};                                              \
        for (int i_ = 0; i_ < (int)(sizeof list_ / sizeof *list_); i_++)                   \
            check_item(__FILE__, __LINE__, #x, i_, (double)(x)[i_], list_[i_], tolerance); \
    } while (0)
static void check_item(const char* file, int line, const char* name, int i, double value, double expected,
                       double tolerance) {
    if (fabs(value - expected) <= tolerance * fabs(expected)) return;
    BROKEN_AT(file, line, "%s, element %d, is %.12g, expected %.12g\n", name, i, value, expected);
}

// The slope of f in one of the numbers that it reads (they stand in static variables), by a central
// difference of 1e-5; a second one may move along (NULL: none does).
static double slope(double (*f)(void), double* at, double* along) {
    const double h = 1e-5, kept = *at, kept_along = along ? *along : 0.0;
    double difference = 0.0;
    for (int sign = 1; sign >= -1; sign -= 2) {
        *at = kept + sign * h;
        if (along) *along = kept_along + sign * h;
        difference += sign * f();
    }
    *at = kept;
    if (along) *along = kept_along;
    return difference / (2.0 * h);
}

#ifdef IN_DOUBLE
#ifdef __clang__
#pragma clang diagnostic ignored "-Wkeyword-macro"
#endif
#define float double
#endif
#ifndef SOURCE                       // tests/files.c asks for train_gpt.c alone
#define TOOLS_NO_MAIN
#define SOURCE "../docs/tools.c"
#endif
#include SOURCE

// Tensors element by element, row by row.
static int elements(const Tensor* t) { return t->rows * max_int(t->cols, 1); }
static float* element(const Tensor* t, int i) {
    int cols = max_int(t->cols, 1);
    return &t->data[(size_t)(i / cols) * t->row + (size_t)(i % cols) * t->col];
}
enum { MOST_TENSORS = 40 };

// A model of waves: element i of tensor k is `matrix` sin(0.7 (i + 1) + 1.3 k), and in a norm 1 + `norm`
// sin(...).
static Model wave_model(Config c, double matrix, double norm) {
    Model m = model_new(c);
    Tensor list[MOST_TENSORS];
    tensor_list(list, &m.weights, &m.config, "");
    for (int k = 0; k < tensor_count(&m.config); k++)
        for (int i = 0; i < elements(&list[k]); i++) {
            double wave = sin(0.7 * (i + 1) + 1.3 * k);
            *element(&list[k], i) = (float)(list[k].cols ? matrix * wave : 1.0 + norm * wave);
        }
    return m;
}

static Model random_model(Config c, uint64_t seed) {
    Model m = model_new(c);
    model_init(&m, seed);
    return m;
}

static Model copy_of_model(const Model* m) {
    Model copy = model_new(m->config);
    memcpy(copy.weights.memory, m->weights.memory, m->weights.count * sizeof(float));
    return copy;
}

static float* floats(size_t n) { return allocate(n, sizeof(float)); }
static int same_bits(const float* a, const float* b, size_t n) { return !memcmp(a, b, n * sizeof(float)); }
static int same_weights(const Weights* a, const Weights* b) {
    return a->count == b->count && !memcmp(a->memory, b->memory, a->count * sizeof(float));
}

// What the model's head gives for each scored token, a log-probability or a scalar, and the way back from it.
static const float* head_forward(Model* m, const Batch* b) {
    if (m->config.scalar) model_scalar_forward(m, b);
    else model_forward(m, b);
    return m->config.scalar ? m->acts.scalar : m->acts.logp;
}
static void head_backward(Model* m, const Batch* b, const float* d) {
    if (m->config.scalar) model_scalar_backward(m, b, d);
    else model_backward(m, b, d);
}

// One plain pass over a row of T tokens, nothing packed: what the head says of the tokens that the shifted
// mask (T1) names, 0 elsewhere; with d (T1) its gradients are added to those of m.
static void plain_pass(float* out, Model* m, const int* ids, const int* mask, int T, const float* d) {
    int targets[256], n = 0, at = 0;
    float scored[256];
    Batch b = {0};
    for (int t = 0; t < T - 1; t++) {
        targets[t] = mask[t] ? ids[t + 1] : -1;
        if (mask[t] && d) scored[n++] = d[t];
    }
    batch_add(&b, ids, targets, T - 1, -1);
    const float* said = head_forward(m, &b);
    for (int t = 0; t < T - 1; t++) out[t] = mask[t] ? said[at++] : 0.0f;
    if (d) head_backward(m, &b, scored);
    batch_free(&b);
}

/* Gradients over blocks of rows in one pass, and random features: the compiled module `_kernel`, which confide.compiled loads if it was built.

   Solvers use it for their first steps. `clipped_sums` and `coded_sums` make the gradients on which certificates rest, and
   `scaled_sums` makes sums that are released with noise: privacy/proofs/certificate.md and gradient.md, section 4 of each. Every size,
   offset and level that could lead outside of an array is checked here. Rows are read and never written to, and Python's lock is
   free during a pass.

   With -DKERNEL_TEST this file has no Python in it; tests/compiled/fuzz.c includes it so. */

#ifndef KERNEL_TEST
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#endif
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if FLT_EVAL_METHOD != 0
#error "numbers would be rounded twice, to a longer format first"
#endif
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || __FINITE_MATH_ONLY__
#error "the order of additions, divisions and what is not a number would not be those of the proof"
#endif

enum { CHUNK = 256, FIRST_LEVEL = 8192, CACHE_LINE = 64 };
/* Dense rows that are read twice from the first-level cache: at most so many at once. */
enum { FEW = 32 };
/* Sums of products of columns: rows that are copied together, and columns of which such sums are made, the constant included. */
enum { BENT_ROWS = 64, MOST_BENT = 64 };
/* The same of coded rows: encoded columns, and entries that every row has. */
enum { MOST_CODED_BENT = 512, MOST_LINES = 64 };
enum { LOGISTIC, HUBER_HINGE, SMOOTH_HINGE, SQUARED, POISSON, SUM_OF_ROWS, N_LOSSES };
enum { LINE, CURVE, LEVELS };
/* So many copies of sums are kept where there are few bins. */
enum { COPIES = 4, MOST_BINS_WITH_COPIES = 256 };

struct loss {
    int kind;
    double a;         /* the position of the corner, the half-width of the joint, or the threshold */
    double low, high; /* bounds of targets */
};

/* What one call sums up. `out` has d sums of rows, then the sum of the slopes. */
struct job {
    ptrdiff_t n, d;
    const double *weights; /* d */
    double offset;         /* added to every score */
    struct loss loss;
    const int8_t *small_labels; /* n, or NULL where there are targets */
    const double *targets;
    const double *exposures; /* n, or NULL where counts have none */
    const double *counts; /* n, or NULL where every row counts 1 */
    double largest;       /* bound on counts */
    double *out;
};

struct dense {
    const char *rows;
    ptrdiff_t d, row_stride, column_stride, size;
    double radius;   /* rows are shortened to it; HUGE_VAL for rows as they are */
    double farthest; /* squared lengths beyond it are told of, where rows are shortened */
};

/* Rows that stand for scale x - shift c, c a centre. */
struct scaled {
    const double *scales, *shifts, *limits; /* n each; no shifts where there is no centre, and no limits where slopes have none */
    double at_centre;                       /* the centre times the weights */
    double *moved;                          /* the sum of shift times slope is added to it */
    float *singles;                         /* d, the weights where rows are floats; NULL where they are doubles */
};

/* Rows that are moved by a centre, shortened to a radius and magnified. */
struct centred {
    const double *centre; /* d */
    double radius, magnification;
    double square;    /* the squared length of the centre */
    double at_centre; /* the centre times the weights */
};

struct column {
    int kind;
    const void *codes;
    ptrdiff_t size;             /* bytes of a code */
    ptrdiff_t start, bins;      /* first encoded column; number of bins of the sums */
    ptrdiff_t indicator;        /* encoded column of missing numbers, or -1 */
    int linked;                 /* whether every row has a level */
    double low, step, high, middle;
    const double *values;       /* entry for each bin of a category with one encoded column, or NULL */
    ptrdiff_t copies;
    double *table, *sums;
};

/* Sums of curvature times products of two entries of coded rows. The entries of lines, and the constant, are in every row; all
   others are "spread". */
struct squares {
    ptrdiff_t width;    /* number of the entries in every row, and zeros up to a multiple of 8 */
    ptrdiff_t n_spread; /* number of the others in a row, those that are not there included */
    int constant;
    double *rows;    /* (CHUNK, width), the entries in every row */
    double *entries; /* (CHUNK, n_spread) */
    double *of_rows; /* (width, width): sums of products of two entries that are in every row, on and above the diagonal */
    double *across;  /* (d + 1, width): of one that is spread with one in every row; the last row is of no use */
    double *of_spread; /* (d + 1, d + 1): of two that are spread, in either order */
    float *bent;     /* (CHUNK, width) */
    int32_t *at;     /* (CHUNK, n_spread), the columns of the entries that are spread */
};

static double dense_number(const struct dense *given, const char *row, ptrdiff_t j)
{
    const char *at = row + j * given->column_stride;
    float single;
    double exact;
    if (given->size == 4) {
        memcpy(&single, at, sizeof single);
        return single;
    }
    memcpy(&exact, at, sizeof exact);
    return exact;
}

/* Beyond this size an angle is left to the C library: its number of quarter turns times a part of half pi is not exact. */
#define MOST_TURNED 524288.0

/* Vectors of GCC and Clang: the same code for every processor. */
#define INLINE inline __attribute__((always_inline))
typedef double vec __attribute__((vector_size(32)));
typedef double loose __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t ints __attribute__((vector_size(32)));
typedef float floats __attribute__((vector_size(16)));
typedef float eight __attribute__((vector_size(32)));
typedef double eight_doubles __attribute__((vector_size(64)));
typedef int64_t eight_longs __attribute__((vector_size(64)));
typedef int32_t eight_ints __attribute__((vector_size(32)));
typedef float loose_eight __attribute__((vector_size(32), aligned(4), may_alias));
typedef double pair __attribute__((vector_size(16)));
#define SPLAT(x) ((vec){(x), (x), (x), (x)})
#define EIGHT(x) ((eight){(x), (x), (x), (x), (x), (x), (x), (x)})
#define LOAD(at) ((vec) * (const loose *)(at))
#define STORE(at, x) (*(loose *)(at) = (x))
#define SELECT(where, x, y) ((vec)(((ints)(where) & (ints)(x)) | (~(ints)(where) & (ints)(y))))
#ifndef __clang__
#define SHUFFLE(x, y, i, j, k, l) __builtin_shuffle(x, y, (ints){i, j, k, l})
#else
#define SHUFFLE(x, y, i, j, k, l) __builtin_shufflevector(x, y, i, j, k, l)
#endif
#define CONVERT(x) __builtin_convertvector(x, vec)

#define NAME(name) name##_plain
#define TARGET
#include "passes.h"
#undef NAME
#undef TARGET

#if defined(__x86_64__) || defined(__i386__)
#define HAS_AVX2 1
#define NAME(name) name##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#include "passes.h"
#undef NAME
#undef TARGET
#endif

/* Whether the processor has more than the compiler was told of. ARM processors of 64 bits always have NEON. */
static int has_avx2(void)
{
#ifdef HAS_AVX2
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return 0;
#endif
}

static int dense_pass(const struct job *job, const struct dense *given, int plain)
{
#ifdef HAS_AVX2
    if (!plain && has_avx2())
        return dense_pass_avx2(job, given);
#endif
    return dense_pass_plain(job, given);
}

/* The job of one block of rows: those from `first` on, at most `rows_in_block`. Its sums go to `of_block` (d + 1), from 0 on. */
static struct job job_of_block(const struct job *job, ptrdiff_t first, ptrdiff_t rows_in_block, double *of_block)
{
    struct job own = *job;
    own.n = job->n - first < rows_in_block ? job->n - first : rows_in_block;
    own.small_labels = job->small_labels ? job->small_labels + first : NULL;
    own.targets = job->targets ? job->targets + first : NULL;
    own.exposures = job->exposures ? job->exposures + first : NULL;
    own.counts = job->counts ? job->counts + first : NULL;
    own.out = of_block;
    for (ptrdiff_t j = 0; j <= job->d; j++)
        of_block[j] = 0.0;
    return own;
}

static int centred_pass(const struct job *job, const struct dense *given, const struct centred *centred, int plain)
{
#ifdef HAS_AVX2
    if (!plain && has_avx2())
        return centred_pass_avx2(job, given, centred);
#endif
    return centred_pass_plain(job, given, centred);
}

/* The same for sums on which a certificate rests: each block of rows is summed up by itself, in `of_block` (d + 1), so that
   chains of additions stay short. `centred` is NULL for rows that are not moved. Returns whether no row was farther than
   `given->farthest`; otherwise the sums are of no use. */
static int clipped_pass(const struct job *job, const struct dense *given, const struct centred *centred, ptrdiff_t rows_in_block,
                        double *of_block, int plain)
{
    int near = 1;
    for (ptrdiff_t first = 0; near && first < job->n; first += rows_in_block) {
        const struct job own = job_of_block(job, first, rows_in_block, of_block);
        struct dense rows = *given;
        rows.rows += first * given->row_stride;
        near = centred ? centred_pass(&own, &rows, centred, plain) : dense_pass(&own, &rows, plain);
        for (ptrdiff_t j = 0; j <= job->d; j++)
            job->out[j] += of_block[j];
    }
    return near;
}

static void scaled_pass(const struct job *job, const struct dense *given, const struct scaled *scaled, int plain)
{
#ifdef HAS_AVX2
    if (!plain && has_avx2()) {
        scaled_pass_avx2(job, given, scaled);
        return;
    }
#endif
    scaled_pass_plain(job, given, scaled);
}

static void angles_of(ptrdiff_t n, ptrdiff_t d, ptrdiff_t m, const double *rows, const double *inputs, ptrdiff_t *places, double *out, int plain)
{
#ifdef HAS_AVX2
    if (!plain && has_avx2()) {
        angles_avx2(n, d, m, rows, inputs, places, out);
        return;
    }
#endif
    angles_plain(n, d, m, rows, inputs, places, out);
}

static void turned_rows(ptrdiff_t n, ptrdiff_t d, const double *angles, double scale, char *out, ptrdiff_t stride, ptrdiff_t size,
                        int plain)
{
#ifdef HAS_AVX2
    if (!plain && has_avx2()) {
        turned_rows_avx2(n, d, angles, scale, out, stride, size);
        return;
    }
#endif
    turned_rows_plain(n, d, angles, scale, out, stride, size);
}

static void bent_pass(const struct job *job, const struct dense *given, int constant, double *out, int plain)
{
#ifdef HAS_AVX2
    if (!plain && has_avx2()) {
        bent_pass_avx2(job, given, constant, out);
        return;
    }
#endif
    bent_pass_plain(job, given, constant, out);
}

/* Adds the sums of curvature times products of two columns to the upper triangle of a matrix (d, d), the last column the
   constant 1 if there is one. */
static void dense_curvatures_pass(const struct job *job, const struct dense *given, int constant, double *matrix, int plain)
{
    double products[MOST_BENT * MOST_BENT] = {0.0};
    const ptrdiff_t size = given->d + constant, width = (size + 7) & ~(ptrdiff_t)7;
    bent_pass(job, given, constant, products, plain);
    for (ptrdiff_t i = 0; i < size; i++)
        for (ptrdiff_t j = i; j < size; j++)
            matrix[i * size + j] += products[i * width + j];
}

static void set_table(struct column *column, const double *weights)
{
    const double *own = weights + column->start;
    const double beside = column->indicator >= 0 ? weights[column->indicator] : 0.0;
    if (column->kind == LINE) {
        column->table[0] = own[0];
        column->table[1] = beside;
    } else if (column->kind == CURVE) {
        for (ptrdiff_t hat = 0; hat + 1 < column->bins; hat++) {
            column->table[2 * hat] = column->values[0] * own[hat];
            column->table[2 * hat + 1] = column->values[0] * (own[hat + 1] - own[hat]);
        }
        column->table[2 * (column->bins - 1)] = beside;
        column->table[2 * (column->bins - 1) + 1] = 0.0;
    } else
        for (ptrdiff_t bin = 0; bin < column->bins; bin++)
            column->table[bin] = column->values ? own[0] * column->values[bin] : bin ? own[bin - 1] : 0.0;
}

static void add_sums(const struct column *column, double *out)
{
    double *own = out + column->start;
    const ptrdiff_t each = column->kind == LEVELS ? column->bins : 2 * column->bins;
    for (ptrdiff_t copy = 1; copy < column->copies; copy++)
        for (ptrdiff_t i = 0; i < each; i++)
            column->sums[i] += column->sums[copy * each + i];
    if (column->kind == LEVELS) {
        for (ptrdiff_t bin = 0; bin < column->bins; bin++)
            if (column->values)
                own[0] += column->values[bin] * column->sums[bin];
            else if (bin)
                own[bin - 1] += column->sums[bin];
        return;
    }
    if (column->kind == LINE)
        own[0] += column->sums[0];
    else
        for (ptrdiff_t hat = 0; hat + 1 < column->bins; hat++) {
            double second = column->values[0] * column->sums[2 * hat + 1];
            own[hat] += column->values[0] * column->sums[2 * hat];
            own[hat + 1] += second;
        }
    if (column->indicator >= 0)
        out[column->indicator] += column->sums[column->kind == LINE ? 1 : 2 * (column->bins - 1)];
}

/* Adds the sums over one block of rows to `job->out`. The sums of columns begin at 0, and then the columns point at the next block. */
static int coded_block(const struct job *job, struct column *columns, ptrdiff_t n_columns, double *numbers, int32_t *places,
                       const struct squares *squares, int plain)
{
    int whole;
    for (ptrdiff_t c = 0; c < n_columns; c++) {
        const ptrdiff_t size = (columns[c].kind == LEVELS ? 1 : 2) * columns[c].bins * columns[c].copies;
        for (ptrdiff_t i = 0; i < size; i++)
            columns[c].sums[i] = 0.0;
    }
#ifdef HAS_AVX2
    if (!plain && has_avx2())
        whole = coded_pass_avx2(job, columns, n_columns, numbers, places, squares);
    else
#endif
        whole = coded_pass_plain(job, columns, n_columns, numbers, places, squares);
    for (ptrdiff_t c = 0; c < n_columns; c++) {
        add_sums(columns + c, job->out);
        columns[c].codes = (const char *)columns[c].codes + job->n * columns[c].size;
    }
    return whole;
}

/* Each block of rows is summed up by itself, as in `clipped_pass`. `squares` is NULL for sums on which a certificate rests. Sets
   `*whole` to whether every row has a level in each linked category. Returns 0 where there is no memory. */
static int coded_pass(const struct job *job, struct column *columns, ptrdiff_t n_columns, ptrdiff_t rows_in_block,
                      const struct squares *squares, int plain, int *whole)
{
    size_t n_numbers = (size_t)job->d + 1;
    *whole = 1;
    for (ptrdiff_t c = 0; c < n_columns; c++) {
        struct column *column = columns + c;
        column->copies = column->kind != LINE && column->bins <= MOST_BINS_WITH_COPIES ? COPIES : 1;
        n_numbers += (size_t)(column->kind == LEVELS ? 1 : 2) * column->bins * (1 + column->copies);
        if (n_numbers > (size_t)PTRDIFF_MAX / 32)
            return 0;
    }
    double *memory = calloc(n_numbers, sizeof(double));
    double *numbers = malloc((size_t)n_columns * CHUNK * sizeof(double) + 1);
    int32_t *places = malloc((size_t)n_columns * CHUNK * sizeof(int32_t) + 1);
    const int made = memory && numbers && places;
    if (made) {
        double *next = memory + job->d + 1;
        for (ptrdiff_t c = 0; c < n_columns; c++) {
            struct column *column = columns + c;
            const ptrdiff_t each = (column->kind == LEVELS ? 1 : 2) * column->bins;
            column->table = next;
            column->sums = next + each;
            next += each * (1 + column->copies);
            set_table(column, job->weights);
        }
        for (ptrdiff_t first = 0; first < job->n; first += rows_in_block) {
            const struct job own = job_of_block(job, first, rows_in_block, memory);
            *whole &= coded_block(&own, columns, n_columns, numbers, places, squares, plain);
            for (ptrdiff_t j = 0; j <= job->d; j++)
                job->out[j] += memory[j];
        }
    }
    free(memory);
    free(numbers);
    free(places);
    return made;
}

/* The number of entries that every row has, and of others, of rows with these columns. */
static void count_entries(const struct column *columns, ptrdiff_t n_columns, ptrdiff_t *lines, ptrdiff_t *n_spread)
{
    *lines = *n_spread = 0;
    for (ptrdiff_t c = 0; c < n_columns; c++) {
        *lines += columns[c].kind == LINE;
        *n_spread += (columns[c].kind == LEVELS ? 1 : columns[c].kind == CURVE ? 2 : 0) + (columns[c].indicator >= 0);
    }
}

static void add_upper(double *matrix, ptrdiff_t size, ptrdiff_t i, ptrdiff_t j, double sum)
{
    matrix[i < j ? i * size + j : j * size + i] += sum;
}

/* The sums of `coded_pass`, and those of curvature times products of two encoded columns in the upper triangle of a matrix (d, d),
   the last column the constant 1 if there is one. Returns 0 where there is no memory. */
static int coded_curvatures_pass(const struct job *job, struct column *columns, ptrdiff_t n_columns, int constant, double *matrix, int plain,
                                 int *whole)
{
    struct squares own = {.constant = constant};
    ptrdiff_t lines, place[MOST_LINES];
    count_entries(columns, n_columns, &lines, &own.n_spread);
    own.width = (lines + constant + 7) & ~(ptrdiff_t)7;
    const ptrdiff_t d = job->d, size = d + constant;
    const size_t of_rows = CHUNK * own.width, entries = CHUNK * own.n_spread, between = own.width * own.width;
    const size_t across = (size_t)(d + 1) * own.width, of_spread = (size_t)(d + 1) * (d + 1);
    double *memory = calloc(of_rows + entries + between + across + of_spread, sizeof(double));
    own.bent = malloc(of_rows * sizeof(float) + 1);
    own.at = malloc(entries * sizeof(int32_t) + 1);
    int made = memory && own.bent && own.at;
    if (made) {
        own.rows = memory;
        own.entries = own.rows + of_rows;
        own.of_rows = own.entries + entries;
        own.across = own.of_rows + between;
        own.of_spread = own.across + across;
        made = coded_pass(job, columns, n_columns, job->n + 1, &own, plain, whole);
    }
    if (made) {
        ptrdiff_t line = 0;
        for (ptrdiff_t c = 0; c < n_columns; c++)
            if (columns[c].kind == LINE)
                place[line++] = columns[c].start;
        if (constant)
            place[line++] = d;
        for (ptrdiff_t i = 0; i < line; i++)
            for (ptrdiff_t j = i; j < line; j++)
                add_upper(matrix, size, place[i], place[j], own.of_rows[i * own.width + j]);
        for (ptrdiff_t i = 0; i < d; i++) {
            for (ptrdiff_t j = 0; j < line; j++)
                add_upper(matrix, size, i, place[j], own.across[i * own.width + j]);
            for (ptrdiff_t j = 0; j < d; j++)
                add_upper(matrix, size, i, j, own.of_spread[i * (d + 1) + j]);
        }
    }
    free(memory);
    free(own.bent);
    free(own.at);
    return made;
}

#ifndef KERNEL_TEST

/* ---- Python ---- */

enum { MOST_BUFFERS = 4 };

/* Buffers that one call holds. */
struct held {
    Py_buffer *views;
    Py_ssize_t n;
};

static void let_go(struct held *held)
{
    for (Py_ssize_t i = 0; i < held->n; i++)
        PyBuffer_Release(held->views + i);
    held->n = 0;
}

/* A one-dimensional array in one piece, of one of the types in `types`; NULL after an error is set. */
static Py_buffer *vector(struct held *held, PyObject *array, const char *types, Py_ssize_t length, int writable)
{
    Py_buffer *view = held->views + held->n;
    if (PyObject_GetBuffer(array, view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0)) < 0)
        return NULL;
    held->n++;
    const char *format = view->format ? view->format : "B";
    if (view->ndim != 1 || (length >= 0 && view->shape[0] != length) || strlen(format) != 1 || !strchr(types, *format)) {
        PyErr_SetString(PyExc_ValueError, "an array has another type or length than the kernel expects.");
        return NULL;
    }
    return view;
}

/* What dense and coded sums have in common: labels, counts, weights, sums, loss. Behind n targets may lie as many exposures. */
static int common(struct held *held, struct job *job, Py_ssize_t n, Py_ssize_t d, PyObject *labels, PyObject *counts, PyObject *weights,
                  PyObject *out)
{
    Py_buffer *view;
    job->n = n;
    job->d = d;
    if (!(view = vector(held, labels, "bd", -1, 0)))
        return 0;
    job->small_labels = view->itemsize == 1 ? view->buf : NULL;
    job->targets = view->itemsize == 1 ? NULL : view->buf;
    job->exposures = n && job->targets && view->shape[0] == 2 * n ? job->targets + n : NULL;
    if (view->shape[0] != n && !job->exposures) {
        PyErr_SetString(PyExc_ValueError, "the kernel needs a label or target for each row, and exposures for all of them or none.");
        return 0;
    }
    job->counts = NULL;
    if (counts != Py_None) {
        if (!(view = vector(held, counts, "d", n, 0)))
            return 0;
        job->counts = view->buf;
    }
    if (!(view = vector(held, weights, "d", d, 0)))
        return 0;
    job->weights = view->buf;
    if (!(view = vector(held, out, "d", d + 1, 1)))
        return 0;
    job->out = view->buf;
    if (job->loss.kind < 0 || job->loss.kind >= N_LOSSES) {
        PyErr_SetString(PyExc_ValueError, "the kernel knows no such loss.");
        return 0;
    }
    return 1;
}

/* Where sums of products of columns go: an array of d^2 numbers, or of (d + 1)^2 with those of the constant. */
static int squares_of(struct held *held, PyObject *array, Py_ssize_t d, Py_ssize_t most, double **upper, int *constant)
{
    Py_buffer *view;
    if (!(view = vector(held, array, "d", -1, 1)))
        return 0;
    *constant = d < most && view->shape[0] == (d + 1) * (d + 1);
    if (d + *constant > most || view->shape[0] != (d + *constant) * (d + *constant)) {
        PyErr_SetString(PyExc_ValueError, "the kernel makes sums of products of fewer columns, in an array that fits them.");
        return 0;
    }
    *upper = view->buf;
    return 1;
}

PyDoc_STRVAR(dense_sums_doc,
             "dense_sums(rows, radius, labels, counts, largest, weights, offset, loss, a, low, high, out, products, plain)\n\n"
             "Adds the sum over rows (n, d) of slope times row to out[:d], and of slopes to out[d]; and, unless `products` is\n"
             "None, the sum of second derivative times products of two columns to its upper triangle.");

static PyObject *dense_sums(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *rows, *labels, *counts, *weights, *out, *products;
    Py_buffer views[MOST_BUFFERS + 1], matrix;
    struct held held = {views, 0};
    struct job job;
    struct dense given;
    double radius;
    int plain;
    if (!PyArg_ParseTuple(arguments, "OdOOdOdidddOOp", &rows, &radius, &labels, &counts, &job.largest, &weights, &job.offset,
                          &job.loss.kind, &job.loss.a, &job.loss.low, &job.loss.high, &out, &products, &plain))
        return NULL;
    if (PyObject_GetBuffer(rows, &matrix, PyBUF_FORMAT | PyBUF_STRIDES) < 0)
        return NULL;
    const char *format = matrix.format ? matrix.format : "B";
    double *upper = NULL;
    int sound = 0, constant = 0;
    if (matrix.ndim != 2 || (strcmp(format, "d") && strcmp(format, "f")))
        PyErr_SetString(PyExc_ValueError, "the kernel needs rows in a matrix of doubles or floats.");
    else
        sound = common(&held, &job, matrix.shape[0], matrix.shape[1], labels, counts, weights, out);
    if (sound && products != Py_None)
        sound = squares_of(&held, products, job.d, MOST_BENT, &upper, &constant);
    if (sound) {
        given = (struct dense){matrix.buf, matrix.shape[1], matrix.strides[0], matrix.strides[1], matrix.itemsize, radius, HUGE_VAL};
        Py_BEGIN_ALLOW_THREADS
        if (upper)
            dense_curvatures_pass(&job, &given, constant, upper, plain);
        else
            dense_pass(&job, &given, plain);
        Py_END_ALLOW_THREADS
    }
    let_go(&held);
    PyBuffer_Release(&matrix);
    if (!sound)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(clipped_sums_doc,
             "clipped_sums(rows, radius, farthest, rows_in_block, labels, counts, largest, weights, offset, loss, a, low, high, out, centring,\n"
             "             plain)\n\n"
             "Adds the same sums over rows (n, d) that are shortened to the radius, block by block. `centring` is None, or centre,\n"
             "radius and magnification: then rows, each in one piece, are moved, shortened again and magnified. Returns False where\n"
             "the squared length of a row is beyond `farthest`, or is no number; what was added then is of no use.");

static PyObject *clipped_sums(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *rows, *labels, *counts, *weights, *out;
    PyObject *centring, *centre;
    Py_buffer views[MOST_BUFFERS + 1], matrix, *view;
    struct held held = {views, 0};
    struct job job;
    struct centred centred = {NULL, 0.0, 0.0, 0.0, 0.0};
    double radius, farthest, *of_block = NULL;
    Py_ssize_t rows_in_block;
    int plain, near = 0;
    if (!PyArg_ParseTuple(arguments, "OddnOOdOdidddOOp", &rows, &radius, &farthest, &rows_in_block, &labels, &counts, &job.largest,
                          &weights, &job.offset, &job.loss.kind, &job.loss.a, &job.loss.low, &job.loss.high, &out, &centring, &plain))
        return NULL;
    if (centring != Py_None && !PyArg_ParseTuple(centring, "Odd", &centre, &centred.radius, &centred.magnification))
        return NULL;
    if (PyObject_GetBuffer(rows, &matrix, PyBUF_FORMAT | PyBUF_STRIDES) < 0)
        return NULL;
    const char *format = matrix.format ? matrix.format : "B";
    int sound = matrix.ndim == 2 && (!strcmp(format, "d") || !strcmp(format, "f")) && rows_in_block > 0;
    if (!sound)
        PyErr_SetString(PyExc_ValueError, "the kernel needs rows in a matrix of doubles or floats, and blocks of one row or more.");
    sound = sound && common(&held, &job, matrix.shape[0], matrix.shape[1], labels, counts, weights, out);
    if (sound && centring != Py_None) {
        sound = matrix.strides[1] == matrix.itemsize && job.d >= 4;
        if (!sound)
            PyErr_SetString(PyExc_ValueError, "the kernel moves rows of four numbers or more, each row in one piece.");
        sound = sound && (view = vector(&held, centre, "d", job.d, 0)) != NULL;
    }
    if (sound && centring != Py_None) {
        centred.centre = view->buf;
        for (ptrdiff_t j = 0; j < job.d; j++) {
            centred.square += centred.centre[j] * centred.centre[j];
            centred.at_centre += centred.centre[j] * job.weights[j];
        }
    }
    if (sound && !(of_block = malloc((size_t)(job.d + 1) * sizeof(double)))) {
        PyErr_NoMemory();
        sound = 0;
    }
    if (sound) {
        struct dense given = {matrix.buf, job.d, matrix.strides[0], matrix.strides[1], matrix.itemsize, radius, farthest};
        Py_BEGIN_ALLOW_THREADS
        near = clipped_pass(&job, &given, centred.centre ? &centred : NULL, rows_in_block, of_block, plain);
        Py_END_ALLOW_THREADS
    }
    free(of_block);
    let_go(&held);
    PyBuffer_Release(&matrix);
    return sound ? PyBool_FromLong(near) : NULL;
}

PyDoc_STRVAR(scaled_sums_doc,
             "scaled_sums(rows, scales, shifts, limits, labels, counts, largest, weights, offset, at_centre, loss, a, low, high, out, moved,\n"
             "            plain)\n\n"
             "Adds the sum over rows (n, d) of slope times scale times row to out[:d], of slopes to out[d], and of slope times\n"
             "shift to moved[0]. The score of a row is scale times row times weights, less shift times at_centre, plus offset.\n"
             "Each slope is clipped to [-limit, limit], unless there are no limits, and then weighed. Rows of floats are multiplied\n"
             "in single precision.");

static PyObject *scaled_sums(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *rows, *scales, *shifts, *limits, *labels, *counts, *weights, *out, *moved;
    Py_buffer views[MOST_BUFFERS + 4], matrix, *view;
    struct held held = {views, 0};
    struct job job;
    struct dense given;
    struct scaled scaled;
    int plain;
    if (!PyArg_ParseTuple(arguments, "OOOOOOdOddidddOOp", &rows, &scales, &shifts, &limits, &labels, &counts, &job.largest, &weights,
                          &job.offset, &scaled.at_centre, &job.loss.kind, &job.loss.a, &job.loss.low, &job.loss.high, &out, &moved, &plain))
        return NULL;
    if (PyObject_GetBuffer(rows, &matrix, PyBUF_FORMAT | PyBUF_STRIDES) < 0)
        return NULL;
    const char *format = matrix.format ? matrix.format : "B";
    int sound = matrix.ndim == 2 && (!strcmp(format, "d") || !strcmp(format, "f")) && matrix.shape[1] >= 4 &&
                matrix.strides[1] == matrix.itemsize;
    if (!sound)
        PyErr_SetString(PyExc_ValueError, "the kernel needs rows of four doubles or floats or more, each row in one piece.");
    sound = sound && common(&held, &job, matrix.shape[0], matrix.shape[1], labels, counts, weights, out);
    if (sound && (sound = (view = vector(&held, scales, "d", job.n, 0)) != NULL))
        scaled.scales = view->buf;
    scaled.limits = NULL;
    if (sound && limits != Py_None && (sound = (view = vector(&held, limits, "d", job.n, 0)) != NULL))
        scaled.limits = view->buf;
    if (sound && (sound = (view = vector(&held, moved, "d", 1, 1)) != NULL))
        scaled.moved = view->buf;
    scaled.shifts = NULL;
    if (sound && shifts != Py_None && (sound = (view = vector(&held, shifts, "d", job.n, 0)) != NULL))
        scaled.shifts = view->buf;
    scaled.singles = NULL;
    if (sound && matrix.itemsize == 4) {
        if (!(scaled.singles = malloc((size_t)job.d * sizeof(float)))) {
            PyErr_NoMemory();
            sound = 0;
        }
        for (ptrdiff_t j = 0; sound && j < job.d; j++)
            scaled.singles[j] = (float)job.weights[j];
    }
    if (sound) {
        given = (struct dense){matrix.buf, job.d, matrix.strides[0], matrix.itemsize, matrix.itemsize, HUGE_VAL, HUGE_VAL};
        Py_BEGIN_ALLOW_THREADS
        scaled_pass(&job, &given, &scaled, plain);
        Py_END_ALLOW_THREADS
    }
    free(scaled.singles);
    let_go(&held);
    PyBuffer_Release(&matrix);
    if (!sound)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(angles_doc,
             "angles(rows, inputs, out, plain)\n\n"
             "Writes the product of rows (n, d) with inputs (d, m) to out (n, m), all of them doubles in one piece. Entries of rows\n"
             "that are 0 are not multiplied.");

static PyObject *angles(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *given[3];
    Py_buffer views[3];
    struct held held = {views, 0};
    ptrdiff_t *places = NULL;
    int plain, sound = 1;
    if (!PyArg_ParseTuple(arguments, "OOOp", given, given + 1, given + 2, &plain))
        return NULL;
    for (int i = 0; sound && i < 3; i++) {
        sound = PyObject_GetBuffer(given[i], views + i, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | (i == 2 ? PyBUF_WRITABLE : 0)) == 0;
        held.n += sound;
    }
    for (int i = 0; sound && i < 3; i++)
        if (!(views[i].ndim == 2 && views[i].format && !strcmp(views[i].format, "d"))) {
            PyErr_SetString(PyExc_ValueError, "the kernel needs three matrices of doubles, each in one piece.");
            sound = 0;
        }
    if (sound && !(views[0].shape[1] == views[1].shape[0] && views[0].shape[0] == views[2].shape[0] && views[1].shape[1] == views[2].shape[1])) {
        PyErr_SetString(PyExc_ValueError, "the kernel was given matrices that do not fit each other.");
        sound = 0;
    }
    if (sound && !(places = malloc((size_t)views[0].shape[0] * (views[0].shape[1] + 1) * sizeof(ptrdiff_t) + 1))) {
        PyErr_NoMemory();
        sound = 0;
    }
    if (sound) {
        Py_BEGIN_ALLOW_THREADS
        angles_of(views[0].shape[0], views[0].shape[1], views[1].shape[1], views[0].buf, views[1].buf, places, views[2].buf, plain);
        Py_END_ALLOW_THREADS
    }
    free(places);
    let_go(&held);
    if (!sound)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(turned_doc,
             "turned(angles, scale, out, plain)\n\n"
             "Writes the cosines of angles (n, d), times a scale, to out[:, :d], and their sines to out[:, d:], which are doubles or\n"
             "floats. An angle alone decides its numbers, whatever stands beside it.");

static PyObject *turned(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *given, *out;
    Py_buffer angles, made;
    double scale;
    int plain;
    if (!PyArg_ParseTuple(arguments, "OdOp", &given, &scale, &out, &plain))
        return NULL;
    if (PyObject_GetBuffer(given, &angles, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) < 0)
        return NULL;
    if (PyObject_GetBuffer(out, &made, PyBUF_FORMAT | PyBUF_STRIDES | PyBUF_WRITABLE) < 0) {
        PyBuffer_Release(&angles);
        return NULL;
    }
    const char *format = made.format ? made.format : "B";
    const int sound = angles.ndim == 2 && made.ndim == 2 && angles.format && !strcmp(angles.format, "d") &&
                      (!strcmp(format, "d") || !strcmp(format, "f")) && made.shape[0] == angles.shape[0] &&
                      made.shape[1] == 2 * angles.shape[1] && made.strides[1] == made.itemsize;
    if (sound) {
        Py_BEGIN_ALLOW_THREADS
        turned_rows(angles.shape[0], angles.shape[1], angles.buf, scale, made.buf, made.strides[0], made.itemsize, plain);
        Py_END_ALLOW_THREADS
    } else
        PyErr_SetString(PyExc_ValueError, "the kernel needs a matrix of angles, and one of twice as many numbers in a row.");
    PyBuffer_Release(&made);
    PyBuffer_Release(&angles);
    if (!sound)
        return NULL;
    Py_RETURN_NONE;
}

/* One column of coded rows from (kind, codes, start, bins, indicator, low, step, high, middle, values, linked). */
static int read_column(struct held *held, struct column *column, PyObject *given, Py_ssize_t n, Py_ssize_t d)
{
    PyObject *codes, *values;
    Py_buffer *view;
    if (!PyArg_ParseTuple(given, "iOnnnddddOp", &column->kind, &codes, &column->start, &column->bins, &column->indicator, &column->low,
                          &column->step, &column->high, &column->middle, &values, &column->linked))
        return 0;
    if (!(view = vector(held, codes, column->kind == LEVELS ? "bhil" : "fd", n, 0)))
        return 0;
    column->codes = view->buf;
    column->size = view->itemsize;
    column->values = NULL;
    if (values != Py_None) {
        if (!(view = vector(held, values, "d", column->kind == LEVELS ? column->bins : 1, 0)))
            return 0;
        column->values = view->buf;
    }
    /* A line has 1 encoded column, a curve of b bins has b hats (one bin stands for missing numbers), a category of b bins has
       1 encoded column, or b - 1. */
    const Py_ssize_t wide = column->kind == CURVE ? column->bins : column->kind == LEVELS && !column->values ? column->bins - 1 : 1;
    int sound = column->kind == LINE || column->kind == CURVE || column->kind == LEVELS;
    sound = sound && column->size <= (column->kind == LEVELS ? 4 : 8) && (column->kind != CURVE || column->values);
    sound = sound && (column->kind != LEVELS || column->indicator == -1);
    sound = sound && column->bins >= (column->kind == CURVE ? 2 : 1) && column->bins < INT32_MAX / 16;
    sound = sound && column->start >= 0 && wide <= d && column->start <= d - wide && column->indicator >= -1 && column->indicator < d;
    /* The highest position of a curve lies before its last hat. */
    sound = sound && (column->kind != CURVE || (column->high < (double)(column->bins - 1) && column->high >= 0.0 &&
                                                column->middle >= 0.0 && column->middle <= column->high));
    if (!sound)
        PyErr_SetString(PyExc_ValueError, "the kernel was given a column that does not fit the weights.");
    return sound;
}

PyDoc_STRVAR(coded_sums_doc,
             "coded_sums(columns, n_rows, rows_in_block, labels, counts, largest, weights, offset, loss, a, low, high, out, products,\n"
             "           plain)\n\n"
             "The same over rows that are codes of columns, block by block; as one block where products are asked for. Returns\n"
             "whether every row has a level in each linked category.");

static PyObject *coded_sums(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *given, *labels, *counts, *weights, *out, *products;
    struct job job;
    Py_ssize_t n, rows_in_block, lines, n_spread;
    double *upper = NULL;
    int plain, whole = 0, constant = 0;
    if (!PyArg_ParseTuple(arguments, "O!nnOOdOdidddOOp", &PyTuple_Type, &given, &n, &rows_in_block, &labels, &counts, &job.largest,
                          &weights, &job.offset, &job.loss.kind, &job.loss.a, &job.loss.low, &job.loss.high, &out, &products, &plain))
        return NULL;
    if (rows_in_block < 1) {
        PyErr_SetString(PyExc_ValueError, "the kernel needs blocks of one row or more.");
        return NULL;
    }
    const Py_ssize_t n_columns = PyTuple_Size(given), d = PyObject_Length(weights);
    if (d < 0)
        return NULL;
    struct held held = {calloc((size_t)(2 * n_columns + MOST_BUFFERS + 1), sizeof(Py_buffer)), 0};
    struct column *columns = calloc((size_t)n_columns + 1, sizeof(struct column));
    int sound = held.views && columns && common(&held, &job, n, d, labels, counts, weights, out);
    for (Py_ssize_t c = 0; sound && c < n_columns; c++)
        sound = read_column(&held, columns + c, PyTuple_GetItem(given, c), n, d);
    if (sound && products != Py_None)
        sound = squares_of(&held, products, d, MOST_CODED_BENT, &upper, &constant);
    count_entries(columns, sound ? n_columns : 0, &lines, &n_spread);
    if (upper && lines + constant > MOST_LINES) {
        PyErr_SetString(PyExc_ValueError, "the kernel makes sums of products where fewer columns are lines.");
        sound = 0;
    }
    int made = 1;
    if (sound) {
        Py_BEGIN_ALLOW_THREADS
        made = upper ? coded_curvatures_pass(&job, columns, n_columns, constant, upper, plain, &whole)
                     : coded_pass(&job, columns, n_columns, rows_in_block, NULL, plain, &whole);
        Py_END_ALLOW_THREADS
    }
    if (held.views)
        let_go(&held);
    free(held.views);
    free(columns);
    if (!made || (!sound && !PyErr_Occurred()))
        return PyErr_NoMemory();
    return sound ? PyBool_FromLong(whole) : NULL;
}

static PyObject *processor(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyUnicode_FromString(has_avx2() ? "AVX2" : "plain");
}

static PyMethodDef methods[] = {
    {"dense_sums", dense_sums, METH_VARARGS, dense_sums_doc},
    {"clipped_sums", clipped_sums, METH_VARARGS, clipped_sums_doc},
    {"scaled_sums", scaled_sums, METH_VARARGS, scaled_sums_doc},
    {"coded_sums", coded_sums, METH_VARARGS, coded_sums_doc},
    {"angles", angles, METH_VARARGS, angles_doc},
    {"turned", turned, METH_VARARGS, turned_doc},
    {"processor", processor, METH_NOARGS, "processor()\n\nWhich instructions are used: AVX2, or plain for those that every processor has."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_kernel", "Gradients over blocks of rows in one pass, and random features.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernel(void)
{
    return PyModuleDef_Init(&module);
}

#endif

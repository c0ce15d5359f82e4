/* The compiled kernel on shapes, strides, starts in memory, levels and numbers drawn at random, for sanitizers to watch.
   Both kinds of instructions must agree. Every array lies at the very end of its own memory. Run: make sanitize */

#define KERNEL_TEST 1
#include "../../src/confide/compiled/kernel.c"
#include <stdio.h>

static uint64_t state = 88172645463325252ull;

static uint64_t drawn(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static double number(int odd)
{
    static const double oddities[] = {NAN, INFINITY, -INFINITY, 1e308, -1e308, 5e-324, -0.0};
    if (odd && drawn(20) == 0)
        return oddities[drawn(7)];
    return ((double)drawn(2000001) - 1e6) / 3e5;
}

static void *room(size_t bytes)
{
    void *made = malloc(bytes ? bytes : 1);
    if (!made)
        exit(2);
    return made;
}

static int same(const double *x, const double *y, ptrdiff_t n, int odd)
{
    double size = 1.0;
    for (ptrdiff_t i = 0; i < n; i++)
        size = fmax(size, fabs(x[i]));
    for (ptrdiff_t i = 0; !odd && i < n; i++)
        if (!(fabs(x[i] - y[i]) <= 1e-9 * size))
            return 0;
    return 1;
}

static struct job job_of(ptrdiff_t n, ptrdiff_t d, int odd, double *weights, int8_t *labels, double *targets, double *counts)
{
    struct job job = {.n = n, .d = d, .offset = number(odd), .largest = drawn(2) ? 1.0 : 0.4};
    for (ptrdiff_t j = 0; j < d; j++)
        weights[j] = number(odd);
    for (ptrdiff_t i = 0; i < n; i++) {
        labels[i] = drawn(2) ? 1 : -1;
        targets[i] = number(odd);
        counts[i] = number(odd);
    }
    job.weights = weights;
    job.loss = (struct loss){(int)drawn(N_LOSSES), 0.001 + drawn(100) / 30.0, -2.0, 2.0};
    job.small_labels = drawn(2) ? labels : NULL;
    job.targets = job.small_labels ? NULL : targets;
    job.counts = drawn(2) ? counts : NULL;
    return job;
}

static int dense_case(void)
{
    const int odd = drawn(3) == 0;
    const ptrdiff_t n = (ptrdiff_t)drawn(600), d = 1 + (ptrdiff_t)drawn(drawn(8) ? 60 : 400), size = drawn(2) ? 8 : 4;
    const ptrdiff_t gap = (ptrdiff_t)drawn(4), by_columns = drawn(3) == 0, both = drawn(6) == 0;
    struct dense given = {.d = d, .size = size, .radius = drawn(2) ? HUGE_VAL : 0.7, .farthest = drawn(2) ? HUGE_VAL : 30.0};
    given.column_stride = by_columns ? (n + gap) * size : (both ? 2 : 1) * size;
    given.row_stride = by_columns ? (both ? 2 : 1) * size : (2 * d + gap) * size;
    if (by_columns && both)
        given.column_stride *= 2;
    const size_t bytes = n && d ? (size_t)((n - 1) * given.row_stride + (d - 1) * given.column_stride + size) : 0;
    char *rows = room(bytes);
    for (size_t at = 0; at + size <= bytes; at += size) {
        double x = number(odd);
        float single = (float)x;
        memcpy(rows + at, size == 4 ? (void *)&single : (void *)&x, size);
    }
    given.rows = rows;
    double *weights = room(d * 8), *targets = room(n * 8), *counts = room(n * 8), *out = calloc(d + 1, 8), *other = calloc(d + 1, 8);
    int8_t *labels = room(n);
    struct job job = job_of(n, d, odd, weights, labels, targets, counts);
    job.out = out;
    dense_pass(&job, &given, 0);
    job.out = other;
    dense_pass(&job, &given, 1);
    int right = same(out, other, d + 1, odd);
    /* Once more, block by block: the same sums, and both kinds of instructions tell of the same far rows. */
    double *of_block = room((d + 1) * 8), *blocks = calloc(d + 1, 8);
    const ptrdiff_t rows_in_block = 1 + (ptrdiff_t)drawn(drawn(2) ? 70 : 700);
    job.out = blocks;
    const int near = clipped_pass(&job, &given, NULL, rows_in_block, of_block, 1);
    right = right && (!near || same(blocks, other, d + 1, odd));
    double *others = calloc(d + 1, 8);
    job.out = others;
    right = right && near == clipped_pass(&job, &given, NULL, rows_in_block, of_block, 0);
    right = right && (!near || same(blocks, others, d + 1, odd));
    if (!by_columns && !both && d >= 4) {
        /* And moved by a centre. */
        double *centre = room(d * 8), square = 0.0;
        for (ptrdiff_t j = 0; j < d; j++) {
            centre[j] = number(0) / 10.0;
            square += centre[j] * centre[j];
        }
        const struct centred centred = {centre, 0.5, 1.5, square, number(odd)};
        memset(blocks, 0, (d + 1) * 8), memset(others, 0, (d + 1) * 8);
        struct dense moving = given;
        moving.radius = given.radius < 1.0 ? given.radius : 30.0;
        const int close = clipped_pass(&job, &moving, &centred, rows_in_block, of_block, 0);
        job.out = blocks;
        right = right && close == clipped_pass(&job, &moving, &centred, rows_in_block, of_block, 1);
        right = right && (!close || same(blocks, others, d + 1, odd));
        free(centre);
    }
    free(of_block), free(blocks), free(others);
    const int constant = (int)drawn(2);
    if (right && d + constant <= MOST_BENT) {
        /* The gradients once more, and sums of products, which are in single precision. */
        const ptrdiff_t width = d + constant;
        double *products = calloc(width * width, 8), *others = calloc(width * width, 8), size = 1.0;
        job.out = out;
        dense_curvatures_pass(&job, &given, constant, products, 0);
        job.out = other;
        dense_curvatures_pass(&job, &given, constant, others, 1);
        right = same(out, other, d + 1, odd);
        for (ptrdiff_t i = 0; !odd && i < width * width; i++)
            size = fmax(size, fabs(products[i]));
        for (ptrdiff_t i = 0; !odd && i < width * width; i++)
            right = right && fabs(products[i] - others[i]) <= 1e-4 * size;
        free(products), free(others);
    }
    free(rows), free(weights), free(targets), free(counts), free(out), free(other), free(labels);
    return right;
}

static int scaled_case(void)
{
    const int odd = drawn(3) == 0;
    const ptrdiff_t n = (ptrdiff_t)drawn(300), d = 4 + (ptrdiff_t)drawn(drawn(8) ? 60 : 400), gap = (ptrdiff_t)drawn(4);
    const size_t length = n ? (size_t)((n - 1) * (d + gap) + d) : 0;
    double *rows = room(length * 8), *beside[3], *weights = room(d * 8), *targets = room(n * 8), *counts = room(n * 8);
    double *out[2] = {calloc(d + 1, 8), calloc(d + 1, 8)}, moved[2] = {0.0, 0.0};
    int8_t *labels = room(n);
    for (size_t at = 0; at < length; at++)
        rows[at] = number(odd);
    for (int k = 0; k < 3; k++) {
        beside[k] = room(n * 8);
        for (ptrdiff_t i = 0; i < n; i++)
            beside[k][i] = fabs(number(odd));
    }
    struct dense given = {(char *)rows, d, (d + gap) * 8, 8, 8, HUGE_VAL, HUGE_VAL};
    struct scaled scaled = {beside[0], drawn(2) ? beside[1] : NULL, drawn(2) ? beside[2] : NULL, number(odd), NULL, NULL};
    struct job job = job_of(n, d, odd, weights, labels, targets, counts);
    float *singles = room(d * 4), *floats_of_rows = room(length * 4);
    const int single = (int)drawn(2);
    for (ptrdiff_t j = 0; j < d; j++)
        singles[j] = (float)weights[j];
    for (size_t at = 0; at < length; at++)
        floats_of_rows[at] = (float)rows[at];
    if (single) {
        given = (struct dense){(char *)floats_of_rows, d, (d + gap) * 4, 4, 4, HUGE_VAL, HUGE_VAL};
        scaled.singles = singles;
    }
    for (int plain = 0; plain < 2; plain++) {
        job.out = out[plain];
        scaled.moved = moved + plain;
        scaled_pass(&job, &given, &scaled, plain);
    }
    /* In single precision other instructions may round otherwise, and a hinge may see a row on either side of its corner. */
    const int right = single || (same(out[0], out[1], d + 1, odd) && same(moved, moved + 1, 1, odd));
    free(singles), free(floats_of_rows), free(rows), free(weights), free(targets), free(counts), free(labels), free(out[0]), free(out[1]);
    for (int k = 0; k < 3; k++)
        free(beside[k]);
    return right;
}

static int coded_case(void)
{
    enum { MOST = 12 };
    const int odd = drawn(3) == 0;
    const ptrdiff_t n = (ptrdiff_t)drawn(700), n_columns = (ptrdiff_t)drawn(MOST);
    struct column columns[MOST];
    static const double height[] = {0.5};
    void *codes[MOST] = {NULL};
    double *values[MOST] = {NULL};
    ptrdiff_t d = 0;
    for (ptrdiff_t c = 0; c < n_columns; c++) {
        struct column *column = columns + c;
        *column = (struct column){.kind = (int)drawn(3), .start = d, .indicator = -1, .low = -1.0, .step = 1.5, .high = 2.0};
        column->size = column->kind == LEVELS ? (ptrdiff_t)1 << drawn(3) : drawn(2) ? 8 : 4;
        column->bins = column->kind == LINE ? 1 : 2 + (ptrdiff_t)drawn(drawn(6) ? 20 : 700);
        column->linked = drawn(4) == 0;
        if (column->kind == CURVE) {
            column->high = nextafter((double)(column->bins - 1), 0.0);
            column->middle = 0.5 * (column->bins - 1);
            column->values = height;
        }
        if (column->kind == LEVELS && drawn(2)) {
            column->values = values[c] = room(column->bins * 8);
            for (ptrdiff_t bin = 0; bin < column->bins; bin++)
                values[c][bin] = number(odd);
        }
        d += column->kind == CURVE ? column->bins : column->kind == LEVELS && !column->values ? column->bins - 1 : 1;
        if (column->kind != LEVELS && drawn(2))
            column->indicator = d++;
        codes[c] = room(n * column->size);
        for (ptrdiff_t i = 0; i < n; i++) {
            double x = number(odd);
            float single = (float)x;
            int32_t level = (int32_t)drawn(odd ? 100000 : (uint64_t)column->bins) - 1;
            char *at = (char *)codes[c] + i * column->size;
            if (column->kind != LEVELS)
                memcpy(at, column->size == 4 ? (void *)&single : (void *)&x, column->size);
            else if (column->size == 4)
                memcpy(at, &level, 4);
            else if (column->size == 2)
                memcpy(at, &(int16_t){(int16_t)level}, 2);
            else
                *at = (char)level;
        }
        column->codes = codes[c];
    }
    double *weights = room(d * 8), *targets = room(n * 8), *counts = room(n * 8), *out = calloc(d + 1, 8), *other = calloc(d + 1, 8);
    int8_t *labels = room(n);
    struct job job = job_of(n, d, odd, weights, labels, targets, counts);
    job.out = out;
    const ptrdiff_t rows_in_block = 1 + (ptrdiff_t)drawn(drawn(2) ? 50 : 900);
    int whole[2], right = coded_pass(&job, columns, n_columns, rows_in_block, NULL, 0, whole);
    for (ptrdiff_t c = 0; c < n_columns; c++)
        columns[c].codes = codes[c];
    job.out = other;
    right = right && coded_pass(&job, columns, n_columns, rows_in_block, NULL, 1, whole + 1) && same(out, other, d + 1, odd);
    right = right && whole[0] == whole[1];
    const int constant = (int)drawn(2);
    const ptrdiff_t width = d + constant;
    if (right && width <= MOST_CODED_BENT) {
        /* The gradients once more, and sums of products, some of them in single precision. */
        double *products[2] = {calloc(width * width + 1, 8), calloc(width * width + 1, 8)}, *sums = calloc(d + 1, 8), size = 1.0;
        for (int plain = 0; plain < 2; plain++) {
            for (ptrdiff_t c = 0; c < n_columns; c++)
                columns[c].codes = codes[c];
            memset(sums, 0, (d + 1) * 8);
            job.out = sums;
            right = right && coded_curvatures_pass(&job, columns, n_columns, constant, products[plain], plain, whole);
            right = right && same(out, sums, d + 1, odd);
        }
        for (ptrdiff_t i = 0; !odd && i < width * width; i++)
            size = fmax(size, fabs(products[0][i]));
        for (ptrdiff_t i = 0; !odd && i < width * width; i++)
            right = right && fabs(products[0][i] - products[1][i]) <= 1e-4 * size;
        free(products[0]), free(products[1]), free(sums);
    }
    for (ptrdiff_t c = 0; c < n_columns; c++)
        free(codes[c]), free(values[c]);
    free(weights), free(targets), free(counts), free(out), free(other), free(labels);
    return right;
}

static int turned_case(void)
{
    const int odd = drawn(3) == 0;
    const ptrdiff_t n = (ptrdiff_t)drawn(9), d = 1 + (ptrdiff_t)drawn(drawn(4) ? 40 : 700), gap = (ptrdiff_t)drawn(4);
    const ptrdiff_t size = drawn(2) ? 8 : 4, stride = (2 * d + gap) * size;
    const size_t bytes = n ? (size_t)((n - 1) * stride + 2 * d * size) : 0;
    double *angles = room(n * d * 8);
    char *made[2] = {room(bytes), room(bytes)};
    for (ptrdiff_t i = 0; i < n * d; i++)
        angles[i] = (drawn(50) ? 1.0 : 1e6) * number(odd);
    int right = 1;
    for (int plain = 0; plain < 2; plain++)
        turned_rows(n, d, angles, 0.5, made[plain], stride, size, plain);
    for (ptrdiff_t i = 0; i < 2 * n * d; i++) {
        const ptrdiff_t at = i / (2 * d) * stride + i % (2 * d) * size;
        float single[2];
        double x[2];
        for (int k = 0; k < 2; k++) {
            memcpy(size == 4 ? (void *)(single + k) : (void *)(x + k), made[k] + at, size);
            x[k] = size == 4 ? single[k] : x[k];
        }
        right = right && (fabs(x[0] - x[1]) <= (size == 4 ? 1e-7 : 4e-16) || (odd && x[0] != x[0] && x[1] != x[1]));
    }
    free(angles), free(made[0]), free(made[1]);
    const ptrdiff_t inputs = (ptrdiff_t)drawn(30);
    double *rows = room(n * inputs * 8), *of_inputs = room(inputs * d * 8), *products[2] = {room(n * d * 8), room(n * d * 8)};
    ptrdiff_t *places = room(inputs * sizeof(ptrdiff_t));
    for (ptrdiff_t i = 0; i < n * inputs; i++)
        rows[i] = drawn(3) ? 0.0 : number(odd);
    for (ptrdiff_t i = 0; i < inputs * d; i++)
        of_inputs[i] = number(odd);
    for (int plain = 0; plain < 2; plain++)
        angles_of(n, inputs, d, rows, of_inputs, places, products[plain], plain);
    right = right && same(products[0], products[1], n * d, odd);
    free(rows), free(of_inputs), free(products[0]), free(products[1]), free(places);
    return right;
}

int main(int n_arguments, char **arguments)
{
    const long n_cases = n_arguments > 1 ? atol(arguments[1]) : 5000;
    for (long i = 0; i < n_cases; i++)
        if (!dense_case() || !scaled_case() || !coded_case() || !turned_case()) {
            fprintf(stderr, "case %ld: the two kinds of instructions disagree\n", i);
            return 1;
        }
    printf("%ld cases, instructions: %s and plain\n", 4 * n_cases, has_avx2() ? "AVX2" : "plain");
    return 0;
}

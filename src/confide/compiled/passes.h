/* One pass over rows: scores, slopes, and the sum of the rows, each times its slope. kernel.c includes this file once for
   each kind of processor, with NAME and TARGET defined. Vectors have four doubles; the compiler splits them where the
   processor has shorter ones (two on NEON).

   Sums have a fixed order, which depends on the number of rows and of columns alone. */

/* ---- Slopes ---- */

static INLINE TARGET vec NAME(exponential)(vec x)
{
    /* 2^n times the Taylor polynomial of degree 13 at a number below log(2) / 2, whose remainder is below 2^-57. What is not a
       number stays so: it tells a solver that its weights are of no use. */
    const vec highest = SPLAT(709.0), lowest = SPLAT(-708.0), magic = SPLAT(6755399441055744.0), one = SPLAT(1.0);
    vec within = SELECT(x > highest, highest, x);
    within = SELECT(within < lowest, lowest, within);
    vec shifted = within * SPLAT(1.4426950408889634074) + magic;
    vec whole = shifted - magic;
    vec r = within - whole * SPLAT(6.93147180369123816490e-01);
    r = r - whole * SPLAT(1.90821492927058770002e-10);
    /* The terms from r^2 on, even and odd ones apart, and pairs of them: so few operations wait for one another. */
    vec square = r * r, fourth = square * square;
    vec even = (SPLAT(0.5) + square * SPLAT(1.0 / 24.0)) +
               fourth * ((SPLAT(1.0 / 720.0) + square * SPLAT(1.0 / 40320.0)) +
                         fourth * (SPLAT(1.0 / 3628800.0) + square * SPLAT(1.0 / 479001600.0)));
    vec odd = (SPLAT(1.0 / 6.0) + square * SPLAT(1.0 / 120.0)) +
              fourth * ((SPLAT(1.0 / 5040.0) + square * SPLAT(1.0 / 362880.0)) +
                        fourth * (SPLAT(1.0 / 39916800.0) + square * SPLAT(1.0 / 6227020800.0)));
    vec p = one + (r + square * (even + r * odd));
    /* The low bits of `shifted` are n, so this is the double 2^n. */
    return p * (vec)(((ints)shifted + 1023) << 52);
}

static INLINE TARGET vec NAME(clipped)(vec x, vec low, vec high)
{
    /* What is not a number passes through. */
    vec above = SELECT(x < low, low, x);
    return SELECT(above > high, high, above);
}

/* Slopes in place of the scores of n rows, a multiple of 4. Counts may have exposures; NULL for none. */
static TARGET void NAME(slopes)(const struct loss *loss, int n, const double *targets, const double *exposures, double *scores)
{
    const vec zero = SPLAT(0.0), one = SPLAT(1.0), a = SPLAT(loss->a);
    for (int r = 0; r < n; r += 4) {
        vec s = LOAD(scores + r), t = LOAD(targets + r), found = zero;
        switch (loss->kind) {
        case LOGISTIC:
            found = -t / (one + NAME(exponential)(t * s - a));
            break;
        case HUBER_HINGE:
            found = -t * NAME(clipped)(((one - t * s) + a) / (a + a), zero, one);
            break;
        case SMOOTH_HINGE: {
            vec z = NAME(clipped)((one - t * s) / a, -one, one);
            found = -t * (SPLAT(2.0) + z * (SPLAT(3.0) - z * z)) * SPLAT(0.25);
            break;
        }
        case SQUARED:
        case POISSON: {
            vec low = SPLAT(loss->low), high = SPLAT(loss->high);
            vec within = NAME(clipped)(SELECT(t == t, t, low), low, high);
            vec mean = loss->kind == POISSON ? NAME(exponential)(s) * (exposures ? LOAD(exposures + r) : one) : s;
            found = NAME(clipped)(mean - within, -a, a);
            break;
        }
        case SUM_OF_ROWS:
            found = one;
            break;
        }
        STORE(scores + r, found);
    }
}

/* Second derivatives of n rows, a multiple of 4, from their scores and slopes. */
static TARGET void NAME(bends)(const struct loss *loss, int n, const double *targets, const double *exposures, const double *scores,
                               const double *slopes, double *bends)
{
    const vec zero = SPLAT(0.0), one = SPLAT(1.0), a = SPLAT(loss->a);
    for (int r = 0; r < n; r += 4) {
        vec s = LOAD(scores + r), t = LOAD(targets + r), slope = LOAD(slopes + r), found = zero;
        switch (loss->kind) {
        case LOGISTIC: {
            vec share = -t * slope, bent = share - share * share;
            found = SELECT(bent < zero, zero, bent);
            break;
        }
        case HUBER_HINGE:
        case SMOOTH_HINGE: {
            vec z = (one - t * s) / a;
            vec bent = loss->kind == HUBER_HINGE ? SPLAT(0.5) / a : SPLAT(0.75) / a * (one - z * z);
            found = SELECT((z >= -one) & (z <= one), bent, zero);
            break;
        }
        case SQUARED:
            found = SELECT((slope > -a) & (slope < a), one, zero);
            break;
        case POISSON:
            found = SELECT((slope > -a) & (slope < a), NAME(exponential)(s) * (exposures ? LOAD(exposures + r) : one), zero);
            break;
        }
        STORE(bends + r, found);
    }
}

/* From scores to slopes of n rows, both with room for CHUNK; `factors` (or NULL) multiply rows, `limits` (or NULL) bound the
   size of slopes, `counts` (or NULL) weigh rows. On return `scores` holds what each stored row is multiplied with, and `bends`
   (or NULL) the second derivative of each row, weighed too. Returns the sum of the slopes. */
static TARGET double NAME(weigh)(const struct job *job, ptrdiff_t first, int n, double *scores, const double *factors,
                                 const double *limits, double *bends)
{
    double targets[CHUNK], given[CHUNK], *exposures = job->exposures ? given : NULL;
    int padded = (n + 3) & ~3;
    for (int r = 0; exposures && r < padded; r++)
        exposures[r] = r < n ? job->exposures[first + r] : 1.0;
    if (job->small_labels)
        for (int r = 0; r < n; r++)
            targets[r] = job->small_labels[first + r];
    else
        memcpy(targets, job->targets + first, n * sizeof(double));
    for (int r = n; r < padded; r++)
        scores[r] = targets[r] = 0.0;
    if (factors)
        for (int r = 0; r < n; r++)
            scores[r] *= factors[r];
    for (int r = 0; r < n; r++)
        scores[r] += job->offset;
    double before[CHUNK];
    if (bends)
        memcpy(before, scores, padded * sizeof(double));
    NAME(slopes)(&job->loss, padded, targets, exposures, scores);
    if (bends)
        NAME(bends)(&job->loss, padded, targets, exposures, before, scores, bends);
    if (limits)
        for (int r = 0; r < n; r++) {
            /* What is not a number becomes the steepest slope downwards. */
            double high = limits[first + r], slope = scores[r] > -high ? scores[r] : -high;
            scores[r] = slope < high ? slope : high;
        }
    for (int r = n; r < padded; r++)
        scores[r] = 0.0;
    if (job->counts || job->largest < 1.0)
        for (int r = 0; r < n; r++) {
            double count = job->counts ? job->counts[first + r] : 1.0;
            count = count > 0.0 ? (count < job->largest ? count : job->largest) : 0.0;
            scores[r] *= count;
            if (bends)
                bends[r] *= count;
        }
    vec sum = SPLAT(0.0);
    for (int r = 0; r < padded; r += 4)
        sum += LOAD(scores + r);
    if (factors)
        for (int r = 0; r < n; r++)
            scores[r] *= factors[r];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* min(1, radius / length) in place of the squared length of each of n rows. Returns `squares`, or NULL where no row is longer
   than the radius. Sets `*far` where a squared length is beyond `farthest`. */
static TARGET const double *NAME(shorten)(double radius, double farthest, int n, double *squares, int *far)
{
    int longer = 0;
    /* Both comparisons are written so that what is not a number counts as longer. */
    for (int r = 0; r < n; r++)
        longer |= !(squares[r] <= radius * radius);
    if (!longer)
        return NULL;
    for (int r = 0; r < n; r++) {
        *far |= !(squares[r] <= farthest);
        double factor = radius / sqrt(squares[r]);
        squares[r] = factor < 1.0 ? factor : 1.0;
    }
    return squares;
}

/* ---- Random features ---- */

/* Products of n rows with d inputs of m numbers each. Of a row the entries that are not 0 are multiplied: `places` has room for how
   many these are, and where, of each row. */
static TARGET void NAME(angles)(ptrdiff_t n, ptrdiff_t d, ptrdiff_t m, const double *rows, const double *inputs, ptrdiff_t *places, double *out)
{
    ptrdiff_t k = 0;
    for (ptrdiff_t r = 0; r < n; r++) {
        ptrdiff_t *own = places + r * (d + 1);
        own[0] = 0;
        for (ptrdiff_t j = 0; j < d; j++)
            if (rows[r * d + j] != 0.0)
                own[++own[0]] = j;
    }
    /* A few columns of all inputs stay in the first-level cache. */
    for (; k + 32 <= m; k += 32)
        for (ptrdiff_t r = 0; r < n; r++) {
            const ptrdiff_t *own = places + r * (d + 1);
            vec sums[8] = {SPLAT(0.0), SPLAT(0.0), SPLAT(0.0), SPLAT(0.0), SPLAT(0.0), SPLAT(0.0), SPLAT(0.0), SPLAT(0.0)};
            for (ptrdiff_t i = 1; i <= own[0]; i++)
                for (int v = 0; v < 8; v++)
                    sums[v] += SPLAT(rows[r * d + own[i]]) * LOAD(inputs + own[i] * m + k + 4 * v);
            for (int v = 0; v < 8; v++)
                STORE(out + r * m + k + 4 * v, sums[v]);
        }
    for (; k < m; k++)
        for (ptrdiff_t r = 0; r < n; r++) {
            const ptrdiff_t *own = places + r * (d + 1);
            double sum = 0.0;
            for (ptrdiff_t i = 1; i <= own[0]; i++)
                sum += rows[r * d + own[i]] * inputs[own[i] * m + k];
            out[r * m + k] = sum;
        }
}

/* Cosines and sines of n angles, a multiple of 4, times a scale. The same instructions for each angle, wherever it stands. */
static TARGET void NAME(turned)(int n, const double *angles, double scale, double *cosines, double *sines)
{
    /* An angle less the nearest multiple of half pi, which is given in three parts: products with the first two are exact. Then
       the polynomials of fdlibm, k_sin.c and k_cos.c. */
    const vec magic = SPLAT(6755399441055744.0), most = SPLAT(MOST_TURNED), one = SPLAT(1.0), half = SPLAT(0.5);
    const ints low = {1, 1, 1, 1}, second = {2, 2, 2, 2};
    ints near = {-1, -1, -1, -1};
    for (int i = 0; i < n; i += 4) {
        const vec x = LOAD(angles + i);
        near &= (ints)(x <= most) & (ints)(x >= -most);
        const vec shifted = x * SPLAT(6.36619772367581382433e-01) + magic, whole = shifted - magic;
        vec r = x - whole * SPLAT(1.57079632673412561417e+00);
        r = r - whole * SPLAT(6.07710050630396597660e-11);
        r = r - whole * SPLAT(2.02226624879595063154e-21);
        const vec z = r * r, w = z * z, h = half * z, rest = one - h;
        const vec sine = r + r * z * (SPLAT(-1.66666666666666324348e-01) + z * (SPLAT(8.33333333332248946124e-03) +
            z * (SPLAT(-1.98412698298579493134e-04) + z * (SPLAT(2.75573137070700676789e-06) +
            z * (SPLAT(-2.50507602534068634195e-08) + z * SPLAT(1.58969099521155010221e-10))))));
        const vec cosine = rest + (((one - rest) - h) + w * (SPLAT(4.16666666666666019037e-02) +
            z * (SPLAT(-1.38888888888741095749e-03) + z * (SPLAT(2.48015872894767294178e-05) +
            z * (SPLAT(-2.75573143513906633035e-07) + z * (SPLAT(2.08757232129817482790e-09) +
            z * SPLAT(-1.13596475577881948265e-11)))))));
        /* The low bits of `shifted` are the number of quarter turns. */
        const ints turns = (ints)shifted, odd = (turns & low) == low;
        const ints minus = ((turns + low) & second) << 62, beside = (turns & second) << 62;
        STORE(cosines + i, (vec)((ints)SELECT(odd, sine, cosine) ^ minus) * SPLAT(scale));
        STORE(sines + i, (vec)((ints)SELECT(odd, cosine, sine) ^ beside) * SPLAT(scale));
    }
    if (near[0] & near[1] & near[2] & near[3])
        return;
    for (int i = 0; i < n; i++)
        if (!(angles[i] <= MOST_TURNED && angles[i] >= -MOST_TURNED)) {
            cosines[i] = cos(angles[i]) * scale;
            sines[i] = sin(angles[i]) * scale;
        }
}

/* The same of eight angles in single precision. Each is made smaller in double precision, by parts of half pi as above. */
static INLINE TARGET void NAME(turned_singles)(const double *angles, float scale, float *cosines, float *sines)
{
    const vec magic = SPLAT(6755399441055744.0), most = SPLAT(MOST_TURNED);
    const eight one = EIGHT(1.0f);
    const eight_ints low = {1, 1, 1, 1, 1, 1, 1, 1}, second = low + low;
    ints near = {-1, -1, -1, -1};
    eight_doubles made;
    eight_longs counted;
    for (int k = 0; k < 2; k++) {
        const vec x = LOAD(angles + 4 * k), shifted = x * SPLAT(6.36619772367581382433e-01) + magic, whole = shifted - magic;
        const vec r = x - whole * SPLAT(1.57079632673412561417e+00);
        near &= (ints)(x <= most) & (ints)(x >= -most);
        ((vec *)&made)[k] = r - whole * SPLAT(6.07710050630396597660e-11);
        ((ints *)&counted)[k] = (ints)shifted;
    }
    const eight r = __builtin_convertvector(made, eight);
    const eight_ints turns = __builtin_convertvector(counted, eight_ints);
    /* The polynomials of Cephes, sinf.c. */
    const eight z = r * r, h = EIGHT(0.5f) * z, rest = one - h;
    const eight sine = r + r * z * (EIGHT(-1.6666654611e-1f) + z * (EIGHT(8.3321608736e-3f) + z * EIGHT(-1.9515295891e-4f)));
    const eight cosine = rest + (((one - rest) - h) + z * z * (EIGHT(4.166664568298827e-2f) +
        z * (EIGHT(-1.388731625493765e-3f) + z * EIGHT(2.443315711809948e-5f))));
    const eight_ints odd = (turns & low) == low, minus = ((turns + low) & second) << 30, beside = (turns & second) << 30;
    const eight_ints even_bits = (eight_ints)cosine, odd_bits = (eight_ints)sine;
    const eight own[2] = {(eight)(((odd & odd_bits) | (~odd & even_bits)) ^ minus) * EIGHT(scale),
                          (eight)(((odd & even_bits) | (~odd & odd_bits)) ^ beside) * EIGHT(scale)};
    memcpy(cosines, own, sizeof own[0]);
    memcpy(sines, own + 1, sizeof own[1]);
    if (near[0] & near[1] & near[2] & near[3])
        return;
    for (int i = 0; i < 8; i++)
        if (!(angles[i] <= MOST_TURNED && angles[i] >= -MOST_TURNED)) {
            const float rounded[2] = {(float)(cos(angles[i]) * scale), (float)(sin(angles[i]) * scale)};
            memcpy(cosines + i, rounded, sizeof rounded[0]);
            memcpy(sines + i, rounded + 1, sizeof rounded[1]);
        }
}

/* The cosines and then the sines of d angles of each of n rows, times a scale, written to rows of 2 d numbers of some size. */
static TARGET void NAME(turned_rows)(ptrdiff_t n, ptrdiff_t d, const double *angles, double scale, char *out, ptrdiff_t stride,
                                     ptrdiff_t size)
{
    double own[CHUNK], found[2][CHUNK];
    float few[2][8];
    for (ptrdiff_t r = 0; r < n; r++) {
        const double *row = angles + r * d;
        char *to = out + r * stride;
        ptrdiff_t first = 0;
        for (; size == 4 && first + 8 <= d; first += 8)
            NAME(turned_singles)(row + first, (float)scale, (float *)(to + first * 4), (float *)(to + (d + first) * 4));
        for (int some; first < d; first += some) {
            some = d - first < CHUNK ? (int)(d - first) : CHUNK;
            memcpy(own, row + first, some * sizeof(double));
            for (int i = some; i < CHUNK && (i < 8 || i & 3); i++)
                own[i] = 0.0;
            if (size == 4)
                NAME(turned_singles)(own, (float)scale, few[0], few[1]);
            else
                NAME(turned)((some + 3) & ~3, own, scale, found[0], found[1]);
            for (int k = 0; k < 2; k++)
                memcpy(to + (k * d + first) * size, size == 4 ? (void *)few[k] : found[k], some * size);
        }
    }
}

/* ---- Dense rows, each row in one piece ---- */

static INLINE TARGET vec NAME(numbers)(const char *at, int single)
{
    if (!single)
        return LOAD(at);
    floats found;
    memcpy(&found, at, sizeof found);
    return CONVERT(found);
}

/* Four sums whose sum is a row times the weights, in `*s`, and four of its squared length, in `*q`, if `with_squares`.
   `edge` holds the last four weights, 0 for those that are not in the last, incomplete vector; `ones` holds 1 and 0 likewise. */
static INLINE TARGET void NAME(row_products)(const char *row, ptrdiff_t d, const double *w, vec edge, vec ones, int single,
                                             int with_squares, vec *s, vec *q)
{
    const ptrdiff_t size = single ? 4 : 8;
    vec s0 = SPLAT(0.0), q0 = s0, s1 = s0, q1 = s0, s2 = s0, q2 = s0, s3 = s0, q3 = s0;
    ptrdiff_t j = 0;
    for (; j + 16 <= d; j += 16) {
        const vec x = NAME(numbers)(row + j * size, single), y = NAME(numbers)(row + (j + 4) * size, single);
        const vec z = NAME(numbers)(row + (j + 8) * size, single), t = NAME(numbers)(row + (j + 12) * size, single);
        s0 += x * LOAD(w + j);
        s1 += y * LOAD(w + j + 4);
        s2 += z * LOAD(w + j + 8);
        s3 += t * LOAD(w + j + 12);
        if (with_squares) {
            q0 += x * x;
            q1 += y * y;
            q2 += z * z;
            q3 += t * t;
        }
    }
    for (; j + 4 <= d; j += 4) {
        const vec x = NAME(numbers)(row + j * size, single);
        s0 += x * LOAD(w + j);
        if (with_squares)
            q0 += x * x;
    }
    if (j < d) {
        const vec x = NAME(numbers)(row + (d - 4) * size, single);
        s1 += x * edge;
        if (with_squares)
            q1 += x * x * ones;
    }
    *s = (s0 + s1) + (s2 + s3);
    *q = (q0 + q1) + (q2 + q3);
}

/* The sums of the four numbers of each of four vectors. */
static INLINE TARGET vec NAME(four_sums)(const vec *x)
{
    vec first = SHUFFLE(x[0], x[1], 0, 4, 2, 6) + SHUFFLE(x[0], x[1], 1, 5, 3, 7);
    vec second = SHUFFLE(x[2], x[3], 0, 4, 2, 6) + SHUFFLE(x[2], x[3], 1, 5, 3, 7);
    return SHUFFLE(first, second, 0, 1, 4, 5) + SHUFFLE(first, second, 2, 3, 6, 7);
}

/* Scores of n rows, and their squared lengths if `with_squares`. Rows are read one after the other: processors fetch one long
   piece of memory faster than several. */
static INLINE TARGET void NAME(row_scores)(const char *rows, ptrdiff_t stride, int n, ptrdiff_t d, const double *w,
                                           vec edge, vec ones, int single, int with_squares, double *scores, double *squares)
{
    vec s[4], q[4];
    int r = 0;
    for (; r + 4 <= n; r += 4) {
        for (int i = 0; i < 4; i++)
            NAME(row_products)(rows + stride * (r + i), d, w, edge, ones, single, with_squares, s + i, q + i);
        STORE(scores + r, NAME(four_sums)(s));
        if (with_squares)
            STORE(squares + r, NAME(four_sums)(q));
    }
    for (; r < n; r++) {
        NAME(row_products)(rows + stride * r, d, w, edge, ones, single, with_squares, s, q);
        scores[r] = (s[0][0] + s[0][1]) + (s[0][2] + s[0][3]);
        if (with_squares)
            squares[r] = (q[0][0] + q[0][1]) + (q[0][2] + q[0][3]);
    }
}

/* Adds the sum of four columns over four rows to those of `out` which `ones` marks. */
static INLINE TARGET void NAME(add_four)(const char *at, ptrdiff_t stride, const vec *slopes, int single, ints ones, double *out)
{
    vec first = slopes[0] * NAME(numbers)(at, single) + slopes[2] * NAME(numbers)(at + 2 * stride, single);
    vec second = slopes[1] * NAME(numbers)(at + stride, single) + slopes[3] * NAME(numbers)(at + 3 * stride, single);
    STORE(out, LOAD(out) + (vec)((ints)(first + second) & ones));
}

/* Adds the sum of n rows, each times its slope. */
static INLINE TARGET void NAME(row_sums)(const char *rows, ptrdiff_t stride, int n, ptrdiff_t d, const double *slopes, int single,
                                         double *out)
{
    const ptrdiff_t size = single ? 4 : 8;
    const ints all = {-1, -1, -1, -1};
    ints last = {0, 0, 0, 0};
    for (int i = 4 - (int)(d % 4); i < 4; i++)
        last[i] = -1;
    int r = 0;
    for (; r + 4 <= n; r += 4) {
        const char *at = rows + stride * r;
        const vec own[4] = {SPLAT(slopes[r]), SPLAT(slopes[r + 1]), SPLAT(slopes[r + 2]), SPLAT(slopes[r + 3])};
        ptrdiff_t j = 0;
        for (; j + 4 <= d; j += 4)
            NAME(add_four)(at + j * size, stride, own, single, all, out + j);
        if (j < d)
            NAME(add_four)(at + (d - 4) * size, stride, own, single, last, out + d - 4);
    }
    for (; r < n; r++) {
        const vec slope = SPLAT(slopes[r]);
        ptrdiff_t j = 0;
        for (; j + 4 <= d; j += 4)
            STORE(out + j, LOAD(out + j) + slope * NAME(numbers)(rows + stride * r + j * size, single));
        if (j < d) {
            vec term = slope * NAME(numbers)(rows + stride * r + (d - 4) * size, single);
            STORE(out + d - 4, LOAD(out + d - 4) + (vec)((ints)term & last));
        }
    }
}

/* Rows that are read twice, the second time from the first-level cache. */
static int NAME(rows_at_once)(ptrdiff_t d, ptrdiff_t size)
{
    const ptrdiff_t fit = (FIRST_LEVEL / (d * size)) & ~(ptrdiff_t)3;
    return fit < 16 ? 16 : fit > FEW ? FEW : (int)fit;
}

/* This function and the next three return whether no row was farther than `given->farthest`. */
static INLINE TARGET int NAME(by_rows)(const struct job *job, const struct dense *given, const int single)
{
    const ptrdiff_t d = given->d, size = single ? 4 : 8;
    const int with_squares = given->radius < HUGE_VAL;
    int far = 0;
    double scores[FEW], squares[FEW];
    vec edge = SPLAT(0.0), ones = SPLAT(0.0);
    for (int i = 4 - (int)(d % 4); i < 4 && d % 4; i++) {
        edge[i] = job->weights[d - 4 + i];
        ones[i] = 1.0;
    }
    const int chunk = NAME(rows_at_once)(d, size);
    for (ptrdiff_t first = 0; first < job->n; first += chunk) {
        const int n = job->n - first < chunk ? (int)(job->n - first) : chunk;
        const char *rows = given->rows + first * given->row_stride;
        const double *factors = NULL;
        if (with_squares) {
            NAME(row_scores)(rows, given->row_stride, n, d, job->weights, edge, ones, single, 1, scores, squares);
            factors = NAME(shorten)(given->radius, given->farthest, n, squares, &far);
        } else
            NAME(row_scores)(rows, given->row_stride, n, d, job->weights, edge, ones, single, 0, scores, squares);
        job->out[d] += NAME(weigh)(job, first, n, scores, factors, NULL, NULL);
        NAME(row_sums)(rows, given->row_stride, n, d, scores, single, job->out);
    }
    return !far;
}

/* Scores of n rows of floats, multiplied in single precision: for solvers alone. */
static TARGET void NAME(single_scores)(const char *rows, ptrdiff_t stride, int n, ptrdiff_t d, const float *w, double *scores)
{
    for (int r = 0; r < n; r++) {
        const float *row = (const float *)(rows + stride * r);
        eight s[4] = {{0.0f}, {0.0f}, {0.0f}, {0.0f}};
        double sum = 0.0;
        ptrdiff_t j = 0;
        for (; j + 32 <= d; j += 32)
            for (int k = 0; k < 4; k++)
                s[k] += *(const loose_eight *)(row + j + 8 * k) * *(const loose_eight *)(w + j + 8 * k);
        for (; j < d; j++)
            sum += (double)row[j] * w[j];
        s[0] = (s[0] + s[1]) + (s[2] + s[3]);
        for (int k = 0; k < 8; k++)
            sum += s[0][k];
        scores[r] = sum;
    }
}

/* Adds the sum of at most FEW rows of floats, each times its slope: in single precision, and then to doubles. */
static TARGET void NAME(single_sums)(const char *rows, ptrdiff_t stride, int n, ptrdiff_t d, const double *slopes, double *out)
{
    float own[FEW];
    for (int r = 0; r < n; r++)
        own[r] = (float)slopes[r];
    ptrdiff_t j = 0;
    for (; j + 16 <= d; j += 16) {
        eight sums[2] = {{0.0f}, {0.0f}};
        floats parts[4];
        for (int r = 0; r < n; r++)
            for (int k = 0; k < 2; k++)
                sums[k] += own[r] * *(const loose_eight *)(rows + stride * r + 4 * (j + 8 * k));
        memcpy(parts, sums, sizeof parts);
        for (int k = 0; k < 4; k++)
            STORE(out + j + 4 * k, LOAD(out + j + 4 * k) + CONVERT(parts[k]));
    }
    for (; j < d; j++)
        for (int r = 0; r < n; r++)
            out[j] += slopes[r] * ((const float *)(rows + stride * r))[j];
}

/* The same for rows that stand for scale x - shift c, with slopes of limited size. `shifts`, `limits` and `singles` may be NULL. */
static TARGET void NAME(scaled_pass)(const struct job *job, const struct dense *given, const struct scaled *scaled)
{
    const ptrdiff_t d = given->d;
    double scores[FEW];
    vec edge = SPLAT(0.0);
    for (int i = 4 - (int)(d % 4); i < 4 && d % 4; i++)
        edge[i] = job->weights[d - 4 + i];
    const int chunk = NAME(rows_at_once)(d, given->size);
    for (ptrdiff_t first = 0; first < job->n; first += chunk) {
        const int n = job->n - first < chunk ? (int)(job->n - first) : chunk;
        const char *rows = given->rows + first * given->row_stride;
        if (scaled->singles)
            NAME(single_scores)(rows, given->row_stride, n, d, scaled->singles, scores);
        else
            NAME(row_scores)(rows, given->row_stride, n, d, job->weights, edge, edge, 0, 0, scores, NULL);
        for (int r = 0; r < n; r++) {
            scores[r] *= scaled->scales[first + r];
            if (scaled->shifts)
                scores[r] -= scaled->shifts[first + r] * scaled->at_centre;
        }
        job->out[d] += NAME(weigh)(job, first, n, scores, NULL, scaled->limits, NULL);
        if (scaled->shifts)
            for (int r = 0; r < n; r++)
                *scaled->moved += scaled->shifts[first + r] * scores[r];
        for (int r = 0; r < n; r++)
            scores[r] *= scaled->scales[first + r];
        if (scaled->singles)
            NAME(single_sums)(rows, given->row_stride, n, d, scores, job->out);
        else
            NAME(row_sums)(rows, given->row_stride, n, d, scores, 0, job->out);
    }
}

/* The same for rows that are shortened, moved by a centre, shortened again and magnified. With x a row and g the factor of the
   first shortening, that is f (g x - centre), f the magnification or less: score and sum are made of x and of the centre. */
static INLINE TARGET int NAME(by_centred_rows)(const struct job *job, const struct dense *given, const struct centred *centred,
                                               const int single)
{
    const ptrdiff_t d = given->d, size = single ? 4 : 8;
    double scores[FEW], squares[FEW], lengths[FEW], products[FEW], moved = 0.0;
    int far = 0;
    vec edge = SPLAT(0.0), beside = SPLAT(0.0), ones = SPLAT(0.0);
    for (int i = 4 - (int)(d % 4); i < 4 && d % 4; i++) {
        edge[i] = job->weights[d - 4 + i];
        beside[i] = centred->centre[d - 4 + i];
        ones[i] = 1.0;
    }
    const int chunk = NAME(rows_at_once)(d, size);
    for (ptrdiff_t first = 0; first < job->n; first += chunk) {
        const int n = job->n - first < chunk ? (int)(job->n - first) : chunk;
        const char *rows = given->rows + first * given->row_stride;
        NAME(row_scores)(rows, given->row_stride, n, d, job->weights, edge, ones, single, 1, scores, squares);
        NAME(row_scores)(rows, given->row_stride, n, d, centred->centre, beside, ones, single, 0, products, squares);
        memcpy(lengths, squares, n * sizeof(double));
        const double *factors = NAME(shorten)(given->radius, given->farthest, n, squares, &far);
        for (int r = 0; r < n; r++) {
            const double g = factors ? factors[r] : 1.0;
            const double distance = (g * g * lengths[r] - 2.0 * (g * products[r])) + centred->square;
            /* What is not a number counts as beyond the radius. */
            const int within = distance <= centred->radius * centred->radius;
            squares[r] = within ? centred->magnification : centred->magnification * centred->radius / sqrt(distance);
            lengths[r] = g;
            scores[r] = squares[r] * (g * scores[r] - centred->at_centre);
        }
        job->out[d] += NAME(weigh)(job, first, n, scores, NULL, NULL, NULL);
        for (int r = 0; r < n; r++) {
            scores[r] *= squares[r];
            moved += scores[r];
            scores[r] *= lengths[r];
        }
        NAME(row_sums)(rows, given->row_stride, n, d, scores, single, job->out);
    }
    for (ptrdiff_t j = 0; j < d; j++)
        job->out[j] -= moved * centred->centre[j];
    return !far;
}

static TARGET int NAME(centred_pass)(const struct job *job, const struct dense *given, const struct centred *centred)
{
    return given->size == 4 ? NAME(by_centred_rows)(job, given, centred, 1) : NAME(by_centred_rows)(job, given, centred, 0);
}

/* ---- Dense rows, each column in one piece ---- */

static INLINE TARGET int NAME(by_columns)(const struct job *job, const struct dense *given, const int single)
{
    const int with_squares = given->radius < HUGE_VAL;
    const ptrdiff_t size = single ? 4 : 8;
    double scores[CHUNK], squares[CHUNK];
    int far = 0;
    for (ptrdiff_t first = 0; first < job->n; first += CHUNK) {
        const int n = job->n - first < CHUNK ? (int)(job->n - first) : CHUNK;
        for (int r = 0; r < CHUNK; r++)
            scores[r] = squares[r] = 0.0;
        for (ptrdiff_t j = 0; j < given->d; j++) {
            const char *column = given->rows + j * given->column_stride + first * size;
            const double weight = job->weights[j];
            for (int r = 0; r < n; r++) {
                double x = single ? (double)((const float *)column)[r] : ((const double *)column)[r];
                scores[r] += weight * x;
            }
            if (with_squares)
                for (int r = 0; r < n; r++) {
                    double x = single ? (double)((const float *)column)[r] : ((const double *)column)[r];
                    squares[r] += x * x;
                }
        }
        const double *factors = with_squares ? NAME(shorten)(given->radius, given->farthest, n, squares, &far) : NULL;
        job->out[given->d] += NAME(weigh)(job, first, n, scores, factors, NULL, NULL);
        for (ptrdiff_t j = 0; j < given->d; j++) {
            const char *column = given->rows + j * given->column_stride + first * size;
            vec sums[2] = {SPLAT(0.0), SPLAT(0.0)};
            int r = 0;
            for (; r + 8 <= n; r += 8) {
                sums[0] += LOAD(scores + r) * NAME(numbers)(column + r * size, single);
                sums[1] += LOAD(scores + r + 4) * NAME(numbers)(column + (r + 4) * size, single);
            }
            vec sum = sums[0] + sums[1];
            double rest = 0.0;
            for (; r < n; r++)
                rest += scores[r] * (single ? (double)((const float *)column)[r] : ((const double *)column)[r]);
            job->out[j] += ((sum[0] + sum[1]) + (sum[2] + sum[3])) + rest;
        }
    }
    return !far;
}

/* Few columns: too few for one vector. */
static TARGET int NAME(of_few_columns)(const struct job *job, const struct dense *given)
{
    double scores[CHUNK], squares[CHUNK];
    const int with_squares = given->radius < HUGE_VAL;
    int far = 0;
    for (ptrdiff_t first = 0; first < job->n; first += CHUNK) {
        const int n = job->n - first < CHUNK ? (int)(job->n - first) : CHUNK;
        for (int r = 0; r < n; r++) {
            const char *row = given->rows + (first + r) * given->row_stride;
            scores[r] = squares[r] = 0.0;
            for (ptrdiff_t j = 0; j < given->d; j++) {
                double x = dense_number(given, row, j);
                scores[r] += job->weights[j] * x;
                squares[r] += x * x;
            }
        }
        const double *factors = with_squares ? NAME(shorten)(given->radius, given->farthest, n, squares, &far) : NULL;
        job->out[given->d] += NAME(weigh)(job, first, n, scores, factors, NULL, NULL);
        for (ptrdiff_t j = 0; j < given->d; j++) {
            double sum = 0.0;
            for (int r = 0; r < n; r++)
                sum += scores[r] * dense_number(given, given->rows + (first + r) * given->row_stride, j);
            job->out[j] += sum;
        }
    }
    return !far;
}

static TARGET int NAME(dense_pass)(const struct job *job, const struct dense *given)
{
    if (given->column_stride == given->size && given->d >= 4)
        return given->size == 4 ? NAME(by_rows)(job, given, 1) : NAME(by_rows)(job, given, 0);
    if (given->row_stride == given->size && given->d >= 4)
        return given->size == 4 ? NAME(by_columns)(job, given, 1) : NAME(by_columns)(job, given, 0);
    return NAME(of_few_columns)(job, given);
}

/* ---- Dense rows of few columns, with the sums of curvature times products of two columns ---- */

/* Copies n rows, as doubles, to rows of `width` columns: the row, and zeros. */
static INLINE TARGET void NAME(copied)(const struct dense *given, ptrdiff_t first, int n, ptrdiff_t width, double *rows)
{
    const ptrdiff_t d = given->d;
    for (int r = 0; r < n; r++) {
        const char *row = given->rows + (first + r) * given->row_stride;
        double *to = rows + r * width;
        ptrdiff_t j = 0;
        if (given->column_stride == given->size)
            for (; j + 4 <= d; j += 4)
                STORE(to + j, given->size == 8 ? NAME(numbers)(row + 8 * j, 0) : NAME(numbers)(row + 4 * j, 1));
        for (; j < d; j++)
            to[j] = dense_number(given, row, j);
        for (; j < width; j++)
            to[j] = 0.0;
    }
}

/* Adds the products of 4 columns, from `left` on, with 8 `count` columns, from `right` on, over n rows. */
static INLINE TARGET void NAME(tile)(const float *rows, ptrdiff_t width, int n, ptrdiff_t left, ptrdiff_t right, const int count,
                                     double *out)
{
    eight sums[4][3];
    for (int i = 0; i < 4; i++)
        for (int v = 0; v < count; v++)
            sums[i][v] = (eight){0.0f};
    for (int r = 0; r < n; r++) {
        const float *row = rows + r * width;
        eight x[3];
        for (int v = 0; v < count; v++)
            x[v] = *(const loose_eight *)(row + right + 8 * v);
        for (int i = 0; i < 4; i++)
            for (int v = 0; v < count; v++)
                sums[i][v] += row[left + i] * x[v];
    }
    for (int i = 0; i < 4; i++)
        for (int v = 0; v < count; v++) {
            double *at = out + (left + i) * width + right + 8 * v;
            floats halves[2];
            memcpy(halves, &sums[i][v], sizeof halves);
            STORE(at, LOAD(at) + CONVERT(halves[0]));
            STORE(at + 4, LOAD(at + 4) + CONVERT(halves[1]));
        }
}

/* `out` (width, width) holds the blocks on and above the diagonal alone. Products are made in single precision, as a metric for
   steps needs no more; the sums over the rows of one chunk too. */
static TARGET void NAME(bent_pass)(const struct job *job, const struct dense *given, int constant, double *out)
{
    const int with_squares = given->radius < HUGE_VAL;
    const ptrdiff_t d = given->d, size = d + constant, width = (size + 7) & ~(ptrdiff_t)7;
    int far = 0;
    double rows[BENT_ROWS * MOST_BENT], weights[MOST_BENT], scores[CHUNK], squares[CHUNK], bends[CHUNK], sums[MOST_BENT];
    float bent[BENT_ROWS * MOST_BENT];
    for (ptrdiff_t j = 0; j < width; j++) {
        weights[j] = j < d ? job->weights[j] : 0.0;
        sums[j] = 0.0;
    }
    const vec none = SPLAT(0.0);
    for (ptrdiff_t first = 0; first < job->n; first += BENT_ROWS) {
        const int n = job->n - first < BENT_ROWS ? (int)(job->n - first) : BENT_ROWS;
        const ptrdiff_t stride = width * (ptrdiff_t)sizeof(double);
        NAME(copied)(given, first, n, width, rows);
        NAME(row_scores)((const char *)rows, stride, n, width, weights, none, none, 0, with_squares, scores, squares);
        const double *factors = with_squares ? NAME(shorten)(given->radius, given->farthest, n, squares, &far) : NULL;
        job->out[d] += NAME(weigh)(job, first, n, scores, factors, NULL, bends);
        NAME(row_sums)((const char *)rows, stride, n, width, scores, 0, sums);
        for (int r = 0; r < n; r++) {
            const double root = sqrt(bends[r]), by = factors ? root * factors[r] : root;
            for (ptrdiff_t j = 0; j < width; j++)
                bent[r * width + j] = (float)(rows[r * width + j] * by);
            if (constant)
                bent[r * width + d] = (float)root;
        }
        for (ptrdiff_t left = 0; left < size; left += 4) {
            ptrdiff_t right = left & ~(ptrdiff_t)7;
            for (; right + 24 <= width; right += 24)
                NAME(tile)(bent, width, n, left, right, 3, out);
            if (width - right == 16)
                NAME(tile)(bent, width, n, left, right, 2, out);
            else if (width - right == 8)
                NAME(tile)(bent, width, n, left, right, 1, out);
        }
    }
    for (ptrdiff_t j = 0; j < d; j++)
        job->out[j] += sums[j];
}

/* ---- Coded rows: columns of numbers and of levels, which are never expanded ---- */

/* Numbers of one column on their own scale, as doubles. */
static INLINE TARGET void NAME(read_numbers)(const struct column *column, ptrdiff_t first, int n, double *out)
{
    if (column->size == 4) {
        const float *numbers = (const float *)column->codes + first;
        for (int r = 0; r < n; r++)
            out[r] = numbers[r];
    } else
        memcpy(out, (const double *)column->codes + first, n * sizeof(double));
}

/* A straight line: entries in [-1, 1], and 0 for a number that is missing or infinite. */
static INLINE TARGET void NAME(lines)(const struct column *column, ptrdiff_t first, int n, const int single, double *entries, double *scores)
{
    const double low = column->low, high = column->high, weight = column->table[0], stretch = column->step;
    const float *floats_of = (const float *)column->codes + (single ? first : 0);
    const double *doubles_of = (const double *)column->codes + (single ? 0 : first);
    int all = 1;
    /* One loop, which compilers turn into vectors. */
    for (int r = 0; r < n; r++) {
        const double given = single ? (double)floats_of[r] : doubles_of[r];
        /* The difference of a number that is not finite with itself is not 0. */
        const int finite = given - given == 0.0;
        double x = given < low ? low : given;
        x = x > high ? high : x;
        entries[r] = finite ? (x - low) * stretch - 1.0 : 0.0;
        scores[r] += weight * entries[r];
        all &= finite;
    }
    if (!all)
        for (int r = 0; r < n; r++) {
            const double given = single ? (double)floats_of[r] : doubles_of[r];
            if (!(given - given == 0.0))
                scores[r] += column->table[1];
        }
}

static TARGET void NAME(line_scores)(const struct column *column, ptrdiff_t first, int n, double *entries, double *scores)
{
    if (column->size == 4)
        NAME(lines)(column, first, n, 1, entries, scores);
    else
        NAME(lines)(column, first, n, 0, entries, scores);
}

static TARGET void NAME(line_sums)(const struct column *column, ptrdiff_t first, int n, const double *entries, const double *slopes)
{
    vec sums[2] = {SPLAT(0.0), SPLAT(0.0)};
    double rest = 0.0;
    int r = 0;
    for (; r + 8 <= n; r += 8) {
        sums[0] += LOAD(slopes + r) * LOAD(entries + r);
        sums[1] += LOAD(slopes + r + 4) * LOAD(entries + r + 4);
    }
    for (; r < n; r++)
        rest += slopes[r] * entries[r];
    vec sum = sums[0] + sums[1];
    column->sums[0] += ((sum[0] + sum[1]) + (sum[2] + sum[3])) + rest;
    if (column->indicator >= 0)
        for (r = 0; r < n; r++) {
            double x = column->size == 4 ? (double)((const float *)column->codes)[first + r]
                                         : ((const double *)column->codes)[first + r];
            if (!(x - x == 0.0))
                column->sums[1] += slopes[r];
        }
}

/* A curve: which two neighbouring hats, and the share of the second. The table has value and rise for each first hat. */
static TARGET void NAME(curve_scores)(const struct column *column, ptrdiff_t first, int n, double *shares, int32_t *hats, double *scores)
{
    const double low = column->low, step = column->step, most = column->high, middle = column->middle;
    const double *table = column->table;
    const int32_t absent = (int32_t)column->bins - 1;
    NAME(read_numbers)(column, first, n, shares);
    int known = 1;
    for (int r = 0; r < n; r++) {
        double position = (shares[r] - low) * step;
        known &= position == position;
        position = position > 0.0 ? position : 0.0;
        shares[r] = position < most ? position : most;
    }
    /* This loop stands alone, so that no compiler fuses the product above with this subtraction: the share of the second hat
       would then differ from the encoder's. */
    for (int r = 0; r < n; r++) {
        hats[r] = (int32_t)shares[r];
        shares[r] -= hats[r];
    }
    if (!known) {
        for (int r = 0; r < n; r++) {
            double x = column->size == 4 ? (double)((const float *)column->codes)[first + r]
                                         : ((const double *)column->codes)[first + r];
            if (x != x) {
                /* The last bin of the table stands for numbers that are missing. */
                hats[r] = column->indicator >= 0 ? absent : (int32_t)middle;
                shares[r] = column->indicator >= 0 ? 0.0 : middle - (int32_t)middle;
            }
        }
    }
    for (int r = 0; r < n; r++)
        scores[r] += table[2 * hats[r]] + shares[r] * table[2 * hats[r] + 1];
}

static TARGET void NAME(curve_sums)(const struct column *column, int n, const double *shares, const int32_t *hats, const double *slopes)
{
    /* Neighbouring rows have sums of their own, so that an addition need not wait for the one before. */
    double *sums = column->sums;
    const ptrdiff_t apart = 2 * column->bins, mask = column->copies - 1;
    for (int r = 0; r < n; r++) {
        double *at = sums + (r & mask) * apart + 2 * hats[r];
        /* Slopes times the heights of both hats, so that their sums need not be subtracted. */
        const double second = slopes[r] * shares[r];
        pair term = {slopes[r] - second, second}, sum;
        memcpy(&sum, at, sizeof sum);
        sum += term;
        memcpy(at, &sum, sizeof sum);
    }
}

/* A category: the bin of each row, 0 for no level. A level that does not exist counts as none. Returns whether each row has one. */
static TARGET int NAME(level_scores)(const struct column *column, ptrdiff_t first, int n, int32_t *bins, double *scores)
{
    const uint32_t last = (uint32_t)column->bins - 1;
    switch (column->size) {
    case 1: for (int r = 0; r < n; r++) bins[r] = ((const int8_t *)column->codes)[first + r] + 1; break;
    case 2: for (int r = 0; r < n; r++) bins[r] = ((const int16_t *)column->codes)[first + r] + 1; break;
    default: for (int r = 0; r < n; r++) bins[r] = (int32_t)((uint32_t)((const int32_t *)column->codes)[first + r] + 1u); break;
    }
    int whole = 1;
    for (int r = 0; r < n; r++) {
        bins[r] = (uint32_t)bins[r] <= last ? bins[r] : 0;
        whole &= bins[r] != 0;
    }
    for (int r = 0; r < n; r++)
        scores[r] += column->table[bins[r]];
    return whole;
}

static TARGET void NAME(level_sums)(const struct column *column, int n, const int32_t *bins, const double *slopes)
{
    const ptrdiff_t apart = column->bins, mask = column->copies - 1;
    for (int r = 0; r < n; r++)
        column->sums[(r & mask) * apart + bins[r]] += slopes[r];
}

/* The entries of n rows that are not in every row, and the columns they are in: d for an entry of a row that has none. */
static TARGET void NAME(spread_entries)(const struct job *job, const struct column *columns, ptrdiff_t n_columns, ptrdiff_t first, int n,
                                        const double *numbers, const int32_t *places, const struct squares *squares)
{
    const ptrdiff_t each = squares->n_spread;
    ptrdiff_t k = 0;
    for (ptrdiff_t c = 0; c < n_columns; c++) {
        const struct column *column = columns + c;
        const double *own = numbers + c * CHUNK;
        const int32_t *bins = places + c * CHUNK, none = (int32_t)job->d;
        double *entries = squares->entries + k;
        int32_t *at = squares->at + k;
        if (column->kind == LEVELS)
            for (int r = 0; r < n; r++) {
                entries[r * each] = column->values ? column->values[bins[r]] : 1.0;
                at[r * each] = column->values ? (int32_t)column->start : bins[r] ? (int32_t)column->start + bins[r] - 1 : none;
            }
        else if (column->kind == CURVE)
            for (int r = 0; r < n; r++) {
                const int absent = bins[r] == column->bins - 1;
                const double second = column->values[0] * own[r];
                entries[r * each] = column->values[0] - second;
                entries[r * each + 1] = second;
                at[r * each] = absent ? none : (int32_t)column->start + bins[r];
                at[r * each + 1] = absent ? none : (int32_t)column->start + bins[r] + 1;
            }
        k += column->kind == LEVELS ? 1 : column->kind == CURVE ? 2 : 0;
        if (column->indicator >= 0) {
            for (int r = 0; r < n; r++) {
                int absent;
                if (column->kind == CURVE)
                    absent = bins[r] == column->bins - 1;
                else {
                    double x = column->size == 4 ? (double)((const float *)column->codes)[first + r]
                                                 : ((const double *)column->codes)[first + r];
                    absent = !(x - x == 0.0);
                }
                squares->entries[r * each + k] = 1.0;
                squares->at[r * each + k] = absent ? (int32_t)column->indicator : none;
            }
            k++;
        }
    }
}

/* Adds curvature times products of two entries, over n rows. Where both are in every row they are made in single precision, as a
   metric for steps needs no more. */
static TARGET void NAME(add_squares)(const struct job *job, const struct column *columns, ptrdiff_t n_columns, ptrdiff_t first, int n,
                                     const double *numbers, const int32_t *places, const double *bends, const struct squares *squares)
{
    const ptrdiff_t width = squares->width, each = squares->n_spread, beside = job->d + 1;
    double *rows = squares->rows;
    ptrdiff_t line = 0;
    for (ptrdiff_t c = 0; c < n_columns; c++)
        if (columns[c].kind == LINE) {
            for (int r = 0; r < n; r++)
                rows[r * width + line] = numbers[c * CHUNK + r];
            line++;
        }
    if (squares->constant)
        for (int r = 0; r < n; r++)
            rows[r * width + line] = 1.0;
    line += squares->constant;
    for (int r = 0; r < n; r++) {
        const double root = sqrt(bends[r]);
        for (ptrdiff_t j = 0; j < width; j++)
            squares->bent[r * width + j] = (float)(rows[r * width + j] * root);
    }
    for (ptrdiff_t left = 0; left < line; left += 4)
        for (ptrdiff_t right = left & ~(ptrdiff_t)7; right < width; right += 8)
            NAME(tile)(squares->bent, width, n, left, right, 1, squares->of_rows);
    NAME(spread_entries)(job, columns, n_columns, first, n, numbers, places, squares);
    for (int r = 0; r < n; r++) {
        const double *entries = squares->entries + r * each, *row = rows + r * width;
        const int32_t *at = squares->at + r * each;
        for (ptrdiff_t k = 0; k < each; k++) {
            const double term = bends[r] * entries[k];
            const vec terms = SPLAT(term);
            double *across = squares->across + at[k] * width, *own = squares->of_spread + at[k] * beside;
            for (ptrdiff_t j = 0; j < width; j += 4)
                STORE(across + j, LOAD(across + j) + terms * LOAD(row + j));
            for (ptrdiff_t i = k; i < each; i++)
                own[at[i]] += term * entries[i];
        }
    }
}

/* Returns whether every row has a level in each linked category. `squares` is NULL for sums on which a certificate rests. */
static TARGET int NAME(coded_pass)(const struct job *job, const struct column *columns, ptrdiff_t n_columns, double *numbers, int32_t *places,
                                   const struct squares *squares)
{
    double scores[CHUNK], bends[CHUNK];
    int whole = 1;
    for (ptrdiff_t first = 0; first < job->n; first += CHUNK) {
        const int n = job->n - first < CHUNK ? (int)(job->n - first) : CHUNK;
        for (int r = 0; r < CHUNK; r++)
            scores[r] = 0.0;
        const ptrdiff_t left = job->n - first - n, ahead = left < CHUNK ? left : CHUNK;
        for (ptrdiff_t c = 0; c < n_columns; c++) {
            const struct column *column = columns + c;
            /* The next codes are fetched early: by itself the processor does not do so where many columns are read in turn. */
            const char *next = (const char *)column->codes + (first + n) * column->size;
            for (ptrdiff_t byte = 0; byte < ahead * column->size; byte += CACHE_LINE)
                __builtin_prefetch(next + byte);
            switch (column->kind) {
            case LINE: NAME(line_scores)(column, first, n, numbers + c * CHUNK, scores); break;
            case CURVE: NAME(curve_scores)(column, first, n, numbers + c * CHUNK, places + c * CHUNK, scores); break;
            case LEVELS: whole &= NAME(level_scores)(column, first, n, places + c * CHUNK, scores) || !column->linked; break;
            }
        }
        job->out[job->d] += NAME(weigh)(job, first, n, scores, NULL, NULL, squares ? bends : NULL);
        if (squares)
            NAME(add_squares)(job, columns, n_columns, first, n, numbers, places, bends, squares);
        for (ptrdiff_t c = 0; c < n_columns; c++) {
            const struct column *column = columns + c;
            switch (column->kind) {
            case LINE: NAME(line_sums)(column, first, n, numbers + c * CHUNK, scores); break;
            case CURVE: NAME(curve_sums)(column, n, numbers + c * CHUNK, places + c * CHUNK, scores); break;
            case LEVELS: NAME(level_sums)(column, n, places + c * CHUNK, scores); break;
            }
        }
    }
    return whole;
}

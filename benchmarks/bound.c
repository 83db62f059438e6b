/* What this machine can do: the bounds that the benchmark rows are divided by.
 *
 * kf:      a Kalman filter with 4 states and 2 measurements over many trials, sixteen trials to a vector, two threads.
 * traffic: one read of an array, then one read and write of it, as a forecast and then an update of a dense covariance do.
 */
#include <math.h>
#include <pthread.h>
#include <string.h>

#define W 16 /* trials side by side: one AVX-512 vector, or two AVX2 */
typedef float lane __attribute__((vector_size(4 * W)));

typedef struct {
    int n, steps, full, first, last;
    const float *F, *Q, *H, *R, *m0, *P0, *y;
    float *means, *covs, *loglik;
} Job;

/* m = F m,  P = F P F' + Q, every trial with its own P. */
static inline void move(const Job *j, lane m[4], lane P[4][4]) {
    lane a[4], T[4][4];
    for (int r = 0; r < 4; r++) {
        a[r] = j->F[4 * r] * m[0];
        for (int k = 1; k < 4; k++) a[r] += j->F[4 * r + k] * m[k];
        for (int c = 0; c < 4; c++) {
            T[r][c] = j->F[4 * r] * P[0][c];
            for (int k = 1; k < 4; k++) T[r][c] += j->F[4 * r + k] * P[k][c];
        }
    }
    memcpy(m, a, sizeof a);
    for (int r = 0; r < 4; r++)
        for (int c = 0; c <= r; c++) {
            P[r][c] = T[r][0] * j->F[4 * c] + j->Q[4 * r + c];
            for (int k = 1; k < 4; k++) P[r][c] += T[r][k] * j->F[4 * c + k];
            P[c][r] = P[r][c];
        }
}

/* Condition on one pair of measurements; the determinant of S and the squared distance serve the likelihood. */
static inline void condition(const Job *j, lane m[4], lane P[4][4], const lane y[2], lane *det, lane *dist) {
    lane U[2][4], e[2], S[2][2], V[2][4];
    for (int o = 0; o < 2; o++) {
        e[o] = y[o] - j->H[4 * o] * m[0];
        for (int k = 1; k < 4; k++) e[o] -= j->H[4 * o + k] * m[k];
        for (int c = 0; c < 4; c++) {
            U[o][c] = j->H[4 * o] * P[0][c];
            for (int k = 1; k < 4; k++) U[o][c] += j->H[4 * o + k] * P[k][c];
        }
    }
    for (int o = 0; o < 2; o++)
        for (int q = 0; q < 2; q++) {
            S[o][q] = U[o][0] * j->H[4 * q] + j->R[2 * o + q];
            for (int k = 1; k < 4; k++) S[o][q] += U[o][k] * j->H[4 * q + k];
        }
    *det = S[0][0] * S[1][1] - S[0][1] * S[1][0];
    lane inv = 1.0f / *det;
    for (int c = 0; c < 4; c++) {
        V[0][c] = (S[1][1] * U[0][c] - S[0][1] * U[1][c]) * inv;
        V[1][c] = (S[0][0] * U[1][c] - S[1][0] * U[0][c]) * inv;
        m[c] += V[0][c] * e[0] + V[1][c] * e[1];
    }
    *dist = (S[1][1] * e[0] * e[0] - (S[0][1] + S[1][0]) * e[0] * e[1] + S[0][0] * e[1] * e[1]) * inv;
    for (int r = 0; r < 4; r++)
        for (int c = 0; c <= r; c++) {
            P[r][c] -= V[0][r] * U[0][c] + V[1][r] * U[1][c];
            P[c][r] = P[r][c];
        }
}

static inline void store(float *out, const lane *value, int size, const Job *j, int base, int t) {
    int live = j->n - base < W ? j->n - base : W;
    for (int i = 0; i < live; i++)
        for (int k = 0; k < size; k++) out[((long)(base + i) * j->steps + t) * size + k] = value[k][i];
}

static inline void block(const Job *j, int base, int full) {
    lane m[4], P[4][4], y[2], det, dist, total = {0};
    for (int r = 0; r < 4; r++) {
        m[r] = j->m0[r] + (lane){0};
        for (int c = 0; c < 4; c++) P[r][c] = j->P0[4 * r + c] + (lane){0};
    }
    for (int t = 0; t < j->steps; t++) {
        for (int i = 0; i < W; i++) {
            long trial = base + i < j->n ? base + i : j->n - 1;
            y[0][i] = j->y[(trial * j->steps + t) * 2];
            y[1][i] = j->y[(trial * j->steps + t) * 2 + 1];
        }
        move(j, m, P);
        condition(j, m, P, y, &det, &dist);
        store(j->means, m, 4, j, base, t);
        if (!full) continue;
        store(j->covs, &P[0][0], 16, j, base, t);
        for (int i = 0; i < W; i++) total[i] += -0.5f * (dist[i] + logf(det[i])) - 1.8378770664f;
    }
    if (full)
        for (int i = 0; i < W && base + i < j->n; i++) j->loglik[base + i] = total[i];
}

static void *work(void *arg) {
    const Job *j = arg;
    for (int b = j->first; b < j->last; b++) {
        if (j->full) block(j, b * W, 1);
        else block(j, b * W, 0);
    }
    return NULL;
}

/* covs and loglik are written when full is 1 and may be null when it is 0. */
void kf(int n, int steps, int full, const float *F, const float *Q, const float *H, const float *R, const float *m0,
        const float *P0, const float *y, float *means, float *covs, float *loglik) {
    int blocks = (n + W - 1) / W;
    Job a = {n, steps, full, 0, blocks / 2, F, Q, H, R, m0, P0, y, means, covs, loglik}, b = a;
    b.first = blocks / 2;
    b.last = blocks;
    pthread_t other;
    pthread_create(&other, NULL, work, &b);
    work(&a);
    pthread_join(other, NULL);
}

typedef struct {
    float *P;
    long size;
    int steps;
    float seen;
} Slice;

static void *stream(void *arg) {
    Slice *s = arg;
    float *P = s->P;
    for (int t = 0; t < s->steps; t++) {
        float sum = 0.0f;
        for (long i = 0; i < s->size; i++) sum += P[i];
        float shift = 1e-9f * sum;
        for (long i = 0; i < s->size; i++) P[i] = 0.999f * P[i] + shift;
        s->seen += sum;
    }
    return NULL;
}

/* The sum is returned so that no compiler may drop the read. */
float traffic(float *P, long size, int steps) {
    Slice a = {P, size / 2, steps, 0.0f}, b = {P + size / 2, size - size / 2, steps, 0.0f};
    pthread_t other;
    pthread_create(&other, NULL, stream, &b);
    stream(&a);
    pthread_join(other, NULL);
    return a.seen + b.seen;
}

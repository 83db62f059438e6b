// Passes over a square matrix (D, D), row-major float32, for XLA on a CPU: what `dense` means, by rows. A core has the same
// rows in each pass, so that none waits for what another has written; XLA's own products divide now rows, now columns.

#include "team.h"
#include "vectors.h"

#define NEAR 4  // rows of which a sum is made at once, or sums that are made side by side

typedef int32_t mask __attribute__((vector_size(4 * LANES)));

// Lanes before the n-th; none, or all, beyond either end.
static inline mask before(num n) {
  mask at;
  for (int i = 0; i < LANES; i++) at[i] = i;
  return at < (int32_t)n - (mask){0};
}
static inline vec only(vec v, mask where) { return (vec)((mask)v & where); }
static inline vec chosen(vec yes, vec no, mask where) { return (vec)(((mask)yes & where) | ((mask)no & ~where)); }

// Numbers up to the first vector that is a line of the cache: those and the last few are done by halves of a vector, so that
// of the width, which is at least LANES, no number is left to a loop.
static inline num to_line(const float* x) { return (-(uintptr_t)x / sizeof *x) % LANES; }

// ---- c (n) += B (n, width) a, of one row a

static inline __attribute__((always_inline)) void dot_rows(const float* a, const float* B, num sb, num width, float* c, const int n) {
  const int parts = n == 1 ? NEAR : 1;  // the sums of a single product would wait for each other
  num w = to_line(a), last = width - LANES;
  vec sum[NEAR][NEAR] = {{{0}}};
  for (int j = 0; j < n; j++) sum[j][0] = only(load(a) * load(B + j * sb), before(w));
  for (; w + parts * LANES <= width; w += parts * LANES)
    for (int i = 0; i < parts; i++) {
      vec v = load(a + w + i * LANES);
      for (int j = 0; j < n; j++) sum[j][i] += v * load(B + j * sb + w + i * LANES);
    }
  for (; w + LANES <= width; w += LANES)
    for (int j = 0; j < n; j++) sum[j][0] += load(a + w) * load(B + j * sb + w);
  for (int j = 0; j < n; j++) {
    vec all_of = sum[j][0] + only(load(a + last) * load(B + j * sb + last), ~before(LANES - (width - w)));
    for (int i = 1; i < parts; i++) all_of += sum[j][i];
    c[j] += total(all_of);
  }
}

static void dotted(const float* a, const float* B, num sb, num n, num width, float* c) {
  num j = 0;
  for (; j + NEAR <= n; j += NEAR) dot_rows(a, B + j * sb, sb, width, c + j, NEAR);
  for (; j + 2 <= n; j += 2) dot_rows(a, B + j * sb, sb, width, c + j, 2);
  for (; j < n; j++) dot_rows(a, B + j * sb, sb, width, c + j, 1);
}

// ---- x (width) += sign t (K) U (K, width), added in the order of K: what is symmetric stays so to the last bit

static inline __attribute__((always_inline)) vec more(vec x, const vec* t, const float* U, num su, const int K) {
  for (int k = 0; k < K; k++) x += t[k] * load(U + k * su);
  return x;
}

static inline __attribute__((always_inline)) void add_rows(float sign, const float* t, const float* U, num su, num width,
                                                           float* x, const int K) {
  vec times[NEAR];
  for (int k = 0; k < K; k++) times[k] = all(sign * t[k]);
  num w = to_line(x), last = width - LANES;
  vec old = load(x);
  store(x, chosen(more(old, times, U, su, K), old, before(w)));
  for (; w + LANES <= width; w += LANES) store(x + w, more(load(x + w), times, U + w, su, K));
  old = load(x + last);
  store(x + last, chosen(old, more(old, times, U + last, su, K), before(LANES - (width - w))));
}

static void added(float sign, const float* t, const float* U, num su, num K, num width, float* x) {
  num k = 0;
  for (; k + NEAR <= K; k += NEAR) add_rows(sign, t + k, U + k * su, su, width, x, NEAR);
  for (; k + 2 <= K; k += 2) add_rows(sign, t + k, U + k * su, su, width, x, 2);
  for (; k < K; k++) add_rows(sign, t + k, U + k * su, su, width, x, 1);
}

// ---- rows

static void rows_of(const Team* t, int at, num* from, num* to) {
  *from = t->D * at / PARTS;
  *to = t->D * (at + 1) / PARTS;
}

// A row of the result, with what the operand holds there if it is not the same memory.
static float* written(const Team* t, num row) {
  const float* old = (const float*)given(t->call, 0) + row * t->D;
  float* new = made(t->call, 0) + row * t->D;
  if (old != new) memcpy(new, old, t->D * sizeof *new);
  return new;
}

// Rows that are LANES apart lie alike in the lines of the cache, so that several are worked through side by side, and what all
// of them read is read once. Not rows of whole pages: those would be at the same place of each cache.
static int alike(num D) { return D % 1024 != 0; }

static XLA_FFI_Error* by_rows(XLA_FFI_CallFrame* call, void (*part)(Team*, int), num size, float* into) {
  num D = side(call, 0, 0);
  return all_parts(call, part, D, D * D, size, into);
}

// ---- applied: A (D, D), J (O, D) -> A J^T (D, O)

static void applied_part(Team* t, int at) {
  num D = t->D, O = side(t->call, 1, 0), from, to;
  const float *A = given(t->call, 0), *J = given(t->call, 1);
  float* out = made(t->call, 0);
  rows_of(t, at, &from, &to);
  memset(out + from * O, 0, (to - from) * O * sizeof *out);
  for (num i = from; i < to; i++) dotted(A + i * D, J, D, O, D, out + i * O);
}

XLA_FFI_Error* filtax_applied(XLA_FFI_CallFrame* call) { return asked(call) ? NULL : by_rows(call, applied_part, 0, NULL); }

// ---- downdated: A (D, D), U (D, O), U^T (O, D), d (D) -> A - U U^T, with d on its diagonal

static void downdated_part(Team* t, int at) {
  num D = t->D, O = side(t->call, 1, 1), from, to;
  const float *columns = given(t->call, 1), *rows = given(t->call, 2), *diagonal = given(t->call, 3);
  rows_of(t, at, &from, &to);
  for (num i = from; i < to; i++) {
    float* row = written(t, i);
    added(-1, columns + i * O, rows, D, O, D, row);
    row[i] = diagonal[i];
  }
}

XLA_FFI_Error* filtax_downdated(XLA_FFI_CallFrame* call) {
  return asked(call) ? NULL : by_rows(call, downdated_part, 0, NULL);
}

// ---- caught_up: A (D, D) with zeros on its diagonal, u (D), J (1, D) -> A - u u^T off the diagonal, and that times J^T (D, 1)

// x -= t u and c = x a, of n rows x that are LANES apart, and so lie alike in the lines of the cache: u and a, which do not lie
// as the rows do, are read once for all of them.
static inline __attribute__((always_inline)) void swept(const float* t, const float* u, const float* a, num D, float* x,
                                                        float* c, const int n) {
  const int parts = n == 1 ? NEAR : 1;
  num w = to_line(x), last = D - LANES, apart = LANES * D;
  vec times[NEAR], sum[NEAR][NEAR] = {{{0}}};
  for (int j = 0; j < n; j++) {
    times[j] = all(-t[j * LANES]);
    vec old = load(x + j * apart), new = more(old, times + j, u, 0, 1);
    store(x + j * apart, chosen(new, old, before(w)));
    sum[j][0] = only(new * load(a), before(w));
  }
  for (; w + parts * LANES <= D; w += parts * LANES)
    for (int i = 0; i < parts; i++) {
      num at = w + i * LANES;
      vec v = load(u + at), by = load(a + at);
      for (int j = 0; j < n; j++) {
        vec new = load(x + j * apart + at) + times[j] * v;
        store(x + j * apart + at, new);
        sum[j][i] += new * by;
      }
    }
  for (; w + LANES <= D; w += LANES)
    for (int j = 0; j < n; j++) {
      vec new = more(load(x + j * apart + w), times + j, u + w, 0, 1);
      store(x + j * apart + w, new);
      sum[j][0] += new * load(a + w);
    }
  mask done = before(LANES - (D - w));
  for (int j = 0; j < n; j++) {
    float* end = x + j * apart + last;
    vec old = load(end), new = more(old, times + j, u + last, 0, 1);
    store(end, chosen(old, new, done));
    vec all_of = sum[j][0] + only(new * load(a + last), ~done);
    for (int i = 1; i < parts; i++) all_of += sum[j][i];
    c[j * LANES] = total(all_of);
  }
}

static void caught_up_part(Team* t, int at) {
  num D = t->D, from, to;
  const float *u = given(t->call, 1), *J = given(t->call, 2);
  float *out = made(t->call, 1), *A = made(t->call, 0);
  rows_of(t, at, &from, &to);
  for (num i = from; i < to; i++) written(t, i);
  for (num first = from; first < least(to, from + LANES); first++) {
    num i = first;
    for (; alike(D) && i + 3 * LANES < to; i += NEAR * LANES) swept(u + i, u, J, D, A + i * D, out + i, NEAR);
    for (; alike(D) && i + LANES < to; i += 2 * LANES) swept(u + i, u, J, D, A + i * D, out + i, 2);
    for (; i < to; i += LANES) swept(u + i, u, J, D, A + i * D, out + i, 1);
  }
  for (num i = from; i < to; i++) {
    out[i] -= A[i * D + i] * J[i];
    A[i * D + i] = 0;
  }
}

XLA_FFI_Error* filtax_caught_up(XLA_FFI_CallFrame* call) {
  return asked(call) ? NULL : by_rows(call, caught_up_part, 0, NULL);
}

// ---- reached: A (D, D), J (O, D) -> J A (O, D)

// s (D) += t A, of n rows of A that lie alike, with a number t for each.
static inline __attribute__((always_inline)) void gathered(const float* t, const float* A, num D, float* s, const int n) {
  num w = to_line(A), last = D - LANES, apart = LANES * D;
  vec times[NEAR];
  for (int j = 0; j < n; j++) times[j] = all(t[j * LANES]);
  vec old = load(s);
  store(s, chosen(more(old, times, A, apart, n), old, before(w)));
  for (; w + LANES <= D; w += LANES) store(s + w, more(load(s + w), times, A + w, apart, n));
  old = load(s + last);
  store(s + last, chosen(old, more(old, times, A + last, apart, n), before(LANES - (D - w))));
}

static void reached_part(Team* t, int at) {
  num D = t->D, O = side(t->call, 1, 0), from, to;
  const float *A = given(t->call, 0), *J = given(t->call, 1);
  rows_of(t, at, &from, &to);
  for (num first = from; first < least(to, from + LANES); first++) {
    num i = first;
    for (; alike(D) && i + 3 * LANES < to; i += NEAR * LANES)
      for (num o = 0; o < O; o++) gathered(J + o * D + i, A + i * D, D, t->sums + at * t->size + o * D, NEAR);
    for (; i < to; i += LANES)
      for (num o = 0; o < O; o++) gathered(J + o * D + i, A + i * D, D, t->sums + at * t->size + o * D, 1);
  }
}

XLA_FFI_Error* filtax_reached(XLA_FFI_CallFrame* call) {
  return asked(call) ? NULL : by_rows(call, reached_part, side(call, 1, 0) * side(call, 1, 1), made(call, 0));
}

// ---- narrowed: A (D, D), V (O, D), C (O, D) -> A - (A V^T) C, and A V^T (D, O)

// c = x v, then x -= c u, of n rows x that lie alike.
static inline __attribute__((always_inline)) void lowered(const float* v, const float* u, num D, float* x, float* c, const int n) {
  num begin = to_line(x), last = D - LANES, apart = LANES * D, w = begin;
  vec sum[NEAR] = {{0}};
  for (int j = 0; j < n; j++) sum[j] = only(load(x + j * apart) * load(v), before(w));
  for (; w + LANES <= D; w += LANES) {
    vec by = load(v + w);
    for (int j = 0; j < n; j++) sum[j] += load(x + j * apart + w) * by;
  }
  mask done = before(LANES - (D - w));
  for (int j = 0; j < n; j++) {
    float* row = x + j * apart;
    c[j * LANES] = total(sum[j] + only(load(row + last) * load(v + last), ~done));
    sum[j] = all(-c[j * LANES]);
    vec old = load(row);
    store(row, chosen(old + sum[j] * load(u), old, before(begin)));
  }
  for (w = begin; w + LANES <= D; w += LANES) {
    vec by = load(u + w);
    for (int j = 0; j < n; j++) store(x + j * apart + w, load(x + j * apart + w) + sum[j] * by);
  }
  for (int j = 0; j < n; j++) {
    float* end = x + j * apart + last;
    vec old = load(end);
    store(end, chosen(old, old + sum[j] * load(u + last), done));
  }
}

static void narrowed_part(Team* t, int at) {
  num D = t->D, O = side(t->call, 1, 0), from, to;
  const float *V = given(t->call, 1), *C = given(t->call, 2);
  float *out = made(t->call, 1), *A = made(t->call, 0);
  rows_of(t, at, &from, &to);
  memset(out + from * O, 0, (to - from) * O * sizeof *out);
  for (num i = from; i < to; i++) written(t, i);
  for (num i = from; O > 1 && i < to; i++) {
    dotted(A + i * D, V, D, O, D, out + i * O);
    added(-1, out + i * O, C, D, O, D, A + i * D);
  }
  for (num first = from; O == 1 && first < least(to, from + LANES); first++) {
    num i = first;
    for (; alike(D) && i + 3 * LANES < to; i += NEAR * LANES) lowered(V, C, D, A + i * D, out + i, NEAR);
    for (; i < to; i += LANES) lowered(V, C, D, A + i * D, out + i, 1);
  }
}

XLA_FFI_Error* filtax_narrowed(XLA_FFI_CallFrame* call) {
  return asked(call) ? NULL : by_rows(call, narrowed_part, 0, NULL);
}

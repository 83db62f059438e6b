// Passes over the basis U (K, D) of LoFi, row-major float32, as handlers of XLA's foreign function interface on a CPU. All
// cores work, and each block of parameters is read once. Two small functions do the work, on tiles that stay in
// registers: `dots`, inner products of rows over parameters, and `combine`, linear combinations of rows.

#include "parallel_for.h"
#include "simd.h"

#define ACROSS (LANES == 16 ? 6 : LANES == 8 ? 3 : 4)
#define DOWN 4                 // rows, or vectors, of a tile; ACROSS of the others
#define PANEL (DOWN * LANES)   // parameters of a tile of `combine`
#define BLOCK 512             // parameters that stay in the cache while they are worked on: a multiple of PANEL
#define ROW (BLOCK + LANES)    // their length in a scratch row: rows a power of two apart share a cache line

// ---- C (m, n) += A (m, width) B (n, width)^T; with `low` only where the row of A is not before that of B

static inline __attribute__((always_inline)) void dot_tile(const float* A, num sa, const float* B, num sb, num width,
                                                           float* C, num sc, const int m, const int n) {
  vec sum[DOWN][ACROSS] = {{{0}}};
  num w = 0;
  for (; w + LANES <= width; w += LANES) {
    vec b[ACROSS];
    for (int j = 0; j < n; j++) b[j] = load(B + j * sb + w);
    for (int i = 0; i < m; i++) {
      vec a = load(A + i * sa + w);
      for (int j = 0; j < n; j++) sum[i][j] += a * b[j];
    }
  }
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      float rest = 0;
      for (num t = w; t < width; t++) rest += A[i * sa + t] * B[j * sb + t];
      C[i * sc + j] += sum_lanes(sum[i][j]) + rest;
    }
}

static void dots(const float* A, num sa, num m, const float* B, num sb, num n, num width, float* C, num sc, int low) {
  for (num j = 0; j < n; j += ACROSS) {
    int across = min_of(ACROSS, n - j);
    for (num i = low ? j / DOWN * DOWN : 0; i < m; i += DOWN) {
      int down = min_of(DOWN, m - i);
      const float *a = A + i * sa, *b = B + j * sb;
      float* c = C + i * sc + j;
      if (down == DOWN && across == ACROSS) dot_tile(a, sa, b, sb, width, c, sc, DOWN, ACROSS);
      else if (down == DOWN && across == ACROSS - 1) dot_tile(a, sa, b, sb, width, c, sc, DOWN, ACROSS - 1);
      else if (down == DOWN && across == ACROSS - 2) dot_tile(a, sa, b, sb, width, c, sc, DOWN, ACROSS - 2);
      else
        for (int di = 0; di < down; di++)
          for (int dj = 0; dj < across; dj++) dot_tile(a + di * sa, sa, b + dj * sb, sb, width, c + di * sc + dj, sc, 1, 1);
    }
  }
}

// ---- X (n, width) += or = T (n, K) U (K, width), the rows of U `su` apart and those of X `sx`

static inline __attribute__((always_inline)) void combine_tile(const float* T, num st, const float* U, num su, num K, float* X,
                                                           num sx, int add, const int m, const int n) {
  vec sum[ACROSS][DOWN];
  for (int j = 0; j < n; j++)
    for (int i = 0; i < m; i++) sum[j][i] = add ? load(X + j * sx + i * LANES) : (vec){0};
  for (num k = 0; k < K; k++) {
    vec u[DOWN];
    for (int i = 0; i < m; i++) u[i] = load(U + k * su + i * LANES);
    for (int j = 0; j < n; j++) {
      vec t = broadcast(T[j * st + k]);
      for (int i = 0; i < m; i++) sum[j][i] += t * u[i];
    }
  }
  for (int j = 0; j < n; j++)
    for (int i = 0; i < m; i++) store(X + j * sx + i * LANES, sum[j][i]);
}

static void combine(const float* T, num st, num n, const float* U, num su, num K, num width, float* X, num sx, int add) {
  for (num w = 0; w < width; w += PANEL) {
    if (w + PANEL > width) {  // the last few parameters of all
      for (num j = 0; j < n; j++)
        for (num t = w; t < width; t++) {
          float sum = add ? X[j * sx + t] : 0;
          for (num k = 0; k < K; k++) sum += T[j * st + k] * U[k * su + t];
          X[j * sx + t] = sum;
        }
      return;
    }
    num j = 0;
    for (; j + ACROSS <= n; j += ACROSS) combine_tile(T + j * st, st, U + w, su, K, X + j * sx + w, sx, add, DOWN, ACROSS);
    for (; j + 2 <= n; j += 2) combine_tile(T + j * st, st, U + w, su, K, X + j * sx + w, sx, add, DOWN, 2);
    for (; j < n; j++) combine_tile(T + j * st, st, U + w, su, K, X + j * sx + w, sx, add, DOWN, 1);
  }
}

// Copy the rows of a block side by side: each is read in one piece, which the processor prefetches.
static void gather(const float* U, num su, num K, num width, float* into) {
  for (num k = 0; k < K; k++) memcpy(into + k * ROW, U + k * su, width * sizeof(float));
}

static num rows_used(const Loop* t, int i, num K) {
  num used = *(const int32_t*)input(t->call, i);
  return used < 0 ? 0 : min_of(used, K);
}
static void bounds(const Loop* t, int at, num* from, num* to) {
  num blocks = (t->D + BLOCK - 1) / BLOCK;
  *from = min_of(blocks * at / PARTS * BLOCK, t->D);
  *to = min_of(blocks * (at + 1) / PARTS * BLOCK, t->D);
}
static float* scratch(Loop* t, num rows) {
  float* room = aligned_alloc(64, ((rows * ROW * 4 + 63) / 64) * 64);
  if (!room) atomic_store(&t->out_of_memory, 1);
  return room;
}
static float inverse(float v) { return v > 0 ? 1 / v : 0; }
static float inverse_root(float v) { return v > 0 ? 1 / __builtin_sqrtf(v) : 0; }

// ---- project: U (K, D), J (O, D), used -> U J^T (K, O)

static void project_part(Loop* t, int at) {
  num K = dim(t->call, 0, 0), O = dim(t->call, 1, 0), D = t->D, used = rows_used(t, 2, K), from, to;
  const float *U = input(t->call, 0), *J = input(t->call, 1);
  bounds(t, at, &from, &to);
  for (num w = from; w < to; w += BLOCK)
    dots(U + w, D, used, J + w, D, O, min_of(BLOCK, to - w), t->sums + at * t->size, O, 0);
}

XLA_FFI_Error* filtax_project(XLA_FFI_CallFrame* call) {
  if (is_metadata_query(call)) return NULL;
  return parallel_for(call, project_part, dim(call, 0, 1), dim(call, 0, 0) * dim(call, 0, 1), dim(call, 0, 0) * dim(call, 1, 0), output(call, 0));
}

// ---- residual_gram: U (K, D), J (O, D), V (D) or (), -c (O, K), used -> P = J V - c U (O, D), and P V^-1 P^T (O, O)

static void residual_gram_part(Loop* t, int at) {
  num K = dim(t->call, 0, 0), O = dim(t->call, 1, 0), D = t->D, used = rows_used(t, 4, K), from, to;
  const float *U = input(t->call, 0), *J = input(t->call, 1), *V = input(t->call, 2), *less = input(t->call, 3);
  int one = is_scalar(t->call, 2);
  float *P = output(t->call, 0), *near = scratch(t, O + 1 + used), *root = near + O * ROW, *rows = root + ROW;
  if (!near) return;
  bounds(t, at, &from, &to);
  for (num w = from; w < to; w += BLOCK) {
    num width = min_of(BLOCK, to - w);
    for (num i = 0; i < width; i++) root[i] = inverse_root(V[one ? 0 : w + i]);
    for (num o = 0; o < O; o++)
      for (num i = 0; i < width; i++) near[o * ROW + i] = J[o * D + w + i] * V[one ? 0 : w + i];
    gather(U + w, D, used, width, rows);
    combine(less, K, O, rows, ROW, used, width, near, ROW, 1);
    for (num o = 0; o < O; o++)
      for (num i = 0; i < width; i++) {
        float p = near[o * ROW + i];
        P[o * D + w + i] = p;
        near[o * ROW + i] = p * root[i];
      }
    dots(near, ROW, O, near, ROW, O, width, t->sums + at * t->size, O, 0);
  }
  free(near);
}

XLA_FFI_Error* filtax_residual_gram(XLA_FFI_CallFrame* call) {
  if (is_metadata_query(call)) return NULL;
  num O = dim(call, 1, 0);
  return parallel_for(call, residual_gram_part, dim(call, 0, 1), dim(call, 0, 0) * dim(call, 0, 1), O * O, output(call, 1));
}

// ---- gram: U (K, D), w (D), used, skip -> U diag(w) U^T (K, K); the block of the first `skip` rows is left zero

static void gram_part(Loop* t, int at) {
  num K = dim(t->call, 0, 0), D = t->D, used = rows_used(t, 2, K), skip = rows_used(t, 3, used), from, to;
  const float *U = input(t->call, 0), *weight = input(t->call, 1);
  float *near = scratch(t, K + 1), *root = near + K * ROW, *C = t->sums + at * t->size;
  if (!near) return;
  bounds(t, at, &from, &to);
  for (num w = from; w < to; w += BLOCK) {
    num width = min_of(BLOCK, to - w);
    for (num i = 0; i < width; i++) root[i] = __builtin_sqrtf(weight[w + i]);
    for (num k = 0; k < used; k++)
      for (num i = 0; i < width; i++) near[k * ROW + i] = U[k * D + w + i] * root[i];
    float* later = near + skip * ROW;
    dots(later, ROW, used - skip, near, ROW, skip, width, C + skip * K, K, 0);
    dots(later, ROW, used - skip, later, ROW, used - skip, width, C + skip * K + skip, K, 1);
  }
  free(near);
}

XLA_FFI_Error* filtax_gram(XLA_FFI_CallFrame* call) {
  if (is_metadata_query(call)) return NULL;
  num K = dim(call, 0, 0);
  float* C = output(call, 0);
  XLA_FFI_Error* failed = parallel_for(call, gram_part, dim(call, 0, 1), K * dim(call, 0, 1), K * K, C);
  for (num i = 0; i < K; i++)
    for (num j = i + 1; j < K; j++) C[i * K + j] = C[j * K + i];
  return failed;
}

// ---- truncate_with_gram: V (D) or (), U (K, D), T (M, K), used -> V, U with its first rows in place, and their Gram matrix (rank, rank)
// With a V for each parameter the rows of T U beyond the rank are squared, and the Gram matrix is weighed by 1 / V.

static void truncate_part(Loop* t, int at) {
  num K = dim(t->call, 1, 0), M = dim(t->call, 2, 0), D = t->D, used = rows_used(t, 3, K), from, to;
  num rank = output_buffer(t->call, 2)->dims[0];
  const float *V = input(t->call, 0), *U = input(t->call, 1), *T = input(t->call, 2);
  int one = is_scalar(t->call, 0);
  float *free_ = output(t->call, 0), *rows = output(t->call, 1), *near = scratch(t, M + 2 + used), *scale = near + M * ROW, *root = scale + ROW;
  if (!near) return;
  bounds(t, at, &from, &to);
  for (num w = from; w < to; w += BLOCK) {
    num width = min_of(BLOCK, to - w);
    gather(U + w, D, used, width, root + ROW);
    combine(T, K, M, root + ROW, ROW, used, width, near, ROW, 0);
    if (one)
      for (num i = 0; i < width; i++) scale[i] = root[i] = 1;
    else {
      for (num i = 0; i < width; i++) scale[i] = 0;
      for (num m = rank; m < M; m++)
        for (num i = 0; i < width; i++) scale[i] += near[m * ROW + i] * near[m * ROW + i];
      for (num i = 0; i < width; i++) {
        float v = V[w + i];
        scale[i] = 1 / (1 + scale[i] * inverse(v));
        free_[w + i] = v * scale[i];
        root[i] = inverse_root(v * scale[i]);
      }
    }
    for (num m = 0; m < rank; m++)
      for (num i = 0; i < width; i++) {
        float kept = near[m * ROW + i] * scale[i];
        rows[m * D + w + i] = kept;
        near[m * ROW + i] = kept * root[i];
      }
    if (rows != U)
      for (num k = rank; k < K; k++) memcpy(rows + k * D + w, U + k * D + w, width * sizeof(float));
    dots(near, ROW, rank, near, ROW, rank, width, t->sums + at * t->size, rank, 1);
  }
  free(near);
}

XLA_FFI_Error* filtax_truncate_with_gram(XLA_FFI_CallFrame* call) {
  if (is_metadata_query(call)) return NULL;
  num rank = output_buffer(call, 2)->dims[0];
  float* C = output(call, 2);
  if (is_scalar(call, 0)) output(call, 0)[0] = *(const float*)input(call, 0);
  XLA_FFI_Error* failed = parallel_for(call, truncate_part, dim(call, 1, 1), dim(call, 1, 0) * dim(call, 1, 1), rank * rank, C);
  for (num i = 0; i < rank; i++)
    for (num j = i + 1; j < rank; j++) C[i * rank + j] = C[j * rank + i];
  return failed;
}

// Algebra of small matrices between the passes, in one thread. LAPACK's threads wait for each other by spinning, even for
// matrices of ten rows, on cores that the passes need.

#include "handler.h"

// ---- triangles: L (n, n) lower; Y (n, m), row-major, is solved for in place

static void solve_lower(const float* L, num n, float* Y, num m) {
  for (num i = 0; i < n; i++) {
    for (num k = 0; k < i; k++)
      for (num j = 0; j < m; j++) Y[i * m + j] -= L[i * n + k] * Y[k * m + j];
    for (num j = 0; j < m; j++) Y[i * m + j] /= L[i * n + i];
  }
}

static void solve_upper(const float* L, num n, float* Y, num m) {  // by the transpose of L
  for (num i = n - 1; i >= 0; i--) {
    for (num j = 0; j < m; j++) Y[i * m + j] /= L[i * n + i];
    for (num k = 0; k < i; k++)
      for (num j = 0; j < m; j++) Y[k * m + j] -= L[i * n + k] * Y[i * m + j];
  }
}

// X (n, m) = A^T (n, k) B (k, m)
static void crossed(const float* A, const float* B, num k, num n, num m, float* X) {
  memset(X, 0, n * m * sizeof *X);
  for (num t = 0; t < k; t++)
    for (num i = 0; i < n; i++)
      for (num j = 0; j < m; j++) X[i * m + j] += A[t * n + i] * B[t * m + j];
}

// ---- stable_cholesky: lost (n, n) -> the lower root of I + lost; a pivot that rounding brought below one is one

XLA_FFI_Error* filtax_stable_cholesky(XLA_FFI_CallFrame* call) {
  if (is_metadata_query(call)) return NULL;
  num n = dim(call, 0, 0);
  const float* lost = input(call, 0);
  float* L = output(call, 0);
  for (num i = 0; i < n; i++) {
    for (num j = 0; j <= i; j++) {
      float sum = 0;
      for (num k = 0; k < j; k++) sum += L[i * n + k] * L[j * n + k];
      float rest = (i == j) + 0.5f * (lost[i * n + j] + lost[j * n + i]) - sum;
      L[i * n + j] = i != j ? rest / L[j * n + j] : rest < 1 ? 1 : __builtin_sqrtf(rest);
    }
    for (num j = i + 1; j < n; j++) L[i * n + j] = 0;
  }
  return NULL;
}

// ---- triangular_solve: C (n, n) lower, Y (n, m) -> C^-1 Y

XLA_FFI_Error* filtax_triangular_solve(XLA_FFI_CallFrame* call) {
  if (is_metadata_query(call)) return NULL;
  num n = dim(call, 0, 0), m = dim(call, 1, 1);
  memcpy(output(call, 0), input(call, 1), n * m * sizeof(float));
  solve_lower(input(call, 0), n, output(call, 0), m);
  return NULL;
}

// ---- explained_variance: s (K, O), S (K, K), L (K, K), used -> h = S^T s (K, O), (S h)^T (O, K), and f^T f with f = L^-T h (O, O)

XLA_FFI_Error* filtax_explained_variance(XLA_FFI_CallFrame* call) {
  if (is_metadata_query(call)) return NULL;
  num K = dim(call, 0, 0), O = dim(call, 0, 1);
  const float *s = input(call, 0), *S = input(call, 1), *L = input(call, 2);
  float *half = output(call, 0), *c = output(call, 1), *square = output(call, 2), *fit = malloc((K * O + 1) * sizeof *fit);
  if (!fit) return no_memory(call);
  crossed(S, s, K, K, O, half);
  for (num o = 0; o < O; o++)
    for (num k = 0; k < K; k++) {
      float sum = 0;
      for (num t = 0; t < K; t++) sum += S[k * K + t] * half[t * O + o];
      c[o * K + k] = sum;
    }
  memcpy(fit, half, K * O * sizeof *fit);
  solve_upper(L, K, fit, O);
  crossed(fit, fit, K, O, O, square);
  free(fit);
  return NULL;
}

// ---- eigenvectors: G (K, K) symmetric -> its eigenvectors as columns, that of the largest eigenvalue first
// Householder's reduction to three diagonals, then implicit QL steps, in doubles.

static double inner(const double* a, const double* b, num n) {
  double sum = 0;
  for (num i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

// A (n, n) -> diagonals d and e; Z (n, n), the identity at first, becomes the transpose of what reduces A.
static void reduce(double* A, num n, double* d, double* e, double* Z, double* v, double* w) {
  for (num k = 0; k + 2 < n; k++) {
    num m = n - k - 1;
    double* rest = A + (k + 1) * n + k + 1;
    memcpy(v, A + k * n + k + 1, m * sizeof *v);
    double tail = inner(v + 1, v + 1, m - 1), head = v[0];
    d[k] = A[k * n + k], e[k] = head;
    if (tail == 0) continue;
    e[k] = -__builtin_copysign(__builtin_sqrt(head * head + tail), head);
    v[0] = head - e[k];
    double tau = 2 / (v[0] * v[0] + tail);
    for (num i = 0; i < m; i++) w[i] = tau * inner(rest + i * n, v, m);
    double half = tau / 2 * inner(w, v, m);
    for (num i = 0; i < m; i++) w[i] -= half * v[i];
    for (num i = 0; i < m; i++)
      for (num j = 0; j < m; j++) rest[i * n + j] -= v[i] * w[j] + w[i] * v[j];
    memset(w, 0, n * sizeof *w);
    for (num i = 0; i < m; i++)
      for (num j = 0; j < n; j++) w[j] += v[i] * Z[(k + 1 + i) * n + j];
    for (num i = 0; i < m; i++)
      for (num j = 0; j < n; j++) Z[(k + 1 + i) * n + j] -= tau * v[i] * w[j];
  }
  if (n > 1) d[n - 2] = A[(n - 2) * n + n - 2], e[n - 2] = A[(n - 2) * n + n - 1];
  d[n - 1] = A[n * n - 1], e[n - 1] = 0;
}

// Rotate the rows of Z until d holds the eigenvalues; 0 if that does not converge.
static int diagonalise(num n, double* d, double* e, double* Z) {
  for (num l = 0; l < n; l++)
    for (int tries = 0;; tries++) {
      num m = l;
      for (; m + 1 < n; m++)
        if (__builtin_fabs(e[m]) <= 1e-16 * (__builtin_fabs(d[m]) + __builtin_fabs(d[m + 1]))) break;
      if (m == l) break;
      if (tries == 60) return 0;
      double g = (d[l + 1] - d[l]) / (2 * e[l]), s = 1, c = 1, p = 0, r = __builtin_hypot(g, 1);
      g = d[m] - d[l] + e[l] / (g + __builtin_copysign(r, g));
      num i = m - 1;
      for (; i >= l; i--) {
        double f = s * e[i], b = c * e[i];
        e[i + 1] = r = __builtin_hypot(f, g);
        if (r == 0) { d[i + 1] -= p, e[m] = 0; break; }
        s = f / r, c = g / r, g = d[i + 1] - p;
        r = (d[i] - g) * s + 2 * c * b;
        p = s * r, d[i + 1] = g + p, g = c * r - b;
        double *x = Z + i * n, *y = x + n;
        for (num j = 0; j < n; j++) {
          double old = y[j];
          y[j] = s * x[j] + c * old, x[j] = c * x[j] - s * old;
        }
      }
      if (r == 0 && i >= l) continue;
      d[l] -= p, e[l] = g, e[m] = 0;
    }
  return 1;
}

XLA_FFI_Error* filtax_eigenvectors(XLA_FFI_CallFrame* call) {
  if (is_metadata_query(call)) return NULL;
  num n = dim(call, 0, 0);
  const float* G = input(call, 0);
  float* Q = output(call, 0);
  double *A = calloc(2 * n * n + 4 * n, sizeof *A), *Z = A + n * n, *d = Z + n * n, *e = d + n, *v = e + n, *w = v + n;
  if (!A || !n) {
    free(A);
    return n ? no_memory(call) : NULL;
  }
  int fine = 1;
  for (num i = 0; i < n * n; i++) A[i] = G[i], fine = fine && __builtin_isfinite(G[i]);
  for (num i = 0; i < n; i++) Z[i * n + i] = 1;
  if (fine) reduce(A, n, d, e, Z, v, w), fine = diagonalise(n, d, e, Z);
  for (num column = 0; column < n; column++) {
    num best = 0;
    if (fine)
      for (num i = 1; i < n; i++) best = d[i] > d[best] ? i : best;
    else
      best = column;
    for (num i = 0; i < n; i++) Q[i * n + column] = fine ? Z[best * n + i] : i == column;
    d[best] = -__builtin_inf();
  }
  free(A);
  return NULL;
}

// Whether this processor has the instructions that the library was compiled for.
int filtax_runs_here(void) {
#ifdef __x86_64__
  __builtin_cpu_init();
#ifdef __AVX512F__
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#elif defined(__AVX2__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
#endif
#endif
  return 1;
}

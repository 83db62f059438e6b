// A residual under S = I + B cov B' = L L': L, L^-1 r and r'S^-1 B; one warp, a thread for each row.
#define STRIDE (O | 1)
#define ALL 0xffffffffu

extern "C" __global__ __launch_bounds__(32) void innovation(
    const float* cov, const float* B, const float* r,
    float* L, float* z, float* move, unsigned char* sound
) {
    size_t at = blockIdx.y;                   // of several cases
    cov += at * O * O; B += at * O * O; r += at * O; L += at * O * O; z += at * O; move += at * O; sound += at;
    __shared__ float b[O * STRIDE], s[O * STRIDE], t[O * STRIDE];
    int i = threadIdx.x, row = i < O ? i : O - 1;
    #pragma unroll
    for (int k = i; k < O * O; k += 32) {
        b[k / O * STRIDE + k % O] = B[k];
        s[k / O * STRIDE + k % O] = cov[k];
    }
    __syncwarp();
    float w[O];
    #pragma unroll
    for (int j = 0; j < O; ++j) w[j] = 0.f;
    for (int k = 0; k < O; ++k) {
        float a = b[row * STRIDE + k];
        #pragma unroll
        for (int j = 0; j < O; ++j) w[j] += a * s[k * STRIDE + j];
    }
    __syncwarp();
    if (i < O)
        #pragma unroll
        for (int j = 0; j < O; ++j) t[i * STRIDE + j] = w[j];
    __syncwarp();
    #pragma unroll
    for (int j = 0; j < O; ++j) {
        w[j] = 0.f;
        for (int k = 0; k < O; ++k) w[j] += t[row * STRIDE + k] * b[j * STRIDE + k];
    }
    if (i < O)
        #pragma unroll
        for (int j = 0; j < O; ++j) s[i * STRIDE + j] = w[j];
    __syncwarp();
    float trace = 0.f;
    for (int k = 0; k < O; ++k) trace += s[k * STRIDE + k];
    bool finite = isfinite(trace);
    #pragma unroll
    for (int j = 0; j < O; ++j)
        w[j] = (row == j ? 1.f : 0.f) + (finite ? 0.5f * (w[j] + s[j * STRIDE + row]) : 0.f);
    bool whole = true;
    float own = 0.f;
    #pragma unroll
    for (int k = 0; k < O; ++k) {             // a column of the factor at a time
        float d = sqrtf(__shfl_sync(ALL, w[k], k)), inv = 1.f / d;
        float l = row == k ? d : row > k ? w[k] * inv : 0.f;
        own = row == k ? inv : own;
        w[k] = l;
        whole = whole && isfinite(l);
        #pragma unroll
        for (int j = k + 1; j < O; ++j) w[j] -= l * __shfl_sync(ALL, l, j);
    }
    __syncwarp();
    if (i < O)
        #pragma unroll
        for (int j = 0; j < O; ++j) s[i * STRIDE + j] = w[j];
    __syncwarp();
    whole = __all_sync(ALL, whole);
    float x = i < O ? r[i] : 0.f;
    #pragma unroll
    for (int k = 0; k < O; ++k) {
        float found = __shfl_sync(ALL, x * own, k);
        x = i == k ? found : i > k ? x - w[k] * found : x;
    }
    if (i < O) z[i] = x;
    for (int k = O - 1; k >= 0; --k) {
        float found = __shfl_sync(ALL, x * own, k);
        x = i == k ? found : i < k ? x - s[k * STRIDE + row] * found : x;
    }
    float sum = 0.f;
    for (int k = 0; k < O; ++k) sum += __shfl_sync(ALL, x, k) * b[k * STRIDE + row];
    if (i < O) {
        move[i] = sum;
        #pragma unroll
        for (int j = 0; j < O; ++j) L[i * O + j] = w[j];
    }
    if (i == 0) *sound = finite && whole;
}

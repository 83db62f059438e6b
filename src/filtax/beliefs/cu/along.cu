// A (O, O) with A (spread + h'h) = off, of outputs that are scaled to one and differ by a ridge; zero where it is not
// wanted, or not finite. One warp, a thread for each row of A.
// Given: K, O.
#define RIDGE 1.1920929e-5f // a hundred roundings, as in `algebra`
#define STRIDE (O | 1)

extern "C" __global__ __launch_bounds__(32) void along(
    const float* off, const float* spread, const float* half, const unsigned char* wanted, float* A
) {
    size_t at = blockIdx.y;                   // of several cases
    off += at * O * O; spread += at * O * O; half += at * K * O; wanted += at; A += at * O * O;
    __shared__ float g[O * STRIDE], size[O];
    int i = threadIdx.x;
    if (!*wanted) {
        for (int k = i; k < O * O; k += 32) A[k] = 0.f;
        return;
    }
    if (i < O)
        for (int j = 0; j <= i; ++j) {
            float sum = spread[i * O + j];
            for (int k = 0; k < K; ++k) sum += half[k * O + i] * half[k * O + j];
            g[i * STRIDE + j] = sum;
        }
    __syncwarp();
    if (i < O) size[i] = g[i * STRIDE + i] > 0.f ? sqrtf(g[i * STRIDE + i]) : 1.f;
    __syncwarp();
    if (i < O)
        for (int j = 0; j <= i; ++j) g[i * STRIDE + j] = g[i * STRIDE + j] / size[i] / size[j] + (i == j ? RIDGE : 0.f);
    for (int k = 0; k < O; ++k) {             // a column of the factor at a time
        __syncwarp();
        float d = sqrtf(g[k * STRIDE + k]), l = i < O && i >= k ? g[i * STRIDE + k] / d : 0.f;
        __syncwarp();
        if (i < O && i >= k) g[i * STRIDE + k] = l;
        __syncwarp();
        if (i < O)
            for (int j = k + 1; j <= i; ++j) g[i * STRIDE + j] -= l * g[j * STRIDE + k];
    }
    __syncwarp();
    if (i >= O) return;
    float x[O];
    for (int j = 0; j < O; ++j) {
        x[j] = off[i * O + j] / size[j];
        for (int k = 0; k < j; ++k) x[j] -= g[j * STRIDE + k] * x[k];
        x[j] /= g[j * STRIDE + j];
    }
    for (int j = O - 1; j >= 0; --j) {
        for (int k = j + 1; k < O; ++k) x[j] -= g[k * STRIDE + j] * x[k];
        x[j] /= g[j * STRIDE + j];
    }
    for (int j = 0; j < O; ++j) A[i * O + j] = isfinite(x[j] / size[j]) ? x[j] / size[j] : 0.f;
}

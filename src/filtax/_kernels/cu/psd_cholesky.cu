// Lower root of a semidefinite matrix, shifted by its own rounding error; a warp for each, a thread for each row.
#define STRIDE (O | 1)
#define ALL 0xffffffffu

extern "C" __global__ __launch_bounds__(32) void psd_cholesky(const float* A, float* L) {
    __shared__ float a[O * STRIDE], sd[O];
    A += (size_t)blockIdx.y * O * O;  // of several cases
    L += (size_t)blockIdx.y * O * O;
    int i = threadIdx.x, row = i < O ? i : O - 1;
    #pragma unroll
    for (int k = i; k < O * O; k += 32) a[k / O * STRIDE + k % O] = A[k];
    __syncwarp();
    float own = a[row * STRIDE + row], scale = own > 0.f ? sqrtf(own) : 0.f, safe = own > 0.f ? scale : 1.f;
    if (i < O) sd[i] = safe;
    __syncwarp();
    float w[O];
    #pragma unroll
    for (int j = 0; j < O; ++j) w[j] = a[row * STRIDE + j] / safe / sd[j] + (row == j ? O * 1.1920929e-7f : 0.f);
    #pragma unroll
    for (int k = 0; k < O; ++k) {
        float d = sqrtf(__shfl_sync(ALL, w[k], k)), inv = 1.f / d;
        float l = row == k ? d : row > k ? w[k] * inv : 0.f;
        w[k] = l;
        #pragma unroll
        for (int j = k + 1; j < O; ++j) w[j] -= l * __shfl_sync(ALL, l, j);
    }
    if (i < O)
        #pragma unroll
        for (int j = 0; j < O; ++j) L[i * O + j] = scale * w[j];
}

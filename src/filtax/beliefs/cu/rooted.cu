// Cholesky factor of I + lost (K x K), in one block; `settled` sets it into the corner of an identity (WHOLE x WHOLE).
#define STRIDE (K | 1)

__device__ float safe(float pivot) { return pivot < 1.f ? 1.f : pivot; }  // I + something semidefinite has no smaller one

__device__ void reduce(float* a, const float* lost) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    for (int i = warp; i < K; i += warps)
        for (int j = lane; j <= i; j += 32)
            a[i * STRIDE + j] = (i == j ? 1.f : 0.f) + 0.5f * (lost[i * K + j] + lost[j * K + i]);
    __syncthreads();
    for (int k = 0; k < K; ++k) {  // columns stay unscaled until the end: one barrier for each
        float inv = 1.f / safe(a[k * STRIDE + k]);
        for (int i = k + 1 + warp; i < K; i += warps) {
            float l = a[i * STRIDE + k] * inv;
            for (int j = k + 1 + lane; j <= i; j += 32) a[i * STRIDE + j] -= l * a[j * STRIDE + k];
        }
        __syncthreads();
    }
}

__device__ float entry(const float* a, int i, int j) {
    float pivot = sqrtf(safe(a[j * STRIDE + j]));
    return i == j ? pivot : i > j ? a[i * STRIDE + j] / pivot : 0.f;
}

extern "C" __global__ __launch_bounds__(1024) void rooted(const float* lost, float* L) {
    extern __shared__ float a[];  // K x STRIDE
    reduce(a, lost);
    for (int t = threadIdx.x; t < K * K; t += blockDim.x) L[t] = entry(a, t / K, t % K);
}

#ifdef WHOLE
extern "C" __global__ __launch_bounds__(1024) void settled(
    const float* core, const float* root, const float* lost, const float* scale, float* core_, float* root_
) {
    extern __shared__ float a[];
    reduce(a, lost);
    for (int t = threadIdx.x; t < WHOLE * WHOLE; t += blockDim.x) {
        int i = t / WHOLE, j = t % WHOLE;
        core_[t] = i != j ? 0.f : i < K ? *scale : 1.f;
        root_[t] = i < K && j < K ? entry(a, i, j) : i == j ? 1.f : 0.f;
    }
}
#endif

// Cholesky factor of I + lost (K x K), in one block.
#define STRIDE (K | 1)
#define TILES ((K + 31) / 32)

__device__ float safe(float pivot) { return pivot < 1.f ? 1.f : pivot; }  // I + something semidefinite has no smaller one

// A thread of 32 warps holds the numbers whose row and column leave the remainders (warp, lane) by 32. Columns stay
// unscaled until the end; each is made known to all when it is ready: one barrier for each.
__device__ void reduce(float* a, const float* lost) {
    __shared__ float columns[2][TILES * 32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float v[TILES][TILES];
    #pragma unroll
    for (int x = 0; x < TILES; ++x)
        #pragma unroll
        for (int y = 0; y < TILES; ++y) {
            int i = x * 32 + warp, j = y * 32 + lane;
            v[x][y] = i < K && j < K ? (i == j ? 1.f : 0.f) + 0.5f * (lost[i * K + j] + lost[j * K + i]) : 0.f;
        }
    if (!lane)
        #pragma unroll
        for (int x = 0; x < TILES; ++x) columns[0][x * 32 + warp] = v[x][0];
    __syncthreads();
    #pragma unroll
    for (int b = 0; b < TILES; ++b)
        for (int l = 0; l < 32 && b * 32 + l < K; ++l) {
            int k = b * 32 + l;
            const float* column = columns[k & 1];
            float inv = 1.f / safe(column[k]), row[TILES];
            #pragma unroll
            for (int x = 0; x < TILES; ++x) row[x] = column[x * 32 + warp];
            #pragma unroll
            for (int y = 0; y < TILES; ++y) {
                float l = column[y * 32 + lane] * inv;
                #pragma unroll
                for (int x = 0; x < TILES; ++x) v[x][y] -= row[x] * l;
            }
            #pragma unroll
            for (int x = 0; x < TILES; ++x) {
                int i = x * 32 + warp;
                if (lane == l && i < K) a[i * STRIDE + k] = row[x];
                if (lane == (l + 1) % 32)
                    columns[(k + 1) & 1][i] = l < 31 ? v[x][b] : b + 1 < TILES ? v[x][(b + 1) % TILES] : 0.f;
            }
            __syncthreads();
        }
}

__device__ float entry(const float* a, int i, int j) {
    float pivot = sqrtf(safe(a[j * STRIDE + j]));
    return i == j ? pivot : i > j ? a[i * STRIDE + j] / pivot : 0.f;
}

extern "C" __global__ __launch_bounds__(1024) void cholesky(const float* lost, float* L) {
    extern __shared__ float a[];  // K x STRIDE
    lost += (size_t)blockIdx.y * K * K;  // of several cases
    L += (size_t)blockIdx.y * K * K;
    reduce(a, lost);
    for (int t = threadIdx.x; t < K * K; t += blockDim.x) L[t] = entry(a, t / K, t % K);
}

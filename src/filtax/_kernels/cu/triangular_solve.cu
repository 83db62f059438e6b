// C^-1 Y for a lower triangular C (K x K) and many right-hand sides (K x M): a warp for each, WARPS of them in a block.
#define REGISTERS ((K + 31) / 32)
#define ROWS (REGISTERS * 32)
#define STRIDE (K | 1)
#define WIDE (WARPS | 1)
#define AHEAD 8

extern "C" __global__ __launch_bounds__(32 * WARPS) void triangular_solve(const float* C, const float* Y, float* X) {
    extern __shared__ float c[];      // ROWS x STRIDE
    C += (size_t)blockIdx.y * K * K;  // of several cases
    Y += (size_t)blockIdx.y * K * M;
    X += (size_t)blockIdx.y * K * M;
    float* y = c + ROWS * STRIDE;     // ROWS x WIDE
    float* inv = y + ROWS * WIDE;     // ROWS
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = blockIdx.x * WARPS;
    for (int i = warp; i < K; i += WARPS)
        for (int j = lane; j <= i; j += 32)
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                :: "r"((unsigned)__cvta_generic_to_shared(c + i * STRIDE + j)), "l"(C + i * K + j));
    for (int t = threadIdx.x; t < K * WARPS; t += blockDim.x) {
        int k = t / WARPS, o = t % WARPS;
        y[k * WIDE + o] = first + o < M ? Y[k * M + first + o] : 0.f;
    }
    for (int i = threadIdx.x; i < ROWS; i += blockDim.x) inv[i] = i < K ? 1.f / C[i * K + i] : 0.f;
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    float v[REGISTERS];
    #pragma unroll
    for (int b = 0; b < REGISTERS; ++b) v[b] = y[(b * 32 + lane) * WIDE + warp];
    #pragma unroll
    for (int a = 0; a < REGISTERS; ++a)
        for (int start = 0; start < 32 && a * 32 + start < K; start += AHEAD) {
            float l[AHEAD][REGISTERS];  // read before they are needed
            #pragma unroll
            for (int u = 0; u < AHEAD; ++u)
                #pragma unroll
                for (int b = a; b < REGISTERS; ++b)
                    l[u][b] = c[(b * 32 + lane) * STRIDE + min(a * 32 + start + u, K - 1)];
            #pragma unroll
            for (int u = 0; u < AHEAD; ++u) {
                int k = a * 32 + start + u;
                float found = __shfl_sync(0xffffffffu, v[a], start + u) * inv[k];
                if (k < K) {
                    v[a] = lane == start + u ? found : lane > start + u ? v[a] - l[u][a] * found : v[a];
                    #pragma unroll
                    for (int b = a + 1; b < REGISTERS; ++b) v[b] -= l[u][b] * found;
                }
            }
        }
    __syncthreads();
    #pragma unroll
    for (int b = 0; b < REGISTERS; ++b) y[(b * 32 + lane) * WIDE + warp] = v[b];
    __syncthreads();
    for (int t = threadIdx.x; t < K * WARPS; t += blockDim.x) {
        int k = t / WARPS, o = t % WARPS;
        if (first + o < M) X[k * M + first + o] = y[k * WIDE + o];
    }
}

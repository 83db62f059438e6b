// What a factor explains: half = S's, S half, and fit'fit with fit = L^-T half, of the rows in use; one block.
#define REGISTERS ((K + 31) / 32)
#define ROWS (REGISTERS * 32)
#define STRIDE (K | 1)  // odd: the threads of a warp that read a column meet in no bank
#define WIDE ((O + 3) / 4 * 4)
#define AHEAD 8

__device__ __forceinline__ void copy(float* to, const float* from) {  // all are on their way before one is waited for
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from));
}

// out[k] = sum over j of A[k * row + j * column] x[j], each x[j] a row of O numbers; the sum is split over groups
__device__ void multiply(const float* A, int row, int column, const float* x, float* out, float* part, int n) {
    int k = threadIdx.x % ROWS, group = threadIdx.x / ROWS;
    if (group < GROUPS) {
        float sum[WIDE];
        #pragma unroll
        for (int o = 0; o < WIDE; ++o) sum[o] = 0.f;
        if (k < n)
            #pragma unroll 4
            for (int j = group; j < n; j += GROUPS) {
                float a = A[k * row + j * column];
                #pragma unroll
                for (int o = 0; o < WIDE; o += 4) {
                    float4 b = *(const float4*)(x + j * WIDE + o);
                    sum[o] += a * b.x; sum[o + 1] += a * b.y; sum[o + 2] += a * b.z; sum[o + 3] += a * b.w;
                }
            }
        #pragma unroll
        for (int o = 0; o < O; ++o) part[(o * GROUPS + group) * ROWS + k] = sum[o];
    }
    __syncthreads();
    for (int t = threadIdx.x; t < ROWS * O; t += blockDim.x) {
        int o = t / ROWS, k = t % ROWS;
        float total = 0.f;
        #pragma unroll
        for (int g = 0; g < GROUPS; ++g) total += part[(o * GROUPS + g) * ROWS + k];
        out[k * WIDE + o] = k < n ? total : 0.f;
    }
    __syncthreads();
}

extern "C" __global__ __launch_bounds__(THREADS) void explained_variance(
    const float* s, const float* S, const float* L, const int* used,
    float* half, float* c, float* square
) {
    extern __shared__ float4 memory[];
    size_t at = blockIdx.y;                   // of several cases
    s += at * K * O; S += at * K * K; L += at * K * K; used += at; half += at * K * O; c += at * K * O; square += at * O * O;
    float* x = (float*)memory;                // ROWS x WIDE
    float* y = x + ROWS * WIDE;               // the same
    float* part = y + ROWS * WIDE;            // O x GROUPS x ROWS
    float* Ls = part + O * GROUPS * ROWS;     // ROWS x STRIDE
    float* Ss = Ls + ROWS * STRIDE;           // K x STRIDE
    float* inv = Ss + K * STRIDE;             // ROWS
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n = min(max(*used, 0), K);
    for (int t = threadIdx.x; t < n * WIDE; t += blockDim.x) {
        int o = t % WIDE;
        x[t] = o < O ? s[t / WIDE * O + o] : 0.f;
    }
    for (int i = warp; i < n; i += THREADS / 32)
        for (int j = lane; j < n; j += 32) {
            if (j <= i) copy(Ls + i * STRIDE + j, L + i * K + j);
            copy(Ss + i * STRIDE + j, S + i * K + j);
        }
    for (int i = threadIdx.x; i < n; i += blockDim.x) inv[i] = 1.f / L[i * K + i];
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    multiply(Ss, 1, STRIDE, x, y, part, n);   // S's
    for (int o = warp; o < O; o += THREADS / 32) {
        float v[REGISTERS];
        #pragma unroll
        for (int b = 0; b < REGISTERS; ++b) v[b] = y[(b * 32 + lane) * WIDE + o];
        #pragma unroll
        for (int b = 0; b < REGISTERS; ++b) {
            int i = b * 32 + lane;
            if (i >= n) v[b] = 0.f;
            if (i < K) half[i * O + o] = v[b];
        }
        #pragma unroll
        for (int a = REGISTERS - 1; a >= 0; --a)  // L' v = half
            for (int start = 32 - AHEAD; start >= 0; start -= AHEAD) {
                if (a * 32 + start >= n) continue;
                float l[AHEAD][REGISTERS];
                #pragma unroll
                for (int u = 0; u < AHEAD; ++u)
                    #pragma unroll
                    for (int b = 0; b <= a; ++b) l[u][b] = Ls[(a * 32 + start + u) * STRIDE + b * 32 + lane];
                #pragma unroll
                for (int u = AHEAD - 1; u >= 0; --u) {
                    int k = a * 32 + start + u;
                    float found = __shfl_sync(0xffffffffu, v[a], start + u) * inv[k];
                    if (k < n) {
                        v[a] = lane == start + u ? found : lane < start + u ? v[a] - l[u][a] * found : v[a];
                        #pragma unroll
                        for (int b = 0; b < a; ++b) v[b] -= l[u][b] * found;
                    }
                }
            }
        #pragma unroll
        for (int b = 0; b < REGISTERS; ++b) x[(b * 32 + lane) * WIDE + o] = b * 32 + lane < n ? v[b] : 0.f;
    }
    __syncthreads();
    for (int t = threadIdx.x; t < O * O; t += blockDim.x) {
        int i = t / O, j = t % O;
        float sum[4] = {0.f, 0.f, 0.f, 0.f};
        for (int k = 0; k < ROWS; k += 4)
            #pragma unroll
            for (int u = 0; u < 4; ++u) sum[u] += x[(k + u) * WIDE + i] * x[(k + u) * WIDE + j];
        square[t] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
    multiply(Ss, STRIDE, 1, y, x, part, n);   // S half
    for (int t = threadIdx.x; t < O * K; t += blockDim.x) c[t] = x[t % K * WIDE + t / K];
}

// P = J diag(V) - c U (O, D) and, where SPREAD, the sums of P diag(1 / V) P^T on and below its diagonal, row by row: parts
// (gridDim.x, O (O + 1) / 2), one for each block, to be added up. Rows from `count` on are not read.
// A thread owns MANY parameters and all their sums; it asks for the next rows before it waits for the ones it has.
// Given: K, O, D, SPREAD, ONE (V is one number), MANY, AHEAD (rows), BLOCKS (of a processor).
#define THREADS 128
#define PADDED ((O + 3) / 4 * 4)
#define PAIRS (O * (O + 1) / 2)

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    residual_projection(const float *__restrict__ U, const float *__restrict__ J, const float *__restrict__ V,
          const float *__restrict__ c, const int *__restrict__ count, float *__restrict__ P
#if SPREAD
          , float *__restrict__ parts
#endif
    ) {
    __shared__ __align__(16) float factor[K + 2 * AHEAD][PADDED];
    const int used = min(max(*count, 0), K);
    for (int i = threadIdx.x; i < (K + 2 * AHEAD) * PADDED; i += THREADS) {
        const int r = i / PADDED, o = i % PADDED; // zero in the place of a mask on the rows
        factor[r][o] = r < used && o < O ? -c[o * K + r] : 0.0f;
    }
    __syncthreads();
#if SPREAD
    float sum[PAIRS] = {};
#endif
    // a warp has 32 MANY parameters that lie side by side
    const int mine = threadIdx.x / 32 * 32 * MANY + threadIdx.x % 32;
    for (int first = blockIdx.x * THREADS * MANY + mine; first < D + mine; first += gridDim.x * THREADS * MANY) {
        int d[MANY];
        float x[O][MANY], v[MANY];
#pragma unroll
        for (int i = 0; i < MANY; i++) {
            d[i] = min(first + 32 * i, D - 1);
            v[i] = ONE ? V[0] : V[d[i]];
        }
#pragma unroll
        for (int o = 0; o < O; o++)
#pragma unroll
            for (int i = 0; i < MANY; i++) x[o][i] = J[o * (long long)D + d[i]] * v[i];
        auto ask = [&](float (&u)[AHEAD][MANY], int r) {
#pragma unroll
            for (int a = 0; a < AHEAD; a++)
#pragma unroll
                for (int i = 0; i < MANY; i++) u[a][i] = U[min(r + a, used - 1) * (long long)D + d[i]];
        };
        auto take = [&](const float (&u)[AHEAD][MANY], int r) {
#pragma unroll
            for (int a = 0; a < AHEAD; a++) {
                float f[PADDED];
#pragma unroll
                for (int o = 0; o < PADDED; o += 4) *(float4 *)(f + o) = *(const float4 *)(factor[r + a] + o);
#pragma unroll
                for (int o = 0; o < O; o++)
#pragma unroll
                    for (int i = 0; i < MANY; i++) x[o][i] += f[o] * u[a][i];
            }
        };
        float now[AHEAD][MANY], then[AHEAD][MANY];
        if (used) ask(now, 0);
        for (int r = 0; r < used; r += 2 * AHEAD) {
            ask(then, r + AHEAD);
            take(now, r);
            ask(now, r + 2 * AHEAD);
            take(then, r + AHEAD);
        }
#pragma unroll
        for (int i = 0; i < MANY; i++) {
            const bool inside = first + 32 * i < D;
#pragma unroll
            for (int o = 0; o < O; o++)
                if (inside) P[o * (long long)D + d[i]] = x[o][i];
#if SPREAD
            const float inverse = inside && v[i] > 0.0f ? 1.0f / v[i] : 0.0f;
            int at = 0;
#pragma unroll
            for (int a = 0; a < O; a++) {
                const float y = x[a][i] * inverse;
#pragma unroll
                for (int b = 0; b <= a; b++) sum[at++] += y * x[b][i];
            }
#endif
        }
    }
#if SPREAD
    __shared__ float total[THREADS / 32][PAIRS];
#pragma unroll
    for (int at = 0; at < PAIRS; at++) {
        float s = sum[at];
        for (int far = 16; far; far /= 2) s += __shfl_xor_sync(~0u, s, far);
        if (threadIdx.x % 32 == 0) total[threadIdx.x / 32][at] = s;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < PAIRS; i += THREADS)
        parts[(size_t)blockIdx.x * PAIRS + i] = (total[0][i] + total[1][i]) + (total[2][i] + total[3][i]);
#endif
}

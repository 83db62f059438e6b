// U diag(w) U^T of the first K rows of U: parts (gridDim.x SHARES, 16 MT, 16 MT), to be added up; of each only what is on
// or below the diagonal (in blocks of 16 x 8) is written, and nothing where it is not wanted.
// Given: K, D, WEIGHTED, MAYBE (there is a `wanted`), WIDE, STAGES (tiles held), SHARES (warps of a kind), MOVERS.
#define MT ((K + 15) / 16)
#define KINDS ((MT + 1) / 2) // of warps, each with as many products
#define WARPS (MOVERS + KINDS * SHARES)
#define WIDTH (16 * MT)
#define ROWS (K + WEIGHTED)
#define S (WIDE + 4) // the lanes of a warp then read from different banks
#define TILES ((D + WIDE - 1) / WIDE)

// Of 16 parameters at p: rows of U as two blocks (16, 8), weighted.
__device__ __forceinline__ void weighted(const float *tile, int first, int p, word (&a)[2][4], word (&small)[2][4]) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int k = 0; k < 2; k++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int at = p + 8 * k + t + i / 2 * 4;
            const float w = WEIGHTED ? tile[at] : 1.0f;
            split(tile[(WEIGHTED + min(first + g + i % 2 * 8, K - 1)) * S + at] * w, a[k][i], small[k][i]);
        }
}

// Tensor cores cut off what they add: only a few products, then a sum.
__device__ __forceinline__ void add(float (&sum)[4], const word (&a)[2][4], const word (&small)[2][4],
                                    const word (&b)[2][2], const word (&rest)[2][2]) {
    float c[4] = {};
#pragma unroll
    for (int k = 0; k < 2; k++) {
        multiply(c, small[k], b[k]);
        multiply(c, a[k], rest[k]);
    }
#pragma unroll
    for (int k = 0; k < 2; k++) multiply(c, a[k], b[k]);
#pragma unroll
    for (int i = 0; i < 4; i++) sum[i] += c[i];
}

// A warp with rows 16 HIGH.. and 16 LOW.. of the result (none where LOW < 0).
template <int HIGH, int LOW>
__device__ __forceinline__ void work(const float *memory, float *__restrict__ parts) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, share = (threadIdx.x / 32 - MOVERS) / KINDS;
    float high[2 * HIGH + 2][4] = {}, low[LOW < 0 ? 1 : 2 * LOW + 2][4] = {};
    int stage = 0;
    for (int at = blockIdx.x; at < TILES; at += gridDim.x, stage = stage + 1 == STAGES ? 0 : stage + 1) {
        __syncthreads();
        const float *tile = memory + stage * ROWS * S;
#pragma unroll 1
        for (int p = 16 * share; p < WIDE; p += 16 * SHARES) {
            word a[2][4], small[2][4], a2[2][4], small2[2][4];
            weighted(tile, 16 * HIGH, p, a, small);
            if (LOW >= 0) weighted(tile, 16 * LOW, p, a2, small2);
#pragma unroll
            for (int n = 0; n < 2 * HIGH + 2; n++) {
                const float *row = tile + (WEIGHTED + min(8 * n + g, K - 1)) * S + p + t;
                word b[2][2], rest[2][2];
#pragma unroll
                for (int k = 0; k < 2; k++)
#pragma unroll
                    for (int i = 0; i < 2; i++) split(row[8 * k + 4 * i], b[k][i], rest[k][i]);
                add(high[n], a, small, b, rest);
                if (n < 2 * LOW + 2) add(low[n], a2, small2, b, rest);
            }
        }
    }
    float *part = parts + (size_t)(blockIdx.x * SHARES + share) * WIDTH * WIDTH + g * WIDTH + 2 * t;
#pragma unroll
    for (int n = 0; n < 2 * HIGH + 2; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int place = i / 2 * 8 * WIDTH + 8 * n + i % 2;
            part[16 * HIGH * WIDTH + place] = high[n][i];
            if (n < 2 * LOW + 2) part[16 * LOW * WIDTH + place] = low[n][i];
        }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, 1)
    gram(const float *__restrict__ U,
#if WEIGHTED
         const float *__restrict__ w,
#endif
#if MAYBE
         const unsigned char *__restrict__ wanted,
#endif
         float *__restrict__ parts) {
#if MAYBE
    if (!*wanted) return;
#endif
    extern __shared__ __align__(16) float memory[]; // STAGES tiles of w and U
    const int kind = (threadIdx.x / 32 - MOVERS) % KINDS;
    for (int i = threadIdx.x; i < STAGES * ROWS * S; i += 32 * WARPS) memory[i] = 0.0f;
    __syncthreads();
    if (threadIdx.x < 32 * MOVERS) {
        auto load = [&](int stage, int at) {
            float *tile = memory + stage * ROWS * S;
            if (at < TILES) {
#if WEIGHTED
                fetch_rows<S>(tile, w, 1, at);
#endif
                fetch_rows<S>(tile + WEIGHTED * S, U, K, at);
            }
            fetched();
        };
        for (int s = 0; s < STAGES - 1; s++) load(s, blockIdx.x + s * gridDim.x);
        int stage = 0;
        for (int at = blockIdx.x; at < TILES; at += gridDim.x, stage = stage + 1 == STAGES ? 0 : stage + 1) {
            arrived<STAGES - 2>();
            __syncthreads();
            load(stage ? stage - 1 : STAGES - 1, at + (STAGES - 1) * gridDim.x);
        }
        arrived<0>();
        return;
    }
    // a high row of blocks goes with a low one, so that each kind has as much to do
#define KIND(i)                                                                                                        \
    if (i < KINDS && kind == i)                                                                                        \
        work<(i < KINDS ? MT - 1 - i : 0), (i < KINDS ? (MT % 2 ? i - 1 : i) : -1)>(memory, parts);
    KIND(0) KIND(1) KIND(2) KIND(3)
}

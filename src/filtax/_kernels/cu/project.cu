// U diag(w) J^T (K, O): parts (gridDim.x, K, O), one for each block, to be added up. Rows from `count` on are not read.
// Given: K, O, D, WEIGHTED, WIDE, STAGES (tiles held), PARTS (of a tile: each has two warps, and each of these every other
// block of 16 rows), MOVERS.
#define WARPS (MOVERS + 2 * PARTS)
#define MINE (((K + 15) / 16 + 1) / 2) // blocks of 16 rows of a warp
#define NT ((O + 7) / 8) // blocks of columns
#define ROWS (O + WEIGHTED + K)
#define S (WIDE + 4) // the lanes of a warp then read from different banks
#define TILES ((D + WIDE - 1) / WIDE)

struct Split {
    word big[2][4], small[2][4];
};

// 16 parameters of two rows, which lie at one and at two.
__device__ __forceinline__ void halve(Split &a, const float *one, const float *two) {
#pragma unroll
    for (int k = 0; k < 2; k++)
#pragma unroll
        for (int i = 0; i < 4; i++) split((i % 2 ? two : one)[8 * k + i / 2 * 4], a.big[k][i], a.small[k][i]);
}

// A block of 16 rows times one of 8 columns. Tensor cores cut off what they add: only a few products, then a sum.
__device__ __forceinline__ void join(float (&sum)[4], const Split &a, const word (&b)[2][2], const word (&rest)[2][2]) {
    float c[4] = {};
#pragma unroll
    for (int k = 0; k < 2; k++) {
        multiply(c, a.small[k], b[k]);
        multiply(c, a.big[k], rest[k]);
    }
#pragma unroll
    for (int k = 0; k < 2; k++) multiply(c, a.big[k], b[k]);
#pragma unroll
    for (int i = 0; i < 4; i++) sum[i] += c[i];
}

// Of 16 parameters at p: LIVE blocks of rows.
template <int LIVE>
__device__ __forceinline__ void add(float (&sum)[MINE][NT][4], const float *tile, int p, int half) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const float *rows = tile + (O + WEIGHTED) * S + p + t;
    word b[NT][2][2], rest[NT][2][2];
    float w[2][2];
#pragma unroll
    for (int k = 0; k < 2; k++)
#pragma unroll
        for (int i = 0; i < 2; i++) w[k][i] = WEIGHTED ? tile[O * S + p + 8 * k + t + 4 * i] : 1.0f;
#pragma unroll
    for (int n = 0; n < NT; n++) {
        const float *row = tile + min(8 * n + g, O - 1) * S + p + t;
#pragma unroll
        for (int k = 0; k < 2; k++)
#pragma unroll
            for (int i = 0; i < 2; i++) split(row[8 * k + 4 * i] * w[k][i], b[n][k][i], rest[n][k][i]);
    }
    Split a;
#pragma unroll
    for (int m = 0; m < LIVE; m++) {
        const int first = 16 * (2 * m + half) + g;
        halve(a, rows + min(first, K - 1) * S, rows + min(first + 8, K - 1) * S);
#pragma unroll
        for (int n = 0; n < NT; n++) join(sum[m][n], a, b[n], rest[n]);
    }
}

// How many blocks of rows are in use is known on the device only.
__device__ __forceinline__ void some(float (&sum)[MINE][NT][4], const float *tile, int p, int half, int live) {
    if (live == 1) add<1>(sum, tile, p, half);
    if (MINE > 1 && live == 2) add<(MINE > 1 ? 2 : 1)>(sum, tile, p, half);
    if (MINE > 2 && live == 3) add<(MINE > 2 ? 3 : 1)>(sum, tile, p, half);
    if (MINE > 3 && live >= 4) add<MINE>(sum, tile, p, half);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, 1)
    project(const float *__restrict__ U, const float *__restrict__ J, const int *__restrict__ count,
#if WEIGHTED
          const float *__restrict__ w,
#endif
          float *__restrict__ parts) {
    extern __shared__ __align__(16) float memory[]; // STAGES tiles of J, w and U
    const int used = min(max(*count, 0), K);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const bool moves = warp < MOVERS;
    const int part = (warp - MOVERS) % PARTS, half = (warp - MOVERS) / PARTS;
    const int live = ((used + 15) / 16 - half + 1) / 2;
    for (int i = threadIdx.x; i < STAGES * ROWS * S; i += 32 * WARPS) memory[i] = 0.0f;
    __syncthreads();

    const int tiles = used ? TILES : 0;
    auto load = [&](int stage, int at) {
        float *tile = memory + stage * ROWS * S;
        if (at < tiles) {
            fetch_rows<S>(tile, J, O, at);
#if WEIGHTED
            fetch_rows<S>(tile + O * S, w, 1, at);
#endif
            fetch_rows<S>(tile + (O + WEIGHTED) * S, U, used, at);
        }
        fetched();
    };

    float sum[MINE][NT][4] = {};
    if (moves)
        for (int s = 0; s < STAGES - 1; s++) load(s, blockIdx.x + s * gridDim.x);
    int stage = 0;
    for (int at = blockIdx.x; at < tiles; at += gridDim.x, stage = stage + 1 == STAGES ? 0 : stage + 1) {
        if (moves) arrived<STAGES - 2>();
        __syncthreads();
        if (moves) {
            load(stage ? stage - 1 : STAGES - 1, at + (STAGES - 1) * gridDim.x);
            continue;
        }
        const float *tile = memory + stage * ROWS * S;
#pragma unroll 1
        for (int p = 16 * part; p < WIDE; p += 16 * PARTS) some(sum, tile, p, half, live);
    }
    arrived<0>();
    __syncthreads();
    for (int turn = 0; turn < PARTS; turn++) { // into one (K, O), always in the same order
        if (!moves && part == turn) {
            auto put = [&](int row, int n, int i, float value) {
                const int column = 8 * n + 2 * t + i % 2;
                row += g + 8 * (i / 2);
                if (row < K && column < O) memory[row * O + column] = value + (turn ? memory[row * O + column] : 0.0f);
            };
#pragma unroll
            for (int m = 0; m < MINE; m++)
#pragma unroll
                for (int n = 0; n < NT; n++)
#pragma unroll
                    for (int i = 0; i < 4; i++) put(16 * (2 * m + half), n, i, sum[m][n][i]);
        }
        __syncthreads();
    }
    for (int i = threadIdx.x; i < K * O; i += 32 * WARPS)
        parts[(size_t)blockIdx.x * K * O + i] = i < used * O ? memory[i] : 0.0f;
}

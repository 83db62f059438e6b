// T^T U (M, D) for T (K, M), over U or beside it. Where SHARED is 0, the rows from RANK on are what is dropped: their
// squares q go to the diagonal, scale = 1 / (1 + q / V), V becomes V scale, and the rows that are kept are multiplied by
// scale. Rows from RANK on are not written. Of three tiles one is on its way in, one is worked on, one on its way out.
// Given: K, M, RANK, D, SHARED (V is one number and stays), WIDE, MOVERS.
#define WORKERS (WIDE / 32 * 2) // 32 parameters of a warp, and half of the rows of the result
#define WRITERS 2
#define WARPS (MOVERS + WRITERS + WORKERS)
#define STEPS ((K + 7) / 8)
#define KEPT ((RANK + 7) / 8) // groups of eight rows of the result
#define GROUPS (KEPT + (M - RANK + 7) / 8)
#define MINE ((GROUPS + 1) / 2)
#define S (WIDE + 8) // the lanes of a warp then read from different banks
#define TILES ((D + WIDE - 1) / WIDE)
#define ROOM ((8 * STEPS + 3) * S) // a tile of U, V, and two rows of squares

extern "C" __global__ void __launch_bounds__(32 * WARPS, 1)
    truncate_basis(const float *U, const float *__restrict__ T,
#if !SHARED
        const float *V, float *fresh, // of V
#endif
        float *out) {
    extern __shared__ __align__(16) float memory[]; // T, three tiles
    float2 *turn = (float2 *)memory;                // (STEPS, GROUPS, 32): what a lane needs lies side by side
    float *tiles = memory + STEPS * GROUPS * 32 * 2;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    for (int i = threadIdx.x; i < STEPS * GROUPS * 32; i += 32 * WARPS) {
        const int k = i / (GROUPS * 32), n = i / 32 % GROUPS, r = 8 * k + i % 4;
        const int m = (n < KEPT ? 8 * n : RANK + 8 * (n - KEPT)) + i % 32 / 4;
        const bool some = n < KEPT ? m < RANK : m < M;
        turn[i] = make_float2(some && r < K ? T[r * M + m] : 0.0f, some && r + 4 < K ? T[(r + 4) * M + m] : 0.0f);
    }
    for (int i = threadIdx.x; i < 3 * ROOM; i += 32 * WARPS) tiles[i] = 0.0f;
    __syncthreads();

    auto load = [&](int stage, int at) {
        float *tile = tiles + stage * ROOM;
        if (at < TILES) {
#if !SHARED
            fetch_rows<S>(tile + 8 * STEPS * S, V, 1, at);
#endif
            fetch_rows<S>(tile, U, K, at);
        }
        fetched();
    };
    auto store = [&](int stage, int at) {
        const float *tile = tiles + stage * ROOM + lane, *v = tile + 8 * STEPS * S;
        const int d = at * WIDE + lane, mine = warp - MOVERS;
        float scale[WIDE / 32];
#pragma unroll
        for (int i = 0; i < WIDE / 32; i++) {
            scale[i] = 1.0f;
#if !SHARED
            if (v[32 * i] > 0.0f) scale[i] = 1.0f / (1.0f + (v[S + 32 * i] + v[2 * S + 32 * i]) / v[32 * i]);
            if (mine == 0 && d + 32 * i < D) fresh[d + 32 * i] = v[32 * i] * scale[i];
#endif
        }
        float *to = out + mine * (wide)D + d;
#pragma unroll 4
        for (int r = mine; r < RANK; r += WRITERS, to += WRITERS * (wide)D)
#pragma unroll
            for (int i = 0; i < WIDE / 32; i++)
                if (d + 32 * i < D) to[32 * i] = tile[r * S + 32 * i] * scale[i];
    };
    auto work = [&](int stage) {
        const int half = (warp - MOVERS - WRITERS) / (WORKERS / 2), base = (warp - MOVERS - WRITERS) % (WORKERS / 2) * 32;
        float *tile = tiles + stage * ROOM;
        float found[2][MINE][4] = {}, less[2][MINE][4] = {};
        const float *row = tile + t * S + base + g;
        const float2 *from = turn + half * MINE * 32 + lane;
        float ahead[2][4];
        auto look = [&](const float *row) {
#pragma unroll
            for (int m = 0; m < 2; m++)
#pragma unroll
                for (int i = 0; i < 4; i++) ahead[m][i] = row[16 * m + i % 2 * 8 + i / 2 * 4 * S];
        };
        look(row);
#pragma unroll 1
        for (int k = 0; k < STEPS; k++) {
            word a[2][4], small[2][4];
#pragma unroll
            for (int m = 0; m < 2; m++)
#pragma unroll
                for (int i = 0; i < 4; i++) split(ahead[m][i], a[m][i], small[m][i]);
            row += 8 * S;
            if (k + 1 < STEPS) look(row); // before it is waited for
#pragma unroll
            for (int n = 0; n < MINE; n++)
                if (n + MINE < GROUPS || !half) {
                    const float2 x = from[n * 32];
                    word b[2], rest[2];
                    split(x.x, b[0], rest[0]);
                    split(x.y, b[1], rest[1]);
#pragma unroll
                    for (int m = 0; m < 2; m++) multiply(less[m][n], small[m], b);
#pragma unroll
                    for (int m = 0; m < 2; m++) multiply(found[m][n], a[m], b);
#pragma unroll
                    for (int m = 0; m < 2; m++) multiply(less[m][n], a[m], rest);
                }
            from += GROUPS * 32;
        }
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int n = 0; n < MINE; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) found[m][n][i] += less[m][n][i];
#if !SHARED
        float *squares = tile + (8 * STEPS + 1 + half) * S + base + g;
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int i = 0; i < 4; i += 2) {
                float q = 0.0f;
#pragma unroll
                for (int n = 0; n < MINE; n++)
                    if (half * MINE + n >= KEPT) q += found[m][n][i] * found[m][n][i] + found[m][n][i + 1] * found[m][n][i + 1];
                q += __shfl_xor_sync(~0u, q, 1);
                q += __shfl_xor_sync(~0u, q, 2);
                if (t == 0) squares[16 * m + 4 * i] = q;
            }
#endif
        // all workers have read the tile: it takes up the result, which is then written side by side
        meet<32 * WORKERS>();
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int n = 0; n < MINE; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int r = 8 * (half * MINE + n) + 2 * t + i % 2;
                    if (half * MINE + n < KEPT && r < RANK) tile[r * S + base + 16 * m + i / 2 * 8 + g] = found[m][n][i];
                }
    };

    if (warp < MOVERS) load(0, blockIdx.x);
    int stage = 0, at = blockIdx.x;
    for (; at < TILES + gridDim.x; at += gridDim.x) {
        if (warp < MOVERS) arrived<0>();
        __syncthreads();
        const int next = stage == 2 ? 0 : stage + 1, last = stage ? stage - 1 : 2;
        if (warp < MOVERS)
            load(next, at + gridDim.x);
        else if (warp >= MOVERS + WRITERS) {
            if (at < TILES) work(stage);
        } else if (at != blockIdx.x)
            store(last, at - gridDim.x);
        stage = next;
    }
}

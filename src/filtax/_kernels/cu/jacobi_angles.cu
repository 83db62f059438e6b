// Rotations that make a symmetric matrix G (K x K) diagonal, all disjoint pairs of rows at once (Jacobi), as one block.
// Rows sit in N places; pair i is those in the places i and N - 1 - i. A thread holds the 2 x 2 blocks of two pairs
// (i <= j) in registers. After a turn all rows but one move on by one place, so that in N - 1 turns each meets each.
#define N (K + K % 2)
#define PAIRS (N / 2)
#define BLOCKS (PAIRS * (PAIRS + 1) / 2)
#define EACH ((BLOCKS + THREADS - 1) / THREADS)

__device__ __forceinline__ float root(float x) {  // 1 / sqrt(x), quickly
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ int next(int place) { return place == 0 ? 0 : place == 1 ? N - 1 : place - 1; }
__device__ int block(int i, int j) { return i == j ? i : PAIRS + i * (PAIRS - 1) - i * (i - 1) / 2 + j - i - 1; }
__device__ int spot(int x, int y) {  // where the number of two rows in these places is kept
    int i = min(x, N - 1 - x), j = min(y, N - 1 - y);
    if (i > j || (i == j && x > y)) { int t = x; x = y; y = t; t = i; i = j; j = t; }
    return ((x >= PAIRS ? 2 : 0) + (y >= PAIRS ? 1 : 0)) * BLOCKS + block(i, j);
}

extern "C" __global__ __launch_bounds__(THREADS) void jacobi_angles(
    const float* G, float2* turns, int* rounds, int* order
) {
    extern __shared__ float a[];  // 4 x BLOCKS, and a place for what is not needed
    G += (size_t)blockIdx.y * K * K;  // of several cases
    turns += (size_t)blockIdx.y * SWEEPS * (N - 1) * PAIRS;
    rounds += blockIdx.y;
    order += blockIdx.y * K;
    __shared__ float2 turn[PAIRS];
    __shared__ float tops[32], size[N];
    __shared__ int skew;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float top = 0.f;
    bool sound = true;
    #pragma unroll 4
    for (int t = threadIdx.x; t < K * K; t += THREADS) {
        float g = G[t];
        sound = sound && isfinite(g);
        top = fmaxf(top, fabsf(g));
    }
    for (int hop = 16; hop; hop /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, hop));
    if (!lane) tops[warp] = top;
    if (!threadIdx.x) skew = 0;
    sound = __syncthreads_and(sound);
    for (int w = 0; w < THREADS / 32; ++w) top = fmaxf(top, tops[w]);
    sound = sound && top > 0.f;
    float scale = sound ? 1.f / top : 0.f;  // then squares neither overflow nor vanish
    float v[EACH][4];
    int pair[EACH], other[EACH], to[EACH][4];
    #pragma unroll
    for (int e = 0; e < EACH; ++e) {
        int t = threadIdx.x + e * THREADS, i = min(t, PAIRS - 1), j = i;
        if (t >= PAIRS && t < BLOCKS) {
            for (t -= PAIRS, i = 0; t >= PAIRS - 1 - i; ++i) t -= PAIRS - 1 - i;
            j = i + 1 + t;
        }
        pair[e] = i; other[e] = j;
        #pragma unroll
        for (int f = 0; f < 4; ++f) {
            int x = f / 2 ? N - 1 - i : i, y = f % 2 ? N - 1 - j : j;
            v[e][f] = sound && x < K && y < K ? G[x * K + y] * scale : 0.f;
            to[e][f] = i == j && f == 2 ? 4 * BLOCKS : spot(next(x), next(y));
        }
    }
    int round = 0;
    for (int sweep = 0; sound && sweep < SWEEPS; ++sweep) {
        for (int r = 0; r < N - 1; ++r, ++round) {
            if (threadIdx.x < PAIRS) {
                float x = v[0][0], y = v[0][3], both = v[0][1];
                float product = fabsf(x * y), square = both * both, d = y - x, b = 2.f * both;
                float h = root(d * d + b * b), half = 0.5f + 0.5f * fabsf(d) * h, near = root(half), c = half * near;
                float s = 0.5f * (d < 0.f ? -b : b) * h * near;
                float wrong = 1.f + 0.5f * (1.f - (c * c + s * s));  // what two quick roots left
                s *= wrong;
                float less = __fdividef(s, 1.f + c * wrong);  // c = 1 - s less: a small angle changes little
                bool some = square > 1e-13f * product && square > 1e-18f;
                if (some && fabsf(s * both) > 1e-3f * fmaxf(fminf(x, y), 1e-4f)) skew = 1;  // how far eigenvalues move
                float2 found = some ? make_float2(s, less) : make_float2(0.f, 0.f);
                turn[threadIdx.x] = found;
                turns[round * PAIRS + threadIdx.x] = found;
            }
            __syncthreads();
            #pragma unroll
            for (int e = 0; e < EACH; ++e) {
                float2 u = turn[pair[e]], w = turn[other[e]];
                bool own = pair[e] == other[e];
                float pp = v[e][0], pq = v[e][1], qp = own ? pq : v[e][2], qq = v[e][3];
                float bpp = pp - w.x * (pq + w.y * pp), bpq = pq + w.x * (pp - w.y * pq);
                float bqp = qp - w.x * (qq + w.y * qp), bqq = qq + w.x * (qp - w.y * qq);
                pp = bpp - u.x * (bqp + u.y * bpp); qp = bqp + u.x * (bpp - u.y * bqp);
                pq = bpq - u.x * (bqq + u.y * bpq); qq = bqq + u.x * (bpq - u.y * bqq);
                if (EACH * THREADS == BLOCKS || threadIdx.x + e * THREADS < BLOCKS) {
                    a[to[e][0]] = pp;
                    a[to[e][1]] = own && u.x != 0.f ? 0.f : pq;
                    a[to[e][2]] = qp;
                    a[to[e][3]] = qq;
                }
            }
            __syncthreads();
            #pragma unroll
            for (int e = 0; e < EACH; ++e)
                #pragma unroll
                for (int f = 0; f < 4; ++f) v[e][f] = a[f * BLOCKS + min(threadIdx.x + e * THREADS, BLOCKS - 1)];
        }
        bool more = skew;
        __syncthreads();
        if (!more) break;
        if (!threadIdx.x) skew = 0;
        __syncthreads();
    }
    if (threadIdx.x < PAIRS) {  // after whole sweeps each row is where it was
        size[threadIdx.x] = v[0][0];
        size[N - 1 - threadIdx.x] = v[0][3];
    }
    if (!threadIdx.x) *rounds = round;
    __syncthreads();
    for (int k = threadIdx.x; k < K; k += THREADS) {  // largest first, and in their order where equal
        int place = 0;
        for (int l = 0; l < K; ++l) place += size[l] > size[k] || (size[l] == size[k] && l < k);
        order[k] = place;
    }
}

// The rotations that `jacobi_angles` wrote down, done to an identity: a warp for each row, whose threads hold what is in the
// places of one or two pairs and pass it on after each turn.
#define N (K + K % 2)
#define PAIRS (N / 2)
#define EACH ((PAIRS + 31) / 32)
#define AHEAD 8
#define ALL 0xffffffffu

struct Turns { float2 of[AHEAD][EACH]; };

__device__ __forceinline__ void fetch(Turns& held, const float2* turns, int start, int end, int first) {
    #pragma unroll
    for (int r = 0; r < AHEAD; ++r)
        #pragma unroll
        for (int e = 0; e < EACH; ++e)
            held.of[r][e] = start + r < end && first + e < PAIRS
                ? turns[(start + r) * PAIRS + first + e] : make_float2(0.f, 0.f);
}

extern "C" __global__ __launch_bounds__(32 * WARPS) void jacobi_apply(
    const float2* turns, const int* rounds, const int* order, float* Q
) {
    turns += (size_t)blockIdx.y * SWEEPS * (N - 1) * PAIRS;  // of several cases
    rounds += blockIdx.y;
    order += blockIdx.y * K;
    Q += (size_t)blockIdx.y * K * K;
    int lane = threadIdx.x % 32, k = blockIdx.x * WARPS + threadIdx.x / 32, end = *rounds, first = lane * EACH;
    if (k >= K) return;
    float p[EACH], q[EACH];
    #pragma unroll
    for (int e = 0; e < EACH; ++e) { p[e] = first + e == k; q[e] = N - 1 - first - e == k; }
    Turns now, later;
    fetch(later, turns, 0, end, first);
    for (int start = 0; start < end; start += AHEAD) {
        now = later;
        fetch(later, turns, start + AHEAD, end, first);  // before these are waited for
        #pragma unroll
        for (int r = 0; r < AHEAD; ++r) {
            if (start + r >= end) break;
            #pragma unroll
            for (int e = 0; e < EACH; ++e) {
                float2 t = now.of[r][e];
                float x = p[e], y = q[e];
                p[e] = x - t.x * (y + t.y * x);
                q[e] = y + t.x * (x - t.y * y);
            }
            // place 0 stays, 1 goes to N - 1, each other one to the place before it
            float before = __shfl_up_sync(ALL, q[EACH - 1], 1), behind = __shfl_down_sync(ALL, p[0], 1);
            float second = EACH > 1 ? p[EACH - 1] : behind, last = q[EACH - 1];
            if (EACH > 1) last = (PAIRS - 1) % EACH ? q[EACH - 1] : q[0];
            float stays = p[0];
            #pragma unroll
            for (int e = 0; e + 1 < EACH; ++e) p[e] = p[e + 1];
            #pragma unroll
            for (int e = EACH - 1; e > 0; --e) q[e] = q[e - 1];
            p[EACH - 1] = behind;
            q[0] = before;
            if (first <= PAIRS - 1 && PAIRS - 1 < first + EACH) p[(PAIRS - 1) % EACH] = last;
            if (lane == 0) { p[0] = stays; q[0] = PAIRS > 1 ? second : last; }
        }
    }
    #pragma unroll
    for (int e = 0; e < EACH; ++e)
        if (first + e < PAIRS) {
            int other = N - 1 - first - e;
            Q[k * K + order[first + e]] = p[e];
            if (other < K) Q[k * K + order[other]] = q[e];
        }
}

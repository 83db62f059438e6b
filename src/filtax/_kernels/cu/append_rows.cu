// Rows P (O, D) into U from row `count` on, if they are taken, and mean + move P: a thread reads the numbers of a
// parameter once.
// Given: K, O, D.
extern "C" __global__ void append_rows(
    const float *, const float *__restrict__ P, const float *__restrict__ mean, const float *__restrict__ move,
    const int *__restrict__ count, const unsigned char *__restrict__ taken, float *__restrict__ U,
    float *__restrict__ moved
) {
    const int d = blockIdx.x * blockDim.x + threadIdx.x;
    if (d >= D) return;
    float x[O], sum = 0.0f;
#pragma unroll
    for (int o = 0; o < O; o++) x[o] = P[o * (long long)D + d];
#pragma unroll
    for (int o = 0; o < O; o++) sum += move[o] * x[o];
    moved[d] = mean[d] + sum;
    if (!*taken) return;
    float *to = U + min(max(*count, 0), K - O) * (long long)D + d;
#pragma unroll
    for (int o = 0; o < O; o++) to[o * (long long)D] = x[o];
}

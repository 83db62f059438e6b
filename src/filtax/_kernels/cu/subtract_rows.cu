// P - c U (O, D) over the first `count` rows of U, written over P; where that is none nothing is read.
// Given: K, O, D.
extern "C" __global__ void subtract_rows(
    const float *, const float *__restrict__ U, const float *__restrict__ c, const int *__restrict__ count,
    float *__restrict__ P
) {
    const int n = min(max(*count, 0), K);
    if (n == 0) return;
    for (int d = blockIdx.x * blockDim.x + threadIdx.x; d < D; d += gridDim.x * blockDim.x) {
        float x[O];
#pragma unroll
        for (int o = 0; o < O; o++) x[o] = 0.0f;
        for (int k = 0; k < n; k++) {
            const float u = U[k * (long long)D + d];
#pragma unroll
            for (int o = 0; o < O; o++) x[o] += c[o * K + k] * u;
        }
#pragma unroll
        for (int o = 0; o < O; o++) P[o * (long long)D + d] -= x[o];
    }
}

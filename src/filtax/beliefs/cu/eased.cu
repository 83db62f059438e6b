// P - A J diag(V) (O, D), written over P, if it is wanted: else nothing is read.
// Given: O, D, ONE (V is one number).
extern "C" __global__ void eased(
    const float *, const float *__restrict__ J, const float *__restrict__ V, const float *__restrict__ A,
    const unsigned char *__restrict__ wanted, float *__restrict__ P
) {
    if (!*wanted) return;
    for (int d = blockIdx.x * blockDim.x + threadIdx.x; d < D; d += gridDim.x * blockDim.x) {
        const float v = V[ONE ? 0 : d];
        float x[O];
#pragma unroll
        for (int o = 0; o < O; o++) x[o] = J[o * (long long)D + d] * v;
#pragma unroll
        for (int i = 0; i < O; i++) {
            float sum = P[i * (long long)D + d];
#pragma unroll
            for (int o = 0; o < O; o++) sum -= A[i * O + o] * x[o];
            P[i * (long long)D + d] = sum;
        }
    }
}

// c J (N, D) for c (N, O): a thread reads the numbers of a parameter once.
// Given: N, O, D.
extern "C" __global__ void mixed(const float *__restrict__ c, const float *__restrict__ J, float *__restrict__ out) {
    const int d = blockIdx.x * blockDim.x + threadIdx.x;
    if (d >= D) return;
    float x[O];
#pragma unroll
    for (int o = 0; o < O; o++) x[o] = J[o * (long long)D + d];
#pragma unroll 2
    for (int n = 0; n < N; n++) {
        float sum = 0.0f;
#pragma unroll
        for (int o = 0; o < O; o++) sum += c[n * O + o] * x[o];
        out[n * (long long)D + d] = sum;
    }
}

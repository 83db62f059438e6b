// A datum's columns of R and rows of L, in place.
extern "C" __global__ void placed(
    const float* core, const float* root, const int* used, const unsigned char* taken, const float* B,
    const float* half, const float* c, const float* L, float* core_, float* root_
) {
    size_t at = blockIdx.y;  // of several cases
    B += at * O * O; half += at * K * O; c += at * K * O; L += at * O * O; core_ += at * K * K; root_ += at * K * K;
    int n = used[at];
    if (!taken[at] || n < 0 || n + O > K) return;
    for (int t = threadIdx.x; t < O * O; t += blockDim.x) {
        int i = t / O, j = t % O;
        core_[(n + i) * K + n + j] = B[j * O + i];
        root_[(n + i) * K + n + j] = L[t];
    }
    for (int t = threadIdx.x; t < O * n; t += blockDim.x) {
        int i = t / n, k = t % n;
        float sum = 0.f, more = 0.f;
        for (int j = 0; j < O; ++j) {
            sum += B[i * O + j] * half[k * O + j];
            more += B[i * O + j] * c[j * K + k];
        }
        root_[(n + i) * K + k] = sum;
        core_[k * K + n + i] = more;
    }
}

// A datum's columns of R, rows of L and, where OVERLAP, rows and columns of N = W'W, in place; N stays if it is not known,
// which a negative number at its beginning says. Given: K, O, OVERLAP.
extern "C" __global__ void scatter_block(
    const float* prec_factor, const float* root, const int* used, const unsigned char* taken, const float* B,
    const float* half, const float* c, const float* L,
#if OVERLAP
    const float* cross, const float* own, const float* overlap, float* prec_factor_, float* root_, float* overlap_
#else
    float* prec_factor_, float* root_
#endif
) {
    size_t at = blockIdx.y;  // of several cases
    B += at * O * O; half += at * K * O; c += at * K * O; L += at * O * O; prec_factor_ += at * K * K; root_ += at * K * K;
    int n = used[at];
    if (!taken[at] || n < 0 || n + O > K) return;
    for (int t = threadIdx.x; t < O * O; t += blockDim.x) {
        int i = t / O, j = t % O;
        prec_factor_[(n + i) * K + n + j] = B[j * O + i];
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
        prec_factor_[k * K + n + i] = more;
    }
#if OVERLAP
    cross += at * K * O; own += at * O * O; overlap_ += at * K * K;
    if (overlap_[0] < 0.f) return;
    __shared__ float seen[K * O], mine[O * O];  // R' cross, own B'
    for (int t = threadIdx.x; t < O * n; t += blockDim.x) {
        int j = t / n, k = t % n;
        float sum = 0.f;
        #pragma unroll 8
        for (int m = 0; m < n; ++m) sum += prec_factor_[m * K + k] * cross[m * O + j];
        seen[k * O + j] = sum;
    }
    for (int t = threadIdx.x; t < O * O; t += blockDim.x) {
        int i = t / O, j = t % O;
        float sum = 0.f;
        for (int m = 0; m < O; ++m) sum += own[i * O + m] * B[j * O + m];
        mine[t] = sum;
    }
    __syncthreads();
    for (int t = threadIdx.x; t < O * (n + O); t += blockDim.x) {
        int i = t / (n + O), k = t % (n + O);
        float sum = 0.f;
        for (int j = 0; j < O; ++j) sum += B[i * O + j] * (k < n ? seen[k * O + j] : mine[j * O + k - n]);
        if (!isfinite(sum)) sum = 3.4028234e38f;  // a belief holds finite numbers
        overlap_[(n + i) * K + k] = sum;
        if (k < n) overlap_[k * K + n + i] = sum;
    }
#endif
}

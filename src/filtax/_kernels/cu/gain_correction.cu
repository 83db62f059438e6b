// (S (S's - g))' (O, K) with g = L^-1 L^-T h, of the rows in use; a warp for each output. Nothing is read where none is.
// Given: K, O.
extern "C" __global__ __launch_bounds__(32 * O) void gain_correction(
    const float* s, const float* h, const float* S, const float* L, const int* used, float* c
) {
    size_t at = blockIdx.y;                   // of several cases
    s += at * K * O; h += at * K * O; S += at * K * K; L += at * K * K; c += at * O * K;
    int lane = threadIdx.x % 32, o = threadIdx.x / 32, n = min(max(used[at], 0), K);
    __shared__ float all[O][K];
    float* x = all[o];
    for (int k = lane; k < n; k += 32) x[k] = h[k * O + o];
    for (int k = n - 1; k >= 0; --k) {        // L' x = h
        __syncwarp();
        float found = x[k] / L[k * K + k];
        __syncwarp();
        for (int j = lane; j < k; j += 32) x[j] -= L[k * K + j] * found;
        if (lane == 0) x[k] = found;
    }
    for (int k = 0; k < n; ++k) {             // L g = x
        __syncwarp();
        float found = x[k] / L[k * K + k];
        __syncwarp();
        for (int j = k + 1 + lane; j < n; j += 32) x[j] -= L[j * K + k] * found;
        if (lane == 0) x[k] = found;
    }
    __syncwarp();
    for (int k = lane; k < n; k += 32) {
        float sum = 0.f;
        for (int j = 0; j < n; ++j) sum += S[j * K + k] * s[j * O + o];
        x[k] = sum - x[k];
    }
    __syncwarp();
    for (int k = lane; k < K; k += 32) {
        float sum = 0.f;
        if (k < n)
            for (int j = 0; j < n; ++j) sum += S[k * K + j] * x[j];
        c[o * K + k] = sum;
    }
}

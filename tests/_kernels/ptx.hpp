// What `cu/ptx.cu` says, for one machine's threads: copies are made at once, and a warp multiplies what its lanes hold.
typedef unsigned int word;

inline void fetch(float* to, const float* from, bool inside) { *to = inside ? *from : 0.f; }
inline void fetched() {}
template <int LATER> void arrived() {}
template <int THREADS> void meet() {
    static std::barrier<> some(THREADS);
    some.arrive_and_wait();
}

inline float rounded(word x) { return __uint_as_float(x & 0xffffe000u); } // tensor cores do not see the rest

inline void multiply(float (&c)[4], const word (&a)[4], const word (&b)[2]) {
    static float A[32][16][8], B[32][8][8];
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    for (int i = 0; i < 4; ++i) A[warp][g + i % 2 * 8][t + i / 2 * 4] = rounded(a[i]);
    for (int i = 0; i < 2; ++i) B[warp][t + 4 * i][g] = rounded(b[i]);
    __syncwarp();
    for (int i = 0; i < 4; ++i)
        for (int k = 0; k < 8; ++k) c[i] += A[warp][g + i / 2 * 8][k] * B[warp][k][2 * t + i % 2];
    __syncwarp();
}

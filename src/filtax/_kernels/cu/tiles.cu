// Tools of the passes over U (K, D), put before each of them. A block takes tiles of WIDE parameters, with all their rows,
// into shared memory: its first warps move them, the others work on what has arrived. D need not be a multiple of four,
// so that four bytes are copied at a time; what counts is that many of a row lie side by side (on an H200, 32 of them
// reach 2.9 TB/s and 128 reach 4.2).
typedef long long wide; // D times a number of rows

// The parameters of a tile of some rows, by the first MOVERS warps.
template <int STRIDE> __device__ __forceinline__ void fetch_rows(float *to, const float *from, int rows, int tile) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = tile * WIDE + lane;
    to += warp * STRIDE + lane;
    from += warp * (wide)D + first;
    for (int r = warp; r < rows; r += MOVERS, to += MOVERS * STRIDE, from += MOVERS * (wide)D)
#pragma unroll
        for (int i = 0; i < WIDE; i += 32) fetch(to + i, from + i, first + i < D);
}

// A float32 as the sum of two TF32 numbers: the nearest one, and what is left.
__device__ __forceinline__ void split(float x, word &big, word &small) {
    big = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
    small = __float_as_uint(x - __uint_as_float(big));
}

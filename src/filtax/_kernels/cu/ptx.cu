// What is said in PTX, as CUDA C has no words for it.
typedef unsigned int word;

// Four bytes into shared memory, without a register and without waiting; zero where nothing is.
__device__ __forceinline__ void fetch(float *to, const float *from, bool inside) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((word)__cvta_generic_to_shared(to)), "l"(from),
                 "r"(inside ? 4 : 0) : "memory");
}
__device__ __forceinline__ void fetched() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LATER> __device__ __forceinline__ void arrived() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory");
}

// A barrier of the last warps of a block alone, which have so many threads.
template <int THREADS> __device__ __forceinline__ void meet() {
    asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory");
}

// c (16, 8) += a (16, 8) b (8, 8). Lane 4 g + t holds a at rows g, g + 8 and columns t, t + 4, b at rows t, t + 4 and
// column g, and c at rows g, g + 8 and columns 2 t, 2 t + 1. Tensor cores cut off what they add instead of rounding it:
// a sum over many parameters is therefore left to them for a few products only.
__device__ __forceinline__ void multiply(float (&c)[4], const word (&a)[4], const word (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

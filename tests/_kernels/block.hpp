// Enough of CUDA to run the kernels of one block on any machine: a thread for each of its threads, and barriers.
// What a compiler for CUDA alone understands (`asm`, memory given at the launch) is replaced in the text beforehand.
#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

using std::isfinite;
using std::max;
using std::min;

struct Place { int x = 0, y = 0; };
struct float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
inline float2 make_float2(float x, float y) { return {x, y}; }

static thread_local Place threadIdx, blockIdx;
static Place blockDim, gridDim;
static std::unique_ptr<std::barrier<>> everyone;
static std::vector<std::unique_ptr<std::barrier<>>> warps;
static float passed[32][32];
static bool votes[1024];
alignas(16) static float given[1 << 16];

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))

inline void __syncthreads() { everyone->arrive_and_wait(); }
inline void __syncwarp() { warps[threadIdx.x / 32]->arrive_and_wait(); }

inline float __shfl_sync(unsigned, float value, int from) {
    float* row = passed[threadIdx.x / 32];
    row[threadIdx.x % 32] = value;
    __syncwarp();
    float found = row[from & 31];
    __syncwarp();
    return found;
}
inline float __shfl_xor_sync(unsigned all, float value, int hop) {
    return __shfl_sync(all, value, (threadIdx.x % 32) ^ hop);
}
inline float __shfl_up_sync(unsigned all, float value, int by) {
    return __shfl_sync(all, value, max(threadIdx.x % 32 - by, threadIdx.x % 32 < by ? threadIdx.x % 32 : 0));
}
inline float __shfl_down_sync(unsigned all, float value, int by) {
    return __shfl_sync(all, value, threadIdx.x % 32 + by > 31 ? threadIdx.x % 32 : threadIdx.x % 32 + by);
}
inline bool voted(bool vote, int first, int count, void (*wait)()) {
    votes[threadIdx.x] = vote;
    wait();
    bool all = std::all_of(votes + first, votes + first + count, [](bool one) { return one; });
    wait();
    return all;
}
inline int __syncthreads_and(bool vote) { return voted(vote, 0, blockDim.x, __syncthreads); }
inline bool __all_sync(unsigned, bool vote) { return voted(vote, threadIdx.x / 32 * 32, 32, __syncwarp); }
inline float __fdividef(float a, float b) { return a / b; }

inline unsigned __float_as_uint(float x) { unsigned y; std::memcpy(&y, &x, 4); return y; }
inline float __uint_as_float(unsigned x) { float y; std::memcpy(&y, &x, 4); return y; }

template <class... Kinds> void given_to(void (*kernel)(Kinds...), void** a) {
    [&]<std::size_t... k>(std::index_sequence<k...>) { kernel((Kinds)a[k]...); }(std::index_sequence_for<Kinds...>());
}

template <class Call> void launch(int blocks, int cases, int threads, Call call) {
    blockDim.x = threads;
    gridDim.x = blocks;
    for (int block = 0; block < blocks * cases; ++block) {
        everyone = std::make_unique<std::barrier<>>(threads);
        warps.clear();
        for (int warp = 0; warp < threads / 32; ++warp) warps.push_back(std::make_unique<std::barrier<>>(32));
        std::vector<std::thread> all;
        for (int thread = 0; thread < threads; ++thread)
            all.emplace_back([=] {
                threadIdx.x = thread;
                blockIdx.x = block % blocks;
                blockIdx.y = block / blocks;
                call();
                everyone->arrive_and_drop();
            });
        for (auto& one : all) one.join();
    }
}

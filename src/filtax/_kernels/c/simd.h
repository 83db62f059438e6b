// Vectors of float32 of the width that this processor has.

#include "handler.h"

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
typedef float vec __attribute__((vector_size(4 * LANES)));

static inline vec load(const float* p) { vec v; memcpy(&v, p, sizeof v); return v; }
static inline void store(float* p, vec v) { memcpy(p, &v, sizeof v); }
static inline vec broadcast(float x) { return x - (vec){0}; }
typedef float quad __attribute__((vector_size(16)));

static inline quad fold(vec v) {  // four sums of LANES / 4 lanes each
  quad part[LANES / 4];
  memcpy(part, &v, sizeof v);
  for (int step = LANES / 8; step; step /= 2)
    for (int i = 0; i < step; i++) part[i] += part[i + step];
  return part[0];
}
static inline float sum_lanes(vec v) {
  quad part = fold(v);
  return (part[0] + part[2]) + (part[1] + part[3]);
}

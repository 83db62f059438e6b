// A loop over PARTS parts, shared with XLA's own threads where there are any.
//
// The number of parts does not depend on that of the threads, and their sums are added in order: every run gives the same
// numbers. A core gets the share that it had before: cores that are far apart pass cache lines to each other at a tenth of
// the speed at which they read their own.

#include "handler.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#define PARTS 16
#define ALONE 32768  // numbers to read that are not worth another thread
#define CORES 4096

typedef struct {  // of the parts, on a cache line of its own
  _Alignas(64) atomic_int held, next, done;
  int end;
} Share;

typedef struct Loop {
  Share share[PARTS];
  _Alignas(64) atomic_int held, out_of_memory;  // memory, where a part found none
  void (*part)(struct Loop*, int);
  const XLA_FFI_CallFrame* call;
  float* sums;  // (PARTS, size), of each part
  num size, D;
  int threads;
} Loop;

// The number of this core among those that have worked: they come in no order, and may lie apart in the machine's count.
static int place(void) {
  static atomic_int of[CORES], known;
#ifdef __linux__
  int core = sched_getcpu();
#else
  int core = 0;
#endif
  if (core < 0 || core >= CORES) return 0;
  int found = atomic_load(&of[core]);
  if (found) return found - 1;
  int fresh = atomic_fetch_add(&known, 1) + 1;
  return (atomic_compare_exchange_strong(&of[core], &found, fresh) ? fresh : found) - 1;
}

static void release(Loop* loop) { if (atomic_fetch_sub(&loop->held, 1) == 1) { free(loop->sums); free(loop); } }

static int64_t nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void take(Loop* loop, Share* share) {
  for (int at; (at = atomic_fetch_add(&share->next, 1)) < share->end;) {
    loop->part(loop, at);
    atomic_fetch_add(&share->done, 1);
  }
}

static int done(Loop* loop) {
  int parts = 0;
  for (int i = 0; i < loop->threads; i++) parts += atomic_load(&loop->share[i].done);
  return parts == PARTS;
}

// The share that this core had, or else the first that nobody has.
static int own_share(Loop* loop) {
  int wanted = place() % loop->threads, at = wanted;
  for (int i = 0; i < loop->threads && atomic_exchange(&loop->share[at].held, 1); i++) at = (wanted + i + 1) % loop->threads;
  return at;
}

// Our own share; then what is left, if the others take twice as long: they have not come, or their core does other work.
static void help(void* data) {
  Loop* loop = data;
  int own = own_share(loop);
  int64_t began = nanoseconds();
  take(loop, &loop->share[own]);
  int64_t late = 2 * nanoseconds() - began;
  while (!done(loop) && nanoseconds() < late) sched_yield();
  for (int i = 1; i < loop->threads; i++) take(loop, &loop->share[(own + i) % loop->threads]);
  release(loop);
}

// What XLA says where there are no threads to be had: then we go on alone.
static int failed_quietly(XLA_FFI_CallFrame* call, XLA_FFI_Error* said) {
  if (!said) return 0;
  XLA_FFI_Error_Destroy_Args drop = {sizeof drop, NULL, said};
  call->api->XLA_FFI_Error_Destroy(&drop);
  return 1;
}

// Run all parts over D parameters, of `read` numbers in all; the sums of the parts are the result `into` of `size` numbers.
static XLA_FFI_Error* parallel_for(XLA_FFI_CallFrame* call, void (*part)(Loop*, int), num D, num read, num size, float* into) {
  Loop* loop = aligned_alloc(64, sizeof *loop);
  float* sums = calloc(PARTS * (size ? size : 1), sizeof(float));
  if (!loop || !sums) {
    free(loop), free(sums);
    return no_memory(call);
  }
  memset(loop, 0, sizeof *loop);
  loop->part = part, loop->call = call, loop->size = size, loop->D = D, loop->sums = sums;
  int64_t threads = 1;
  XLA_FFI_ThreadPool_NumThreads_Args ask = {sizeof ask, NULL, call->ctx, &threads};
  if (failed_quietly(call, call->api->XLA_FFI_ThreadPool_NumThreads(&ask)) || threads < 1) threads = 1;
  loop->threads = threads = min_of(min_of(threads, PARTS), 1 + read / ALONE);
  for (int i = 0; i < threads; i++) {
    atomic_store(&loop->share[i].next, i * PARTS / threads);
    loop->share[i].end = (i + 1) * PARTS / threads;
  }
  atomic_store(&loop->held, 2);  // ours, and that of the loop that asks for helpers
  for (int i = 1; i < threads; i++) {
    atomic_fetch_add(&loop->held, 1);
    XLA_FFI_ThreadPool_Schedule_Args more = {sizeof more, NULL, call->ctx, help, loop};
    if (failed_quietly(call, call->api->XLA_FFI_ThreadPool_Schedule(&more))) { atomic_fetch_sub(&loop->held, 1); break; }
  }
  help(loop);
  while (!done(loop)) sched_yield();
  if (size) memcpy(into, sums, size * sizeof(float));
  for (int at = 1; at < PARTS; at++)
    for (num i = 0; i < size; i++) into[i] += sums[at * size + i];
  int out_of_memory = atomic_load(&loop->out_of_memory);
  release(loop);
  return out_of_memory ? no_memory(call) : NULL;
}

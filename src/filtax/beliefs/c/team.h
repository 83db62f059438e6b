// Work in parts, shared with XLA's own threads where there are any.
//
// Parts are PARTS, whatever the number of threads, and their sums are added in their order: the same numbers on every run.
// A core has the share that it had the time before: those that are far apart hand each other's lines over at a tenth of the
// speed at which they read their own.

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

typedef struct Team {
  Share share[PARTS];
  _Alignas(64) atomic_int held, short_of;  // memory, where a part found none
  void (*part)(struct Team*, int);
  const XLA_FFI_CallFrame* call;
  float* sums;  // (PARTS, size), of each part
  num size, D;
  int threads;
} Team;

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

static void release(Team* team) { if (atomic_fetch_sub(&team->held, 1) == 1) { free(team->sums); free(team); } }

static int64_t nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void take(Team* team, Share* share) {
  for (int at; (at = atomic_fetch_add(&share->next, 1)) < share->end;) {
    team->part(team, at);
    atomic_fetch_add(&share->done, 1);
  }
}

static int done(Team* team) {
  int parts = 0;
  for (int i = 0; i < team->threads; i++) parts += atomic_load(&team->share[i].done);
  return parts == PARTS;
}

// The share that this core had, or else the first that nobody has.
static int own_share(Team* team) {
  int wanted = place() % team->threads, at = wanted;
  for (int i = 0; i < team->threads && atomic_exchange(&team->share[at].held, 1); i++) at = (wanted + i + 1) % team->threads;
  return at;
}

// Our own share; then what is left, if the others take twice as long: they have not come, or their core does other work.
static void help(void* data) {
  Team* team = data;
  int own = own_share(team);
  int64_t began = nanoseconds();
  take(team, &team->share[own]);
  int64_t late = 2 * nanoseconds() - began;
  while (!done(team) && nanoseconds() < late) sched_yield();
  for (int i = 1; i < team->threads; i++) take(team, &team->share[(own + i) % team->threads]);
  release(team);
}

// What XLA says where there are no threads to be had: then we go on alone.
static int refused(XLA_FFI_CallFrame* call, XLA_FFI_Error* said) {
  if (!said) return 0;
  XLA_FFI_Error_Destroy_Args drop = {sizeof drop, NULL, said};
  call->api->XLA_FFI_Error_Destroy(&drop);
  return 1;
}

// Run all parts over D parameters, of `read` numbers in all; the sums of the parts are the result `into` of `size` numbers.
static XLA_FFI_Error* all_parts(XLA_FFI_CallFrame* call, void (*part)(Team*, int), num D, num read, num size, float* into) {
  Team* team = aligned_alloc(64, sizeof *team);
  float* sums = calloc(PARTS * (size ? size : 1), sizeof(float));
  if (!team || !sums) {
    free(team), free(sums);
    return no_memory(call);
  }
  memset(team, 0, sizeof *team);
  team->part = part, team->call = call, team->size = size, team->D = D, team->sums = sums;
  int64_t threads = 1;
  XLA_FFI_ThreadPool_NumThreads_Args ask = {sizeof ask, NULL, call->ctx, &threads};
  if (refused(call, call->api->XLA_FFI_ThreadPool_NumThreads(&ask)) || threads < 1) threads = 1;
  team->threads = threads = least(least(threads, PARTS), 1 + read / ALONE);
  for (int i = 0; i < threads; i++) {
    atomic_store(&team->share[i].next, i * PARTS / threads);
    team->share[i].end = (i + 1) * PARTS / threads;
  }
  atomic_store(&team->held, 2);  // ours, and that of the loop that asks for helpers
  for (int i = 1; i < threads; i++) {
    atomic_fetch_add(&team->held, 1);
    XLA_FFI_ThreadPool_Schedule_Args more = {sizeof more, NULL, call->ctx, help, team};
    if (refused(call, call->api->XLA_FFI_ThreadPool_Schedule(&more))) { atomic_fetch_sub(&team->held, 1); break; }
  }
  help(team);
  while (!done(team)) sched_yield();
  if (size) memcpy(into, sums, size * sizeof(float));
  for (int at = 1; at < PARTS; at++)
    for (num i = 0; i < size; i++) into[i] += sums[at * size + i];
  int short_of = atomic_load(&team->short_of);
  release(team);
  return short_of ? no_memory(call) : NULL;
}

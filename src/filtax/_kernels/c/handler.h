// Access to the arrays of a handler, and the answer when XLA asks for its metadata.

#pragma once
#define _GNU_SOURCE

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "xla/ffi/api/c_api.h"

typedef int64_t num;

static inline const XLA_FFI_Buffer* input_buffer(const XLA_FFI_CallFrame* call, int i) { return call->args.args[i]; }
static inline const void* input(const XLA_FFI_CallFrame* call, int i) { return input_buffer(call, i)->data; }
static inline num dim(const XLA_FFI_CallFrame* call, int i, int axis) { return input_buffer(call, i)->dims[axis]; }
static inline int is_scalar(const XLA_FFI_CallFrame* call, int i) { return input_buffer(call, i)->rank == 0; }
static inline const XLA_FFI_Buffer* output_buffer(const XLA_FFI_CallFrame* call, int i) { return call->rets.rets[i]; }
static inline float* output(const XLA_FFI_CallFrame* call, int i) { return output_buffer(call, i)->data; }
static inline num min_of(num a, num b) { return a < b ? a : b; }

static inline int is_metadata_query(XLA_FFI_CallFrame* call) {
  __typeof__(call->extension_start) first = call->extension_start;  // its name is another one from jaxlib 0.11 on
  if (!first || first->type != XLA_FFI_Extension_Metadata) return 0;
  XLA_FFI_Metadata* metadata = ((XLA_FFI_Metadata_Extension*)first)->metadata;
  metadata->api_version.major_version = XLA_FFI_API_MAJOR;
  metadata->api_version.minor_version = XLA_FFI_API_MINOR;
  metadata->traits = 0;
  metadata->state_type_id.type_id = 0;
  return 1;
}

static inline XLA_FFI_Error* no_memory(XLA_FFI_CallFrame* call) {
  XLA_FFI_Error_Create_Args said = {sizeof said, NULL, "filtax: no memory is left", XLA_FFI_Error_Code_RESOURCE_EXHAUSTED};
  return call->api->XLA_FFI_Error_Create(&said);
}

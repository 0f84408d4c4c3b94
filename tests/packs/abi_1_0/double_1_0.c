/* A pack of ABI 1.0, written against the frozen header alone: Y = 2 * X, with a weight and scratch.
 */
#include <string.h>

#include "tests/packs/abi_1_0/mk_pack_1_0.h"

struct mk_model {
  const float* factor;
};

static struct mk_model the_model; /* one at a time, as a pack may not: enough for a test */

static mk_status Describe(const mk_host* host, const mk_signature* signature) {
  const mk_i64 any[] = {-1};
  const mk_tensor_spec x = {sizeof(mk_tensor_spec), "X", MK_DTYPE_FP32, 0, 1, any};
  const mk_tensor_spec y = {sizeof(mk_tensor_spec), "Y", MK_DTYPE_FP32, 0, 1, any};
  const mk_status s = signature->add_input(signature->self, &x);
  (void)host;
  return s ? s : signature->add_output(signature->self, &y);
}

static mk_status Create(const mk_host* host, mk_model** model) {
  const mk_weights_service* weights = host->service(host->self, MK_SERVICE_WEIGHTS);
  const mk_i64 shape[] = {2};
  void* memory = NULL;
  mk_weight weight = {"w", MK_DTYPE_FP32, 1, shape, NULL, 0, 0};
  mk_status s;
  if (weights == NULL || weights->struct_size < sizeof *weights) return MK_FAILED_PRECONDITION;
  s = weights->allocate(weights->self, 2 * sizeof(float), &memory);
  if (s) return s;
  weight.data = memory;
  s = weights->load(weights->self, "model.safetensors", &weight, 1);
  if (s) return s;
  the_model.factor = memory;
  *model = &the_model;
  return MK_OK;
}

static mk_status Run(mk_model* model, const mk_run* run) {
  const mk_tensor* x = &run->inputs[0];
  void *t = NULL, *y = NULL;
  mk_i64 i;
  mk_status s = run->scratch(run->self, x->size_bytes, &t);
  if (s) return s;
  s = run->output(run->self, "Y", MK_DTYPE_FP32, 1, x->shape, x->size_bytes, &y);
  if (s) return s;
  if (x->size_bytes) memcpy(t, x->data, x->size_bytes);
  for (i = 0; i < x->shape[0]; ++i) ((float*)y)[i] = model->factor[0] * ((const float*)t)[i];
  return MK_OK;
}

static void Destroy(mk_model* model) { (void)model; }

extern const mk_pack mk_pack_entry;
__attribute__((visibility("default"))) const mk_pack mk_pack_entry = {
    MK_PACK_MAGIC, MK_ABI_MAJOR, MK_ABI_MINOR, sizeof(mk_pack), 0,   "double", 1, "C, ABI 1.0",
    &Describe,     &Create,      &Run,         &Destroy,        NULL};

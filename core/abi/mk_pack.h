/* The contract between the daemon ("host") and a model pack, version 1.2.
 *
 * A pack is a shared object that exports ONE data symbol, `mk_pack_entry` (MK_PACK_ENTRY_SYMBOL),
 * of type `mk_pack`. The host reads its first five fields before it calls anything, and refuses by
 * name whatever does not fit.
 *
 * Rules that hold for every table and function here
 *  - C11: fixed-width integers, pointers and arrays of them. No enum by value, no C++ type, no
 * exception crosses.
 *  - Each table begins with `struct_size`, the size its maker was compiled with. Fields are only
 * ever appended. Nobody reads past the other side's `struct_size`. A minor version appends; a major
 * version breaks.
 *  - Errors are an `mk_status`: 0, or a code numerically equal to gRPC's. The message goes through
 * `set_error` of the table at hand, before the function returns; the host copies it. A code without
 * a message is legal.
 *  - Strings are UTF-8. Those called "C string" end in NUL; all others are (pointer, size).
 *  - Nothing allocated on one side is freed on the other.
 *  - Whoever passes a pointer keeps it alive until the call returns, unless the field says
 * otherwise.
 *
 * Life of a model:  describe -> create -> run* -> destroy.
 * Threads: `describe`, `create` and `destroy` are called from one thread at a time per model. `run`
 * is called from one thread per lane, so from several at once on one model when its manifest asks
 * for more than one lane. The host never calls `destroy` while a `run` is under way, and never
 * calls into a pack after it began to unload it.
 *
 * What a pack may not do: create threads, own a thread_local, have static constructors or mutable
 * statics, export a second symbol, need a library other than libc, libm, libstdc++, libgcc_s (and
 * ld.so). The build rule `mk_pack` sees to it, the loader checks it. docs/abi/ explains each rule.
 */
#ifndef MERGEKERNEL_CORE_ABI_MK_PACK_H_
#define MERGEKERNEL_CORE_ABI_MK_PACK_H_

#include <stddef.h>

#include "core/abi/mk_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MK_PACK_MAGIC UINT64_C(0x31304b4341504b4d) /* the bytes "MKPACK01", little-endian */
#define MK_ABI_MAJOR 1u
#define MK_ABI_MINOR 2u
#define MK_PACK_ENTRY_SYMBOL "mk_pack_entry"

/* ---- Status: numerically gRPC's codes
 * ------------------------------------------------------------------------- */
typedef mk_i32 mk_status;
#define MK_OK 0
#define MK_CANCELLED 1
#define MK_UNKNOWN 2
#define MK_INVALID_ARGUMENT 3
#define MK_DEADLINE_EXCEEDED 4
#define MK_NOT_FOUND 5
#define MK_ALREADY_EXISTS 6
#define MK_PERMISSION_DENIED 7
#define MK_RESOURCE_EXHAUSTED 8
#define MK_FAILED_PRECONDITION 9
#define MK_ABORTED 10
#define MK_OUT_OF_RANGE 11
#define MK_UNIMPLEMENTED 12
#define MK_INTERNAL 13
#define MK_UNAVAILABLE 14
#define MK_DATA_LOSS 15

/* ---- Tensors
 * --------------------------------------------------------------------------------------------------
 */
/* Element types. The numbers are this ABI's own; the names are the Open Inference Protocol's. */
typedef mk_u32 mk_dtype;
#define MK_DTYPE_INVALID 0u
#define MK_DTYPE_BOOL 1u /* one byte, 0 or 1 */
#define MK_DTYPE_UINT8 2u
#define MK_DTYPE_UINT16 3u
#define MK_DTYPE_UINT32 4u
#define MK_DTYPE_UINT64 5u
#define MK_DTYPE_INT8 6u
#define MK_DTYPE_INT16 7u
#define MK_DTYPE_INT32 8u
#define MK_DTYPE_INT64 9u
#define MK_DTYPE_FP16 10u
#define MK_DTYPE_FP32 11u
#define MK_DTYPE_FP64 12u
#define MK_DTYPE_BF16 13u
#define MK_DTYPE_BYTES \
  14u /* per element: uint32 little-endian length, then that many bytes, packed */

#define MK_MAX_RANK 8u

/* A tensor somebody else owns. Row-major, dense, little-endian. `data` may be NULL when
 * `size_bytes` is 0; otherwise it is aligned to the element size at least. Memory space: that of
 * the device the model runs on, but for BYTES, which is always host memory. */
typedef struct mk_tensor {
  const char* name; /* C string */
  mk_dtype dtype;
  mk_u32 rank;
  const mk_i64* shape; /* `rank` dims, each >= 0 */
  const void* data;
  mk_u64 size_bytes;
} mk_tensor;

/* ---- Host services
 * -------------------------------------------------------------------------------------------- */
/* `mk_host.service(id)` returns a pointer to the table named by `id`, or NULL where this host does
 * not offer it. Tables live as long as the model. Every function of a table takes that table's
 * `self`. */

/* "mk.log/1". Any thread; does not block on I/O. Levels: 0 debug, 1 info, 2 warning, 3 error. Long
 * messages are cut. */
#define MK_SERVICE_LOG "mk.log/1"
typedef struct mk_log_service {
  mk_u32 struct_size;
  mk_u32 reserved;
  void* self;
  void (*write)(void* self, mk_i32 level, const char* message, mk_u64 size);
} mk_log_service;

/* "mk.files/1": the pack's own small files, exactly the bytes whose digest the manifest states.
 * Only during `describe` and `create`. `data` stays valid until `create` returns. NOT_FOUND names a
 * file that the manifest does not list. */
#define MK_SERVICE_FILES "mk.files/1"
typedef struct mk_files_service {
  mk_u32 struct_size;
  mk_u32 reserved;
  void* self;
  mk_status (*read)(void* self, const char* name, const void** data, mk_u64* size_bytes);
  /* Value of a manifest parameter, or NULL. C string, valid as long as the model. */
  const char* (*parameter)(void* self, const char* key);
} mk_files_service;

/* "mk.weights/1": fills weights from the pack's safetensors files, in one pass over each file:
 * read, hashed, checked, converted and put in their final place. Only during `create`; blocks on
 * I/O. */
#define MK_SERVICE_WEIGHTS "mk.weights/1"
#define MK_WEIGHT_OPTIONAL 1u /* absent from the file is no error; `found` tells */
/* Since 1.1: `data` is the pack's own host memory, for values that it folds before `upload`. */
#define MK_WEIGHT_HOST 2u
typedef struct mk_weight {
  const char* name; /* C string: the tensor's name in the file */
  mk_dtype
      dtype;   /* of the destination: FP32 (from F64, F32, F16, BF16), or the stored type exactly */
  mk_u32 rank; /* 0 is a scalar */
  const mk_i64* shape; /* must equal the file's */
  void* data;          /* destination, product(shape) elements; from `allocate`, so device memory */
  mk_u32 flags;
  mk_u32 found; /* written by the host: 1 when filled */
} mk_weight;
typedef struct mk_weights_service {
  mk_u32 struct_size;
  mk_u32 reserved;
  void* self;
  /* `size_bytes` of zeroed device memory, 64-byte aligned, charged to the model's weights region;
   * given back by the host after `destroy`. RESOURCE_EXHAUSTED when the manifest's declared weights
   * or the device's budget would be passed. */
  mk_status (*allocate)(void* self, mk_u64 size_bytes, void** data);
  /* Fills all of `weights` from `file`. INVALID_ARGUMENT naming the tensors when one is missing,
   * surplus (in the file but not listed), misshapen, of a type that does not convert, or not
   * finite. */
  mk_status (*load)(void* self, const char* file, mk_weight* weights, mk_u64 count);
  /* Since 1.1. Copies host memory into memory from `allocate`, and waits until it is there. The
   * only way to write to it on a device whose memory the host cannot address; works on all. */
  mk_status (*upload)(void* self, void* device, const void* host, mk_u64 size_bytes);
} mk_weights_service;
#define MK_WEIGHTS_SERVICE_SIZE_1_0 ((mk_u32)offsetof(mk_weights_service, upload))

/* "mk.parallel/1": the host's thread pool. Calls `body(arg, begin, end)` over disjoint ranges that
 * cover [0, count), each at least `grain` long but for the last; returns when all have returned.
 * The caller's thread takes part. `body` must not throw and must not call `parallel_for`; it may
 * use its own slice of scratch and nothing else of the host. */
#define MK_SERVICE_PARALLEL "mk.parallel/1"
typedef struct mk_parallel_service {
  mk_u32 struct_size;
  mk_u32 reserved;
  void* self;
  void (*parallel_for)(void* self, mk_i64 count, mk_i64 grain,
                       void (*body)(void* arg, mk_i64 begin, mk_i64 end), void* arg);
  mk_i64 (*threads)(void* self);
} mk_parallel_service;

/* "mk.blas/1": C = alpha * op(A) * op(B) + beta * C, all row-major fp32, single-threaded on the
 * caller's thread (it may be called inside `parallel_for`). op is transposition where the flag
 * is 1. lda, ldb, ldc are row strides in elements. */
#define MK_SERVICE_BLAS "mk.blas/1"
typedef struct mk_sgemm_args {
  mk_i32 transpose_a;
  mk_i32 transpose_b;
  mk_i64 m, n, k;
  float alpha;
  float beta;
  const float* a;
  mk_i64 lda;
  const float* b;
  mk_i64 ldb;
  float* c;
  mk_i64 ldc;
} mk_sgemm_args;
typedef struct mk_blas_service {
  mk_u32 struct_size;
  mk_u32 reserved;
  void* self;
  mk_status (*sgemm)(void* self, const mk_sgemm_args* args);
} mk_blas_service;

/* "mk.image/1": JPEG and PNG to 8-bit RGB or gray, EXIF orientation applied, alpha composed over
 * black, 16 bit cut to
 * 8. Two calls: `info` reads the header (limits are checked here, before any allocation), `decode`
 * fills the caller's buffer. INVALID_ARGUMENT for what is no image, is damaged, or passes the
 * host's area limit. */
#define MK_SERVICE_IMAGE "mk.image/1"
typedef struct mk_image_info {
  mk_u32 struct_size;
  mk_u32 channels;      /* stored: 1 gray, 3 colour */
  mk_i64 width, height; /* after orientation */
} mk_image_info;
typedef struct mk_image_service {
  mk_u32 struct_size;
  mk_u32 reserved;
  void* self;
  mk_status (*info)(void* self, const void* data, mk_u64 size_bytes, mk_image_info* out);
  /* `channels` 1 or 3; `pixels` holds height * width * channels bytes, [height, width, channels].
   */
  mk_status (*decode)(void* self, const void* data, mk_u64 size_bytes, mk_u32 channels,
                      void* pixels, mk_u64 pixels_size_bytes);
  /* The message of the last failure of this table on this thread. C string, valid until the next
   * call. */
  const char* (*last_error)(void* self);
} mk_image_service;

/* "mk.kernels/1", since 1.1: device code. NULL on the CPU device, where an op runs its CPU twin,
 * and on hosts of 1.0. Only during `create`. */
#define MK_SERVICE_KERNELS "mk.kernels/1"
typedef mk_u32 mk_image_kind;
#define MK_IMAGE_CUBIN 1u /* machine code for exactly `sm` */
#define MK_IMAGE_PTX \
  2u /* text that ends in NUL, compiled by the driver for a GPU of `sm` or later */
#define MK_IMAGE_EMULATED 3u /* a module of the emulator; in the test variant of a pack only */
typedef struct mk_kernel_image {
  mk_image_kind kind;
  mk_u32 sm;           /* compute capability times ten: 87, 110; 0 for EMULATED */
  mk_u32 least_driver; /* the least CUDA version of a driver that can read it: 12060 is 12.6 */
  mk_u32 reserved;
  const void* data; /* uncompressed; alive until `destroy` has returned */
  mk_u64 size_bytes;
} mk_kernel_image;
typedef struct mk_module mk_module; /* the host's own; unloaded by it after `destroy` */
typedef struct mk_kernel mk_kernel; /* the host's own; lives as long as its module */
typedef struct mk_kernels_service {
  mk_u32 struct_size;
  mk_u32 reserved;
  void* self;
  /* Loads the best of `images`: those made for this device by their tags, machine code before PTX,
   * then what needs the newest driver; the first that the driver takes. Which one is told in the
   * host's log. `name` (C string) is for messages. FAILED_PRECONDITION when none fits, with the
   * reason per image. */
  mk_status (*load)(void* self, const char* name, const mk_kernel_image* images, mk_u64 count,
                    mk_module** module);
  /* The kernel `name` (C string) of a module: an extern "C" __global__ function that takes one
   * struct by value. NOT_FOUND names module and kernel. */
  mk_status (*kernel)(void* self, mk_module* module, const char* name, mk_kernel** kernel);
} mk_kernels_service;

/* "mk.device/1", since 1.2: facts by which a pack chooses among its kernels. NULL on the CPU device
 * and on older hosts. */
#define MK_SERVICE_DEVICE "mk.device/1"
typedef struct mk_device_service {
  mk_u32 struct_size;
  mk_u32 sm;       /* compute capability times ten */
  mk_u32 sm_count; /* of the GPU, or of the one that is planned for or emulated */
  mk_u32 reserved;
  mk_u64 l2_bytes;               /* 0 where it is not known */
  mk_u64 shared_bytes_per_block; /* the most that a kernel can opt into */
} mk_device_service;

/* The host as a pack sees it. One per model; lives until `destroy` has returned. */
typedef struct mk_host {
  mk_u32 struct_size;
  mk_u32 abi_minor; /* the host's; a pack that needs a newer one says so in `mk_pack.abi_minor` and
                       is refused */
  void* self;
  const void* (*service)(void* self, const char* id);
  void (*set_error)(void* self, const char* message, mk_u64 size);
  const char* device; /* C string: "cpu", "cuda", "emulated", "planning" */
} mk_host;

/* ---- describe
 * -------------------------------------------------------------------------------------------------
 */
#define MK_TENSOR_OPTIONAL 1u /* an input that a request may leave out */
typedef struct mk_tensor_spec {
  mk_u32 struct_size;
  const char* name; /* C string, [A-Za-z0-9_.-]{1,128} */
  mk_dtype dtype;
  mk_u32 flags;
  mk_u32 rank;
  const mk_i64* shape; /* -1: decided by each request */
} mk_tensor_spec;

/* The pack states its signature here; the host copies and compares it with the manifest. */
typedef struct mk_signature {
  mk_u32 struct_size;
  mk_u32 reserved;
  void* self;
  mk_status (*add_input)(void* self, const mk_tensor_spec* spec);
  mk_status (*add_output)(void* self, const mk_tensor_spec* spec);
} mk_signature;

/* ---- run
 * ------------------------------------------------------------------------------------------------------
 */
/* One start of a kernel. Since 1.1. */
typedef struct mk_launch {
  mk_u32 struct_size;
  mk_u32 shared_bytes; /* dynamic shared memory per block */
  mk_u32 grid[3];      /* blocks; y and z at most 65535 */
  mk_u32 block[3];     /* threads */
  const void* params;  /* the kernel's one struct */
  mk_u64 params_size_bytes;
  /* ---- since 1.2 ----
   * What the launch moves and computes, by the op's own formula; 0 where it says nothing. For
   * predictions and plans; no device runs differently for it. A multiply-add is 2 FLOP. */
  mk_u64 bytes;        /* from and to device memory, each operand once */
  mk_u64 flops;        /* on the ordinary units */
  mk_u64 tensor_flops; /* on tensor cores, fp16 or bf16 with fp32 accumulation */
} mk_launch;
#define MK_LAUNCH_SIZE_1_1 ((mk_u32)offsetof(mk_launch, bytes))

/* One request, as the host lends it to the pack for the length of one `run`. Only on the thread
 * that called `run`. */
typedef struct mk_run {
  mk_u32 struct_size;
  mk_u32 input_count;
  void* self;
  const mk_tensor*
      inputs; /* in the signature's order, without those the request left out; checked against it */
  void (*set_error)(void* self, const char* message, mk_u64 size);
  /* Memory for an output; written by the pack until `run` returns. Each output once. `size_bytes`
   * must be the product of shape and element size, but for BYTES, where it is the packed size.
   * Memory of the device (BYTES: of the host); the host copies it back after `run`.
   * `*data` may be NULL when the size is 0. A pack produces all its outputs: one that the
   * request did not ask for gets memory too, and is dropped. */
  mk_status (*output)(void* self, const char* name, mk_dtype dtype, mk_u32 rank,
                      const mk_i64* shape, mk_u64 size_bytes, void** data);
  /* Scratch of this lane: a bump arena. 64-byte aligned, not zeroed. Addresses repeat from run to
   * run. All of it is given back when `run` returns; `scratch_mark` / `scratch_release` nest scopes
   * within a run. RESOURCE_EXHAUSTED when the scratch that the manifest declares would be passed.
   */
  mk_status (*scratch)(void* self, mk_u64 size_bytes, void** data);
  mk_u64 (*scratch_mark)(void* self);
  void (*scratch_release)(void* self, mk_u64 mark);
  /* Non-zero when the caller went away or the deadline has passed: return MK_CANCELLED soon. Cheap.
   */
  mk_i32 (*cancelled)(void* self);
  /* A request parameter. Returns 0 when it is absent or of another type. The string lives until
   * `run` returns. */
  mk_i32 (*parameter_int64)(void* self, const char* key, mk_i64* value);
  mk_i32 (*parameter_double)(void* self, const char* key, double* value);
  mk_i32 (*parameter_bool)(void* self, const char* key, mk_i32* value);
  mk_i32 (*parameter_string)(void* self, const char* key, const char** value, mk_u64* size);
  /* Monotonic clock in nanoseconds. */
  mk_u64 (*now_ns)(void* self);

  /* ---- since 1.1 ----
   * On a device with memory of its own, the host has copied the inputs there before `run`, and
   * copies the outputs back after it; both lie in the lane's scratch, beside what `scratch` gives,
   * so the scratch that the manifest declares covers them too.
   *
   * Runs that look the same (the same inputs by name, type and shape, and the same parameters) are
   * replayed as a graph of their launches, without calling `run`, once two of them went well. So a
   * `run` decides nothing by anything else. What cannot be replayed is never captured: a run with
   * BYTES inputs or outputs, one that called `copy_to_host` or `copy_to_device`, and all runs of a
   * pack that offers the extension "mk.capture/1" with MK_CAPTURE_NEVER. */

  /* Starts a kernel in the order of this run, and does not wait. `launch` and its params are read
   * before it returns. UNIMPLEMENTED on the CPU device. INTERNAL naming the kernel and the bound
   * for sizes that it does not allow. What goes wrong on the device comes out after `run`. */
  mk_status (*launch)(void* self, mk_kernel* kernel, const mk_launch* launch);
  /* In the order of this run. `copy_to_host` waits until all before it is done, `copy_to_device`
   * takes the bytes before it returns. For what the host must decide; not for inputs and outputs.
   */
  mk_status (*copy_to_host)(void* self, void* host, const void* device, mk_u64 size_bytes);
  mk_status (*copy_to_device)(void* self, void* device, const void* host, mk_u64 size_bytes);
} mk_run;
#define MK_RUN_SIZE_1_0 ((mk_u32)offsetof(mk_run, launch))

/* An answer of `mk_pack.extension`: how the pack stands to graphs. Without it, MK_CAPTURE_RUNS. */
#define MK_EXTENSION_CAPTURE "mk.capture/1"
#define MK_CAPTURE_RUNS 0u
#define MK_CAPTURE_NEVER 1u /* `run` decides by more than shapes and parameters */
typedef struct mk_capture_extension {
  mk_u32 struct_size;
  mk_u32 capture;
} mk_capture_extension;

/* ---- The pack
 * -------------------------------------------------------------------------------------------------
 */
typedef struct mk_model mk_model; /* the pack's own */

typedef struct mk_pack {
  mk_u64 magic;       /* MK_PACK_MAGIC */
  mk_u32 abi_major;   /* MK_ABI_MAJOR: equal on both sides */
  mk_u32 abi_minor;   /* at most the host's */
  mk_u32 struct_size; /* sizeof(mk_pack) of the pack's compiler; at least the 1.0 size */
  mk_u32 reserved;
  const char* name;    /* C string: the code's name; equal to the manifest's `code.name` */
  mk_u64 code_version; /* equal to the manifest's `code.version` */
  const char* build;   /* C string: compiler and options, for people */

  /* States the signature. Touches no device. */
  mk_status (*describe)(const mk_host* host, const mk_signature* signature);
  /* Makes a model ready to run: weights, tables. May take long and blocks. On failure `*model` is
   * left alone and nothing stays allocated on the pack's side. */
  mk_status (*create)(const mk_host* host, mk_model** model);
  /* Serves one request. Allocates nothing of its own, blocks on nothing but the host's services.
   * After a failure the model is as it was before. */
  mk_status (*run)(mk_model* model, const mk_run* run);
  /* Frees what `create` made. Cannot fail. */
  void (*destroy)(mk_model* model);
  /* An optional ability by string id ("mk.sequence/1", "mk.stream/1", "mk.batch/1",
   * "mk.capture/1"), or NULL. May itself be NULL. */
  const void* (*extension)(const char* id);
} mk_pack;

/* The size of `mk_pack` in 1.0: no pack may be smaller. */
#define MK_PACK_SIZE_1_0 ((mk_u32)(offsetof(mk_pack, extension) + sizeof(void*)))

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MERGEKERNEL_CORE_ABI_MK_PACK_H_ */

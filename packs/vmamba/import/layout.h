// What a checkpoint of the VMamba family is, told by the names and shapes of its tensors alone:
// which member of the family, which of its tensors the pack takes under which name, and every
// difference from the published layout. Pure: no files, no values, no clock.
#ifndef MERGEKERNEL_PACKS_VMAMBA_IMPORT_LAYOUT_H_
#define MERGEKERNEL_PACKS_VMAMBA_IMPORT_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/sdk/status.h"
#include "packs/vmamba/description.h"

namespace mk::vmamba {

// A tensor as the checkpoint's header states it.
struct StoredTensorSpec {
  std::string name;
  std::vector<int64_t> shape;
};

// A tensor that the pack takes: which of the given ones, and under which name and shape it goes
// into the pack's file. The shape has the stored element count; it differs only where a linear
// layer was stored as a 1x1 convolution ([out, in, 1, 1]).
struct TakenTensor {
  size_t index = 0;
  std::string name;
  std::vector<int64_t> shape;
};

struct CheckpointLayout {
  std::map<std::string, std::string> config;  // the pack's `config.*` parameters
  std::string published_name;                 // "tiny", "small", "base" by its sizes, or ""
  bool published_head = false;                // and with 1000 classes
  std::string stripped_prefix;                // what stood before every name: "module.", or ""
  std::vector<TakenTensor> taken;             // in the order given
  std::vector<size_t> dropped;                // known bookkeeping that is no weight
  // One line for each difference, tensors by name: missing, surplus, misshapen. Empty: the
  // checkpoint is complete, and `taken` is exactly what the pack loads.
  std::vector<std::string> problems;
};

// Rules:
//  - Prefixes `module.`, `_orig_mod.` and `model.`, and `extra_prefix` unless it is empty, are
//  taken
//    off as long as every tensor carries one; nothing else is renamed.
//  - `n_averaged`, and names that end in `.total_ops` or `.total_params`, are bookkeeping of
//    averaging and profiling tools: dropped.
//  - Sizes are read from `patch_embed.*`, the first block found and `classifier.head`; then every
//    tensor is held against the table of that size.
CheckpointLayout ReadLayout(const std::vector<StoredTensorSpec>& tensors,
                            const std::string& extra_prefix = "");

// The description that `parameters` (config.* and preprocess.*) make, judged by the pack's own
// ParseDescription.
Result<Description> DescriptionOf(const std::map<std::string, std::string>& parameters);

// What a manifest declares for it: the pack's own WeightsBytes, ScratchBytes and
// DeviceScratchBytes.
struct DeclaredMemory {
  uint64_t weights_bytes = 0;
  uint64_t scratch_bytes = 0;  // per lane
  uint64_t device_scratch_bytes = 0;
};
DeclaredMemory DeclareMemory(const Description& description);

}  // namespace mk::vmamba

#endif  // MERGEKERNEL_PACKS_VMAMBA_IMPORT_LAYOUT_H_

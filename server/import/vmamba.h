// `mk import vmamba`: a published VMamba checkpoint becomes an installed version of a pack.
#ifndef MERGEKERNEL_SERVER_IMPORT_VMAMBA_H_
#define MERGEKERNEL_SERVER_IMPORT_VMAMBA_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/import/checkpoint.h"
#include "server/import/copy_weights.h"
#include "server/import/torch_child.h"

namespace mk {

struct VMambaImport {
  std::string checkpoint;  // path
  std::string repository;  // path of a folder that is there
  std::string name;        // of the pack; "": vmamba-<published size>, or vmamba
  int64_t version = 0;     // 0: the highest on disk + 1
  bool force = false;      // replace a version that is there

  std::string pack;                            // library or version's folder; "": looked for
  std::vector<std::string> more_repositories;  // where it is looked for besides `repository`
  std::string labels;                          // path, one class a line; "": "class 0", ...
  std::string golden;                          // path of golden vectors; "": none
  std::string licence;                         // of the weights; "": by the sizes, see docs
  std::string strip_prefix;
  TorchOptions torch;

  // The reference's evaluation for ImageNet.
  int64_t resize = 256;
  int64_t crop = 224;
  std::string filter = "bicubic";  // of the resize, or "triangle"
  std::string mean = "0.485,0.456,0.406";
  std::string std = "0.229,0.224,0.225";
  int64_t max_encoded_pixels = 16 << 20;
  int64_t max_input_pixels =
      1 << 20;  // of a picture that is not cropped; scratch is declared for it
  int lanes = 1;

  CopyHooks hooks;
};

struct VMambaImported {
  std::string name;
  int64_t version = 0;
  std::string folder;
  std::string source;  // "safetensors" or "torch"
  std::string library;
  std::string licence;
  std::map<std::string, std::string> parameters;  // config.* and preprocess.*
  uint64_t tensors = 0;
  uint64_t elements = 0;
  uint64_t weights_file_bytes = 0;
  std::vector<std::string> notes;  // worth a person's look; nothing that stops the import
};

// All or nothing: on failure the repository is as it was. Errors name file, tensor or field.
// INVALID_ARGUMENT what the checkpoint or an option breaks, ALREADY_EXISTS, NOT_FOUND,
// RESOURCE_EXHAUSTED a full disk or a limit, DATA_LOSS a file cut short, CANCELLED. Blocks; one
// thread (it starts a second one for the digest, and a child for PyTorch's files).
absl::StatusOr<VMambaImported> ImportVMamba(const VMambaImport& options);

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_IMPORT_VMAMBA_H_

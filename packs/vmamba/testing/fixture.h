// Opens models of the VMamba family for tests and benches: the committed pico with its own
// manifest, and reduced ones with generated weights.
#ifndef MERGEKERNEL_PACKS_VMAMBA_TESTING_FIXTURE_H_
#define MERGEKERNEL_PACKS_VMAMBA_TESTING_FIXTURE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/sdk/context.h"
#include "kernels/testing/test_context.h"
#include "packs/vmamba/description.h"
#include "packs/vmamba/model.h"
#include "packs/vmamba/network.h"
#include "proto/mergekernel/v1/pack.pb.h"

namespace mk::vmamba {

inline constexpr char kPicoFolder[] = "packs/vmamba/pico/";
inline constexpr char kGoldenFolder[] = "packs/vmamba/golden/";

using Parameters = std::map<std::string, std::string>;

// The committed manifest. Ends the process when it does not parse.
mergekernel::v1::Manifest PicoManifest();
Parameters PicoParameters();

// Parameters of a small valid model, for tests that break one of them: 3 channels, no resize.
Parameters PlainParameters();

// A file of the tensors of `parameters`' checkpoint, with the generator's values for `seed`, in the
// test's own folder. `edit` may change the list before it is written.
struct FileTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};
std::string WriteWeights(const Parameters& parameters, uint64_t seed,
                         void (*edit)(std::vector<FileTensor>&) = nullptr);

// A host with one model's parameters and weights.
class ModelHost {
 public:
  ModelHost(const Parameters& parameters, const std::string& weights_path, int threads = 1,
            const char* device = "cpu");

  testing::TestHost& test_host() { return test_host_; }
  const Host& services() const { return services_; }

 private:
  testing::TestHost test_host_;
  Host services_;
};

// A model that is known to load. Ends the process with the reason when it does not.
class OpenModel {
 public:
  OpenModel(const Parameters& parameters, const std::string& weights_path, int threads = 1);
  static OpenModel Pico(int threads = 1);

  ModelHost& host() { return *host_; }
  VMamba& model() { return *model_; }
  // Serves `run` once.
  Status Run(testing::TestRun& run);

 private:
  std::unique_ptr<ModelHost> host_;
  std::unique_ptr<VMamba> model_;
};

// Collects every intermediate result, channel-first as the goldens are.
class Recorder {
 public:
  Tap tap() { return {this, &See}; }
  const std::vector<float>& At(const std::string& name) const { return seen_.at(name); }

 private:
  static void See(void* self, const char* name, const Map& map);
  std::map<std::string, std::vector<float>> seen_;
};

// Adds a UINT8 image of the given size to `run`; `pixels` outlives it.
void AddImage(testing::TestRun& run, int64_t height, int64_t width, int64_t channels,
              const std::vector<uint8_t>& pixels);
// The logits of a run that succeeded.
std::vector<float> Logits(const testing::TestRun& run);

}  // namespace mk::vmamba

#endif  // MERGEKERNEL_PACKS_VMAMBA_TESTING_FIXTURE_H_

#include "server/grpc/model_views.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/dtype.h"

namespace mk {
namespace {

std::string Platform(const Generation& generation) {
  return absl::StrCat("mergekernel_", generation.device().facts().kind);
}

// The configuration's enumeration spells BYTES differently.
inference::DataType ConfigType(mk_dtype dtype) {
  inference::DataType type = inference::TYPE_INVALID;
  const std::string name =
      dtype == MK_DTYPE_BYTES ? "TYPE_STRING" : "TYPE_" + std::string(DtypeName(dtype));
  inference::DataType_Parse(name, &type);
  return type;
}

void FillTensor(const TensorSpec& spec, inference::ModelMetadataResponse::TensorMetadata* out) {
  out->set_name(spec.name);
  out->set_datatype(std::string(DtypeName(spec.dtype)));
  for (const int64_t dim : spec.shape) out->add_shape(dim);
}

// What people and tools want to know of a pack beyond the protocol's fields; the same in metadata
// and configuration.
template <typename Set>
void ForEachProperty(const Generation& generation, Set set) {
  const auto& manifest = generation.manifest();
  for (const auto& [key, value] : manifest.parameters()) set(key, value);
  set("digest", generation.digest());
  set("code", absl::StrCat(manifest.code().name(), " ", manifest.code().version()));
  if (!manifest.description().empty()) set("description", manifest.description());
  if (!manifest.weights_license().empty()) set("weights_license", manifest.weights_license());
}

void SetDuration(uint64_t count, uint64_t ns, inference::StatisticDuration* out) {
  out->set_count(count);
  out->set_ns(ns);
}

}  // namespace

void FillMetadata(const Generation& generation, inference::ModelMetadataResponse* out) {
  out->set_name(generation.name());
  out->add_versions(absl::StrCat(generation.version()));
  out->set_platform(Platform(generation));
  for (const TensorSpec& spec : generation.signature().inputs) FillTensor(spec, out->add_inputs());
  for (const TensorSpec& spec : generation.signature().outputs)
    FillTensor(spec, out->add_outputs());
  ForEachProperty(generation, [&](const std::string& key, const std::string& value) {
    (*out->mutable_properties())[key] = value;
  });
}

void FillConfig(const Generation& generation, inference::ModelConfig* out) {
  out->set_name(generation.name());
  out->set_platform(Platform(generation));
  out->set_backend("mergekernel");
  out->set_max_batch_size(0);
  out->mutable_version_policy()->mutable_specific()->add_versions(generation.version());
  for (const TensorSpec& spec : generation.signature().inputs) {
    auto* input = out->add_input();
    input->set_name(spec.name);
    input->set_data_type(ConfigType(spec.dtype));
    input->set_optional(spec.optional);
    for (const int64_t dim : spec.shape) input->add_dims(dim);
  }
  for (const TensorSpec& spec : generation.signature().outputs) {
    auto* output = out->add_output();
    output->set_name(spec.name);
    output->set_data_type(ConfigType(spec.dtype));
    for (const int64_t dim : spec.shape) output->add_dims(dim);
    output->set_label_filename(generation.manifest().labels_file());
  }
  auto* group = out->add_instance_group();
  group->set_name(absl::StrCat(generation.name(), "_0"));
  group->set_count(generation.lanes());
  group->set_kind(generation.device().facts().kind == "cpu"
                      ? inference::ModelInstanceGroup::KIND_CPU
                      : inference::ModelInstanceGroup::KIND_GPU);
  auto& parameters = *out->mutable_parameters();
  ForEachProperty(generation, [&](const std::string& key, const std::string& value) {
    parameters[key].set_string_value(value);
  });
  if (!generation.labels().empty()) parameters["labels"].set_string_value(generation.labels());
}

void FillStatistics(const Generation& generation, const ModelStatsSnapshot& stats,
                    inference::ModelStatistics* out) {
  const auto stage = [&](Stage s) -> const HistogramSnapshot& {
    return stats.stages[static_cast<size_t>(s)];
  };
  const uint64_t succeeded = stats.outcomes[static_cast<size_t>(Outcome::kOk)];
  uint64_t failed = 0;
  for (const uint64_t count : stats.outcomes) failed += count;
  failed -= succeeded;
  out->set_name(generation.name());
  out->set_version(absl::StrCat(generation.version()));
  out->set_last_inference(static_cast<uint64_t>(stats.last_unix_ms));
  out->set_inference_count(succeeded);
  out->set_execution_count(stage(Stage::kRun).count);
  auto* sums = out->mutable_inference_stats();
  SetDuration(succeeded, stats.success_ns, sums->mutable_success());
  SetDuration(failed, stats.fail_ns, sums->mutable_fail());
  // One count per request, also of those that did not wait: perf_analyzer matches versions by it.
  SetDuration(stage(Stage::kQueue).count, stage(Stage::kQueue).sum_ns, sums->mutable_queue());
  SetDuration(stage(Stage::kInput).count, stage(Stage::kInput).sum_ns,
              sums->mutable_compute_input());
  SetDuration(stage(Stage::kRun).count, stage(Stage::kRun).sum_ns, sums->mutable_compute_infer());
  SetDuration(stage(Stage::kOutput).count, stage(Stage::kOutput).sum_ns,
              sums->mutable_compute_output());
  const char* type = generation.device().facts().kind == "cpu" ? "CPU" : "GPU";
  for (int region = 0; region < kRegionCount; ++region) {
    // One entry per region, in the order weights, scratch (its peak), state.
    auto* usage = out->add_memory_usage();
    usage->set_type(type);
    usage->set_id(region);
    const auto which = static_cast<Region>(region);
    usage->set_byte_size(which == Region::kScratch ? generation.memory().peak(which)
                                                   : generation.memory().live(which));
  }
}

}  // namespace mk

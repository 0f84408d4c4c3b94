// mk infer: one request per image, or one request of given tensors.
#include <cmath>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/text.h"
#include "server/cli/answers.h"
#include "server/cli/classify.h"
#include "server/cli/common.h"
#include "server/cli/npy.h"
#include "server/cli/tensors.h"

namespace mk::cli {
namespace {

using nlohmann::json;

constexpr char kImageInput[] = "encoded_image";  // BYTES [1]: a JPEG or PNG file

struct Flags {
  std::string pack;
  std::string version;
  std::vector<std::string> images;
  std::vector<std::string> inputs;
  std::vector<std::string> values;
  std::vector<std::string> shapes;
  std::vector<std::string> parameters;
  size_t top = 5;
  bool raw = false;
  bool random = false;
  std::string output_dir;
};

// What the daemon says of the model.
struct Model {
  inference::ModelMetadataResponse metadata;
  std::map<std::string, bool> optional;
  std::vector<std::string> labels;

  bool HasInput(const std::string& name) const { return optional.count(name) != 0; }
};

grpc::Status Describe(Client& client, const Flags& flags, Model* model) {
  inference::ModelMetadataRequest request;
  request.set_name(flags.pack);
  request.set_version(flags.version);
  grpc::ClientContext context;
  client.Prepare(context);
  grpc::Status status = client.stub().ModelMetadata(&context, request, &model->metadata);
  if (!status.ok()) return status;
  inference::ModelConfigRequest config_request;
  config_request.set_name(flags.pack);
  config_request.set_version(flags.version);
  inference::ModelConfigResponse config;
  grpc::ClientContext config_context;
  client.Prepare(config_context);
  status = client.stub().ModelConfig(&config_context, config_request, &config);
  if (!status.ok()) return status;
  for (const auto& input : config.config().input())
    model->optional[input.name()] = input.optional();
  const auto labels = config.config().parameters().find("labels");
  if (labels != config.config().parameters().end()) {
    model->labels = absl::StrSplit(labels->second.string_value(), '\n', absl::SkipEmpty());
  }
  return status;
}

// "key=value": an integer, a double, true or false, else a string.
void SetParameter(const std::string& key, const std::string& value,
                  inference::ModelInferRequest* request) {
  inference::InferParameter& parameter = (*request->mutable_parameters())[key];
  int64_t integer = 0;
  double number = 0;
  if (absl::SimpleAtoi(value, &integer)) {
    parameter.set_int64_param(integer);
  } else if (absl::SimpleAtod(value, &number)) {
    parameter.set_double_param(number);
  } else if (value == "true" || value == "false") {
    parameter.set_bool_param(value == "true");
  } else {
    parameter.set_string_param(value);
  }
}

class Inference {
 public:
  Inference(const Globals& globals, const Flags& flags)
      : globals_(globals), flags_(flags), client_(globals) {}

  int Run() {
    const grpc::Status described = Describe(client_, flags_, &model_);
    if (!described.ok()) return ReportForPack(globals_, client_, flags_.pack, described);
    if (flags_.images.empty()) return RunTensors();
    if (!model_.HasInput(kImageInput)) {
      return ReportUsage(globals_, "model '" + flags_.pack +
                                       "' takes no image files: it has no input '" + kImageInput +
                                       "'; give its tensors with --input NAME=FILE");
    }
    return RunImages();
  }

 private:
  inference::ModelInferRequest NewRequest() const {
    inference::ModelInferRequest request;
    request.set_model_name(flags_.pack);
    request.set_model_version(flags_.version);
    return request;
  }

  grpc::Status Call(const inference::ModelInferRequest& request,
                    inference::ModelInferResponse* response, double* seconds) {
    grpc::ClientContext context;
    client_.Prepare(context);
    const auto begin = std::chrono::steady_clock::now();
    const grpc::Status status = client_.stub().ModelInfer(&context, request, response);
    *seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return status;
  }

  int RunTensors() {
    inference::ModelInferRequest request = NewRequest();
    const auto inputs = ParseInputFlags(flags_.inputs, flags_.values, flags_.shapes, flags_.random);
    if (!inputs.ok()) return ReportUsage(globals_, std::string(inputs.status().message()));
    const auto parameters = ParseAssignments("--param", flags_.parameters);
    if (!parameters.ok()) return ReportUsage(globals_, std::string(parameters.status().message()));
    for (const auto& [key, value] : *parameters) SetParameter(key, value, &request);
    const absl::Status filled = FillInputs(model_.metadata, model_.optional, *inputs, &request);
    if (!filled.ok()) return ReportUsage(globals_, std::string(filled.message()));
    inference::ModelInferResponse response;
    double seconds = 0;
    const grpc::Status status = Call(request, &response, &seconds);
    if (!status.ok()) return Report(globals_, status);
    return Show("", response, seconds);
  }

  int RunImages() {
    Progress progress("classifying", flags_.images.size());
    int worst = kOk;
    for (size_t i = 0; i < flags_.images.size(); ++i) {
      const std::string& path = flags_.images[i];
      const auto bytes = ReadFile(path);
      if (!bytes.ok()) {
        worst = ReportUsage(globals_, std::string(bytes.status().message()));
        continue;
      }
      inference::ModelInferRequest request = NewRequest();
      AddInput(kImageInput, BytesTensor(*bytes), &request);
      inference::ModelInferResponse response;
      double seconds = 0;
      const grpc::Status status = Call(request, &response, &seconds);
      // One bad image does not keep the others from being answered; its error decides the exit
      // code.
      const int code = status.ok()
                           ? Show(path, response, seconds)
                           : Report(globals_, grpc::Status(status.error_code(),
                                                           path + ": " + status.error_message()));
      if (code != kOk) worst = code;
      if (code == kUnreachable) break;
      progress.Set(i + 1);
    }
    if (globals_.json) std::cout << JsonText(results_);
    return worst;
  }

  int Show(const std::string& path, const inference::ModelInferResponse& response, double seconds) {
    json result = {{"model", response.model_name()},
                   {"version", response.model_version()},
                   {"seconds", seconds}};
    if (!path.empty()) result["file"] = path;
    std::vector<float> logits;
    for (int i = 0; i < response.outputs_size() && i < response.raw_output_contents_size(); ++i) {
      const auto& output = response.outputs(i);
      const std::string& raw = response.raw_output_contents(i);
      json entry = {{"name", output.name()},
                    {"datatype", output.datatype()},
                    {"shape", std::vector<int64_t>(output.shape().begin(), output.shape().end())}};
      entry["data"] = Values(output.datatype(), raw);
      if (output.name() == "logits" && output.datatype() == "FP32" && !flags_.raw) {
        logits = entry["data"].get<std::vector<float>>();
      }
      result["outputs"].push_back(std::move(entry));
      if (!flags_.output_dir.empty() && !Save(output, raw)) return kUsage;
    }
    for (const Ranked& ranked : TopK(logits, logits.empty() ? 0 : flags_.top, model_.labels)) {
      result["top"].push_back(
          {{"index", ranked.index}, {"label", ranked.label}, {"probability", ranked.probability}});
    }
    if (!globals_.json) {
      std::cout << Human(path, result);
    } else if (path.empty()) {
      std::cout << JsonText(result);
    } else {
      results_.push_back(std::move(result));
    }
    return kOk;
  }

  // NaN and infinities by name, which JSON lacks; text escaped and cut.
  static std::string Shown(const json& value) {
    if (value.is_string()) return "'" + TerminalText(value.get<std::string>(), 60) + "'";
    if (!value.is_number_float()) return value.dump();
    const double number = value.get<double>();
    if (std::isnan(number)) return "nan";
    return std::isinf(number) ? (number > 0 ? "inf" : "-inf") : value.dump();
  }

  static std::string Human(const std::string& path, const json& result) {
    std::string text = path.empty() ? "" : path + ":";
    if (result.contains("top")) {
      for (const json& one : result["top"]) {
        text += "  " + TerminalText(one["label"].get<std::string>()) + " " +
                Fixed(100 * one["probability"].get<double>(), 1) + " %";
      }
      return text + "  (" + HumanDuration(result["seconds"]) + ")\n";
    }
    for (const json& output : result.value("outputs", json::array())) {
      text += TerminalText(output["name"].get<std::string>()) + " " +
              TerminalText(output["datatype"].get<std::string>()) + " " + output["shape"].dump();
      const json data = output.value("data", json::array());
      for (size_t i = 0; i < data.size() && i < 8; ++i) text += (i ? ", " : ": ") + Shown(data[i]);
      text += data.size() > 8 ? ", ...\n" : "\n";
    }
    return text + "(" + HumanDuration(result["seconds"]) + ")\n";
  }

  bool Save(const inference::ModelInferResponse::InferOutputTensor& output,
            const std::string& raw) const {
    const HostTensor tensor{output.datatype(), {output.shape().begin(), output.shape().end()}, raw};
    const auto npy = WriteNpy(tensor);
    const std::string path = flags_.output_dir + "/" + output.name() + (npy.ok() ? ".npy" : ".bin");
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << (npy.ok() ? *npy : raw);
    if (out.good()) return true;
    ReportUsage(globals_, "cannot write '" + path + "'");
    return false;
  }

  const Globals& globals_;
  const Flags& flags_;
  Client client_;
  Model model_;
  json results_ = json::array();
};

}  // namespace

void AddInfer(CLI::App& app, Globals& globals, int* exit_code) {
  auto* command =
      app.add_subcommand("infer",
                         "Send images or tensors to a pack\n"
                         "Examples\n"
                         "  mk infer vmamba-pico shirt.png --top 3\n"
                         "  mk infer echo --input INPUT0=photo.bin --shape INPUT0=1024\n"
                         "  mk infer echo --value INPUT0=1,2,3 --param delay_ms=20\n"
                         "  mk infer echo --shape INPUT0=16 --random --json\n"
                         "  mk infer vmamba-pico --input image=frame.npy --output-dir answers");
  auto flags = std::make_shared<Flags>();
  command->add_option("PACK", flags->pack, "Name of the pack")->required();
  command->add_option("FILE", flags->images, "JPEG or PNG files, one request each");
  command->add_option("--model-version", flags->version, "Version; default: the latest ready one");
  command->add_option("--top", flags->top, "How many classes to show")->capture_default_str();
  OneEach(command->add_option("--input", flags->inputs,
                              "NAME=FILE: .npy, or raw little-endian bytes with --shape"));
  OneEach(command->add_option("--value", flags->values,
                              "NAME=1,2,3, or a text for a BYTES input; again for more of either"));
  OneEach(command->add_option("--shape", flags->shapes, "NAME=1,2,3"));
  command->add_flag("--random", flags->random, "Random data for inputs without a file");
  OneEach(command->add_option("--param", flags->parameters, "key=value: a request parameter"));
  command->add_flag("--raw", flags->raw, "Show outputs as numbers, also where they are classes");
  command->add_option("--output-dir", flags->output_dir, "Save every output there, as .npy");
  command->callback(
      [&globals, exit_code, flags] { *exit_code = Inference(globals, *flags).Run(); });
}

}  // namespace mk::cli

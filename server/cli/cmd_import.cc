// mk import: a published checkpoint becomes an installed pack.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "core/base/program.h"
#include "server/cli/common.h"
#include "server/import/vmamba.h"

namespace mk::cli {
namespace {

using nlohmann::json;

// Set by SIGINT and SIGTERM while an import runs: it ends in order and leaves nothing behind.
volatile sig_atomic_t stop_asked = 0;

void AskToStop(int) { stop_asked = 1; }

// Restores the former handlers at its end.
class StopOnSignal {
 public:
  StopOnSignal() {
    stop_asked = 0;
    struct sigaction action = {};
    action.sa_handler = &AskToStop;
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, &interrupt_);
    sigaction(SIGTERM, &action, &terminate_);
  }
  ~StopOnSignal() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGTERM, &terminate_, nullptr);
  }

 private:
  struct sigaction interrupt_ = {}, terminate_ = {};
};

// Where a program installed by the quick start finds packs: ../packs beside its own folder.
std::string NeighbouringRepository() {
  const std::string program = OwnProgram();
  if (program.empty()) return "";
  const std::string folder = program.substr(0, program.rfind('/'));
  return folder.substr(0, folder.rfind('/')) + "/packs";
}

json ToJson(const VMambaImported& imported, double seconds) {
  return {{"pack", imported.name},
          {"version", imported.version},
          {"folder", imported.folder},
          {"source", imported.source},
          {"library", imported.library},
          {"licence", imported.licence},
          {"parameters", imported.parameters},
          {"tensors", imported.tensors},
          {"elements", imported.elements},
          {"weights_file_bytes", imported.weights_file_bytes},
          {"notes", imported.notes},
          {"seconds", seconds}};
}

std::string Size(const char* what, const std::string& value, const char* none) {
  return value == "0" ? none : what + value;
}

void Show(const VMambaImported& imported, double seconds) {
  const auto& p = imported.parameters;
  const double megabytes = static_cast<double>(imported.weights_file_bytes) * 1e-6;
  for (const std::string& note : imported.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  std::cout << imported.name << "/" << imported.version << ": imported in "
            << HumanDuration(seconds) << " (" << Fixed(megabytes, 1) << " MB, "
            << Fixed(megabytes / seconds, 0) << " MB/s)\n"
            << "  checkpoint  " << imported.source << ", " << imported.tensors << " tensors, "
            << Fixed(static_cast<double>(imported.elements) * 1e-6, 2) << " M parameters\n"
            << "  network     " << p.at("config.embed_dim") << " channels, blocks "
            << p.at("config.depths") << ", " << p.at("config.forward_type") << ", ratio "
            << p.at("config.ssm_ratio") << ", state " << p.at("config.d_state") << ", "
            << p.at("config.num_classes") << " classes\n"
            << "  images      " << Size("shorter side to ", p.at("preprocess.resize"), "any size")
            << ", " << Size("centre ", p.at("preprocess.crop"), "uncropped") << ", mean "
            << p.at("preprocess.mean") << ", std " << p.at("preprocess.std") << "\n"
            << "  licence     " << imported.licence << "\n"
            << "  library     " << imported.library << "\n"
            << "  folder      " << imported.folder << "\n"
            << "Next: mk load " << imported.name << " && mk infer " << imported.name
            << " photo.jpg --top 5\n";
}

int Run(const Globals& globals, VMambaImport options) {
  options.more_repositories = {NeighbouringRepository()};
  const auto begin = std::chrono::steady_clock::now();
  absl::StatusOr<VMambaImported> imported;
  {
    const StopOnSignal stop;
    std::unique_ptr<Progress> progress;
    options.hooks.stop = [] { return stop_asked != 0; };
    options.hooks.progress = [&progress](uint64_t done, uint64_t total) {
      if (progress == nullptr)
        progress = std::make_unique<Progress>("importing, MB", total / 1000000);
      progress->Set(done / 1000000);
    };
    imported = ImportVMamba(options);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!imported.ok()) {
    return Report(globals, grpc::Status(static_cast<grpc::StatusCode>(imported.status().code()),
                                        std::string(imported.status().message())));
  }
  if (globals.json) {
    std::cout << JsonText(ToJson(*imported, seconds));
  } else {
    Show(*imported, seconds);
  }
  return kOk;
}

void AddOptions(CLI::App* command, VMambaImport* options) {
  command
      ->add_option("CHECKPOINT", options->checkpoint,
                   "A .safetensors or PyTorch .pth file, known by its content")
      ->required();
  command
      ->add_option("--repository", options->repository,
                   "The daemon's repository; the pack becomes DIR/NAME/VERSION")
      ->required();
  command->add_option("--name", options->name,
                      "Of the pack; default: vmamba-tiny, -small, -base by its sizes, else vmamba");
  command->add_option("--version", options->version, "Default: one more than the highest there")
      ->check(CLI::Range(int64_t{1}, INT64_MAX));
  command->add_flag("--force", options->force, "Replace the version when it is there");
  command->add_option("--labels", options->labels,
                      "Text file, one class a line; default: \"class 0\", \"class 1\", ...");
  command->add_option("--licence,--license", options->licence,
                      "Of the weights, for the manifest; default: MIT for the published sizes");
  command->add_option("--golden", options->golden,
                      "Golden vectors that the daemon runs at every load (packs/vmamba/import)");
  command->add_option("--pack", options->pack,
                      "The pack's library, or an installed version with it; default: the newest "
                      "vmamba of the repository, or of ../packs beside this program");
  command->add_option(
      "--state-dict", options->torch.state_dict,
      "Which dict of a .pth; default: model, else state_dict, else the file itself");
  command->add_option("--strip-prefix", options->strip_prefix,
                      "Before every name, besides module., _orig_mod. and model.");
  command->add_option("--resize", options->resize, "Shorter side of the picture; 0: as it is")
      ->capture_default_str();
  command->add_option("--crop", options->crop, "Side of its centre; 0: all of it")
      ->capture_default_str();
  command
      ->add_option("--max-input-pixels", options->max_input_pixels,
                   "Most of a picture that --crop 0 leaves as it is")
      ->capture_default_str();
  command->add_option("--filter", options->filter, "Of the resize, antialiased: bicubic, triangle")
      ->capture_default_str()
      ->check(CLI::IsMember({"bicubic", "triangle"}));
  command->add_option("--mean", options->mean, "A number per channel, for pixels in 0..1")
      ->capture_default_str();
  command->add_option("--std", options->std, "A number per channel")->capture_default_str();
  command->add_option("--max-pixels", options->max_encoded_pixels, "Most of a JPEG or PNG")
      ->capture_default_str();
  command->add_option("--lanes", options->lanes, "Requests served at once")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--python", options->torch.python, "Runs the converter for .pth files")
      ->capture_default_str();
}

}  // namespace

void AddImport(CLI::App& app, Globals& globals, int* exit_code) {
  auto* import = app.add_subcommand("import", "Make a pack of a published checkpoint");
  import->require_subcommand(1);
  import->fallthrough();
  auto* command = import->add_subcommand(
      "vmamba",
      "A VMamba checkpoint (key names patch_embed.*, layers.*, classifier.*) becomes a pack\n"
      "Sizes are read from the tensors; a fine-tuned head with any number of classes is taken. "
      "All\n"
      "or nothing: a version shows when it is complete. PyTorch's files are converted by a child\n"
      "that can read this one file and nothing else; nothing in them is ever run.\n"
      "Examples\n"
      "  mk import vmamba vssm_tiny.pth --repository run/packs --labels imagenet.txt\n"
      "  mk import vmamba tuned.safetensors --repository run/packs --name flowers \\\n"
      "      --labels flowers.txt --licence CC-BY-4.0\n"
      "  mk import vmamba run7.pth --repository run/packs --state-dict model_ema");
  auto options = std::make_shared<VMambaImport>();
  AddOptions(command, options.get());
  command->callback([&globals, exit_code, options] { *exit_code = Run(globals, *options); });
}

}  // namespace mk::cli

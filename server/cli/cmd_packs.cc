// mk status, packs, load, unload: what serves, and what shall.
#include <atomic>
#include <iostream>
#include <map>
#include <thread>

#include "core/base/text.h"
#include "server/cli/common.h"

namespace mk::cli {
namespace {

using nlohmann::json;

// The index and the statistics of what serves, as one list.
struct View {
  json packs = json::array();
  uint64_t ready = 0;
};

grpc::Status Look(Client& client, View* view) {
  inference::RepositoryIndexResponse index;
  inference::ModelStatisticsResponse statistics;
  {
    grpc::ClientContext context;
    client.Prepare(context);
    const grpc::Status status = client.stub().RepositoryIndex(&context, {}, &index);
    if (!status.ok()) return status;
  }
  {
    grpc::ClientContext context;
    client.Prepare(context);
    const grpc::Status status = client.stub().ModelStatistics(&context, {}, &statistics);
    if (!status.ok()) return status;
  }
  std::map<std::string, const inference::ModelStatistics*> by_name;
  for (const auto& one : statistics.model_stats()) by_name[one.name() + "/" + one.version()] = &one;
  for (const auto& model : index.models()) {
    json pack = {{"name", model.name()},
                 {"version", model.version()},
                 {"state", model.state()},
                 {"reason", model.reason()}};
    if (model.state() == "READY") ++view->ready;
    const auto found = by_name.find(model.name() + "/" + model.version());
    if (found != by_name.end()) {
      const auto& sums = found->second->inference_stats();
      const uint64_t ok = sums.success().count();
      pack["requests_ok"] = ok;
      pack["requests_failed"] = sums.fail().count();
      pack["mean_seconds"] =
          ok ? static_cast<double>(sums.success().ns()) / static_cast<double>(ok) * 1e-9 : 0;
      static constexpr const char* kRegions[] = {"weights_bytes", "scratch_peak_bytes",
                                                 "state_bytes"};
      for (const auto& usage : found->second->memory_usage()) {
        if (usage.id() >= 0 && usage.id() < 3) pack[kRegions[usage.id()]] = usage.byte_size();
      }
    }
    view->packs.push_back(std::move(pack));
  }
  return grpc::Status::OK;
}

int Status(const Globals& globals) {
  Client client(globals);
  inference::ServerMetadataResponse metadata;
  inference::ServerReadyResponse ready;
  std::string device;  // another server of this protocol does not tell
  {
    grpc::ClientContext context;
    client.Prepare(context);
    const grpc::Status status = client.stub().ServerMetadata(&context, {}, &metadata);
    if (!status.ok()) return Report(globals, status);
    const auto& headers = context.GetServerInitialMetadata();
    const auto found = headers.find("mergekernel-device");
    if (found != headers.end()) device.assign(found->second.data(), found->second.size());
  }
  grpc::ClientContext context;
  client.Prepare(context);
  grpc::Status status = client.stub().ServerReady(&context, {}, &ready);
  View view;
  if (status.ok()) status = Look(client, &view);
  if (!status.ok()) return Report(globals, status);
  if (globals.json) {
    std::cout << JsonText({{"name", metadata.name()},
                           {"version", metadata.version()},
                           {"device", device},
                           {"ready", ready.ready()},
                           {"address", globals.address},
                           {"packs_ready", view.ready},
                           {"packs_known", view.packs.size()}});
  } else {
    std::cout << TerminalText(metadata.name()) << " " << TerminalText(metadata.version()) << " at "
              << globals.address << ": " << (ready.ready() ? "ready" : "not ready") << ", "
              << view.ready << " of " << view.packs.size() << " pack versions ready, device "
              << (device.empty() ? "not told" : TerminalText(device)) << "\n";
  }
  return ready.ready() ? kOk : kNo;
}

int Packs(const Globals& globals) {
  Client client(globals);
  View view;
  const grpc::Status status = Look(client, &view);
  if (!status.ok()) return Report(globals, status);
  if (globals.json) {
    std::cout << JsonText(view.packs);
    return kOk;
  }
  if (view.packs.empty()) {
    std::cout << "The repository holds no pack.\n";
    return kOk;
  }
  Table table(
      {"PACK", "VERSION", "STATE", "OK", "FAILED", "MEAN", "WEIGHTS", "SCRATCH PEAK", "REASON"});
  for (const json& pack : view.packs) {
    const bool serves = pack.contains("requests_ok");
    table.Row({pack["name"], pack["version"], pack["state"],
               serves ? std::to_string(pack["requests_ok"].get<uint64_t>()) : "",
               serves ? std::to_string(pack["requests_failed"].get<uint64_t>()) : "",
               serves ? HumanDuration(pack["mean_seconds"]) : "",
               serves ? HumanBytes(pack.value("weights_bytes", uint64_t{0})) : "",
               serves ? HumanBytes(pack.value("scratch_peak_bytes", uint64_t{0})) : "",
               pack["reason"]});
  }
  std::cout << table.Text();
  return kOk;
}

// Runs a call that may take long, with a line that shows that time passes.
template <typename Call>
grpc::Status WithProgress(const std::string& what, Call call) {
  Progress progress(what, 0);
  std::atomic<bool> done{false};
  std::thread ticker([&] {
    while (!done) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      progress.Set(0);
    }
  });
  const grpc::Status status = call();
  done = true;
  ticker.join();
  return status;
}

int Finish(const Globals& globals, Client& client, const std::string& pack, const char* verb,
           const grpc::Status& status, double seconds) {
  if (!status.ok()) return ReportForPack(globals, client, pack, status);
  if (globals.json) {
    std::cout << JsonText({{"pack", pack}, {"done", verb}, {"seconds", seconds}});
  } else {
    std::cout << pack << ": " << verb << " in " << HumanDuration(seconds) << "\n";
  }
  return kOk;
}

int Load(const Globals& globals, const std::string& pack, const std::string& policy) {
  Client client(globals);
  inference::RepositoryModelLoadRequest request;
  request.set_model_name(pack);
  if (!policy.empty()) (*request.mutable_parameters())["version_policy"].set_string_param(policy);
  grpc::ClientContext context;
  client.Prepare(context);
  const auto begin = std::chrono::steady_clock::now();
  const grpc::Status status = WithProgress("loading " + pack, [&] {
    inference::RepositoryModelLoadResponse response;
    return client.stub().RepositoryModelLoad(&context, request, &response);
  });
  return Finish(globals, client, pack, "loaded", status,
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

int Unload(const Globals& globals, const std::string& pack) {
  Client client(globals);
  inference::RepositoryModelUnloadRequest request;
  request.set_model_name(pack);
  grpc::ClientContext context;
  client.Prepare(context);
  const auto begin = std::chrono::steady_clock::now();
  const grpc::Status status = WithProgress("unloading " + pack, [&] {
    inference::RepositoryModelUnloadResponse response;
    return client.stub().RepositoryModelUnload(&context, request, &response);
  });
  return Finish(globals, client, pack, "unloaded", status,
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

}  // namespace

void AddStatus(CLI::App& app, Globals& globals, int* exit_code) {
  auto* command = app.add_subcommand("status",
                                     "Whether the daemon is ready, and how many packs are\n"
                                     "Exit code 0: ready, 1: not ready, 3: no daemon.");
  command->callback([&globals, exit_code] { *exit_code = Status(globals); });
}

void AddPacks(CLI::App& app, Globals& globals, int* exit_code) {
  auto* command = app.add_subcommand(
      "packs", "The repository: versions, states, requests, memory, and why something failed");
  command->callback([&globals, exit_code] { *exit_code = Packs(globals); });
}

void AddLoadUnload(CLI::App& app, Globals& globals, int* exit_code) {
  auto* load = app.add_subcommand(
      "load",
      "Load a pack, or swap in what stands on disk now; the old version serves until the new one "
      "does\n"
      "Examples\n  mk load vmamba-pico\n  mk load vmamba-pico --version-policy 1,2");
  auto pack = std::make_shared<std::string>(), policy = std::make_shared<std::string>();
  load->add_option("PACK", *pack, "Name of the pack")->required();
  load->add_option("--version-policy", *policy, "latest, latest:N, all, or versions: 1,3");
  load->callback(
      [&globals, exit_code, pack, policy] { *exit_code = Load(globals, *pack, *policy); });
  auto* unload = app.add_subcommand(
      "unload", "Take a pack out of service, wait for its requests, give its memory back");
  unload->add_option("PACK", *pack, "Name of the pack")->required();
  unload->callback([&globals, exit_code, pack] { *exit_code = Unload(globals, *pack); });
}

}  // namespace mk::cli

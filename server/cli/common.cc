#include "server/cli/common.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "absl/status/status.h"

namespace mk::cli {

ExitCode ExitCodeOf(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return kOk;
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::ALREADY_EXISTS:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::OUT_OF_RANGE:
    case grpc::StatusCode::UNIMPLEMENTED:
    case grpc::StatusCode::UNAUTHENTICATED:
      return kRefused;
    case grpc::StatusCode::UNAVAILABLE:
      // gRPC's own words when there is nobody; the daemon's name a model or itself.
      return status.error_message().find("failed to connect") != std::string::npos ? kUnreachable
                                                                                   : kUnavailable;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::CANCELLED:
      return kUnavailable;
    default:
      return kFailed;
  }
}

Client::Client(const Globals& globals) : globals_(globals) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // A proxy of the environment is for the web; it would hide the daemon on the loopback.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  stub_ = inference::GRPCInferenceService::NewStub(
      grpc::CreateCustomChannel(globals.address, grpc::InsecureChannelCredentials(), arguments));
}

void Client::Prepare(grpc::ClientContext& context) const {
  context.set_deadline(
      std::chrono::system_clock::now() +
      std::chrono::milliseconds(static_cast<int64_t>(globals_.timeout_seconds * 1000)));
}

int Report(const Globals& globals, const grpc::Status& status) {
  const ExitCode code = ExitCodeOf(status);
  if (code == kOk) return kOk;
  const std::string name =
      absl::StatusCodeToString(static_cast<absl::StatusCode>(status.error_code()));
  std::fprintf(stderr, "mk: %s: %s\n", name.c_str(), status.error_message().c_str());
  if (code == kUnreachable) {
    std::fprintf(
        stderr,
        "    No daemon answers at %s. Start one (mergekerneld --repository DIR --load PACK) or\n"
        "    name its address: mk --address HOST:PORT, or the environment variable MK_ADDRESS.\n",
        globals.address.c_str());
  } else if (status.error_code() == grpc::StatusCode::PERMISSION_DENIED) {
    std::fputs("    Run mk on the daemon's own machine, or over its Unix socket.\n", stderr);
  }
  return code;
}

int ReportUsage(const std::string& message) {
  std::fprintf(stderr, "mk: %s\n", message.c_str());
  return kUsage;
}

int ReportForPack(const Globals& globals, Client& client, const std::string& pack,
                  const grpc::Status& status) {
  const int code = Report(globals, status);
  grpc::ClientContext context;
  client.Prepare(context);
  inference::RepositoryIndexResponse index;
  if (status.error_code() != grpc::StatusCode::NOT_FOUND ||
      !client.stub().RepositoryIndex(&context, {}, &index).ok()) {
    return code;
  }
  std::vector<std::string> names;
  for (const auto& model : index.models()) names.push_back(model.name());
  const std::string nearest = Nearest(pack, names);
  if (!nearest.empty())
    std::fprintf(stderr, "    Did you mean '%s'? `mk packs` lists all.\n", nearest.c_str());
  return code;
}

std::string Table::Text() const {
  std::vector<size_t> widths;
  const auto is_number = [](const std::string& cell) {
    return !cell.empty() && (cell[0] == '-' || (cell[0] >= '0' && cell[0] <= '9'));
  };
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (size_t i = 0; i < rows_[r].size(); ++i) {
      const std::string& cell = rows_[r][i];
      const std::string pad(widths[i] - cell.size(), ' ');
      // A heading stands over its column as the first row below it does.
      const bool right = r == 0 ? rows_.size() > 1 && i < rows_[1].size() && is_number(rows_[1][i])
                                : is_number(cell);
      line += (i ? "  " : "") + (right ? pad + cell : cell + pad);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string Fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string HumanBytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) value /= 1024, ++unit;
  return Fixed(value, unit == 0 ? 0 : 1) + " " + kUnits[unit];
}

std::string HumanDuration(double seconds) {
  if (seconds < 1e-3) return Fixed(seconds * 1e6, 0) + " us";
  if (seconds < 1) return Fixed(seconds * 1e3, 2) + " ms";
  return Fixed(seconds, 1) + " s";
}

double Percentile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(values.size())));
  const size_t index = std::min(values.size() - 1, rank == 0 ? 0 : rank - 1);
  std::nth_element(values.begin(), values.begin() + static_cast<long>(index), values.end());
  return values[index];
}

std::string Nearest(const std::string& word, const std::vector<std::string>& words) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : words) {
    std::vector<size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= candidate.size(); ++j) {
        const size_t substituted = diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
      }
    }
    if (row[candidate.size()] < best_distance)
      best = candidate, best_distance = row[candidate.size()];
  }
  return best;
}

Progress::Progress(std::string what, uint64_t total)
    : what_(std::move(what)),
      total_(total),
      shown_(isatty(2) != 0),
      begin_(std::chrono::steady_clock::now()),
      last_(begin_) {}

void Progress::Set(uint64_t done) {
  const auto now = std::chrono::steady_clock::now();
  if (!shown_ || now - begin_ < std::chrono::seconds(1) ||
      now - last_ < std::chrono::milliseconds(100)) {
    return;
  }
  last_ = now;
  drawn_ = true;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double rate = static_cast<double>(done) / seconds;
  std::string bar;
  if (total_ != 0) {
    const auto filled =
        static_cast<size_t>(30.0 * static_cast<double>(done) / static_cast<double>(total_));
    bar = "[" + std::string(std::min<size_t>(filled, 30), '#') +
          std::string(30 - std::min<size_t>(filled, 30), '.') + "] " + std::to_string(done) + "/" +
          std::to_string(total_);
  } else if (done != 0) {
    bar = std::to_string(done);
  }
  std::fprintf(stderr, "\r%s %s %s  %.0f s ", what_.c_str(), bar.c_str(),
               done ? (Fixed(rate, 0) + "/s").c_str() : "", seconds);
  std::fflush(stderr);
}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\033[K", stderr);
}

}  // namespace mk::cli

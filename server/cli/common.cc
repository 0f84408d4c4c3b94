#include "server/cli/common.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "absl/status/status.h"
#include "absl/strings/str_split.h"
#include "core/base/text.h"

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

namespace {

int Show(const Globals& globals, const std::string& code, const std::string& message,
         const std::string& hint, ExitCode exit_code) {
  if (globals.json) {
    const nlohmann::json error = {
        {"code", code}, {"message", message}, {"hint", hint}, {"exit_code", exit_code}};
    std::fprintf(stderr, "%s\n",
                 nlohmann::json{{"error", error}}
                     .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                     .c_str());
    return exit_code;
  }
  std::fprintf(stderr, "mk: %s: %s\n", code.c_str(), TerminalText(message, 4000).c_str());
  for (const absl::string_view line : absl::StrSplit(hint, '\n', absl::SkipEmpty())) {
    std::fprintf(stderr, "    %s\n", TerminalText(std::string(line), 4000).c_str());
  }
  return exit_code;
}

std::string CodeName(const grpc::Status& status) {
  return absl::StatusCodeToString(static_cast<absl::StatusCode>(status.error_code()));
}

std::string HintFor(const Globals& globals, const grpc::Status& status) {
  if (ExitCodeOf(status) == kUnreachable) {
    return "No daemon answers at " + globals.address +
           ". Start one (mergekerneld --repository DIR --load PACK) or\n"
           "name its address: mk --address HOST:PORT, or the environment variable MK_ADDRESS.";
  }
  if (status.error_code() == grpc::StatusCode::PERMISSION_DENIED) {
    return "Run mk on the daemon's own machine, or over its Unix socket.";
  }
  return "";
}

}  // namespace

int Report(const Globals& globals, const grpc::Status& status) {
  if (status.ok()) return kOk;
  return Show(globals, CodeName(status), status.error_message(), HintFor(globals, status),
              ExitCodeOf(status));
}

int ReportUsage(const Globals& globals, const std::string& message, const std::string& hint) {
  return Show(globals, "USAGE", message, hint, kUsage);
}

int ReportNo(const Globals& globals, const std::string& code, const std::string& message,
             const std::string& hint) {
  return Show(globals, code, message, hint, kNo);
}

int ReportForPack(const Globals& globals, Client& client, const std::string& pack,
                  const grpc::Status& status) {
  grpc::ClientContext context;
  client.Prepare(context);
  inference::RepositoryIndexResponse index;
  if (status.error_code() != grpc::StatusCode::NOT_FOUND ||
      !client.stub().RepositoryIndex(&context, {}, &index).ok()) {
    return Report(globals, status);
  }
  std::vector<std::string> names;
  for (const auto& model : index.models()) names.push_back(model.name());
  const std::string meant = Meant(pack, names);
  return Show(globals, CodeName(status), status.error_message(),
              meant.empty() ? "" : "Did you mean '" + meant + "'? `mk packs` lists all.",
              ExitCodeOf(status));
}

std::string JsonText(const nlohmann::json& value) {
  return value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void Table::Row(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = TerminalText(cell, 2000);
  rows_.push_back(std::move(cells));
}

namespace {

// Of UTF-8 text: all bytes but those that continue a character.
size_t Characters(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string Table::Text() const {
  std::vector<size_t> widths;
  // "5", "-0.25", "940 us", "1.5 MiB", "12 %", and a lone dash where there is no number.
  const auto is_number = [](const std::string& cell) {
    const size_t number = cell.find_first_not_of("-.0123456789");
    const std::string unit = number == cell.npos ? "" : cell.substr(number);
    return !cell.empty() && number != 0 &&
           (unit.empty() || (unit[0] == ' ' && unit.size() <= 4 &&
                             unit.find_first_of("0123456789 ", 1) == unit.npos));
  };
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Characters(row[i]));
  }
  std::string text;
  for (size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (size_t i = 0; i < rows_[r].size(); ++i) {
      const std::string& cell = rows_[r][i];
      const std::string pad(widths[i] - Characters(cell), ' ');
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

std::string Meant(const std::string& word, const std::vector<std::string>& words) {
  return Nearest(word, words, std::max<size_t>(2, word.size() / 3));
}

Progress::Progress(std::string what, uint64_t total)
    : what_(std::move(what)),
      total_(total),
      shown_(isatty(2) != 0),
      begin_(std::chrono::steady_clock::now()),
      last_(begin_) {}

void Progress::Set(uint64_t done) {
  Set(done, total_ == 0 ? 0 : static_cast<double>(done) / static_cast<double>(total_));
}

void Progress::Set(uint64_t done, double fraction) {
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
  if (fraction > 0) {
    const auto filled = static_cast<size_t>(30 * std::min(fraction, 1.0));
    bar = "[" + std::string(filled, '#') + std::string(30 - filled, '.') + "] " +
          std::to_string(done) + (total_ == 0 ? "" : "/" + std::to_string(total_));
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

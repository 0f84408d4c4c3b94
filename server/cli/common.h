// What the subcommands of `mk` share: the daemon's stub, errors to exit codes, tables, a progress
// line.
#ifndef MERGEKERNEL_SERVER_CLI_COMMON_H_
#define MERGEKERNEL_SERVER_CLI_COMMON_H_

#include <grpcpp/grpcpp.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/inference/grpc_service.grpc.pb.h"

namespace mk::cli {

// Scripts may rely on these; docs/mk.md lists them.
enum ExitCode {
  kOk = 0,
  kNo = 1,           // the answer is no: not ready, a check failed
  kUsage = 2,        // wrong flags or files
  kUnreachable = 3,  // no daemon at the address
  kRefused = 4,      // the request is wrong: INVALID_ARGUMENT, NOT_FOUND, ...
  kUnavailable = 5,  // try again: UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED
  kFailed = 6,       // the daemon's or a pack's fault
};
ExitCode ExitCodeOf(const grpc::Status& status);

// Options of every subcommand.
struct Globals {
  std::string address = "127.0.0.1:8001";
  bool json = false;
  double timeout_seconds = 60;
};

using Stub = inference::GRPCInferenceService::Stub;

class Client {
 public:
  explicit Client(const Globals& globals);
  Stub& stub() { return *stub_; }
  // Sets the deadline of a call.
  void Prepare(grpc::ClientContext& context) const;

 private:
  const Globals globals_;
  std::unique_ptr<Stub> stub_;
};

// What went wrong, for people or, with --json, for scripts; both on standard error, so that
// standard output holds a whole answer or nothing. People get "mk: CODE: message" and a line per
// hint, scripts
// {"error": {"code", "message", "hint", "exit_code"}} on one line. Text of the daemon is escaped.
// Returns the exit code.
int Report(const Globals& globals, const grpc::Status& status);
int ReportUsage(const Globals& globals, const std::string& message, const std::string& hint = "");
// The answer is no: kNo, under a code of the command's own.
int ReportNo(const Globals& globals, const std::string& code, const std::string& message,
             const std::string& hint = "");

// The same for a pack that may be misspelt: names the nearest of the repository.
int ReportForPack(const Globals& globals, Client& client, const std::string& pack,
                  const grpc::Status& status);

// JSON for standard output: indented, ends in a newline; bytes that are no UTF-8 become U+FFFD.
std::string JsonText(const nlohmann::json& value);

// Rows of text with aligned columns; numbers, also with a short unit, to the right. Control
// characters are escaped.
class Table {
 public:
  explicit Table(std::vector<std::string> head) : rows_{std::move(head)} {}
  void Row(std::vector<std::string> cells);
  std::string Text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string Fixed(double value, int digits);
std::string HumanBytes(uint64_t bytes);                   // "1.5 MiB"
std::string HumanDuration(double seconds);                // "94 us", "1.25 ms", "3.2 s"
double Percentile(std::vector<double> values, double q);  // nearest rank; 0 for none
// Of `words` what was probably meant by `word`; "" when none is near.
std::string Meant(const std::string& word, const std::vector<std::string>& words);

// A line on standard error that shows how far long work is; appears after a second, and only on a
// terminal.
class Progress {
 public:
  Progress(std::string what, uint64_t total);  // total 0: not known
  ~Progress();
  void Set(uint64_t done);
  // The same where time, not a count, tells how far it is: `fraction` in 0..1 fills the bar.
  void Set(uint64_t done, double fraction);

 private:
  const std::string what_;
  const uint64_t total_;
  const bool shown_;
  const std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point last_;
  bool drawn_ = false;
};

// A repeatable option that takes one word each time: the words behind it are not its.
inline void OneEach(CLI::Option* option) { option->type_size(1)->allow_extra_args(false); }

// Each adds its subcommand to `app`; the result of the one chosen is left in `*exit_code`.
void AddStatus(CLI::App& app, Globals& globals, int* exit_code);
void AddPacks(CLI::App& app, Globals& globals, int* exit_code);
void AddLoadUnload(CLI::App& app, Globals& globals, int* exit_code);
void AddInfer(CLI::App& app, Globals& globals, int* exit_code);
void AddBench(CLI::App& app, Globals& globals, int* exit_code);
void AddDoctor(CLI::App& app, Globals& globals, int* exit_code);
void AddImport(CLI::App& app, Globals& globals, int* exit_code);

}  // namespace mk::cli

#endif  // MERGEKERNEL_SERVER_CLI_COMMON_H_

#include "packs/echo/echo.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace mk::echo {
namespace {

constexpr int64_t kMaxDelayMs = 60'000;
constexpr int64_t kSliceNs = 500'000;  // how often a waiting run looks whether its caller has gone

constexpr std::array<std::pair<std::string_view, mk_dtype>, 14> kDtypes = {
    {{"BOOL", MK_DTYPE_BOOL},
     {"UINT8", MK_DTYPE_UINT8},
     {"UINT16", MK_DTYPE_UINT16},
     {"UINT32", MK_DTYPE_UINT32},
     {"UINT64", MK_DTYPE_UINT64},
     {"INT8", MK_DTYPE_INT8},
     {"INT16", MK_DTYPE_INT16},
     {"INT32", MK_DTYPE_INT32},
     {"INT64", MK_DTYPE_INT64},
     {"FP16", MK_DTYPE_FP16},
     {"FP32", MK_DTYPE_FP32},
     {"FP64", MK_DTYPE_FP64},
     {"BF16", MK_DTYPE_BF16},
     {"BYTES", MK_DTYPE_BYTES}}};

// The parts of `text` between separators; empty parts are kept.
std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end == text.npos ? text.npos : end - begin));
    if (end == text.npos) return parts;
    begin = end + 1;
  }
}

Result<std::vector<int64_t>> ParseShape(const std::string& entry, const std::string& text) {
  std::vector<int64_t> shape;
  if (text.empty()) return shape;  // a scalar
  for (const std::string& part : Split(text, ',')) {
    char* end = nullptr;
    errno = 0;
    const long long dim = std::strtoll(part.c_str(), &end, 10);
    if (part.empty() || *end != '\0' || errno != 0 || dim < -1) {
      return InvalidArgument("parameter tensors: entry '" + entry + "': dim '" + part +
                             "' must be an integer >= -1");
    }
    shape.push_back(dim);
  }
  if (shape.size() > MK_MAX_RANK) {
    return InvalidArgument("parameter tensors: entry '" + entry + "': rank " +
                           std::to_string(shape.size()) + " > 8");
  }
  return shape;
}

// "INPUT0:UINT8:-1,16" and its kind, to pairs.
Result<std::vector<Pair>> ParsePairs(const std::string& text) {
  std::vector<Pair> pairs;
  for (const std::string& entry : Split(text, ' ')) {
    if (entry.empty()) continue;
    const std::vector<std::string> fields = Split(entry, ':');
    if (fields.size() != 3 || fields[0].rfind("INPUT", 0) != 0) {
      return InvalidArgument("parameter tensors: entry '" + entry +
                             "' must read INPUT<suffix>:<dtype>:<dims>");
    }
    const auto* row = std::find_if(kDtypes.begin(), kDtypes.end(),
                                   [&](const auto& known) { return known.first == fields[1]; });
    if (row == kDtypes.end()) {
      return InvalidArgument("parameter tensors: entry '" + entry + "': unknown dtype '" +
                             fields[1] + "'");
    }
    MK_TRY_ASSIGN(std::vector<int64_t> shape, ParseShape(entry, fields[2]));
    pairs.push_back({fields[0], "OUTPUT" + fields[0].substr(5), row->second, std::move(shape)});
  }
  if (pairs.empty()) return InvalidArgument("parameter tensors is empty");
  return pairs;
}

// Waits `delay_ms` in slices. Cancelled when the caller goes away meanwhile.
Status Wait(const Context& context, int64_t delay_ms) {
  if (delay_ms < 0 || delay_ms > kMaxDelayMs) {
    return InvalidArgument("parameter delay_ms " + std::to_string(delay_ms) + " not in 0..60000");
  }
  const uint64_t end_ns = context.now_ns() + static_cast<uint64_t>(delay_ms) * 1'000'000;
  for (uint64_t now = context.now_ns(); now < end_ns; now = context.now_ns()) {
    if (context.cancelled()) return Cancelled("echo: cancelled while waiting");
    const auto slice = static_cast<long>(std::min<uint64_t>(end_ns - now, kSliceNs));
    const timespec pause = {0, slice};
    nanosleep(&pause, nullptr);
  }
  return Ok();
}

}  // namespace

Status Echo::Describe(const Host& host, SignatureBuilder& signature) {
  MK_TRY_ASSIGN(const std::vector<Pair> pairs, ParsePairs(host.Parameter("tensors")));
  for (const Pair& pair : pairs) {
    signature.Input(pair.input.c_str(), pair.dtype, pair.shape);
    signature.Output(pair.output.c_str(), pair.dtype, pair.shape);
  }
  return Ok();
}

Result<std::unique_ptr<Echo>> Echo::Create(const Host& host) {
  MK_TRY_ASSIGN(std::vector<Pair> pairs, ParsePairs(host.Parameter("tensors")));
  return std::unique_ptr<Echo>(new Echo(std::move(pairs)));
}

Status Echo::Run(Context& context) {
  int64_t delay_ms = 0;
  if (context.Parameter("delay_ms", &delay_ms)) MK_TRY(Wait(context, delay_ms));
  for (const Pair& pair : pairs_) {
    const mk_tensor* in = context.Input(pair.input);
    if (in == nullptr) return Internal("echo: host left out required input " + pair.input);
    const std::vector<int64_t> shape(in->shape, in->shape + in->rank);
    MK_TRY_ASSIGN(void* out, context.Output(pair.output.c_str(), in->dtype, shape, in->size_bytes));
    if (in->size_bytes != 0) std::memcpy(out, in->data, in->size_bytes);
  }
  return Ok();
}

}  // namespace mk::echo

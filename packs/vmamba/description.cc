#include "packs/vmamba/description.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/image/resize_normalize_params.h"

namespace mk::vmamba {
namespace {

constexpr int64_t kMaxEmbedDim = 1024;
constexpr int64_t kMaxStages = 6;
constexpr int64_t kMaxDepth = 64;
constexpr int64_t kMaxClasses = 65536;
constexpr int64_t kMaxSide = 16384;
constexpr double kMaxRatio = 16;

Status Broken(const char* key, const std::string& value, const std::string& rule) {
  return InvalidArgument(std::string("parameter ") + key + " '" + value + "' must be " + rule);
}

Result<std::string> Text(const Host& host, const char* key) {
  std::string value = host.Parameter(key);
  if (value.empty()) return InvalidArgument(std::string("parameter ") + key + " is missing");
  return value;
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end == text.npos ? text.npos : end - begin));
    if (end == text.npos) return parts;
    begin = end + 1;
  }
}

std::optional<int64_t> ParseInteger(const std::string& text) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// A plain decimal number; "nan", "inf" and hexadecimal are none.
std::optional<double> ParseNumber(const std::string& text) {
  if (text.empty() || text.find_first_not_of("0123456789+-.eE") != text.npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

Status ReadInteger(const Host& host, const char* key, int64_t low, int64_t high, int64_t& out) {
  MK_TRY_ASSIGN(const std::string text, Text(host, key));
  const std::optional<int64_t> value = ParseInteger(text);
  if (!value || *value < low || *value > high) {
    return Broken(key, text, "an integer in " + std::to_string(low) + ".." + std::to_string(high));
  }
  out = *value;
  return Ok();
}

Status ReadRatio(const Host& host, const char* key, double& out) {
  MK_TRY_ASSIGN(const std::string text, Text(host, key));
  const std::optional<double> value = ParseNumber(text);
  if (!value || *value <= 0 || *value > kMaxRatio) {
    return Broken(key, text, "a number above 0 and at most 16");
  }
  out = *value;
  return Ok();
}

Status ReadDepths(const Host& host, std::vector<int64_t>& out) {
  constexpr char kKey[] = "config.depths";
  MK_TRY_ASSIGN(const std::string text, Text(host, kKey));
  for (const std::string& part : Split(text, '-')) {
    const std::optional<int64_t> depth = ParseInteger(part);
    if (!depth || *depth < 1 || *depth > kMaxDepth ||
        static_cast<int64_t>(out.size()) == kMaxStages) {
      return Broken(kKey, text, "1 to 6 integers in 1..64 joined by '-'");
    }
    out.push_back(*depth);
  }
  return Ok();
}

Status ReadRank(const Host& host, int64_t& out) {
  constexpr char kKey[] = "config.dt_rank";
  MK_TRY_ASSIGN(const std::string text, Text(host, kKey));
  if (text == "auto") {
    out = 0;
    return Ok();
  }
  return ReadInteger(host, kKey, 1, 4096, out);
}

// `count` numbers joined by ','.
Status ReadChannelValues(const Host& host, const char* key, int64_t count, bool may_be_zero,
                         float* out) {
  MK_TRY_ASSIGN(const std::string text, Text(host, key));
  const std::vector<std::string> parts = Split(text, ',');
  bool good = static_cast<int64_t>(parts.size()) == count;
  for (size_t i = 0; good && i < parts.size(); ++i) {
    const std::optional<double> value = ParseNumber(parts[i]);
    good = value && std::isfinite(static_cast<float>(*value)) &&
           (may_be_zero || static_cast<float>(*value) != 0.0f);
    if (good) out[i] = static_cast<float>(*value);
  }
  if (good) return Ok();
  return Broken(key, text,
                std::to_string(count) + (may_be_zero ? "" : " non-zero") +
                    " numbers joined by ',', one per channel");
}

Status ReadForwardType(const Host& host, bool& gated) {
  constexpr char kKey[] = "config.forward_type";
  const std::string text = host.Parameter(kKey, "v05_noz");
  gated = text == "v05";
  if (gated || text == "v05_noz") return Ok();
  return Broken(kKey, text, "v05 (with the gate) or v05_noz");
}

// The crop's own size where there is one; else as said, or as large as the largest encoded image.
Status ReadMaxInputPixels(const Host& host, Preprocessing& p) {
  constexpr char kKey[] = "preprocess.max_input_pixels";
  const int64_t side = p.crop + 2 * p.pad;
  p.max_input_pixels = p.crop != 0 ? side * side : p.max_encoded_pixels;
  if (host.Parameter(kKey).empty()) return Ok();
  const int64_t least = p.crop != 0 ? side * side : 1;
  return ReadInteger(host, kKey, least, int64_t{64} << 20, p.max_input_pixels);
}

// Triangle where it is missing: manifests of before had no other.
Status ReadFilter(const Host& host, Preprocessing& p) {
  constexpr char kKey[] = "preprocess.filter";
  const std::string text(host.Parameter(kKey));
  if (!text.empty() && text != "triangle" && text != "bicubic")
    return Broken(kKey, text, "triangle or bicubic");
  p.filter = text == "bicubic" ? MK_RESIZE_BICUBIC : MK_RESIZE_TRIANGLE;
  return Ok();
}

Status ReadPreprocessing(const Host& host, const Description& d, Preprocessing& p) {
  MK_TRY(ReadInteger(host, "preprocess.resize", 0, kMaxSide, p.resize));
  MK_TRY(ReadInteger(host, "preprocess.crop", 0, kMaxSide, p.crop));
  MK_TRY(ReadInteger(host, "preprocess.pad", 0, 1024, p.pad));
  MK_TRY(ReadInteger(host, "preprocess.channels", 1, 3, p.channels));
  MK_TRY(ReadInteger(host, "preprocess.max_encoded_pixels", 1, int64_t{64} << 20,
                     p.max_encoded_pixels));
  if (p.channels == 2 || p.channels != d.in_chans) {
    return Broken("preprocess.channels", std::to_string(p.channels),
                  "1 or 3, and equal to config.in_chans " + std::to_string(d.in_chans));
  }
  MK_TRY(ReadChannelValues(host, "preprocess.mean", p.channels, true, p.mean));
  MK_TRY(ReadChannelValues(host, "preprocess.std", p.channels, false, p.std));
  if (p.resize != 0 && p.crop > p.resize) {
    return Broken("preprocess.crop", std::to_string(p.crop),
                  "at most preprocess.resize " + std::to_string(p.resize));
  }
  const int64_t side = p.crop + 2 * p.pad;
  if (p.crop != 0 && side % d.SideMultiple() != 0) {
    return Broken("preprocess.crop", std::to_string(p.crop),
                  "such that crop + 2 pad, " + std::to_string(side) + ", is a multiple of " +
                      std::to_string(d.SideMultiple()));
  }
  MK_TRY(ReadFilter(host, p));
  return ReadMaxInputPixels(host, p);
}

}  // namespace

int64_t Description::Inner(int64_t stage) const {
  return static_cast<int64_t>(ssm_ratio * static_cast<double>(Channels(stage)));
}

int64_t Description::Rank(int64_t stage) const {
  return dt_rank != 0 ? dt_rank : (Channels(stage) + 15) / 16;
}

int64_t Description::Hidden(int64_t stage) const {
  return static_cast<int64_t>(mlp_ratio * static_cast<double>(Channels(stage)));
}

Result<Description> ParseDescription(const Host& host) {
  Description d;
  MK_TRY(ReadInteger(host, "config.in_chans", 1, 3, d.in_chans));
  MK_TRY(ReadInteger(host, "config.embed_dim", 2, kMaxEmbedDim, d.embed_dim));
  if (d.embed_dim % 2 != 0) {
    return Broken("config.embed_dim", std::to_string(d.embed_dim),
                  "even: the stem's first convolution has half of it");
  }
  MK_TRY(ReadDepths(host, d.depths));
  MK_TRY(ReadInteger(host, "config.num_classes", 1, kMaxClasses, d.num_classes));
  MK_TRY(ReadRatio(host, "config.ssm_ratio", d.ssm_ratio));
  MK_TRY(ReadInteger(host, "config.d_state", 1, 256, d.d_state));
  MK_TRY(ReadRank(host, d.dt_rank));
  MK_TRY(ReadRatio(host, "config.mlp_ratio", d.mlp_ratio));
  MK_TRY(ReadForwardType(host, d.gated));
  if (d.Inner(0) < 1) {
    return Broken("config.ssm_ratio", host.Parameter("config.ssm_ratio"),
                  "such that ratio x embed_dim is at least 1");
  }
  if (d.Hidden(0) < 1) {
    return Broken("config.mlp_ratio", host.Parameter("config.mlp_ratio"),
                  "such that ratio x embed_dim is at least 1");
  }
  MK_TRY(ReadPreprocessing(host, d, d.preprocessing));
  return d;
}

}  // namespace mk::vmamba

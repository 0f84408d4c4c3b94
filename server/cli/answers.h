// A response's tensors to JSON values, and the other way round for values typed by hand.
#ifndef MERGEKERNEL_SERVER_CLI_ANSWERS_H_
#define MERGEKERNEL_SERVER_CLI_ANSWERS_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace mk::cli {

// The elements of `raw`, packed as the protocol packs them, as an array: integers exactly, FP16 and
// BF16 as the fp32 that they equal, BOOL as true and false, BYTES as strings. NaN and infinities
// stay what they are until printed, where JSON makes them null. Elements that `raw` cuts short are
// left out; null for an unknown datatype.
nlohmann::json Values(const std::string& datatype, std::string_view raw);

// `texts` as elements of `datatype`, packed: for BYTES each text is one element, for numbers each
// is a comma-separated list. INVALID_ARGUMENT naming the text that is no such number or passes its
// range.
struct Packed {
  std::string raw;
  uint64_t count = 0;
};
absl::StatusOr<Packed> Pack(const std::string& datatype, const std::vector<std::string>& texts);

}  // namespace mk::cli

#endif  // MERGEKERNEL_SERVER_CLI_ANSWERS_H_

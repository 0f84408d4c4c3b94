#include "core/base/dtype.h"

#include <array>

namespace mk {
namespace {

struct Row {
  std::string_view name;
  uint64_t size;
};

// Indexed by mk_dtype.
constexpr std::array<Row, 15> kRows = {{{"INVALID", 0},
                                        {"BOOL", 1},
                                        {"UINT8", 1},
                                        {"UINT16", 2},
                                        {"UINT32", 4},
                                        {"UINT64", 8},
                                        {"INT8", 1},
                                        {"INT16", 2},
                                        {"INT32", 4},
                                        {"INT64", 8},
                                        {"FP16", 2},
                                        {"FP32", 4},
                                        {"FP64", 8},
                                        {"BF16", 2},
                                        {"BYTES", 0}}};
static_assert(MK_DTYPE_BYTES == kRows.size() - 1);

}  // namespace

std::string_view DtypeName(mk_dtype dtype) { return kRows[dtype < kRows.size() ? dtype : 0].name; }

mk_dtype DtypeFromName(std::string_view name) {
  for (mk_dtype i = 1; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return i;
  }
  return MK_DTYPE_INVALID;
}

uint64_t DtypeSize(mk_dtype dtype) { return kRows[dtype < kRows.size() ? dtype : 0].size; }

}  // namespace mk

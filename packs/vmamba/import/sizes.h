// The sizes of a VMamba, read off the shapes of the tensors that tell them.
#ifndef MERGEKERNEL_PACKS_VMAMBA_IMPORT_SIZES_H_
#define MERGEKERNEL_PACKS_VMAMBA_IMPORT_SIZES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mk::vmamba {

using Shape = std::vector<int64_t>;

std::string ShapeText(const Shape& shape);  // "[2,3]"

// Shapes by name, without prefix and bookkeeping.
class Shapes {
 public:
  void Add(const std::string& name, const Shape& shape) { by_name_.emplace(name, shape); }
  const Shape* Find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &found->second;
  }
  // Dim `dim` of `name` when it is there with `rank` dims (or with `rank` and a 1x1 window), or 0.
  int64_t Dim(const std::string& name, size_t rank, size_t dim) const {
    const Shape* shape = Find(name);
    if (shape == nullptr || (shape->size() != rank && !(rank == 2 && shape->size() == 4))) return 0;
    return (*shape)[dim];
  }
  const std::map<std::string, Shape>& all() const { return by_name_; }

 private:
  std::map<std::string, Shape> by_name_;
};

// The pack's `config.*` parameters; none where a tensor that tells one is missing or absurd, which
// goes into `problems`.
std::map<std::string, std::string> ReadSizes(const Shapes& shapes,
                                             std::vector<std::string>& problems);

}  // namespace mk::vmamba

#endif  // MERGEKERNEL_PACKS_VMAMBA_IMPORT_SIZES_H_

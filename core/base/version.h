// The version of this tree: what the daemon and `mk` say of themselves.
#ifndef MERGEKERNEL_CORE_BASE_VERSION_H_
#define MERGEKERNEL_CORE_BASE_VERSION_H_

namespace mk {

inline constexpr char kVersion[] = "0.1.0";  // as in CHANGELOG.md

}  // namespace mk

#endif  // MERGEKERNEL_CORE_BASE_VERSION_H_

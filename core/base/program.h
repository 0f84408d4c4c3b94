// Where the running program stands.
#ifndef MERGEKERNEL_CORE_BASE_PROGRAM_H_
#define MERGEKERNEL_CORE_BASE_PROGRAM_H_

#include <string>

namespace mk {

// The path of the running program's file; "" where the system does not tell.
std::string OwnProgram();

// A file beside it, whether it is there or not; `name` alone where the system does not tell.
std::string BesideOwnProgram(const std::string& name);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_BASE_PROGRAM_H_

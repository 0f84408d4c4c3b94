// The library of a pack, taken from where one is installed, for a new version beside it.
#ifndef MERGEKERNEL_SERVER_IMPORT_PACK_LIBRARY_FILE_H_
#define MERGEKERNEL_SERVER_IMPORT_PACK_LIBRARY_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/mergekernel/v1/pack.pb.h"

namespace mk {

struct PackLibraryFile {
  std::string path;   // where it was found, for people
  std::string bytes;  // of pack.so
  mergekernel::v1::Code code;
};

// Looks for a library whose entry says it is `code_name`:
//  - `given`, when it is not empty: a library, or a version's folder with a pack.so in it;
//  - else, in each of `repositories` in turn: the installed version with the highest code version,
//    whose file fits its manifest's digest.
// NOT_FOUND saying where was looked; INVALID_ARGUMENT for a library that is another pack's, breaks
// the contract's rules, or speaks another ABI. None of the library's code runs: it has no
// constructors (that is checked first), and its entry is data.
absl::StatusOr<PackLibraryFile> FindPackLibrary(const std::string& code_name,
                                                const std::string& given,
                                                const std::vector<std::string>& repositories);

// All of a file, at most `limit` bytes. NOT_FOUND, or INVALID_ARGUMENT for what is no plain file or
// larger.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, uint64_t limit);

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_IMPORT_PACK_LIBRARY_FILE_H_

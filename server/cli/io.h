// Where `mk` writes, and what it may assume about it. Passed in, so that tests read what people see.
#ifndef MERGEKERNEL_SERVER_CLI_IO_H_
#define MERGEKERNEL_SERVER_CLI_IO_H_

#include <ostream>

namespace mk::cli {

struct Io {
  std::ostream& out;  // answers
  std::ostream& err;  // errors, hints and progress
  bool colors = false;           // `out` is a terminal and nobody asked for plain text
  bool err_is_terminal = false;  // progress may be drawn
};

}  // namespace mk::cli

#endif  // MERGEKERNEL_SERVER_CLI_IO_H_

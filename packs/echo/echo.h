// Echo: gives each input back unchanged. The template to copy for a pack of one's own
// (docs/write-a-pack.md), and what tests and benches of the daemon serve.
#ifndef MERGEKERNEL_PACKS_ECHO_ECHO_H_
#define MERGEKERNEL_PACKS_ECHO_ECHO_H_

#include <memory>
#include <string>
#include <vector>

#include "core/sdk/context.h"
#include "core/sdk/pack.h"
#include "core/sdk/status.h"

namespace mk::echo {

// One tensor that goes in as `IN...` and comes out as `OUT...`.
struct Pair {
  std::string input;
  std::string output;
  mk_dtype dtype;
  std::vector<int64_t> shape;  // -1: decided by each request
};

class Echo {
 public:
  // One input and one output per pair that the manifest's parameter `tensors` lists:
  // "INPUT0:UINT8:-1,16 ...", separated by blanks; INPUTx comes back as OUTPUTx. InvalidArgument
  // names the entry and the rule it breaks.
  static Status Describe(const Host& host, SignatureBuilder& signature);
  static Result<std::unique_ptr<Echo>> Create(const Host& host);

  // Copies every input the request carries. Request parameter `delay_ms` (int64, 0 to 60,000):
  // waits that long first, as a slow model would, and answers Cancelled soon after the caller has
  // gone.
  Status Run(Context& context);

 private:
  explicit Echo(std::vector<Pair> pairs) : pairs_(std::move(pairs)) {}

  const std::vector<Pair> pairs_;
};

}  // namespace mk::echo

#endif  // MERGEKERNEL_PACKS_ECHO_ECHO_H_

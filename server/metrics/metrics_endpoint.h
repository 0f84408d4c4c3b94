// The HTTP endpoint that Prometheus scrapes.
#ifndef MERGEKERNEL_SERVER_METRICS_METRICS_ENDPOINT_H_
#define MERGEKERNEL_SERVER_METRICS_METRICS_ENDPOINT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/metrics/families.h"

namespace mk {

// Answers GET /metrics from the moment it exists until its destructor has returned.
class MetricsEndpoint {
 public:
  // Yields what is true now. Called once per scrape, on the server's threads (two), possibly on
  // both at once. What it throws becomes a scrape that holds mergekernel_scrape_errors_total alone.
  using Source = std::function<DaemonSnapshot()>;

  // Listens on `address`, "host:port" or "[ipv6]:port"; port 0 takes a free one. All that `source`
  // looks at outlives the endpoint. INVALID_ARGUMENT for what is no such address, UNAVAILABLE with
  // the address when it cannot be listened on.
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Create(const std::string& address,
                                                                 Source source);
  // Stops listening and waits for the scrapes under way.
  ~MetricsEndpoint();
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  MetricsEndpoint& operator=(const MetricsEndpoint&) = delete;

  int port() const;                    // the one it listens on
  const std::string& address() const;  // host and that port, as in `Create`

 private:
  struct Parts;
  explicit MetricsEndpoint(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_METRICS_METRICS_ENDPOINT_H_

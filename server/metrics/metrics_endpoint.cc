#include "server/metrics/metrics_endpoint.h"

#include <netdb.h>
#include <netinet/in.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/config/address.h"
#include "core/metrics/families.h"

namespace mk {
namespace {

class Snapshots : public prometheus::Collectable {
 public:
  explicit Snapshots(MetricsEndpoint::Source source) : source_(std::move(source)) {}

  // Called from C code, which nothing may be thrown through.
  std::vector<prometheus::MetricFamily> Collect() const override {
    try {
      DaemonSnapshot snapshot = source_();
      snapshot.scrape_errors = errors_.load();
      return Families(snapshot);
    } catch (...) {
      return CollectError(errors_.fetch_add(1) + 1);
    }
  }

 private:
  static std::vector<prometheus::MetricFamily> CollectError(uint64_t errors) noexcept {
    try {
      return ScrapeErrorFamilies(errors);
    } catch (...) {
      return {};  // no memory even for that
    }
  }

  const MetricsEndpoint::Source source_;
  mutable std::atomic<uint64_t> errors_{0};
};

}  // namespace

// In this order: the exposer goes first, and with it the last scrape.
struct MetricsEndpoint::Parts {
  std::shared_ptr<Snapshots> snapshots;
  std::unique_ptr<prometheus::Exposer> exposer;
  int port = 0;
  std::string address;
  // Where the name that was given may have led the server to listen: "localhost" is 127.0.0.1 and
  // ::1.
  std::vector<sockaddr_storage> endpoints;
};

namespace {

// The endpoints that `host` names, so that a slow resolver is asked once and not at the end.
std::vector<sockaddr_storage> Resolve(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return {};
  std::vector<sockaddr_storage> endpoints;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    std::memcpy(&endpoints.emplace_back(), one->ai_addr, one->ai_addrlen);
  }
  freeaddrinfo(found);
  return endpoints;
}

// Connects and hangs up. Whether it comes through tells nothing that is of use here.
void Knock(const sockaddr_storage& endpoint) {
  const int fd = socket(endpoint.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  const socklen_t bytes =
      endpoint.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  static_cast<void>(connect(fd, reinterpret_cast<const sockaddr*>(&endpoint), bytes));
  close(fd);
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Create(const std::string& address,
                                                                         Source source) {
  // The server's own grammar knows more (lists, certificates, redirects), none of which is meant.
  MK_ASSIGN_OR_RETURN(const Address parsed, ParseAddress(address));
  if (parsed.kind != Address::Kind::kTcp) {
    return absl::InvalidArgumentError(absl::StrCat("metrics endpoint: address \"",
                                                   Printable(address), "\" is not \"host:port\""));
  }
  auto parts = std::make_unique<Parts>();
  try {
    parts->snapshots = std::make_shared<Snapshots>(std::move(source));
    parts->exposer = std::make_unique<prometheus::Exposer>(address);
    parts->exposer->RegisterCollectable(parts->snapshots);
    const std::vector<int> ports = parts->exposer->GetListeningPorts();
    if (ports.size() != 1) {
      return absl::InternalError(absl::StrCat("metrics endpoint: ", ports.size(),
                                              " ports listen for \"", address, "\" instead of 1"));
    }
    parts->port = ports.front();
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("metrics endpoint: cannot listen on \"", address,
                                               "\" (is the port in use?): ", error.what()));
  }
  parts->endpoints = Resolve(parsed.host, parts->port);
  parts->address = absl::StrCat(address.substr(0, address.rfind(':') + 1), parts->port);
  return std::unique_ptr<MetricsEndpoint>(new MetricsEndpoint(std::move(parts)));
}

MetricsEndpoint::MetricsEndpoint(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

MetricsEndpoint::~MetricsEndpoint() {
  // The HTTP server looks at its order to stop only when its poll for connections returns, after
  // two seconds or at a connection. So connect until it has stopped; should that fail, it takes the
  // two seconds.
  std::atomic<bool> stopped{false};
  std::thread stopper;
  try {
    stopper = std::thread([this, &stopped] {
      parts_->exposer.reset();
      stopped = true;
    });
  } catch (const std::system_error&) {
    return;  // no thread to be had: the members' destructors do the same, slowly
  }
  while (!stopped) {
    for (const sockaddr_storage& endpoint : parts_->endpoints) Knock(endpoint);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  stopper.join();
}

int MetricsEndpoint::port() const { return parts_->port; }
const std::string& MetricsEndpoint::address() const { return parts_->address; }

}  // namespace mk

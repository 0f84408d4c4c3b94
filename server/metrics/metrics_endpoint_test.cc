#include "server/metrics/metrics_endpoint.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "core/metrics/families.h"

namespace mk {
namespace {

// The whole answer to GET `path`, headers included; "" when nobody listens. The HTTP server may
// leave a connection unanswered that arrives while it stops, so there is a limit.
std::string Get(int port, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const timeval limit = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    const std::string request =
        "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    // Fails when the server has just gone, and then there is nothing to read either.
    static_cast<void>(send(fd, request.data(), request.size(), MSG_NOSIGNAL));
    char buffer[4096];
    for (ssize_t n; (n = recv(fd, buffer, sizeof buffer, 0)) > 0;) {
      answer.append(buffer, static_cast<size_t>(n));
    }
  }
  close(fd);
  return answer;
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

DaemonSnapshot Ready() {
  DaemonSnapshot snapshot;
  snapshot.ready = true;
  return snapshot;
}

TEST(MetricsEndpoint, AnswersAScrapeOnAFreePort) {
  const auto endpoint = MetricsEndpoint::Create("127.0.0.1:0", Ready);
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_GT((*endpoint)->port(), 0);
  EXPECT_EQ((*endpoint)->address(), "127.0.0.1:" + std::to_string((*endpoint)->port()));
  const std::string answer = Get((*endpoint)->port(), "/metrics");
  EXPECT_TRUE(Contains(answer, "200 OK")) << answer;
  EXPECT_TRUE(Contains(answer, "text/plain")) << answer;
  EXPECT_TRUE(Contains(answer, "\nmergekernel_ready 1\n")) << answer;
  EXPECT_TRUE(Contains(answer, "\nmergekernel_scrape_errors_total 0\n")) << answer;
  EXPECT_TRUE(Contains(Get((*endpoint)->port(), "/"), "404"));
}

TEST(MetricsEndpoint, APortInUseIsAnErrorThatNamesTheAddress) {
  const auto first = MetricsEndpoint::Create("127.0.0.1:0", Ready);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = MetricsEndpoint::Create((*first)->address(), Ready);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Contains(std::string(second.status().message()), (*first)->address()))
      << second.status();
}

TEST(MetricsEndpoint, RefusesWhatIsNoTcpAddress) {
  for (const char* address : {"", "8002", "unix:/tmp/metrics", "127.0.0.1:0,127.0.0.1:0",
                              "127.0.0.1:0s", "+8002", "127.0.0.1:70000"}) {
    const auto endpoint = MetricsEndpoint::Create(address, Ready);
    EXPECT_EQ(endpoint.status().code(), absl::StatusCode::kInvalidArgument) << address;
  }
}

TEST(MetricsEndpoint, AnAddressOfAnotherMachineCannotBeListenedOn) {
  // 192.0.2.0/24 is kept for documentation.
  const auto endpoint = MetricsEndpoint::Create("192.0.2.1:0", Ready);
  EXPECT_EQ(endpoint.status().code(), absl::StatusCode::kUnavailable);
}

TEST(MetricsEndpoint, ASourceThatThrowsCostsItsScrapeAlone) {
  std::atomic<int> calls{0};
  const auto endpoint = MetricsEndpoint::Create("127.0.0.1:0", [&calls] {
    if (calls.fetch_add(1) == 0) throw std::runtime_error("no snapshot");
    return Ready();
  });
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  const std::string failed = Get((*endpoint)->port(), "/metrics");
  EXPECT_TRUE(Contains(failed, "mergekernel_scrape_errors_total 1\n")) << failed;
  EXPECT_FALSE(Contains(failed, "mergekernel_ready"));
  const std::string next = Get((*endpoint)->port(), "/metrics");
  EXPECT_TRUE(Contains(next, "mergekernel_scrape_errors_total 1\n")) << next;
  EXPECT_TRUE(Contains(next, "mergekernel_ready 1\n"));
}

TEST(MetricsEndpoint, EndsSoonerThanTheServersPollOfTwoSeconds) {
  for (const char* address : {"127.0.0.1:0", "0.0.0.0:0", "localhost:0"}) {
    auto endpoint = MetricsEndpoint::Create(address, Ready);
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    const auto start = std::chrono::steady_clock::now();
    endpoint->reset();
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(1500)) << address;
  }
}

TEST(MetricsEndpoint, NoScrapeLooksAtTheSourceAfterTheEnd) {
  std::atomic<bool> alive{true};
  std::atomic<bool> looked_late{false};
  auto made = MetricsEndpoint::Create("127.0.0.1:0", [&] {
    if (!alive) looked_late = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!alive) looked_late = true;
    return Ready();
  });
  ASSERT_TRUE(made.ok()) << made.status();
  std::unique_ptr<MetricsEndpoint> endpoint = *std::move(made);
  const int port = endpoint->port();
  std::atomic<bool> stop{false};
  std::vector<std::thread> scrapers;
  for (int i = 0; i < 3; ++i) {
    scrapers.emplace_back([&] {
      while (!stop) Get(port, "/metrics");
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  endpoint.reset();
  alive = false;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  stop = true;
  for (std::thread& scraper : scrapers) scraper.join();
  EXPECT_FALSE(looked_late);
}

}  // namespace
}  // namespace mk

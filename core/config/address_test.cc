#include "core/config/address.h"

#include <gtest/gtest.h>

#include <string>

namespace mk {
namespace {

TEST(ParseAddress, ReadsHostAndPort) {
  const auto address = ParseAddress("127.0.0.1:8001");
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(address->kind, Address::Kind::kTcp);
  EXPECT_EQ(address->host, "127.0.0.1");
  EXPECT_EQ(address->port, 8001);
  const auto name = ParseAddress("edge-1.local:0");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(name->host, "edge-1.local");
  EXPECT_EQ(name->port, 0);
}

TEST(ParseAddress, ReadsIpv6InBrackets) {
  const auto address = ParseAddress("[::1]:65535");
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(address->host, "::1");
  EXPECT_EQ(address->port, 65535);
}

TEST(ParseAddress, ReadsUnixPaths) {
  for (const std::string path : {"/run/mk.sock", "mk.sock"}) {
    const auto address = ParseAddress("unix:" + path);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->kind, Address::Kind::kUnix);
    EXPECT_EQ(address->path, path);
  }
  EXPECT_TRUE(ParseAddress("unix:" + std::string(107, 'a')).ok());
}

TEST(ParseAddress, RefusesWhatIsNoAddress) {
  struct Case {
    std::string text;
    std::string rule;
  };
  const Case cases[] = {
      {"", "host:port"},
      {"8001", "host:port"},
      {"127.0.0.1", "host:port"},
      {":8001", "the host must be"},
      {"::1:8001", "the host must be"},
      {"a b:8001", "the host must be"},
      {"http://a:8001", "the host must be"},
      {"127.0.0.1:8001,127.0.0.1:9000", "the host must be"},
      {"256.0.0.1:8001", "not an IPv4 address"},
      {"1.2.3:8001", "not an IPv4 address"},
      {"localhost:", "0 to 65535"},
      {"localhost:65536", "0 to 65535"},
      {"localhost:-1", "0 to 65535"},
      {"localhost:+1", "0 to 65535"},
      {"localhost:80s", "0 to 65535"},
      {"localhost:4294967297", "0 to 65535"},
      {"localhost: 80", "0 to 65535"},
      {"[::1]", "[address]:port"},
      {"[::1]8001", "[address]:port"},
      {"[127.0.0.1]:8001", "not an IPv6 address"},
      {"[]:8001", "not an IPv6 address"},
      {std::string("[::1\0x]:8001", 12), "not an IPv6 address"},
      {"[::1]:", "0 to 65535"},
      {"unix:", "a path must follow"},
      {"unix:" + std::string(108, 'a'), "108 bytes, more than 107"},
      {std::string("unix:a\0b", 8), "NUL"},
  };
  for (const Case& c : cases) {
    const auto address = ParseAddress(c.text);
    ASSERT_FALSE(address.ok()) << c.text;
    EXPECT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(address.status().message().find(c.rule), std::string::npos) << address.status();
  }
}

}  // namespace
}  // namespace mk

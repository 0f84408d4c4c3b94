// The real probe process: what a bad pack does there stays there.
#include "core/loader/probe.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

#include "core/weights/testing/write_safetensors.h"
#include "tests/packs/pack_builder.h"

namespace mk {
namespace {

class ProbeTest : public testing::Test {
 protected:
  absl::Status Probe(const PackSpec& spec, double timeout_seconds = 20) {
    repository_.Install("p", 1, spec);
    auto repository = Repository::Open(repository_.root());
    auto folder = (*repository)->OpenVersion("p", 1);
    auto sealed = SealedPack::Read(folder->get(), "p", 1, 64 << 20, "mk-probe-test");
    EXPECT_TRUE(sealed.ok()) << sealed.status();
    return RunProbe(**sealed, {"core/loader/mergekernel-probe", timeout_seconds, 1});
  }
  static void ExpectSays(const absl::Status& status, const std::string& part) {
    EXPECT_NE(std::string(status.message()).find(part), std::string::npos) << status;
  }
  TestRepository repository_;
};

TEST_F(ProbeTest, AGoodPackPassesWithItsGoldens) {
  PackSpec spec = AffineSpec(WriteSafetensors({{"w", "F32", {2}, FloatBytes({2, 1})}}));
  spec.manifest.mutable_golden()->set_file("golden.safetensors");
  spec.small["golden.safetensors"] =
      WriteSafetensors({{"case0.input.X", "F32", {1}, FloatBytes({3})},
                        {"case0.output.Y", "F32", {1}, FloatBytes({7})}});
  EXPECT_TRUE(Probe(spec).ok()) << Probe(spec);
  spec.small["golden.safetensors"] =
      WriteSafetensors({{"case0.input.X", "F32", {1}, FloatBytes({3})},
                        {"case0.output.Y", "F32", {1}, FloatBytes({7.5})}});
  ExpectSays(Probe(spec), "golden case 0, output 'Y': rel_l2");
  spec.small["golden.safetensors"] = WriteSafetensors({{"x", "F32", {1}, FloatBytes({3})}});
  ExpectSays(Probe(spec), "'x' is not called case<k>");
  spec.small["golden.safetensors"] =
      WriteSafetensors({{"case0.input.X", "F32", {1}, FloatBytes({3})}});
  ExpectSays(Probe(spec), "case 0 has no output to compare");
}

TEST_F(ProbeTest, FailuresThrowsCrashesAndHangsAreToldApart) {
  ExpectSays(Probe(FixtureSpec("create_fails")), "no such luck");
  ExpectSays(Probe(FixtureSpec("create_throws")), "exception in pack: thrown in create");
  ExpectSays(Probe(FixtureSpec("create_aborts")), "crashed: Aborted");
#ifndef MK_SANITIZED
  // The sanitizers turn this signal into an exit.
  ExpectSays(Probe(FixtureSpec("create_segfaults")), "crashed: Segmentation fault");
#else
  EXPECT_FALSE(Probe(FixtureSpec("create_segfaults")).ok());
#endif
  ExpectSays(Probe(FixtureSpec("create_hangs"), 1), "hung: no result within 1 s");
}

TEST_F(ProbeTest, FewDescriptorsAreEnoughAndTooFewAreTold) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const auto limited = [&](rlim_t files) {
    const rlimit few = {files, before.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    repository_.Install("p", 1, EchoSpec());
    const absl::Status status = Probe(EchoSpec());
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    return status;
  };
  EXPECT_TRUE(limited(64).ok()) << limited(64);
  const absl::Status status = limited(12);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  ExpectSays(status, "probe: descriptors: ");
}

TEST_F(ProbeTest, AProbeThatCannotBeStartedIsAnError) {
  repository_.Install("p", 1, EchoSpec());
  auto repository = Repository::Open(repository_.root());
  auto folder = (*repository)->OpenVersion("p", 1);
  auto sealed = SealedPack::Read(folder->get(), "p", 1, 64 << 20, "mk-probe-test");
  ExpectSays(RunProbe(**sealed, {"/nonexistent/probe", 1, 1}), "cannot be started");
}

}  // namespace
}  // namespace mk

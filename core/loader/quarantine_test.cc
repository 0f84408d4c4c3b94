// What the quarantine remembers, and for how long.
#include "core/loader/quarantine.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "tests/packs/pack_builder.h"

namespace mk {
namespace {

const std::string kA(64, 'a'), kB(64, 'b');

class QuarantineTest : public testing::Test {
 protected:
  // Whether the file comes to hold `text`; the quarantine's thread writes it.
  bool Comes(const std::string& text) {
    for (int i = 0; i < 1000; ++i) {
      if (ReadFileOrEmpty(file_) == text) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  TestRepository folder_;
  const std::string file_ = folder_.root() + "/state";
  FakeClock clock_;
};

TEST_F(QuarantineTest, HoldsWhatWasOnTrialWhenTheLastOneEnded) {
  {
    Quarantine quarantine(file_, clock_);
    EXPECT_FALSE(quarantine.Holds(kA));
    quarantine.BeginTrial(1, kA);
    quarantine.BeginTrial(2, kB);
    EXPECT_FALSE(quarantine.Holds(kA));  // only what an earlier daemon left
    quarantine.EndTrial(2);
    quarantine.EndTrial(2);
  }
  Quarantine quarantine(file_, clock_);
  EXPECT_TRUE(quarantine.Holds(kA));
  EXPECT_FALSE(quarantine.Holds(kB));
}

// Otherwise a board whose power is cut hours after a load would come up without the pack.
TEST_F(QuarantineTest, ATrialEndsByItselfAfterTenSecondsOfService) {
  Quarantine quarantine(file_, clock_);
  quarantine.BeginTrial(1, kA);
  quarantine.BeginTrial(2, kB);
  quarantine.Served(1);
  clock_.AdvanceNs(Quarantine::kTrialNs - 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(ReadFileOrEmpty(file_), kA + "\n" + kB + "\n");
  clock_.AdvanceNs(1);
  EXPECT_TRUE(Comes(kB + "\n"));  // what does not serve yet stays on trial
  quarantine.EndTrial(2);
  EXPECT_EQ(ReadFileOrEmpty(file_), "");
}

TEST_F(QuarantineTest, TwoGenerationsOfOneContentAreTriedApart) {
  Quarantine quarantine(file_, clock_);
  quarantine.BeginTrial(1, kA);
  quarantine.BeginTrial(2, kA);
  quarantine.EndTrial(1);
  EXPECT_EQ(ReadFileOrEmpty(file_), kA + "\n");
}

TEST_F(QuarantineTest, AFileThatCannotBeWrittenIsNoError) {
  Quarantine nowhere(folder_.root() + "/absent/state", clock_);
  nowhere.BeginTrial(1, kA);
  nowhere.EndTrial(1);
  Quarantine none("", clock_);
  none.BeginTrial(1, kA);
  none.Served(1);
  EXPECT_FALSE(none.Holds(kA));
}

}  // namespace
}  // namespace mk

// A pass over an image takes its memory from the scratch and nothing from the heap: the calls of
// operator new are counted, of the pack, its ops and the host's thread pool. (What the SGEMM
// library behind the host takes with malloc is its own.)
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "packs/vmamba/testing/fixture.h"

namespace {

std::atomic<int64_t> g_allocations{0};

void* Counted(std::size_t size) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  void* p = std::malloc(size == 0 ? 1 : size);
  if (p == nullptr) std::abort();
  return p;
}

}  // namespace

void* operator new(std::size_t size) { return Counted(size); }
void* operator new[](std::size_t size) { return Counted(size); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }

namespace mk::vmamba {
namespace {

TEST(Allocation, APassTakesNothingFromTheHeap) {
  for (const char* forward_type : {"v05_noz", "v05"}) {
    Parameters parameters = PlainParameters();
    parameters["config.forward_type"] = forward_type;
    const std::string weights = WriteWeights(parameters, 1);
    for (const int threads : {1, 3}) {
      OpenModel open(parameters, weights, threads);
      std::vector<float> input(size_t{96} * 64 * 3, 0.5f);
      std::vector<float> logits(7);
      testing::TestRun run;
      Context context(open.host().services(), *run.table());
      const auto pass = [&] {
        return RunNetwork(context, open.model().description(), open.model().weights(),
                          {input.data(), 96, 64, 3}, logits.data(), nullptr);
      };
      ASSERT_TRUE(pass().ok());  // the first one fills what others keep, such as a thread's queue
      const int64_t before = g_allocations.load();
      const Status status = pass();
      EXPECT_EQ(g_allocations.load() - before, 0) << forward_type << " on " << threads;
      EXPECT_TRUE(status.ok());
    }
  }
}

}  // namespace
}  // namespace mk::vmamba

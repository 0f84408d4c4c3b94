// The pack as the loader gets it: the linked library through its one symbol.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "core/abi/mk_pack.h"
#include "kernels/testing/compare.h"
#include "kernels/testing/golden.h"
#include "packs/vmamba/testing/fixture.h"

namespace mk::vmamba {
namespace {

struct Library {
  Library() : handle(dlopen("packs/vmamba/vmamba.so", RTLD_NOW | RTLD_LOCAL)) {
    if (handle == nullptr) ADD_FAILURE() << dlerror();
  }
  ~Library() {
    if (handle != nullptr) dlclose(handle);
  }
  const mk_pack* entry() const {
    return static_cast<const mk_pack*>(dlsym(handle, MK_PACK_ENTRY_SYMBOL));
  }
  void* handle;
};

TEST(Pack, StatesWhatItIs) {
  const Library library;
  ASSERT_NE(library.handle, nullptr);
  const mk_pack* pack = library.entry();
  ASSERT_NE(pack, nullptr);
  const auto manifest = PicoManifest();
  EXPECT_EQ(pack->magic, MK_PACK_MAGIC);
  EXPECT_EQ(pack->abi_major, static_cast<uint32_t>(manifest.code().abi_major()));
  EXPECT_EQ(pack->name, manifest.code().name());
  EXPECT_EQ(pack->code_version, static_cast<uint64_t>(manifest.code().version()));
}

TEST(Pack, ServesAcrossTheAbi) {
  const Library library;
  ASSERT_NE(library.handle, nullptr);
  const mk_pack* pack = library.entry();
  ASSERT_NE(pack, nullptr);
  ModelHost host(PicoParameters(), std::string(kPicoFolder) + kWeightsFile);
  mk_model* model = nullptr;
  ASSERT_EQ(pack->create(host.test_host().table(), &model), MK_OK) << host.test_host().error();
  const auto golden = testing::GoldenFile::Read(std::string(kPicoFolder) + "golden.safetensors");
  testing::TestRun run;
  AddImage(run, 28, 28, 1, golden.At("case0.input.image").bytes);
  EXPECT_EQ(pack->run(model, run.table()), MK_OK) << run.error();
  EXPECT_TRUE(testing::IsNearRelL2(Logits(run), golden.At("case0.output.logits").values, 1e-5));
  testing::TestRun empty;
  EXPECT_EQ(pack->run(model, empty.table()), MK_INVALID_ARGUMENT);
  EXPECT_EQ(empty.error(), "vmamba: send exactly one of image and encoded_image; got neither");
  pack->destroy(model);
}

}  // namespace
}  // namespace mk::vmamba

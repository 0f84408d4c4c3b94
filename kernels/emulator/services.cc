// The table through which device code calls the emulator.
#include <string>
#include <type_traits>

#include "kernels/emulator/launch.h"

namespace mk {
namespace emu {

template <class Service>
auto Launch::Serve(Thread* thread, Service service) {
  ThreadRun* t = static_cast<ThreadRun*>(thread);
  BeginUnseen();
  if constexpr (std::is_void_v<decltype(service(t->launch, t))>) {
    service(t->launch, t);
    if (t->launch->stop_) t->launch->Abandon(t);
    EndUnseen();
  } else {
    const auto result = service(t->launch, t);
    if (t->launch->stop_) t->launch->Abandon(t);
    EndUnseen();
    return result;
  }
}

const Services& Launch::Table() {
  static constexpr Services kTable = {
      sizeof(Services),
      [](Thread* thread, const void* address, mk_u32 bytes, Access kind, Site site) {
        return Serve(thread, [&](Launch* l, ThreadRun* t) {
          return l->Reach(t, address, bytes, kind, site);
        });
      },
      [](Thread* thread, const Collective* part) {
        Serve(thread, [&](Launch* l, ThreadRun* t) { l->Collect(t, part); });
      },
      [](Thread* thread, Barrier kind, mk_u32 id, mk_u32 count, mk_u32 predicate, Site site) {
        return Serve(thread, [&](Launch* l, ThreadRun* t) {
          return l->ArriveAtBarrier(t, kind, id, count, predicate, site);
        });
      },
      [](Thread* thread, const void* key, const char* name, mk_u32 bytes, mk_u32 align, Site site) {
        return Serve(thread, [&](Launch* l, ThreadRun* t) {
          return l->StaticShared(t, key, name, bytes, align, site);
        });
      },
      [](Thread* thread, mk_u32, Site site) {
        return Serve(thread, [&](Launch* l, ThreadRun* t) { return l->DynamicShared(t, site); });
      },
      [](Thread* thread, void* shared, const void* global, mk_u32 bytes, mk_u32 source_bytes,
         Site site, void** to, const void** from) {
        return Serve(thread, [&](Launch* l, ThreadRun* t) {
          return l->CopyAsync(t, shared, global, bytes, source_bytes, site, to, from);
        });
      },
      [](Thread* thread, Site) { ++static_cast<ThreadRun*>(thread)->group; },
      [](Thread* thread, mk_u32 pending, Site site, void** to, const void** from, mk_u32* bytes) {
        return Serve(thread, [&](Launch* l, ThreadRun* t) {
          return l->CopyWait(t, pending, site, to, from, bytes);
        });
      },
      [](Thread* thread, bool whole_device, Site) {
        if (whole_device) static_cast<ThreadRun*>(thread)->launch->clocks_.Fence();
      },
      [](Thread* thread, const char* what, Site site) {
        Serve(thread, [&](Launch* l, ThreadRun* t) {
          l->Found(t, FindingKind::kAssertion, "asserts", site, "",
                   std::string("does not hold: ") + what, true);
        });
      },
  };
  return kTable;
}

}  // namespace emu
}  // namespace mk

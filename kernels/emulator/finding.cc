#include "kernels/emulator/finding.h"

#include <cstring>

namespace mk {
namespace emu {

const char* FindingKindName(FindingKind kind) {
  switch (kind) {
    case FindingKind::kRace:
      return "race";
    case FindingKind::kAsyncRead:
      return "missing wait";
    case FindingKind::kDivergence:
      return "divergence";
    case FindingKind::kDeadlock:
      return "deadlock";
    case FindingKind::kUninitialised:
      return "uninitialised load";
    case FindingKind::kOutOfBounds:
      return "out of bounds";
    case FindingKind::kMisaligned:
      return "misaligned access";
    case FindingKind::kReadOnlyWrite:
      return "store into read-only memory";
    case FindingKind::kBadCollective:
      return "bad collective";
    case FindingKind::kSharedOverflow:
      return "too much shared memory";
    case FindingKind::kAssertion:
      return "assertion";
    case FindingKind::kNoProgress:
      return "no progress";
    case FindingKind::kBadLaunch:
      return "bad launch";
  }
  return "unknown";
}

std::string SiteText(const Site& site) {
  if (site.file == nullptr) return "?";
  const char* slash = std::strrchr(site.file, '/');
  return std::string(slash == nullptr ? site.file : slash + 1) + ":" + std::to_string(site.line);
}

bool SameSite(const Site& a, const Site& b) {
  if (a.line != b.line) return false;
  if (a.file == b.file) return true;
  return a.file != nullptr && b.file != nullptr && std::strcmp(a.file, b.file) == 0;
}

std::string Finding::Text() const {
  std::string text = std::string(FindingKindName(kind)) + " in " + kernel;
  if (!place.empty()) text += ", " + place;
  text += ": " + what + "\n";
  for (const Party& p : parties) {
    text += "  block " + std::to_string(p.block) + " thread (" + std::to_string(p.thread.x) + "," +
            std::to_string(p.thread.y) + "," + std::to_string(p.thread.z) + "), warp " +
            std::to_string(p.linear / 32) + " lane " + std::to_string(p.linear % 32) + ": " +
            p.does + " at " + SiteText(p.site);
    if (p.last_sync_name != nullptr) {
      text += ", after " + std::string(p.last_sync_name) + " at " + SiteText(p.last_sync);
    }
    text += "\n";
  }
  return text;
}

}  // namespace emu
}  // namespace mk

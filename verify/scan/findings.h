// What the rules find: blind spots as structures with sites, remarks, and operators whose meaning
// is hidden.
#ifndef MERGEKERNEL_VERIFY_SCAN_FINDINGS_H_
#define MERGEKERNEL_VERIFY_SCAN_FINDINGS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "verify/scan/program.h"

namespace mk::scan {

// The five blind spots, S1 to S5.
enum Spot : int { kS1, kS2, kS3, kS4, kS5, kSpots };
const char* SpotId(int spot);     // "S1"
const char* SpotTitle(int spot);  // "data-dependent shape or control flow"

struct Site {
  NodeId node = kNone;  // kNone: a tensor, named in `name`
  std::string name;     // of the node or tensor
  std::string op;
  std::string scope;   // functions and bodies around it; "" in the main graph
  std::string shapes;  // "[1, 8, 8] -> [?, 3]"
};

// One occurrence of a blind spot; several nodes may belong to it.
struct Structure {
  std::string kind;  // "window partition", "rotary embedding", ...
  std::string note;  // what was seen, for a person
  std::vector<Site> sites;
  int64_t site_count = 0;  // sites holds the first kSitesKept
};
constexpr size_t kSitesKept = 64;
constexpr size_t kStructuresKept = 2000;
constexpr int64_t kSitesKeptPerSpot = 8000;

struct Remark {
  std::string code;  // stable: "topk-k-limit", "prefix-op", ...
  std::string node;
  std::string text;
};

class Findings {
 public:
  explicit Findings(const Program& program) : program_(program) {}

  // A new structure; the pointer holds until the next call.
  Structure* Add(Spot spot, std::string kind, std::string note = "");
  void AddSite(Structure* structure, NodeId node);
  void AddTensor(Structure* structure, ValueId value);
  void AddRemark(const char* code, NodeId node, std::string text);
  // An operator that may hide any structure: foreign, or not of this opset.
  void AddHidden(NodeId node, std::string why);

  const std::vector<Structure>& structures(int spot) const {
    return structures_[static_cast<size_t>(spot)];
  }
  int64_t count(int spot) const { return counts_[static_cast<size_t>(spot)]; }
  int64_t site_count(int spot) const { return site_counts_[static_cast<size_t>(spot)]; }
  const std::vector<Remark>& remarks() const { return remarks_; }
  const std::vector<Remark>& hidden() const { return hidden_; }
  int64_t hidden_count() const { return hidden_count_; }

 private:
  bool Count(Structure* structure);  // whether the site is kept

  const Program& program_;
  std::array<std::vector<Structure>, kSpots> structures_;
  std::array<int64_t, kSpots> counts_ = {};
  std::array<int64_t, kSpots> site_counts_ = {};
  std::vector<Remark> remarks_, hidden_;
  int64_t hidden_count_ = 0;
  std::array<Structure, kSpots> spare_;  // past kStructuresKept: counted, not kept
};

// One rule file each.
void FindDataDependent(const Program& program, Findings* findings);  // S1
void FindNonAffine(const Program& program, Findings* findings);      // S2
void FindSpecial(const Program& program, Findings* findings);        // S3
void FindAttention(const Program& program, Findings* findings);      // S4
void FindState(const Program& program, Findings* findings);          // S5
// Hidden operators, and remarks that are no blind spot.
void FindRemarks(const Program& program, Findings* findings);

}  // namespace mk::scan

#endif  // MERGEKERNEL_VERIFY_SCAN_FINDINGS_H_

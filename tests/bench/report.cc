#include "tests/bench/report.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace mk {
namespace {

template <typename... Values>
std::string Format(const char* format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string Number(double value, int decimals) {
  return value < 0 ? "-" : Format("%.*f", decimals, value);
}

nlohmann::ordered_json Figures(const LoadResult& result) {
  nlohmann::ordered_json json = {{"requests", result.requests},
                                 {"seconds", result.seconds},
                                 {"per_second", result.per_second()},
                                 {"p50_us", result.p50_us},
                                 {"p90_us", result.p90_us},
                                 {"p99_us", result.p99_us},
                                 {"max_us", result.max_us}};
  const double cpu = result.server_cpu_per_1000();
  json["server_cpu_seconds_per_1000"] =
      cpu < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(cpu);
  return json;
}

const Cell* Find(const std::vector<Cell>& cells, const std::string& bench_case,
                 const std::string& way) {
  for (const Cell& cell : cells) {
    if (cell.bench_case == bench_case && cell.way == way && cell.concurrency == 1) return &cell;
  }
  return nullptr;
}

}  // namespace

std::string Table(const std::vector<Cell>& cells) {
  constexpr char kLine[] = "%-12s %-7s %4s %11s %10s %10s %10s %10s\n";
  std::string text =
      Format(kLine, "case", "way", "c", "infer/s", "p50 us", "p90 us", "p99 us", "cpu s/1k");
  for (const Cell& cell : cells) {
    const LoadResult result = MedianOf(cell.rounds);
    text +=
        Format(kLine, cell.bench_case.c_str(), cell.way.c_str(),
               std::to_string(cell.concurrency).c_str(), Number(result.per_second(), 0).c_str(),
               Number(result.p50_us, 1).c_str(), Number(result.p90_us, 1).c_str(),
               Number(result.p99_us, 1).c_str(), Number(result.server_cpu_per_1000(), 3).c_str());
  }
  return text;
}

std::string AddedLatency(const std::vector<Cell>& cells) {
  std::string text;
  for (const Cell& cell : cells) {
    if (cell.way != "grpc" || cell.concurrency != 1) continue;
    const Cell* direct = Find(cells, cell.bench_case, "direct");
    if (direct == nullptr) continue;
    const double base_us = MedianOf(direct->rounds).p50_us;
    text += Format("%s: the daemon adds %.1f us at p50 (%.1f over gRPC, %.1f the pack alone",
                   cell.bench_case.c_str(), MedianOf(cell.rounds).p50_us - base_us,
                   MedianOf(cell.rounds).p50_us, base_us);
    const Cell* lanes = Find(cells, cell.bench_case, "lanes");
    if (lanes != nullptr) text += Format(", %.1f with its lane", MedianOf(lanes->rounds).p50_us);
    text += ")\n";
  }
  return text;
}

std::string Json(const std::vector<Cell>& cells,
                 const std::vector<std::pair<std::string, std::string>>& facts) {
  nlohmann::ordered_json json;
  for (const auto& [name, value] : facts) json[name] = value;
  json["cells"] = nlohmann::ordered_json::array();
  for (const Cell& cell : cells) {
    nlohmann::ordered_json entry = {{"case", cell.bench_case},
                                    {"way", cell.way},
                                    {"concurrency", cell.concurrency},
                                    {"median", Figures(MedianOf(cell.rounds))}};
    for (const LoadResult& round : cell.rounds) entry["rounds"].push_back(Figures(round));
    json["cells"].push_back(entry);
  }
  return json.dump(2) + "\n";
}

}  // namespace mk

#include "server/cli/table.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/base/text.h"
#include "server/cli/text.h"

namespace mk::cli {

std::string Colored(const std::string& text, Color color, bool enabled) {
  if (!enabled) return text;
  switch (color) {
    case Color::kNone:
      return text;
    case Color::kGreen:
      return "\033[32m" + text + "\033[0m";
    case Color::kYellow:
      return "\033[33m" + text + "\033[0m";
    case Color::kRed:
      return "\033[31m" + text + "\033[0m";
  }
  return text;
}

void Table::AddRow(std::vector<Cell> cells) {
  if (cells.size() != columns_.size()) {
    std::fprintf(stderr, "Table: row of %zu cells in a table of %zu columns\n", cells.size(),
                 columns_.size());
    std::abort();
  }
  for (Cell& cell : cells) cell.text = Printable(cell.text, 2000);
  rows_.push_back(std::move(cells));
}

void Table::Print(std::ostream& out, bool colors) const {
  std::vector<size_t> widths;
  for (const Column& column : columns_) widths.push_back(DisplayWidth(column.title));
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], DisplayWidth(row[i].text));
    }
  }
  const auto line = [&](const auto& cell_at) {
    std::string text;
    std::string pending;  // blanks that are written only when something follows
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Cell cell = cell_at(i);
      const std::string pad(widths[i] - DisplayWidth(cell.text), ' ');
      const bool right = columns_[i].align == Align::kRight;
      if (right) pending += pad;
      if (!cell.text.empty()) {
        text += pending + Colored(cell.text, cell.color, colors);
        pending.clear();
      }
      if (!right) pending += pad;
      pending += "  ";
    }
    out << text << '\n';
  };
  line([&](size_t i) { return Cell(columns_[i].title); });
  for (const auto& row : rows_) line([&](size_t i) { return row[i]; });
}

}  // namespace mk::cli

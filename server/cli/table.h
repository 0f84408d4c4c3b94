// Aligned columns for people.
#ifndef MERGEKERNEL_SERVER_CLI_TABLE_H_
#define MERGEKERNEL_SERVER_CLI_TABLE_H_

#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace mk::cli {

enum class Color { kNone, kGreen, kYellow, kRed };

// `text` between the codes of a color, or as it is where `enabled` is false.
std::string Colored(const std::string& text, Color color, bool enabled);

struct Cell {
  Cell(std::string t) : text(std::move(t)) {}  // NOLINT: a table row reads as a list of texts
  Cell(const char* t) : text(t) {}             // NOLINT
  Cell(std::string t, Color c) : text(std::move(t)), color(c) {}

  std::string text;
  Color color = Color::kNone;
};

enum class Align { kLeft, kRight };

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // REQUIRES: as many cells as columns; a breach aborts. Control characters (a new line in an error
  // text, an escape in a label) come out as \xNN, so that a row stays a row.
  void AddRow(std::vector<Cell> cells);

  // Title row, then the rows; two blanks between columns, none at the end of a line.
  void Print(std::ostream& out, bool colors) const;

 private:
  const std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace mk::cli

#endif  // MERGEKERNEL_SERVER_CLI_TABLE_H_

// One HTML table: header cells, rows of cells with an optional number to sort by.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/report/html/page_parts.h"

namespace idlescope::report {

struct Cell {
  std::string text;
  std::optional<double> number;  // right-aligned, sorted by it
  double part = -1;              // 0 … 1: drawn as a bar behind the text
  std::string kind;              // CSS class
  std::string link;              // address of `text`
  std::string full;              // a long name that `text` abbreviates
};

class Table {
 public:
  // `sortable`: the script makes its header cells buttons.
  Table(Page* page, std::initializer_list<const messages::Message*> columns, bool sortable = false);
  void row(std::vector<Cell> cells, std::string id = "");
  // Writes it. The script shows `at_first` rows and a button for the others; 0: all.
  void end(size_t at_first = 0);

 private:
  struct Row {
    std::vector<Cell> cells;
    std::string id;
  };
  Page* page_;
  std::vector<const messages::Message*> columns_;
  bool sortable_;
  std::vector<Row> rows_;
};

Cell word(std::string text, std::string kind = "");
// A kernel: its short name, the full one below it.
Cell named(const std::string& kernel);
Cell time_cell(int64_t ns);
Cell number_cell(std::string text, double number, double part = -1);

// Two columns: a name and a value.
void fact(Page* page, const messages::Message& name, const std::string& value);

}  // namespace idlescope::report

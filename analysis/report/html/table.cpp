#include "analysis/report/html/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/report/numbers.h"

namespace idlescope::report {

Table::Table(Page* page, std::initializer_list<const messages::Message*> columns, bool sortable)
    : page_(page) {
  page_->html.open("div", {{"class", "scroll"}});
  page_->html.open("table", {{"class", sortable ? "sortable" : ""}}).open("thead").open("tr");
  for (const messages::Message* column : columns) {
    page_->html.element("th", {{"scope", "col"}}, page_->words(*column));
  }
  page_->html.close().close().open("tbody");
}

void Table::row(const std::vector<Cell>& cells, const std::string& id) {
  if (id.empty()) {
    page_->html.open("tr");
  } else {
    page_->html.open("tr", {{"id", id}});
  }
  for (const Cell& cell : cells) {
    const std::string kind = cell.kind + (cell.number ? " number" : "");
    if (cell.part >= 0) {
      const std::string style =
          fmt::format("--part:{:.1f}%", 100 * std::clamp(cell.part, 0.0, 1.0));
      page_->html.open("td", {{"class", kind + " part"},
                              {"style", style},
                              {"data-v", fmt::format("{:.6g}", cell.number.value_or(cell.part))}});
    } else if (cell.number) {
      page_->html.open("td", {{"class", kind}, {"data-v", fmt::format("{:.10g}", *cell.number)}});
    } else {
      page_->html.open("td", {{"class", kind}});
    }
    page_->html.text(cell.text).close();
  }
  page_->html.close();
}

void Table::end() { page_->html.close().close().close(); }

Cell word(std::string text, std::string kind) {
  return {std::move(text), std::nullopt, -1, std::move(kind)};
}

Cell time_cell(int64_t ns) { return {duration(ns), static_cast<double>(ns), -1, ""}; }

Cell number_cell(std::string text, double number, double part) {
  return {std::move(text), number, part, ""};
}

void fact(Page* page, const messages::Message& name, const std::string& value) {
  page->html.open("tr").open("th", {{"scope", "row"}}).text(page->words(name)).close();
  page->html.element("td", {}, value).close();
}

}  // namespace idlescope::report

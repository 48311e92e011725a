#include "analysis/report/html/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/report/kernel_name.h"
#include "analysis/report/numbers.h"
#include "proto/messages.h"

namespace idlescope::report {

Table::Table(Page* page, std::initializer_list<const messages::Message*> columns, bool sortable)
    : page_(page), columns_(columns), sortable_(sortable) {}

void Table::row(std::vector<Cell> cells, std::string id) {
  rows_.push_back({std::move(cells), std::move(id)});
}

void Table::end(size_t at_first) {
  Markup& html = page_->html;
  html.open("div", {{"class", "scroll"}});
  const bool cut = at_first > 0 && rows_.size() > at_first + 2;
  const std::string first = cut ? std::to_string(at_first) : "";
  html.open("table", {{"class", sortable_ ? "sortable" : ""}, {"data-first", first}});
  html.open("thead").open("tr");
  for (size_t i = 0; i < columns_.size(); ++i) {
    // A column of numbers has its name above the numbers.
    const bool numbers = !rows_.empty() && i < rows_[0].cells.size() && rows_[0].cells[i].number;
    html.element("th", {{"scope", "col"}, {"class", numbers ? "number" : ""}},
                 page_->words(*columns_[i]));
  }
  html.close().close().open("tbody");
  for (const Row& row : rows_) {
    if (row.id.empty()) {
      html.open("tr");
    } else {
      html.open("tr", {{"id", row.id}});
    }
    for (const Cell& cell : row.cells) {
      const std::string kind = cell.kind + (cell.number ? " number" : "");
      if (cell.part >= 0) {
        const std::string style =
            fmt::format("--part:{:.1f}%", 100 * std::clamp(cell.part, 0.0, 1.0));
        html.open("td", {{"class", kind + " part"},
                         {"style", style},
                         {"data-v", fmt::format("{:.6g}", cell.number.value_or(cell.part))}});
      } else if (cell.number) {
        html.open("td", {{"class", kind}, {"data-v", fmt::format("{:.10g}", *cell.number)}});
      } else {
        html.open("td", {{"class", kind}});
      }
      if (cell.link.empty()) {
        html.text(cell.text);
      } else {
        html.element("a", {{"href", cell.link}}, cell.text);
      }
      if (!cell.full.empty())
        html.element("span", {{"class", "full"}, {"title", cell.full}}, cell.full);
      html.close();
    }
    html.close();
  }
  html.close().close().close();
}

Cell word(std::string text, std::string kind) {
  return {std::move(text), std::nullopt, -1, std::move(kind), "", ""};
}

Cell named(const std::string& kernel) {
  const std::string name = short_kernel_name(kernel);
  return {name, std::nullopt, -1, "name", "", name == kernel ? "" : kernel};
}

Cell time_cell(int64_t ns) { return {duration(ns), static_cast<double>(ns), -1, "", "", ""}; }

Cell number_cell(std::string text, double number, double part) {
  return {std::move(text), number, part, "", "", ""};
}

void drawing(Page* page, const char* id) {
  page->html.open("div", {{"class", "drawing"}, {"id", id}});
  page->html.open("noscript")
      .element("p", {{"class", "note"}}, page->words(messages::kNeedsScript))
      .close();
  page->html.close();
}

void fact(Page* page, const messages::Message& name, const std::string& value) {
  page->html.open("tr").open("th", {{"scope", "row"}}).text(page->words(name)).close();
  page->html.element("td", {}, value).close();
}

}  // namespace idlescope::report

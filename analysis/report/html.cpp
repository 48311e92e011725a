#include "analysis/report/html.h"

#include <fmt/format.h>

#include "analysis/report/html/assets.h"
#include "analysis/report/html/page_parts.h"
#include "proto/messages.h"

namespace idlescope::report {
namespace {

// Standard base64 of a digest given in hex: the spelling of a content security policy.
std::string base64_of_hex(std::string_view hex) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto nibble = [](char c) {
    return static_cast<uint32_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  };
  std::string out;
  for (size_t i = 0; i < hex.size(); i += 6) {
    uint32_t bits = 0;
    size_t bytes = 0;
    for (; bytes < 3 && i + 2 * bytes + 1 < hex.size(); ++bytes) {
      bits |= (nibble(hex[i + 2 * bytes]) << 4 | nibble(hex[i + 2 * bytes + 1]))
              << (16 - 8 * bytes);
    }
    for (size_t digit = 0; digit < 4; ++digit) {
      out += digit <= bytes ? kDigits[bits >> (18 - 6 * digit) & 63] : '=';
    }
  }
  return out;
}

void head(Page* page) {
  page->html.empty("meta", {{"charset", "utf-8"}});
  const std::string scripts =
      assets::kScript.empty()
          ? "'none'"
          : fmt::format("'sha256-{}' 'sha256-{}'", base64_of_hex(assets::kLibrarySha256),
                        base64_of_hex(assets::kScriptSha256));
  page->html.empty(
      "meta",
      {{"http-equiv", "Content-Security-Policy"},
       {"content", fmt::format("default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
                               "script-src {}; base-uri 'none'; form-action 'none'",
                               scripts)}});
  page->html.empty("meta",
                   {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  page->html.empty("meta", {{"name", "color-scheme"}, {"content", "light dark"}});
  page->html.empty("link",
                   {{"rel", "icon"}, {"href", "data:,"}});  // browsers ask for one otherwise
  const std::string verdict =
      page->report.sentences().empty() ? "" : page->words(page->report.sentences(0)) + " - ";
  page->html.element("title", {}, verdict + "idlescope");
  page->html.open("style").trusted(assets::kStyle).close();
}

void navigation(Page* page) {
  page->html.element("a", {{"class", "skip"}, {"href", "#answer"}},
                     page->words(messages::kSkipLink));
  page->html.open("nav", {{"aria-label", page->words(messages::kNavName)}});
  const std::pair<const char*, const messages::Message*> pages[] = {
      {"#answer", &messages::kPageAnswer},   {"#step", &messages::kPageStep},
      {"#loading", &messages::kPageLoading}, {"#gpu", &messages::kPageGpu},
      {"#run", &messages::kPageRun},         {"#sure", &messages::kPageSure},
  };
  for (const auto& [anchor, name] : pages)
    page->html.element("a", {{"href", anchor}}, page->words(*name));
  page->html.close();
}

}  // namespace

std::string to_html(const Report& report, Language language) {
  Page page(report, language);
  page.html.trusted("<!DOCTYPE html>\n");
  page.html.open("html", {{"lang", language == Language::kChinese ? "zh" : "en"}});
  page.html.open("head");
  head(&page);
  page.html.close().open("body");
  navigation(&page);
  page.html.open("main");
  answer_page(&page);
  step_page(&page);
  loading_page(&page);
  gpu_page(&page);
  run_page(&page);
  sure_page(&page);
  page.html.close();  // main
  if (!assets::kScript.empty()) {
    page.html.open("footer").open("details").element("summary", {},
                                                     page.words(messages::kSureLicences));
    page.html.element("pre", {}, assets::kLibraryLicence).close().close();
    page.html.open("script", {{"type", "application/json"}, {"id", "data"}});
    page.html.trusted(drawing_data(report, language)).close();
    page.html.open("script").trusted(assets::kLibrary).close();
    page.html.open("script").trusted(assets::kScript).close();
  }
  return page.html.take();
}

}  // namespace idlescope::report

#include "analysis/read/sqlite_file.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>

namespace idlescope::read {
namespace {

// Identifiers come from us or from the file's own schema; quoting makes both inert.
std::string quoted(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    out += c;
    if (c == '"') out += '"';
  }
  return out + "\"";
}

class Statement {
 public:
  Statement(sqlite3* database, const std::string& sql) {
    sqlite3_prepare_v2(database, sql.c_str(), static_cast<int>(sql.size()), &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  sqlite3_stmt* get() const { return statement_; }

 private:
  sqlite3_stmt* statement_ = nullptr;
};

std::string_view column_text(sqlite3_stmt* statement, int column) {
  // As a blob: the length counts, text may hold NUL bytes.
  const void* data = sqlite3_column_blob(statement, column);
  const int size = sqlite3_column_bytes(statement, column);
  if (data == nullptr || size <= 0) return {};
  return {static_cast<const char*>(data), static_cast<size_t>(size)};
}

constexpr int kMaxTextBytes = 16 << 20;

}  // namespace

bool SqliteRow::has(size_t column) const {
  return columns_[column] >= 0 && sqlite3_column_type(statement_, columns_[column]) != SQLITE_NULL;
}

bool SqliteRow::is_number(size_t column) const {
  if (columns_[column] < 0) return false;
  const int type = sqlite3_column_type(statement_, columns_[column]);
  return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

int64_t SqliteRow::integer(size_t column, int64_t otherwise) const {
  return has(column) ? sqlite3_column_int64(statement_, columns_[column]) : otherwise;
}

uint32_t SqliteRow::id(size_t column) const {
  const int64_t value = integer(column);
  return value >= 0 && value <= UINT32_MAX ? static_cast<uint32_t>(value) : 0;
}

std::string_view SqliteRow::text(size_t column) const {
  return has(column) ? column_text(statement_, columns_[column]) : std::string_view();
}

SqliteFile::SqliteFile(std::string_view bytes) : bytes_(bytes) {
  if (sqlite3_open_v2(":memory:", &database_, SQLITE_OPEN_READWRITE, nullptr) != SQLITE_OK) {
    fail();
    return;
  }
  sqlite3_db_config(database_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_limit(database_, SQLITE_LIMIT_LENGTH, kMaxTextBytes);
  // Bytes 18 and 19 are the write and read versions; 2 is WAL, which a database in memory
  // cannot be in (sqlite.org/fileformat2.html, 1.3.3).
  if (bytes_.size() >= 100 && (bytes_[18] == 2 || bytes_[19] == 2)) {
    was_open_ = true;
    closed_copy_ = bytes_;
    closed_copy_[18] = closed_copy_[19] = 1;
    bytes_ = closed_copy_;
  }
  // Read-only, not copied and not freed by sqlite, which does not write to it; its interface
  // has no const for that.
  unsigned char* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes_.data()));
  const sqlite3_int64 size = static_cast<sqlite3_int64>(bytes_.size());
  if (sqlite3_deserialize(database_, "main", data, size, size, SQLITE_DESERIALIZE_READONLY) !=
      SQLITE_OK) {
    fail();
    return;
  }
  const Statement statement(database_,
                            "SELECT name FROM sqlite_master WHERE type = 'table' AND "
                            "sql NOT LIKE 'CREATE VIRTUAL%'");
  if (statement.get() == nullptr) {
    fail();
    return;
  }
  int result = SQLITE_ROW;
  while ((result = sqlite3_step(statement.get())) == SQLITE_ROW) {
    tables_.emplace_back(column_text(statement.get(), 0));
  }
  if (result != SQLITE_DONE) fail();
}

SqliteFile::~SqliteFile() { sqlite3_close_v2(database_); }

void SqliteFile::fail() {
  if (error_.empty()) error_ = database_ != nullptr ? sqlite3_errmsg(database_) : "no memory";
}

bool SqliteFile::has_table(std::string_view name) const {
  return std::find(tables_.begin(), tables_.end(), name) != tables_.end();
}

bool SqliteFile::scan(std::string_view table, std::initializer_list<std::string_view> columns,
                      const std::function<void(const SqliteRow&)>& row) {
  if (!has_table(table)) return false;
  std::vector<std::string> present;
  {
    const Statement info(database_, "PRAGMA table_info(" + quoted(table) + ")");
    if (info.get() == nullptr) {
      fail();
      return false;
    }
    while (sqlite3_step(info.get()) == SQLITE_ROW) {
      present.emplace_back(column_text(info.get(), 1));
    }
  }
  std::string sql;
  std::vector<int> places;
  int next = 0;
  for (const std::string_view column : columns) {
    const bool there = std::find(present.begin(), present.end(), column) != present.end();
    places.push_back(there ? next++ : -1);
    if (there) sql += (sql.empty() ? "" : ", ") + quoted(column);
  }
  if (next == 0) return false;
  const Statement statement(database_, "SELECT " + sql + " FROM " + quoted(table));
  if (statement.get() == nullptr) {
    fail();
    return false;
  }
  // A page that is its own child would make rows without end.
  uint64_t rows = 0;
  int result = SQLITE_ROW;
  while ((result = sqlite3_step(statement.get())) == SQLITE_ROW) {
    if (++rows > bytes_.size()) {
      if (error_.empty()) error_ = "a table has more rows than the file has bytes";
      return false;
    }
    row(SqliteRow(statement.get(), places));
  }
  if (result != SQLITE_DONE) {
    fail();
    return false;
  }
  return true;
}

}  // namespace idlescope::read

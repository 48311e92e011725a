// Reads tables of an SQLite file that may be damaged or hostile.
//
// In: the bytes of a database. Out: for each row of a table, the named columns, whether the
// file has them or not. Only plain tables are read (no views, no virtual tables), never
// written to, and no table yields more rows than the file has bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace idlescope::read {

class SqliteRow {
 public:
  SqliteRow(sqlite3_stmt* statement, const std::vector<int>& columns)
      : statement_(statement), columns_(columns) {}

  // Columns in the order they were asked for. Absent or NULL: the default.
  bool has(size_t column) const;
  bool is_number(size_t column) const;
  int64_t integer(size_t column, int64_t otherwise = 0) const;
  uint32_t id(size_t column) const;            // of what fits 32 bits; else 0
  std::string_view text(size_t column) const;  // valid until the next row; may hold NULs

 private:
  sqlite3_stmt* statement_;
  const std::vector<int>& columns_;
};

class SqliteFile {
 public:
  // Views into `bytes` are kept: it must outlive the file.
  explicit SqliteFile(std::string_view bytes);
  ~SqliteFile();
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;

  // What sqlite said first; empty while all is well.
  const std::string& error() const { return error_; }
  // Another program had the database open when it was copied (write-ahead log): the latest rows
  // may be in a file beside it.
  bool was_open() const { return was_open_; }
  bool has_table(std::string_view name) const;
  const std::vector<std::string>& tables() const { return tables_; }

  // Calls `row` for every row. False: the table is not there, or ended with an error.
  bool scan(std::string_view table, std::initializer_list<std::string_view> columns,
            const std::function<void(const SqliteRow&)>& row);

 private:
  void fail();

  std::string_view bytes_;
  std::string closed_copy_;
  bool was_open_ = false;
  sqlite3* database_ = nullptr;
  std::vector<std::string> tables_;
  std::string error_;
};

}  // namespace idlescope::read

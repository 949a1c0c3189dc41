// Owners of SQLite's C handles, and its error codes as exceptions.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace ucudnn {

/// A failed SQLite call.
class SqliteError : public std::runtime_error {
 public:
  SqliteError(int code, const std::string& message) : std::runtime_error(message), code_(code) {}

  /// The primary result code: SQLITE_BUSY, SQLITE_FULL, ...
  int code() const noexcept { return code_ & 0xff; }

 private:
  int code_;
};

/// One connection. Not thread-safe; must not be open across a fork().
class SqliteConnection {
 public:
  enum class Access {
    kReadWriteCreate,
    kReadWrite,
    kReadOnly,
    kImmutable,  ///< read-only without locks, journal or -shm file: nothing is written anywhere
  };

  /// `path` is taken literally, whatever characters it has. Throws SqliteError.
  SqliteConnection(const std::string& path, Access access);

  /// Runs statements that return nothing of interest. Throws SqliteError.
  void execute(const char* sql);

  /// The first column of a query's first row. Throws SqliteError.
  std::int64_t integer(const char* sql);

  /// Whether writing is out of the question, as the file's permissions are.
  bool readOnly() const noexcept { return sqlite3_db_readonly(get(), "main") != 0; }

  sqlite3* get() const noexcept { return handle_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* handle) const noexcept { sqlite3_close(handle); }
  };
  std::unique_ptr<sqlite3, Close> handle_;
};

/// One prepared statement. REQUIRES: the connection outlives it.
class SqliteStatement {
 public:
  SqliteStatement(SqliteConnection& connection, const char* sql);

  /// Resets the statement and binds all its parameters, in order. Texts must outlive the steps.
  template <typename... Values>
  SqliteStatement& bind(const Values&... values) {
    sqlite3_reset(handle_.get());  // Repeats the last step's error, which was thrown already.
    int index = 0;
    (bindOne(++index, values), ...);
    return *this;
  }

  /// True: there is a row; false: done. Throws SqliteError.
  bool step();

  /// Steps to the end, for statements without rows of interest.
  void run();

  /// Whether the column holds this type of SQLite's (SQLITE_INTEGER, ...), unconverted.
  bool has(int column, int type) const noexcept {
    return sqlite3_column_type(handle_.get(), column) == type;
  }
  std::int64_t integer(int column) const noexcept {
    return sqlite3_column_int64(handle_.get(), column);
  }
  double real(int column) const noexcept { return sqlite3_column_double(handle_.get(), column); }
  /// Throws SqliteError when memory runs out. REQUIRES: the column is not NULL.
  std::string text(int column) const;

 private:
  void bindOne(int index, std::int64_t value);
  void bindOne(int index, double value);
  void bindOne(int index, const std::string& value);
  void check(int code) const;

  struct Finalize {
    void operator()(sqlite3_stmt* handle) const noexcept { sqlite3_finalize(handle); }
  };
  sqlite3* connection_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

/// A write transaction, rolled back unless committed.
class SqliteTransaction {
 public:
  /// Waits for other writers as the connection's busy timeout says. Throws SqliteError.
  explicit SqliteTransaction(SqliteConnection& connection);
  ~SqliteTransaction();
  SqliteTransaction(const SqliteTransaction&) = delete;
  SqliteTransaction& operator=(const SqliteTransaction&) = delete;

  void commit();

 private:
  SqliteConnection& connection_;
  bool committed_ = false;
};

}  // namespace ucudnn

// Owners of SQLite's C handles, and its error codes as exceptions. Whatever a file holds, it is
// opened so that reading it runs no code of its maker's, takes bounded time and memory, and writes
// nothing.
#pragma once

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

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

/// How long others' locks may hold a caller up. Not thread-safe.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;

  /// So much at once, and after that the given share of the time that passes.
  Patience(Clock::duration atOnce, double share) noexcept
      : atOnce_(atOnce), left_(atOnce), share_(share) {}

  /// Sleeps a little. Returns false if nothing is left.
  bool wait(int attempt) noexcept;

 private:
  Clock::duration atOnce_;
  Clock::duration left_;
  double share_;
  Clock::time_point last_ = Clock::now();
};

/// Limits of a connection.
struct SqliteLimits {
  Patience* patience;                 ///< REQUIRES: outlives the connection
  std::chrono::milliseconds cpuTime;  ///< of each `start()`; longer work is interrupted
};

class SqliteConnection;

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

  /// Returns true if there is a row, false at the end. If it throws SqliteError, it has been reset.
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
  /// Throws SqliteError if memory runs out. REQUIRES: the column is not NULL.
  std::string text(int column) const { return std::string(view(column)); }
  /// The same, valid until the next step.
  std::string_view view(int column) const;
  /// The length of a text or a blob, in bytes.
  int bytes(int column) const noexcept { return sqlite3_column_bytes(handle_.get(), column); }
  /// Ends the steps, so that the statement holds no lock.
  void reset() noexcept { sqlite3_reset(handle_.get()); }

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

/// One connection. Not thread-safe; must not be open across a fork().
///
///  1. It runs no trigger and reads no view; functions in a schema are not trusted.
///  2. Its files are those of sqlite_files.hpp.
class SqliteConnection {
 public:
  enum class Access {
    kReadWriteCreate,
    kReadWrite,
    kReadOnly,
    kImmutable,  ///< read-only without locks, journal or -shm file: nothing is written anywhere
  };

  /// `path` is taken literally, whatever characters it has. Throws SqliteError.
  SqliteConnection(const std::string& path, Access access, const SqliteLimits& limits);

  /// Restarts the count of the time that the connection may take.
  void start() noexcept;

  /// The first bytes of the file as they are, before SQLite reads them as a database. Fewer if the
  /// file is shorter. Throws SqliteError.
  std::string rawBytes(int count);

  /// Runs statements that return nothing of interest. Throws SqliteError.
  void execute(const char* sql);
  /// Runs one such statement, which stays prepared. Throws SqliteError.
  void repeat(const char* sql) { prepared(sql).run(); }

  /// The first column of a query's first row. The query stays prepared. Throws SqliteError.
  std::int64_t integer(const char* sql);

  /// Whether the file's permissions forbid writing.
  bool readOnly() const noexcept { return sqlite3_db_readonly(get(), "main") != 0; }

  sqlite3* get() const noexcept { return handle_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* handle) const noexcept { sqlite3_close(handle); }
  };
  void harden();
  SqliteStatement& prepared(const char* sql);

  /// At a fixed address, because SQLite's callbacks know it.
  struct Limits {
    SqliteLimits given;
    std::chrono::nanoseconds deadline{};  ///< of this thread's time
  };
  std::unique_ptr<Limits> limits_;
  std::unique_ptr<sqlite3, Close> handle_;
  std::map<std::string, SqliteStatement> prepared_;
};

/// A transaction, rolled back unless committed.
class SqliteTransaction {
 public:
  enum class Kind { kRead, kWrite };
  /// Waits for others as long as the connection's patience allows. Throws SqliteError.
  SqliteTransaction(SqliteConnection& connection, Kind kind);
  ~SqliteTransaction();
  SqliteTransaction(const SqliteTransaction&) = delete;
  SqliteTransaction& operator=(const SqliteTransaction&) = delete;

  void commit();

 private:
  SqliteConnection& connection_;
  bool committed_ = false;
};

}  // namespace ucudnn

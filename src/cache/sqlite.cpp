#include "cache/sqlite.hpp"

#include <cctype>
#include <cstring>

namespace ucudnn {
namespace {

/// SQLite's words for the code, with what it and the system add where they add anything.
[[noreturn]] void fail(sqlite3* connection, int code) {
  std::string message = sqlite3_errstr(code);
  if (connection != nullptr && sqlite3_errcode(connection) == code) {
    const std::string detail = sqlite3_errmsg(connection);
    if (detail != message) message += " (" + detail + ")";
    const int primary = code & 0xff;
    const int systemError = sqlite3_system_errno(connection);
    if (systemError != 0 && (primary == SQLITE_CANTOPEN || primary == SQLITE_IOERR)) {
      message += std::string(": ") + std::strerror(systemError);
    }
  }
  throw SqliteError(code, message);
}

/// As a "file:" URI, so that no path is taken for a URI or for ":memory:".
std::string uriOf(const std::string& path, bool immutable) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string uri = path[0] == '/' ? "file://" : "file:";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '/' || c == '.' || c == '-' || c == '_') {
      uri += c;
    } else {
      uri += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return immutable ? uri + "?immutable=1" : uri;
}

int openFlags(SqliteConnection::Access access) {
  using Access = SqliteConnection::Access;
  const int common = SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;  // The caller locks.
  switch (access) {
    case Access::kReadWriteCreate:
      return common | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    case Access::kReadWrite:
      return common | SQLITE_OPEN_READWRITE;
    case Access::kReadOnly:
    case Access::kImmutable:
      return common | SQLITE_OPEN_READONLY;
  }
  return common | SQLITE_OPEN_READONLY;
}

}  // namespace

SqliteConnection::SqliteConnection(const std::string& path, Access access) {
  sqlite3* opened = nullptr;
  const std::string uri = uriOf(path, access == Access::kImmutable);
  const int code = sqlite3_open_v2(uri.c_str(), &opened, openFlags(access), nullptr);
  handle_.reset(opened);  // Also after a failure: the handle then holds the reason.
  if (code != SQLITE_OK) fail(opened, code);
  // Long enough for a hundred writers in turn on a slow disk; a lock that outlasts it is stuck.
  constexpr int kBusyTimeoutMs = 10000;
  const int timeoutCode = sqlite3_busy_timeout(opened, kBusyTimeoutMs);
  if (timeoutCode != SQLITE_OK) fail(opened, timeoutCode);
}

void SqliteConnection::execute(const char* sql) {
  const int code = sqlite3_exec(get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(get(), code);
}

std::int64_t SqliteConnection::integer(const char* sql) {
  SqliteStatement statement(*this, sql);
  return statement.step() ? statement.integer(0) : 0;
}

SqliteStatement::SqliteStatement(SqliteConnection& connection, const char* sql)
    : connection_(connection.get()) {
  sqlite3_stmt* prepared = nullptr;
  check(sqlite3_prepare_v2(connection_, sql, -1, &prepared, nullptr));
  handle_.reset(prepared);
}

bool SqliteStatement::step() {
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) fail(connection_, code);
  return false;
}

void SqliteStatement::run() {
  while (step()) {
  }
  sqlite3_reset(handle_.get());
}

std::string SqliteStatement::text(int column) const {
  const unsigned char* const bytes = sqlite3_column_text(handle_.get(), column);
  if (bytes == nullptr) fail(connection_, SQLITE_NOMEM);
  const int size = sqlite3_column_bytes(handle_.get(), column);
  return {reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

void SqliteStatement::bindOne(int index, std::int64_t value) {
  check(sqlite3_bind_int64(handle_.get(), index, value));
}

void SqliteStatement::bindOne(int index, double value) {
  check(sqlite3_bind_double(handle_.get(), index, value));
}

void SqliteStatement::bindOne(int index, const std::string& value) {
  check(sqlite3_bind_text64(
      handle_.get(), index, value.data(), value.size(), SQLITE_STATIC, SQLITE_UTF8));
}

void SqliteStatement::check(int code) const {
  if (code != SQLITE_OK) fail(connection_, code);
}

SqliteTransaction::SqliteTransaction(SqliteConnection& connection) : connection_(connection) {
  connection_.execute("BEGIN IMMEDIATE");
}

SqliteTransaction::~SqliteTransaction() {
  // An error here leaves the transaction to sqlite3_close, which rolls it back, too.
  if (!committed_) sqlite3_exec(connection_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void SqliteTransaction::commit() {
  connection_.execute("COMMIT");
  committed_ = true;
}

}  // namespace ucudnn

#include "cache/sqlite.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <ctime>
#include <thread>

#include "cache/sqlite_files.hpp"
#include "support/text.hpp"

namespace ucudnn {
namespace {

/// CPU time, not elapsed time, because a busy machine or a slow disk is no hostile file.
std::chrono::nanoseconds threadTime() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

/// SQLite's text for the code, with details that it and the system add.
SqliteError errorOf(sqlite3* connection, int code) {
  std::string message = sqlite3_errstr(code);
  if (connection != nullptr && sqlite3_errcode(connection) == code) {
    const std::string detail = sqlite3_errmsg(connection);
    // The detail may hold names and texts from the file.
    constexpr std::size_t kMostOfDetail = 200;
    if (detail != message) message += " (" + excerpt(detail, kMostOfDetail) + ")";
    const int primary = code & 0xff;
    const int systemError = sqlite3_system_errno(connection);
    if (systemError != 0 && (primary == SQLITE_CANTOPEN || primary == SQLITE_IOERR)) {
      message += std::string(": ") + std::strerror(systemError);
    }
  }
  return {code, message};
}

[[noreturn]] void fail(sqlite3* connection, int code) {
  throw errorOf(connection, code);
}

/// The path as a "file:" URI, so that no path is taken for another URI or for ":memory:".
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

bool Patience::wait(int attempt) noexcept {
  const auto now = Clock::now();
  const auto regained = std::chrono::duration_cast<Clock::duration>((now - last_) * share_);
  left_ = std::min(atOnce_, left_ + regained);
  last_ = now;
  // A transaction takes about a millisecond.
  constexpr std::chrono::milliseconds kShortest{1}, kLongest{10};
  const Clock::duration step = std::min(kShortest * (attempt + 1), kLongest);
  if (left_ < step) return false;
  std::this_thread::sleep_for(step);
  const auto after = Clock::now();
  left_ -= after - now;
  last_ = after;
  return true;
}

SqliteConnection::SqliteConnection(const std::string& path,
                                   Access access,
                                   const SqliteLimits& limits)
    : limits_(std::make_unique<Limits>(Limits{limits, {}})) {
  const char* const files = safeFiles();
  if (files == nullptr) fail(nullptr, SQLITE_NOMEM);
  sqlite3* opened = nullptr;
  const std::string uri = uriOf(path, access == Access::kImmutable);
  const int code = sqlite3_open_v2(uri.c_str(), &opened, openFlags(access), files);
  handle_.reset(opened);  // Also after a failure: the handle then holds the reason.
  if (code != SQLITE_OK) fail(opened, code);
  harden();
}

void SqliteConnection::harden() {
  const struct {
    int option;
    int value;
  } kOptions[] = {{SQLITE_DBCONFIG_DEFENSIVE, 1},
                  {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                  {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                  {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                  {SQLITE_DBCONFIG_ENABLE_FKEY, 1}};
  for (const auto& [option, value] : kOptions) {
    const int code = sqlite3_db_config(get(), option, value, static_cast<int*>(nullptr));
    if (code != SQLITE_OK) fail(get(), code);
  }
  const struct {
    int limit;
    int most;
  } kLimits[] = {{SQLITE_LIMIT_LENGTH, 1 << 16},  // a row of ours has 500 bytes
                 {SQLITE_LIMIT_SQL_LENGTH, 1 << 13},
                 {SQLITE_LIMIT_COLUMN, 32},
                 {SQLITE_LIMIT_EXPR_DEPTH, 20},
                 {SQLITE_LIMIT_COMPOUND_SELECT, 3},
                 {SQLITE_LIMIT_VDBE_OP, 10000},
                 {SQLITE_LIMIT_FUNCTION_ARG, 8},
                 {SQLITE_LIMIT_ATTACHED, 1},  // VACUUM needs one
                 {SQLITE_LIMIT_TRIGGER_DEPTH, 4},
                 {SQLITE_LIMIT_WORKER_THREADS, 0}};
  for (const auto& [limit, most] : kLimits) sqlite3_limit(get(), limit, most);

  const int code = sqlite3_busy_handler(
      get(),
      [](void* limits, int attempt) {
        return static_cast<Limits*>(limits)->given.patience->wait(attempt) ? 1 : 0;
      },
      limits_.get());
  if (code != SQLITE_OK) fail(get(), code);
  constexpr int kSteps = 2000;  // some 50 us
  sqlite3_progress_handler(
      get(),
      kSteps,
      [](void* limits) { return threadTime() > static_cast<Limits*>(limits)->deadline ? 1 : 0; },
      limits_.get());
  start();
  execute("PRAGMA cell_size_check = ON");  // Also for a page that lies about itself.
}

void SqliteConnection::start() noexcept {
  limits_->deadline = threadTime() + limits_->given.cpuTime;
}

std::string SqliteConnection::rawBytes(int count) {
  sqlite3_file* file = nullptr;
  int code = sqlite3_file_control(get(), "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (code == SQLITE_OK && (file == nullptr || file->pMethods == nullptr)) code = SQLITE_CANTOPEN;
  sqlite3_int64 size = 0;
  if (code == SQLITE_OK) code = file->pMethods->xFileSize(file, &size);
  std::string bytes(static_cast<std::size_t>(std::min<sqlite3_int64>(size, count)), '\0');
  if (code == SQLITE_OK && !bytes.empty())
    code = file->pMethods->xRead(file, bytes.data(), static_cast<int>(bytes.size()), 0);
  if (code != SQLITE_OK) fail(nullptr, code);
  return bytes;
}

void SqliteConnection::execute(const char* sql) {
  const int code = sqlite3_exec(get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(get(), code);
}

SqliteStatement& SqliteConnection::prepared(const char* sql) {
  return prepared_.try_emplace(sql, *this, sql).first->second;
}

std::int64_t SqliteConnection::integer(const char* sql) {
  SqliteStatement& statement = prepared(sql);
  const std::int64_t value = statement.step() ? statement.integer(0) : 0;
  statement.reset();
  return value;
}

SqliteStatement::SqliteStatement(SqliteConnection& connection, const char* sql)
    : connection_(connection.get()) {
  sqlite3_stmt* prepared = nullptr;
  check(sqlite3_prepare_v2(connection_, sql, -1, &prepared, nullptr));
  handle_.reset(prepared);
}

bool SqliteStatement::step() {
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW || code == SQLITE_DONE) return code == SQLITE_ROW;
  const SqliteError error = errorOf(connection_, code);
  reset();  // else a COMMIT that others hold up stays under way
  throw error;
}

void SqliteStatement::run() {
  while (step()) {
  }
  reset();
}

std::string_view SqliteStatement::view(int column) const {
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

SqliteTransaction::SqliteTransaction(SqliteConnection& connection, Kind kind)
    : connection_(connection) {
  connection_.repeat(kind == Kind::kWrite ? "BEGIN IMMEDIATE" : "BEGIN");
}

SqliteTransaction::~SqliteTransaction() {
  // An error here leaves the transaction to sqlite3_close, which rolls it back, too.
  if (!committed_) sqlite3_exec(connection_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void SqliteTransaction::commit() {
  connection_.repeat("COMMIT");
  committed_ = true;
}

}  // namespace ucudnn

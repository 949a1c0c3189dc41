// libsqlite_fault.so, for LD_PRELOAD: makes one call into SQLite fail.
//
//   UCUDNN_SQLITE_FAIL_CALL=N     the N-th call (from 1) of a function below is not made, and fails
//   UCUDNN_SQLITE_FAIL_CODE=CODE  with this result code; SQLITE_IOERR (10) by default
//   UCUDNN_SQLITE_COUNT_CALLS=1   "sqlite calls: COUNT" on stderr at exit
//
// The functions are those that the cache calls and that can fail. A failed open or prepare leaves a
// null handle, and a failed sqlite3_column_text returns null, as when memory runs out. Not among
// them: sqlite3_reset and sqlite3_finalize, which only repeat the last step's error, and
// sqlite3_close.
#include <dlfcn.h>
#include <sqlite3.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<long> calls{0};

long fromEnvironment(const char* name, long otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : std::atol(value);
}

/// Set while SQLite itself runs: what it calls of its own functions is neither counted nor made to
/// fail, since it takes their errors from places that only they know.
thread_local bool inside = false;

/// Counts a call; true when it is the one that fails.
bool fails() {
  static const long failing = fromEnvironment("UCUDNN_SQLITE_FAIL_CALL", 0);
  return !inside && ++calls == failing;
}

int failureCode() {
  return static_cast<int>(fromEnvironment("UCUDNN_SQLITE_FAIL_CODE", SQLITE_IOERR));
}

/// SQLite's own function of some name.
template <typename Function>
class Original {
 public:
  Original(Function*, const char* name) {
    void* const address = ::dlsym(RTLD_NEXT, name);
    if (address == nullptr) std::abort();
    std::memcpy(&function_, &address, sizeof function_);
  }

  template <typename... Arguments>
  auto operator()(Arguments... arguments) const {
    const bool before = inside;
    inside = true;
    const auto result = function_(arguments...);
    inside = before;
    return result;
  }

 private:
  Function* function_ = nullptr;
};

__attribute__((destructor)) void report() {
  if (fromEnvironment("UCUDNN_SQLITE_COUNT_CALLS", 0) != 0) {
    std::fprintf(stderr, "sqlite calls: %ld\n", calls.load());
  }
}

}  // namespace

#define REAL(function) static const Original original(&function, #function)

extern "C" {

int sqlite3_open_v2(const char* path, sqlite3** connection, int flags, const char* vfs) {
  REAL(sqlite3_open_v2);
  if (!fails()) return original(path, connection, flags, vfs);
  *connection = nullptr;
  return failureCode();
}

/// Registers the VFSs of its own.
int sqlite3_initialize() {
  REAL(sqlite3_initialize);
  return original();
}

int sqlite3_vfs_register(sqlite3_vfs* vfs, int isDefault) {
  REAL(sqlite3_vfs_register);
  return fails() ? failureCode() : original(vfs, isDefault);
}

/// Intercepts the form of it that the cache calls.
int sqlite3_db_config(sqlite3* connection, int option, ...) {
  using Function = int(sqlite3*, int, int, int*);
  static const Original<Function> original(nullptr, "sqlite3_db_config");
  va_list arguments;
  va_start(arguments, option);
  const int value = va_arg(arguments, int);
  int* const result = va_arg(arguments, int*);
  va_end(arguments);
  return fails() ? failureCode() : original(connection, option, value, result);
}

int sqlite3_busy_handler(sqlite3* connection, int (*handler)(void*, int), void* context) {
  REAL(sqlite3_busy_handler);
  return fails() ? failureCode() : original(connection, handler, context);
}

int sqlite3_file_control(sqlite3* connection, const char* name, int operation, void* argument) {
  REAL(sqlite3_file_control);
  return fails() ? failureCode() : original(connection, name, operation, argument);
}

int sqlite3_exec(sqlite3* connection,
                 const char* sql,
                 int (*callback)(void*, int, char**, char**),
                 void* context,
                 char** message) {
  REAL(sqlite3_exec);
  return fails() ? failureCode() : original(connection, sql, callback, context, message);
}

int sqlite3_prepare_v2(
    sqlite3* connection, const char* sql, int bytes, sqlite3_stmt** statement, const char** tail) {
  REAL(sqlite3_prepare_v2);
  if (!fails()) return original(connection, sql, bytes, statement, tail);
  *statement = nullptr;
  return failureCode();
}

int sqlite3_bind_int64(sqlite3_stmt* statement, int index, sqlite3_int64 value) {
  REAL(sqlite3_bind_int64);
  return fails() ? failureCode() : original(statement, index, value);
}

int sqlite3_bind_double(sqlite3_stmt* statement, int index, double value) {
  REAL(sqlite3_bind_double);
  return fails() ? failureCode() : original(statement, index, value);
}

int sqlite3_bind_text64(sqlite3_stmt* statement,
                        int index,
                        const char* text,
                        sqlite3_uint64 bytes,
                        void (*destroy)(void*),
                        unsigned char encoding) {
  REAL(sqlite3_bind_text64);
  return fails() ? failureCode() : original(statement, index, text, bytes, destroy, encoding);
}

int sqlite3_step(sqlite3_stmt* statement) {
  REAL(sqlite3_step);
  return fails() ? failureCode() : original(statement);
}

const unsigned char* sqlite3_column_text(sqlite3_stmt* statement, int column) {
  REAL(sqlite3_column_text);
  return fails() ? nullptr : original(statement, column);
}

}  // extern "C"

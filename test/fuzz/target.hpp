// A target that is fed with mutated inputs.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "mutator.hpp"
#include "support/text.hpp"

namespace ucudnn::fuzz {

/// Something that hostile input must not do.
class Finding : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline void require(bool holds, const std::string& what) {
  if (!holds) throw Finding(what);
}

/// One line of at most 500 characters, none of which a terminal obeys.
inline void requireOneLine(const std::string& message) {
  require(message.size() <= kMostMessageBytes,
          "a message of " + std::to_string(message.size()) + " bytes: " + excerpt(message));
  require(isPrintable(message), "a message that can't be printed: " + excerpt(message));
}

inline std::string contentsOf(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline void writeFile(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// A folder of the corpus, by name.
inline std::vector<std::pair<std::string, std::string>> corpusOf(const std::string& folder) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(UCUDNN_CORPUS) / folder))
    files.emplace_back(entry.path().filename().string(), contentsOf(entry.path()));
  require(!files.empty(), "the corpus has no " + folder);
  return files;
}

/// One kind of input.
class Target {
 public:
  virtual ~Target() = default;
  virtual std::string name() const = 0;
  /// How many inputs the corpus has.
  virtual std::size_t size() const = 0;
  virtual std::string input(std::size_t index) = 0;
  /// How many inputs make a round: as many as take about as long as others'.
  virtual int perRound() const = 0;
  /// Uses the input; refuses or ignores it. `mutator` decides how it is used. Throws Finding.
  virtual void run(const std::string& bytes, Mutator& mutator) = 0;
};

std::unique_ptr<Target> makeLayerTarget();
std::unique_ptr<Target> makeVariableTarget();
std::unique_ptr<Target> makeJsonTarget(const std::string& directory);
std::unique_ptr<Target> makeDatabaseTarget(const std::string& directory);

}  // namespace ucudnn::fuzz

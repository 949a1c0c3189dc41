// Layer lists, environment variables and JSON for `db import`.
#include <algorithm>
#include <map>
#include <sstream>

#include "cache/maintenance.hpp"
#include "support/settings.hpp"
#include "target.hpp"
#include "tool/layer_list.hpp"

namespace ucudnn::fuzz {
namespace {

class TextTarget : public Target {
 public:
  TextTarget(const std::string& folder, int perRound)
      : name_(folder), perRound_(perRound), files_(corpusOf(folder)) {
    std::sort(files_.begin(), files_.end());
  }
  std::string name() const override { return name_; }
  std::size_t size() const override { return files_.size(); }
  std::string input(std::size_t index) override { return files_[index].second; }
  int perRound() const override { return perRound_; }

 private:
  std::string name_;
  int perRound_;
  std::vector<std::pair<std::string, std::string>> files_;
};

class LayerTarget final : public TextTarget {
 public:
  LayerTarget() : TextTarget("csv", 50) {}
  void run(const std::string& bytes, Mutator&) override {
    std::istringstream stream(bytes);
    try {
      for (const tool::Layer& layer : tool::parseLayers(stream, "list.csv")) check(layer);
    } catch (const std::runtime_error& error) {
      requireOneLine(error.what());
    }
  }

 private:
  static void check(const tool::Layer& layer) {
    require(isPrintable(layer.name), "a name that can't be printed: " + excerpt(layer.name));
    requireOneLine(layer.shape());
    for (const auto& sizes : {layer.inputSizes(), layer.filterSizes(), layer.outputSizes()}) {
      double elements = 1;
      for (const int size : sizes) {
        require(size >= 1, "a size below 1 in " + layer.shape());
        elements *= size;
      }
      require(elements <= 1e12, "a tensor beyond the bound in " + layer.shape());
    }
  }
};

class VariableTarget final : public TextTarget {
 public:
  VariableTarget() : TextTarget("variables", 50) {}
  void run(const std::string& bytes, Mutator&) override {
    std::map<std::string, std::string> variables;
    std::istringstream stream(bytes);
    for (std::string line; std::getline(stream, line);) {
      const std::string text = unescaped(line);
      const std::size_t equals = std::min(text.find('='), text.size());
      // A variable ends with its first zero byte.
      variables[text.substr(0, equals)] =
          std::string(text.c_str() + std::min(equals + 1, text.size()));
    }
    try {
      settingsFromEnvironment([&](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      });
    } catch (const std::runtime_error& error) {
      requireOneLine(error.what());
    }
  }

 private:
  static std::string unescaped(const std::string& line) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const bool isEscape = line.compare(i, 2, "\\x") == 0 && i + 3 < line.size() &&
                            std::isxdigit(static_cast<unsigned char>(line[i + 2])) != 0 &&
                            std::isxdigit(static_cast<unsigned char>(line[i + 3])) != 0;
      if (!isEscape) {
        text += line[i];
        continue;
      }
      text += static_cast<char>(std::stoi(line.substr(i + 2, 2), nullptr, 16));
      i += 3;
    }
    return text;
  }
};

class JsonTarget final : public TextTarget {
 public:
  explicit JsonTarget(std::string directory)
      : TextTarget("json", 10), directory_(std::move(directory)) {}
  void run(const std::string& bytes, Mutator&) override {
    namespace fs = std::filesystem;
    const std::string json = directory_ + "/import.json";
    const std::string database = directory_ + "/import.db";
    const std::string again = directory_ + "/export.json";
    for (const std::string& path : {database, again}) fs::remove(path);
    writeFile(json, bytes);
    try {
      const std::size_t imported = importDatabase(database, json);
      const std::size_t exported = exportDatabase(database, again);
      require(exported <= imported, "more is exported than was imported");
      require(importDatabase(database, again) == exported, "an export is imported otherwise");
      listDatabase(database);
    } catch (const Finding&) {
      throw;
    } catch (const std::runtime_error& error) {
      requireOneLine(error.what());
    }
  }

 private:
  std::string directory_;
};

}  // namespace

std::unique_ptr<Target> makeLayerTarget() {
  return std::make_unique<LayerTarget>();
}
std::unique_ptr<Target> makeVariableTarget() {
  return std::make_unique<VariableTarget>();
}
std::unique_ptr<Target> makeJsonTarget(const std::string& directory) {
  return std::make_unique<JsonTarget>(directory);
}

}  // namespace ucudnn::fuzz

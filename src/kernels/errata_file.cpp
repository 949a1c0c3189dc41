// Lists of errata in cudnn-frontend's form.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "kernels/errata.hpp"
#include "support/bounded_json.hpp"
#include "support/files.hpp"
#include "support/settings.hpp"
#include "support/text.hpp"

namespace ucudnn {
namespace {

using Json = nlohmann::json;

// Bounds of a list: cuDNN has some hundred engines, each with a hundred settings of its knobs.
constexpr std::size_t kMostBytes = std::size_t{4} << 20;
constexpr int kMostDepth = 16;
constexpr std::size_t kMostEvents = 200000;

/// A rule of the file.
class Rule {
 public:
  Rule(const Json& value, std::size_t place) : value_(value), place_(place) {
    if (!value.is_object()) refuse("is no object");
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw std::runtime_error(fmt::format("rules[{}] {}", place_, what));
  }
  /// Null: there is none.
  const Json* find(const char* name) const {
    const auto place = value_.find(name);
    return place == value_.end() ? nullptr : &*place;
  }
  std::string text(const char* name) const {
    const Json* const found = find(name);
    if (found == nullptr || !found->is_string()) refuse(fmt::format("has no text \"{}\"", name));
    return found->get<std::string>();
  }
  std::int64_t integer(const char* name) const {
    const Json* const found = find(name);
    if (found == nullptr || !found->is_number_integer())
      refuse(fmt::format("has no integer \"{}\"", name));
    return found->get<std::int64_t>();
  }
  /// -1 is the largest, as cudnn-frontend has it.
  std::size_t version(const char* name, std::size_t otherwise) const {
    return find(name) == nullptr ? otherwise : static_cast<std::size_t>(integer(name));
  }
  std::vector<std::string> knobs() const {
    std::vector<std::string> knobs;
    const Json* const found = find("knob");
    if (found == nullptr) return knobs;
    if (!found->is_array()) refuse("has a \"knob\" that is no list");
    for (const Json& knob : *found) {
      if (!knob.is_string()) refuse("has a knob that is no text");
      knobs.push_back(knob.get<std::string>());
    }
    return knobs;
  }
  /// The file's sizes, in the order that it says.
  Erratum::Shape shape(const char* name, bool isNhwc) const {
    const Json& found = *find(name);
    Erratum::Shape shape{};
    if (!found.is_array() || found.size() != shape.size())
      refuse(fmt::format("has a \"{}\" that is not four sizes", name));
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (!found[d].is_number_integer())
        refuse(fmt::format("has a \"{}\" that is not four sizes", name));
      // NHWC: samples, height, width, channels.
      shape[!isNhwc || d == 0 ? d : d == 3 ? 1 : d + 1] = found[d].get<std::int64_t>();
    }
    return shape;
  }

 private:
  const Json& value_;
  const std::size_t place_;
};

Erratum erratumOf(const Rule& rule) {
  Erratum erratum;
  erratum.operation = rule.text("operation");
  if (erratum.operation.empty()) rule.refuse("has an empty \"operation\"");
  erratum.engine = rule.integer("engine");
  erratum.id = rule.find("rule_id") != nullptr ? rule.text("rule_id") : std::string();
  erratum.knobs = rule.knobs();
  erratum.fromVersion = rule.version("cudnn_version_start", erratum.fromVersion);
  erratum.endVersion = rule.version("cudnn_version_end", erratum.endVersion);
  if (rule.find("input_shape") != nullptr) {
    const std::string format = rule.text("shape_format");
    if (format != "NCHW" && format != "NHWC")
      rule.refuse("has a \"shape_format\" that is neither NCHW nor NHWC");
    erratum.input = rule.shape("input_shape", format == "NHWC");
  }
  if (rule.find("filter_shape") != nullptr) erratum.filter = rule.shape("filter_shape", false);
  return erratum;
}

}  // namespace

Errata errataFromJson(const std::string& text) {
  Json json;
  try {
    json = parseBounded<Json>(text, kMostDepth, kMostEvents);
  } catch (const Json::exception& error) {
    throw std::runtime_error(error.what());
  }
  if (!json.is_object()) throw std::runtime_error("it is no object");
  const auto rules = json.find("rules");
  if (rules == json.end() || !rules->is_array())
    throw std::runtime_error("it has no list \"rules\"");
  Errata errata;
  for (std::size_t i = 0; i < rules->size(); ++i) errata.push_back(erratumOf({(*rules)[i], i}));
  return errata;
}

Errata readErrata(const std::string& path) {
  try {
    expectFile(path);
    return errataFromJson(readFile(path, kMostBytes));
  } catch (const std::runtime_error& error) {
    throw BadSetting(fmt::format("CUDNN_ERRATA_JSON_FILE=\"{}\": {}; accepted: a file of errata",
                                 excerpt(path),
                                 excerpt(error.what(), 250)));
  }
}

}  // namespace ucudnn

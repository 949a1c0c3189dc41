// The texts of --help.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace ucudnn::tool {

/// Breaks descriptions if lines would be wider than kMostColumns.
std::shared_ptr<CLI::Formatter> helpFormatter();

/// The text below the options: the printed output, and the format of a layer list.
std::string benchFooter();
std::string planFooter();
std::string sharesFooter();
std::string checkFooter();
constexpr const char* kExitStatus =
    "Exit status: 0 success; 1 a layer failed; 2 a bad file, option or setting.";

}  // namespace ucudnn::tool

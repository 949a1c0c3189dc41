// `ucudnn run`. Nothing here needs cuDNN or CUDA: a program's may lie where only the program looks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ucudnn::tool {

constexpr const char* kRunDescription =
    "run an unmodified program with μ-cuDNN: ucudnn run [OPTIONS] COMMAND...";

/// Becomes the command that the arguments behind "run" name. 127: there is no such command; 126: it
/// can't be run; 0: --help. Throws BadInput, BadSetting.
int run(std::vector<std::string> arguments);

/// A file that lies in `folder`, seen from the folder of this program. Throws std::runtime_error.
std::string besideThisProgram(const std::string& folder, const std::string& file);

/// The folder in which `ucudnn run` keeps measurements that nobody has named a place for. Empty:
/// there is none.
std::string cacheFolder();

/// Remarks on stderr on each size among the options that has no unit and looks wrong.
void remarkOnSizes(const std::vector<std::string>& arguments);

/// A place for a file must be there before the work begins, which would go on without it. Throws
/// BadInput, which names the option or variable.
void expectFolderOf(const char* name, const std::string& path);

/// The value of an option. Throws BadInput.
std::size_t parseSizeOption(const char* option, const std::string& text);

}  // namespace ucudnn::tool

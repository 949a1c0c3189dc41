#include "tool/command_line.hpp"

#include <fmt/format.h>
#include <ucudnn/ucudnn.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "support/text.hpp"
#include "tool/commands.hpp"
#include "tool/failure.hpp"
#include "tool/run.hpp"

namespace ucudnn::tool {
namespace {

constexpr const char* kDescription =
    "μ-cuDNN: cuDNN's convolutions, split into micro-batches that fit the workspace limit";
constexpr const char* kExitStatus =
    "Exit status: 0 all went well, 1 a layer failed, 2 a bad file, option or setting.";
constexpr const char* kBenchFooter =
    "cuDNN ms: the algorithm that cudnnFindConvolution*AlgorithmEx finds fastest with the limit's\n"
    "workspace. undivided, with engines: the fastest kernel within it that is not split, engines\n"
    "included, as an autotuner could pick. unlimited: cuDNN's without a limit (24 GiB at most). "
    "best:\n"
    "that, or the fastest of cuDNN's own engines without a limit, where engines are asked for. All "
    "are\n"
    "timed back to back in turns; the median counts. replayed: the part of μ-cuDNN's timed calls "
    "that ran as one\n"
    "launch of a CUDA graph. error (relative_error): normalized L2 distance of μ-cuDNN's output to "
    "the\n"
    "plainest kernel's with FMA math (IMPLICIT_GEMM, or ALGO_1 backward). cuDNN's\n"
    "(cudnn_relative_error): the distance to it of what cuDNN picks without a limit.";

/// What is needed for the life of the parsed command.
struct Parsed {
  BenchOptions bench;
  ConvolutionOptions plan;
  DatabaseOptions database;
  Command command;
};

constexpr const char* kLimit = "--workspace-limit";
constexpr const char* kLimitHelp =
    "bytes, also as 64MiB; default: UCUDNN_DEFAULT_WORKSPACE_LIMIT, 64MiB";

void addLimit(CLI::App& app, ConvolutionOptions& o) {
  app.add_option_function<std::string>(
         kLimit,
         [&o](const std::string& text) { o.limitBytes = parseSizeOption(kLimit, text); },
         kLimitHelp)
      ->type_name("SIZE");
}

void addLimits(CLI::App& app, BenchOptions& o) {
  app.add_option_function<std::vector<std::string>>(
         kLimit,
         [&o](const std::vector<std::string>& texts) {
           o.limitsBytes.clear();
           for (const std::string& text : texts)
             o.limitsBytes.push_back(parseSizeOption(kLimit, text));
           o.limitBytes = o.limitsBytes.front();
         },
         std::string(kLimitHelp) + "; several, separated by commas: one after another")
      ->type_name("SIZE")
      ->delimiter(',')
      ->allow_extra_args(false);
}

void addPlanningOptions(CLI::App& app, ConvolutionOptions& o) {
  app.add_option_function<std::string>(
         "--policy",
         [&o](const std::string& text) { o.policy = parsePolicy(text); },
         "undivided, powerOfTwo or all; default: UCUDNN_BATCH_SIZE_POLICY, powerOfTwo")
      ->type_name("POLICY");
  app.add_option_function<std::string>(
         "--kernels",
         [&o](const std::string& text) { o.kernels = parseKernels(text); },
         "legacy, engines or all; default: UCUDNN_KERNELS, all")
      ->type_name("KERNELS");
  app.add_option_function<std::string>(
         "--tuning",
         [&o](const std::string& text) { o.tuning = parseTuning(text); },
         "exhaustive or fast; default: UCUDNN_TUNING, fast")
      ->type_name("TUNING");
  app.add_option_function<std::string>(
         "--max-error",
         [&o](const std::string& text) { o.maxError = parseMaxError(text); },
         "largest normalized L2 error of a plan's kernels, as 1e-5; default: UCUDNN_MAX_ERROR, "
         "none")
      ->type_name("ERROR");
  app.add_option_function<std::string>(
         "--replay",
         [&o](const std::string& text) {
           if (!parseReplay(text))
             o.graphMemoryBytes = 0;
           else if (o.graphMemoryBytes == 0)
             o.graphMemoryBytes = Settings().graphMemoryBytes;
         },
         "on or off: calls that repeat are launched as CUDA graphs; default: on, unless "
         "UCUDNN_GRAPH_MEMORY is 0")
      ->type_name("SWITCH");
}

CLI::Validator namesFile() {
  return {[](std::string& name) { return std::string(name.empty() ? "names no file" : ""); }, ""};
}

void addNumericsOptions(CLI::App& app, ConvolutionOptions& o) {
  app.add_option_function<std::string>(
         "--operations",
         [&o](const std::string& text) { o.operations = parseOperations(text); },
         "of forward,backward_data,backward_filter; default: all")
      ->type_name("LIST");
  app.add_option_function<std::string>(
         "--data-type",
         [&o](const std::string& text) {
           o.numerics.dataType = parseDataType(text);
           o.dataTypeName = text;
         },
         "float (default), half, bfloat16 or double")
      ->type_name("TYPE");
  app.add_option_function<std::string>(
         "--math",
         [&o](const std::string& text) {
           o.numerics.math = parseMath(text);
           o.mathName = text;
         },
         "fma, tf32 (default; cuDNN's default math) or tensor")
      ->type_name("MATH");
  app.add_option_function<std::string>(
         "--layout",
         [&o](const std::string& text) {
           o.numerics.layout = parseLayout(text);
           o.layoutName = text;
         },
         "nchw (default) or nhwc")
      ->type_name("LAYOUT");
}

void addConvolutionOptions(CLI::App& app, ConvolutionOptions& o) {
  app.add_option("LAYERS.csv", o.files, "layer lists")->required();
  addPlanningOptions(app, o);
  addNumericsOptions(app, o);
  app.add_option("--batch-size", o.batchSize, "in place of each N in the files")
      ->check(CLI::Range(1, 1 << 20).description(""));
  app.add_option(
         "--layers",
         o.patterns,
         "only layers whose name matches, as a shell matches files; several: separated by commas")
      ->type_name("PATTERN")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->take_all();
  app.add_option_function<std::string>(
         "--total-workspace",
         [&o](const std::string& text) {
           o.totalBytes = parseSizeOption("--total-workspace", text);
         },
         "one workspace of so many bytes for all layers as one network; default: each has its own "
         "limit")
      ->type_name("SIZE");
  app.add_option("--device", o.device, "CUDA device; default: 0")
      ->check(CLI::NonNegativeNumber.description(""));
  app.add_option("--json", o.jsonFile, "write the results there; -: to stdout, instead of a table")
      ->type_name("FILE")
      ->check(namesFile());
}

void addBench(CLI::App& app, Parsed& parsed, const std::string& command) {
  CLI::App* const bench =
      app.add_subcommand("bench", "plan and run each layer's convolutions, and compare with cuDNN");
  BenchOptions& o = parsed.bench;
  addLimits(*bench, o);
  addConvolutionOptions(*bench, o);
  bench
      ->add_option(
          "--repeats", o.repeats, "timings of each, of which the median counts; default: 5")
      ->check(CLI::Range(1, 10000).description(""));
  bench->add_option("--csv", o.csvFile, "write the rows there")
      ->type_name("FILE")
      ->check(namesFile());
  bench
      ->add_option_function<std::string>(
          "--arithmetic",
          [&o](const std::string& text) { o.arithmetic = parseArithmetic(text); },
          "on the simulator: what is computed to be compared: auto (default: sampled for large "
          "layers), full, sampled or off")
      ->type_name("MODE");
  bench
      ->add_option_function<std::string>(
          "--total-workspace-policy",
          [&o](const std::string& text) { o.totalPolicy = parseTotalPolicy(text); },
          "with a total: divide or share; auto, the default: both, side by side")
      ->type_name("POLICY");
  bench
      ->add_option_function<std::string>(
          "--streams",
          [&o](const std::string& text) { o.streams = parseStreams(text); },
          "with a total, what has a stream and a handle of its own: one (default: nothing), "
          "operation (the three overlap) or layer (each layer's operation, one behind the other)")
      ->type_name("WHAT");
  bench->add_flag_callback(
      "--no-check", [&o] { o.check = false; }, "do not compare results");
  bench->footer(kBenchFooter);
  bench->callback([&parsed, command] {
    if (parsed.bench.totalBytes > 0 && parsed.bench.limitsBytes.size() > 1)
      throw BadInput(fmt::format("{}: of several none goes with --total-workspace", kLimit));
    parsed.command = [&parsed, command] {
      return parsed.bench.totalBytes > 0 ? benchNetwork(parsed.bench, command)
                                         : tool::bench(parsed.bench, command);
    };
  });
}

void addPlan(CLI::App& app, Parsed& parsed, const std::string& command) {
  CLI::App* const plan = app.add_subcommand(
      "plan", "show candidates, Pareto front and choice, without running the choice");
  addLimit(*plan, parsed.plan);
  addConvolutionOptions(*plan, parsed.plan);
  plan->add_option("--lp",
                   parsed.plan.lpFile,
                   "with --total-workspace: write the division's 0-1 program in CPLEX LP format")
      ->type_name("FILE")
      ->check(namesFile());
  plan->add_flag_callback(
      "--accuracy",
      [&parsed] { parsed.plan.accuracy = true; },
      "measure kernels' errors, and show the fastest plan for each; not with --total-workspace");
  plan->add_option("--save", parsed.plan.plansFile, "write the choices there, for UCUDNN_PLANS")
      ->type_name("FILE")
      ->check(namesFile());
  plan->callback([&parsed, command] {
    parsed.command = [&parsed, command] {
      return parsed.plan.totalBytes > 0 ? planNetwork(parsed.plan, command)
                                        : tool::plan(parsed.plan, command);
    };
  });
}

void addDatabase(CLI::App& app, Parsed& parsed) {
  CLI::App* const db = app.add_subcommand("db", "look after the database of measurements");
  DatabaseOptions& o = parsed.database;
  const auto add = [&](const char* name,
                       const char* description,
                       const char* file,
                       int (*function)(const DatabaseOptions&)) {
    CLI::App* const command = db->add_subcommand(name, description);
    command->add_option("--database", o.database, "default: UCUDNN_DATABASE")->type_name("FILE");
    if (file != nullptr) command->add_option(file, o.file)->required();
    command->callback([&parsed, function] {
      parsed.command = [&parsed, function] { return function(parsed.database); };
    });
    return command;
  };
  add("list", "what is in it, by machine", nullptr, listEntries);
  add("export", "write it as JSON", "FILE.json", exportEntries);
  add("import", "add what was exported", "FILE.json", importEntries);
  CLI::App* const merge = add("merge", "add other databases' content", nullptr, mergeEntries);
  merge->add_option("OTHER.db", o.others)->required();
  merge->add_flag("--for-plans", o.forPlans, "but for kernels that no plan would have");
  CLI::App* const prune = add("prune", "remove what is no longer of use", nullptr, pruneEntries);
  prune->add_option("--older-than", o.olderThanDays, "what was last measured so many days ago")
      ->type_name("DAYS")
      ->check(CLI::Range(0, 100000).description(""));
  prune->add_flag("--other-machines",
                  o.otherMachines,
                  "what was measured on another device model or with other versions");
  prune->add_option("--device", o.device, "with --other-machines: the device to keep; default: 0")
      ->check(CLI::NonNegativeNumber.description(""));
  db->require_subcommand(1);
}

std::string oneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

/// CLI11 says only that a subcommand is required.
[[noreturn]] void refuse(const CLI::App& app,
                         const std::vector<std::string>& arguments,
                         const CLI::ParseError& error) {
  const CLI::App* innermost = &app;
  for (const std::string& argument : arguments) {
    const auto known = innermost->get_subcommands(
        [&](const CLI::App* subcommand) { return subcommand->get_name() == argument; });
    if (!known.empty()) {
      innermost = known.front();
      continue;
    }
    const auto all = innermost->get_subcommands([](const CLI::App*) { return true; });
    if (argument[0] == '-' || all.empty()) break;
    std::string names;
    for (const CLI::App* subcommand : all) names += " " + subcommand->get_name();
    throw BadInput(fmt::format("\"{}\" is no command; there are{}", excerpt(argument), names));
  }
  throw BadInput(oneLine(error.what()) +
                 (innermost->get_subcommands([](const CLI::App*) { return true; }).empty()
                      ? ""
                      : fmt::format(" ({} --help lists them)", innermost->get_display_name())));
}

void readEnvironment(Parsed& parsed, Reporting reporting) {
  const Settings settings = settingsFromEnvironment(reporting);
  for (ConvolutionOptions* o : {static_cast<ConvolutionOptions*>(&parsed.bench), &parsed.plan}) {
    o->limitBytes = settings.defaultWorkspaceLimitBytes;
    o->policy = settings.batchSizePolicy;
    o->kernels = settings.kernels;
    o->tuning = settings.tuning;
    o->maxError = settings.maxError;
    o->graphMemoryBytes = settings.graphMemoryBytes;
  }
  parsed.bench.limitsBytes = {parsed.bench.limitBytes};
  parsed.database.database = settings.databasePath;
}

}  // namespace

Command parseCommandLine(std::vector<std::string> arguments) {
  const auto parsed = std::make_shared<Parsed>();
  std::string command = "ucudnn";
  for (const std::string& argument : arguments) command += " " + argument;

  CLI::App app(kDescription, "ucudnn");
  app.footer(kExitStatus);
  app.set_version_flag("--version", std::string("ucudnn ") + ucudnnGetVersionString());
  app.require_subcommand(1);
  addBench(app, *parsed, command);
  addPlan(app, *parsed, command);
  // Shows bad settings rather than refuse them, so it reads the environment on its own.
  app.add_subcommand("info", "show versions, devices and settings")->callback([&] {
    parsed->command = tool::info;
  });
  addDatabase(app, *parsed);
  app.add_subcommand("run", kRunDescription)->callback([] {  // listed with the others
    throw BadInput("run: only `ucudnn` itself runs programs");
  });

  const std::string first = arguments.empty() ? std::string() : arguments.front();
  // Only `db` creates no handle, which would report.
  if (first != "info")
    readEnvironment(*parsed, first == "db" ? Reporting::kOnce : Reporting::kNever);
  // CLI11 takes them from the end.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) refuse(app, arguments, error);
    std::ostringstream text;
    app.exit(error, text, text);
    return [text = text.str()] {
      std::cout << text;
      return 0;
    };
  }
  // The options live as long as the command does.
  return [parsed] { return parsed->command(); };
}

}  // namespace ucudnn::tool

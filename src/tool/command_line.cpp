#include "tool/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "support/text.hpp"
#include "tool/failure.hpp"
#include "tool/help.hpp"
#include "tool/run.hpp"

namespace ucudnn::tool {
namespace {

constexpr const char* kDescription =
    "μ-cuDNN: cuDNN's convolutions, split into micro-batches that fit the workspace limit";

// Groups of options, in the order of the help text.
constexpr const char* kConvolutions = "Convolutions";
constexpr const char* kWorkspace = "Workspace";
constexpr const char* kPlanner = "Planner (defaults: the UCUDNN_* settings)";
constexpr const char* kMeasuring = "Measuring";
constexpr const char* kOutput = "Output";
constexpr const char* kDevelopment = "Development";

constexpr const char* kLimit = "--limit";
constexpr const char* kFormerLimit = "--workspace-limit";  // recorded command lines have it

template <typename Parse>
CLI::Option* addOption(CLI::App& app,
                       const char* group,
                       const char* name,
                       const char* type,
                       const std::string& help,
                       Parse parse) {
  return app.add_option_function<std::string>(name, parse, help)->type_name(type)->group(group);
}

constexpr const char* kLimitHelp =
    "the workspace that the query allows, as 64MiB; default: UCUDNN_DEFAULT_WORKSPACE_LIMIT, 64MiB";

void addLimit(CLI::App& app, ConvolutionOptions& o) {
  for (const char* name : {kLimit, kFormerLimit})
    addOption(app,
              name == kLimit ? kWorkspace : "",
              name,
              "SIZE",
              kLimitHelp,
              [&o, name](const std::string& text) { o.limitBytes = parseSizeOption(name, text); });
}

/// `several`: what the help says of several limits.
void addLimits(CLI::App& app, BenchOptions& o, const char* several) {
  for (const char* name : {kLimit, kFormerLimit})
    app.add_option_function<std::vector<std::string>>(
           name,
           [&o, name](const std::vector<std::string>& texts) {
             o.limitsBytes.clear();
             for (const std::string& text : texts)
               o.limitsBytes.push_back(parseSizeOption(name, text));
             o.limitBytes = o.limitsBytes.front();
           },
           std::string(kLimitHelp) + several)
        ->type_name("SIZE")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->group(name == kLimit ? kWorkspace : "");
}

CLI::Validator namesFile() {
  return {[](std::string& name) { return std::string(name.empty() ? "names no file" : ""); }, ""};
}

void addFile(
    CLI::App& app, const char* group, const char* name, std::string& file, const char* help) {
  app.add_option(name, file, help)->type_name("FILE")->check(namesFile())->group(group);
}

void addListOptions(CLI::App& app, ConvolutionOptions& o) {
  app.add_option("LAYERS.csv", o.files, "layer lists (see below)")->required()->type_name("");
  app.add_option("--layers", o.patterns, "only layers whose name matches, as conv*; several: a,b")
      ->type_name("PATTERN")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->take_all()
      ->group(kConvolutions);
  app.add_option("--batch-size", o.batchSize, "instead of each N of the lists")
      ->check(CLI::Range(1, 1 << 20).description(""))
      ->type_name("N")
      ->group(kConvolutions);
  addOption(app,
            kConvolutions,
            "--operations",
            "LIST",
            "forward,backward_data,backward_filter (default), or some of them",
            [&o](const std::string& text) { o.operations = parseOperations(text); });
  addOption(app,
            kConvolutions,
            "--data-type",
            "TYPE",
            "float (default), half, bfloat16 or double",
            [&o](const std::string& text) {
              o.numerics.dataType = parseDataType(text);
              o.dataTypeName = text;
            });
  addOption(app,
            kConvolutions,
            "--math",
            "MATH",
            "fma, tf32 (default; cuDNN's default math) or tensor",
            [&o](const std::string& text) {
              o.numerics.math = parseMath(text);
              o.mathName = text;
            });
  addOption(app,
            kConvolutions,
            "--layout",
            "LAYOUT",
            "nchw (default) or nhwc",
            [&o](const std::string& text) {
              o.numerics.layout = parseLayout(text);
              o.layoutName = text;
            });
}

void addTotal(CLI::App& app, ConvolutionOptions& o) {
  addOption(
      app,
      kWorkspace,
      "--total-workspace",
      "SIZE",
      "one workspace for all layers, which are one network; default: each has its own",
      [&o](const std::string& text) { o.totalBytes = parseSizeOption("--total-workspace", text); });
}

void addPlannerOptions(CLI::App& app, ConvolutionOptions& o) {
  addOption(app,
            kPlanner,
            "--policy",
            "POLICY",
            "micro-batch sizes to try: undivided, powerOfTwo (default) or all",
            [&o](const std::string& text) { o.policy = parsePolicy(text); });
  addOption(app,
            kPlanner,
            "--kernels",
            "KERNELS",
            "legacy (algorithms), engines (of the graph API) or all (default)",
            [&o](const std::string& text) { o.kernels = parseKernels(text); });
  addOption(app,
            kPlanner,
            "--tuning",
            "TUNING",
            "how many kernels to measure: exhaustive or fast (default)",
            [&o](const std::string& text) { o.tuning = parseTuning(text); });
  addOption(
      app,
      kPlanner,
      "--max-error",
      "ERROR",
      "the largest normalized L2 error of a plan's kernels, as 1e-5; 0 (default): as accurate as "
      "cuDNN's choice",
      [&o](const std::string& text) { o.maxError = parseMaxError(text); });
  addOption(app,
            kPlanner,
            "--replay",
            "SWITCH",
            "on or off: launch calls that repeat as CUDA graphs; default: on, unless "
            "UCUDNN_GRAPH_MEMORY is 0",
            [&o](const std::string& text) {
              if (!parseReplay(text))
                o.graphMemoryBytes = 0;
              else if (o.graphMemoryBytes == 0)
                o.graphMemoryBytes = Settings().graphMemoryBytes;
            });
  CLI::Option* const database =
      addOption(app,
                kPlanner,
                "--database",
                "FILE",
                "where to keep measurements: an SQLite file, or a folder, with a slash at its end",
                [&o](const std::string& text) {
                  expectFolderOf("--database", text);
                  o.database = text;
                })
          ->check(namesFile());
  app.add_flag_callback(
         "--no-database", [&o] { o.database = ""; }, "keep no measurements")
      ->group(kPlanner)
      ->excludes(database);
}

void addOutputOptions(CLI::App& app, ConvolutionOptions& o) {
  app.add_option("--device", o.device, "CUDA device; default: 0")
      ->check(CLI::NonNegativeNumber.description(""))
      ->type_name("N")
      ->group(kMeasuring);
  app.add_flag("-v,--verbose", o.verbose, "print more about each plan (see below)")->group(kOutput);
  addFile(app, kOutput, "--json", o.jsonFile, "write the results there; -: to stdout, no table");
}

void addBench(CLI::App& app, CommandLine& line) {
  CLI::App* const bench =
      app.add_subcommand("bench", "plan and run each layer's convolutions, and compare with cuDNN");
  BenchOptions& o = line.bench;
  addListOptions(*bench, o);
  addLimits(*bench, o, "; several, separated by commas, are compared");
  addTotal(*bench, o);
  addOption(*bench,
            kWorkspace,
            "--total-workspace-policy",
            "POLICY",
            "with a total: divide, share, or auto (default), which compares both",
            [&o](const std::string& text) { o.totalPolicy = parseTotalPolicy(text); });
  addOption(*bench,
            kWorkspace,
            "--streams",
            "WHAT",
            "with a total, how many streams the network uses: one in all (default); operation: one "
            "for each operation; layer: one for each layer and operation",
            [&o](const std::string& text) { o.streams = parseStreams(text); });
  addPlannerOptions(*bench, o);
  bench->add_option("--repeats", o.repeats, "how often to time each kernel; default: 5")
      ->check(CLI::Range(1, 10000).description(""))
      ->type_name("N")
      ->group(kMeasuring);
  addOutputOptions(*bench, o);
  bench
      ->add_flag_callback(
          "--no-check", [&o] { o.check = false; }, "do not compare results with cuDNN's")
      ->group(kDevelopment);
  addOption(*bench,
            kDevelopment,
            "--arithmetic",
            "MODE",
            "on the simulator, which results to compute: full, sampled, off, or auto (default): "
            "sampled for large layers",
            [&o](const std::string& text) { o.arithmetic = parseArithmetic(text); });
  addDataParallelOptions(*bench, line.shares);
  bench->footer(benchFooter());
  bench->callback([&line] {
    line.task = Task::kBench;
    if (line.shares.dataParallel) return;
    if (line.bench.totalBytes > 0 && line.bench.limitsBytes.size() > 1)
      throw BadInput(fmt::format("{}: name one limit where there is a --total-workspace", kLimit));
  });
}

void addCheck(CLI::App& app, CommandLine& line) {
  CLI::App* const check = app.add_subcommand(
      "check", "compare what each kernel of the layers computes with sums in double");
  CheckOptions& o = line.check;
  addListOptions(*check, o);
  check
      ->add_option(
          "--time-limit", o.limitSeconds, "seconds for all, slow kernels last; default: none")
      ->check(CLI::Range(0.0, 1e6).description(""))
      ->type_name("SECONDS")
      ->group(kMeasuring);
  check->add_option("--device", o.device, "CUDA device; default: 0")
      ->check(CLI::NonNegativeNumber.description(""))
      ->type_name("N")
      ->group(kMeasuring);
  addFile(*check, kOutput, "--json", o.jsonFile, "write what was found as JSON; -: to stdout");
  check->footer(checkFooter());
  check->callback([&line] { line.task = Task::kCheck; });
}

void addPlan(CLI::App& app, CommandLine& line) {
  CLI::App* const plan = app.add_subcommand(
      "plan", "show each layer's plan and its Pareto front, without running the plan");
  ConvolutionOptions& o = line.plan;
  addListOptions(*plan, o);
  addLimit(*plan, o);
  addTotal(*plan, o);
  addPlannerOptions(*plan, o);
  addOutputOptions(*plan, o);
  plan->add_flag_callback(
          "--accuracy",
          [&o] { o.accuracy = true; },
          "measure kernels' errors, and show the fastest plan for each; not with --total-workspace")
      ->group(kOutput);
  addOption(
      *plan,
      kOutput,
      "--device-memory",
      "SIZE",
      "also print the least time of a training step whose tensors have so much of the device, and "
      "host memory for the rest; not with --total-workspace",
      [&o](const std::string& text) { o.deviceBytes = parseSizeOption("--device-memory", text); });
  addFile(*plan, kOutput, "--save", o.plansFile, "write the plans there, for UCUDNN_PLANS");
  addFile(*plan,
          kDevelopment,
          "--lp",
          o.lpFile,
          "with --total-workspace: write the division's 0-1 program in CPLEX LP format");
  plan->footer(planFooter());
  plan->callback([&line] { line.task = Task::kPlan; });
}

void addShares(CLI::App& app, CommandLine& line) {
  CLI::App* const shares =
      app.add_subcommand("shares", "find how many samples each of several devices should take");
  BenchOptions& o = line.shared;
  addListOptions(*shares, o);
  addLimits(*shares, o, "; several, separated by commas: one for each device");
  addPlannerOptions(*shares, o);
  addShareOptions(*shares, line.shares);
  addFile(
      *shares, kOutput, "--json", o.jsonFile, "write the results there; -: to stdout, no table");
  shares->footer(sharesFooter());
  shares->callback([&line] { line.task = Task::kShares; });
}

void addDatabase(CLI::App& app, CommandLine& line) {
  CLI::App* const db = app.add_subcommand("db", "look after the database of measurements");
  DatabaseOptions& o = line.database;
  const auto add = [&](const char* name, const char* help, const char* file, DatabaseTask task) {
    CLI::App* const command = db->add_subcommand(name, help);
    command
        ->add_option("--database",
                     o.database,
                     "an SQLite file, or a folder of them; default: UCUDNN_DATABASE, else the "
                     "folder of `ucudnn run`")
        ->type_name("FILE");
    if (file != nullptr) command->add_option(file, o.file)->required()->type_name("");
    command->callback([&line, task] {
      line.task = Task::kDatabase;
      line.database.task = task;
    });
    return command;
  };
  add("list", "print what is in it, by machine", nullptr, DatabaseTask::kList)
      ->add_flag("-v,--verbose", o.verbose, "print each problem's whole text, too");
  add("export", "write it as JSON; -: to stdout", "FILE.json", DatabaseTask::kExport);
  add("import", "add what was exported", "FILE.json", DatabaseTask::kImport);
  CLI::App* const merge =
      add("merge", "add the content of other databases", nullptr, DatabaseTask::kMerge);
  merge->add_option("OTHER.db", o.others, "files or folders")->required()->type_name("");
  merge->add_flag("--for-plans", o.forPlans, "leave out kernels that no plan would have");
  CLI::App* const prune = add("prune",
                              "remove old measurements, or those of other machines",
                              nullptr,
                              DatabaseTask::kPrune);
  prune
      ->add_option("--older-than", o.olderThanDays, "remove what was not measured in the last DAYS")
      ->type_name("DAYS")
      ->check(CLI::Range(0, 100000).description(""));
  prune->add_flag("--other-machines",
                  o.otherMachines,
                  "remove what was measured on another device model or with other versions");
  prune->add_option("--device", o.device, "with --other-machines: the device to keep; default: 0")
      ->check(CLI::NonNegativeNumber.description(""))
      ->type_name("N");
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
  throw BadInput(fmt::format("{} ({} --help says more)",
                             excerpt(oneLine(error.what()), 300),
                             innermost->get_display_name()));
}

void setDefaults(CommandLine& line, const Settings& settings) {
  const std::initializer_list<ConvolutionOptions*> all = {&line.bench, &line.plan, &line.shared};
  for (ConvolutionOptions* o : all) {
    o->limitBytes = settings.defaultWorkspaceLimitBytes;
    o->policy = settings.batchSizePolicy;
    o->kernels = settings.kernels;
    o->tuning = settings.tuning;
    o->maxError = settings.maxError;
    o->graphMemoryBytes = settings.graphMemoryBytes;
  }
  line.bench.limitsBytes = {line.bench.limitBytes};
  line.shared.limitsBytes = line.bench.limitsBytes;
  // An empty variable means no database.
  line.database.database =
      std::getenv("UCUDNN_DATABASE") == nullptr ? cacheFolder() : settings.databasePath;
  line.shares.database = line.database.database;
}

}  // namespace

CommandLine parseCommandLine(const std::vector<std::string>& arguments,
                             const std::function<Settings()>& environment) {
  CommandLine line;
  line.words = "ucudnn";
  for (const std::string& argument : arguments) line.words += " " + argument;

  CLI::App app(kDescription, "ucudnn");
  app.formatter(helpFormatter());
  app.footer(kExitStatus);
  app.set_version_flag("--version", "ucudnn " UCUDNN_VERSION_STRING, "print the version");
  app.set_help_flag("-h,--help", "print this help");
  app.require_subcommand(1);
  addBench(app, line);
  addPlan(app, line);
  addShares(app, line);
  addCheck(app, line);
  CLI::App* const info = app.add_subcommand("info", "show versions, devices and settings");
  info->add_flag("-v,--verbose", line.verboseInfo, "say what each setting means");
  info->callback([&] { line.task = Task::kInfo; });
  addDatabase(app, line);
  app.add_subcommand("run", kRunDescription)->callback([] {  // listed with the others
    throw BadInput("run: only `ucudnn` itself runs programs");
  });

  if (arguments.empty() || arguments.front() != "info") setDefaults(line, environment());
  // CLI11 takes them from the end.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) refuse(app, arguments, error);
    std::ostringstream text;
    app.exit(error, text, text);
    line.task = Task::kPrint;
    line.text = text.str();
  }
  return line;
}

}  // namespace ucudnn::tool

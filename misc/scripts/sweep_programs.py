#!/usr/bin/env python3
"""Runs misc/scripts/programs_pytorch.py for each line of a list, plain and under `ucudnn run` in turns, and compares them.

usage: misc/scripts/sweep_programs.py LIST.txt OUT.json [--ucudnn COMMAND] [--seconds S] [--longest S] [--only TEXT...]
       misc/scripts/sweep_programs.py --table OUT.json [--only TEXT...]

A line is "PROGRAM_MODE | VARIABLE=VALUE... | ARGUMENTS", as in misc/scripts/programs_runs.txt. The variables are those that
`ucudnn run` sets for its options. With UCUDNN_DISABLE=1 a run is plain: a process without μ-cuDNN; `PROGRAM_plain` is
what the program's others are compared with, and `PROGRAM_again` shows the noise. Runs of another turn are called
`PROGRAM2_MODE`, and are compared with `PROGRAM2_plain`.

  --ucudnn COMMAND  the command `ucudnn`; default: the one in the PATH, else build/bin/ucudnn
  --seconds S       after so many nothing more is begun
  --longest S       a run that takes longer fails (default: 45)
  --only TEXT       only lines whose names contain a TEXT
  --cpus N          runs on the first N of the CPUs allowed (default: 4): elsewhere on a large host, the same program may
                    take half as long again
  --tiny            small images, for a machine without a GPU

Two processes import PyTorch once, one of them under `ucudnn run`, and fork for each run, before CUDA is touched. Where
CUDA does not survive that, each run imports it anew. A run that fails does not stop the others. The first table compares
times (median and lower decile, with those of both plain runs together), memory and values, the worst first. The second
has a line for each program: its plain step, first step and reserved memory, and what each other kind of run (the rest of
the name: ucudnn, 256MiB, ...) takes of these, with the geometric means of all programs. OUT.json has it as "programs".
"""

import argparse
import datetime
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
PLAIN = "UCUDNN_DISABLE=1"


def wait_for(process, seconds):
    """Its exit status; it is killed when the time is over, and what then counts as its status is -9."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return -signal.SIGKILL


def become_run(request):
    """In a fork: never returns."""
    os.environ.update(request["variables"])
    os.sched_setaffinity(0, request["cpus"])
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    words = [os.path.join(HERE, "programs_pytorch.py"), *request["arguments"]]
    if not request["may_fork"]:
        os.execv(sys.executable, [sys.executable, *words])
    import programs_pytorch

    sys.argv = words
    status = 0
    try:
        programs_pytorch.main()
    except SystemExit as error:
        status = 1 if error.code else 0
        if isinstance(error.code, str):
            print(error.code)
    except BaseException:  # out of memory, for one: a result like others
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.exit(status)  # with what belongs to an exit: the report is written then


def fork_and_wait(call, seconds):
    child = os.fork()
    if child == 0:
        call()
        os._exit(0)
    return wait_for(child, seconds)


def serve():
    """Answers each request, a line of JSON, with the run's exit status."""
    sys.path.insert(0, HERE)
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # asking for GPUs does not touch CUDA; no fork would survive it
    import torch
    import torchvision  # noqa: F401: imported here once, for all runs

    for module in ("diffusers", "monai.networks.nets"):
        try:
            __import__(module)
        except ImportError as error:  # the programs that need it will say so
            print(error, file=sys.stderr)

    def touch():
        if torch.cuda.is_available():
            torch.zeros(1, device="cuda")

    may_fork = fork_and_wait(touch, 60) == 0
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        request["may_fork"] = may_fork
        print(fork_and_wait(lambda: become_run(request), request["seconds"]), flush=True)


class Server:
    """A process that makes runs, behind `ucudnn run` or not."""

    def __init__(self, prefix):
        words = [*prefix, sys.executable, os.path.abspath(__file__), "--serve"]
        self.process_ = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def wait_until_ready(self):
        while True:
            line = self.process_.stdout.readline()
            if not line:
                sys.exit("sweep_programs.py: a process that makes runs did not start")
            if line.strip() == "ready":
                return

    def run(self, request):
        self.process_.stdin.write(json.dumps(request) + "\n")
        self.process_.stdin.flush()
        return self.process_.stdout.readline().strip()

    def stop(self):
        self.process_.stdin.close()
        self.process_.wait()


def lines_of(file, only):
    for line in open(file, encoding="utf-8"):
        if "|" in line and not line.startswith("#"):
            name, variables, arguments = (part.strip() for part in line.split("|"))
            if not only or any(text in name for text in only):
                yield name, variables.split(), arguments.split()


def one_run(server, name, variables, arguments, options, seconds):
    """The run's results, or what became of it."""
    log, results = f"{options.out}.{name}.txt", f"{options.out}.line"
    if os.path.exists(results):
        os.remove(results)
    if options.tiny:
        arguments = [arguments[0], "2", "--tiny"]
    request = {
        "variables": dict(each.split("=", 1) for each in variables if each != PLAIN),
        "arguments": [*arguments, "--json", results, "--name", name],
        "log": os.path.abspath(log),
        "seconds": seconds,
        "cpus": sorted(os.sched_getaffinity(0))[: options.cpus],
    }
    status = server.run(request)
    result = {"name": name, "program": arguments[0]}
    if os.path.exists(results):
        result = json.loads(open(results, encoding="utf-8").read())
        os.remove(results)
    said = open(log, encoding="utf-8", errors="replace").read().splitlines() if os.path.exists(log) else []
    result["line"] = [variables, arguments]
    result["report"] = [text for text in said if text.startswith("ucudnn: ")]
    if status != "0" or "step_of_median_ms" not in result:
        result["failed"] = f"exit status {status}: {(said or [''])[-1][:300]}"
    return result


def command_of_ucudnn(options):
    built = os.path.join(HERE, "..", "build", "bin", "ucudnn")
    return options.ucudnn or shutil.which("ucudnn") or os.path.normpath(built)


def sweep(options):
    begin = time.monotonic()
    servers = {True: Server([]), False: Server([command_of_ucudnn(options), "run", "--no-database"])}
    for server in servers.values():
        server.wait_until_ready()
    runs = []
    for name, variables, arguments in lines_of(options.list, options.only):
        left = options.seconds - (time.monotonic() - begin)
        if left < 10:
            print("no time for", name, flush=True)
            continue
        server, seconds = servers[PLAIN in variables], min(left, options.longest)
        runs.append(one_run(server, name, variables, arguments, options, seconds))
        save(options.out, runs)  # after each run: a sweep that is stopped has what it has
        print(f"{time.monotonic() - begin:5.0f} {name}: {words_of(runs[-1])}", flush=True)
    for server in servers.values():
        server.stop()
    print_tables(runs)


def words_of(run):
    if "failed" in run:
        return "failed: " + run["failed"]
    return (
        f"{run['step_of_median_ms']:.2f} ms, a tenth below {run['decile_step_ms']:.2f} ms, "
        f"the host {run['host_ms']:.2f} ms, "
        f"first step {run['first_step_ms']:.0f} ms, {len(run['step_ms'])} steps, "
        f"reserved {run['reserved_mib']:.0f} MiB, device {run['device_used_mib']:.0f} MiB"
    )


def save(file, runs):
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    machine = next((each["machine"] for each in runs if "machine" in each), {})
    with open(file, "w", encoding="utf-8") as out:
        json.dump({"machine": {"date": now, **machine}, "programs": programs_of(runs), "runs": runs}, out, indent=1)


def distance(run, plain):
    """The largest relative distance of values of the same step, sums by the sum of absolute values."""
    others = {step: values for step, *values in plain["values"]}
    distances = [0.0]
    for step, *values in run["values"]:
        scale = abs(values[-1]) or 1.0
        distances += [abs(a - b) / scale if a == a else float("inf") for a, b in zip(values, others.get(step, values))]
    if plain["parameters"]:
        distances.append(abs(run["parameters"] - plain["parameters"]) / plain["parameters"])
    return max(distances)


def statistics(runs):
    """The median and the lower decile of the timed steps of all these runs."""
    steps = sorted(each for run in runs for each in run["step_ms"][-run["timed_steps"] :])
    return steps[len(steps) // 2], steps[len(steps) // 10]


def ratio(value, base):
    return value / base if base else float("nan")


# The values that a program's line compares, by the results' names.
COMPARED = {"time": "step_of_median_ms", "first_step": "first_step_ms", "reserved": "reserved_mib"}


def turn_and_kind(run):
    """The name in its parts: hifigan2 and 64MiB of hifigan2_64MiB. Runs of one turn are compared."""
    turn, _, kind = run["name"][len(run["program"]) :].partition("_")
    return run["program"] + turn, kind


def programs_of(runs):
    """For each program that ran plain, in each turn: what that took, and for each other kind of run what it takes of it,
    or None where it failed."""
    programs = []
    for plain in runs:
        turn, kind = turn_and_kind(plain)
        if kind != "plain" or "failed" in plain:
            continue
        program = {"program": turn, "plain": {field: plain[field] for field in COMPARED.values()}, "runs": {}}
        for run in runs:
            of, kind = turn_and_kind(run)
            if of != turn or run is plain:
                continue
            program["runs"][kind] = None
            if "failed" not in run:
                ratios = {name: run[field] / plain[field] if plain[field] else None for name, field in COMPARED.items()}
                program["runs"][kind] = {**ratios, **{field: run[field] for field in COMPARED.values()}}
        programs.append(program)
    return programs


def geometric_mean(values):
    """The mean of the values above 0: on a CPU there is no memory to compare."""
    logarithms = [math.log(each) for each in values if each]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else None


def print_programs(programs):
    kinds = list(dict.fromkeys(kind for program in programs for kind in program["runs"]))
    print("\n| program | ms a step | first step, ms | reserved, MiB | " + " | ".join(kinds) + " |")
    print("|---|---|---|---|" + "---|" * len(kinds))
    for program in programs:
        plain = program["plain"]
        cells = [f"{plain['step_of_median_ms']:.2f}", f"{plain['first_step_ms']:.0f}", f"{plain['reserved_mib']:.0f}"]
        for kind in kinds:
            run = program["runs"].get(kind, {})
            cells.append("failed" if run is None else words_of_ratios(run))
        print(f"| {program['program']} | " + " | ".join(cells) + " |")
    means = []
    for kind in kinds:
        done = [program["runs"][kind] for program in programs if program["runs"].get(kind)]
        means.append(words_of_ratios({name: geometric_mean([run[name] for run in done]) for name in COMPARED}))
    print("| geometric mean | | | | " + " | ".join(means) + " |")
    print("\nOf the plain run's: time a step, first step, reserved memory.")


def words_of_ratios(run):
    return ", ".join(f"{run[name]:.3f}" if run[name] else "-" for name in COMPARED if name in run) or "-"


def print_tables(runs, only=()):
    if only:
        runs = [each for each in runs if any(text in each["name"] for text in only)]
    print_table(runs)
    print_programs(programs_of(runs))


def print_table(runs):
    done = [each for each in runs if "failed" not in each]
    for each in runs:
        if "failed" in each:
            print(f"{each['name']} failed: {each['failed']}")
    rows = []
    for run in done:
        turn = turn_and_kind(run)[0]
        plain = [each for each in done if turn_and_kind(each) in ((turn, "plain"), (turn, "again"))]
        if not plain or run is plain[0]:
            continue
        median, decile = statistics([each for each in plain if each is not run])
        ratios = [ratio(run["step_of_median_ms"], median), ratio(run["decile_step_ms"], decile)]
        ratios += [ratio(run[field], plain[0][field]) for field in ("reserved_mib", "first_step_ms", "device_used_mib")]
        rows.append((run, median, ratios, distance(run, plain[0])))
    print("\n| run | ms a step | plain | time | its decile | reserved | first step | device | values differ |")
    print("|---|---|---|---|---|---|---|---|---|")
    for run, median, ratios, differ in sorted(rows, key=lambda row: -max(row[2][1:3])):
        numbers = " | ".join(f"{each:.3f}" for each in ratios)
        print(f"| {run['name']} | {run['step_of_median_ms']:.2f} | {median:.2f} | {numbers} | {differ:.1e} |")


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("list", nargs="?")
    parser.add_argument("out", nargs="?")
    parser.add_argument("--ucudnn")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--longest", type=float, default=45)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--cpus", type=int, default=4)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--table", metavar="OUT.json")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.serve and not options.table and not options.out:
        parser.error("LIST.txt and OUT.json, or --table OUT.json")
    return options


def main():
    options = parse()
    if options.serve:
        serve()
    elif options.table:
        with open(options.table, encoding="utf-8") as file:
            print_tables(json.load(file)["runs"], options.only)
    else:
        sweep(options)


if __name__ == "__main__":
    main()

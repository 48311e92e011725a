"""Which scenarios there are, and which runs ("cells") each of them has."""

import os
from typing import NamedTuple

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Scenario(NamedTuple):
    key: str                    # "S01"
    script: str                 # file below `folder`, or a LibTorch program
    fixes: tuple = ("A",)
    twin: bool = True
    libtorch: bool = False      # recorded by LD_PRELOAD alone
    ranks: int = 1
    quick: bool = True          # part of --quick
    advice: dict = {}           # fix letter -> ids of the advice that it carries out
    folder: str = "scenarios"
    arguments: tuple = ()       # before all options
    calibrates: bool = True     # injects delays that it must measure first
    needs: tuple = ()           # Python modules without which it is not run


WORKERS = ("num-workers",)
CUDA_GRAPH = ("cuda-graph",)

SCENARIOS = [
    Scenario("S01", "s01_loader_inline.py", advice={"A": WORKERS}),
    Scenario("S02", "s02_loader_starved.py", ("A", "B"), advice={"A": WORKERS}),
    Scenario("S03", "s03_loader_io_wait.py", ("A", "B"), advice={"A": WORKERS, "B": ("cache",)}),
    Scenario("S05", "s05_epoch_respawn.py", advice={"A": ("persistent-workers",)}),
    Scenario("S06", "s06_copy_pageable.py", ("A", "B", "C"),
             advice={"A": ("pin-non-blocking", "prefetch-stream"), "B": ("uint8",)}),
    Scenario("S07", "s07_copy_serial.py", ("A", "B"), advice={"A": ("prefetch-stream",)}),
    Scenario("S09", "s09_launch_tiny_batch.py", ("A", "B", "C"),
             advice={"A": ("larger-batch",), "B": CUDA_GRAPH}),
    Scenario("S10", "s10_optimizer_for_loop.py", ("A", "B"), advice={"A": ("fused-optimizer",)}),
    Scenario("T1", "t1_busy_but_empty.py", advice={"A": ("larger-batch",)}),
    Scenario("T2", "t2_slow_but_hidden.py", ("A", "B")),
    Scenario("T4", "t4_slow_start_only.py"),
    Scenario("R1", "r1_gil_thread.py", advice={"A": ("blocked-thread",)}),
    Scenario("R2", "r2_periodic_checkpoint.py", advice={"A": ("async-checkpoint",)}),
    Scenario("R3", "r3_changing_shapes.py", advice={"A": ("fixed-shapes",)}),
    Scenario("R4", "r4_collate_in_memory.py", advice={"A": ("batch-index",)}),
    Scenario("R5", "r5_tokenizer_collate.py", advice={"A": ("collate",)}),
    Scenario("A1", "a1_empty_cache.py", advice={"A": ("alloc",)}),
    Scenario("A2", "a2_pinned_alloc.py", advice={"A": ("alloc-pinned", "alloc")}),
    Scenario("A3", "a3_pinning_thread.py", advice={"A": ("alloc-pinned", "alloc")}),
    Scenario("C1", "c1_recompile_by_shape.py", advice={"A": ("fixed-shapes",)}),
    Scenario("C2", "c2_recapture_by_shape.py", advice={"A": ("fixed-shapes",)}),
    Scenario("D1", "d1_objects_through_queue.py", advice={"A": ("ipc",)}),
    Scenario("D2", "d2_pin_thread.py", advice={"A": ("pin-thread",)}),
    Scenario("D3", "d3_cold_storage.py"),
    Scenario("D4", "d4_two_cores.py"),
    Scenario("D5", "d5_slow_sample.py"),
    Scenario("D6", "d6_collate_inline.py", advice={"A": WORKERS}),
    Scenario("D7", "d7_own_loader.py", advice={"A": ("own-loader",)}),
    Scenario("E1", "e1_evaluation.py", advice={"A": ("evaluation",)}),
    Scenario("H1", "h1_python_in_loop.py", advice={"A": ("host-code",)}),
    Scenario("H2", "h2_gc_each_step.py"),
    Scenario("H3", "h3_python_in_backward.py", advice={"A": ("host-code",)}),
    Scenario("H4", "h4_python_in_optimizer.py", advice={"A": ("host-code",)}),
    Scenario("H5", "h5_waits_for_reply.py", advice={"A": ("blocked-call",)}),
    Scenario("X1", "x1_many_small_copies.py", advice={"A": ("small-copies",)}),
    Scenario("X2", "x2_copy_back.py", advice={"A": ("copy-back",)}),
    Scenario("Y1", "y1_item_per_layer.py", advice={"A": ("item", "remove-sync")}),
    Scenario("Y2", "y2_synchronize_then_work.py", advice={"A": ("synchronize", "remove-sync")}),
    Scenario("Y3", "y3_event_wait.py", advice={"A": ("remove-sync",)}),
    Scenario("Y4", "y4_boolean_mask.py", advice={"A": ("implicit-sync", "item")}),
    Scenario("S06L", "s06_copy_pageable", ("A", "B"), libtorch=True,
             advice={"A": ("pin-non-blocking", "prefetch-stream"), "B": ("uint8",)}),
    Scenario("S09L", "s09_launch_tiny_batch", ("A", "C"), libtorch=True,
             advice={"A": ("larger-batch",)}),
    Scenario("S12", "s12_rank_straggler.py", ("A", "B"), ranks=2, quick=False),
]


class Cell(NamedTuple):
    scenario: Scenario
    fix: str        # "none", "A", … or "twin", "twinA"
    mode: str       # "plain", "recorded", "kineto", or "calibrate": ends before it trains
    repetition: int

    def name(self):
        return "%s-%s-%s-%d" % (self.scenario.key, self.fix, self.mode, self.repetition)

    def job_options(self):
        if not self.scenario.calibrates:
            return []
        if self.fix == "twin":
            return ["--twin"]
        if self.fix.startswith("twin"):
            return ["--twin", "--fix", self.fix[4:]]
        return ["--fix", self.fix]


def wanted_scenarios(only, quick, known=None):
    known = known or SCENARIOS
    chosen = [s for s in known if s.quick or not quick]
    if only:
        keys = only.split(",")
        unknown = [k for k in keys if k not in {s.key for s in known}]
        if unknown:
            raise SystemExit("unknown scenario: " + ", ".join(unknown) + " (see --list)")
        chosen = [s for k in keys for s in known if s.key == k]
    return chosen


def plan_cells(scenarios, cells, repetitions):
    """Every run, in the order given per scenario, backwards in every second repetition: with
    plain and recorded that is A B B A. A plain run comes first: it calibrates."""
    result = []
    for repetition in range(repetitions):
        for scenario in scenarios:
            mine = []
            for cell in cells:
                mode, fix = cell.split(":")
                if fix == "all":
                    fixes = ("none",) + scenario.fixes
                elif fix == "twins":
                    fixes = ("twin",) + tuple("twin" + f for f in scenario.fixes)
                elif fix == "fixes":
                    fixes = scenario.fixes
                else:
                    fixes = (fix,)
                for one in fixes:
                    if one.startswith("twin") and not scenario.twin:
                        continue
                    if one.startswith("twin") and one[4:] and one[4:] not in scenario.fixes:
                        continue
                    if one not in ("none",) + scenario.fixes and not one.startswith("twin"):
                        continue
                    if mode == "kineto" and scenario.libtorch:
                        continue
                    mine.append(Cell(scenario, one, mode, repetition))
            result.extend(reversed(mine) if repetition % 2 else mine)
    return result


def with_calibration(cells, known):
    """A recording must not contain calibration: before one whose job has not run plainly, here
    or in an earlier call (`known`: names of those), comes a run that only calibrates."""
    calibrated = {tuple(name.split("-")[:2]) for name in known
                  if "-plain-" in name or "-calibrate-" in name}
    result = []
    for cell in cells:
        key = (cell.scenario.key, cell.fix)
        if cell.mode != "plain" and cell.scenario.calibrates and key not in calibrated:
            result.append(cell._replace(mode="calibrate", repetition=0))
        calibrated.add(key)
        result.append(cell)
    return result


def by_key(known=None):
    return {scenario.key: scenario for scenario in known or SCENARIOS}

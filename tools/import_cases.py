#!/usr/bin/env python3
"""Runs `idlescope report --format json` over recordings that people made with other tools and
compares the verdicts with what an honest reader of each file says.

Usage: import_cases.py IDLESCOPE [CASES_DIRECTORY] [--update DOCUMENT]

CASES_DIRECTORY holds the files named below; without it $IDLESCOPE_SHARED/cases/traces, then
../shared/cases/traces beside the checkout, is used. The files are not part of the project
(some carry no licence): where they are missing the script says "skipped" and returns 77.
Returns 1 if a file gives another verdict than the table allows. --update writes the table between
the marks of DOCUMENT (docs/interop.md).
"""

import gzip
import json
import os
import pathlib
import resource
import subprocess
import sys

# File (stem) -> what may be said. A set of verdicts, or the id of the refusal. The reasons
# are facts about each file: see docs/interop.md.
REFUSED = {
    "c01_driver_calls_no_cat": "foreign-file",
    "d01_dlio_rank0": "foreign-file",
    "d02_dlio_rank5": "foreign-file",
    "d04_dlio_open_array": "foreign-file",
    "d05_posix_hdf5": "foreign-file",
    "k31_mtia_inference": "foreign-file",
    "n07_no_cuda_tables_2024": "nsys-no-cuda",
    "n12_python_no_cuda_4090_2023": "nsys-no-cuda",
    "n13_head_only": "foreign-file",
    "t01_tf_gpu_step": "foreign-file",
    "t03_horovod_timeline": "foreign-file",
    "t04_model_timeline_getnext": "foreign-file",
    "t05_tf_gpu_multiworker": "foreign-file",
}

# The CPU does not feed the GPU: which of the two words depends on what fills the gaps.
CPU_BOUND = {"LAUNCH", "HOST"}

VERDICTS = {
    "k01_resnet50_w0_2020_array": {"DATA"},
    # The loader is hidden: anything but DATA and a fault of start-up.
    "k04_resnet50_w4_2021": CPU_BOUND | {"COMPUTE"},
    # After the 1.6 s first launch is cut off: num_workers=0, as in k01.
    "k05_resnet50_autograd_w0": {"DATA"},
    "k06_tiny_step_2021": CPU_BOUND,
    "k07_sync_order_unit": {"CANNOT_TELL"},
    "k09_resnet_dl_2080ti": {"DATA"},
    "k10_linear_2080ti": CPU_BOUND,
    "k11_imagenet_b128_g1": {"DATA"},
    "k13_imagenet_b1024_g2": {"DATA"},
    # Slow start once; afterwards DataParallel's host work, the loader is hidden.
    "k14_imagenet_b128_g4_nopy": CPU_BOUND | {"STARTUP"},
    "k16_worker_annot_only": {"CANNOT_TELL"},
    "k17_dlrm_a100_r3": {"COMM"},
    "k19_ns_float_v100": {"COMPUTE"},
    "k21_multistream_a100": {"CANNOT_TELL"},
    "k23_sampled_r0": {"CANNOT_TELL"},
    "k24_sampled_r1": {"CANNOT_TELL"},
    "k25_rocm_minitoy_mi250": CPU_BOUND | {"CANNOT_TELL"},
    "k26_cuda_event_sync": {"CANNOT_TELL"},
    "k28_alexnet_bench": {"STARTUP"},
    "k29_cupti_range_no_kernels": {"CANNOT_TELL"},
    "k30_cpu_gloo_300ranks": {"CANNOT_TELL"},
    "k33_sgd_gp100": CPU_BOUND | {"TRANSFER", "SYNC"},
    "k34_triton_driver": {"CANNOT_TELL"},
    "k35_bigint_id": {"CANNOT_TELL"},
    "k38_eager_b200": CPU_BOUND,
    "k39_bert_small_h100": CPU_BOUND,
    "k41_llm05b_h100": {"COMPUTE"},
    "k42_llm05b_mi300": {"COMPUTE"},
    "k45_resnet_ckpt_mi300": {"COMM"},
    "k46_gpu_only_mi210": {"COMPUTE"},
    "k48_graph_exec_noname": {"COMPUTE"},
    "k52_fwd_bs2_a100": CPU_BOUND,
    "k53_fwd_bs32_a100": CPU_BOUND,
    "k54_fwd_bs512_a100": {"STARTUP"},
    "k56_runtime_only_a100": {"CANNOT_TELL"},
    # 20 routing syncs among first launches of each kernel.
    "k57_moe_bs4_sync_a100": {"SYNC", "COMPILE", "STARTUP"},
    "k58_moe_bs8_sync_a100": {"COMPUTE"},
    "k59_tiny_block_h100": CPU_BOUND,
    "k61_legacy_autograd_array": {"CANNOT_TELL"},
    "k63_gemm_a100_sxm": {"COMPUTE"},
    "k64_windows_cpu_mem": {"CANNOT_TELL"},
    "k66_mps_empty_gpu": {"CANNOT_TELL"},
    "n02_ring_attn_before_h100x2": {"COMPUTE"},
    "n04_tiny_rtx3080_wsl_2026": {"CANNOT_TELL"},
    "n06_trt_conv_3090x4_2023": {"COMPUTE"},
    "n09_cuda_graph_rtx3060_2025": {"CANNOT_TELL"},
    "n10_old_no_meta_rtx6000": {"HOST", "TRANSFER", "STARTUP"},
    "n11_pageable_copies_a40a100_2023": {"TRANSFER"},
}


def find_cases(argument):
    here = pathlib.Path(__file__).resolve().parent.parent
    candidates = []
    if argument:
        candidates.append(pathlib.Path(argument))
    elif os.environ.get("IDLESCOPE_SHARED"):
        candidates.append(pathlib.Path(os.environ["IDLESCOPE_SHARED"]) / "cases" / "traces")
    else:
        candidates.append(here.parent / "shared" / "cases" / "traces")
    for path in candidates:
        if path.is_dir():
            return path
    return None


def text_bytes(path):
    if path.suffix != ".gz":
        return path.stat().st_size
    total = 0
    with gzip.open(path) as stream:
        while True:
            piece = stream.read(1 << 20)
            if not piece:
                return total
            total += len(piece)


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_one(idlescope, path):
    # CPU time of the whole command: wall time would measure what else the machine does.
    before = cpu_seconds()
    done = subprocess.run([idlescope, "report", "--format", "json", str(path)],
                          capture_output=True, text=True, timeout=120, check=False)
    result = {"seconds": cpu_seconds() - before, "code": done.returncode}
    if done.returncode == 0:
        report = json.loads(done.stdout)
        result["verdict"] = report.get("verdict", "VERDICT_UNSPECIFIED")
        result["certainty"] = report.get("certainty", "")
        shares = report.get("verdict_shares", [])
        result["share"] = shares[0].get("share", 0.0) if shares else None
    elif done.returncode == 2 and "[" in done.stderr:
        result["refusal"] = done.stderr.split("[", 1)[1].split("]", 1)[0]
    else:
        result["crash"] = done.stderr.strip()[-200:]
    return result


def judge(stem, result):
    if "refusal" in result:
        return REFUSED.get(stem) == result["refusal"]
    return result.get("verdict") in VERDICTS.get(stem, set())


MARKS = ("<!-- cases: begin -->\n", "<!-- cases: end -->\n")


def row_of(stem, path, result, good):
    rate = text_bytes(path) / 1e6 / max(result["seconds"], 1e-3)
    share = result.get("share")
    share_text = "" if share is None else f"{100 * share:.0f} %"
    certainty = result.get("certainty", "").replace("CANNOT_TELL_YET", "cannot tell").lower()
    return (f"| {stem} | {said_by(result)} | {certainty} | {share_text} | "
            f"{'yes' if good else '**no**'} | {result['seconds']:.2f} | {rate:.0f} |\n")


def said_by(result):
    if "verdict" in result:
        return result["verdict"]
    return "refused: " + result.get("refusal", "CRASH " + result.get("crash", ""))


def update(document, rows):
    text = pathlib.Path(document).read_text(encoding="utf-8")
    head, rest = text.split(MARKS[0], 1)
    tail = rest.split(MARKS[1], 1)[1]
    table = ("| file | verdict | certainty | share | as expected | CPU s | MB/s |\n"
             "| --- | --- | --- | --- | --- | --- | --- |\n" + "".join(rows))
    pathlib.Path(document).write_text(head + MARKS[0] + table + MARKS[1] + tail, encoding="utf-8")


def main():
    arguments = sys.argv[1:]
    document = None
    if "--update" in arguments:
        at = arguments.index("--update")
        document = arguments[at + 1]
        del arguments[at:at + 2]
    if not arguments:
        print(__doc__)
        return 2
    cases = find_cases(arguments[1] if len(arguments) > 1 else None)
    if cases is None:
        print("skipped: the collected recordings are not beside this checkout")
        return 77
    wrong = 0
    rows = []
    for path in sorted(cases.iterdir()):
        stem = path.name.split(".")[0]
        if stem not in REFUSED and stem not in VERDICTS:
            continue
        result = run_one(arguments[0], path)
        good = judge(stem, result)
        wrong += not good
        rows.append(row_of(stem, path, result, good) if document else "")
        if not good:
            print(f"{stem}: {said_by(result)}, expected {REFUSED.get(stem) or sorted(VERDICTS[stem])}")
    print(f"{len(rows) - wrong} of {len(rows)} as expected", file=sys.stderr)
    if not rows:
        print("skipped: no known recording in", cases)
        return 77
    if document:
        update(document, rows)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

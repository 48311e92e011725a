"""The one table: Markdown for people, JSON for programs."""

import statistics

COLUMNS = ["run", "verdict", "expected", "leaf", "limiter", "share", "built in", "first advice",
           "forecast", "measured", "in window", "whole run", "lost", "result"]


def percent(value):
    return "" if value is None else "%.0f %%" % (100 * value)


def group(rows):
    """{(scenario, fix, mode): [rows]}"""
    groups = {}
    for row in rows:
        groups.setdefault((row.scenario, row.fix, row.mode), []).append(row)
    return groups


def mean_step(groups, scenario, fix, mode):
    values = [r.measured["step_ms_mean"] for r in groups.get((scenario, fix, mode), [])
              if "step_ms_mean" in r.measured]
    return statistics.fmean(values) if values else None


def samples_gain(groups, scenario, fix):
    """Throughput with the fix over throughput without, unprofiled; None if not run."""
    def rate(which):
        return [r.measured["samples_per_step"] / r.measured["step_ms_mean"]
                for r in groups.get((scenario, which, "plain"), []) if r.measured]
    before, after = rate("none"), rate(fix)
    if not before or not after or not statistics.fmean(before):
        return None
    return statistics.fmean(after) / statistics.fmean(before)


def cells_of(row, groups):
    report = row.report or {}
    forecast = row.forecast()
    gains = {fix: samples_gain(groups, row.scenario, fix) for fix in "ABC"}
    measured = " ".join("%s %.2fx" % (fix, gain) for fix, gain in gains.items() if gain)
    plain, recorded = (mean_step(groups, row.scenario, row.fix, mode)
                       for mode in ("plain", "recorded"))
    slowdown = report.get("cost", {}).get("slowdown_in_windows", 0.0)
    dropped = int(report.get("evidence", {}).get("dropped", 0))
    advice = row.advice()
    expect = row.expect
    share_name = row.found() if row.found() in expect.get("verdicts", []) else ""
    return [
        row.scenario + " " + row.fix,
        row.found(),
        "/".join(expect.get("verdicts", [])),
        report.get("top_leaf", ""),
        report.get("limiter", "").replace("LIMITER_", ""),
        percent(row.share_of(share_name)) if share_name else "",
        percent(expect.get("share")),
        advice[0] if advice else "-",
        "%s %.2fx %s" % (forecast[0], forecast[1], forecast[2][-1:]) if forecast else "",
        measured if row.fix == "none" else "",
        "%.2fx" % slowdown if slowdown else "",
        "%.2fx" % (recorded / plain) if plain and recorded else "",
        str(dropped) if dropped else "",
        "FAIL: " + "; ".join(row.failures) if row.failures else
        "ok" + (" (" + "; ".join(row.notes) + ")" if row.notes else ""),
    ]


def markdown(rows, machine):
    groups = group(rows)
    lines = ["", machine, "", "| " + " | ".join(COLUMNS) + " |",
             "|" + " --- |" * len(COLUMNS)]
    for row in rows:
        if row.mode == "recorded":
            lines.append("| " + " | ".join(cells_of(row, groups)) + " |")
    plain = [r for r in rows if r.mode != "recorded" and r.failures]
    for row in plain:
        lines.append("")
        lines.append("%s %s %s FAIL: %s" % (row.scenario, row.fix, row.mode,
                                            "; ".join(row.failures)))
    recorded = [r for r in rows if r.mode == "recorded"]
    good = sum(not r.failures for r in recorded)
    lines += ["", "%d of %d recorded runs as expected." % (good, len(recorded))]
    return "\n".join(lines) + "\n"


def as_json(rows, machine):
    groups = group(rows)
    return {"machine": machine,
            "rows": [{"scenario": r.scenario, "fix": r.fix, "mode": r.mode,
                      "repetition": r.run.get("repetition", 0), "failures": r.failures,
                      "notes": r.notes, "verdict": r.found(), "advice": r.advice(),
                      "expect": r.expect, "measured": r.measured,
                      "gains": {f: samples_gain(groups, r.scenario, f) for f in "ABC"}}
                     for r in rows]}

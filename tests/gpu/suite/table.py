"""The one table: Markdown for people, JSON for programs."""

from . import kineto, measure

COLUMNS = ["run", "verdict", "expected", "leaf", "limiter", "share", "built in", "first advice",
           "forecast", "measured", "in window", "steps, recorded/plain", "losses", "dropped",
           "result"]


def percent(value):
    return "" if value is None else "%.0f %%" % (100 * value)


def cells_of(row, rows):
    report = row.report or {}
    forecast = row.forecast()
    base = row.fix if row.fix == "twin" else ""
    gains = {fix: measure.gain(rows, row.scenario, base + fix) for fix in "ABC"}
    measured = " ".join("%s %s" % (fix, gain.text()) for fix, gain in gains.items() if gain)
    cost = measure.cost(rows, row.scenario, row.fix)
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
        measured if row.fix in ("none", "twin") else "",
        "%.2fx" % slowdown if slowdown else "",
        cost.text() if cost else "",
        measure.losses(rows, row.scenario, row.fix)[0],
        str(dropped) if dropped else "",
        "FAIL: " + "; ".join(row.failures) if row.failures else
        "ok" + (" (" + "; ".join(row.notes) + ")" if row.notes else ""),
    ]


def kineto_lines(rows):
    """torch.profiler's own breakdown beside the importer's verdict."""
    mine = [r for r in rows if r.mode == "kineto"]
    if not mine:
        return []
    lines = ["", "| torch.profiler | its step-time breakdown | importer's verdict | expected | "
             "result |", "|" + " --- |" * 5]
    for row in mine:
        lines.append("| %s %s | %s | %s | %s | %s |" % (
            row.scenario, row.fix, kineto.text(row.kineto or {}), row.found(),
            "/".join(row.expect.get("verdicts", [])),
            "FAIL: " + "; ".join(row.failures) if row.failures else
            "ok" + (" (" + "; ".join(row.notes) + ")" if row.notes else "")))
    good = sum(not r.failures for r in mine)
    return lines + ["", "%d of %d imported traces as expected." % (good, len(mine))]


def markdown(rows, machine):
    lines = ["", machine, "", "| " + " | ".join(COLUMNS) + " |",
             "|" + " --- |" * len(COLUMNS)]
    for row in rows:
        if row.mode == "recorded":
            lines.append("| " + " | ".join(cells_of(row, rows)) + " |")
    for row in rows:
        if row.mode == "plain" and row.failures:
            lines.append("")
            lines.append("%s %s plain FAIL: %s" % (row.scenario, row.fix, "; ".join(row.failures)))
    recorded = [r for r in rows if r.mode == "recorded"]
    good = sum(not r.failures for r in recorded)
    lines += ["", "%d of %d recorded runs as expected." % (good, len(recorded))]
    return "\n".join(lines + kineto_lines(rows)) + "\n"


def as_json(rows, machine):
    def estimate(value):
        return value.as_json() if value else None
    return {"machine": machine,
            "rows": [{"scenario": r.scenario, "fix": r.fix, "mode": r.mode,
                      "repetition": r.run.get("repetition", 0), "failures": r.failures,
                      "notes": r.notes, "verdict": r.found(), "advice": r.advice(),
                      "expect": r.expect, "measured": r.measured, "forecast": r.forecast(),
                      "kineto": r.kineto,
                      "losses": measure.losses(rows, r.scenario, r.fix)[0],
                      "cost_steps": estimate(measure.cost(rows, r.scenario, r.fix)),
                      "cost_wall": estimate(measure.cost(rows, r.scenario, r.fix,
                                                         measure.wall_s)),
                      "gains": {f: estimate(measure.gain(rows, r.scenario, f)) for f in "ABC"}}
                     for r in rows]}

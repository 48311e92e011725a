"""What several runs of one scenario say together: gains of fixes, cost of recording, losses.

In: rows (judge.Row), plain and recorded, with and without fixes, repeated A B B A. Out:
numbers with their range, and failures on the rows that they concern. A gain is throughput
(samples a second) with the fix over throughput without, both without the recorder."""

import math
import statistics

# A twin is bound by the device: no fix may gain more there.
TWIN_GAIN = 1.05
# specification of the forecasts: within 15 % of the measured gain.
FORECAST_ERROR = 0.15


class Estimate:
    """A ratio with its range over repetitions (Student's t, 95 %, where there are several)."""

    def __init__(self, value, low, high, count):
        self.value, self.low, self.high, self.count = value, low, high, count

    def text(self):
        if self.count < 2:
            return "%.2fx" % self.value
        return "%.2fx (%.2f-%.2f)" % (self.value, self.low, self.high)

    def as_json(self):
        return {"value": self.value, "low": self.low, "high": self.high, "n": self.count}


# Two-sided 95 % quantiles of Student's t for 1 … 10 degrees of freedom.
T_95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)


def ratio(above, below):
    """mean(above)/mean(below); None if one is missing. Its interval comes from the pairs of one
    repetition, so that a drift of the machine cancels."""
    pairs = [(above[k], below[k]) for k in sorted(set(above) & set(below))]
    pairs = [(a, b) for a, b in pairs if a > 0 and b > 0]
    if not pairs:
        return None
    logs = [math.log(a / b) for a, b in pairs]
    middle = statistics.fmean(logs)
    spread = 0.0
    if len(logs) > 1:
        t = T_95[min(len(logs) - 1, len(T_95)) - 1]
        spread = t * statistics.stdev(logs) / math.sqrt(len(logs))
    return Estimate(math.exp(middle), math.exp(middle - spread), math.exp(middle + spread),
                    len(logs))


def values(rows, scenario, fix, mode, of):
    """{repetition: of(row)} of the runs that ended well."""
    out = {}
    for row in rows:
        if (row.scenario, row.fix, row.mode) != (scenario, fix, mode) or not row.measured:
            continue
        value = of(row)
        if value is not None:
            out[row.run.get("repetition", 0)] = value
    return out


def throughput(row):
    """Samples a second; where samples make no sense, steps. S05's fix shortens the run and not
    the step, so the time of its loop counts."""
    measured = row.measured
    if measured.get("loop_s"):
        return 1.0 / measured["loop_s"]
    samples = measured.get("samples_per_step") or 1
    mean = measured.get("step_ms_mean")
    return samples / mean if mean else None


def step_ms(row):
    return row.measured.get("step_ms_mean")


def wall_s(row):
    return row.measured.get("wall_s") or row.run.get("wall_s")


def gain(rows, scenario, fix):
    """Measured gain of `fix` ("A", or "twinA" against the twin)."""
    base = "twin" if fix.startswith("twin") else "none"
    return ratio(values(rows, scenario, fix, "plain", throughput),
                 values(rows, scenario, base, "plain", throughput))


def cost(rows, scenario, fix, of=step_ms):
    """Recorded over plain, of the same job."""
    return ratio(values(rows, scenario, fix, "recorded", of),
                 values(rows, scenario, fix, "plain", of))


def losses(rows, scenario, fix):
    """("equal" | "differ" | "job varies" | "", details): the last loss of plain runs and of
    recorded ones with the same number of steps. Only a job that repeats itself can tell."""
    def of(mode):
        return {(r.measured.get("counted"), r.measured["loss_last"])
                for r in rows if (r.scenario, r.fix, r.mode) == (scenario, fix, mode)
                and r.measured.get("loss_last") is not None}
    plain, recorded = of("plain"), of("recorded")
    counts = {c for c, _ in plain} & {c for c, _ in recorded}
    plain = {p for p in plain if p[0] in counts}
    recorded = {r for r in recorded if r[0] in counts}
    if not plain or not recorded:
        return "", ""
    if any(len({loss for c, loss in plain if c == count}) > 1 for count in counts):
        return "job varies", ""
    if plain == recorded:
        return "equal", ""
    return "differ", "%s without, %s with the recorder" % (sorted(plain), sorted(recorded))


def check_groups(rows, catalogue):
    """Adds what only several runs together can show to the rows' failures and notes."""
    for row in rows:
        scenario = catalogue.get(row.scenario)
        if scenario is None:
            continue
        if row.mode == "plain" and row.fix.startswith("twin") and row.fix != "twin":
            measured = gain(rows, row.scenario, row.fix)
            if measured and measured.low > TWIN_GAIN:
                row.failures.append("fix %s gains %s on the twin" % (row.fix[4:], measured.text()))
        if row.mode != "recorded":
            continue
        same, details = losses(rows, row.scenario, row.fix)
        if same == "differ":
            row.failures.append("losses differ: " + details)
        elif same == "job varies":
            row.notes.append("its losses vary without the recorder too")
        check_forecast(row, rows, scenario)


def check_forecast(row, rows, scenario):
    """The first advice's forecast against the measured gain of the fix that does it."""
    if row.fix != "none" or row.forecast() is None:
        return
    advice, speedup, grade = row.forecast()
    for fix, ids in scenario.advice.items():
        if advice not in ids:
            continue
        measured = gain(rows, row.scenario, fix)
        if measured is None:
            return
        error = speedup / measured.value - 1
        text = "forecast %s %.2fx, measured %s" % (advice, speedup, measured.text())
        if abs(error) > FORECAST_ERROR and not grade.endswith("C"):
            row.failures.append(text)
        elif abs(error) > FORECAST_ERROR:
            row.notes.append(text)
        return

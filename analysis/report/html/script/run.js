// Page 5: one dot a step, on a canvas (a job has many steps).

const dotsHolder = document.getElementById("dots");
const INDEX = 0, AT = 1, LENGTH = 2, WINDOW = 3, WAIT = 4, MARK = 5;
function drawDots() {
  dotsHolder.replaceChildren();
  const width = Math.max(300, dotsHolder.clientWidth), height = 280, left = 66, right = 12, bottom = 36, top = 12;
  const canvas = dotsHolder.appendChild(document.createElement("canvas"));
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", words["dots-label"]);
  const dense = devicePixelRatio || 1;
  canvas.width = width * dense;
  canvas.height = height * dense;
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  const pen = canvas.getContext("2d");
  pen.scale(dense, dense);
  const style = getComputedStyle(document.body);
  const ink = style.getPropertyValue("--ink"), soft = style.getPropertyValue("--soft"), panel = style.getPropertyValue("--panel"), focus = style.getPropertyValue("--focus"), dot = style.getPropertyValue("--dot");
  const last = data.steps[data.steps.length - 1];
  const x = d3.scaleLinear([0, last[AT] + last[LENGTH]], [left, width - right]);
  // Rare stalls must not flatten the rest: logarithmic when they are much longer.
  const lengths = data.steps.map((step) => step[LENGTH]).filter((ns) => ns > 0).sort(d3.ascending);
  const middle = d3.quantile(lengths, .5) || 1, most = lengths[lengths.length - 1] || 1;
  const logarithmic = most > 6 * middle;
  const y = logarithmic
    ? d3.scaleLog([Math.max(1, lengths[0] * .8), most * 1.2], [height - bottom, top])
    : d3.scaleLinear([0, most * 1.08], [height - bottom, top]);
  const unit = unitOf(middle), runUnit = unitOf(x.domain()[1]);
  let chosen = -1;
  function paint() {
    pen.clearRect(0, 0, width, height);
    pen.font = "12px " + style.fontFamily;
    // shade windows
    let from = null;
    pen.fillStyle = panel;
    data.steps.forEach((step, i) => {
      if (step[WINDOW] && from === null) from = step[AT];
      const ends = from !== null && (!step[WINDOW] || i + 1 === data.steps.length);
      if (ends) { pen.fillRect(x(from), top, Math.max(1.5, x(step[AT]) - x(from)), height - bottom - top); from = null; }
    });
    pen.strokeStyle = soft;
    pen.fillStyle = soft;
    pen.lineWidth = 1;
    pen.globalAlpha = .35;
    const leading = (ns) => Number(String(trim(ns / unit[0], 9)).replace(/[0.]*/, "")[0]);
    const ticks = logarithmic ? y.ticks(5).filter((tick) => [1, 2, 5].includes(leading(tick))) : roundTicks(y, 5, unit);
    ticks.forEach((tick) => { pen.beginPath(); pen.moveTo(left, y(tick)); pen.lineTo(width - right, y(tick)); pen.stroke(); });
    pen.globalAlpha = 1;
    pen.textAlign = "right";
    ticks.forEach((tick) => pen.fillText(trim(tick / unit[0], 3) + " " + unit[1], left - 6, y(tick) + 4));
    pen.textAlign = "center";
    roundTicks(x, width < 560 ? 3 : 7, runUnit).forEach((tick) => pen.fillText(trim(tick / runUnit[0], 3) + " " + runUnit[1], x(tick), height - bottom + 18));
    // epochs and checkpoints
    pen.setLineDash([4, 4]);
    let labelled = -1e9;
    data.steps.forEach((step) => {
      if (!step[MARK]) return;
      pen.beginPath(); pen.moveTo(x(step[AT]), top); pen.lineTo(x(step[AT]), height - bottom); pen.stroke();
      if (x(step[AT]) - labelled > 70) { pen.textAlign = "left"; pen.fillText(step[MARK], x(step[AT]) + 3, top + 10); labelled = x(step[AT]); }
    });
    pen.setLineDash([]);
    [[data.median, words["fact-median"]], [data.mean, words["fact-mean"]]].forEach(([ns, name], i) => {
      if (!(ns > 0) || y(ns) < top) return;
      pen.strokeStyle = i ? style.getPropertyValue("--mean") : style.getPropertyValue("--median");
      pen.beginPath(); pen.moveTo(left, y(ns)); pen.lineTo(width - right, y(ns)); pen.stroke();
      const near = Math.abs(y(data.median) - y(data.mean)) < 14;
      pen.fillStyle = pen.strokeStyle;
      pen.textAlign = "right";
      pen.fillText(name + " " + time(ns), width - right - 2, y(ns) + (near ? (i ? -5 : 13) : -5));
    });
    const radius = data.steps.length > 3000 ? 1.4 : data.steps.length > 600 ? 2 : 3;
    data.steps.forEach((step, i) => {
      pen.globalAlpha = step[WINDOW] ? .95 : .45;
      pen.fillStyle = dot;
      pen.beginPath();
      pen.arc(x(step[AT]), y(Math.max(1, step[LENGTH])), i === chosen ? 5 : radius, 0, 7);
      pen.fill();
    });
    pen.globalAlpha = 1;
    if (chosen >= 0) {
      const step = data.steps[chosen];
      pen.strokeStyle = focus; pen.lineWidth = 2;
      pen.beginPath(); pen.arc(x(step[AT]), y(Math.max(1, step[LENGTH])), 7, 0, 7); pen.stroke();
    }
    pen.fillStyle = ink;
  }
  function words_of(step) {
    let text = fill(words["tip-step"], { step: step[INDEX], length: time(step[LENGTH]), wait: step[WAIT] >= 0 ? time(step[WAIT]) : "?" });
    if (!step[WINDOW]) text += "; " + words["tip-no-window"];
    if (step[MARK]) text += "; " + step[MARK];
    return text;
  }
  function choose(i) {
    chosen = i;
    paint();
    const box = canvas.getBoundingClientRect();
    const step = data.steps[i];
    showTip(box.left + x(step[AT]), box.top + y(Math.max(1, step[LENGTH])), words_of(step));
  }
  function nearest(px, py) {
    let best = -1, distance = 400;
    data.steps.forEach((step, i) => {
      const dx = x(step[AT]) - px, dy = y(Math.max(1, step[LENGTH])) - py;
      if (dx * dx + dy * dy < distance) { distance = dx * dx + dy * dy; best = i; }
    });
    return best;
  }
  canvas.addEventListener("mousemove", (event) => {
    const i = nearest(event.offsetX, event.offsetY);
    if (i >= 0) choose(i); else { hideTip(); if (chosen >= 0) { chosen = -1; paint(); } }
  });
  canvas.addEventListener("mouseleave", () => { hideTip(); chosen = -1; paint(); });
  canvas.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
    choose(Math.max(0, Math.min(data.steps.length - 1, chosen + (event.key === "ArrowRight" ? 1 : -1))));
    event.preventDefault();
  });
  canvas.addEventListener("click", (event) => {
    const i = nearest(event.offsetX, event.offsetY);
    if (i < 0 || !data.steps[i][WINDOW]) return;
    const gap = data.gaps.findIndex((other) => other.step === data.steps[i][INDEX]);
    if (gap >= 0) { selectGap(gap, true); document.getElementById("step").scrollIntoView(); }
  });
  paint();
}
if (dotsHolder && data.steps.length) drawDots();

// Lanes over time: a step, or ten batches of a loader.

const BEGIN = 0, END = 1, LABEL = 2, LEAF = 3, BATCH = 4, GAP = 5, VALUE = 6;
const groupColour = {
  gpu: "c-compute", copy: "c-transfer", host: "c-host", pin: "c-periodic", worker: "c-data", queue: "c-other",
};
function colourOf(lane, bar) {
  if (bar[LEAF] && data.leaves[bar[LEAF]]) return data.leaves[bar[LEAF]][1];
  return groupColour[lane.group] || "c-other";
}
// Stages of the loader share its colour in shades: collating, handing over, pinning.
const shades = { 25: .72, 26: .5, 27: .5 };
function describe(lane, bar) {
  if (lane.group === "queue") return lane.name + ": " + bar[VALUE];
  const parts = [data.labels[bar[LABEL]] || lane.name, time(bar[END] - bar[BEGIN])];
  if (bar[LEAF] && data.leaves[bar[LEAF]] && data.leaves[bar[LEAF]][0] !== parts[0]) parts.push(data.leaves[bar[LEAF]][0]);
  if (bar[BATCH] >= 0 && !String(parts[0]).includes(String(bar[BATCH]))) parts.push("batch " + bar[BATCH]);
  return parts.join(", ");
}
// Bars of a lane are in order and do not overlap by much: the first that ends after `at`.
const firstEndingAfter = d3.bisector((bar) => bar[END]).right;
function overlapped(bars, bar) {
  let sum = 0;
  for (let i = firstEndingAfter(bars, bar[BEGIN]); i < bars.length && bars[i][BEGIN] < bar[END]; ++i) {
    sum += Math.min(bars[i][END], bar[END]) - Math.max(bars[i][BEGIN], bar[BEGIN]);
  }
  return sum;
}

function lanes(holder, timelines, options) {
  const narrow = holder.clientWidth < 560;
  const left = narrow ? 92 : 128, right = 14, laneHeight = 25, laneGap = 4, titleHeight = timelines.length > 1 ? 24 : 6;
  const width = Math.max(300, holder.clientWidth);
  const longest = d3.max(timelines, (timeline) => timeline.span) || 1;
  const x0 = d3.scaleLinear([0, longest], [left, width - right]);
  let x = x0;
  let top = 4;
  const blocks = timelines.map((timeline) => {
    const block = { timeline, top, rows: [] };
    top += titleHeight;
    timeline.lanes.forEach((lane) => {
      block.rows.push({ lane, y: top });
      top += laneHeight + laneGap;
    });
    block.bottom = top;
    top += 10;
    return block;
  });
  const height = top + 36;
  const svg = d3.select(holder).append("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("height", height)
    .attr("tabindex", 0).attr("role", "group").attr("aria-label", options.label);
  const clip = holder.id + "-clip";
  svg.append("clipPath").attr("id", clip).append("rect")
    .attr("x", left).attr("y", 0).attr("width", width - left - right).attr("height", height);
  const named = svg.append("g");
  blocks.forEach((block) => {
    if (timelines.length > 1) {
      named.append("text").attr("x", 0).attr("y", block.top + 16).attr("font-weight", 600)
        .text((words["which-" + block.timeline.which] || block.timeline.which) + ", " + time(block.timeline.span));
    }
    block.rows.forEach((row) => {
      named.append("text").attr("x", left - 8).attr("y", row.y + laneHeight / 2 + 4).attr("text-anchor", "end")
        .text(row.lane.name.length > (narrow ? 13 : 19) ? row.lane.name.slice(0, narrow ? 12 : 18) + "\u2026" : row.lane.name)
        .append("title").text(row.lane.name);
      named.append("rect").attr("class", "lane").attr("x", left).attr("y", row.y).attr("width", width - left - right).attr("height", laneHeight);
    });
  });
  const plot = svg.append("g").attr("clip-path", `url(#${clip})`);
  const axis = svg.append("g").attr("class", "axis").attr("transform", `translate(0,${top})`);
  svg.append("text").attr("class", "quiet").attr("x", width - right).attr("y", height - 3).attr("text-anchor", "end").text(options.axis);

  // A copy under a kernel is hatched: hidden.
  const pattern = svg.append("defs").append("pattern").attr("id", holder.id + "-hidden").attr("width", 6).attr("height", 6)
    .attr("patternUnits", "userSpaceOnUse").attr("patternTransform", "rotate(45)");
  pattern.append("rect").attr("width", 2.5).attr("height", 6).attr("fill", "#fff").attr("opacity", .75);
  const items = [];
  blocks.forEach((block) => {
    const lanesOf = (group) => block.timeline.lanes.filter((lane) => lane.group === group);
    const compute = lanesOf("gpu");
    // Stretches without compute: what "costs something" means.
    const lost = lanesOf("cause").slice(0, 1);
    block.rows.forEach((row) => {
      const most = d3.max(row.lane.bars, (bar) => bar[VALUE]) || 1;
      const host = ["host", "pin", "worker"].includes(row.lane.group);
      row.lane.bars.forEach((bar) => {
        const item = { block, row, bar, free: false, hidden: false, y: row.y, height: laneHeight };
        if (host) item.free = !lost.some((lane) => overlapped(lane.bars, bar) > 0);
        if (row.lane.group === "copy") {
          item.hidden = d3.sum(compute, (lane) => overlapped(lane.bars, bar)) > 0.5 * (bar[END] - bar[BEGIN]);
        }
        if (row.lane.group === "queue") {
          item.height = laneHeight * bar[VALUE] / most;
          item.y = row.y + laneHeight - item.height;
        }
        items.push(item);
      });
    });
  });

  // One group a colour, so that a bar is one element; labels are made for those in view only.
  const byColour = new Map();
  items.forEach((item) => {
    const colour = colourOf(item.row.lane, item.bar);
    if (!byColour.has(colour)) byColour.set(colour, []);
    byColour.get(colour).push(item);
  });
  const bars = plot.append("g");
  byColour.forEach((ofColour, colour) => {
    bars.append("g").attr("class", colour).selectAll("rect").data(ofColour).enter().append("rect")
      .attr("class", "shape").attr("y", (item) => item.y).attr("height", (item) => item.height)
      .attr("fill-opacity", (item) => shades[item.bar[LEAF]] || null);
  });
  const shapes = bars.selectAll("rect.shape");
  const hatches = plot.append("g").selectAll("rect").data(items.filter((item) => item.hidden)).enter().append("rect")
    .attr("class", "hatch").attr("fill", `url(#${holder.id}-hidden)`).attr("pointer-events", "none")
    .attr("y", (item) => item.y).attr("height", (item) => item.height);
  const labels = plot.append("g");
  const over = plot.append("g");
  const lettered = items.filter((item) => item.row.lane.group !== "queue" && data.labels[item.bar[LABEL]]);
  let hide = options.hide;
  let selected = null;  // item of a cause lane

  function place(item) {
    const from = x(item.bar[BEGIN]), to = x(item.bar[END]);
    this.setAttribute("x", from);
    this.setAttribute("width", Math.max(.8, to - from - (to - from > 3 ? .6 : 0)));
  }
  function letters(item) {
    const from = Math.max(left, x(item.bar[BEGIN])), to = Math.min(width - right, x(item.bar[END]));
    const label = data.labels[item.bar[LABEL]];
    const room = Math.floor((to - from - 8) / 6.2);
    return { item, from, text: label.length > room ? label.slice(0, room - 1) + "\u2026" : label, room };
  }
  function draw() {
    shapes.classed("free", (item) => hide && item.free).each(place);
    hatches.each(place);
    const fitting = lettered.map(letters).filter((label) => label.room >= 3);
    const texts = labels.selectAll("text").data(fitting);
    texts.exit().remove();
    texts.enter().append("text").merge(texts)
      .attr("class", (label) => "inside " + colourOf(label.item.row.lane, label.item.bar))
      .classed("free", (label) => hide && label.item.free)
      .attr("x", (label) => label.from + 4).attr("y", (label) => label.item.row.y + laneHeight / 2 + 4)
      .text((label) => label.text);
    axis.call(timeAxis(x, narrow ? 4 : 8, longest));
    over.selectAll("*").remove();
    if (selected) mark(selected);
  }
  function mark(item) {
    const whole = extent(item), from = x(whole[0]), to = x(whole[1]);
    over.append("rect").attr("class", "band").attr("x", from).attr("y", item.block.top + titleHeight)
      .attr("width", Math.max(1, to - from)).attr("height", item.block.bottom - item.block.top - titleHeight);
    over.append("rect").attr("class", "chosen").attr("x", from).attr("y", item.row.y)
      .attr("width", Math.max(2, to - from)).attr("height", laneHeight);
    path(item, whole);
  }
  // A gap may have several causes one after the other: all its pieces.
  function extent(item) {
    const pieces = item.bar[GAP] < 0 ? [item] : items.filter((other) => other.block === item.block &&
      other.row.lane.group === "cause" && other.bar[GAP] === item.bar[GAP]);
    return [d3.min(pieces, (piece) => piece.bar[BEGIN]), d3.max(pieces, (piece) => piece.bar[END])];
  }
  // From the worker that prepared the awaited batch over pinning and next() to the GPU.
  function path(item, whole) {
    const gap = data.gaps[item.bar[GAP]];
    const batch = gap && gap.batch >= 0 ? gap.batch : item.bar[BATCH];
    if (!(batch >= 0)) return;
    const points = [];
    ["worker", "pin", "host"].forEach((group) => {
      const found = items.filter((other) => other.block === item.block && other.row.lane.group === group && other.bar[BATCH] === batch);
      if (!found.length) return;
      const last = found.reduce((a, b) => (a.bar[END] > b.bar[END] ? a : b));
      points.push([x(last.bar[END]), last.row.y + laneHeight / 2]);
    });
    const gpu = item.block.rows.find((row) => row.lane.group === "gpu");
    if (!points.length || !gpu) return;
    points.push([Math.max(x(whole[1]), d3.max(points, (p) => p[0])), gpu.y + laneHeight / 2]);
    over.append("path").attr("class", "path").attr("d", d3.line()(points));
    over.selectAll("circle").data(points).join("circle").attr("cx", (p) => p[0]).attr("cy", (p) => p[1]).attr("r", 3).attr("fill", "var(--focus)");
  }
  shapes.on("mousemove", function (item) { showTip(d3.event.clientX, d3.event.clientY, describe(item.row.lane, item.bar)); })
    .on("mouseleave", hideTip)
    .on("click", (item) => { if (item.bar[GAP] >= 0 && options.select) options.select(item.bar[GAP]); });

  const zoom = d3.zoom().scaleExtent([1, 2000]).translateExtent([[left, 0], [width - right, height]])
    .extent([[left, 0], [width - right, height]])
    // The page keeps its wheel until the drawing was clicked or focused.
    .filter(() => d3.event.type !== "wheel" || d3.event.ctrlKey || document.activeElement === svg.node())
    .on("zoom", () => { x = d3.event.transform.rescaleX(x0); draw(); });
  svg.call(zoom).on("dblclick.zoom", null).on("mousedown.focus", () => svg.node().focus({ preventScroll: true }));
  svg.on("keydown", () => {
    const event = d3.event;
    if (event.key === "0") svg.call(zoom.transform, d3.zoomIdentity);
    else if (event.key === "+" || event.key === "=") svg.call(zoom.scaleBy, 1.6);
    else if (event.key === "-") svg.call(zoom.scaleBy, 1 / 1.6);
    else if (options.step && (event.key === "ArrowRight" || event.key === "ArrowLeft")) options.step(event.key === "ArrowRight" ? 1 : -1);
    else return;
    event.preventDefault();
  });
  draw();
  return {
    drawn: items.filter((item) => item.row.lane.group === "cause" && item.bar[GAP] >= 0),
    select(item) {
      selected = item;
      if (item) {  // keep it in view when zoomed in
        const transform = d3.zoomTransform(svg.node());
        const middle = x((item.bar[BEGIN] + item.bar[END]) / 2);
        if (transform.k > 1 && (middle < left || middle > width - right)) {
          svg.call(zoom.translateTo, x0((item.bar[BEGIN] + item.bar[END]) / 2), 0);
        }
      }
      draw();
    },
    hide(value) { hide = value; draw(); },
  };
}

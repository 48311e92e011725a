// Drawings and conveniences of the HTML report. Everything here repeats or refines what the
// static page says; nothing is fetched, and text from the trace is only ever set as text.
(function () {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const words = data.words;
  document.documentElement.classList.add("script");

  // ---- numbers, as the static page writes them
  function trim(value, decimals) { return String(Number(value.toFixed(decimals))); }
  const units = [[1, "ns"], [1e3, "us"], [1e6, "ms"], [1e9, "s"], [60e9, "min"], [3600e9, "h"]];
  const limits = [999.5, 999.5e3, 9.995e9, 180e9, 180 * 60e9, Infinity];
  function unitOf(ns) { return units[limits.findIndex((limit) => Math.abs(ns) < limit)]; }
  function time(ns, unit) {
    unit = unit || unitOf(ns);
    const scaled = ns / unit[0];
    const decimals = unit[0] === 1 || Math.abs(scaled) >= 99.5 ? 0 : Math.abs(scaled) >= 9.95 ? 1 : 2;
    return trim(scaled, decimals) + " " + unit[1];
  }
  function fill(text, values) {
    return text.replace(/\{(\w+)\}/g, (all, name) => (name in values ? values[name] : all));
  }
  // Ticks at round numbers of the unit (a scale in ns has no round minutes).
  function roundTicks(scale, count, unit) {
    return d3.ticks(scale.domain()[0] / unit[0], scale.domain()[1] / unit[0], count).map((value) => value * unit[0]);
  }
  function timeAxis(scale, count, longest) {
    const unit = unitOf(longest), ticks = roundTicks(scale, count, unit);
    return d3.axisBottom(scale).tickValues(ticks).tickSizeOuter(0)
      .tickFormat((ns, i) => trim(ns / unit[0], 6) + (i === ticks.length - 1 ? " " + unit[1] : ""));
  }

  // ---- tip
  const tip = document.body.appendChild(document.createElement("div"));
  tip.id = "tip";
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;
  function showTip(x, y, text) {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 4)) + "px";
    tip.style.top = (y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18) + "px";
  }
  function hideTip() { tip.hidden = true; }

  // ---- copy buttons
  document.querySelectorAll("[data-copy]").forEach((button) => {
    button.addEventListener("click", () => {
      const text = button.getAttribute("data-copy");
      const done = () => {
        const before = button.textContent;
        button.textContent = words["copied-button"];
        setTimeout(() => { button.textContent = before; }, 1500);
      };
      // Files opened from disk have no clipboard interface in some browsers.
      const byHand = () => {
        const area = document.body.appendChild(document.createElement("textarea"));
        area.value = text;
        area.select();
        if (document.execCommand("copy")) done();
        area.remove();
        button.focus();
      };
      if (navigator.clipboard && isSecureContext) navigator.clipboard.writeText(text).then(done, byHand);
      else byHand();
    });
  });

  // ---- tables: sort and filter
  document.querySelectorAll("table.sortable").forEach((table) => {
    const body = table.tBodies[0];
    table.querySelectorAll("thead th").forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const value = (row) => {
          const cell = row.cells[column];
          return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
        };
        const rows = Array.from(body.rows).sort((a, b) => {
          const [x, y] = [value(a), value(b)];
          return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
        });
        body.append(...rows);
      });
    });
  });
  document.querySelectorAll("input.filter").forEach((input) => {
    input.hidden = false;
    const rows = Array.from(input.parentElement.querySelector("table.sortable").tBodies[0].rows);
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase();
      rows.forEach((row) => { row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted); });
    });
  });

  // ---- navigation: the page one is on
  const links = Array.from(document.querySelectorAll("nav a"));
  const here = new IntersectionObserver((entries) => {
    entries.forEach((entry) => {
      if (!entry.isIntersecting) return;
      links.forEach((link) => link.classList.toggle("here", link.hash === "#" + entry.target.id));
    });
  }, { rootMargin: "-20% 0px -70% 0px" });
  document.querySelectorAll("main section").forEach((section) => here.observe(section));

  // ---- lanes over time: a step, or ten batches of a loader
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
    const parts = [data.labels[bar[LABEL]] || lane.name, time(bar[END] - bar[BEGIN])];
    if (bar[LEAF] && data.leaves[bar[LEAF]] && data.leaves[bar[LEAF]][0] !== parts[0]) parts.push(data.leaves[bar[LEAF]][0]);
    if (bar[BATCH] >= 0 && !String(parts[0]).includes(String(bar[BATCH]))) parts.push("batch " + bar[BATCH]);
    if (lane.group === "queue") return lane.name + ": " + bar[VALUE];
    return parts.join(", ");
  }

  function lanes(holder, timelines, options) {
    const narrow = holder.clientWidth < 560;
    const left = narrow ? 74 : 128, right = 14, laneHeight = 25, laneGap = 4, titleHeight = timelines.length > 1 ? 24 : 6;
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
    const height = top + 34;
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
        named.append("text").attr("x", left - 8).attr("y", row.y + laneHeight / 2 + 4).attr("text-anchor", "end").text(row.lane.name);
        named.append("rect").attr("class", "lane").attr("x", left).attr("y", row.y).attr("width", width - left - right).attr("height", laneHeight);
      });
    });
    const plot = svg.append("g").attr("clip-path", `url(#${clip})`);
    const axis = svg.append("g").attr("class", "axis").attr("transform", `translate(0,${top})`);
    svg.append("text").attr("class", "quiet").attr("x", width - right).attr("y", height - 2).attr("text-anchor", "end").text(words["axis-time"]);

    // Stretches without compute, per block: what "costs something" means.
    blocks.forEach((block) => {
      const causes = block.timeline.lanes.filter((lane) => lane.group === "cause");
      block.lost = causes.length ? causes[0].bars : [];
    });
    function free(block, row, bar) {
      if (!["host", "pin", "worker"].includes(row.lane.group)) return false;
      return !block.lost.some((lost) => lost[BEGIN] < bar[END] && bar[BEGIN] < lost[END]);
    }
    // A copy under a kernel is hatched: hidden.
    const pattern = svg.append("defs").append("pattern").attr("id", holder.id + "-hidden").attr("width", 6).attr("height", 6)
      .attr("patternUnits", "userSpaceOnUse").attr("patternTransform", "rotate(45)");
    pattern.append("rect").attr("width", 2.5).attr("height", 6).attr("fill", "#fff").attr("opacity", .75);
    const items = [];
    blocks.forEach((block) => {
      const compute = block.timeline.lanes.filter((lane) => lane.group === "gpu").flatMap((lane) => lane.bars);
      block.rows.forEach((row) => {
        const most = d3.max(row.lane.bars, (bar) => bar[VALUE]) || 1;
        row.lane.bars.forEach((bar) => {
          const item = { block, row, bar, free: free(block, row, bar), hidden: false, y: row.y, height: laneHeight };
          if (row.lane.group === "copy") {
            const under = d3.sum(compute, (kernel) => Math.max(0, Math.min(kernel[END], bar[END]) - Math.max(kernel[BEGIN], bar[BEGIN])));
            item.hidden = under > 0.5 * (bar[END] - bar[BEGIN]);
          }
          if (row.lane.group === "queue") {
            item.height = laneHeight * bar[VALUE] / most;
            item.y = row.y + laneHeight - item.height;
          }
          items.push(item);
        });
      });
    });
    let hide = options.hide;
    let selected = null;  // item of a cause lane
    const shapes = plot.selectAll("g.shape-group").data(items).join("g").attr("class", (item) => "shape-group " + colourOf(item.row.lane, item.bar));
    shapes.append("rect").attr("class", "shape");
    shapes.filter((item) => item.hidden).append("rect").attr("class", "hatch").attr("fill", `url(#${holder.id}-hidden)`).attr("pointer-events", "none");
    shapes.append("text").attr("class", "inside");
    const over = plot.append("g");
    function draw() {
      shapes.classed("free", (item) => hide && item.free);
      shapes.selectAll("rect").each(function () {
        const item = d3.select(this.parentNode).datum();
        const from = x(item.bar[BEGIN]), to = x(item.bar[END]);
        this.setAttribute("x", from);
        this.setAttribute("y", item.y);
        this.setAttribute("width", Math.max(.8, to - from - (to - from > 3 ? .6 : 0)));
        this.setAttribute("height", item.height);
        if (shades[item.bar[LEAF]]) this.setAttribute("fill-opacity", shades[item.bar[LEAF]]);
      });
      shapes.select("text").each(function (item) {
        const from = Math.max(left, x(item.bar[BEGIN])), to = Math.min(width - right, x(item.bar[END]));
        const label = item.row.lane.group === "queue" ? "" : data.labels[item.bar[LABEL]] || "";
        const room = Math.floor((to - from - 8) / 6.2);
        this.textContent = room >= 3 ? (label.length > room ? label.slice(0, room - 1) + "\u2026" : label) : "";
        this.setAttribute("x", from + 4);
        this.setAttribute("y", item.row.y + laneHeight / 2 + 4);
      });
      axis.call(timeAxis(x, narrow ? 4 : 8, longest));
      over.selectAll("*").remove();
      if (selected) {
        const whole = extent(selected), from = x(whole[0]), to = x(whole[1]);
        over.append("rect").attr("class", "band").attr("x", from).attr("y", selected.block.top + titleHeight)
          .attr("width", Math.max(1, to - from)).attr("height", selected.block.bottom - selected.block.top - titleHeight);
        over.append("rect").attr("class", "chosen").attr("x", from).attr("y", selected.row.y)
          .attr("width", Math.max(2, to - from)).attr("height", laneHeight);
        path(selected);
      }
    }
    // A gap may have several causes one after the other: all its pieces.
    function extent(item) {
      const pieces = item.bar[GAP] < 0 ? [item] : items.filter((other) => other.block === item.block &&
        other.row.lane.group === "cause" && other.bar[GAP] === item.bar[GAP]);
      return [d3.min(pieces, (piece) => piece.bar[BEGIN]), d3.max(pieces, (piece) => piece.bar[END])];
    }
    // From the worker that prepared the awaited batch over pinning and next() to the GPU.
    function path(item) {
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
      points.push([Math.max(x(extent(item)[1]), d3.max(points, (p) => p[0])), gpu.y + laneHeight / 2]);
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
      shown: () => x.domain(),
    };
  }

  // ---- page 2
  const sentence = document.getElementById("gap-sentence");
  const stepHolder = document.getElementById("timeline");
  const stepTimelines = data.timelines.filter((timeline) => timeline.which !== "loader");
  let stepChart = null;
  let selectedGap = -1;
  function selectGap(index, remember) {
    if (!data.gaps[index]) return;
    selectedGap = index;
    if (sentence) sentence.textContent = data.gaps[index].text;
    document.querySelectorAll("tr.selected").forEach((row) => row.classList.remove("selected"));
    const row = document.getElementById("gap=" + index);
    if (row) row.classList.add("selected");
    if (stepChart) stepChart.select(stepChart.drawn.find((item) => item.bar[GAP] === index) || null);
    if (remember) history.replaceState(null, "", "#gap=" + index);
  }
  function nextGap(direction) {
    const order = Array.from(new Set(stepChart.drawn.slice().sort((a, b) => a.block.top - b.block.top || a.bar[BEGIN] - b.bar[BEGIN]).map((item) => item.bar[GAP])));
    if (!order.length) return;
    const at = order.indexOf(selectedGap);
    selectGap(order[(at + direction + order.length) % order.length], true);
  }
  function drawStep() {
    stepHolder.replaceChildren();
    const label = stepHolder.appendChild(document.createElement("label"));
    label.className = "switch";
    const box = label.appendChild(document.createElement("input"));
    box.type = "checkbox";
    box.checked = true;
    label.append(words["step-hide"]);
    stepChart = lanes(stepHolder, stepTimelines, { label: words["axis-time"], hide: true, select: (gap) => selectGap(gap, true), step: nextGap });
    box.addEventListener("change", () => stepChart.hide(box.checked));
    const length = (item) => data.gaps[item.bar[GAP]].ns;
    const longest = stepChart.drawn.filter((item) => data.gaps[item.bar[GAP]]).reduce((a, b) => (!a || length(b) > length(a) ? b : a), null);
    selectGap(selectedGap >= 0 ? selectedGap : longest ? longest.bar[GAP] : 0, false);
  }
  if (stepHolder && stepTimelines.length) drawStep();
  document.querySelectorAll('tr[id^="gap="]').forEach((row) => {
    row.addEventListener("click", () => selectGap(Number(row.id.slice(4)), true));
  });

  // ---- page 3
  const loaderHolder = document.getElementById("loader-lanes");
  const loaderTimelines = data.timelines.filter((timeline) => timeline.which === "loader");
  function drawLoader() {
    loaderHolder.replaceChildren();
    lanes(loaderHolder, loaderTimelines, { label: words["axis-time"], hide: false });
  }
  if (loaderHolder && loaderTimelines.length) drawLoader();

  const curveHolder = document.getElementById("curve");
  function drawCurve() {
    curveHolder.replaceChildren();
    const width = Math.min(720, Math.max(300, curveHolder.clientWidth)), height = 260, left = 64, bottom = 40;
    const svg = d3.select(curveHolder).append("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("height", height).style("max-width", width + "px");
    const most = Math.max(d3.max(data.curve, (p) => p[0]), data.cores || 0);
    const x = d3.scaleLinear([0, most + 1], [left, width - 16]);
    const y = d3.scaleLinear([0, d3.max(data.curve, (p) => p[3])], [height - bottom, 14]).nice();
    svg.append("path").attr("class", "spread").attr("d", d3.area().x((p) => x(p[0])).y0((p) => y(p[2])).y1((p) => y(p[3]))(data.curve));
    svg.append("path").attr("class", "curve").attr("d", d3.line().x((p) => x(p[0])).y((p) => y(p[1]))(data.curve));
    if (data.cores > 0) {
      svg.append("line").attr("class", "mark").attr("x1", x(data.cores)).attr("x2", x(data.cores)).attr("y1", 14).attr("y2", height - bottom);
      svg.append("text").attr("class", "quiet").attr("x", x(data.cores) - 5).attr("y", 24).attr("text-anchor", "end").text(words["axis-cores"]);
    }
    data.curve.filter((p) => p[4]).forEach((p) => {
      svg.append("circle").attr("cx", x(p[0])).attr("cy", y(p[1])).attr("r", 6).attr("fill", "var(--ink)");
      svg.append("text").attr("x", x(p[0]) + 10).attr("y", y(p[1]) - 6).text(words["axis-now"]);
    });
    const unit = unitOf(y.domain()[1]);
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - bottom})`).call(d3.axisBottom(x).ticks(Math.min(most + 1, 12)).tickFormat(d3.format("d")));
    svg.append("g").attr("class", "axis").attr("transform", `translate(${left},0)`).call(d3.axisLeft(y).ticks(5).tickFormat((ns) => trim(ns / unit[0], 3) + " " + unit[1]));
    svg.append("text").attr("class", "quiet").attr("x", width - 16).attr("y", height - 6).attr("text-anchor", "end").text(words["col-workers"]);
  }
  if (curveHolder && data.curve.length) drawCurve();

  // ---- page 5: one dot a step, on a canvas (a job has many steps)
  const dotsHolder = document.getElementById("dots");
  const INDEX = 0, AT = 1, LENGTH = 2, WINDOW = 3, WAIT = 4, MARK = 5;
  function drawDots() {
    dotsHolder.replaceChildren();
    const width = Math.max(300, dotsHolder.clientWidth), height = 280, left = 66, right = 12, bottom = 36, top = 12;
    const canvas = dotsHolder.appendChild(document.createElement("canvas"));
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", words["axis-step-time"]);
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

  // ---- anchors: #gap=37 opens the same view
  function follow() {
    const match = /^#gap=(\d+)$/.exec(location.hash);
    if (!match) return;
    selectGap(Number(match[1]), false);
    const section = document.getElementById("step");
    if (section) section.scrollIntoView();
  }
  addEventListener("hashchange", follow);
  follow();

  // ---- width changes
  let waiting = 0, drawnWidth = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === drawnWidth) return;
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      drawnWidth = innerWidth;
      if (stepChart) drawStep();
      if (loaderHolder && loaderTimelines.length) drawLoader();
      if (curveHolder && data.curve.length) drawCurve();
      if (dotsHolder && data.steps.length) drawDots();
    }, 150);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (dotsHolder && data.steps.length) drawDots(); });
  document.documentElement.setAttribute("data-ready", "");
})();

// Page 3: ten batches by worker and stage; step time against num_workers.

const loaderHolder = document.getElementById("loader-lanes");
const loaderTimelines = data.timelines.filter((timeline) => timeline.which === "loader");
function drawLoader() {
  loaderHolder.replaceChildren();
  lanes(loaderHolder, loaderTimelines, { label: words["axis-loader-time"], axis: words["axis-loader-time"], hide: false });
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

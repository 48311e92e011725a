// What all drawings share: the data block, numbers as the static page writes them, the tip.
const data = JSON.parse(document.getElementById("data").textContent);
const words = data.words;
document.documentElement.classList.add("script");

// ---- numbers, as the static page writes them
function trim(value, decimals) { return String(Number(value.toFixed(decimals))); }
const units = [[1, "ns"], [1e3, "us"], [1e6, "ms"], [1e9, "s"], [60e9, "min"], [3600e9, "h"]];
const limits = [999.5, 999.5e3, 999.5e6, 180e9, 180 * 60e9, Infinity];
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

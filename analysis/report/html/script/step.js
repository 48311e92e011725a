// Page 2: a typical and a worst step; one of the longest waits is selected.

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
  stepChart = lanes(stepHolder, stepTimelines, { label: words["step-label"], axis: words["axis-time"], hide: true, select: (gap) => selectGap(gap, true), step: nextGap });
  box.addEventListener("change", () => stepChart.hide(box.checked));
  const length = (item) => data.gaps[item.bar[GAP]].ns;
  const longest = stepChart.drawn.filter((item) => data.gaps[item.bar[GAP]]).reduce((a, b) => (!a || length(b) > length(a) ? b : a), null);
  selectGap(selectedGap >= 0 ? selectedGap : longest ? longest.bar[GAP] : 0, false);
}
if (stepHolder && stepTimelines.length) drawStep();
document.querySelectorAll('tr[id^="gap="]').forEach((row) => {
  row.addEventListener("click", (event) => {
    if (!event.target.closest("a")) selectGap(Number(row.id.slice(4)), true);
  });
});

// Last: anchors, changes of width and colour scheme.

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

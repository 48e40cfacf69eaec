// Opens the section that a link points to, and all sections before printing.
const open = () => {
  const chosen = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let around = chosen; around; around = around.parentElement) {
    if (around.tagName === "DETAILS") around.open = true;
  }
  if (chosen?.tagName === "DETAILS") chosen.querySelector("summary").focus();
};
// Scrolls each graph to its slowest stage, if that is not in sight.
const reveal = () => {
  for (const graph of document.querySelectorAll(".graph")) {
    const boxes = [...graph.querySelectorAll(".slowest rect")].map((rect) => rect.getBoundingClientRect());
    const box = boxes.find((each) => each.width);
    if (!box) continue;
    const around = graph.getBoundingClientRect();
    graph.scrollLeft = Math.max(0, box.right + 12 - around.right);
    graph.scrollTop = Math.max(0, box.bottom + 12 - around.bottom);
  }
};
addEventListener("hashchange", open);
addEventListener("DOMContentLoaded", reveal);
addEventListener("DOMContentLoaded", open);
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => (d.open = true)));
// Tells an outer page, such as a notebook, how high this page is.
const report = () => parent.postMessage({ height: Math.ceil(document.body.getBoundingClientRect().height) }, "*");
if (parent !== window) addEventListener("DOMContentLoaded", () => new ResizeObserver(report).observe(document.body));

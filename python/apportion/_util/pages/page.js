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
    const box = graph.querySelector(".slowest rect")?.getBBox();
    if (!box) continue;
    graph.scrollLeft = Math.max(0, box.x + box.width + 12 - graph.clientWidth);
    graph.scrollTop = Math.max(0, box.y + box.height + 12 - graph.clientHeight);
  }
};
addEventListener("hashchange", open);
addEventListener("DOMContentLoaded", reveal);
addEventListener("DOMContentLoaded", open);
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => (d.open = true)));

// Timelines: a stage is named at the pointer, and a range that is dragged over is zoomed into.
const timeline = (figure) => {
  const plot = figure.querySelector("svg"), axis = figure.querySelector(".axis");
  const span = Number(figure.dataset.span), stages = JSON.parse(figure.dataset.stages);
  const mark = plot.appendChild(document.createElementNS(plot.namespaceURI, "path"));
  const text = document.createElement("p"), reset = document.createElement("button");
  let from = 0, to = span, at = 0, dragged = null;
  const limited = (time) => Math.min(Math.max(time, 0), span);
  const draw = (first, last) =>
    mark.setAttribute("d", `M${(1000 * first) / span} 0H${(1000 * last) / span}V100H${(1000 * first) / span}z`);
  const point = (time) => {
    at = limited(time);
    const running = stages.filter(([, first, last]) => first <= at && at <= last).map(([name]) => name);
    const more = running.length > 5 ? `; ${running.length - 5} more` : "";
    text.textContent = `At ${(at / 1000).toFixed(3)} s: ${running.slice(0, 5).join("; ") || "no stage"}${more}`;
    plot.setAttribute("aria-valuenow", at);
    plot.setAttribute("aria-valuetext", text.textContent);
    draw(dragged ?? at, at);
  };
  // Returns the same labels as `ticks` in plots.py.
  const labels = () => {
    const rough = Math.max((to - from) / 6, 1), power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((factor) => power * factor >= rough);
    const digits = Math.max(0, 3 - Math.floor(Math.log10(step)));
    const times = Array.from({ length: 7 }, (_, place) => step * (Math.ceil(from / step) + place));
    return times.filter((time) => time <= from + 0.93 * (to - from)).map((time) => {
      const label = document.createElement("span");
      label.style.left = `${(100 * (time - from)) / (to - from)}%`;
      label.textContent = `${(time / 1000).toFixed(digits)} s`;
      return label;
    });
  };
  const zoom = (first, last) => {
    // A column of the plot is 1/400 of the time.
    const width = Math.min(Math.max(last - first, span / 100), span);
    from = Math.min(Math.max((first + last - width) / 2, 0), span - width);
    to = from + width;
    plot.setAttribute("viewBox", `${(1000 * from) / span} 0 ${(1000 * width) / span} 100`);
    axis.replaceChildren(...labels());
    reset.hidden = width === span;
  };
  const timeOf = (event) => {
    const box = plot.getBoundingClientRect();
    return limited(from + ((to - from) * (event.clientX - box.left)) / box.width);
  };
  const all = () => zoom(0, span);
  plot.addEventListener("pointermove", (event) => point(timeOf(event)));
  plot.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    dragged = timeOf(event);
    plot.setPointerCapture(event.pointerId);
  });
  plot.addEventListener("pointerup", (event) => {
    const [first, last] = [dragged, timeOf(event)].sort((a, b) => a - b);
    const isClick = dragged === null || last - first < (to - from) / 100;
    dragged = null;
    if (!isClick) zoom(first, last);
    point(timeOf(event));
  });
  plot.addEventListener("pointercancel", () => (dragged = null));
  plot.addEventListener("dblclick", all);
  plot.addEventListener("keydown", (event) => {
    const step = (to - from) / 50, half = (to - from) / 4;
    const act = {
      ArrowLeft: () => point(at - step),
      ArrowRight: () => point(at + step),
      Home: () => point(0),
      End: () => point(span),
      "+": () => zoom(at - half, at + half),
      "-": () => zoom(at - 4 * half, at + 4 * half),
      Escape: () => ((dragged = null), all()),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
    if (at < from || at > to) zoom(at - (to - from) / 2, at + (to - from) / 2);
  });
  mark.setAttribute("class", "mark");
  text.textContent = "Point at the plot to see its stages. Drag over a range to zoom in. Keys: arrows, +, - and Esc.";
  reset.textContent = "Show all";
  reset.hidden = true;
  reset.addEventListener("click", all);
  figure.querySelector("figcaption").after(text, reset);
  for (const [name, value] of Object.entries({ role: "slider", tabindex: 0, "aria-valuemin": 0, "aria-valuemax": span, "aria-valuenow": 0 })) {
    plot.setAttribute(name, value);
  }
};
addEventListener("DOMContentLoaded", () => document.querySelectorAll(".timeline").forEach(timeline));

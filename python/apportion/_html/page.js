// Opens the section that a link points to, and all sections before printing.
const open = () => {
  const chosen = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let around = chosen; around; around = around.parentElement) {
    if (around.tagName === "DETAILS") around.open = true;
  }
  if (chosen?.tagName === "DETAILS") chosen.querySelector("summary").focus();
};
addEventListener("hashchange", open);
addEventListener("DOMContentLoaded", open);
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => (d.open = true)));

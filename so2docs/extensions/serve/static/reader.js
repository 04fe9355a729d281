"use strict";
// Apply the chosen theme; by default, follow the system. Runs before the page is drawn.
const root = document.documentElement;
let chosen = null;
try { chosen = localStorage.getItem("theme"); } catch { /* storage is not allowed */ }
if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;

document.addEventListener("DOMContentLoaded", () => {
  const button = document.getElementById("theme");
  button.hidden = false;
  button.addEventListener("click", () => {
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* applies to this page only */ }
  });

  // Filter lists while the user types: in the page if it has the whole list, else on the server.
  const filter = document.querySelector("[data-while-typing]");
  if (filter) {
    const items = [...document.querySelectorAll(".all-tags li, .people li")];
    const isWhole = !document.querySelector(".pager") && !filter.value;
    let waiting = 0;
    filter.addEventListener("input", () => {
      const text = filter.value.trim().toLowerCase();
      if (isWhole) {
        for (const item of items) {
          item.hidden = !item.firstElementChild.textContent.toLowerCase().includes(text);
        }
        return;
      }
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        try { sessionStorage.setItem("typing", filter.id); } catch { /* the field loses focus */ }
        filter.form.requestSubmit();
      }, 400);
    });
    try {
      if (sessionStorage.getItem("typing") === filter.id) {
        sessionStorage.removeItem("typing");
        filter.focus();
        filter.setSelectionRange(filter.value.length, filter.value.length);
      }
    } catch { /* storage is not allowed */ }
  }

  const rows = [...document.querySelectorAll("[data-rows] > li, [data-row]")];
  const target = (row) => row.querySelector("h3 a") || row;
  let pending = "";
  const go = (step) => {
    const at = rows.findIndex((row) => row.contains(document.activeElement));
    const next = rows[Math.min(Math.max(at + step, 0), rows.length - 1)];
    if (!next) return;
    const element = target(next);
    if (!element.matches("a")) element.tabIndex = -1;
    element.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
    if (next.getBoundingClientRect().height > innerHeight) next.scrollIntoView();
  };
  document.addEventListener("keydown", (event) => {
    const field = document.getElementById("search");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input, textarea, select")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const keys = pending + event.key;
    pending = event.key === "g" ? "g" : "";
    if (event.key === "/" && field && field.offsetParent) { field.focus(); field.select(); }
    else if (event.key === "/" && field) document.querySelector(".find").click();
    else if (event.key === "j") go(1);
    else if (event.key === "k") go(-1);
    else if (keys === "gh") document.querySelector("a.name").click();
    else return;
    event.preventDefault();
  });
});

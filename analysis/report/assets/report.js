"use strict";
// A click on a column's title sorts its table by it, numbers by value; a second click turns the order round.
for (const head of document.querySelectorAll("th")) {
  head.querySelector("button").addEventListener("click", () => {
    const rising = head.getAttribute("aria-sort") !== "ascending";
    const row = head.parentElement;
    for (const other of row.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", rising ? "ascending" : "descending");
    const column = [...row.children].indexOf(head);
    const numbers = head.classList.contains("n");
    // In a column of numbers, texts (a dash, "invalid") stay at the end in both orders.
    const value = (line) => line.children[column].dataset.v ?? (numbers ? null : line.children[column].textContent);
    const body = head.closest("table").tBodies[0];
    const lines = [...body.rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === null || y === null) return (x === null) - (y === null);
      return (numbers ? x - y : x.localeCompare(y, "en", { numeric: true })) * (rising ? 1 : -1);
    });
    body.append(...lines);
  });
}
// A click on a figure shows it as large as the window; another one, or Escape, closes it.
const dialog = document.querySelector("dialog");
for (const button of document.querySelectorAll("figure button")) {
  button.addEventListener("click", () => {
    const large = dialog.querySelector("img");
    const small = button.querySelector("img");
    large.src = small.src;
    large.alt = small.alt;
    dialog.querySelector("p").textContent = small.alt;
    dialog.showModal();
  });
}
dialog.addEventListener("click", () => dialog.close());
// Paper has no arrows to open: print all tables except the run's manifest.
window.addEventListener("beforeprint", () => {
  for (const closed of document.querySelectorAll("details")) closed.open ||= closed.closest("#provenance") === null;
});

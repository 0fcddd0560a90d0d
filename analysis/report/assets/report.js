"use strict";
document.documentElement.classList.add("js");

// A click on a column's title sorts its table by it, numbers by value; a second click turns the order round.
for (const button of document.querySelectorAll("th button")) {
  const head = button.parentElement;
  button.addEventListener("click", () => {
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

// The filters hide rows of tables and marks of figures. What is of no cell, or of no architecture, stays.
const filters = document.querySelector("#filters");
const filtered = document.querySelectorAll("tr[data-arch], tr[data-size], .mark");
function apply() {
  const wanted = [...filters.querySelectorAll("select")].filter((one) => one.value !== "");
  const boxes = [...filters.querySelectorAll("input")];
  const without = new Set(boxes.filter((one) => !one.checked).map((one) => one.value));
  let [shown, rows] = [0, 0];
  for (const one of filtered) {
    const elsewhere = wanted.some(({ dataset, value }) => (one.dataset[dataset.key] ?? value) !== value);
    const names = (one.dataset.arch ?? "").split(" ");
    const off = elsewhere || names.some((name) => without.has(name));
    one.classList.toggle("off", off);
    if (one.tagName === "TR") [shown, rows] = [shown + !off, rows + 1];
  }
  for (const part of document.querySelectorAll(".part")) {
    const own = [...part.querySelectorAll("tbody tr")];
    part.classList.toggle("off", own.length > 0 && own.every((row) => row.classList.contains("off")));
  }
  filters.querySelector("output").textContent = shown === rows ? "" : `${shown} of ${rows} rows`;
}
filters.addEventListener("input", apply);
filters.addEventListener("submit", (event) => event.preventDefault());
filters.hidden = filters.querySelector("select, input") === null;

// A click on a figure shows it as large as the window; another one, or Escape, closes it.
const dialog = document.querySelector("dialog");
for (const small of document.querySelectorAll("figure .drawing")) {
  small.addEventListener("click", () => {
    dialog.querySelector(".drawing").replaceChildren(small.firstElementChild.cloneNode(true));
    dialog.querySelector("p").textContent = small.getAttribute("aria-label");
    dialog.showModal();
  });
}
dialog.addEventListener("click", () => dialog.close());

// A command can be copied; where a browser does not let a page do that, it is selected.
for (const command of document.querySelectorAll("code.command")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(command.textContent);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(command);
    }
  });
  command.after(button);
}

// Links to what a closed arrow hides open it.
addEventListener("hashchange", () => {
  const closed = document.getElementById(location.hash.slice(1))?.closest("details:not([open])");
  if (closed) closed.open = true;
});

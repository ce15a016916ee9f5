"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const compare = (a, b) => {
        const [x, y] = [key(a), key(b)];
        const [u, v] = [Number(x), Number(y)];
        const order = Number.isNaN(u) || Number.isNaN(v) ? x.localeCompare(y) : u - v;
        return down ? -order : order;
      };
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort(compare));
    });
  });
}
const dialog = document.getElementById("zoom");
for (const button of document.querySelectorAll("figure button")) {
  button.addEventListener("click", () => {
    const source = button.querySelector("img");
    const target = dialog.querySelector("img");
    target.src = source.src;
    target.alt = source.alt;
    dialog.showModal();
  });
}

// A table of long texts that does not fit becomes a list of records: name, verdict if there is one, then the other cells
// with the heads of their columns. Without a script it scrolls.
"use strict";

const LONG = 60; // characters from which a cell is a text, and has a line of its own

function asRecords(table) {
  const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
  const rows = [...table.tBodies[0].rows];
  const isLong = (cell) => cell.textContent.length > LONG;
  table.classList.remove("records");
  if (!table.className) table.removeAttribute("class"); // the theme styles tables without a class
  const fits = table.scrollWidth <= table.parentElement.clientWidth + 1;
  if (fits || heads.length < 3 || !rows.some((row) => [...row.cells].some(isLong))) return;
  table.classList.add("records");
  for (const row of rows) {
    const cells = [...row.cells];
    row.classList.toggle("part", cells.slice(1).every((cell) => !cell.textContent.trim()));
    cells.forEach((cell, i) => {
      cell.dataset.head = heads[i] || "";
      cell.classList.toggle("long", isLong(cell));
    });
  }
}

const arrange = () => document.querySelectorAll(".md-typeset table:not([class]), .md-typeset table.records").forEach(asRecords);
let width = window.innerWidth;
window.addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; arrange(); } });
arrange();

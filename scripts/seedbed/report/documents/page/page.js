"use strict";

// The page can be read without this script; it adds sorting, copying, a choice of theme, and paper.

const NUMBER = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;
const NOTHING = "–";

// --- tables ---

// What a cell is sorted by and copied as.
function valueOf(cell) {
  if ("value" in cell.dataset) return cell.dataset.value;
  const text = cell.textContent.trim();
  return text === NOTHING ? "" : text;
}

// Numbers by size and before texts; empty cells at the end, whichever the direction.
function compare(a, b, direction) {
  if (a === "" || b === "") return (a === "") - (b === "");
  const numbers = NUMBER.test(a) - NUMBER.test(b);
  if (numbers) return -direction * numbers;
  return direction * (NUMBER.test(a) ? Number(a) - Number(b) : a.localeCompare(b, "en", { numeric: true }));
}

// Upwards, then downwards, then in the order in which the page was made.
function sortBy(table, header, original) {
  const before = header.ariaSort;
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  if (before === "descending") return table.tBodies[0].append(...original);
  const direction = before === "ascending" ? -1 : 1;
  const rows = [...table.tBodies[0].rows];
  const keys = new Map(rows.map((row) => [row, valueOf(row.cells[header.cellIndex])]));
  rows.sort((a, b) => compare(keys.get(a), keys.get(b), direction));
  header.ariaSort = direction === 1 ? "ascending" : "descending";
  table.tBodies[0].append(...rows);
}

function makeSortable(table) {
  const original = [...table.tBodies[0].rows];
  if (original.length < 3) return;
  for (const header of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    button.addEventListener("click", () => sortBy(table, header, original));
    header.append(button);
  }
}

// The columns that a cell becomes when copied: more than one where its header names them.
function columnsOf(cell, header) {
  if (cell.dataset.copied) return JSON.parse(cell.dataset.copied);
  return header.dataset.copied ? JSON.parse(header.dataset.copied).fill("") : [valueOf(cell)];
}

function toCsv(table) {
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const headers = table.tHead.rows[0].cells;
  const line = (row) => [...row.cells].flatMap((cell, index) => columnsOf(cell, headers[index]));
  return [...table.rows].map((row) => line(row).map(quoted).join(",") + "\n").join("");
}

// A page opened as a file may not be allowed to use the clipboard's own interface.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    document.body.append(area);
    const focused = document.activeElement;
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    focused?.focus();
    return done;
  }
}

function makeCopyable(table, tools) {
  const status = tools.querySelector("[role=status]");
  tools.hidden = false;
  tools.querySelector("button").addEventListener("click", async () => {
    const rows = table.tBodies[0].rows.length;
    const done = await copy(toCsv(table));
    status.textContent = done ? `Copied, ${rows} ${rows === 1 ? "row" : "rows"}` : "Not copied: select the table instead";
    setTimeout(() => (status.textContent = ""), 4000);
  });
}

for (const block of document.querySelectorAll("div.table")) {
  const table = block.querySelector("table");
  makeSortable(table);
  makeCopyable(table, block.querySelector(".tools"));
}

// --- what scrolls ---

// Only what reaches beyond its region is a stop for the keyboard, and a landmark.
const regions = new ResizeObserver((entries) => {
  for (const region of new Set(entries.map((entry) => entry.target.closest(".scroll")))) {
    const cut = region.scrollWidth > region.clientWidth || region.scrollHeight > region.clientHeight;
    if (cut) region.tabIndex = 0;
    else region.removeAttribute("tabindex");
    region.setAttribute("role", cut ? "region" : "group");
  }
});
for (const region of document.querySelectorAll(".scroll")) {
  regions.observe(region);
  if (region.firstElementChild) regions.observe(region.firstElementChild);
}

// --- theme ---

const themes = document.getElementById("theme");
const root = document.documentElement;
const dark = () => root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
const nameTheme = () => {
  themes.textContent = dark() === "dark" ? "Light" : "Dark";
  themes.ariaLabel = `${themes.textContent} theme`;
};
themes.addEventListener("click", () => {
  root.dataset.theme = dark() === "dark" ? "light" : "dark";
  nameTheme();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);
nameTheme();
themes.hidden = false;

// --- contents and paper ---

// On a narrow screen the contents would push the answer out of sight.
const contents = document.querySelector("nav details");
if (contents && matchMedia("(max-width: 70rem)").matches) contents.open = false;

// A link to what is folded away opens it; not every browser does so itself.
function reveal() {
  let part = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (const target = part; part; part = part.parentElement) {
    if (part.tagName !== "DETAILS" || part.open) continue;
    part.open = true;
    target.scrollIntoView();
  }
}
addEventListener("hashchange", reveal);
reveal();

// Paper shows what is folded away.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("main details:not([open])")];
  for (const details of opened) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of opened) details.open = false;
});

// The playground: a text with colours and completion, and what the judges say of it at each key stroke.
const root = document.getElementById("stream-playground");
const make = (tag, given = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};
const FIRST = `# A copy uploads what a fill wrote. Which line is missing?
submit q1
    vkCmdFillBuffer: CLEAR_TRANSFER_WRITE a
    vkCmdCopyBuffer: COPY_TRANSFER_READ a; COPY_TRANSFER_WRITE b
host waits
`;
const MOST_OFFERED = 8;

const colours = make("pre", { class: "pg-colours", "aria-hidden": "true" });
const area = make("textarea", {
  class: "pg-text", spellcheck: "false", autocomplete: "off", autocapitalize: "off", wrap: "off",
  "aria-label": "Stream as text, or a trace", "aria-describedby": "pg-fault", role: "combobox",
  "aria-expanded": "false", "aria-controls": "pg-offers", "aria-autocomplete": "list",
});
const offers = make("ul", { id: "pg-offers", class: "pg-offers", role: "listbox", "aria-label": "Completions", hidden: "" });
const fault = make("p", { id: "pg-fault", class: "pg-fault", role: "status" });
const verdict = make("p", { class: "pg-verdict", role: "status" }, "Loading the judges …");
const findings = make("ol", { class: "pg-findings", "aria-label": "Findings" });
const changes = make("ul", { class: "pg-changes", "aria-label": "What mends it, and what is too wide" });
const pairs = make("pre", { class: "pg-pairs", tabindex: "0", "aria-label": "Explanation of the command under the cursor" });
const picture = make("div", { class: "pg-picture", tabindex: "0", role: "group", "aria-label": "The order as a picture" });
const link = make("button", { type: "button", class: "md-button" }, "Copy a link to this text");
root.replaceChildren(
  make("div", { class: "pg-editor" }, colours, area, offers), fault,
  make("div", { class: "pg-bar" }, verdict, link), findings, changes,
  make("h2", {}, "Why"), pairs, make("h2", {}, "Order"), picture,
);

let words = { event: [], command: [], access: [], stage: [], mask: [], flag: [], layout: [] };
let said = null;
const escaped = (text) => text.replace(/[&<>]/g, (each) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[each]);

// -- colours --------------------------------------------------------------------------------------------------------------

const kind_of = (word) => {
  if (/^vkCmd\w+$/.test(word)) return "name";
  if (words.access.includes(word)) return "access";
  if (words.stage.includes(word)) return "stage";
  if (words.mask.includes(word)) return "mask";
  if (words.layout.includes(word)) return "name";
  if (words.event.includes(word) || words.command.includes(word)) return "word";
  return /^(?:signal|wait|fence|family|waits|reads|writes|sets|resets|signals|region|views)$/.test(word) ? "word" : "";
};
const coloured_line = (line, number) => {
  if (line.trim().startsWith("#")) return `<i>${escaped(line)}</i>`;
  const at = said?.error?.line === number ? said.error.column - 1 : -1;
  let html = "", done = 0, marked = false;
  for (const found of line.matchAll(/[A-Za-z_][A-Za-z0-9_]*/g)) {
    html += escaped(line.slice(done, found.index));
    const kind = kind_of(found[0]);
    const wrong = !marked && at >= 0 && found.index + found[0].length > at;
    marked ||= wrong;
    html += kind || wrong ? `<b class="${kind}${wrong ? " wrong" : ""}">${found[0]}</b>` : found[0];
    done = found.index + found[0].length;
  }
  html += escaped(line.slice(done));
  return at >= 0 && !marked ? `<b class="wrong">${html || " "}</b>` : html;
};
const paint = () => {
  const found = new Set((said?.findings ?? []).flatMap((each) => each.accesses.map((access) => access.line)));
  const lines = area.value.split("\n").map((line, at) => {
    const html = coloured_line(line, at + 1);
    return found.has(at + 1) ? `<span class="found">${html}</span>` : html;
  });
  colours.innerHTML = `${lines.join("\n")}\n`;
  area.style.height = `${Math.max(8, lines.length + 1) * 1.5}em`;
  scroll();
};
const scroll = () => { colours.scrollLeft = area.scrollLeft; colours.scrollTop = area.scrollTop; };

// -- completion -----------------------------------------------------------------------------------------------------------

let chosen = -1;
const word_before = () => /[A-Za-z_0-9]*$/.exec(area.value.slice(0, area.selectionStart))[0];
const candidates = () => {
  const line = area.value.slice(area.value.lastIndexOf("\n", area.selectionStart - 1) + 1, area.selectionStart);
  const word = word_before();
  if (!word || line.trim().startsWith("#")) return [];
  const before = line.slice(0, line.length - word.length);
  const of_line = !before.trim() && !/^\s/.test(line) ? words.event : null;
  const scoped = /->$/.test(before) ? words.layout : /\/(?:[A-Z0-9_]+\|)*$/.test(before) ? words.mask : /[|>@]\s*$/.test(before) || /\b(?:barrier|set1?|wait1?|reset)\b/.test(before) ? words.stage : null;
  const known = of_line ?? scoped ?? [...words.command, ...words.access, ...words.flag];
  const begins = known.filter((each) => each !== word && each.toLowerCase().startsWith(word.toLowerCase()));
  const holds = known.filter((each) => each.toLowerCase().includes(word.toLowerCase()) && !begins.includes(each) && each !== word);
  return [...begins, ...holds].slice(0, MOST_OFFERED);
};
const offer = () => {
  const found = candidates();
  chosen = -1;
  offers.replaceChildren(...found.map((each, at) => make("li", { role: "option", id: `pg-offer-${at}`, "aria-selected": "false" }, each)));
  offers.hidden = !found.length;
  area.setAttribute("aria-expanded", String(!!found.length));
  area.removeAttribute("aria-activedescendant");
  const before = area.value.slice(0, area.selectionStart).split("\n");
  offers.style.top = `${before.length * 1.5 + 0.6}em`;
  offers.style.left = `${Math.max(0, before.at(-1).length - word_before().length) * 0.6 + 0.8}em`;
};
const choose = (at) => {
  chosen = (at + offers.children.length) % offers.children.length;
  [...offers.children].forEach((each, number) => each.setAttribute("aria-selected", String(number === chosen)));
  area.setAttribute("aria-activedescendant", `pg-offer-${chosen}`);
};
const take = (at) => {
  const end = area.selectionStart;
  area.setRangeText(offers.children[at].textContent, end - word_before().length, end, "end");
  offers.hidden = true;
  area.setAttribute("aria-expanded", "false");
  changed();
};
const margin = (event) => { // Enter keeps the margin, and begins one below a submit; Backspace in it takes it away
  const before = area.value.slice(0, area.selectionStart), line = before.slice(before.lastIndexOf("\n") + 1);
  if (area.selectionStart !== area.selectionEnd) return false;
  if (event.key === "Enter") {
    const inside = /^(?:submit|next|bind)\b/.test(line) ? "    " : /^\s*/.exec(line)[0];
    area.setRangeText(`\n${inside}`, before.length, before.length, "end");
  } else if (event.key === "Backspace" && /^\s+$/.test(line)) area.setRangeText("", before.length - line.length, before.length, "end");
  else return false;
  offers.hidden = true;
  changed();
  return true;
};
area.addEventListener("keydown", (event) => {
  const plain = offers.hidden || (event.key === "Enter" && chosen < 0);
  if (plain && margin(event)) event.preventDefault();
  if (offers.hidden) return;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") choose(chosen + (event.key === "ArrowDown" ? 1 : chosen < 0 ? 0 : -1));
  else if ((event.key === "Enter" && chosen >= 0) || event.key === "Tab") take(Math.max(0, chosen));
  else if (event.key === "Escape") { offers.hidden = true; area.setAttribute("aria-expanded", "false"); }
  else return;
  event.preventDefault();
});
offers.addEventListener("mousedown", (event) => {
  const at = [...offers.children].indexOf(event.target);
  if (at >= 0) { event.preventDefault(); take(at); }
});

// -- the judges -----------------------------------------------------------------------------------------------------------

const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
const begun = performance.now();
let asked = 0, busy = false, waits = false;
const line_now = () => area.value.slice(0, area.selectionStart).split("\n").length;
const ask = () => {
  if (busy) { waits = true; return; }
  busy = true;
  asked += 1;
  worker.postMessage({ id: asked, text: area.value, line: line_now() });
};
worker.addEventListener("message", ({ data }) => {
  if (data.words) {
    words = data.words;
    paint();
    return;
  }
  if (data.failed) {
    verdict.textContent = `The judges cannot be loaded: ${data.failed}`;
    return;
  }
  busy = false;
  if (waits) { waits = false; ask(); }
  root.dataset.took = data.took.toFixed(1);
  if (!root.dataset.cold) root.dataset.cold = (performance.now() - begun).toFixed(0);
  root.dataset.answered = data.id;
  show(data.said);
});
worker.addEventListener("error", (event) => { verdict.textContent = `The judges cannot be loaded: ${event.message ?? "no worker here"}`; });

const go_to = (line) => {
  const at = area.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  area.focus();
  area.setSelectionRange(at, at);
  ask();
};
const line_button = (line) => {
  const button = make("button", { type: "button", class: "pg-line" }, `line ${line}`);
  button.addEventListener("click", () => go_to(line));
  return button;
};
const access_of = (each) => (each.line ? [`${each.command} ${each.access} in `, line_button(each.line)] : [`${each.command} ${each.access}`]);
const finding_item = (each) => make("li", {},
  make("strong", {}, each.hazard), each.advice ? " (advice)" : each.uncounted ? ` (not counted: ${each.uncounted})` : "", ` on ${each.resource}: `, ...access_of(each.accesses[0]), " after ", ...access_of(each.accesses[1]),
  make("br"), `missing: ${each.missing}`, make("br"), "rule: ", make("a", { href: `rules.html#${each.rule}` }, each.rule));
const change_item = (word, each) => {
  const button = make("button", { type: "button", class: "pg-apply" }, "apply");
  button.addEventListener("click", () => { area.value = each.text; changed(); });
  return make("li", { class: word }, `${word === "mends" ? "mends it" : "too wide"}: `, make("code", {}, each.what), " ", button);
};
const show = (answer) => {
  said = answer;
  paint();
  area.setAttribute("aria-invalid", String(!!answer.error));
  if (answer.error) {
    fault.textContent = `line ${answer.error.line}, column ${answer.error.column}: ${answer.error.why}`;
    verdict.textContent = "not judged";
    verdict.className = "pg-verdict unknown";
    root.classList.add("pg-stale");
    return;
  }
  fault.textContent = "";
  root.classList.remove("pg-stale");
  const left_out = answer.findings.filter((each) => each.uncounted).length;
  const count = answer.findings.length - left_out;
  const uncounted = left_out ? `; not counted (strict): ${left_out}` : "";
  const unknown = answer.unmodelled.length ? `; not modelled: ${answer.unmodelled.join(", ")}` : "";
  verdict.textContent = `${answer.verdict}${count ? `: ${count} group${count > 1 ? "s" : ""} of findings` : ""}${uncounted}; the second judge ${answer.model}${unknown}`;
  verdict.className = `pg-verdict ${answer.verdict}`;
  findings.replaceChildren(...answer.findings.map(finding_item));
  changes.replaceChildren(...answer.mends.map((each) => change_item("mends", each)), ...answer.wider.map((each) => change_item("wider", each)));
  pairs.textContent = answer.pairs.join("\n\n") || "Put the cursor on a command that shares memory with another one.";
  picture.innerHTML = answer.svg;
};

// -- the text, in the page and in its address ------------------------------------------------------------------------------

const address = () => `#${encodeURIComponent(area.value)}`;
const changed = () => {
  history.replaceState(null, "", address());
  paint();
  ask();
};
const from_address = () => {
  let text = FIRST;
  try { text = decodeURIComponent(location.hash.slice(1)) || FIRST; } catch { /* an address that was cut */ }
  if (text !== area.value) { area.value = text; paint(); ask(); }
};
area.addEventListener("input", () => { changed(); offer(); });
area.addEventListener("scroll", scroll);
area.addEventListener("blur", () => { offers.hidden = true; });
let line_before = 0;
document.addEventListener("selectionchange", () => {
  if (document.activeElement !== area || line_now() === line_before) return;
  line_before = line_now();
  ask();
});
addEventListener("hashchange", from_address);
link.addEventListener("click", async () => {
  await navigator.clipboard?.writeText(new URL(address(), location.href).href);
  link.textContent = "Copied";
});
from_address();

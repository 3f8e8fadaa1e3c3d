// The rows of a run: what is chosen of them, and a list that draws only those in sight.
"use strict";

const vkharness = {
  rows: [],
  shown: [],
  choice: { text: "", family: "", device: "", hazard: "", state: "", order: "state", row: "" },
};

{
  const ROW_HEIGHT = 46;
  const BEYOND = 6; // rows that are drawn above and below what is in sight
  const FIELDS = ["id", "family", "scenario", "variant", "device", "state", "hazards", "seconds", "title", "said", "file"];
  const WORST_FIRST = ["Crash", "DeviceLost", "Timeout", "Missing", "Fail", "UnexpectedImprovement(Pass)",
    "UnexpectedImprovement(Skip)", "UnexpectedImprovement(Fail)", "Flake", "KnownFlake", "ExpectedFail", "Skip", "Pass"];
  const KIND = { Pass: "good", ExpectedFail: "good", Skip: "skip", Flake: "flake", KnownFlake: "flake" };

  // An element. `parts` are elements and strings; a string is text, never markup.
  vkharness.make = (tag, properties = {}, ...parts) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name === "class") element.className = value;
      else if (name === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
      else if (name in element && typeof value !== "string") element[name] = value;
      else element.setAttribute(name, value);
    }
    element.append(...parts);
    return element;
  };
  vkharness.at = (id) => document.getElementById(id);
  vkharness.kind_of = (state) => KIND[state] || "bad";
  vkharness.rank_of = (state) => (WORST_FIRST.indexOf(state) + WORST_FIRST.length + 1) % (WORST_FIRST.length + 1);
  vkharness.words_of = (name) => name.replaceAll("_", " ");

  vkharness.row_of = (values) => {
    const row = Object.fromEntries(FIELDS.map((name, at) => [name, values[at]]));
    row.searched = [row.family, row.scenario, row.variant, row.device, row.title, row.said].join(" ").replaceAll("_", " ").toLowerCase();
    return row;
  };

  const fits = (row, choice, words) =>
    (!choice.state || row.state === choice.state) &&
    (!choice.family || row.family === choice.family) &&
    (!choice.device || row.device === choice.device) &&
    (!choice.hazard || (choice.hazard === "none" ? !row.hazards.length : row.hazards.includes(choice.hazard))) &&
    words.every((word) => row.searched.includes(word));

  const by_name = (one, other) =>
    one.family.localeCompare(other.family) || one.scenario.localeCompare(other.scenario) ||
    (other.variant === "whole") - (one.variant === "whole") ||
    one.variant.localeCompare(other.variant) || one.device.localeCompare(other.device);
  const ORDERS = {
    name: by_name,
    state: (one, other) => vkharness.rank_of(one.state) - vkharness.rank_of(other.state) || by_name(one, other),
    seconds: (one, other) => other.seconds - one.seconds || by_name(one, other),
  };

  // Chooses the rows that the filters leave, in order, and shows them from the top.
  vkharness.filter = () => {
    const { choice } = vkharness;
    const words = choice.text.replaceAll("_", " ").toLowerCase().split(/\s+/).filter(Boolean);
    vkharness.shown = vkharness.rows.filter((row) => fits(row, choice, words)).sort(ORDERS[choice.order] || by_name);
    const { length } = vkharness.shown;
    vkharness.at("count").textContent = length === vkharness.rows.length ? `${length} rows` : `${length} of ${vkharness.rows.length} rows`;
    vkharness.at("space").style.height = `${length * ROW_HEIGHT}px`;
    vkharness.at("list").scrollTop = 0;
    vkharness.draw_list();
  };

  const element_of = (row, at) => vkharness.make(
    "div",
    { class: "row", role: "option", id: `row-${at}`, title: row.id, "aria-selected": String(row.id === vkharness.choice.row),
      style: `top:${at * ROW_HEIGHT}px`, on: { click: () => vkharness.choose(row.id) } },
    vkharness.make("div", {},
      vkharness.make("span", { class: "name" }, `${row.family} / ${vkharness.words_of(row.scenario)}`),
      vkharness.make("span", { class: `state ${vkharness.kind_of(row.state)}` }, row.state)),
    vkharness.make("div", {},
      vkharness.make("span", { class: "second" }, vkharness.words_of(row.variant), row.hazards.length ? ` · ${row.hazards.join(", ")}` : ""),
      vkharness.make("span", { class: "where" }, row.device)),
  );

  vkharness.draw_list = () => {
    const list = vkharness.at("list");
    const first = Math.max(0, Math.floor(list.scrollTop / ROW_HEIGHT) - BEYOND);
    const last = Math.min(vkharness.shown.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW_HEIGHT) + BEYOND);
    vkharness.at("space").replaceChildren(...vkharness.shown.slice(first, last).map((row, at) => element_of(row, first + at)));
    const chosen = vkharness.shown.findIndex((row) => row.id === vkharness.choice.row);
    if (chosen >= first && chosen < last) list.setAttribute("aria-activedescendant", `row-${chosen}`);
    else list.removeAttribute("aria-activedescendant");
  };

  // Moves the list so that the chosen row is in sight.
  vkharness.show_chosen = () => {
    const list = vkharness.at("list");
    const at = vkharness.shown.findIndex((row) => row.id === vkharness.choice.row);
    if (at >= 0) {
      const top = at * ROW_HEIGHT;
      if (top < list.scrollTop) list.scrollTop = top;
      else if (top + ROW_HEIGHT > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW_HEIGHT - list.clientHeight;
    }
    vkharness.draw_list();
  };

  // The row `by` places further down, or the first or last one.
  vkharness.step = (by) => {
    const { shown } = vkharness;
    if (!shown.length) return;
    const at = shown.findIndex((row) => row.id === vkharness.choice.row);
    const next = at < 0 ? (by < 0 ? shown.length - 1 : 0) : Math.min(shown.length - 1, Math.max(0, at + by));
    vkharness.choose(shown[next].id);
  };
}

// The page: what it was given, what is chosen (also in its address, so that a row can be linked), and the keys.
"use strict";

{
  const { make, at, choice } = vkharness;
  const FILTERS = ["text", "family", "device", "hazard", "order"];
  const NAMES = [...FILTERS, "state", "row"];
  const EARLIEST = { order: "state" }; // what a filter is when nobody chose
  const MEANING = {
    Pass: "Every judge agrees with what the scenario claims.", Fail: "A judge disagrees, or the scenario itself is wrong.",
    Skip: "The device lacks what the row needs.", Crash: "The driver's process ended.", Timeout: "No answer within the time limit.",
    DeviceLost: "The driver answered VK_ERROR_DEVICE_LOST.", Flake: "Attempts of this run differ.",
    Missing: "The row was selected, and the run ended without it.", KnownFlake: "Did not pass, and stands in the list of flakes.",
    ExpectedFail: "Did what the list of failures says.", "UnexpectedImprovement(Pass)": "The list of failures says otherwise, and the row passed.",
    "UnexpectedImprovement(Skip)": "The list of failures says otherwise, and the row was skipped.",
    "UnexpectedImprovement(Fail)": "The list says crash, time-out or device lost, and the row only failed.",
  };
  const scenarios = new Map(); // number of a data file to its data, once it is read
  const asked = new Set();

  vkharness.take_run = (data) => {
    vkharness.rows = data.rows.map(vkharness.row_of);
    vkharness.by_id = new Map(vkharness.rows.map((row) => [row.id, row]));
    for (const [name, values] of [["family", (row) => [row.family]], ["device", (row) => [row.device]], ["hazard", (row) => row.hazards]]) {
      const known = [...new Set(vkharness.rows.flatMap(values))].sort();
      at(name).append(...known.map((value) => make("option", { value }, value)));
    }
    draw_overview(data);
    read_address();
  };

  vkharness.take_scenario = (number, data) => {
    scenarios.set(number, data);
    for (const row of Object.values(data.rows)) {
      for (const record of row.pictures) for (const each of record.surfaces) each.is_image = !each.what.startsWith("buffer") && !each.what.startsWith("host");
    }
    const row = vkharness.by_id.get(choice.row);
    if (row && row.file === number) show_row();
  };

  const counted = (rows, key) => {
    const counts = new Map();
    for (const row of rows) counts.set(key(row), (counts.get(key(row)) || 0) + 1);
    return counts;
  };

  const states_of = (rows) => [...counted(rows, (row) => row.state)].sort((one, other) => vkharness.rank_of(one[0]) - vkharness.rank_of(other[0]));

  const draw_overview = ({ changes, stories }) => {
    const { rows } = vkharness;
    const states = states_of(rows);
    at("chips").replaceChildren(...states.map(([state, count]) => make("button",
      { class: `chip ${vkharness.kind_of(state)}`, type: "button", "data-state": state, on: { click: () => set({ state: choice.state === state ? "" : state }) } }, `${count} ${state}`)));
    const bad = rows.filter((row) => vkharness.kind_of(row.state) === "bad").length;
    const seconds = rows.reduce((sum, row) => sum + row.seconds, 0);
    at("totals").replaceChildren(make("span", { class: bad ? "bad" : "good" }, bad ? `${bad} of ${rows.length} rows need a look` : `All ${rows.length} rows are as they should be`),
      make("div", { class: "sub" }, `${seconds.toFixed(0)} s of rows, added up`));
    at("stories").replaceChildren(...draw_stories(stories));
    at("changes").replaceChildren(...draw_changes(changes));
    at("families").replaceChildren(draw_families());
    at("legend").replaceChildren(...states.flatMap(([state]) => [make("dt", { class: vkharness.kind_of(state) }, state), make("dd", {}, MEANING[state] || "")]));
  };

  const draw_stories = (stories) => {
    if (!stories.length) return [];
    return [make("ol", {}, ...stories.map(([cause, count, first]) => make("li", {}, `${cause}: ${count} ${count === 1 ? "row, " : "rows, first "}`,
      make("button", { type: "button", on: { click: () => vkharness.choose(first) } }, first))))];
  };

  const draw_changes = (changes) => {
    if (changes === null) return [make("p", {}, "Nothing was compared: the run had no --vk-baseline, and the page was made without --since.")];
    if (!changes.length) return [make("p", { class: "good" }, "None.")];
    return [...counted(changes, (each) => each.kind)].map(([kind, count]) => make("div", {}, make("h3", {}, `${kind}: ${count}`),
      make("ul", {}, ...changes.filter((each) => each.kind === kind).map((each) => make("li", {},
        vkharness.by_id.has(each.row) ? make("button", { type: "button", on: { click: () => vkharness.choose(each.row) } }, each.row) : each.row, each.text ? `: ${each.text}` : "")))));
  };

  const draw_families = () => {
    const { rows } = vkharness;
    const devices = [...new Set(rows.map((row) => row.device))].sort(), families = [...new Set(rows.map((row) => row.family))].sort();
    const cells = new Map();
    for (const row of rows) {
      const key = JSON.stringify([row.family, row.device]);
      if (!cells.has(key)) cells.set(key, []);
      cells.get(key).push(row);
    }
    const cell = (family, device) => {
      const several = cells.get(JSON.stringify([family, device])) || [];
      const kinds = counted(several, (row) => vkharness.kind_of(row.state));
      const bar = make("span", { class: "bar" }, ...["bad", "flake", "skip", "good"].filter((kind) => kinds.has(kind)).map((kind) =>
        make("i", { class: kind, style: `width:${(100 * kinds.get(kind)) / several.length}%` })));
      const bad = kinds.get("bad") || 0;
      return make("td", {}, bar, make("button", { type: "button", on: { click: () => set({ family, device }) } },
        make("span", { class: bad ? "bad" : "" }, bad ? `${bad} of ${several.length}` : String(several.length))));
    };
    return make("table", { class: "families" }, make("tr", {}, make("th", {}, "family"), ...devices.map((device) => make("th", {}, device))),
      ...families.map((family) => make("tr", {}, make("td", {}, make("button", { type: "button", on: { click: () => set({ family, device: "" }) } }, family)), ...devices.map((device) => cell(family, device)))));
  };

  // The address holds the choice: a link leads to the same rows.
  const read_address = () => {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const name of NAMES) choice[name] = given.get(name) || EARLIEST[name] || "";
    for (const name of FILTERS) {
      at(name).value = choice[name];
      if (at(name).value !== choice[name]) { choice[name] = EARLIEST[name] || ""; at(name).value = choice[name]; }
    }
    for (const chip of at("chips").children) chip.setAttribute("aria-pressed", String(chip.dataset.state === choice.state));
    vkharness.filter();
    show_row();
    vkharness.show_chosen();
  };

  const write_address = () => {
    const left = NAMES.filter((name) => choice[name] && choice[name] !== EARLIEST[name]).map((name) => [name, choice[name]]);
    history.replaceState(null, "", `#${new URLSearchParams(left)}`);
  };

  const set = (chosen) => {
    Object.assign(choice, chosen);
    write_address();
    read_address();
  };

  vkharness.choose = (row) => {
    const is_other = row !== choice.row;
    choice.row = row;
    write_address();
    if (is_other) { show_row(); at("right").scrollTop = 0; }
    vkharness.show_chosen();
  };

  const show_row = () => {
    const row = vkharness.by_id.get(choice.row);
    at("overview").hidden = Boolean(row);
    at("detail").hidden = !row;
    document.title = row ? `${vkharness.words_of(row.scenario)} [${row.variant}] on ${row.device}` : `vkharness: ${vkharness.rows.length} rows`;
    if (!row) return at("detail").replaceChildren();
    if (scenarios.has(row.file)) return vkharness.show_detail(row, scenarios.get(row.file));
    at("detail").replaceChildren(make("p", {}, "Reading…"));
    if (asked.has(row.file)) return null;
    asked.add(row.file);
    const failed = () => at("detail").replaceChildren(make("p", { class: "bad" }, `data/${row.file}.js is not in this folder, or is damaged.`));
    document.body.append(make("script", { src: `data/${row.file}.js`, on: { error: failed } }));
    return null;
  };

  for (const name of FILTERS) at(name).addEventListener(name === "text" ? "input" : "change", () => set({ [name]: at(name).value }));
  at("filters").addEventListener("submit", (event) => event.preventDefault());
  at("home").addEventListener("click", (event) => { event.preventDefault(); vkharness.choose(""); });
  at("list").addEventListener("scroll", () => requestAnimationFrame(vkharness.draw_list), { passive: true });
  window.addEventListener("resize", vkharness.draw_list);
  window.addEventListener("hashchange", read_address);

  const KEYS = {
    ArrowDown: () => vkharness.step(1), ArrowUp: () => vkharness.step(-1), j: () => vkharness.step(1), k: () => vkharness.step(-1),
    Home: () => vkharness.step(-Infinity), End: () => vkharness.step(Infinity), s: () => vkharness.next_mode(),
    "/": () => { at("text").focus(); at("text").select(); },
    Escape: () => vkharness.choose(""),
  };
  const escape_field = (field) => {
    if (field === at("text") && field.value) { field.value = ""; set({ text: "" }); } else field.blur();
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const field = event.target.closest && event.target.closest("input, select");
    if (field) {
      const leaves = field === at("text") && (event.key === "ArrowDown" || event.key === "Enter");
      if (event.key === "Escape") escape_field(field);
      else if (leaves) { field.blur(); vkharness.step(event.key === "Enter" && choice.row ? 0 : 1); }
      else return;
    } else if (/^[1-5]$/.test(event.key)) vkharness.show_pane(Number(event.key) - 1);
    else if (KEYS[event.key]) KEYS[event.key]();
    else return;
    event.preventDefault();
  });
}

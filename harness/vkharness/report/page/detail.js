// Everything about one row: the claim, the judges, the pixels, the code, the order, what mends it, how to repeat it.
"use strict";

{
  const { make } = vkharness;
  const PANES = ["Verdict", "Pixels", "Code", "Order", "Mend"];

  const head = (row, panes) => make("div", { class: "top" },
    make("h2", { class: "title" }, `${row.family} / ${vkharness.words_of(row.scenario)}`,
      make("span", { class: `badge ${vkharness.kind_of(row.state)}` }, row.state)),
    make("p", { class: "under" }, `${vkharness.words_of(row.variant)} on ${row.device} · ${row.seconds.toFixed(2)} s`),
    make("nav", { class: "panes" }, ...PANES.map((name, at) => make("button",
      { type: "button", disabled: !panes[name], on: { click: () => vkharness.show_pane(at) }, title: `key ${at + 1}` }, name)), copy_button("copy link", () => location.href, "copy")));

  const copy_button = (title, text, kind = "") => {
    const button = make("button", { type: "button", class: kind, on: { click: async () => {
      try { await navigator.clipboard.writeText(text()); button.textContent = "copied"; } catch { button.textContent = "not allowed here"; }
    } } }, title);
    return button;
  };

  const twin_text = (said) => {
    if (said.twin === "without") return `This twin leaves out the dependency “${said.dependency}”.`;
    if (said.twin === "weakened") return `This twin weakens the dependency “${said.dependency}”: ${said.weakness}.`;
    return "The whole scenario, with all of its dependencies.";
  };

  const rule_link = (rule) => {
    const { rules, ruleName } = document.querySelector("main").dataset;
    return make("a", { class: "rule", href: `${rules}${rule}` }, `${ruleName}${rule}`);
  };

  const verdict_pane = (row, said) => {
    const parts = [make("p", { class: "claim" }, said.doc.replace(/(\S)\n(?=\S)/g, "$1 ")), make("p", {}, twin_text(said))];
    if (said.reasons.length) parts.push(make("p", { class: "why" }, said.reasons.join("\n")));
    if (said.problem) parts.push(make("pre", { class: "why" }, said.problem));
    if (said.retried) parts.push(make("p", { class: "why" }, `attempts: ${said.attempts.join(", ")}\n${said.retried}`));
    if (said.excused.length) parts.push(make("p", { class: "excused" }, `Known and excused: ${said.excused.join("; ")}`));
    const expected = make("tr", {}, make("th", {}, "expected"), make("td", {}, said.expected.join("; ") || "clean"), make("td", {}));
    const judges = said.judges.map((each) => make("tr", {}, make("th", {}, each.judge),
      make("td", {}, each.word, ...each.more.map((line) => make("div", { class: "bad" }, line))),
      make("td", { class: each.agrees === null ? "skip" : each.agrees ? "good" : "bad" }, each.agrees === null ? "–" : each.agrees ? "✓" : "✗")));
    parts.push(make("table", { class: "judges" }, expected, ...judges));
    if (said.unmodelled.length) parts.push(make("p", { class: "excused" }, `Not modelled: ${said.unmodelled.join(", ")}`));
    if (said.rule) parts.push(make("p", {}, "rule: ", ...said.rule.split(",").map((each) => rule_link(each.trim()))));
    return parts;
  };

  const pixels_pane = (said, data) => said.pictures.flatMap((record) => {
    const by = [record.outcome && `outcome ${record.outcome}`, record.moment].filter(Boolean).join(", ");
    return [make("h3", {}, record.caption || "As recorded"),
      ...record.surfaces.map((each) => vkharness.surface(each, data.surfaces[each.drawing], by))];
  });

  const marks_of = (said, code, groups) => {
    const marks = new Map(); // line of the scenario's file to [kind, words]
    if (code.dependencies) {
      for (const line of code.dependencies[said.dependency] || []) marks.set(`${code.file}:${line}`, ["dependency", said.twin === "without" ? "left out" : "weakened"]);
    }
    for (const group of groups) {
      for (const [site, kind, words] of [[group.finding.prior_site, "prior", "earlier access"], [group.finding.site, "current", "later access"]]) {
        const known = marks.get(site);
        if (site) marks.set(site, [kind, known && known[0] !== "dependency" && known[0] !== kind ? "both accesses" : words]);
      }
    }
    return marks;
  };

  const listing = (code, marks) => make("div", { class: "listing", tabindex: "0", role: "group", "aria-label": "Code" }, ...code.lines.map(([number, pieces]) => {
    const [kind, words] = marks.get(`${code.file}:${number}`) || ["", ""];
    return make("div", { class: `mono ${kind}` }, make("span", { class: "no" }, String(number)),
      make("span", {}, ...pieces.map(([each, text]) => (each ? make("span", { class: each }, text) : text))),
      ...(words ? [make("span", { class: "note" }, `← ${words}`)] : []));
  }));

  const sites = (finding) => make("div", { class: "sites" },
    make("span", { class: "prior" }, "earlier"), make("span", {}, `${finding.prior_command || "the host"} ${finding.prior_access} `, make("code", {}, finding.prior_site || "")),
    make("span", { class: "current" }, "later"), make("span", {}, `${finding.command || "the host"} ${finding.access} `, make("code", {}, finding.site || "")));

  const group_head = (group) => make("h3", {}, `${group.number}. `, make("span", { class: "bad" }, group.finding.hazard),
    group.count > 1 ? `, ${group.count} findings` : "", group.finding.advice ? " (advice)" : "");

  const code_pane = (said, data, groups) => {
    const parts = groups.flatMap((group) => [group_head(group), make("p", {}, group.finding.message), sites(group.finding)]);
    if (!groups.length) parts.push(...said.messages.map((text) => make("p", {}, text)));
    const code = data.code || { file: said.file, lines: [] };
    const marks = marks_of(said, code, groups);
    parts.push(make("p", { class: "mono" }, data.code ? `${code.file}:${said.line}` : `${said.file}:${said.line} was not there when this page was made`));
    if (data.code) parts.push(listing(code, marks));
    for (const group of groups) {
      for (const site of new Set([group.finding.prior_site, group.finding.site])) {
        if (data.excerpts[site]) parts.push(make("p", { class: "mono" }, site), listing(data.excerpts[site], marks));
      }
    }
    return parts;
  };

  // Markup that the page's maker drew, every text in it escaped; parsed as SVG, where nothing runs.
  const drawing = (svg) => {
    const parsed = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
    return make("div", { class: "drawing", tabindex: "0", role: "group", "aria-label": "Order" }, parsed.nodeName === "svg" ? document.importNode(parsed, true) : "This order cannot be drawn.");
  };

  // Scrolls a drawing so that the missing dependency is in its middle.
  const show_missing = (view) => {
    const missing = view.querySelector(".missing");
    if (!missing) return;
    const box = missing.getBoundingClientRect(), around = view.getBoundingClientRect();
    view.scrollTop = box.top + box.height / 2 - around.top - around.height / 2;
    view.scrollLeft = box.left + box.width / 2 - around.left - around.width / 2;
  };

  const order_pane = (groups, ordered) => [
    ...groups.flatMap((group) => [group_head(group), make("p", {}, `Missing: ${group.finding.missing}`),
      ...(group.finding.nearest ? [make("p", {}, `Nearest: ${group.finding.nearest.text}`)] : []), drawing(group.order)]),
    ...ordered.flatMap((pair) => [make("h3", {}, "Why it is clean"), make("pre", {}, pair.lines.join("\n")), drawing(pair.order)])];

  const mend_pane = (said, groups) => {
    const parts = groups.flatMap((group) => [group_head(group),
      ...(group.mend.length ? [make("pre", {}, group.mend.join("\n"))] : [make("p", {}, group.not_mended || "Nothing to mend.")]),
      make("p", {}, "rule: ", rule_link(group.rule))]);
    return [...parts, make("h3", {}, "Repeat it"), ...said.commands.flatMap(([title, command]) => [make("div", {}, title),
      make("div", { class: "command" }, make("pre", {}, command), copy_button("copy", () => command))])];
  };

  // Fills the pane on the right with a row; `data` are those of its scenario.
  vkharness.show_detail = (row, data) => {
    const said = data.rows[row.id];
    const evidence = data.evidence[row.variant] || { groups: [], ordered: [], problem: "" };
    const groups = row.hazards.length ? evidence.groups : [];
    vkharness.forget_surfaces();
    const panes = {
      Verdict: verdict_pane(row, said),
      Pixels: pixels_pane(said, data),
      Code: code_pane(said, data, groups),
      Order: evidence.problem ? [make("p", {}, evidence.problem)] : order_pane(groups, evidence.ordered),
      Mend: mend_pane(said, groups),
    };
    const there = Object.fromEntries(PANES.map((name) => [name, panes[name].length > 0]));
    const sections = PANES.filter((name) => there[name]).map((name) =>
      make("section", { id: `pane-${name}`, "aria-label": name }, make("h2", {}, name), ...panes[name]));
    vkharness.at("detail").replaceChildren(head(row, there), ...sections);
    for (const each of document.querySelectorAll(".drawing")) show_missing(each);
  };

  // Scrolls to a pane, counted from 0.
  vkharness.show_pane = (at) => {
    const pane = vkharness.at(`pane-${PANES[at]}`);
    if (!pane) return;
    const top = document.querySelector("#detail > .top");
    vkharness.at("right").scrollTop = at ? pane.offsetTop - top.offsetHeight - vkharness.at("right").offsetTop - 2 : 0;
  };
}

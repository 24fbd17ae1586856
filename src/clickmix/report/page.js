"use strict";
// Adds to the page if scripts run: search, filter, sort and open queries; fold sections; say what scrolls.
(() => {
  const PAGE = 20;
  const element = (tag, options = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(options)) {
      if (name === "text") made.textContent = value;
      else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  };
  const count = (value) => value.toLocaleString("en-US");
  const label = (value) => value.toFixed(2);
  const percent = (share) => {
    if (share === 0 || share === 1) return `${100 * share}%`;
    if (share >= 0.995) return ">99%";
    if (100 * share < 1e-4) return "<0.0001%";
    return share >= 0.0995 ? `${Math.round(100 * share)}%` : `${Number((100 * share).toPrecision(2))}%`;
  };

  // Wide tables say that they scroll.
  const measure = () => {
    for (const box of document.querySelectorAll(".scroll")) {
      box.classList.toggle("wide", box.scrollWidth > box.clientWidth + 1);
    }
  };

  const evidence = ([position, shown, clicks], usual) => {
    const rates = usual[position];
    const seen = `position ${count(position)}: ${count(clicks)} of ${count(shown)} (${percent(clicks / shown)})`;
    return rates ? `${seen}; usual: ${percent(rates[1])} if relevant, ${percent(rates[0])} if not` : seen;
  };

  const labelCell = (value, low, high) => {
    const interval = low === null ? "" : ` (${label(low)} to ${label(high)})`;
    const between = element("span", { class: "between" });
    between.style.left = `${100 * (low ?? value)}%`;
    between.style.width = `${100 * ((high ?? value) - (low ?? value))}%`;
    const at = element("span", { class: "at" });
    at.style.left = `${100 * value}%`;
    const range = element("span", { class: "range", "aria-hidden": "true" }, between, at);
    return element("td", { class: "label" }, label(value) + interval, range);
  };

  const HEADS = [["mean position", 1], ["place by label", 1], ["document", 0], ["label", 0], ["clicked", 1],
    ["evidence by position", 0]];

  const results = (query, usual) => {
    const head = element("tr", {}, ...HEADS.map(([text, number]) =>
      element("th", { scope: "col", text, ...(number ? { class: "number" } : {}) })));
    const rows = query[6].map(([doc, value, low, high, shown, clicks, mean, rank, positions]) => {
      const cells = [
        element("td", { class: "number", text: mean.toFixed(1) }),
        element("td", { class: "number", text: count(rank) }),
        element("td", { text: doc }),
        labelCell(value, low, high),
        element("td", { class: "number", text: `${count(clicks)} of ${count(shown)}` }),
        element("td", { class: "evidence" }, ...positions.map((each) => element("span", { text: evidence(each, usual) }))),
      ];
      cells.forEach((cell, i) => cell.setAttribute("data-name", HEADS[i][0]));
      return element("tr", {}, ...cells);
    });
    const table = element("table", { class: "results cards" }, element("thead", {}, head), element("tbody", {}, ...rows));
    const box = element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": `Results of ${query[0]}` }, table);
    const more = query[3] - query[6].length;
    if (more > 0) box.append(element("p", { class: "note", text: `${count(more)} more, lower in both orders.` }));
    return box;
  };

  const list = (root) => {
    const { queries, usual } = JSON.parse(root.querySelector("script").textContent);
    const texts = queries.map((query) => query[0].toLowerCase());
    const tools = root.querySelector(".tools");
    const body = root.querySelector("tbody");
    const output = tools.querySelector("output");
    const button = root.querySelector(".more button");
    const printed = root.querySelector(".printed");
    const heads = [...root.querySelectorAll("[data-sort]")];
    const filters = {
      gain: (query) => query[5] >= 0.1,
      unsure: (query) => query[4] !== null && query[4] >= 0.5,
      sure: (query) => query[4] !== null && query[4] < 0.1,
    };
    let found = [];
    let drawn = 0;
    let by = 5;
    let descending = true;

    const row = (query) => {
      const toggle = element("button", { type: "button", "aria-expanded": "false", text: query[0] });
      const unsure = query[4] === null ? "-" : percent(query[4]);
      const numbers = [label(query[5]), count(query[1]), count(query[2]), count(query[3]), unsure];
      const line = element("tr", { class: "query" }, element("th", { scope: "row" }, toggle),
        ...numbers.map((text) => element("td", { class: "number", text })));
      toggle.addEventListener("click", () => {
        const open = toggle.getAttribute("aria-expanded") === "true";
        if (open) line.nextElementSibling.remove();
        else line.after(element("tr", { class: "opened" }, element("td", { colspan: "6" }, results(query, usual))));
        toggle.setAttribute("aria-expanded", String(!open));
        measure();
      });
      return line;
    };
    const draw = () => {
      const next = found.slice(drawn, drawn + PAGE);
      body.append(...next.map((i) => row(queries[i])));
      drawn += next.length;
      button.hidden = drawn >= found.length;
      button.textContent = `Show ${count(Math.min(PAGE, found.length - drawn))} more`;
      printed.textContent = drawn < queries.length ? `Printed: ${count(drawn)} of the ${count(queries.length)} queries in this file.` : "";
      measure();
    };
    const compare = (a, b) => {
      const [x, y] = [queries[a][by], queries[b][by]];
      if (x === y) return a - b;
      if (x === null || y === null) return x === null ? 1 : -1;
      return (x < y ? -1 : 1) * (descending ? -1 : 1);
    };
    const refresh = () => {
      const words = tools.elements.search.value.trim().toLowerCase();
      const keep = filters[tools.elements.filter.value] ?? (() => true);
      const least = Number(tools.elements.least.value) || 0;
      found = queries.map((_, i) => i)
        .filter((i) => texts[i].includes(words) && keep(queries[i]) && queries[i][1] >= least)
        .sort(compare);
      output.textContent = `${count(found.length)} of ${count(queries.length)} ${queries.length === 1 ? "query" : "queries"}`;
      body.replaceChildren();
      drawn = 0;
      draw();
    };

    for (const head of heads) {
      const text = head.textContent;
      const sort = element("button", { type: "button", text });
      head.replaceChildren(sort, element("span", { class: "printed", text })); // heads repeat on every page, buttons do not
      sort.addEventListener("click", () => {
        const column = Number(head.dataset.sort);
        descending = by === column ? !descending : column !== 0;
        by = column;
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", descending ? "descending" : "ascending");
        refresh();
      });
    }
    tools.addEventListener("input", refresh);
    tools.addEventListener("submit", (event) => event.preventDefault());
    button.addEventListener("click", draw);
    tools.hidden = false;
    refresh();
  };

  document.querySelectorAll(".queries").forEach(list);

  // Folded sections: all at once, by a link that leads into them, and open on paper.
  const folds = [...document.querySelectorAll("details.fold")];
  const unfold = document.getElementById("unfold");
  if (unfold && folds.length) {
    unfold.hidden = false;
    unfold.addEventListener("click", () => {
      const open = folds.some((fold) => !fold.open);
      for (const fold of folds) fold.open = open;
      unfold.textContent = open ? "Fold all" : "Unfold all";
      measure();
    });
  }
  const follow = () => {
    const target = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
    const fold = target?.querySelector("details.fold");
    if (fold) fold.open = true;
  };
  window.addEventListener("hashchange", follow);
  window.addEventListener("beforeprint", () => { for (const fold of folds) fold.open = true; });
  window.addEventListener("resize", measure);
  for (const fold of folds) fold.addEventListener("toggle", measure);
  follow();
  measure();
})();

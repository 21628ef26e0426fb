"use strict";
(() => {
  const NS = "http://www.w3.org/2000/svg";
  const DASHES = ["", "7 3", "7 3 2 3", "2 2", "10 3 4 3", "4 2", "7 3 2 3 2 3", "14 4"];
  const M = { left: 58, right: 16, top: 10, bottom: 38 };
  const HEIGHT = 330;
  const read = (id) => document.getElementById(id)?.textContent ?? "";
  const el = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (value !== null && value !== false) node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children);
    return node;
  };
  const sv = (tag, attributes = {}, text = "") => {
    const node = document.createElementNS(NS, tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text) node.textContent = text;
    return node;
  };
  const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;
  const quantile = (list, q) => {
    const sorted = [...list].sort((a, b) => a - b), at = q * (sorted.length - 1), low = Math.floor(at);
    return sorted[low] + (at - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
  };
  const show = (value) => {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    const size = Math.abs(value);
    if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(1);
    return size >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
  };
  const ticks = (low, high, log, wanted) => {
    const found = [];
    if (log) {
      const steps = Math.log10(high / low) < 2 ? [1, 2, 5] : [1];
      const skip = Math.max(1, Math.ceil(Math.log10(high / low) / wanted));
      for (let p = Math.floor(Math.log10(low)); p <= Math.log10(high); p += steps.length > 1 ? 1 : skip)
        for (const s of steps) if (s * 10 ** p >= low * 0.999 && s * 10 ** p <= high * 1.001) found.push(s * 10 ** p);
      return found;
    }
    const raw = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((s) => s * power).find((s) => s >= raw) ?? 10 * power;
    for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step) found.push(Number(v.toPrecision(12)));
    return found;
  };
  const download = (name, type, content) => {
    const link = el("a", { download: name, href: URL.createObjectURL(new Blob([content], { type })) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const resolved = (text) => text.replace(/var\((--[a-z0-9]+)\)/g,
    (_, name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim());

  function drawCurves(place, data, index) {
    const state = { quantity: "regret", against: "", logx: false, logy: false, seeds: false, bounds: false, alone: null, at: null };
    const slug = data.label.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "").toLowerCase() || `world-${index}`;
    const figure = el("figure", { class: "live" });
    const tip = el("div", { class: "tip", role: "status", hidden: true });
    const holder = el("div", { class: "chart" });
    const legend = el("div", { class: "legend", role: "group", "aria-label": "Agents: press one to see it alone" });
    const notes = el("ul", { class: "notes", hidden: true });
    const colour = (agent) => `var(--c${agent.look % 8})`, dash = (agent) => DASHES[(agent.look + 3 * Math.floor(agent.look / 8)) % 8];

    const select = (label, options, key) => el("label", {}, label + " ", el("select", {
      onchange: (event) => { state[key] = event.target.value; draw(); } },
      ...options.map(([value, text]) => el("option", { value }, text))));
    const check = (label, key) => el("label", {}, el("input", { type: "checkbox",
      onchange: (event) => { state[key] = event.target.checked; draw(); } }), " " + label);
    const controls = el("div", { class: "controls" },
      select("Show", data.quantities.map((q) => [q, q === "seconds" ? "time (s)" : q]), "quantity"),
      select("against", [["", data.comparator], ...data.agents.map((a) => [a.name, a.name])], "against"),
      check("log rounds", "logx"), check("log values", "logy"), check("each seed", "seeds"), check("what is proved", "bounds"));
    const buttons = el("div", { class: "controls" },
      el("button", { type: "button", onclick: csv }, "CSV"), el("button", { type: "button", onclick: () => download(`${slug}.svg`, "image/svg+xml", picture()) }, "SVG"),
      el("button", { type: "button", onclick: png }, "PNG"),
      ...(read("parquet") ? [el("button", { type: "button", onclick: parquet }, "Parquet (all worlds)")] : []));
    for (const agent of data.agents) {
      const line = sv("svg", { width: 30, height: 10, "aria-hidden": "true" });
      line.append(sv("line", { x1: 0, x2: 30, y1: 5, y2: 5, stroke: colour(agent), "stroke-width": 2.4, "stroke-dasharray": dash(agent) }));
      legend.append(el("button", { type: "button", "aria-pressed": "false", onclick: () => {
        state.alone = state.alone === agent.name ? null : agent.name;
        draw();
      } }, line, " " + agent.name));
    }
    figure.append(controls, holder, legend, notes, buttons);
    holder.append(tip);
    place.append(figure);

    const curves = (agent) => {
      const other = data.agents.find((a) => a.name === state.against);
      const list = [];
      for (const run of agent.runs) {
        const base = other?.runs.find((r) => r.seed === run.seed);
        if (state.against && !base) continue;   // only seeds that both finished can be compared
        const values = run[state.quantity];
        list.push({ seed: run.seed, values: base ? values.map((v, i) => v - base[state.quantity][i]) : values });
      }
      return list;
    };
    const visible = () => data.agents.filter((a) => state.alone === null || a.name === state.alone);
    let svg = null, scale = null, lines = [];

    function draw() {
      svg?.remove();
      const W = Math.max(240, holder.clientWidth), right = W - M.right, bottom = HEIGHT - M.bottom;
      const proved = state.bounds && state.quantity === "regret" && !state.against;
      lines = visible().map((agent) => ({ agent, runs: curves(agent) })).filter((l) => l.runs.length)
        .map((l) => ({ ...l, mean: data.rounds.map((_, i) => mean(l.runs.map((r) => r.values[i]))),
          low: data.rounds.map((_, i) => quantile(l.runs.map((r) => r.values[i]), 0.05)),
          high: data.rounds.map((_, i) => quantile(l.runs.map((r) => r.values[i]), 0.95)) }));
      const inside = lines.flatMap((l) => state.seeds ? l.runs.flatMap((r) => r.values) : [...l.low, ...l.high]);
      const measured = Math.max(...inside.filter(Number.isFinite), 0), least = Math.min(...inside.filter((v) => v > 0), measured);
      if (proved) for (const l of lines) {   // a bound far above must not flatten what was measured
        const near = (v) => v !== null && v > least && v < measured * (state.logy ? 30 : 4);
        inside.push(...(l.agent.bound ?? []).filter(near), ...(l.agent.certificate?.values ?? []).filter(near));
      }
      const usable = inside.filter((v) => Number.isFinite(v) && (!state.logy || v > 0));
      let ylow = usable.length ? Math.min(...usable) : (state.logy ? 0.1 : 0), yhigh = usable.length ? Math.max(...usable) : 1;
      if (state.logy) ylow = Math.max(ylow, measured / 1e4); else { ylow = Math.min(0, ylow); yhigh += 0.04 * (yhigh - ylow || 1); }
      if (yhigh <= ylow) yhigh = state.logy ? ylow * 10 : ylow + 1;
      const xlow = state.logx ? 1 : 0, xhigh = data.horizon;
      const f = (log) => (v) => log ? Math.log10(v) : v;
      const fx = f(state.logx), fy = f(state.logy);
      const x = (v) => M.left + (fx(v) - fx(xlow)) / ((fx(xhigh) - fx(xlow)) || 1) * (right - M.left);
      const y = (v) => bottom - (fy(v) - fy(ylow)) / (fy(yhigh) - fy(ylow)) * (bottom - M.top);
      scale = { x, y, right, bottom };
      svg = sv("svg", { viewBox: `0 0 ${W} ${HEIGHT}`, width: W, height: HEIGHT, role: "img", tabindex: 0,
        "aria-label": `${data.label}: ${state.quantity} against ${state.against || data.comparator}; arrow keys read the values` });
      const words = { "font-size": 11, fill: "currentColor", "font-family": "inherit" };
      for (const v of ticks(ylow, yhigh, state.logy, 6)) {
        svg.append(sv("line", { x1: M.left, x2: right, y1: y(v), y2: y(v), stroke: "var(--line)", "stroke-width": 0.8 }));
        svg.append(sv("text", { ...words, x: M.left - 6, y: y(v) + 4, "text-anchor": "end" }, show(v)));
      }
      for (const v of ticks(Math.max(xlow, state.logx ? 1 : 0), xhigh, state.logx, W < 420 ? 4 : 7)) {
        const label = show(v), half = 3.3 * label.length;
        svg.append(sv("line", { x1: x(v), x2: x(v), y1: bottom, y2: bottom + 4, stroke: "currentColor" }));
        svg.append(sv("text", { ...words, class: "xtick", x: Math.min(x(v), W - half - 2), y: bottom + 16, "text-anchor": "middle" }, label));
      }
      svg.append(sv("path", { d: `M${M.left},${M.top}V${bottom}H${right}`, fill: "none", stroke: "currentColor" }));
      svg.append(sv("text", { ...words, x: (M.left + right) / 2, y: HEIGHT - 5, "text-anchor": "middle" }, "round"));
      const clip = `clip-${index}`;
      const area = sv("clipPath", { id: clip });
      area.append(sv("rect", { x: M.left, y: M.top, width: right - M.left, height: bottom - M.top }));
      svg.append(area);
      const group = sv("g", { "clip-path": `url(#${clip})`, fill: "none" });
      const path = (xs, values) => {
        let d = "", pen = false;
        values.forEach((v, i) => {
          const ok = v !== null && Number.isFinite(v) && (!state.logy || v > 0) && xs[i] >= xlow;
          if (ok) d += `${pen ? "L" : "M"}${x(xs[i]).toFixed(1)},${y(v).toFixed(1)}`;
          pen = ok;
        });
        return d;
      };
      for (const l of lines) {
        const c = colour(l.agent), positive = (v) => state.logy ? Math.max(v, ylow) : v;
        if (state.seeds) for (const r of l.runs) group.append(sv("path", { class: "seed", d: path(data.rounds, r.values), stroke: c, "stroke-width": 0.8, opacity: 0.45 }));
        else if (l.runs.length > 1) {
          const there = path(data.rounds, l.high.map(positive));
          const back = path([...data.rounds].reverse(), [...l.low].reverse().map(positive)).replace("M", "L");
          group.append(sv("path", { d: there + back + "Z", fill: c, opacity: 0.15 }));
        }
        group.append(sv("path", { class: "mean", d: path(data.rounds, l.mean), stroke: c, "stroke-width": 2, "stroke-dasharray": dash(l.agent) }));
        if (proved && l.agent.bound) group.append(sv("path", { class: "bound", d: path(data.rounds, l.agent.bound), stroke: c, "stroke-width": 1.3, "stroke-dasharray": "1 3" }));
        if (proved && l.agent.certificate) group.append(sv("path", { class: "certificate", d: path(l.agent.certificate.rounds, l.agent.certificate.values), stroke: c, "stroke-width": 1, "stroke-dasharray": "8 2 1 2" }));
      }
      svg.append(group);
      svg.addEventListener("pointermove", (event) => point(event.clientX - svg.getBoundingClientRect().left));
      svg.addEventListener("pointerleave", () => { state.at = null; mark(); });
      svg.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        state.at = Math.min(data.rounds.length - 1, Math.max(0, (state.at ?? -step) + step));
        mark();
      });
      holder.insertBefore(svg, tip);
      legend.querySelectorAll("button").forEach((b, i) => {
        b.setAttribute("aria-pressed", String(state.alone === data.agents[i].name));
        b.classList.toggle("faded", state.alone !== null && state.alone !== data.agents[i].name);
      });
      notes.hidden = !state.bounds;
      notes.replaceChildren(...visible().map((a) => el("li", {}, el("b", {}, a.name), `: ${a.bound ? "bound (dotted) " : ""}${a.bound_note}; ${a.certificate_note}.`)));
      mark();
    }
    function point(px) {
      let best = 0;
      data.rounds.forEach((r, i) => { if (Math.abs(scale.x(r) - px) < Math.abs(scale.x(data.rounds[best]) - px)) best = i; });
      state.at = best;
      mark();
    }
    function mark() {
      svg.querySelectorAll(".mark").forEach((node) => node.remove());
      tip.hidden = state.at === null;
      if (state.at === null) return;
      const i = state.at, t = data.rounds[i], px = scale.x(t);
      svg.append(sv("line", { class: "mark", x1: px, x2: px, y1: M.top, y2: scale.bottom, stroke: "currentColor", "stroke-width": 0.7 }));
      for (const l of lines) if ((!state.logy || l.mean[i] > 0) && scale.y(l.mean[i]) <= scale.bottom + 1)
        svg.append(sv("circle", { class: "mark", cx: px, cy: scale.y(l.mean[i]), r: 3.4, fill: colour(l.agent) }));
      const rows = [...lines].sort((a, b) => b.mean[i] - a.mean[i]).map((l) => {
        const dot = el("span", { class: "dot" });
        dot.style.background = colour(l.agent);
        const range = l.runs.length > 1 ? ` (${show(l.low[i])} to ${show(l.high[i])})` : "";
        return el("div", {}, dot, ` ${l.agent.name}: ${show(l.mean[i])}${range}`);
      });
      tip.replaceChildren(el("b", {}, `round ${t.toLocaleString("en")}`), ...rows);
      tip.style.left = px > (M.left + scale.right) / 2 ? "" : `${px + 12}px`;
      tip.style.right = px > (M.left + scale.right) / 2 ? `${holder.clientWidth - px + 12}px` : "";
    }
    function csv() {
      const quote = (text) => `"${String(text).replaceAll('"', '""')}"`;
      const rows = [["world", "agent", "seed", "round", ...data.quantities].map(quote).join(",")];
      for (const agent of data.agents) for (const run of agent.runs) data.rounds.forEach((t, i) =>
        rows.push([quote(data.label), quote(agent.name), run.seed, t, ...data.quantities.map((q) => run[q][i])].join(",")));
      download(`${slug}.csv`, "text/csv", rows.join("\n") + "\n");
    }
    function picture() {
      const copy = svg.cloneNode(true), W = svg.width.baseVal.value, names = visible();
      copy.querySelectorAll(".mark").forEach((node) => node.remove());
      copy.setAttribute("xmlns", NS);
      copy.setAttribute("viewBox", `0 0 ${W} ${HEIGHT + 18 * names.length}`);
      copy.setAttribute("height", HEIGHT + 18 * names.length);
      names.forEach((agent, i) => {
        const at = HEIGHT + 18 * i + 8;
        copy.append(sv("line", { x1: M.left, x2: M.left + 30, y1: at, y2: at, stroke: colour(agent), "stroke-width": 2, "stroke-dasharray": dash(agent) }));
        copy.append(sv("text", { x: M.left + 38, y: at + 4, "font-size": 11, fill: "currentColor" }, agent.name));
      });
      copy.setAttribute("style", "font-family: sans-serif; color: var(--ink); background: var(--page)");
      return resolved(new XMLSerializer().serializeToString(copy));
    }
    function png() {
      const image = new Image(), text = picture();
      image.onload = () => {
        const canvas = el("canvas", { width: 2 * image.width, height: 2 * image.height });
        const pen = canvas.getContext("2d");
        pen.fillStyle = resolved("var(--page)");
        pen.fillRect(0, 0, canvas.width, canvas.height);
        pen.drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob((blob) => download(`${slug}.png`, "image/png", blob), "image/png");
      };
      image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
    }
    function parquet() {
      download("race.parquet", "application/vnd.apache.parquet", Uint8Array.from(atob(read("parquet")), (c) => c.charCodeAt(0)));
    }
    shares(place, data);
    new ResizeObserver(() => { if (svg && Math.abs(svg.width.baseVal.value - holder.clientWidth) > 1) draw(); }).observe(holder);
    draw();
  }

  function shares(place, data) {
    const figure = el("figure", { class: "live shares" }), grid = el("div", { class: "panels" });
    const seeds = [...new Set(data.agents.flatMap((a) => a.runs.map((r) => r.seed)))];
    const choice = el("select", { onchange: draw }, el("option", { value: "" }, "all seeds"), ...seeds.map((s) => el("option", { value: s }, `seed ${s}`)));
    const shade = (i) => data.arms[i] === "others" ? "var(--line)" : `hsl(${212 - 160 * i / Math.max(1, data.arms.length - 1)} 62% ${34 + 32 * (i % 2)}%)`;
    function draw() {
      grid.replaceChildren(...data.agents.map((agent) => {
        const runs = agent.runs.filter((r) => choice.value === "" || String(r.seed) === choice.value);
        const svg = sv("svg", { viewBox: "0 0 200 90", role: "img", "aria-label": `Share of each arm over time, ${agent.name}` });
        if (runs.length) {
          const n = runs[0].shares.length, floor = new Array(n).fill(0);
          data.arms.forEach((_, arm) => {
            const top = floor.map((v, i) => v + mean(runs.map((r) => r.shares[i]?.[arm] ?? 0)));
            const at = (i, v) => `${(200 * (n > 1 ? i / (n - 1) : 0.5)).toFixed(1)},${(90 - 90 * v).toFixed(1)}`;
            svg.append(sv("polygon", { points: [...floor.map((v, i) => at(i, v)), ...top.map((v, i) => at(i, v)).reverse()].join(" "), fill: shade(arm) }));
            floor.splice(0, n, ...top);
          });
        }
        return el("div", {}, el("div", { class: "panel-title" }, agent.name), svg);
      }));
    }
    const key = el("div", { class: "legend" }, ...data.arms.map((name, i) => {
      const dot = el("span", { class: "dot" });
      dot.style.background = shade(i);
      return el("span", {}, dot, " " + name);
    }));
    figure.append(el("div", { class: "controls" }, el("label", {}, "Share of each arm over time, ", choice)), grid, key);
    place.append(figure);
    draw();
  }

  JSON.parse(read("races") || "[]").forEach((data, index) => {
    const place = document.getElementById(`live-${index}`);
    if (place && data.agents.length) drawCurves(place, data, index);
  });
})();

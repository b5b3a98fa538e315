(() => {
"use strict";
// Draws the pictures of the report from the data block. Texts of the evidence reach the page as text alone, never as HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const [LANE, FROM, LENGTH, OWNER, KIND, RECORD, END_RECORD, EPOCH, COUNT, FLAGS] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
const [P_TIME, P_OFFSET, P_RECORD, P_KIND, P_DELTA, P_COMMITTER] = [0, 1, 2, 3, 4, 5];
const [M_TIME, M_RECORD, M_EVENT, M_CAUSES, M_EPOCH, M_MEMBERS, M_JOINED, M_LEFT, M_MOVED, M_NONE, M_RECONCILED, M_STORM] = data.mark_fields.keys();
const [ASSIGNED, REVOKING, AWAY, EMPTY, UNASSIGNED, REMOVED, UNKNOWN, OVERLAP, MANY] = data.kinds.keys();
const [COMMIT, REWIND, GONE, JUMP] = data.point_kinds.keys();
const COLOURS = ["#77aadd", "#eedd88", "#44bb99", "#ffaabb", "#bbcc33", "#99ddff", "#ee8866", "#c9b6e4"];
const KIND_WORDS = {
  [ASSIGNED]: "owned", [REVOKING]: "being given up: no other member may have it yet", [AWAY]: "kept for a static member that is away",
  [EMPTY]: "no owner: the group has no member", [UNASSIGNED]: "no owner: not assigned", [REMOVED]: "no owner: the group is removed",
  [UNKNOWN]: "not known", [OVERLAP]: "two owners at once", [MANY]: "many short intervals, in the colour of the longest",
};
const TEXTURES = 3, HEAD_PX = 50, POSITION_PX = 150, MOST_ROWS = 100, MOST_OPTIONS = 500;
const text = (number) => (number < 0 ? "" : data.strings[number]);
const span = data.end_ms - data.begin_ms;
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const whole = {
  a: data.from_ms === null ? 0 : clamp(data.from_ms - data.begin_ms, 0, span),
  b: data.to_ms === null ? span : clamp(data.to_ms - data.begin_ms, 0, span),
};
if (whole.b <= whole.a) { whole.a = 0; whole.b = span; }
const view = { ...whole };
let cursor = null;
const filter = { group: "", topic: "", member: "" };
let isPrinting = false;

const el = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value); else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
};
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const showTime = (ms) => {
  const at = data.begin_ms + Math.round(ms);
  return at < 0 || at > 253402300799999 ? String(at) : new Date(at).toISOString().replace("T", " ");
};
const anchor = (ms) => showTime(ms).replace(" ", "T");
const duration = (ms) => {
  for (const [unit, size] of [["d", 86400000], ["h", 3600000], ["min", 60000], ["s", 1000]]) {
    if (ms >= size) return `${(ms / size).toFixed(ms / size < 10 ? 1 : 0)} ${unit}`;
  }
  return `${Math.round(ms)} ms`;
};
const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
const number = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en"));

// Colours and textures

const swatches = new Map();
const texture = (colour, kind) => {
  const key = `${colour}/${kind}`;
  if (!swatches.has(key)) {
    const tile = el("canvas", { width: 8, height: 8 }), pen = tile.getContext("2d");
    pen.fillStyle = colour; pen.fillRect(0, 0, 8, 8);
    pen.strokeStyle = pen.fillStyle = COLOURS.includes(colour) || kind === "cross" ? "rgba(20,24,30,.5)" : css("hatch"); pen.lineWidth = kind === "dense" ? 0.8 : 1.6;
    const lines = { dense: [[1, 0, 1, 8], [3, 0, 3, 8], [5, 0, 5, 8], [7, 0, 7, 8]], stripes: [[-2, 2, 2, -2], [0, 8, 8, 0], [6, 10, 10, 6]], back: [[-2, 6, 2, 10], [0, 0, 8, 8], [6, -2, 10, 2]], cross: [[0, 8, 8, 0], [0, 0, 8, 8]] }[kind] ?? [];
    for (const [x, y, right, bottom] of lines) { pen.beginPath(); pen.moveTo(x, y); pen.lineTo(right, bottom); pen.stroke(); }
    if (kind === "dots") { pen.beginPath(); pen.arc(4, 4, 1.6, 0, 7); pen.fill(); }
    swatches.set(key, pen.createPattern(tile, "repeat"));
  }
  return swatches.get(key);
};
const ownerFill = (owner) => {
  const colour = COLOURS[owner % COLOURS.length], kind = Math.floor(owner / COLOURS.length) % TEXTURES;
  return kind === 0 ? colour : texture(colour, kind === 1 ? "stripes" : "dots");
};
const letter = (owner) => String.fromCharCode(65 + (owner % 26)) + (owner >= 26 ? Math.floor(owner / 26) + 1 : "");
const kindFill = (kind, owner) => {
  if (kind === ASSIGNED) return ownerFill(owner);
  if (kind === REVOKING || kind === AWAY) return texture(COLOURS[owner % COLOURS.length], "back");
  if (kind === OVERLAP) return texture(css("fall"), "cross");
  if (kind === MANY) return owner < 0 ? texture(css("busy"), "stripes") : texture(COLOURS[owner % COLOURS.length], "dense");
  if (kind === REMOVED) return css("card");
  return texture(css("none"), kind === UNKNOWN ? "dots" : "stripes");
};

// A picture of one group

class Picture {
  constructor(root, group, index) {
    Object.assign(this, { root, group, index, byMember: false, lane: 0, lanes: [], only: null });
    const find = (name) => root.querySelector(name);
    [this.head, this.scroll, this.tall, this.canvas] = [find(".head"), find(".scroll"), find(".tall"), find(".lanes")];
    [this.said, this.legend, this.position, this.caption] = [find(".said"), find(".legend"), find(".position"), find("figcaption")];
    this.starts = this.laneStarts();
    this.rows = document.querySelector(`#g${index} .rebalances`);
    this.count = document.querySelector(`#g${index} .shown-rebalances`);
    this.lane = this.firstLane();
    this.listen(find(".by-partition"), find(".by-member"));
    this.drawLegend();
  }

  // The first bar of each lane.
  laneStarts() {
    const starts = new Int32Array(this.group.lanes.length + 1), lanes = this.group.bars[LANE];
    for (const lane of lanes) starts[lane + 1]++;
    for (let lane = 0; lane < this.group.lanes.length; lane++) starts[lane + 1] += starts[lane];
    return starts;
  }

  // The lane to begin with: one with a rewind, else with the most commits.
  firstLane() {
    const { points } = this.group;
    const special = points.findIndex((own) => own[P_KIND].includes(REWIND) || own[P_KIND].includes(GONE));
    if (special >= 0) return special;
    return points.reduce((best, own, lane) => (own[P_TIME].length > points[best][P_TIME].length ? lane : best), 0);
  }

  name(lane) { const [topic, partition] = this.group.lanes[lane]; return `${text(topic)}-${partition}`; }

  // What is drawn: lanes of partitions, or owners.
  visible() {
    const { group } = this;
    if (this.byMember) {
      return group.owners.map((_, owner) => owner).filter((owner) => !filter.member || group.owners[owner] === filter.member);
    }
    const owner = filter.member ? group.owners.indexOf(filter.member) : this.only ?? -1;
    const isFiltered = filter.member !== "" || this.only !== null;
    return group.lanes.map((_, lane) => lane).filter((lane) => {
      if (filter.topic && text(group.lanes[lane][0]) !== filter.topic) return false;
      if (!isFiltered) return true;
      for (let bar = this.starts[lane]; bar < this.starts[lane + 1]; bar++) if (group.bars[OWNER][bar] === owner) return true;
      return false;
    });
  }

  layout() {
    this.lanes = this.visible();
    this.width = this.scroll.clientWidth;
    this.label = clamp(Math.round(this.width * 0.2), 84, 210);
    this.height = this.lanes.length <= 28 ? 22 : this.lanes.length <= 80 ? 14 : this.lanes.length <= 300 ? 8 : 4;
    const full = Math.max(this.lanes.length * this.height, this.height);
    this.tall.style.height = `${full}px`;
    this.shown = Math.min(full, isPrinting ? 900 : 544);
    this.pen = this.prepare(this.canvas, this.width, this.shown);
    this.headPen = this.prepare(this.head, this.width, HEAD_PX);
  }

  prepare(canvas, width, height) {
    const ratio = isPrinting ? 2 : Math.min(window.devicePixelRatio || 1, 2);
    canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    return pen;
  }

  // The room for time; signs at the end of the log need some pixels more.
  get room() { return this.width - this.label - 9; }
  x(ms) { return this.label + ((ms - view.a) / (view.b - view.a)) * this.room; }
  ms(x) { return view.a + ((x - this.label) / this.room) * (view.b - view.a); }

  draw() {
    if (this.root.closest("section").hidden) return;
    this.layout();
    this.drawHead();
    this.drawLanes();
    this.drawPosition();
    this.drawRows();
  }

  drawHead() {
    const pen = this.headPen, { width, label } = this;
    pen.clearRect(0, 0, width, HEAD_PX);
    this.drawTicks(pen, HEAD_PX, true);
    pen.save(); pen.beginPath(); pen.rect(label - 6, 0, width - label + 6, HEAD_PX); pen.clip();
    for (const [from, to, severity] of this.group.flags) {
      if (to < view.a || from > view.b) continue;
      pen.fillStyle = css(severity); pen.globalAlpha = 0.25;
      pen.fillRect(this.x(from), 22, Math.max(this.x(to) - this.x(from), 2), 8);
      pen.globalAlpha = 1;
    }
    let last = -9;
    for (const mark of this.group.marks) {
      if (mark[M_TIME] < view.a || mark[M_TIME] > view.b) continue;
      const x = this.x(mark[M_TIME]);
      if (x - last < 2) continue;
      last = x;
      pen.fillStyle = mark[M_STORM] ? css("warn") : css("mark");
      pen.beginPath(); pen.moveTo(x, 33); pen.lineTo(x + 5, 39); pen.lineTo(x, 45); pen.lineTo(x - 5, 39); pen.fill();
    }
    pen.restore();
    pen.fillStyle = css("soft"); pen.font = "12px system-ui, sans-serif"; pen.textBaseline = "middle"; pen.textAlign = "left";
    pen.fillText("rebalances", 4, 39);
  }

  drawTicks(pen, bottom, withText) {
    const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5, 2592e6, 7776e6, 31536e6];
    const room = (view.b - view.a) / Math.max(this.room / 110, 1);
    const step = steps.find((each) => each >= room) ?? steps.at(-1) * Math.ceil(room / steps.at(-1));
    pen.strokeStyle = css("line"); pen.fillStyle = css("soft"); pen.lineWidth = 1;
    pen.font = "12px system-ui, sans-serif"; pen.textBaseline = "middle"; pen.textAlign = "left";
    for (let at = Math.ceil((data.begin_ms + view.a) / step) * step; at <= data.begin_ms + view.b; at += step) {
      const x = this.x(at - data.begin_ms), shown = showTime(at - data.begin_ms);
      pen.beginPath(); pen.moveTo(x + 0.5, withText ? 14 : 0); pen.lineTo(x + 0.5, bottom); pen.stroke();
      if (!withText) continue;
      const isDay = at % 86400000 === 0;
      const words = isDay ? shown.slice(0, 10) : step < 1000 ? shown.slice(14, 23) : step < 60000 ? shown.slice(11, 19) : shown.slice(11, 16);
      const wide = pen.measureText(words).width;
      if (x + wide < this.width) pen.fillText(words, Math.max(x - (isDay ? 0 : 2), this.label), 8);
    }
  }

  drawLanes() {
    const pen = this.pen, { width, label, height } = this;
    pen.clearRect(0, 0, width, this.shown);
    pen.save(); pen.beginPath(); pen.rect(label, 0, width - label, this.shown); pen.clip();
    this.drawTicks(pen, this.shown, false);
    pen.restore();
    const top = this.scroll.scrollTop, first = Math.floor(top / height);
    for (let at = first; at < this.lanes.length && at * height - top < this.shown; at++) {
      const y = at * height - top, lane = this.lanes[at];
      pen.save(); pen.beginPath(); pen.rect(label, y, width - label, height); pen.clip();
      if (this.byMember) this.drawMember(pen, lane, y); else this.drawBars(pen, lane, y);
      pen.restore();
      this.drawLabel(pen, at, lane, y);
    }
    if (cursor !== null && cursor >= view.a && cursor <= view.b) {
      pen.strokeStyle = css("accent"); pen.lineWidth = 1.5; pen.beginPath(); pen.moveTo(this.x(cursor), 0); pen.lineTo(this.x(cursor), this.shown); pen.stroke();
    }
    if (!this.lanes.length) {
      pen.fillStyle = css("soft"); pen.font = "13px system-ui, sans-serif"; pen.textBaseline = "middle"; pen.fillText("No lane fits the filter.", 8, height / 2 + 1);
    }
  }

  drawLabel(pen, at, lane, y) {
    const { label, height } = this, topic = this.byMember ? null : this.group.lanes[lane][0];
    const isFirst = at === 0 || this.byMember || this.group.lanes[this.lanes[at - 1]][0] !== topic;
    const isChosen = !this.byMember && lane === this.lane;
    if (isChosen) { pen.fillStyle = css("accent"); pen.fillRect(0, y, 3, Math.max(height - 1, 2)); }
    if (height < 12 && !(isFirst && !this.byMember) ) return;
    const words = this.byMember ? `${letter(lane)} ${this.group.owners[lane]}` : height < 12 ? text(topic) : this.name(lane);
    pen.font = `${isChosen ? "600 " : ""}12px system-ui, sans-serif`; pen.textBaseline = "middle"; pen.fillStyle = css("ink");
    pen.textAlign = "left";
    pen.fillText(fit(pen, words, label - 12), 7, y + Math.max(height, 12) / 2);
  }

  drawBars(pen, lane, y) {
    const { bars } = this.group, { height } = this, inner = Math.max(height - (height > 6 ? 3 : 1), 1);
    const owner = filter.member ? this.group.owners.indexOf(filter.member) : this.only;
    const seen = [], words = [];
    for (let bar = this.starts[lane]; bar < this.starts[lane + 1]; bar++) {
      const from = bars[FROM][bar], to = from + bars[LENGTH][bar], kind = bars[KIND][bar];
      if (to < view.a || from > view.b) continue;
      if (kind === OVERLAP) { seen.push(bar); continue; }
      const x = this.x(from), wide = Math.max(this.x(to) - x, 1);
      pen.globalAlpha = owner === null || owner < 0 || bars[OWNER][bar] === owner ? 1 : 0.25;
      pen.fillStyle = kindFill(kind, bars[OWNER][bar]);
      pen.fillRect(x, y + 1, wide, inner);
      if (kind !== REMOVED && kind >= EMPTY && kind <= UNASSIGNED && height > 6 && wide > 3) {
        pen.strokeStyle = css("hatch"); pen.lineWidth = 1; pen.setLineDash([3, 3]); pen.strokeRect(x + 0.5, y + 1.5, wide - 1, inner - 1); pen.setLineDash([]);
      }
      if (wide > 2 && height > 6) { pen.fillStyle = css("card"); pen.fillRect(x, y + 1, 1, inner); }
      if (height >= 12 && wide > 16) words.push([bar, Math.max(x, this.label), Math.min(x + wide, this.width)]);
      pen.globalAlpha = 1;
    }
    this.drawLine(pen, lane, y);
    for (const [bar, left, right] of words) this.drawWords(pen, bar, left, right, y + 1 + inner / 2);
    this.drawSigns(pen, lane, y);
    for (const bar of seen) {
      const x = this.x(bars[FROM][bar]), wide = Math.max(this.x(bars[FROM][bar] + bars[LENGTH][bar]) - x, 2);
      pen.fillStyle = kindFill(OVERLAP, -1); pen.fillRect(x, y, wide, height - 1);
      pen.strokeStyle = css("ink"); pen.lineWidth = 1; pen.strokeRect(x + 0.5, y + 0.5, Math.max(wide - 1, 1), height - 2);
    }
  }

  drawWords(pen, bar, left, right, middle) {
    const { bars, owners } = this.group, owner = bars[OWNER][bar], kind = bars[KIND][bar];
    if (right - left < 16) return;
    pen.font = "600 11px system-ui, sans-serif"; pen.textBaseline = "middle"; pen.textAlign = "left";
    const isMany = kind === MANY;
    let words = isMany ? `${bars[COUNT][bar]}×` : owner < 0 ? "" : letter(owner);
    if (owner >= 0 && !isMany && right - left > 150) words = `${letter(owner)}  ${owners[owner]}`;
    if (owner < 0 && kind !== MANY && kind !== REMOVED && right - left > 90) words = kind === UNKNOWN ? "not known" : "no owner";
    if (!words) return;
    words = fit(pen, words, right - left - 8);
    pen.fillStyle = owner >= 0 ? COLOURS[owner % COLOURS.length] : css("none");
    pen.fillRect(left + 2, middle - 7, pen.measureText(words).width + 6, 14);
    pen.fillStyle = owner >= 0 ? "#16191d" : css("ink");
    pen.fillText(words, left + 5, middle);
  }

  // The committed offset as a line in its lane, between the lowest and the highest offset of the view.
  drawLine(pen, lane, y) {
    const own = this.group.points[lane], count = own[P_TIME].length;
    if (!count) return;
    const { height } = this, offsets = own[P_OFFSET];
    const [low, high] = this.extent(own, null);
    const py = (offset) => y + height - 4 - ((offset - low) / Math.max(high - low, 1)) * (height - 8);
    if (height >= 14) {
      const path = new Path2D();
      let isDown = false, before = 0;
      for (let at = 0; at < count; at++) {
        if (offsets[at] === null) { if (isDown) path.lineTo(this.x(own[P_TIME][at]), before); isDown = false; continue; }
        const x = this.x(own[P_TIME][at]);
        if (isDown) { path.lineTo(x, before); path.lineTo(x, py(offsets[at])); } else path.moveTo(x, py(offsets[at]));
        before = py(offsets[at]);
        isDown = true;
      }
      if (isDown) path.lineTo(this.x(span), before);
      pen.lineJoin = "round"; pen.strokeStyle = "rgba(255,255,255,.8)"; pen.lineWidth = 3.4; pen.stroke(path);
      pen.strokeStyle = "#1c2126"; pen.lineWidth = 1.3; pen.stroke(path);
    }
  }

  drawSigns(pen, lane, y) {
    const own = this.group.points[lane], { height } = this;
    for (let at = 0; at < own[P_TIME].length; at++) {
      if (own[P_KIND][at] === COMMIT) continue;
      const x = this.x(own[P_TIME][at]);
      if (x < this.label - 8 || x > this.width + 8) continue;
      drawSign(pen, own[P_KIND][at], x, y + height / 2, Math.min(height / 2 - 1, 7));
    }
  }

  extent(own, end) {
    let [low, high] = [Infinity, -Infinity];
    const inForce = own[P_TIME].findLastIndex((time) => time < view.a);
    own[P_OFFSET].forEach((offset, at) => {
      if (offset === null || own[P_TIME][at] > view.b || (own[P_TIME][at] < view.a && at !== inForce)) return;
      low = Math.min(low, offset); high = Math.max(high, offset);
    });
    if (low === Infinity) { const all = own[P_OFFSET].filter((offset) => offset !== null); low = Math.min(...all.slice(0, 1), 0); high = Math.max(...all.slice(0, 1), 1); }
    return end === null || end === undefined ? [low, high] : [Math.min(low, end), Math.max(high, end)];
  }

  drawMember(pen, owner, y) {
    const { height } = this, inner = height - 3;
    for (const [from, to, count] of this.segments(owner)) {
      if (to < view.a || from > view.b) continue;
      const x = this.x(from), wide = Math.max(this.x(to) - x, 1);
      pen.fillStyle = ownerFill(owner); pen.fillRect(x, y + 1, wide, inner);
      if (wide > 3) { pen.fillStyle = css("card"); pen.fillRect(x, y + 1, 1, inner); }
      if (height >= 12 && wide > 18) {
        pen.font = "600 11px system-ui, sans-serif"; pen.fillStyle = "#16191d"; pen.textBaseline = "middle"; pen.textAlign = "left";
        pen.fillText(String(count), Math.max(x, this.label) + 5, y + 1 + inner / 2);
      }
    }
  }

  // [from, to, number of partitions] of an owner.
  segments(owner) {
    this.counts ??= new Map();
    if (!this.counts.has(owner)) {
      const { bars } = this.group, steps = [];
      bars[OWNER].forEach((each, bar) => {
        if (each === owner && bars[KIND][bar] <= AWAY) steps.push([bars[FROM][bar], 1], [bars[FROM][bar] + bars[LENGTH][bar], -1]);
      });
      steps.sort((one, other) => one[0] - other[0]);
      const found = [];
      let count = 0, begin = 0;
      for (const [at, change] of steps) {
        if (at > begin && count > 0) {
          const before = found.at(-1);
          if (before && before[1] === begin && before[2] === count) before[1] = at; else found.push([begin, at, count]);
        }
        begin = at; count += change;
      }
      this.counts.set(owner, found);
    }
    return this.counts.get(owner);
  }

  drawPosition() {
    const own = this.group.points[this.lane];
    const figure = this.position.closest("figure");
    figure.hidden = this.byMember || !own || !own[P_TIME].length;
    if (figure.hidden) return;
    const pen = this.prepare(this.position, this.width, POSITION_PX), end = this.group.ends[this.lane];
    const special = own[P_KIND].filter((kind) => kind === REWIND).length, gone = own[P_KIND].filter((kind) => kind === GONE).length;
    const last = own[P_OFFSET].at(-1);
    let words = `Committed offset of ${this.name(this.lane)}`;
    if (special) words += `; set back ${special === 1 ? "once" : `${special} times`}`;
    if (gone) words += `; removed ${gone === 1 ? "once" : `${gone} times`}`;
    if (end !== null && last !== null) words += `; end offset ${number(end)}, lag ${number(end - last)}`;
    this.caption.textContent = words;
    this.position.setAttribute("aria-label", `${words}, over time`);
    const [low, high] = this.extent(own, end), room = Math.max(high - low, 1);
    const py = (offset) => POSITION_PX - 12 - ((offset - low) / room) * (POSITION_PX - 26);
    this.py = py;
    pen.clearRect(0, 0, this.width, POSITION_PX);
    pen.font = "12px system-ui, sans-serif"; pen.textBaseline = "middle"; pen.textAlign = "right"; pen.fillStyle = css("soft"); pen.strokeStyle = css("line");
    for (const offset of new Set([low, Math.round(low + room / 2), high])) {
      pen.fillText(number(offset), this.label - 8, py(offset));
      pen.beginPath(); pen.moveTo(this.label, py(offset) + 0.5); pen.lineTo(this.width, py(offset) + 0.5); pen.stroke();
    }
    pen.save(); pen.beginPath(); pen.rect(this.label, 0, this.width - this.label, POSITION_PX); pen.clip();
    this.drawTicks(pen, POSITION_PX, false);
    if (end !== null) {
      pen.strokeStyle = css("accent"); pen.lineWidth = 1.5; pen.setLineDash([6, 4]); pen.beginPath(); pen.moveTo(this.label, py(end)); pen.lineTo(this.width, py(end)); pen.stroke(); pen.setLineDash([]);
    }
    this.drawSteps(pen, own, py);
    if (cursor !== null) { pen.strokeStyle = css("accent"); pen.lineWidth = 1.5; pen.beginPath(); pen.moveTo(this.x(cursor), 0); pen.lineTo(this.x(cursor), POSITION_PX); pen.stroke(); }
    pen.restore();
  }

  drawSteps(pen, own, py) {
    pen.strokeStyle = css("ink"); pen.lineWidth = 1.8; pen.lineJoin = "round"; pen.beginPath();
    let before = null;
    own[P_OFFSET].forEach((offset, at) => {
      const x = this.x(own[P_TIME][at]);
      if (offset === null) { if (before !== null) pen.lineTo(x, before); before = null; return; }
      if (before === null) pen.moveTo(x, py(offset)); else { pen.lineTo(x, before); pen.lineTo(x, py(offset)); }
      before = py(offset);
    });
    if (before !== null) pen.lineTo(this.x(span), before);
    pen.stroke();
    own[P_KIND].forEach((kind, at) => {
      const x = this.x(own[P_TIME][at]);
      if (x < this.label - 8 || x > this.width + 8) return;
      const previous = own[P_OFFSET].slice(0, at).findLast((offset) => offset !== null) ?? 0;
      if (kind !== COMMIT) drawSign(pen, kind, x, py(own[P_OFFSET][at] ?? previous), 7);
      else if (own[P_TIME].length < 200) { pen.fillStyle = css("ink"); pen.beginPath(); pen.arc(x, py(own[P_OFFSET][at]), 2, 0, 7); pen.fill(); }
    });
  }

  drawLegend() {
    const { owners, bars } = this.group, items = [];
    owners.slice(0, 24).forEach((name, owner) => {
      const button = el("button", { type: "button", "aria-pressed": "false", onclick: () => this.choose(this.only === owner ? null : owner) });
      button.append(swatch(() => ownerFill(owner), letter(owner)), name);
      items.push(el("li", {}, button));
    });
    if (owners.length > 24) items.push(el("li", {}, `and ${plural(owners.length - 24, "more owner")}`));
    for (const kind of [REVOKING, AWAY, UNASSIGNED, EMPTY, UNKNOWN, OVERLAP, MANY]) {
      if (bars[KIND].includes(kind)) items.push(el("li", {}, swatch(() => kindFill(kind, 0), ""), KIND_WORDS[kind]));
    }
    this.legend.replaceChildren(...items);
    const notes = [];
    if (this.group.without_time) notes.push(`${plural(this.group.without_time, "interval")} without a time (message format 0) cannot be drawn; exhume owners shows them.`);
    if (this.group.without_effect) notes.push(`${plural(this.group.without_effect, "commit")} of aborted or open transactions never counted and are not drawn.`);
    if (notes.length) this.legend.after(el("p", { class: "soft" }, notes.join(" ")));
  }

  choose(owner) {
    this.only = owner;
    [...this.legend.querySelectorAll("button")].forEach((button, at) => button.setAttribute("aria-pressed", String(at === owner)));
    this.scroll.scrollTop = 0;
    this.draw();
  }

  drawRows() {
    if (!this.rows) return;
    const shown = this.group.marks.filter((mark) => mark[M_TIME] >= view.a && mark[M_TIME] <= view.b);
    const isWhole = shown.length === this.group.marks.length;
    this.count.textContent = `${shown.length.toLocaleString("en")} ${shown.length === 1 ? "rebalance or other event" : "rebalances and other events"} in this span${isWhole ? "" : ` of ${this.group.marks.length}`}${shown.length > MOST_ROWS ? `, the last ${MOST_ROWS} are listed` : ""}.`;
    this.rows.replaceChildren(...shown.slice(-MOST_ROWS).map((mark) => {
      const time = el("a", { class: "moment", href: `#t=${anchor(mark[M_TIME])}&g=${this.index}` }, showTime(mark[M_TIME]));
      const cause = el("td", {}, text(mark[M_CAUSES]) || text(mark[M_EVENT]));
      if (mark[M_STORM]) cause.append(" ", el("span", { class: "badge warn" }, "storm"));
      const cell = (value) => el("td", { class: "n" }, value < 0 ? "–" : number(value));
      return el("tr", {}, el("th", { scope: "row" }, time), el("td", { class: "n" }, String(mark[M_RECORD])), cell(mark[M_EPOCH]), cause,
        cell(mark[M_MEMBERS]), el("td", {}, text(mark[M_JOINED])), el("td", {}, text(mark[M_LEFT])), cell(mark[M_MOVED]));
    }));
  }

  // What is at a place

  laneAt(y) { return this.lanes[Math.floor((y + this.scroll.scrollTop) / this.height)]; }

  barsAt(lane, ms, slack) {
    const { bars } = this.group, found = [];
    for (let bar = this.starts[lane]; bar < this.starts[lane + 1]; bar++) {
      if (bars[FROM][bar] <= ms + slack && bars[FROM][bar] + bars[LENGTH][bar] >= ms - slack) found.push(bar);
    }
    const exact = found.filter((bar) => bars[FROM][bar] <= ms && bars[FROM][bar] + bars[LENGTH][bar] > ms);
    return exact.length ? exact : found.slice(0, 1);
  }

  pointAt(lane, ms, slack) {
    const own = this.group.points[lane];
    let best = -1;
    own[P_TIME].forEach((time, at) => {
      const away = Math.abs(time - ms), isSpecial = own[P_KIND][at] !== COMMIT;
      if (away > slack) return;
      if (best < 0 || (isSpecial && own[P_KIND][best] === COMMIT) || (away < Math.abs(own[P_TIME][best] - ms) && isSpecial >= (own[P_KIND][best] !== COMMIT))) best = at;
    });
    return best;
  }

  tell(lane, ms, slack) {
    if (lane === undefined) return "";
    if (this.byMember) {
      const segment = this.segments(lane).find(([from, to]) => from <= ms && to > ms);
      return `${this.group.owners[lane]}\n${showTime(ms)}\n${segment ? plural(segment[2], "partition") : "owns no partition"}`;
    }
    const lines = [this.name(lane)];
    for (const bar of this.barsAt(lane, ms, slack)) lines.push(this.tellBar(bar));
    const at = this.pointAt(lane, ms, slack);
    if (at >= 0) lines.push(this.tellPoint(lane, at));
    return lines.join("\n");
  }

  tellBar(bar) {
    const { bars, owners } = this.group, kind = bars[KIND][bar], owner = bars[OWNER][bar];
    const from = bars[FROM][bar], to = from + bars[LENGTH][bar], end = bars[END_RECORD][bar];
    let words = owner >= 0 ? `${letter(owner)}  ${owners[owner]}` : KIND_WORDS[kind];
    if (kind === REVOKING || kind === AWAY) words += `, ${KIND_WORDS[kind]}`;
    if (kind === MANY) words = `${plural(bars[COUNT][bar], "interval")}, too short to draw one by one${owner >= 0 ? `; the longest: ${letter(owner)} ${owners[owner]}` : ""}`;
    words += `\n${showTime(from)} to ${showTime(to)} (${duration(to - from)})`;
    words += `\nrecords ${bars[RECORD][bar]} to ${end < 0 ? "the end" : end}`;
    if (bars[EPOCH][bar] >= 0) words += `, generation or epoch ${bars[EPOCH][bar]}`;
    if (bars[FLAGS][bar] & 1) words += "\nmay have begun earlier";
    if (bars[FLAGS][bar] & 2) words += "\nmay have ended earlier";
    return words;
  }

  tellPoint(lane, at) {
    const own = this.group.points[lane], kind = own[P_KIND][at], delta = own[P_DELTA][at];
    const what = { [COMMIT]: "committed", [REWIND]: "▼ set back to", [JUMP]: "▲ jumped to", [GONE]: "× offset removed" }[kind];
    let words = `${what}${kind === GONE ? "" : ` ${number(own[P_OFFSET][at])}`}`;
    if (delta !== null && kind !== GONE) words += ` (${delta >= 0 ? "+" : ""}${number(delta)})`;
    words += ` by record ${own[P_RECORD][at]}, ${showTime(own[P_TIME][at])}`;
    const committer = text(own[P_COMMITTER][at]);
    return committer ? `${words}\n${committer}` : words;
  }

  tellMarks(ms, slack) {
    const near = this.group.marks.filter((mark) => Math.abs(mark[M_TIME] - ms) <= slack);
    const flags = this.group.flags.filter(([from, to]) => from - slack <= ms && to + slack >= ms);
    const lines = near.slice(0, 3).map((mark) => this.tellMark(mark));
    if (near.length > 3) lines.push(`and ${plural(near.length - 3, "more event")} here`);
    for (const flag of flags.slice(0, 2)) lines.push(`${flag[2]} ${flag[3]}: ${text(flag[4])}`);
    return lines.join("\n");
  }

  tellMark(mark) {
    let words = `◆ ${showTime(mark[M_TIME])}, record ${mark[M_RECORD]}`;
    if (mark[M_EPOCH] >= 0) words += `, generation or epoch ${mark[M_EPOCH]}`;
    words += `\n${text(mark[M_CAUSES]) || text(mark[M_EVENT])}; ${plural(mark[M_MEMBERS], "member")}`;
    if (mark[M_JOINED] >= 0) words += `\njoined: ${text(mark[M_JOINED])}`;
    if (mark[M_LEFT] >= 0) words += `\nleft: ${text(mark[M_LEFT])}`;
    if (mark[M_MOVED] >= 0) words += `\n${plural(mark[M_MOVED], "partition")} moved`;
    if (mark[M_NONE] >= 0) words += `\nno assignment for ${duration(mark[M_NONE])}`;
    if (mark[M_RECONCILED] >= 0) words += `\nreconciled after ${duration(mark[M_RECONCILED])}`;
    return words;
  }

  // Events

  listen(byPartition, byMember) {
    const mode = (isMember) => {
      this.byMember = isMember;
      byPartition.setAttribute("aria-pressed", String(!isMember)); byMember.setAttribute("aria-pressed", String(isMember));
      this.scroll.scrollTop = 0;
      this.draw();
    };
    byPartition.addEventListener("click", () => mode(false));
    byMember.addEventListener("click", () => mode(true));
    this.scroll.addEventListener("scroll", () => this.drawLanes(), { passive: true });
    for (const target of [this.canvas, this.head, this.position]) {
      target.addEventListener("pointermove", (event) => this.hover(event));
      target.addEventListener("pointerleave", hideTip);
      target.addEventListener("pointerdown", (event) => { if (event.button === 0) this.drag = { x: event.offsetX, a: view.a, b: view.b, isPan: event.shiftKey }; });
      target.addEventListener("pointerup", (event) => this.release(event));
      target.addEventListener("dblclick", () => zoom(3, (view.a + view.b) / 2));
      target.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        zoom(event.deltaY > 0 ? 1.25 : 0.8, this.ms(event.offsetX));
      }, { passive: false });
    }
    this.scroll.addEventListener("keydown", (event) => this.key(event));
  }

  hover(event) {
    const { offsetX: x, offsetY: y, currentTarget } = event;
    if (this.drag?.isPan) {
      const moved = ((this.drag.x - x) / this.room) * (this.drag.b - this.drag.a);
      setView(this.drag.a + moved, this.drag.b + moved);
      return;
    }
    if (x < this.label) { hideTip(); return; }
    const ms = this.ms(x), slack = ((view.b - view.a) / this.room) * 6;
    let words;
    if (currentTarget === this.head) words = this.tellMarks(ms, slack);
    else if (currentTarget === this.position) { const at = this.pointAt(this.lane, ms, slack * 3); words = at < 0 ? "" : this.tellPoint(this.lane, at); }
    else words = this.tell(this.laneAt(y), ms, slack);
    if (this.drag && Math.abs(x - this.drag.x) > 4) words = `${showTime(this.ms(Math.min(x, this.drag.x)))}\nto ${showTime(this.ms(Math.max(x, this.drag.x)))}`;
    if (words) showTip(words, event.clientX, event.clientY); else hideTip();
  }

  release(event) {
    const drag = this.drag;
    this.drag = null;
    if (!drag || drag.isPan) return;
    const x = event.offsetX;
    if (Math.abs(x - drag.x) > 6 && drag.x >= this.label) {
      setView(this.ms(Math.min(x, drag.x)), this.ms(Math.max(x, drag.x)));
      return;
    }
    if (event.currentTarget === this.canvas && !this.byMember) this.lane = this.laneAt(event.offsetY) ?? this.lane;
    if (x >= this.label) link(this.ms(x), this.index);
    this.say();
    drawAll();
  }

  say() {
    this.said.textContent = cursor === null ? "" : this.tell(this.byMember ? this.lanes[0] : this.lane, cursor, 0).replaceAll("\n", "; ");
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = (view.b - view.a) / 10;
    const acts = {
      ArrowLeft: () => setView(view.a - step, view.b - step), ArrowRight: () => setView(view.a + step, view.b + step),
      "+": () => zoom(0.5, cursor ?? (view.a + view.b) / 2), "=": () => zoom(0.5, cursor ?? (view.a + view.b) / 2),
      "-": () => zoom(2, cursor ?? (view.a + view.b) / 2), 0: () => setView(whole.a, whole.b),
      ArrowUp: () => this.move(-1), ArrowDown: () => this.move(1), n: () => this.next(1), p: () => this.next(-1),
    };
    const act = acts[event.key] ?? acts[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  }

  move(by) {
    const at = clamp(this.lanes.indexOf(this.lane) + by, 0, this.lanes.length - 1);
    if (this.byMember || this.lanes[at] === undefined) return;
    this.lane = this.lanes[at];
    const y = at * this.height;
    if (y < this.scroll.scrollTop) this.scroll.scrollTop = y;
    if (y + this.height > this.scroll.scrollTop + this.shown) this.scroll.scrollTop = y + this.height - this.shown;
    cursor ??= (view.a + view.b) / 2;
    this.say();
    this.draw();
  }

  // Go to the next, or the previous, rebalance, rewind, jump or removal.
  next(by) {
    const own = this.group.points[this.lane] ?? [[], [], [], []];
    const times = [...this.group.marks.map((mark) => mark[M_TIME]), ...own[P_TIME].filter((_, at) => own[P_KIND][at] !== COMMIT)].sort((one, other) => one - other);
    const from = cursor ?? (by > 0 ? view.a - 1 : view.b + 1);
    const time = by > 0 ? times.find((each) => each > from) : times.findLast((each) => each < from);
    if (time === undefined) return;
    link(time, this.index);
    if (time < view.a || time > view.b) { const half = (view.b - view.a) / 2; setView(time - half, time + half); }
    const words = [this.tellMarks(time, 0), this.tell(this.lane, time, 0)].filter(Boolean).join("; ");
    this.said.textContent = words.replaceAll("\n", "; ");
    drawAll();
  }
}

const fit = (pen, words, room) => {
  if (pen.measureText(words).width <= room) return words;
  let low = 0, high = words.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (pen.measureText(`${words.slice(0, middle)}…`).width <= room) low = middle; else high = middle - 1;
  }
  return low > 0 ? `${words.slice(0, low)}…` : "";
};
const drawSign = (pen, kind, x, y, size) => {
  pen.lineWidth = 1.5; pen.strokeStyle = "#ffffff"; pen.fillStyle = kind === JUMP ? "#0b57a4" : "#b32400";
  pen.beginPath();
  if (kind === GONE) {
    for (const [colour, wide] of [["#ffffff", 5], ["#b32400", 2.5]]) {
      pen.strokeStyle = colour; pen.lineWidth = wide; pen.beginPath();
      pen.moveTo(x - size * 0.7, y - size * 0.7); pen.lineTo(x + size * 0.7, y + size * 0.7); pen.moveTo(x - size * 0.7, y + size * 0.7); pen.lineTo(x + size * 0.7, y - size * 0.7); pen.stroke();
    }
    return;
  }
  const tip = kind === REWIND ? size : -size;
  pen.moveTo(x - size, y - tip * 0.8); pen.lineTo(x + size, y - tip * 0.8); pen.lineTo(x, y + tip); pen.closePath(); pen.fill(); pen.stroke();
};
const swatch = (fill, words) => {
  const canvas = el("canvas", { width: 52, height: 32, "aria-hidden": "true" }), pen = canvas.getContext("2d");
  const paint = () => {
    pen.setTransform(2, 0, 0, 2, 0, 0); pen.fillStyle = fill(); pen.fillRect(0, 0, 26, 16);
    pen.fillStyle = "#16191d"; pen.font = "700 11px system-ui, sans-serif"; pen.textAlign = "center"; pen.textBaseline = "middle"; pen.fillText(words, 13, 8.5);
  };
  paint();
  repaint.push(paint);
  return canvas;
};
const repaint = [];

// View, cursor and filters

const tip = document.getElementById("tip");
const showTip = (words, x, y) => {
  tip.textContent = words;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${clamp(x + 14, 4, window.innerWidth - box.width - 8)}px`;
  tip.style.top = `${y + 18 + box.height > window.innerHeight ? Math.max(y - box.height - 12, 4) : y + 18}px`;
};
const hideTip = () => { tip.hidden = true; };

const pictures = [...document.querySelectorAll(".picture")].map((root) => {
  const index = Number(root.dataset.picture);
  return new Picture(root, data.groups[index], index);
});
const drawAll = () => pictures.forEach((picture) => picture.draw());
let isWaiting = false;
const redraw = () => {
  if (isWaiting) return;
  isWaiting = true;
  requestAnimationFrame(() => { isWaiting = false; drawAll(); showView(); });
};
const setView = (a, b) => {
  const wide = clamp(b - a, Math.min(20, span), span);
  view.a = clamp(a, 0, span - wide);
  view.b = view.a + wide;
  hideTip();
  redraw();
};
const zoom = (factor, at) => setView(at - (at - view.a) * factor, at + (view.b - at) * factor);
const showView = () => {
  const isWhole = view.a === whole.a && view.b === whole.b;
  document.getElementById("view").textContent = isWhole ? "" : viewWords();
};
const viewWords = () => {
  const [from, to] = [showTime(view.a), showTime(view.b)];
  return `${from.slice(0, 19)} to ${from.slice(0, 10) === to.slice(0, 10) ? to.slice(11, 19) : to.slice(0, 19)} (${duration(view.b - view.a)})`;
};
const link = (ms, group) => {
  cursor = clamp(ms, 0, span);
  window.history.replaceState(null, "", `#t=${anchor(cursor)}&g=${group}`);
};
const follow = () => {
  const wanted = new URLSearchParams(window.location.hash.slice(1)), moment = wanted.get("t");
  if (moment === null) return;
  const at = Date.parse(moment) - data.begin_ms;
  if (Number.isNaN(at)) return;
  cursor = clamp(at, 0, span);
  if (view.a === whole.a && view.b === whole.b) setView(cursor - span / 8, cursor + span / 8);
  else if (cursor < view.a || cursor > view.b) setView(cursor - (view.b - view.a) / 2, cursor + (view.b - view.a) / 2);
  const number = wanted.get("g") ?? "0", picture = pictures.find((each) => String(each.index) === number);
  picture?.root.scrollIntoView({ block: "start" });
  picture?.say();
  redraw();
};
window.addEventListener("hashchange", follow);

const options = (name, values) => {
  const select = document.getElementById(name), distinct = [...new Set(values)].sort();
  for (const value of distinct.slice(0, MOST_OPTIONS)) select.append(el("option", { value }, value === "" ? '""' : value));
  select.addEventListener("change", () => { filter[name] = select.value; applyFilter(); });
};
const applyFilter = () => {
  for (const picture of pictures) {
    const section = picture.root.closest("section"), { group } = picture;
    section.hidden = (filter.group !== "" && group.name !== filter.group)
      || (filter.topic !== "" && !group.lanes.some(([topic]) => text(topic) === filter.topic))
      || (filter.member !== "" && !group.owners.includes(filter.member));
    picture.scroll.scrollTop = 0;
  }
  redraw();
};
options("group", data.groups.map((group) => group.name));
options("topic", data.groups.flatMap((group) => group.lanes.map(([topic]) => text(topic))));
options("member", data.groups.flatMap((group) => group.owners));
document.getElementById("in").addEventListener("click", () => zoom(0.5, cursor ?? (view.a + view.b) / 2));
document.getElementById("out").addEventListener("click", () => zoom(2, cursor ?? (view.a + view.b) / 2));
document.getElementById("all").addEventListener("click", () => setView(whole.a, whole.b));

// Light, dark and print

const theme = document.getElementById("theme");
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
const setTheme = (name) => {
  document.documentElement.dataset.theme = name;
  theme.textContent = name === "dark" ? "Light" : "Dark";
  theme.setAttribute("aria-label", name === "dark" ? "Light colours" : "Dark colours");
  swatches.clear();
  repaint.forEach((paint) => paint());
  drawAll();
};
theme.addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
prefersDark.addEventListener("change", () => setTheme(prefersDark.matches ? "dark" : "light"));
let before = "light";
let folded = [];
window.addEventListener("beforeprint", () => {
  isPrinting = true;
  folded = [...document.querySelectorAll("details:not([open])")];
  folded.forEach((each) => { each.open = true; });
  before = document.documentElement.dataset.theme;
  setTheme("light");
});
window.addEventListener("afterprint", () => {
  isPrinting = false;
  folded.forEach((each) => { each.open = false; });
  setTheme(before);
});
window.addEventListener("resize", redraw);
setTheme(prefersDark.matches ? "dark" : "light");
showView();
if (window.location.hash) follow();
})();

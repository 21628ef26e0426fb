// A learnt policy, evaluated without anything else: made by armwise, see docs/edge.md.
//
//   import { decide, event } from "./policy.mjs";
//   const chosen = decide({ device: "phone", hour: 21 }, ["red", "green"], { unit: "user-7" });
//   chosen.arm, chosen.probability; navigator.sendBeacon("/beacons", event(chosen));
export const policy = /*POLICY*/ null;
export const checksum = /*CHECKSUM*/ "";

const TIE = 1e-12, MAX_MAGNITUDE = 1e150, MAX_CACHED = 65536;
const { sees, encoder, rule, floors, arms: fixedArms } = policy;
const hashed = encoder !== null && encoder.kind === "hashed";
const dim = policy.models.length ? policy.models[0].weights.length : 0;

// ------------------------------------------------------------------ models, packed for the loops below

// Eight rows of W at a time, column by column; missing numbers are 0, which changes no sum. Plain arrays are faster to
// read in this loop than typed ones.
function packed(factor) {
  const blocks = [];
  for (let i = 0; i < factor.length; i += 8) {
    const rows = factor.slice(i, i + 8);
    const end = 8 * Math.max(...rows.map((row) => row.length), 0);
    const block = new Float64Array(end);
    rows.forEach((row, r) => row.forEach((w, j) => { block[8 * j + r] = w; }));
    blocks.push({ end, block: Array.from(block) });
  }
  return blocks;
}
const models = policy.models.map((model) => ({
  weights: Float64Array.from(model.weights),
  widths: model.widths.map(({ alpha, factor }) => ({ alpha, blocks: packed(factor) })),
}));

// Room for the arms' rows, one after the other: the columns that are not 0, in their order, times 8, and their values;
// where each arm's row is, and what a width comes to.
const roomFor = (arms) => ({
  columns: new Int32Array(arms * dim), values: new Float64Array(arms * dim),
  starts: new Int32Array(arms), ends: new Int32Array(arms), totals: new Float64Array(arms), arms,
});
let room = roomFor(16);

// The sum of weight x value over a row.
function mean({ weights }, { columns, values }, start, end) {
  let sum = 0;
  for (let k = start; k < end; ++k) sum += weights[columns[k] >> 3] * values[k];
  return sum;
}

// ||W x||^2 of arms: each row's sum in the order of the columns, then their squares in the order of the rows.
function squares({ blocks }, first, last, { columns, values, starts, ends, totals }) {
  for (let a = first; a < last; ++a) totals[a] = 0;
  for (const { block, end } of blocks) // for all arms, while it is in the cache
    for (let a = first; a < last; ++a)
      totals[a] = added(block, end, columns, values, starts[a], ends[a], totals[a]);
}
function added(block, most, columns, values, start, end, total) {
  let s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
  for (let k = start; k < end; ++k) {
    const o = columns[k];
    if (o >= most) break;
    const v = values[k];
    s0 += block[o] * v; s1 += block[o + 1] * v; s2 += block[o + 2] * v; s3 += block[o + 3] * v;
    s4 += block[o + 4] * v; s5 += block[o + 5] * v; s6 += block[o + 6] * v; s7 += block[o + 7] * v;
  }
  total += s0 * s0; total += s1 * s1; total += s2 * s2; total += s3 * s3;
  total += s4 * s4; total += s5 * s5; total += s6 * s6; total += s7 * s7;
  return total;
}

// ------------------------------------------------------------------ tokens and their hashes

const MASK = (1n << 64n) - 1n;
const IV = [
  0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n,
  0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n,
];
const SIGMA = [
  "0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
  "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0",
].map((row) => [...row].map((digit) => parseInt(digit, 16)));

// BLAKE2b with an 8-byte digest, as an unsigned little-endian integer.
export function blake2b(bytes) {
  const h = IV.slice();
  h[0] ^= 0x01010008n;
  const last = Math.max(0, Math.ceil(bytes.length / 128) - 1);
  for (let b = 0; b <= last; ++b) {
    const block = new Uint8Array(128);
    block.set(bytes.subarray(128 * b, 128 * b + 128));
    const view = new DataView(block.buffer);
    const m = Array.from({ length: 16 }, (_, i) => view.getBigUint64(8 * i, true));
    const v = [...h, ...IV];
    v[12] ^= BigInt(b === last ? bytes.length : 128 * (b + 1));
    if (b === last) v[14] ^= MASK;
    const rotate = (x, n) => ((x >> n) | (x << (64n - n))) & MASK;
    const g = (a, b, c, d, x, y) => {
      v[a] = (v[a] + v[b] + x) & MASK; v[d] = rotate(v[d] ^ v[a], 32n);
      v[c] = (v[c] + v[d]) & MASK; v[b] = rotate(v[b] ^ v[c], 24n);
      v[a] = (v[a] + v[b] + y) & MASK; v[d] = rotate(v[d] ^ v[a], 16n);
      v[c] = (v[c] + v[d]) & MASK; v[b] = rotate(v[b] ^ v[c], 63n);
    };
    for (let r = 0; r < 12; ++r) {
      const s = SIGMA[r % 10];
      g(0, 4, 8, 12, m[s[0]], m[s[1]]); g(1, 5, 9, 13, m[s[2]], m[s[3]]);
      g(2, 6, 10, 14, m[s[4]], m[s[5]]); g(3, 7, 11, 15, m[s[6]], m[s[7]]);
      g(0, 5, 10, 15, m[s[8]], m[s[9]]); g(1, 6, 11, 12, m[s[10]], m[s[11]]);
      g(2, 7, 8, 13, m[s[12]], m[s[13]]); g(3, 4, 9, 14, m[s[14]], m[s[15]]);
    }
    for (let i = 0; i < 8; ++i) h[i] ^= v[i] ^ v[i + 8];
  }
  return h[0];
}

function utf8(text) {
  if (/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text))
    throw new Error("half a surrogate pair in a string");
  return new TextEncoder().encode(text);
}

// A token that was met: its number here, its hash, the scale of its numbers (null: they are 0). Known by its text.
let tokens = new Map(), arms = new Map();
function token(text) {
  let known = tokens.get(text);
  if (known === undefined) {
    if (tokens.size >= MAX_CACHED) tokens = new Map(), arms = new Map();
    const hash = blake2b(utf8(text));
    const scale = encoder.scale[hash.toString(16).padStart(16, "0")];
    known = { index: tokens.size, hash, mean: scale ? scale[0] : 0, span: scale ? 3 * scale[1] : 0 };
    tokens.set(text, known);
  }
  return known;
}
const CONSTANT = hashed ? { index: 0, hash: blake2b(utf8("1")) } : null;

// Depth first, in the order that was written: what becomes of a value is said in docs/edge.md.
function walk(value, path, outermost, found) {
  if (value === null || value === undefined) return;
  switch (typeof value) {
    case "string": found.push(token(path + "\x1es" + value), 1); break;
    case "boolean": found.push(token(path + "\x1eb" + value), 1); break;
    case "number": {
      if (Number.isNaN(value)) return;
      if (!(Math.abs(value) < MAX_MAGNITUDE)) throw new Error("a number beyond 1e150 in magnitude");
      const known = token(path);
      found.push(known, known.span === 0 ? 0 : Math.min(Math.max((value - known.mean) / known.span, -1), 1));
      break;
    }
    case "object":
      if (Array.isArray(value))
        value.forEach((item, i) => walk(item, typeof item === "number" ? `${path}\x1f${i}` : path, outermost, found));
      else
        for (const key of Object.keys(value)) walk(value[key], path + (outermost ? "" : "\x1f") + key, false, found);
      break;
    default: throw new Error(`not a value of JSON: ${typeof value}`);
  }
}

// What has names: an object, or a list of objects.
function named(value, what) {
  const isObject = (item) => typeof item === "object" && item !== null && !Array.isArray(item);
  if (!(Array.isArray(value) ? value.every(isObject) : isObject(value)))
    throw new Error(`${what} must be an object or a list of objects`);
  return value;
}

// ------------------------------------------------------------------ rows of hashed pairs

// SplitMix64's finaliser of a pair: the position, and the sign as the lowest bit.
function place(c, a) {
  let z = (c * 0x9e3779b97f4a7c15n + a) & MASK;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
  z ^= z >> 31n;
  return Number((z & 0x7fffffffffffffffn) % BigInt(dim)) * 2 + Number(z >> 63n);
}

// Where a token of the context falls, alone and with each token of an arm.
function places(arm, c) {
  const found = new Int32Array(2 + arm.tokens.length);
  found[0] = place(c.hash, CONSTANT.hash);
  if (arm.id) found[1] = place(c.hash, arm.id.hash);
  arm.tokens.forEach((a, k) => { found[2 + k] = place(c.hash, a.hash); });
  return found;
}

// An arm's tokens; those that were met before share the places of their pairs.
function readArm(sent) {
  const id = typeof sent === "string" ? sent : sent.id, list = [];
  if (typeof sent !== "string" && sent.features !== undefined)
    walk(named(sent.features, "an arm's features"), "a", true, list);
  let key = id;
  for (let k = 0; k < list.length; k += 2) key += "\x00" + list[k].index;
  let known = arms.get(key);
  if (known === undefined) {
    const names = [];
    for (let k = 0; k < list.length; k += 2) names.push(list[k]);
    known = { id: token("a\x1ei" + id), tokens: names, places: [], first: null };
    known.first = places(known, CONSTANT);
    if (arms.size >= MAX_CACHED) arms = new Map();
    arms.set(key, known);
  }
  return { known, list };
}

const sums = new Float64Array(dim);
function addPairs(row, arm, list, where, value, crossed) {
  let place = where[0];
  row[place >> 1] += place & 1 ? -value : value;
  if (!crossed) return;
  if (arm.id) {
    place = where[1];
    row[place >> 1] += place & 1 ? -value : value;
  }
  for (let k = 0, i = 1; i < list.length; ++k, i += 2) {
    const both = value * list[i];
    place = where[2 + k];
    row[place >> 1] += place & 1 ? -both : both;
  }
}

// The row's columns that are not 0, divided by its length, from place `start` on. Returns where they end.
function hashedRow(arm, list, context, { columns, values }, start) {
  sums.fill(0);
  addPairs(sums, arm, list, arm.first, 1, true);
  for (let k = 0; k < context.length; k += 2) {
    const c = context[k], value = context[k + 1];
    let where = arm.places[c.index];
    if (where === undefined) where = arm.places[c.index] = places(arm, c);
    addPairs(sums, arm, list, where, value, encoder.interactions && value !== 0);
  }
  let total = 0, end = start;
  for (let i = 0; i < dim; ++i)
    if (sums[i] !== 0) {
      total += sums[i] * sums[i];
      columns[end] = 8 * i;
      values[end++] = sums[i];
    }
  const length = total > 0 ? Math.sqrt(total) : 1;
  for (let k = start; k < end; ++k) values[k] /= length;
  return end;
}
const NOBODY = hashed ? { id: null, tokens: [], places: [], first: null } : null;
if (hashed) NOBODY.first = places(NOBODY, CONSTANT);

// A row of numbers: an array, or an object with the columns' names.
function plainRow(row, { columns, values }, start) {
  const names = encoder.columns;
  if (row === null || typeof row !== "object") throw new Error("a row must be a list of numbers, or an object of them");
  if (Array.isArray(row) && row.length !== names.length)
    throw new Error(`a row must have ${names.length} numbers, got ${row.length}`);
  let end = start;
  for (let i = 0; i < names.length; ++i) {
    const value = Array.isArray(row) ? row[i] : row[names[i]];
    if (typeof value !== "number" || !(Math.abs(value) <= MAX_MAGNITUDE))
      throw new Error(`${names[i]} must be a number of at most 1e150 in size, got ${value}`);
    if (value !== 0) columns[end] = 8 * i, values[end++] = value;
  }
  return end;
}

// ------------------------------------------------------------------ the rule

const knownLess = (square, bar) => {
  const ratio = bar > 0 ? Math.min(square / bar, MAX_MAGNITUDE) : 1;
  return ratio > 1 ? Math.log(ratio) : 0;
};
function widened(means, widths, alphas) {
  const leader = widths[means.indexOf(Math.max(...means))], bar = rule.beyond * (leader * leader);
  return means.map((mean, a) => {
    const square = widths[a] * widths[a];
    return mean + Math.sqrt(square * (alphas[a] * alphas[a] + rule.extra * knownLess(square, bar)));
  });
}
function tied(scores) {
  let top = -Infinity, ties = 0;
  for (const score of scores) {
    if (Number.isNaN(score)) throw new Error("a score is no number: did the context overflow?");
    if (score > top) top = score;
  }
  for (const score of scores) if (score >= top - TIE) ++ties;
  return scores.map((score) => (score >= top - TIE ? 1 / ties : 0));
}
function inverseGap(means, gamma) {
  const best = Math.max(...means), K = means.length;
  let others = 0, n = 0;
  const p = means.map((mean) => {
    if (mean >= best - TIE) { ++n; return -1; }
    const each = 1 / (K + gamma * (best - mean));
    others += each;
    return each;
  });
  return p.map((each) => (each < 0 ? (1 - others) / n : each));
}
function bounded(means, widths, lengths) {
  const K = means.length, radius = Math.sqrt(rule.excess * Math.log(K * rule.t));
  const leader = widths[means.indexOf(Math.max(...means))], bar = rule.beyond * (leader * leader);
  const cut = (value) => Math.min(rule.most, Math.max(rule.least, value));
  const low = [], high = [];
  means.forEach((mean, a) => {
    const square = widths[a] * widths[a];
    const untouched = lengths[a] > 0 && rule.lam * square >= (1 - 1e-9) * lengths[a];
    const margin = rule.extra > 0
      ? Math.sqrt(square * (radius * radius + rule.extra * knownLess(square, bar))) : radius * widths[a];
    low.push(untouched ? rule.least : cut(mean - margin));
    high.push(untouched ? rule.most : cut(mean + margin));
  });
  if (!rule.elimination) return tied(high);
  const floor = Math.max(...low) - TIE, n = high.filter((each) => each >= floor).length;
  return high.map((each) => (each >= floor ? 1 / n : 0));
}

// Over the multipliers that are drawn: the weight of each goes to the arms that tie for the largest score at it.
function drawnMultipliers(means, margins) {
  const p = means.map(() => 0);
  rule.multipliers.forEach((z, j) => {
    tied(means.map((mean, a) => mean + z * margins[a])).forEach((share, a) => { p[a] += rule.weights[j] * share; });
  });
  const total = p.reduce((sum, each) => sum + each, 0);
  return p.map((each) => each / total);
}

// The distribution over arms: `readRows` puts their rows into the room; arm a has model a, or all have the one.
function distribution(K, readRows) {
  if (rule.kind === "fixed") return rule.p.slice();
  if (room.arms < K) room = roomFor(2 * K);
  readRows();
  const { values, starts, ends, totals } = room, shared = models.length === 1;
  const means = [], scores = [], widths = [], alphas = [];
  for (let a = 0; a < K; ++a) {
    const m = mean(models[shared ? 0 : a], room, starts[a], ends[a]);
    means.push(m); scores.push(m); widths.push(0); alphas.push(0);
  }
  for (let m = 0; m < models.length; ++m) {
    const first = shared ? 0 : m, last = shared ? K : m + 1;
    for (const width of models[m].widths) {
      squares(width, first, last, room);
      for (let a = first; a < last; ++a) {
        widths[a] = Math.sqrt(totals[a]);
        alphas[a] = width.alpha;
        scores[a] += width.alpha * widths[a];
      }
    }
  }
  if (rule.kind === "bounds") {
    const lengths = means.map((_, a) => {
      let length = 0;
      for (let k = starts[a]; k < ends[a]; ++k) length += values[k] * values[k];
      return length;
    });
    return bounded(means, widths, lengths);
  }
  if (rule.kind === "optimism") return tied(rule.extra > 0 ? widened(means, widths, alphas) : scores);
  if (rule.kind === "random optimism") return drawnMultipliers(means, widths.map((width, a) => alphas[a] * width));
  if (rule.kind !== "inverse gap") throw new Error(`a rule that this evaluator does not know: ${rule.kind}`);
  if (!rule.losses) return inverseGap(rule.extra > 0 ? widened(means, widths, alphas) : means, rule.gamma);
  const rewards = means.map((m) => Math.min(Math.max(m, 0), 1 - rule.losses));
  return inverseGap(rewards, rule.gamma / (1 - Math.max(...rewards)));
}
const floored = (p) => floors.reduce((q, floor) => q.map((each) => (1 - floor) * each + floor / q.length), p);

// Arms that were drawn before, by the hash of their ids: whether they are known, or only tried.
const drawnBefore = new Map();
if (policy.ramp)
  for (const kind of ["tried", "known"])
    for (const hash of policy.ramp[kind]) drawnBefore.set(BigInt("0x" + hash), kind === "known");

// ------------------------------------------------------------------ what to call

const isRow = (arm) => !hashed && (Array.isArray(arm) || (typeof arm === "object" && arm !== null && arm.id === undefined));
const idOf = (arm, place) => {
  if (isRow(arm)) return fixedArms === null ? String(place) : fixedArms[place];
  const id = typeof arm === "string" ? arm : arm === null || typeof arm !== "object" ? undefined : arm.id;
  if (typeof id !== "string" || !id) throw new Error("an arm must be a text, or an object with an id");
  if (typeof arm !== "string")
    for (const name in arm)
      if (name !== "id" && name !== "features") throw new Error(`an arm has an id and features: put ${name} into features`);
  return id;
};

/** The probability of each arm, in the order of `arms`; a policy with arms of its own may be asked without. */
export function probabilities(context = {}, offered = null) {
  const given = offered === null ? fixedArms : offered;
  if (!Array.isArray(given) || !given.length) throw new Error("arms must be a list of at least one");
  if (fixedArms !== null) {
    const ids = given.map(idOf), at = ids.map((id) => fixedArms.indexOf(id));
    if (at.includes(-1)) throw new Error(`this policy has fixed arms, and ${ids[at.indexOf(-1)]} is none of them`);
    if (new Set(at).size !== at.length) throw new Error("two arms have the same id");
    if (sees !== "features") return restricted(overAll(context), at);
    if (at.length !== fixedArms.length) throw new Error("this policy needs all its arms in every request");
    const turned = [];
    at.forEach((place, k) => { turned[place] = given[k]; });
    const p = overRows(context, turned);
    return at.map((place) => p[place]);
  }
  if (new Set(given.map(idOf)).size !== given.length) throw new Error("two arms have the same id");
  return ramped(context, given, overRows(context, given));
}
// At most a share for the new arms that the rule wants, where a known one is on offer.
function ramped(context, given, p) {
  if (!policy.ramp) return p;
  const seen = given.map((arm, a) => drawnBefore.get(token("a\x1ei" + idOf(arm, a)).hash));
  const isNew = seen.map((each) => each === undefined);
  if (!seen.includes(true) || !isNew.includes(true)) return p;
  const { share } = policy.ramp, least = Math.min(...p);
  let wanted = 0, n = 0, excess = 0;
  p.forEach((each, a) => { if (isNew[a] && each > least) { wanted += each; ++n; excess += each - least; } });
  if (!(wanted > Math.max(share, least * n))) return p;
  const room = Math.max(0, share - least * n), known = overRows(context, given.filter((_, a) => !isNew[a]));
  const lowest = Math.min(...known), above = known.reduce((sum, each) => sum + (each - lowest), 0);
  const rest = 1 - room - least * p.length;
  let k = 0;
  return p.map((each, a) => isNew[a] ? least + (each - least) * (room / excess)
    : least + (above > 0 ? (known[k++] - lowest) / above : 1 / known.length) * rest);
}
function restricted(p, at) {
  const own = at.map((place) => p[place]);
  if (own.length === p.length) return own;
  const total = own.reduce((sum, each) => sum + each, 0);
  return own.map((each) => (total > 0 ? each / total : 1 / own.length));
}
// One row for all arms, each with a model of its own.
function overAll(context) {
  const K = fixedArms.length;
  return floored(distribution(K, () => {
    const found = [];
    if (hashed) walk(named(context, "the context"), "c", true, found);
    const end = hashed ? hashedRow(NOBODY, [], found, room, 0) : plainRow(context, room, 0);
    room.starts.fill(0, 0, K);
    room.ends.fill(end, 0, K);
  }));
}
// A row for each arm.
function overRows(context, given) {
  const K = given.length;
  return floored(distribution(K, () => {
    const found = [];
    if (hashed) walk(named(context, "the context"), "c", true, found);
    let end = 0;
    for (let a = 0; a < K; ++a) {
      const arm = given[a];
      room.starts[a] = end;
      if (hashed) {
        const { known, list } = readArm(arm);
        end = hashedRow(known, list, found, room, end);
      } else end = plainRow(isRow(arm) ? arm : arm.features, room, end);
      room.ends[a] = end;
    }
  }));
}

/** A number in [0, 1) that a unit keeps: with it, the unit keeps its arm while the distribution stays. */
export const uniform = (unit) =>
  Number(blake2b(utf8(`${policy.application ?? ""}/${unit}`)) >> 11n) / 9007199254740992;

/** Draw an arm: with `u` in [0, 1), with a `unit` that keeps its number, or by chance. */
export function decide(context = {}, offered = null, { unit = null, u = null, id = null } = {}) {
  const p = probabilities(context, offered), given = offered ?? fixedArms;
  const at = u !== null ? u : unit !== null ? uniform(unit) : crypto.getRandomValues(new Uint32Array(1))[0] / 2 ** 32;
  if (!(at >= 0 && at < 1)) throw new Error(`u must be a number in [0, 1), got ${at}`);
  let arm = 0, total = 0;
  for (let a = 0; a < p.length; ++a)
    if (p[a] > 0) {
      total += p[a];
      arm = a;
      if (at < total) break;
    }
  return {
    id: id ?? crypto.randomUUID(), unit, context, arms: given, arm: idOf(given[arm], arm),
    probability: p[arm], probabilities: p, policy: checksum, version: policy.version, position: policy.position,
    time: Date.now() / 1000,
  };
}

/** The line that reports a decision; the line of its outcome is `outcome(decision, reward)`. */
export const event = (decision) => JSON.stringify({ kind: "decision", application: policy.application, ...decision }) + "\n";
export const outcome = (decision, reward) =>
  JSON.stringify({ kind: "outcome", id: decision.id, reward, time: Date.now() / 1000 }) + "\n";

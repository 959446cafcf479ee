/* What the file holds, as arrays: nothing here knows of the screen.
 *
 * The events of a row do not overlap and are in order, so what lies at a time is found by binary
 * search, and `until[i]`, the time that all events before the i-th lasted, tells how busy any
 * stretch of a row was without looking at its events. That keeps a million of them smooth. */

/* The kinds of page_rows.h, in that order. */
const KERNEL = 0, RANGE = 7;
const KINDS = ['kernel', 'copy', 'fill', 'other', 'call', 'launch', 'wait', 'range', 'mark'];

function bytesOf(text) {
    if (Uint8Array.fromBase64)
        return Uint8Array.fromBase64(text);
    const parts = [];
    let size = 0;
    /* In pieces: a browser's strings and stacks have limits. 77 letters are a line. */
    for (let at = 0; at < text.length; at += 77 * 40000) {
        const plain = atob(text.slice(at, at + 77 * 40000));
        const part = new Uint8Array(plain.length);
        for (let i = 0; i < plain.length; i++)
            part[i] = plain.charCodeAt(i);
        parts.push(part);
        size += part.length;
    }
    const all = new Uint8Array(size);
    let at = 0;
    for (const part of parts) {
        all.set(part, at);
        at += part.length;
    }
    return all;
}

function take(id) {
    const node = document.getElementById(id);
    const text = node.textContent;
    node.remove(); /* its memory is needed for something else */
    return text.trimStart();
}

const facts = JSON.parse(take('facts'));
const count = facts.count;
const names = facts.names, kinds = facts.kinds, notes = facts.notes;
const columns = bytesOf(take('events')).buffer;
const start = new Float64Array(columns, 0, count);
const duration = new Float64Array(columns, 8 * count, count);
const nameOf = new Uint32Array(columns, 16 * count, count);
const noteOf = new Uint32Array(columns, 20 * count, count);
const linkOf = new Uint32Array(columns, 24 * count, count);
const until = new Float64Array(count + 1);
const lowerNames = names.map((name) => name.toLowerCase());

for (let i = 0; i < count; i++)
    until[i + 1] = until[i] + duration[i];

/* Rows: {first, end, track, lane}; a track is {group, gpu, name, rows}. */
const rows = [];
for (const track of facts.tracks) {
    track.rows.forEach((events, lane) => {
        const first = rows.length ? rows[rows.length - 1].end : 0;
        rows.push({first, end: first + events, track, lane});
    });
}

/* The first event in [from, to) that begins at `time` or later. */
function firstFrom(from, to, time) {
    while (from < to) {
        const middle = (from + to) >>> 1;
        if (start[middle] < time)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* The first event of a row that ends after `time`. */
function firstAfter(row, time) {
    const i = firstFrom(row.first, row.end, time);
    return i > row.first && start[i - 1] + duration[i - 1] > time ? i - 1 : i;
}

function rowOf(event) {
    return rows.find((row) => event >= row.first && event < row.end);
}

/* ---- searching ------------------------------------------------------------------------------- */

let query = '';
let isMatch = null;   /* by name; null: nothing is searched for */
let matches = null;   /* how many events before the i-th match */

function search(text) {
    query = text.trim().toLowerCase();
    isMatch = matches = null;
    if (!query)
        return;
    isMatch = Uint8Array.from(lowerNames, (name) => name.includes(query) ? 1 : 0);
    matches = new Uint32Array(count + 1);
    for (let i = 0; i < count; i++)
        matches[i + 1] = matches[i] + isMatch[nameOf[i]];
}

/* The match that is next in time after an event (or before it, step -1); -1: none. */
function nextMatch(event, step) {
    const time = event < 0 ? (step > 0 ? -1 : Infinity) : start[event];
    let best = -1;
    for (let i = 0; matches && i < count; i++) {
        const later = step > 0 ? start[i] > time || (start[i] === time && i > event)
                               : start[i] < time || (start[i] === time && i < event);
        if (!later || !isMatch[nameOf[i]])
            continue;
        if (best < 0 || (step > 0 ? start[i] < start[best] : start[i] >= start[best]))
            best = i;
    }
    return best;
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* What happens between two times: a line for each name, the longest first. */
function sumUp(from, to) {
    const total = new Float64Array(names.length), calls = new Uint32Array(names.length);
    const bytes = new Float64Array(names.length);
    const noteBytes = notes.map((note) => /^\d+ bytes$/.test(note) ? parseInt(note, 10) : 0);
    let busy = 0;
    for (const row of rows) {
        for (let i = firstAfter(row, from); i < row.end && start[i] < to; i++) {
            const n = nameOf[i];
            const part = Math.min(start[i] + duration[i], to) - Math.max(start[i], from);
            calls[n]++;
            total[n] += part;
            bytes[n] += noteBytes[noteOf[i]];
            if (row.track.gpu)
                busy += part;
        }
    }
    const lines = [];
    for (let n = 0; n < names.length; n++) {
        if (calls[n])
            lines.push({name: names[n], kind: KINDS[kinds[n]], count: calls[n], total_ns: total[n],
                        mean_ns: total[n] / calls[n], bytes: bytes[n]});
    }
    lines.sort((a, b) => b.total_ns - a.total_ns);
    return {lines, busy};
}

/* ---- words ----------------------------------------------------------------------------------- */

function timeText(ns) {
    const units = [[1e9, 's'], [1e6, 'ms'], [1e3, 'us']];
    for (const [size, unit] of units) {
        const v = ns / size;
        if (v >= 0.99995)
            return v.toFixed(v < 9.995 ? 2 : v < 99.95 ? 1 : 0) + ' ' + unit;
    }
    return Math.round(ns) + ' ns';
}

function bytesText(n) {
    const units = [[1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB']];
    for (const [size, unit] of units) {
        if (n >= size)
            return (n / size).toFixed(n / size < 9.995 ? 2 : 1) + ' ' + unit;
    }
    return n + ' B';
}

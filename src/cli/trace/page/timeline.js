/* The timeline: a canvas of the size of its window, which is drawn anew for each change. Where
 * events are narrower than a pixel, a pixel shows how busy the row was there. */

const ROW = 18, GROUP = 22, AXIS = 24, MARGIN = 4;
const canvas = document.getElementById('view');
const scroller = document.getElementById('scroll');
const spacer = document.getElementById('spacer');
const pen = canvas.getContext('2d');
const whole = Math.max(facts.end, 1);
const labels = 190; /* pixels */
let colours = null;
let from = 0, to = whole;     /* ns: what is shown */
let picked = -1;              /* an event */
let picking = null;           /* ns: [from, to], the selection */
let places = [];              /* y of each row, and of the groups' titles */
let height = 0;
let width = 0;
let asked = false;

function layOut() {
    let y = AXIS + 4, group = null, track = null;
    places = [];
    for (const row of rows) {
        if (row.track.group !== group) {
            group = row.track.group;
            places.push({y, title: group});
            y += GROUP;
        }
        y += row.track !== track && track && track.group === group ? MARGIN : 0;
        track = row.track;
        places.push({y, row});
        y += ROW;
    }
    /* Few rows leave their room to the tables. */
    scroller.style.maxHeight = Math.max(y + 10, 140) + 'px';
    spacer.style.height = Math.max(0, y + 8 - scroller.clientHeight) + 'px';
}

function readColours() {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue('--' + name).trim();
    const tone = value('kernel-tone').split(' ');
    colours = {};
    for (const name of ['back', 'front', 'faint', 'line', 'band', 'select', 'match', 'error', 'on',
                        'on-range'])
        colours[name] = value(name);
    const ofKind = KINDS.map((kind) => value(kind));
    /* Kernels of one name have one colour, of twelve. */
    colours.names = names.map((name, n) => {
        if (kinds[n] !== KERNEL)
            return ofKind[kinds[n]];
        let hash = 7;
        for (let i = 0; i < name.length; i++)
            hash = (hash * 31 + name.charCodeAt(i)) % 1000003;
        return `hsl(${(hash % 12) * 30 + 5} ${tone[0]} ${tone[1]})`;
    });
}

function colourOf(event) {
    return notes[noteOf[event]].startsWith('!') ? colours.error : colours.names[nameOf[event]];
}

/* ---- drawing --------------------------------------------------------------------------------- */

function draw() {
    if (asked)
        return;
    asked = true;
    requestAnimationFrame(() => {
        asked = false;
        drawNow();
    });
}

function drawNow() {
    const ratio = window.devicePixelRatio || 1;
    width = scroller.clientWidth;
    height = scroller.clientHeight;
    const across = Math.round(width * ratio), down = Math.round(height * ratio);
    if (canvas.width !== across || canvas.height !== down) {
        canvas.width = across;
        canvas.height = down;
        canvas.style.width = width + 'px';
        canvas.style.height = height + 'px';
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.globalAlpha = 1;
    pen.fillStyle = colours.back;
    pen.fillRect(0, 0, width, height);
    pen.font = '11px system-ui, "DejaVu Sans", sans-serif';
    pen.textBaseline = 'middle';
    for (const place of places) {
        const y = place.y - scroller.scrollTop;
        if (y < AXIS - GROUP || y > height)
            continue;
        if (place.row)
            drawRow(place.row, y);
        else
            drawTitle(place.title, y);
    }
    drawSelection();
    drawAxis();
}

function drawTitle(text, y) {
    pen.fillStyle = colours.band;
    pen.fillRect(0, y, width, GROUP - 3);
    pen.fillStyle = colours.front;
    pen.font = '600 12px system-ui, "DejaVu Sans", sans-serif';
    pen.fillText(text, 8, y + GROUP / 2 - 1);
    pen.font = '11px system-ui, "DejaVu Sans", sans-serif';
}

function drawRow(row, y) {
    const scale = (width - labels) / (to - from);
    let i = firstAfter(row, from);
    pen.save();
    pen.beginPath();
    pen.rect(labels, AXIS, width - labels, height - AXIS);
    pen.clip();
    while (i < row.end && start[i] < to) {
        const left = labels + (start[i] - from) * scale;
        const size = duration[i] * scale;
        if (size >= 1.5) {
            drawEvent(i, left, y, size);
            i++;
            continue;
        }
        /* All that begins in this pixel. */
        const pixel = Math.floor(left);
        const next = Math.max(i + 1, firstFrom(i, row.end, from + (pixel + 1 - labels) / scale));
        const busy = (until[next] - until[i]) * scale;
        const found = matches && matches[next] > matches[i];
        pen.globalAlpha = (matches && !found ? .2 : 1) * Math.min(1, .4 + .6 * busy);
        pen.fillStyle = found ? colours.match : colourOf(i);
        pen.fillRect(pixel, y + 1, 1, ROW - 3);
        i = next;
    }
    pen.restore();
    if (row.lane === 0)
        drawText(row.track.name, 16, y, labels - 22, colours.faint);
}

function drawEvent(i, left, y, size) {
    const right = Math.min(left + size, width);
    const x = Math.max(left, labels - 1);
    const range = kinds[nameOf[i]] === RANGE;
    pen.globalAlpha = matches && !isMatch[nameOf[i]] ? .2 : 1;
    pen.fillStyle = colourOf(i);
    pen.fillRect(x, y + 1, Math.max(1, right - x - (size > 4 ? .6 : 0)), ROW - 3);
    if (right - x > 26)
        drawText(names[nameOf[i]], x + 4, y, right - x - 7,
                 range ? colours['on-range'] : colours.on);
    pen.globalAlpha = 1;
    if (i === picked || (matches && isMatch[nameOf[i]] && size > 3)) {
        pen.strokeStyle = i === picked ? colours.front : colours.match;
        pen.lineWidth = i === picked ? 2 : 1;
        pen.strokeRect(x + 1, y + 1.5, Math.max(1, right - x - 2), ROW - 4);
    }
}

function drawText(text, x, y, room, colour) {
    const letters = Math.floor(room / 5.6);
    if (letters < 2)
        return;
    pen.fillStyle = colour;
    pen.fillText(text.length > letters ? text.slice(0, letters - 1) + '\u2026' : text, x,
                 y + ROW / 2 - .5, room + 4);
}

function drawSelection() {
    if (!picking)
        return;
    const scale = (width - labels) / (to - from);
    const a = Math.max(labels, labels + (picking[0] - from) * scale);
    const b = Math.min(width, labels + (picking[1] - from) * scale);
    if (b < labels || a > width)
        return;
    pen.fillStyle = colours.select;
    pen.fillRect(a, AXIS, Math.max(1, b - a), height);
}

function drawAxis() {
    const room = (to - from) / Math.max(1, (width - labels) / 110);
    const power = Math.pow(10, Math.floor(Math.log10(room)));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= room) || room;
    const digits = Math.max(0, Math.ceil(-Math.log10(step / unitOf(to)[0]) - 1e-9));
    const [size, unit] = unitOf(to);
    pen.fillStyle = colours.back;
    pen.fillRect(0, 0, width, AXIS);
    pen.fillStyle = colours.line;
    pen.fillRect(0, AXIS - 1, width, 1);
    /* The times of a damaged file may be so large that a step changes nothing. */
    for (let n = 0; n < 1000 && (Math.ceil(from / step) + n) * step <= to; n++) {
        const time = (Math.ceil(from / step) + n) * step;
        const x = labels + (time - from) / (to - from) * (width - labels);
        pen.fillStyle = colours.line;
        pen.fillRect(Math.round(x), AXIS - 6, 1, 6);
        pen.fillStyle = colours.faint;
        pen.fillText((time / size).toFixed(Math.min(digits, 9)) + ' ' + unit, x + 4, AXIS / 2 - 1);
    }
    pen.fillStyle = colours.faint;
    pen.fillText(timeText(to - from) + ' shown', 8, AXIS / 2 - 1);
}

function unitOf(ns) {
    return ns >= 1e9 ? [1e9, 's'] : ns >= 1e6 ? [1e6, 'ms'] : ns >= 1e3 ? [1e3, 'us'] : [1, 'ns'];
}

/* ---- moving ---------------------------------------------------------------------------------- */

function show(a, b) {
    const least = Math.min(20, whole);
    let size = Math.min(Math.max(b - a, least), whole * 1.02);
    if (size > b - a + 1e-9 && size < whole)
        a = (a + b - size) / 2;
    from = Math.max(-whole * .01, Math.min(a, whole * 1.01 - size));
    to = from + size;
    draw();
}

function zoom(factor, at) {
    const middle = at === undefined ? (from + to) / 2 : at;
    show(middle - (middle - from) * factor, middle + (to - middle) * factor);
}

function timeAt(x) {
    return from + (x - labels) / (width - labels) * (to - from);
}

/* The event at a place of the canvas, or the nearest within three pixels; -1: none. */
function eventAt(x, y) {
    const at = y + scroller.scrollTop;
    const place = places.find((p) => p.row && at >= p.y && at < p.y + ROW);
    const slack = 3 * (to - from) / (width - labels);
    if (!place || x < labels || y < AXIS)
        return -1;
    const time = timeAt(x);
    const i = firstAfter(place.row, time);
    if (i < place.row.end && start[i] - slack <= time)
        return i;
    return i > place.row.first && start[i - 1] + duration[i - 1] + slack >= time ? i - 1 : -1;
}

/* Picks an event, and brings it into sight. */
function pick(event, zoomed) {
    picked = event;
    if (event >= 0) {
        const end = start[event] + duration[event];
        if (zoomed || start[event] < from || end > to) {
            const size = zoomed ? Math.max(duration[event] * 6, (to - from) * .02) : to - from;
            const middle = (start[event] + end) / 2;
            show(middle - size / 2, middle + size / 2);
        }
        const row = rowOf(event);
        const y = places.find((p) => p.row === row).y;
        if (y < scroller.scrollTop + AXIS)
            scroller.scrollTop = y - AXIS - 8;
        else if (y + ROW > scroller.scrollTop + height)
            scroller.scrollTop = y + ROW + 8 - height;
    }
    draw();
    showEvent();
}

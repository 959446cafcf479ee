/* Keys, the mouse, the search, and how the page begins. */

const field = document.getElementById('query');
const found = document.getElementById('found');
const tip = document.getElementById('tip');

function startSearch(text) {
    field.value = text;
    search(text);
    found.textContent = matches ? `${matches[count].toLocaleString('en')} events` : '';
    draw();
}

function goToMatch(step) {
    const event = nextMatch(picked, step);
    if (event >= 0)
        pick(event, to - from > duration[event] * 1000);
}

/* ---- the mouse ------------------------------------------------------------------------------- */

let drag = null; /* {x, time, from, moves, pans} */

canvas.addEventListener('pointerdown', (event) => {
    if (event.button > 1 || event.offsetX < labels)
        return;
    drag = {x: event.offsetX, time: timeAt(event.offsetX), from, to, moved: false,
            pans: event.shiftKey || event.button === 1 || event.offsetY < AXIS};
    canvas.setPointerCapture(event.pointerId);
});

canvas.addEventListener('pointermove', (event) => {
    if (!drag) {
        showTip(event);
        return;
    }
    drag.moved = drag.moved || Math.abs(event.offsetX - drag.x) > 3;
    if (!drag.moved)
        return;
    tip.hidden = true;
    if (drag.pans) {
        const by = (event.offsetX - drag.x) / (width - labels) * (drag.to - drag.from);
        show(drag.from - by, drag.to - by);
    } else {
        const time = timeAt(event.offsetX);
        picking = [Math.min(time, drag.time), Math.max(time, drag.time)];
        draw();
    }
});

canvas.addEventListener('pointerup', (event) => {
    const last = drag;
    drag = null;
    if (!last)
        return;
    if (!last.moved) {
        picking = null;
        pick(eventAt(event.offsetX, event.offsetY), false);
    } else if (!last.pans)
        showTab('Selection');
});

canvas.addEventListener('pointerleave', () => { tip.hidden = true; });
canvas.addEventListener('dblclick', (event) => pick(eventAt(event.offsetX, event.offsetY), true));

canvas.addEventListener('wheel', (event) => {
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const by = (event.deltaX || event.deltaY) / (width - labels) * (to - from);
        show(from + by, to + by);
    } else if (event.offsetX < labels)
        return; /* over the names, the wheel scrolls */
    else
        zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), timeAt(event.offsetX));
    event.preventDefault();
}, {passive: false});

function showTip(event) {
    const i = eventAt(event.offsetX, event.offsetY);
    tip.hidden = i < 0;
    if (i < 0)
        return;
    const note = notes[noteOf[i]].replace(/^!/, '');
    tip.replaceChildren(make('b', {}, names[nameOf[i]]),
                        timeText(duration[i]) + (note ? ', ' + note : ''));
    tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + 'px';
    tip.style.top = Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 8) + 'px';
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* The event in the row above or below that is nearest in time. */
function pickInRow(step) {
    const at = rows.indexOf(picked < 0 ? rows[0] : rowOf(picked));
    const time = picked < 0 ? from : start[picked];
    for (let n = picked < 0 ? 0 : at + step; n >= 0 && n < rows.length; n += step || 1) {
        if (rows[n].first === rows[n].end)
            continue;
        pick(Math.min(firstAfter(rows[n], time), rows[n].end - 1), false);
        return;
    }
}

function pickBeside(step) {
    const row = picked < 0 ? null : rowOf(picked);
    if (!row)
        pickInRow(1);
    else if (picked + step >= row.first && picked + step < row.end)
        pick(picked + step, false);
}

function giveUp() {
    if (query)
        startSearch('');
    else if (picking)
        picking = null;
    else
        picked = -1;
    draw();
    showTab(picking ? 'Selection' : tab);
}

const KEYS = {
    ArrowLeft: () => show(from - (to - from) * .15, to - (to - from) * .15),
    ArrowRight: () => show(from + (to - from) * .15, to + (to - from) * .15),
    ArrowUp: () => pickInRow(-1),
    ArrowDown: () => pickInRow(1),
    '+': () => zoom(.6), '=': () => zoom(.6), '-': () => zoom(1 / .6),
    0: () => show(0, whole),
    n: () => pickBeside(1), p: () => pickBeside(-1),
    f: () => picked >= 0 && pick(picked, true),
    Enter: (event) => goToMatch(event.shiftKey ? -1 : 1),
    Escape: giveUp,
};

canvas.addEventListener('keydown', (event) => {
    const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey)
        return;
    act(event);
    event.preventDefault();
});

document.addEventListener('keydown', (event) => {
    if (event.key === '/' && event.target !== field) {
        field.focus();
        field.select();
        event.preventDefault();
    }
});

field.addEventListener('input', () => startSearch(field.value));
field.addEventListener('keydown', (event) => {
    if (event.key === 'Enter')
        goToMatch(event.shiftKey ? -1 : 1);
    else if (event.key === 'Escape') {
        startSearch('');
        canvas.focus();
    }
});

const BUTTONS = {
    before: () => goToMatch(-1), after: () => goToMatch(1), in: () => zoom(.6),
    out: () => zoom(1 / .6), all: () => show(0, whole),
    theme: () => setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'),
};
for (const [id, act] of Object.entries(BUTTONS))
    document.getElementById(id).addEventListener('click', act);

/* ---- the beginning --------------------------------------------------------------------------- */

function setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    readColours();
    draw();
}

function describe() {
    const file = summary.files[0];
    const clocks = {executor: 'the executor of the CPU GPU', cupti: 'CUPTI'};
    const parts = [timeText(file.duration_ns), `${count.toLocaleString('en')} events`];
    for (const gpu of file.gpus.slice(0, 4))
        parts.push(`GPU ${gpu.device} busy for ${timeText(gpu.busy_ns)}`);
    if (clocks[file.gpu_clock])
        parts.push('GPU times by ' + clocks[file.gpu_clock]);
    else if (!file.gpus.length)
        parts.push('no GPU times in this trace');
    if (file.blocks_lost || !file.closed)
        parts.push(file.blocks_lost ? 'the trace is damaged: parts are missing'
                                    : 'the trace was not closed: its last calls may be missing');
    if (file.dropped)
        parts.push(`${file.dropped} records were dropped`);
    if (facts.left_out)
        parts.push(`${facts.left_out} events of too many at once are left out`);
    document.getElementById('program').textContent = file.program;
    document.getElementById('about').textContent = parts.join(' \u00b7 ');
    document.title = file.program + ' - heddle trace';
}

/* The view can be part of the address: #theme=dark&from=0.5&to=0.75&find=gemm&tab=Kernels, times in
 * seconds. */
function takeAddress() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const dark = matchMedia('(prefers-color-scheme: dark)');
    setTheme(wanted.get('theme') || (dark.matches ? 'dark' : 'light'));
    dark.addEventListener('change', () => setTheme(dark.matches ? 'dark' : 'light'));
    if (wanted.has('from') || wanted.has('to'))
        show(parseFloat(wanted.get('from') || '0') * 1e9,
             parseFloat(wanted.get('to') || String(whole / 1e9)) * 1e9);
    if (wanted.has('find'))
        startSearch(wanted.get('find'));
    if (wanted.has('select')) {
        const [a, b] = wanted.get('select').split(',').map((v) => parseFloat(v) * 1e9);
        picking = [a, b];
    }
    const first = ['Kernels', 'Calls', 'Selection'].find((name) => PANELS[name]);
    showTab(PANELS[wanted.get('tab')] ? wanted.get('tab') : picking ? 'Selection' : first);
}

describe();
makeTabs();
layOut();
takeAddress();
new ResizeObserver(() => {
    layOut();
    draw();
}).observe(scroller);
scroller.addEventListener('scroll', draw);
drawNow();
document.body.dataset.ready = Math.round(performance.now());

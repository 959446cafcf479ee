/* The tables under the timeline. Every text gets into the page as text. */

const tabList = document.getElementById('tabs');
const panel = document.getElementById('panel');
const summary = facts.summary;
let tab = '';
const order = {}; /* by tab: {key, down} */

/* Makes an element with texts, elements or null in it. */
function make(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) {
        if (key.startsWith('on'))
            node.addEventListener(key.slice(2), value);
        else
            node.setAttribute(key, value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
}

const TIMES = [
    {key: 'count', title: 'Count'},
    {key: 'total_ns', title: 'Total', text: timeText},
    {key: 'share', title: '%', text: (v) => v.toFixed(1)},
    {key: 'mean_ns', title: 'Mean', text: timeText},
    {key: 'p50_ns', title: 'p50', text: timeText},
    {key: 'p99_ns', title: 'p99', text: timeText},
    {key: 'max_ns', title: 'Max', text: timeText},
];
const MOVED = [
    {key: 'bytes', title: 'Bytes', text: (v) => v ? bytesText(v) : ''},
    {key: 'gb_per_s', title: 'GB/s', text: (v) => v.toFixed(2)},
];
const NAME = {key: 'name', title: 'Name', name: true};
const TABLES = {
    Kernels: {of: 'kernels', columns: [...TIMES, NAME],
              about: 'The share is that of the time in all kernels.'},
    Streams: {of: 'streams', columns: [...TIMES, NAME], plain: true,
              about: 'All that ran in each stream.'},
    Ranges: {of: 'ranges', columns: [...TIMES, NAME], plain: true,
             about: 'What was caused by calls inside the ranges of the program.'},
    Copies: {of: 'copies', columns: [...TIMES.slice(0, 4), ...MOVED, NAME],
             about: 'Copies and fills.'},
    Idle: {of: 'idle', columns: [...TIMES.slice(0, 4), TIMES[6], NAME], plain: true,
           about: 'What the program did between two pieces of work of a GPU.'},
    Calls: {of: 'calls', columns: [...TIMES, {key: 'errors', title: 'Errors'}, NAME],
            about: 'How long the program waited for calls to return.'},
};

/* plain: its names are not those of events, so there is nothing to search for. */
function table(id, lines, columns, about, plain) {
    const by = order[id] || {key: 'total_ns', down: true};
    const sorted = lines.slice().sort((a, b) => {
        const x = a[by.key], y = b[by.key];
        const less = x < y ? -1 : x > y ? 1 : 0;
        return by.down ? -less : less;
    });
    const head = columns.map((column) => make('th', {
        scope: 'col', 'aria-sort': by.key !== column.key ? 'none' : by.down ? 'descending'
                                                                            : 'ascending',
    }, make('button', {type: 'button', onclick: () => {
        order[id] = {key: column.key, down: by.key === column.key ? !by.down : !column.name};
        showTab(tab);
    }}, column.title + (by.key === column.key ? (by.down ? ' \u2193' : ' \u2191') : ''))));
    const most = 500;
    const body = sorted.slice(0, most).map((line) => make('tr', {}, ...columns.map((column) => {
        const value = line[column.key];
        if (column.name && !plain)
            return make('td', {title: value}, make('button', {
                type: 'button', onclick: () => startSearch(value)}, value));
        return make('td', {}, value === undefined ? '' : column.text ? column.text(value)
                                                                     : String(value));
    })));
    return [
        make('table', {}, make('caption', {}, about), make('thead', {}, make('tr', {}, ...head)),
             make('tbody', {}, ...body)),
        sorted.length > most ? make('p', {class: 'quiet'},
                                    `and ${sorted.length - most} more lines`) : null,
    ];
}

/* The lines of a table of the summary, with their share, and with names for people. */
function linesOf(key) {
    const lines = summary[key] || [];
    const total = lines.reduce((sum, line) => sum + line.total_ns, 0) || 1;
    return lines.map((line) => ({...line, name: line.readable || line.name,
                                 share: 100 * line.total_ns / total}));
}

function showSelection() {
    if (!picking)
        return [make('p', {class: 'quiet'},
                     'Drag over the timeline to sum up a stretch of it, or click an event.')];
    const [a, b] = picking;
    const {lines, busy} = sumUp(a, b);
    for (const line of lines)
        line.share = 100 * line.total_ns / Math.max(b - a, 1);
    return [
        make('p', {}, `${timeText(b - a)} from ${timeText(Math.max(a, 0))}: ` +
            `${lines.reduce((n, line) => n + line.count, 0)} events, ` +
            `streams of GPUs busy for ${timeText(busy)}`),
        ...table('Selection', lines,
                 [...TIMES.slice(0, 4), MOVED[0], {key: 'kind', title: 'Kind'}, NAME],
                 'Events count with the part that is selected; the share is that of the stretch.'),
    ];
}

/* Other events with the same link: what a call has caused, or what has caused it. */
function linked(event) {
    const found = [];
    for (let i = 0; linkOf[event] && i < count && found.length < 20; i++) {
        if (linkOf[i] === linkOf[event] && i !== event)
            found.push(i);
    }
    return found;
}

function eventPanel() {
    const i = picked;
    if (i < 0)
        return [make('p', {class: 'quiet'}, 'Click an event of the timeline.')];
    const row = rowOf(i);
    const note = notes[noteOf[i]].replace(/^!/, '');
    const pairs = [
        ['Name', names[nameOf[i]]], ['Kind', KINDS[kinds[nameOf[i]]]],
        ['Duration', timeText(duration[i])], ['Start', `${timeText(start[i])} (${start[i]} ns)`],
        ['Where', row.track.group + ', ' + row.track.name],
    ];
    if (note)
        pairs.push([notes[noteOf[i]].startsWith('!') ? 'Error' : 'Details', note]);
    const list = make('dl', {}, ...pairs.flatMap(([key, value]) => [
        make('dt', {}, key), make('dd', {}, value)]));
    for (const other of linked(i)) {
        const what = !row.track.gpu ? 'Caused' : rowOf(other).track.gpu ? 'Beside it' : 'Caused by';
        const go = {type: 'button', onclick: () => pick(other, true)};
        list.append(make('dt', {}, what), make('dd', {}, make(
            'button', go, `${names[nameOf[other]]} (${timeText(duration[other])})`)));
    }
    return [list];
}

function keysPanel() {
    const keys = [
        ['\u2190 \u2192', 'move in time'], ['\u2191 \u2193', 'the row above or below'],
        ['+ \u2212', 'zoom in and out'], ['0', 'show everything'],
        ['N P', 'next and previous event of the row'], ['F', 'fill the window with the event'],
        ['/', 'search'], ['Enter, Shift+Enter', 'next and previous match'],
        ['Esc', 'give up the search, the selection, the event'],
        ['drag', 'select a stretch'], ['Shift+drag, wheel sideways', 'move'], ['wheel', 'zoom'],
    ];
    return [make('dl', {}, ...keys.flatMap(([key, what]) => [
        make('dt', {}, make('kbd', {}, key)), make('dd', {}, what)]))];
}

const PANELS = {Selection: showSelection, Event: eventPanel};
for (const [name, entry] of Object.entries(TABLES)) {
    if ((summary[entry.of] || []).length)
        PANELS[name] = () => table(name, linesOf(entry.of), entry.columns, entry.about,
                                   entry.plain);
}
PANELS.Keys = keysPanel;

function showTab(name) {
    tab = name;
    for (const button of tabList.children) {
        const chosen = button.textContent === name;
        button.setAttribute('aria-selected', chosen);
        button.tabIndex = chosen ? 0 : -1;
    }
    panel.replaceChildren(...PANELS[name]().filter(Boolean));
}

/* An event was picked. */
function showEvent() {
    if (picked >= 0)
        showTab('Event');
    else if (tab === 'Event')
        showTab('Selection');
}

function makeTabs() {
    for (const name of Object.keys(PANELS))
        tabList.append(make('button', {type: 'button', role: 'tab', 'aria-controls': 'panel',
                                       onclick: () => showTab(name)}, name));
    tabList.addEventListener('keydown', (event) => {
        const all = Array.from(tabList.children);
        const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
        if (!step)
            return;
        const next = all[(all.findIndex((b) => b.textContent === tab) + step + all.length) %
                         all.length];
        showTab(next.textContent);
        next.focus();
        event.preventDefault();
    });
}

/* Ranks the sections of the documentation for a query. It knows no page and no browser, so that
 * node can test it; site.js shows what it finds, and index.js brings the sections.
 *
 * A section [page, anchor, heading, text] is found if each word of the query stands in its heading,
 * its text or its page's title, as a part of a word too. If no section has all the words, those
 * that have the most are found. */

"use strict";

(function (place) {
    const MOST = 24;            /* results */
    const MOST_PER_PAGE = 4;
    const MOST_WORDS = 8;

    let pages = [];
    let sections = [];

    function take(data) {
        pages = data.pages.map(function (p) {
            return {url: p[0], title: p[1], group: p[2], weight: p[3], low: fold(p[1])};
        });
        sections = data.sections.map(function (s) {
            return {page: pages[s[0]], anchor: s[1], heading: s[2], text: s[3],
                    lowHeading: fold(s[2]), lowText: fold(s[3])};
        });
    }

    /* Lower case, without changing the number of characters: places in both must be equal. */
    function fold(text) {
        const low = text.toLowerCase();

        return low.length === text.length ? low : text;
    }

    function isWord(c) {
        return c !== undefined && /[a-z0-9_]/.test(c);
    }

    /* How well a word fits a short text: 3 a whole word, 2 the beginning of one, 1 a part, 0. */
    function fit(text, word) {
        let best = 0;

        for (let at = text.indexOf(word); at >= 0 && best < 3; at = text.indexOf(word, at + 1)) {
            const begins = !isWord(text[at - 1]) || !isWord(word[0]);
            const ends = !isWord(text[at + word.length]);

            best = Math.max(best, begins ? (ends ? 3 : 2) : 1);
        }
        return best;
    }

    function scoreText(text, word) {
        let score = 0;
        let count = 0;

        for (let at = text.indexOf(word); at >= 0 && count < 10;
             at = text.indexOf(word, at + word.length)) {
            score += isWord(text[at - 1]) && isWord(word[0]) ? 0.4 : 1;
            count += 1;
        }
        /* Ten times in a long section say less than ten times in a short one. */
        return 3 * Math.log2(1 + score) / (1 + Math.log10(1 + text.length / 400));
    }

    function scoreWord(section, word) {
        const heading = fit(section.lowHeading, word);
        const title = fit(section.page.low, word);
        const text = scoreText(section.lowText, word);

        return [0, 8, 16, 24][heading] + [0, 2, 5, 9][title] + text;
    }

    function scoreSection(section, words, query) {
        let score = 0;
        let found = 0;

        for (const word of words) {
            const one = scoreWord(section, word);

            score += one;
            found += one > 0 ? 1 : 0;
        }
        if (found === 0)
            return {found: 0, score: 0};
        if (section.lowHeading === query)
            score += 30;
        else if (words.length > 1 && section.lowHeading.includes(query))
            score += 20;
        else if (words.length > 1 && section.lowText.includes(query))
            score += 8;
        /* The beginning of a page is where it says what it is. */
        if (section.page.low === query || section.page.low.split("(")[0] === query)
            score += 25;
        return {found: found, score: score * section.page.weight};
    }

    /* The best sections, as {page, anchor, heading, text, words, score}, best first. */
    function rank(text) {
        const query = fold(text).trim().replace(/\s+/g, " ");
        const words = Array.from(new Set(query.split(" "))).filter(Boolean).slice(0, MOST_WORDS);
        const hits = [];
        let most = 0;

        if (words.length === 0)
            return [];
        sections.forEach(function (section, order) {
            const one = scoreSection(section, words, query);

            if (one.found > 0)
                hits.push({section: section, order: order, found: one.found, score: one.score});
            most = Math.max(most, one.found);
        });
        const best = hits.filter(function (hit) { return hit.found === most; });

        best.sort(function (a, b) { return b.score - a.score || a.order - b.order; });

        const perPage = new Map();
        const results = [];

        for (const hit of best) {
            const count = perPage.get(hit.section.page) || 0;

            if (count < MOST_PER_PAGE && results.length < MOST) {
                perPage.set(hit.section.page, count + 1);
                results.push({page: hit.section.page, anchor: hit.section.anchor,
                              heading: hit.section.heading, text: hit.section.text,
                              words: words, score: hit.score});
            }
        }
        return results;
    }

    /* A piece of the section's text around the first word that is in it, as [text, isMarked]. */
    function snippet(result, length) {
        const low = fold(result.text);
        let first = -1;

        for (const word of result.words) {
            const at = low.indexOf(word);

            if (at >= 0 && (first < 0 || at < first))
                first = at;
        }
        let begin = Math.max(0, first - Math.floor(length / 3));

        if (begin > 0) {
            const blank = result.text.indexOf(" ", begin);

            begin = blank >= 0 && blank < first ? blank + 1 : begin;
        }
        const end = Math.min(result.text.length, begin + length);
        const parts = begin > 0 ? [["… ", false]] : [];

        markWords(parts, result.text.slice(begin, end), result.words);
        if (end < result.text.length)
            parts.push([" …", false]);
        return parts;
    }

    function markWords(parts, text, words) {
        const low = fold(text);
        let at = 0;

        while (at < text.length) {
            let next = text.length;
            let length = 0;

            for (const word of words) {
                const found = low.indexOf(word, at);

                if (found >= 0 && (found < next || (found === next && word.length > length))) {
                    next = found;
                    length = word.length;
                }
            }
            if (next > at)
                parts.push([text.slice(at, next), false]);
            if (length > 0)
                parts.push([text.slice(next, next + length), true]);
            at = next + length;
        }
    }

    place.heddleSearch = {take: take, rank: rank, snippet: snippet};
})(typeof globalThis === "undefined" ? this : globalThis);

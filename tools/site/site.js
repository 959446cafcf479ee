/* What a page does besides being read: search, and the choice between light and dark. Without
 * scripts the pages are whole; only these two are missing. */

"use strict";

(function () {
    const root = document.documentElement.dataset.root;
    const themes = ["auto", "light", "dark"];

    /* theme.js has read the choice, before the page was shown. */
    function readTheme() {
        return document.documentElement.dataset.theme || "auto";
    }

    function setTheme(theme) {
        if (theme === "auto")
            delete document.documentElement.dataset.theme;
        else
            document.documentElement.dataset.theme = theme;
        try {
            localStorage.setItem("heddle-theme", theme);
        } catch (error) {
            /* It holds for this page. */
        }
        button.textContent = {auto: "Auto", light: "Light", dark: "Dark"}[theme];
        button.title = "Colours: " + theme + "; click for the next";
    }

    const button = document.getElementById("theme");

    button.hidden = false;
    setTheme(readTheme());
    button.addEventListener("click", function () {
        setTheme(themes[(themes.indexOf(readTheme()) + 1) % themes.length]);
    });

    /* The page's own line in the navigation is in view. */
    const here = document.querySelector("nav.site [aria-current]");

    if (here) {
        const nav = here.closest("nav");

        nav.scrollTop = here.offsetTop - nav.offsetTop - nav.clientHeight / 2;
    }

    /* Search. The index is a script, because a page from a file may not fetch files. */
    const input = document.getElementById("search");
    const box = document.getElementById("results");
    let state = "none"; /* none, loading, ready, failed */
    let selected = -1;

    input.parentElement.hidden = false;

    function loadIndex() {
        if (state !== "none")
            return;
        state = "loading";

        const script = document.createElement("script");

        script.src = root + "index.js";
        script.onload = function () {
            state = "ready";
            show();
        };
        script.onerror = function () {
            state = "failed";
            show();
        };
        document.head.append(script);
    }

    function say(text) {
        const p = document.createElement("p");

        p.textContent = text;
        box.replaceChildren(p);
    }

    function makeResult(result, number) {
        const a = document.createElement("a");
        const strong = document.createElement("strong");
        const span = document.createElement("span");
        const title = result.page.title;

        a.href = root + result.page.url + (result.anchor ? "#" + result.anchor : "");
        a.id = "result" + number;
        a.setAttribute("role", "option");
        strong.textContent = result.heading && result.heading !== title
            ? title + ": " + result.heading : title;
        for (const [text, isMarked] of window.heddleSearch.snippet(result, 160)) {
            const part = isMarked ? document.createElement("mark") : document.createTextNode("");

            part.textContent = text;
            span.append(part);
        }
        a.append(strong, span);
        return a;
    }

    function show() {
        const query = input.value.trim();

        selected = -1;
        input.removeAttribute("aria-activedescendant");
        box.hidden = query === "";
        input.setAttribute("aria-expanded", String(!box.hidden));
        if (box.hidden)
            return;
        if (state === "failed") {
            say("The search's index (index.js) could not be read.");
        } else if (state !== "ready") {
            say("Reading the index …");
        } else {
            const results = window.heddleSearch.rank(query);

            if (results.length === 0)
                say("Nothing found.");
            else
                box.replaceChildren(...results.map(makeResult));
        }
        box.scrollTop = 0;
    }

    function select(step) {
        const links = box.querySelectorAll("a");

        if (links.length === 0)
            return;
        if (selected >= 0)
            links[selected].removeAttribute("aria-selected");
        selected = (selected + step + links.length + (selected < 0 && step < 0 ? 1 : 0))
            % links.length;
        links[selected].setAttribute("aria-selected", "true");
        links[selected].scrollIntoView({block: "nearest"});
        input.setAttribute("aria-activedescendant", links[selected].id);
    }

    input.addEventListener("focus", loadIndex);
    input.addEventListener("input", function () {
        loadIndex();
        show();
    });
    input.addEventListener("keydown", function (event) {
        if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            select(event.key === "ArrowDown" ? 1 : -1);
        } else if (event.key === "Enter") {
            const links = box.querySelectorAll("a");

            if (links.length > 0)
                links[Math.max(0, selected)].click();
        } else if (event.key === "Escape") {
            input.value = "";
            show();
            input.blur();
        } else {
            return;
        }
        event.preventDefault();
    });
    document.addEventListener("keydown", function (event) {
        const inField = /^(?:INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);

        if (event.key === "/" && !inField && !event.ctrlKey && !event.metaKey && !event.altKey) {
            event.preventDefault();
            input.focus();
        }
    });
    /* index.html?search=WORDS: links to a search. */
    const asked = new URLSearchParams(location.search).get("search");

    if (asked) {
        input.value = asked;
        loadIndex();
        show();
    }
    box.addEventListener("click", function () {
        box.hidden = true;
    });
    document.addEventListener("click", function (event) {
        if (!input.parentElement.contains(event.target))
            box.hidden = true;
    });
})();

/* Sets the colours that the reader chose (site.js), before the page is shown. A browser may forbid
 * storage to files; then the choice holds for one page. */

"use strict";

try {
    const theme = localStorage.getItem("heddle-theme");

    if (theme === "light" || theme === "dark")
        document.documentElement.dataset.theme = theme;
} catch (error) {
    /* As the system has it. */
}
